package privacy

import (
	"fmt"
	"math"
	"slices"
)

// Shape is what sensitivities depend on, all of it public.
type Shape struct {
	// D is the number of dimensions, K of clusters.
	D, K int
	// Bound is B: coordinates lie in [-B, B].
	Bound float64
	// Lo is the least size of a cluster over all clients together: M ceil(eta_min/M).
	Lo int
	// Radius is R of relative sums and of constrained assignment (eta_d), 0 for none.
	Radius float64
	// Exclusivity is E, at least 1.
	Exclusivity int
	// Unit is one step of the grid that centroids are rounded to, 0 for none.
	Unit float64
	// Neighbours defaults to AddRemove.
	Neighbours Neighbours
}

// Rule is one line of the table of calibrations: how much one record changes one release of a
// method, by one calibration.
type Rule struct {
	Method      string
	Calibration Calibration
	// Release is what is released: "sums", "counts", "centroids", ...
	Release string
	// L1 and L2 are the sensitivities, nil where the calibration has none in that norm.
	L1, L2 func(Shape) float64
	// Neighbours are the relations it holds for; none for what does not hold.
	Neighbours []Neighbours
	// Theorem is a name of THEOREMS.md, or the paper's.
	Theorem string
	// Conditions must be met for the theorem.
	Conditions []string
	// Worth says in words what the rule gives, where that is not what it says.
	Worth string
}

// Holds tells whether the rule is a theorem for the relation.
func (r Rule) Holds(n Neighbours) bool {
	if n == "" {
		n = AddRemove
	}
	return slices.Contains(r.Neighbours, n)
}

// one is a sensitivity that depends on the relation only.
func one(addRemove, replaceOne float64) func(Shape) float64 {
	return func(s Shape) float64 {
		if s.Neighbours == ReplaceOne {
			return replaceOne
		}
		return addRemove
	}
}

// twice doubles a sensitivity under replace-one.
func twice(f func(Shape) float64) func(Shape) float64 {
	return func(s Shape) float64 {
		if s.Neighbours == ReplaceOne {
			return 2 * f(s)
		}
		return f(s)
	}
}

func dims(s Shape) float64      { return float64(s.D) }
func clusters(s Shape) float64  { return float64(s.K) }
func exclusive(s Shape) float64 { return float64(max(1, s.Exclusivity)) }

// rounded is the change of a coordinate that is rounded to the grid after it moved by x: x/Unit may
// become floor(x/Unit)+1 units (T6).
func rounded(s Shape, x float64) float64 {
	if s.Unit == 0 {
		return x
	}
	return (math.Floor(x/s.Unit) + 1) * s.Unit
}

// centroidsL1 is 2BEkd/lo, or 2 eta_d k sqrt(d)/lo within a radius, and the rounding (T1, T6).
func centroidsL1(s Shape) float64 {
	v := clusters(s) * dims(s) * rounded(s, 2*s.Bound*exclusive(s)/float64(s.Lo))
	if s.Radius > 0 && exclusive(s) == 1 {
		v = math.Min(v, 2*s.Radius*clusters(s)*math.Sqrt(dims(s))/float64(s.Lo)+clusters(s)*dims(s)*s.Unit)
	}
	return v
}

// centroidsL2 is 2BE sqrt(kd)/lo, or 2 eta_d sqrt(k)/lo within a radius, and the rounding.
func centroidsL2(s Shape) float64 {
	v := math.Sqrt(clusters(s)*dims(s)) * rounded(s, 2*s.Bound*exclusive(s)/float64(s.Lo))
	if s.Radius > 0 && exclusive(s) == 1 {
		v = math.Min(v, 2*s.Radius*math.Sqrt(clusters(s))/float64(s.Lo)+math.Sqrt(clusters(s)*dims(s))*s.Unit)
	}
	return v
}

