package privacy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cohort-engine/cohort/internal/fault"
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
	// CountScale and SumScale are the noise deviations of a joint release, of counts and of sums.
	CountScale, SumScale float64
	// Overlap bounds the 2-norm of a record's memberships, 0 means 1 (one cluster); Error that of what
	// approximate arithmetic adds to the whole release (T4).
	Overlap, Error float64
	// Pairs is the number of pairs of parties that have the same keys, and whose cells the keys draw (T16).
	Pairs int
	// Neighbours defaults to AddRemove.
	Neighbours Neighbours
}

// relation is Neighbours or its default.
func (s Shape) relation() Neighbours {
	if s.Neighbours == "" {
		return AddRemove
	}
	return s.Neighbours
}

// Rule is one line of the table of calibrations: how much one record changes one release of a
// method, by one calibration; or, with None, why the method has no such calibration.
type Rule struct {
	Method      string
	Calibration Calibration
	// Release is what is released: "sums", "counts", "centroids", ...
	Release string
	// L1 and L2 are the sensitivities, nil where the calibration has none in that norm.
	L1, L2 func(Shape) float64
	// Mechanisms are the names of the noise that it may get.
	Mechanisms []string
	// Neighbours are the relations it holds for; none for what does not hold.
	Neighbours []Neighbours
	// Theorem is a name of THEOREMS.md, or the paper's.
	Theorem string
	// Conditions must be met for the theorem.
	Conditions []string
	// Worth says in words what the rule gives, where that is not what it says.
	Worth string
	// None says why there is no such calibration; the fields from Release on are then empty.
	None string
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

// boxSums are the sums of records of one cluster: dB and B sqrt(d), twice that under replace-one.
var (
	boxL1 = twice(func(s Shape) float64 { return dims(s) * s.Bound })
	boxL2 = twice(func(s Shape) float64 { return math.Sqrt(dims(s)) * s.Bound })
)

// ballL1 and ballL2 are the sums of offsets of at most Radius of one cluster.
var (
	ballL1 = twice(func(s Shape) float64 { return s.Radius * math.Sqrt(dims(s)) })
	ballL2 = twice(func(s Shape) float64 { return s.Radius })
)

// jointL2 is the sensitivity of counts and sums together in units of their noise, with soft
// memberships and approximate arithmetic (T4).
func jointL2(s Shape) float64 {
	c2 := 1 / float64(s.CountScale*s.CountScale)
	d2 := float64(dims(s)*s.Bound*s.Bound) / float64(s.SumScale*s.SumScale)
	change := c2 + d2
	if s.relation() == ReplaceOne {
		change = math.Max(float64(2*c2)+float64(2*d2), 4*d2)
	}
	overlap := s.Overlap
	if overlap == 0 {
		overlap = 1
	}
	return float64(overlap*math.Sqrt(change)) + 2*s.Error/math.Min(s.CountScale, s.SumScale)
}

var (
	both       = []Neighbours{AddRemove, ReplaceOne}
	addRemove  = []Neighbours{AddRemove}
	replaceOne = []Neighbours{ReplaceOne}

	exact     = []string{"discrete-laplace", "discrete-gaussian"}
	inFloats  = []string{"laplace", "gaussian"}
	selection = []string{"permute-and-flip", "exponential"}

	boxed    = "bounds and the number of records that parameters follow are public, or came out of releases before"
	sized    = "lo and hi are public constants, ceil(lo/M) at each client"
	tied     = "ties of the assignment are broken by a keyed hash of the record (flow.TieDelta is part of delta)"
	total    = "the assignment succeeds on every data set: fillers below lo, unassigned records above hi"
	keyed    = "the viewer knows no sketch key and colludes with no holder of one"
	apart    = "the server, which draws this noise, colludes with no holder of the keys"
	phantoms = "phantoms per grid cell, hashed with the shared keys"
	within   = "the radius and the previous centroids are public"
	planes   = "the hyperplanes do not depend on the data"
	directed = "the projection does not depend on the data"
	twoSided = "both sides add the whole noise before anything is divided"
)

// rules is the table. A record is in [-B,B]^d; sizes are of clusters. Under replace-one the methods on
// one synopsis (hybrid, lsf, balcan) take a replacement for a group of two records (T7): twice
// everything, in either norm.
var rules = slices.Concat([]Rule{
	// nearest assignment, sums and counts
	{Method: "sulloyd", Calibration: Proven, Release: "sums", L1: boxL1, L2: boxL2, Mechanisms: exact, Neighbours: both,
		Theorem: "T2", Conditions: []string{boxed}},
	counts("sulloyd", "counts", both, "T2", boxed),
	{Method: "relative", Calibration: Proven, Release: "relative sums",
		L1: twice(func(s Shape) float64 { return math.Min(s.Radius*math.Sqrt(dims(s)), 2*s.Bound*dims(s)) }),
		L2: ballL2, Mechanisms: exact, Neighbours: both, Theorem: "T2", Conditions: []string{boxed, within}},
	counts("relative", "relative counts", both, "T2", boxed, within),
},
	// the released code of these two takes the scale of the theorem
	claimedAndPublished([]Rule{
		{Method: "sulloyd", Release: "sums", L1: func(s Shape) float64 { return dims(s) * s.Bound },
			L2:         func(s Shape) float64 { return math.Sqrt(dims(s)) * s.Bound },
			Mechanisms: inFloats, Neighbours: addRemove, Theorem: "Thesis-H §6.2.1", Conditions: []string{boxed},
			Worth: "the sensitivities hold; the noise is continuous, in floating point, which no theorem covers"},
		{Method: "sulloyd", Release: "counts", L1: one(1, 2), L2: one(1, math.Sqrt2), Mechanisms: inFloats,
			Neighbours: addRemove, Theorem: "Thesis-H §6.2.1", Conditions: []string{boxed}},
		{Method: "relative", Release: "relative sums",
			L1: func(s Shape) float64 { return dims(s) * math.Min(2*s.Bound, s.Radius) },
			L2: func(s Shape) float64 { return s.Radius }, Mechanisms: inFloats, Neighbours: addRemove,
			Theorem: "FastLloyd §7.1", Conditions: []string{boxed},
			Worth: "the sensitivities hold (the L1 one is up to sqrt(d) too large); the noise is continuous, in floating point"},
		{Method: "relative", Release: "relative counts", L1: one(1, 2), L2: one(1, math.Sqrt2), Mechanisms: inFloats,
			Neighbours: addRemove, Theorem: "FastLloyd §7.1", Conditions: []string{boxed}},
	}), []Rule{
		{Method: "sulloyd", Calibration: Claimed, Release: "centroids",
			L1: func(s Shape) float64 { return dims(s) * s.Bound }, Mechanisms: inFloats, Theorem: "Thesis-H §6.3.1",
			Conditions: []string{boxed},
			Worth: "a record alone in its cluster moves the centroid from the old one, by up to 2B per coordinate at one " +
				"client and 2B/M at M; the noise is continuous, in floating point"},
		{Method: "sulloyd", Calibration: Published, Release: "centroids", L1: func(s Shape) float64 { return s.Bound },
			Mechanisms: inFloats, Theorem: "Thesis-H §6.3.1", Conditions: []string{boxed},
			Worth: "a record alone in its cluster moves the centroid from the old one, by up to 2B per coordinate at one " +
				"client and 2B/M at M, and the released code leaves out the factor d"},

		// size-constrained assignment
		{Method: "csulloyd", Calibration: Proven, Release: "sums",
			L1:         func(s Shape) float64 { return 2 * s.Bound * exclusive(s) * clusters(s) * dims(s) },
			L2:         func(s Shape) float64 { return 2 * s.Bound * exclusive(s) * math.Sqrt(clusters(s)*dims(s)) },
			Mechanisms: exact, Neighbours: both, Theorem: "T1", Conditions: []string{boxed, sized, tied, total}},
		{Method: "csulloyd", Calibration: Proven, Release: "counts",
			L1: func(s Shape) float64 { return one(1, 2)(s) * exclusive(s) },
			L2: func(s Shape) float64 { return math.Max(exclusive(s), one(1, math.Sqrt2)(s)) }, Mechanisms: exact,
			Neighbours: both, Theorem: "T1", Conditions: []string{boxed, sized, tied, total}},
		{Method: "csulloyd", Calibration: Claimed, Release: "sums",
			L1: func(s Shape) float64 { return dims(s) * s.Bound * exclusive(s) }, Mechanisms: inFloats,
			Theorem: "Thesis-H §6.3.1", Conditions: []string{boxed},
			Worth: "one record moves others between clusters along a chain: the true L1 change is up to B d (2k-1) (T1)"},
		{Method: "csulloyd", Calibration: Claimed, Release: "counts", L1: func(s Shape) float64 { return exclusive(s) },
			Mechanisms: inFloats, Theorem: "Thesis-H §6.3.1", Conditions: []string{boxed}},
		{Method: "csulloyd", Calibration: Published, Release: "sums", L1: func(s Shape) float64 {
			if s.Radius > 0 {
				return dims(s) * math.Min(s.Bound, 2*s.Radius) * exclusive(s)
			}
			return dims(s) * s.Bound * exclusive(s)
		}, Mechanisms: inFloats, Theorem: "Thesis-H §6.3.1", Conditions: []string{boxed},
			Worth: "one record moves others between clusters along a chain: the true L1 change is up to B d (2k-1), " +
				"whatever the radius (T1)"},
		{Method: "csulloyd", Calibration: Published, Release: "counts", L1: func(s Shape) float64 { return exclusive(s) },
			Mechanisms: inFloats, Theorem: "Thesis-H §6.3.1", Conditions: []string{boxed}},
		{Method: "fastlloyd", Calibration: Proven, Release: "centroids", L1: centroidsL1, L2: centroidsL2,
			Mechanisms: exact, Neighbours: both, Theorem: "T1", Conditions: []string{boxed, sized, tied, total}},
		{Method: "fastlloyd", Calibration: Claimed, Release: "centroids", L1: func(s Shape) float64 {
			if s.Radius > 0 {
				return dims(s) * math.Min(s.Bound, 2*s.Radius) * exclusive(s) / float64(s.Lo)
			}
			return dims(s) * s.Bound * exclusive(s) / float64(s.Lo)
		}, Mechanisms: inFloats, Theorem: "FastLloyd Theorem 5.1", Conditions: []string{boxed},
			Worth: "up to k clusters change, each by 2B/lo per coordinate: the true epsilon is up to 2k times the claimed " +
				"one (T1)"},
		{Method: "fastlloyd", Calibration: Published, Release: "centroids", L1: func(s Shape) float64 {
			if s.Radius > 0 {
				return math.Min(s.Bound, 2*s.Radius) * exclusive(s) / float64(s.Lo)
			}
			return s.Bound * exclusive(s) / float64(s.Lo)
		}, Mechanisms: inFloats, Theorem: "FastLloyd Theorem 5.1", Conditions: []string{boxed},
			Worth: "the released code leaves out the factor d of its own theorem: the true epsilon is up to 2kd times the " +
				"announced one (T1)"},

		// bounds of columns
		{Method: "bounds", Calibration: Proven, Release: "magnitudes", L1: twice(dims),
			L2:         func(s Shape) float64 { return math.Sqrt(one(1, 2)(s) * dims(s)) },
			Mechanisms: []string{"discrete-laplace"}, Neighbours: both, Theorem: "T12, T6",
			Conditions: []string{"cells and columns do not depend on the data"}},
		{Method: "bounds", Calibration: Claimed, None: "no published claim for these cells"},

		// the number of records
		{Method: "count", Calibration: Proven, Release: "number of records", L1: one(1, 0), L2: one(1, 0),
			Mechanisms: []string{"discrete-laplace"}, Neighbours: []Neighbours{AddRemove}, Theorem: "T14, T6"},
		{Method: "count", Calibration: Claimed, None: "no published claim: the papers take the number for public"},

		// synopses and refinement
		counts("hybrid", "tree counts per level", both, "T5, T6", boxed, directed),
		totalWeight("hybrid"), totalWeight("eugkm"), totalWeight("evolve"), totalWeight("lsf"),
		{Method: "hybrid", Calibration: Proven, Release: "marginal counts", L1: twice(dims),
			L2:         func(s Shape) float64 { return math.Sqrt(one(1, 2)(s) * dims(s)) },
			Mechanisms: exact, Neighbours: both, Theorem: "T5, T6", Conditions: []string{boxed}},
		{Method: "hybrid", Calibration: Claimed, None: "no published claim, as the method is Cohort's own"},
		counts("eugkm", "grid counts", both, "T5, T6", boxed),
		counts("evolve", "candidate counts", both, "T5, T6", boxed),
		{Method: "evolve", Calibration: Claimed,
			None: "no claim of its own: what stands here is the idea of PE-means with other constants"},
		{Method: "eugkm", Calibration: Claimed,
			None: "no claim of its own: Su et al. add or remove a record, as the proven line does"},
		counts("lsf", "counts per level", both, "T5, T6", boxed, planes),
		{Method: "lsf", Calibration: Proven, Release: "leaf sums", L1: boxL1, L2: boxL2, Mechanisms: exact,
			Neighbours: both, Theorem: "T2, T5, T6", Conditions: []string{boxed, planes}},
		{Method: "lsf", Calibration: Claimed,
			None: "no published claim, as Sketch-V takes the central form from a library and claims only that of the " +
				"parties of sketch, ind-lap and ldp-agg"},

		// Balcan and Edler
		counts("balcan", "cube counts per level", both, "T5, T6", boxed, directed),
		{Method: "balcan", Calibration: Proven, Release: "scores of swaps",
			L1: twice(func(s Shape) float64 { return s.Bound }), Mechanisms: selection, Neighbours: both, Theorem: "T5, T8",
			Conditions: []string{boxed, directed, "a record's part in a score is cut at the bound"}},
		{Method: "balcan", Calibration: Claimed, None: "no published claim but that of balcan-edler"},
		{Method: "balcan-edler", Calibration: Claimed, Release: "cubes that pass", L1: one(1, 1), Mechanisms: inFloats,
			Theorem: "Balcan et al., Theorem 2; T5",
			Worth: "a level more is examined than released, and half of the budget is left: the true epsilon is about half " +
				"of the claimed one under add-remove"},
		{Method: "balcan-edler", Calibration: Claimed, Release: "scores of swaps",
			L1: func(s Shape) float64 { return 2 * s.Bound * s.Bound * dims(s) }, Mechanisms: selection,
			Theorem: "Balcan et al.; T5",
			Worth: "projected records are not clipped, so the bound is none; permute-and-flip as printed does not subtract " +
				"the maximum, which is not private at all (T5)"},
		{Method: "balcan-edler", Calibration: Claimed, Release: "scores of runs",
			L1: func(s Shape) float64 { return 2 * s.Bound * s.Bound * dims(s) }, Mechanisms: selection,
			Theorem: "Balcan et al.; T5",
			Worth: "the bound holds; permute-and-flip as printed does not subtract the maximum, which is not private " +
				"at all (T5)"},
		{Method: "balcan-edler", Calibration: Claimed, Release: "cluster counts", L1: one(1, 1), Mechanisms: inFloats,
			Theorem: "Thesis-B, Algorithms 12 and 13; T5"},
		{Method: "balcan-edler", Calibration: Claimed, Release: "cluster means",
			L1: func(s Shape) float64 { return s.Bound / float64(max(1, s.Lo)) }, Mechanisms: inFloats,
			Theorem: "Thesis-B, Algorithms 12 and 13; T5",
			Worth: "each of the d coordinates moves by up to r/(n+1) and shares one coordinate's budget: the true epsilon " +
				"is about (d+1)/2 times the claimed one, unbounded for clusters of a few records (T5)"},
		{Method: "balcan-edler", Calibration: Proven,
			None: "no proof of its own; balcan is the pipeline with one"},

		// vertical
		{Method: "ind-lap", Calibration: Proven, Release: "sizes of the local clusters", L1: one(1, 2), Mechanisms: exact,
			Neighbours: both, Theorem: "T6", Conditions: []string{boxed}},
		{Method: "ind-lap", Calibration: Claimed, Release: "sizes of the local clusters", L1: one(1, 2), Mechanisms: exact,
			Neighbours: addRemove, Theorem: "Sketch-V, section 4.1", Conditions: []string{boxed}},
		{Method: "ldp-agg", Calibration: Proven, Release: "memberships under local privacy", L1: one(1, 1),
			Mechanisms: []string{"randomized-response"}, Neighbours: replaceOne, Theorem: "T7"},
		{Method: "ldp-agg", Calibration: Claimed, Release: "memberships under local privacy", L1: one(1, 1),
			Mechanisms: []string{"randomized-response"}, Neighbours: replaceOne, Theorem: "Sketch-V, appendix B.2"},
		{Method: "ckks", Calibration: Proven, Release: "decrypted counts and sums", L2: jointL2,
			Mechanisms: []string{"discrete-gaussian"}, Neighbours: both, Theorem: "T4", Conditions: []string{boxed, twoSided}},
		{Method: "ckks", Calibration: Claimed, Release: "decrypted counts and sums",
			L2: func(s Shape) float64 { return s.Bound }, Mechanisms: []string{"discrete-gaussian"},
			Theorem: "CKKS-V, section 3", Conditions: []string{boxed},
			Worth: "each count and each coordinate is calibrated alone: the joint release costs more (T4)"},
		{Method: "ckks", Calibration: Claimed, Release: "centroids, to who drew the noise",
			L2: func(s Shape) float64 { return s.Bound }, Mechanisms: []string{"discrete-gaussian"},
			Theorem: "none; THEOREMS.md T4 has the attack", Conditions: []string{boxed},
			Worth: "the party that draws the noise can solve for the other's exact sums (T4)"},
	},
	meanAndRounds("hybrid", both), meanAndRounds("balcan", both), relativeRounds("eugkm", both),
	localForest("ind-lap", Proven, both, "T6"), localForest("ind-lap", Claimed, addRemove, "Sketch-V, section 4.1"),
	localForest("ldp-agg", Proven, replaceOne, "T6"), localForest("ldp-agg", Claimed, nil, "Sketch-V, appendix B.2"),
	numberOfRecords("ind-lap", Proven, both, "T6"),
	numberOfRecords("ind-lap", Claimed, addRemove, "Sketch-V, section 4.1"),
	sketchRules("sketch"), sketchRules("sketch-basic"),
)

// counts are those of disjoint sets of records, of which replacing a record changes two.
func counts(method, release string, n []Neighbours, theorem string, conditions ...string) Rule {
	return Rule{Method: method, Calibration: Proven, Release: release, L1: one(1, 2), L2: one(1, math.Sqrt2),
		Mechanisms: exact, Neighbours: n, Theorem: theorem, Conditions: conditions}
}

// claimedAndPublished are lines of the papers' theorems that their released code follows.
func claimedAndPublished(lines []Rule) []Rule {
	var out []Rule
	for _, c := range []Calibration{Claimed, Published} {
		for _, r := range lines {
			r.Calibration = c
			out = append(out, r)
		}
	}
	return out
}

// meanAndRounds are the releases that hybrid, balcan and parties of sketches share: the mean, histograms of
// distances, and rounds of relative sums and counts.
func meanAndRounds(method string, n []Neighbours) []Rule {
	return append([]Rule{
		{Method: method, Calibration: Proven, Release: "sum of all records", L1: boxL1, L2: boxL2, Mechanisms: exact,
			Neighbours: n, Theorem: "T2, T6", Conditions: []string{boxed}},
		counts(method, "histogram of distances", n, "T5, T6", boxed),
	}, relativeRounds(method, n)...)
}

// totalWeight is the weight of all records, in caps.
func totalWeight(method string) Rule {
	return Rule{Method: method, Calibration: Proven, Release: "total weight", L1: one(1, 1), L2: one(1, 1),
		Mechanisms: exact, Neighbours: both, Theorem: "T15, T6"}
}

// relativeRounds are rounds of relative sums and counts.
func relativeRounds(method string, n []Neighbours) []Rule {
	return []Rule{
		{Method: method, Calibration: Proven, Release: "relative sums", L1: ballL1, L2: ballL2, Mechanisms: exact,
			Neighbours: n, Theorem: "T2, T6", Conditions: []string{boxed, within}},
		counts(method, "relative counts", n, "T2, T6", boxed, within),
	}
}

// localForest is how a party finds its local centres: counts of each level and sums of the leaves of an
// LSH forest of its own columns. ldp-agg compares data sets of one size, for which the forest costs
// twice; the paper's form does not count that.
func localForest(method string, c Calibration, n []Neighbours, theorem string) []Rule {
	countsL1, sumsL1, worth := one(1, 2), boxL1, ""
	if n == nil {
		countsL1, sumsL1 = one(1, 1), func(s Shape) float64 { return dims(s) * s.Bound }
		worth = "the reports compare data sets of one size, to which the forest costs twice"
	}
	return []Rule{
		{Method: method, Calibration: c, Release: "counts of the forest", L1: countsL1, L2: one(1, math.Sqrt2),
			Mechanisms: exact, Neighbours: n, Theorem: theorem, Conditions: []string{boxed, planes}, Worth: worth},
		{Method: method, Calibration: c, Release: "sums of the forest's leaves", L1: sumsL1, L2: boxL2, Mechanisms: exact,
			Neighbours: n, Theorem: theorem, Conditions: []string{boxed, planes}, Worth: worth},
	}
}

// numberOfRecords is the paper's release of n for an estimate of the grid's total. Replacing a record
// does not change it; the noise stays.
func numberOfRecords(method string, c Calibration, n []Neighbours, theorem string) []Rule {
	return []Rule{{Method: method, Calibration: c, Release: "number of records", L1: one(1, 1), Mechanisms: exact,
		Neighbours: n, Theorem: theorem}}
}

// sketchRules are the lines of the sketch protocols: local centres, sizes, sketches.
func sketchRules(method string) []Rule {
	return slices.Concat(
		localForest(method, Proven, addRemove, "T6"), meanAndRounds(method, addRemove),
		[]Rule{
			counts(method, "counts of the local tree", addRemove, "T5, T6", boxed),
			counts(method, "sizes of the local clusters", addRemove, "T6", boxed),
			{Method: method, Calibration: Proven, Release: "sketches", L1: one(1, 2), Mechanisms: []string{"fm"},
				Neighbours: addRemove, Theorem: "T3", Conditions: []string{keyed, phantoms}},
		},
		drawnCells(method),
		localForest(method, Claimed, addRemove, "Sketch-V, section 3.5"),
		numberOfRecords(method, Claimed, addRemove, "Sketch-V, Algorithm 1"),
		[]Rule{{Method: method, Calibration: Claimed, Release: "sketches", L1: one(1, 2), Mechanisms: []string{"fm"},
			Theorem: "Sketch-V, Theorems 2 and 4", Conditions: []string{keyed},
			Worth: "the parties share the keys, so their sketches are not independent: no pure epsilon, no Renyi bound, " +
				"delta up to hundreds of times the claimed one (T3)"}})
}

// drawnCells is the line of what sketch returns to the parties, who hold the keys: one key's draw that a record changes
// takes a unit from one cell and gives one to another, of each pair of parties.
func drawnCells(method string) []Rule {
	if method != "sketch" {
		return nil
	}
	return []Rule{{Method: method, Calibration: Proven, Release: "cells that the keys draw",
		L2:         func(s Shape) float64 { return math.Sqrt(float64(2 * s.Pairs)) },
		Mechanisms: exact, Neighbours: addRemove, Theorem: "T16", Conditions: []string{apart, phantoms}}}
}

// Rules returns the lines of a method under a calibration, in order of release; none if the method
// has no such calibration.
func Rules(method string, c Calibration) []Rule {
	var out []Rule
	for i := range rules {
		if r := &rules[i]; r.Method == method && r.Calibration == c {
			out = append(out, *r)
		}
	}
	return out
}

// Calibrations lists those that a method has, in the order in which they are preferred.
func Calibrations(method string) []Calibration {
	var out []Calibration
	for _, c := range []Calibration{Proven, Claimed, Published} {
		if r := Rules(method, c); len(r) > 0 && r[0].None == "" {
			out = append(out, c)
		}
	}
	return out
}

// CheckCalibration refuses a calibration that the private method does not have, and says why.
func CheckCalibration(method string, c Calibration) error {
	able := Calibrations(method)
	if slices.Contains(able, c) {
		return nil
	}
	why := "no released code"
	for _, r := range Rules(method, c) {
		why = r.None
	}
	return fault.Request("calibration", fmt.Sprintf("is %s, and %s has %s", c, method, why), "use "+join(able, " or "))
}

// CheckNeighbours refuses a relation for which the method has no proof.
func CheckNeighbours(method string, n Neighbours) error {
	if _, err := ParseNeighbours(string(n)); err != nil {
		return fault.Request("neighbours", fmt.Sprintf("%q is unknown", n), "use add-remove or replace-one")
	}
	if slices.Contains(Provable(method), n) {
		return nil
	}
	return fault.Request("neighbours", fmt.Sprintf("is %s, for which %s has no proof", n, method),
		"use "+join(Provable(method), " or ")+", or a method that has one: "+strings.Join(Provers(n), ", "))
}

// Provable are the relations for which the method has a proof, or for a claim of a paper
// alone what it speaks of, the default first.
func Provable(method string) []Neighbours {
	var able []Neighbours
	for _, n := range []Neighbours{AddRemove, ReplaceOne} {
		if proves(method, n) {
			able = append(able, n)
		}
	}
	if able == nil {
		able = append(able, AddRemove)
	}
	return able
}

func join[T ~string](list []T, between string) string {
	words := make([]string, len(list))
	for i, x := range list {
		words[i] = string(x)
	}
	return strings.Join(words, between)
}

// AllRules returns the whole table.
func AllRules() []Rule { return slices.Clone(rules) }

// Lookup returns one line, and refuses a calibration that the method does not have or a relation
// for which it proves nothing, saying which have.
func Lookup(method string, c Calibration, release string, n Neighbours) (Rule, error) {
	for i := range rules { // without a copy: sessions look lines up in every round
		r := &rules[i]
		if r.Method != method || r.Calibration != c {
			continue
		}
		if r.None != "" {
			return Rule{}, fmt.Errorf("calibration is %s: %w: %s has %s", c, ErrRange, method, r.None)
		}
		if r.Release != release {
			continue
		}
		if c == Proven && !r.Holds(n) {
			return Rule{}, fmt.Errorf("neighbours is %s: %w: %s has a proof for %s only; use it, or one of %s", n, ErrRange,
				method, r.Neighbours[0], strings.Join(Provers(n), ", "))
		}
		return *r, nil
	}
	return Rule{}, fmt.Errorf("calibration is %s: %w: %s has none for %s", c, ErrRange, method, release)
}

// preludes are what runs of other methods begin with, nothing that is chosen by name.
var preludes = []string{"bounds", "count"}

// Provers lists the methods all of whose releases have a proof for the relation.
func Provers(n Neighbours) []string {
	out := slices.Clone(preludes)
	for i := range rules {
		if m := rules[i].Method; !slices.Contains(out, m) && proves(m, n) {
			out = append(out, m)
		}
	}
	return out[len(preludes):]
}

// proves tells whether all releases of a method have a proof for the relation.
func proves(method string, n Neighbours) bool {
	some := false
	for i := range rules { // without copies: every request for a method's options comes here
		r := &rules[i]
		if r.Method != method || r.Calibration != Proven || r.None != "" && !some {
			continue
		}
		if some = r.Holds(n); !some {
			return false
		}
	}
	return some
}

// Bound is a line of the table at public parameters: what a release is calibrated by.
type Bound struct {
	Rule  Rule
	Shape Shape
}

// At looks up a line for the relation of a shape.
func At(method string, c Calibration, release string, s Shape) (Bound, error) {
	r, err := Lookup(method, c, release, s.relation())
	return Bound{r, s}, err
}

// L1 is the sensitivity in that norm.
func (b Bound) L1() float64 { return b.Rule.L1(b.Shape) }

// L2 is the sensitivity in that norm.
func (b Bound) L2() float64 { return b.Rule.L2(b.Shape) }

// In is the sensitivity in the norm "L1" or "L2".
func (b Bound) In(norm string) float64 {
	if norm == "L2" {
		return b.L2()
	}
	return b.L1()
}

// Entry begins the ledger entry of a release with what the table says of it.
func (b Bound) Entry(what, mechanism, norm string) Entry {
	return Entry{What: what, Mechanism: mechanism, Norm: norm, Sensitivity: b.In(norm), Theorem: b.Rule.Theorem,
		Calibration: b.Rule.Calibration, Neighbours: b.Shape.relation(), Bound: &b}
}