var (
	both      = []Neighbours{AddRemove, ReplaceOne}
	addRemove = []Neighbours{AddRemove}
	boxed     = "the bounds of the coordinates and the number of records are public"
	sized     = "lo and hi are public constants, ceil(lo/M) at each client"
	tied      = "ties of the assignment are broken by a keyed hash of the record (flow.TieDelta is part of delta)"
	total     = "the assignment succeeds on every data set: fillers below lo, unassigned records above hi"
	keyed     = "the viewer knows no sketch key and colludes with no holder of one"
)

// rules is the table. A record is in [-B,B]^d; sizes are of clusters.
var rules = []Rule{
	// nearest assignment, sums and counts
	{"sulloyd", Proven, "sums", twice(func(s Shape) float64 { return dims(s) * s.Bound }),
		twice(func(s Shape) float64 { return math.Sqrt(dims(s)) * s.Bound }), both, "T2", []string{boxed}, ""},
	{"sulloyd", Proven, "counts", one(1, 2), one(1, math.Sqrt2), both, "T2", []string{boxed}, ""},
	{"sulloyd", Claimed, "sums", func(s Shape) float64 { return dims(s) * s.Bound }, nil, addRemove, "Thesis-H §6.2.1", []string{boxed},
		"the sensitivities hold; the noise is continuous, in floating point, which no theorem covers"},
	{"sulloyd", Claimed, "counts", one(1, 2), nil, addRemove, "Thesis-H §6.2.1", []string{boxed}, ""},
	{"sulloyd", Claimed, "centroids", func(s Shape) float64 { return dims(s) * s.Bound }, nil, nil, "Thesis-H §6.3.1", []string{boxed},
		"a record alone in its cluster moves the centroid from the old one, by up to 2B per coordinate at one client and 2B/M at M; the noise is continuous, in floating point"},
	{"sulloyd", Published, "centroids", func(s Shape) float64 { return s.Bound }, nil, nil, "Thesis-H §6.3.1", []string{boxed},
		"a record alone in its cluster moves the centroid from the old one, by up to 2B per coordinate at one client and 2B/M at M, and the released code leaves out the factor d"},
	{"relative", Proven, "relative sums", twice(func(s Shape) float64 { return math.Min(s.Radius*math.Sqrt(dims(s)), 2*s.Bound*dims(s)) }),
		twice(func(s Shape) float64 { return s.Radius }), both, "T2", []string{boxed, "the radius and the previous centroids are public"}, ""},
	{"relative", Proven, "relative counts", one(1, 2), one(1, math.Sqrt2), both, "T2", []string{boxed, "the radius and the previous centroids are public"}, ""},
	{"relative", Claimed, "relative sums", func(s Shape) float64 { return dims(s) * math.Min(2*s.Bound, s.Radius) },
		func(s Shape) float64 { return s.Radius }, addRemove, "FastLloyd §7.1", []string{boxed},
		"the sensitivities hold (the L1 one is up to sqrt(d) too large); the noise is continuous, in floating point"},
	{"relative", Claimed, "relative counts", one(1, 2), one(1, math.Sqrt2), addRemove, "FastLloyd §7.1", []string{boxed}, ""},

	// size-constrained assignment
	{"csulloyd", Proven, "sums", func(s Shape) float64 { return 2 * s.Bound * exclusive(s) * clusters(s) * dims(s) },
		func(s Shape) float64 { return 2 * s.Bound * exclusive(s) * math.Sqrt(clusters(s)*dims(s)) }, both, "T1", []string{boxed, sized, tied, total}, ""},
	{"csulloyd", Proven, "counts", func(s Shape) float64 { return one(1, 2)(s) * exclusive(s) },
		func(s Shape) float64 { return math.Max(exclusive(s), one(1, math.Sqrt2)(s)) }, both, "T1", []string{boxed, sized, tied, total}, ""},
	{"csulloyd", Claimed, "sums", func(s Shape) float64 { return dims(s) * s.Bound * exclusive(s) }, nil, nil, "Thesis-H §6.3.1", []string{boxed},
		"one record moves others between clusters along a chain: the true L1 change is up to B d (2k-1) (T1)"},
	{"csulloyd", Claimed, "counts", func(s Shape) float64 { return exclusive(s) }, nil, nil, "Thesis-H §6.3.1", []string{boxed}, ""},
	{"csulloyd", Published, "sums", func(s Shape) float64 {
		if s.Radius > 0 {
			return dims(s) * math.Min(s.Bound, 2*s.Radius) * exclusive(s)
		}
		return dims(s) * s.Bound * exclusive(s)
	}, nil, nil, "Thesis-H §6.3.1", []string{boxed},
		"one record moves others between clusters along a chain: the true L1 change is up to B d (2k-1), whatever the radius (T1)"},
	{"csulloyd", Published, "counts", func(s Shape) float64 { return exclusive(s) }, nil, nil, "Thesis-H §6.3.1", []string{boxed}, ""},
	{"fastlloyd", Proven, "centroids", centroidsL1, centroidsL2, both, "T1", []string{boxed, sized, tied, total}, ""},
	{"fastlloyd", Claimed, "centroids", func(s Shape) float64 {
		if s.Radius > 0 {
			return dims(s) * math.Min(s.Bound, 2*s.Radius) * exclusive(s) / float64(s.Lo)
		}
		return dims(s) * s.Bound * exclusive(s) / float64(s.Lo)
	}, nil, nil, "FastLloyd Theorem 5.1", []string{boxed},
		"up to k clusters change, each by 2B/lo per coordinate: the true epsilon is up to 2k times the claimed one (T1)"},
	{"fastlloyd", Published, "centroids", func(s Shape) float64 {
		if s.Radius > 0 {
			return math.Min(s.Bound, 2*s.Radius) * exclusive(s) / float64(s.Lo)
		}
		return s.Bound * exclusive(s) / float64(s.Lo)
	}, nil, nil, "FastLloyd Theorem 5.1", []string{boxed},
		"the released code leaves out the factor d of its own theorem: the true epsilon is up to 2kd times the announced one (T1)"},

	// synopses and refinement
	{"hybrid", Proven, "tree counts per level", one(1, 2), one(1, math.Sqrt2), both, "T5", []string{boxed}, ""},
	{"hybrid", Proven, "relative sums", twice(func(s Shape) float64 { return s.Radius * math.Sqrt(dims(s)) }),
		twice(func(s Shape) float64 { return s.Radius }), both, "T2", []string{boxed}, ""},
	{"hybrid", Proven, "relative counts", one(1, 2), one(1, math.Sqrt2), both, "T2", []string{boxed}, ""},
	{"lsf", Proven, "counts per level", one(1, 2), one(1, math.Sqrt2), both, "T5", []string{boxed, "the hyperplanes do not depend on the data"}, ""},
	{"lsf", Proven, "leaf sums", twice(func(s Shape) float64 { return dims(s) * s.Bound }),
		twice(func(s Shape) float64 { return math.Sqrt(dims(s)) * s.Bound }), both, "T2", []string{boxed, "the hyperplanes do not depend on the data"}, ""},

	// Balcan and Edler
	{"balcan", Proven, "cube counts per level", one(1, 2), one(1, math.Sqrt2), both, "T5", []string{boxed, "the projection does not depend on the data"}, ""},
	{"balcan", Proven, "recovered sums", twice(func(s Shape) float64 { return dims(s) * s.Bound }),
		twice(func(s Shape) float64 { return math.Sqrt(dims(s)) * s.Bound }), both, "T2", []string{boxed}, ""},
	{"balcan", Proven, "recovered counts", one(1, 2), one(1, math.Sqrt2), both, "T2", []string{boxed}, ""},
	{"balcan-edler", Claimed, "cluster means", func(s Shape) float64 { return 2 * s.Bound / float64(max(1, s.Lo)) }, nil, nil, "Thesis-B Algorithm 8", nil,
		"each of the d coordinates moves by up to r/(n+1) and shares one coordinate's budget: the true epsilon is about (d+1)/2 times the claimed one, unbounded for clusters of a few records; permute-and-flip as printed does not subtract the maximum, which is not private at all (T5)"},

	// vertical
	{"sketch", Proven, "sketches of one key", one(1, 2), one(1, 2), addRemove, "T3", []string{keyed, "phantoms per grid cell, hashed with the shared keys"}, ""},
	{"sketch", Claimed, "sketches of one key", one(1, 2), nil, nil, "Sketch-V Theorem 4", []string{keyed},
		"the parties share the keys, so their sketches are not independent: no pure epsilon, no Renyi bound, delta up to hundreds of times the claimed one (T3)"},
	{"sketch-basic", Proven, "sketches of one key", one(1, 2), one(1, 2), addRemove, "T3", []string{keyed, "phantoms per grid cell, hashed with the shared keys"}, ""},
	{"sketch-basic", Claimed, "sketches of one key", one(1, 2), nil, nil, "Sketch-V Theorem 4", []string{keyed}, "as sketch"},
	{"ind-lap", Proven, "counts of each party's clusters", one(1, 2), one(1, math.Sqrt2), addRemove, "T6", []string{boxed}, ""},
	{"ldp-agg", Proven, "reported cluster", one(1, 1), one(1, 1), both, "T7", nil, ""},
	{"ckks", Proven, "decrypted sums", twice(func(s Shape) float64 { return dims(s) * s.Bound }),
		twice(func(s Shape) float64 { return math.Sqrt(dims(s)) * s.Bound }), both, "T4", []string{boxed, "both sides add the whole noise before anything is divided"}, ""},
	{"ckks", Proven, "decrypted counts", one(1, 2), one(1, math.Sqrt2), both, "T4", []string{boxed, "both sides add the whole noise before anything is divided"}, ""},
	{"ckks", Claimed, "decrypted sums", func(s Shape) float64 { return s.Bound }, func(s Shape) float64 { return s.Bound }, nil, "CKKS-V §3", []string{boxed},
		"each coordinate is calibrated alone, and the party that draws the noise can solve for the other's exact sums (T4)"},
	{"ckks", Claimed, "decrypted counts", one(1, 1), one(1, 1), nil, "CKKS-V §3", []string{boxed}, ""},
}

// Rules returns the lines of a method under a calibration, in order of release; none if the method
// has no such calibration.
func Rules(method string, c Calibration) []Rule {
	var out []Rule
	for _, r := range rules {
		if r.Method == method && r.Calibration == c {
			out = append(out, r)
		}
	}
	return out
}

// AllRules returns the whole table.
func AllRules() []Rule { return slices.Clone(rules) }

// Lookup returns one line, and refuses a calibration that the method does not have or a relation
// for which it proves nothing, saying which have.
func Lookup(method string, c Calibration, release string, n Neighbours) (Rule, error) {
	for _, r := range Rules(method, c) {
		if r.Release != release {
			continue
		}
		if c == Proven && !r.Holds(n) {
			return Rule{}, fmt.Errorf("neighbours is %s: %w: %s has a proof for %s only; use it, or one of %v", n, ErrRange, method, r.Neighbours[0], Provers(n))
		}
		return r, nil
	}
	return Rule{}, fmt.Errorf("calibration is %s: %w: %s has none for %s", c, ErrRange, method, release)
}

// Provers lists the methods all of whose releases have a proof for the relation.
func Provers(n Neighbours) []string {
	var out []string
	for i, r := range rules {
		if r.Calibration != Proven || slices.Contains(out, r.Method) {
			continue
		}
		all := true
		for _, s := range rules[i:] {
			all = all && (s.Method != r.Method || s.Calibration != Proven || s.Holds(n))
		}
		if all {
			out = append(out, r.Method)
		}
	}
	return out
}
