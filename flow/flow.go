// Package flow assigns points to clusters of bounded sizes at the least total
// squared distance, exactly.
//
// The problem is a minimum-cost flow (FastLloyd, Figure 1): every point sends one
// unit to one of k clusters, cluster j takes between lo_j and hi_j units, and the
// arc from point x to centroid c costs |x - c|^2, an exact integer in squared
// grid units. [Solver] never builds the n*k arcs: it works on the k prices of the
// clusters and on the points that lie near a boundary between clusters. [Reference]
// solves the same problem by shortest augmenting paths over all of them.
//
// # Algorithm
//
// First, where there are many clusters, the points are put in the order of a k-d tree:
// a box around a run of points leaves few clusters to choose from, and one point out
// of each of equal runs is a stratified sample.
//
// Then the dual, the same for every form of the problem. Passes over growing subsamples, and then
// over all points, assign each point to the columns where distance plus price is least; Newton's
// steps raise the dual. Passes are in single precision where that tells the points, else, and for small steps, in
// integers. A sort levels all prices of a plain problem at once, and clusters with hardly any
// points step to where they have theirs. Where the steps stop paying, and first where prices may be far
// apart, a subsample is completed instead. On a line the best clusters are intervals, and sorting gives
// the prices.
//
// Then the completion, the same for subsamples and all points and for every form of
// the problem. The columns (clusters, "unassigned", "escape") and a super-sink are
// the nodes of a quotient graph, whose arc from u to v is the cheapest move of a
// point from u to v: the minimum of a linear function over the points of u.
// Identical points are one with a multiplicity. A large excess comes down by steps
// of cost scaling; then rounds of shortest distances and bulk moves along the arcs of
// reduced cost 0 make the flow exact. Moves are looked for when a search needs them, so neither n*k costs nor k*k
// moves are kept. If the paths take too many rounds, cost scaling with a proven
// bound of rounds takes over.
//
// Last the ties, by the same algorithm on the tight arcs.
//
// # Options
//
// A radius removes the arcs that are longer than it (FastLloyd, section 7.1).
// As many points as possible are assigned, and among the assignments of that many
// points the cheapest is taken: a point stays unassigned only if every point it
// could push out would have to stay unassigned in its place.
//
// Exclusivity E > 1 (Thesis-H, section 4.1.4) lets a point join up to E clusters,
// the first always, the others only where a minimum demands it.
//
// Weights are multiplicities of points. A penalty makes the sizes soft: points
// missing below a minimum or above a maximum cost instead of being excluded.
//
// A total problem has a solution for every data set: a point that does not fit
// stays unassigned, and a cluster that lacks points is filled up to its minimum
// with fillers (engine/privacy/THEOREMS.md, T1). Both have the same price, a
// function of public values only: see [Problem.UnassignedCost].
//
// # Ties
//
// Assignments of equal total distance are told apart by a keyed hash of (the
// quantised record, the cluster): costs are compared first by distance and then
// by hash, word by word, as sums over the assignment. The answer is therefore a
// function of the set of records, never of their order, except with probability
// [TieDelta]. Which of several identical records goes where does not matter to
// anyone; they take their clusters in ascending order.
//
// # Certificate
//
// [Result.Prices] proves the answer optimal: [Verify] checks in one pass that the
// sizes are within bounds, that every point is where distance plus price is least,
// that a price is positive only at a full cluster and negative only at one with no
// more than its minimum, and that no exchange of equal distance lowers the hashes.
package flow

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// ErrInfeasible is wrapped by every error about sizes that no assignment has.
var ErrInfeasible = errors.New("infeasible sizes")

// ErrProblem is wrapped by every error about a malformed problem.
var ErrProblem = errors.New("malformed problem")

// Runner spreads independent calls over workers, as engine.Pool does. A nil Runner means the calling goroutine.
type Runner = parallel.Runner

// Problem is one size-constrained assignment.
type Problem struct {
	// Points are n points on the grid of 2^-FractionBits, |x| <= 1.
	Points kernels.Panels
	// Centroids are k*d coordinates, row-major, on the same grid, |c| <= 1.
	Centroids []float32
	// FractionBits is the number of fraction bits of the grid, 1 to 22.
	FractionBits int
	// Lo and Hi are the k minimum and maximum sizes.
	Lo, Hi []int
	// Radius, if positive, removes the arcs longer than it, in the units of the
	// points. 0 means none.
	Radius float64
	// Exclusivity is the largest number of clusters of one point; 0 and 1 mean one. All points may have 2^31 in all.
	Exclusivity int
	// Key is the public key of the tie hash. Centroids that follow from an earlier assignment need another.
	Key [16]byte
	// Total makes the problem feasible for every data set by fillers and
	// unassigned points.
	Total bool
	// Weights are the multiplicities of the points, at least 1; nil means 1 each. A
	// point of weight w is w identical points, so sizes count it w times and it may
	// be divided among clusters.
	Weights []int32
	// Penalty, if not nil, makes the sizes soft; there are no fillers then.
	Penalty *Penalty
}

// Penalty is what sizes outside their bounds cost, in squared units of the points.
type Penalty struct {
	// Under is the cost of each point missing below the minimum of a cluster, Over
	// that of each point above its maximum.
	Under, Over float64
}

// weight returns the multiplicity of point i.
func (p *Problem) weight(i int) int64 {
	if p.Weights == nil {
		return 1
	}
	return int64(p.Weights[i])
}

// total returns the number of points, multiplicities counted.
func (p *Problem) total() int64 {
	if p.Weights == nil {
		return int64(p.Points.N)
	}
	total := int64(0)
	for _, w := range p.Weights {
		total += int64(w)
	}
	return total
}

// slopes returns the costs of the penalty in squared grid units.
func (p *Problem) slopes() (under, over int64) {
	if p.Penalty == nil {
		return 0, 0
	}
	return int64(math.Ldexp(p.Penalty.Under, 2*p.FractionBits)), int64(math.Ldexp(p.Penalty.Over, 2*p.FractionBits))
}

// limit returns what the size of cluster j costs, for a number of points in all.
// Minimum sizes that fillers may fill up are soft.
func (p *Problem) limit(j int, total int64, fillers bool) bounds {
	b := bounds{lo: min(int64(p.Lo[j]), total), hi: min(int64(p.Hi[j]), total), top: total, under: infinity,
		over: infinity}
	if p.Penalty != nil {
		b.under, b.over = p.slopes()
	} else if fillers {
		b.under = p.UnassignedCost()
	}
	return b
}

func (p *Problem) k() int { return len(p.Lo) }

func (p *Problem) exclusivity() int { return max(1, p.Exclusivity) }

// mayLeave reports whether points may stay unassigned.
func (p *Problem) mayLeave() bool { return p.Total || p.Radius > 0 }

// columns returns the number of columns, which are the clusters and then, where they are, "unassigned" and "escape",
// and the places of these, -1 if there are none. No point of a plain problem stays unassigned.
func (p *Problem) columns(plain bool) (columns, outside, escape int) {
	columns, outside, escape = p.k(), -1, -1
	if !plain && p.mayLeave() {
		outside = columns
		columns++
	}
	if p.exclusivity() > 1 {
		escape = columns
		columns++
	}
	return columns, outside, escape
}

// reach returns the largest squared grid distance of an arc.
func (p *Problem) reach() int64 {
	all := int64(4*p.Points.D) << (2 * p.FractionBits)
	if p.Radius <= 0 {
		return all
	}
	r := math.Ldexp(p.Radius, p.FractionBits)
	if r >= math.Sqrt(float64(all)) {
		return all
	}
	return int64(float64(r * r))
}

// UnassignedCost returns the cost, in squared grid units, of a point that stays unassigned
// and of a filler: (2k+3) times the largest squared distance an arc can have, plus
// one and the costs of the penalty. Re-assigning points along a path through all
// clusters saves less, so no point stays unassigned and no filler is used for the
// sake of distance. It depends on k, d, the grid, the radius and the penalty, not on
// records.
func (p *Problem) UnassignedCost() int64 {
	under, over := p.slopes()
	return int64(2*p.k()+3)*p.reach() + under + over + 1
}

// Result is an optimal assignment. Its slices are reused when it is passed to
// another Solve.
type Result struct {
	// Labels holds the cluster of each point, k if it is unassigned. With
	// Exclusivity > 1 or Weights it is the nearest of its clusters, by the pair of
	// distance and tie hash.
	Labels []uint16
	// Units holds how often each point is in the cluster of its label; empty without
	// Weights.
	Units []int32
	// Extra holds the further memberships of points, by ascending point and
	// cluster; empty unless Exclusivity > 1 or Weights are given.
	Extra []Membership
	// Sizes holds the number of points in each cluster, extra ones included.
	Sizes []int
	// Fillers holds the number of fillers in each cluster, all 0 unless Total.
	Fillers []int
	// Unassigned is the number of points in no cluster.
	Unassigned int
	// Prices is the certificate: k prices in squared grid units.
	Prices []int64
	// Stats tells how the solver got there.
	Stats Stats
}

// Membership is one more cluster of a point, and how often the point is in it.
type Membership struct {
	Point   int32
	Cluster uint16
	Units   int32
}

// Stats counts the work of one Solve.
type Stats struct {
	// Passes is the number of passes over all points or over a subsample.
	Passes int
	// Free is the number of members of the completion when it began.
	Free int
	// Rounds is the number of its shortest-distance searches at full size, Paths that
	// of the paths it sent units along, and Widenings how often it asked for more
	// members, subsamples included.
	Rounds, Paths, Widenings int
	// MoveBytes is the memory that the solver keeps for moves between clusters.
	MoveBytes int
}

// Sum is a sum of squared grid distances, Hi*2^64 + Lo.
type Sum struct{ Hi, Lo uint64 }

func (s Sum) plus(hi, lo uint64) Sum {
	lo, carry := bits.Add64(s.Lo, lo, 0)
	return Sum{s.Hi + hi + carry, lo}
}

// Float returns the nearest float64 to s, up to one rounding of each word.
func (s Sum) Float() float64 { return math.Ldexp(float64(s.Hi), 64) + float64(s.Lo) }

// Distance returns the total squared distance of the points to the centroids of
// their clusters, in squared grid units.
func Distance(p *Problem, res *Result) Sum {
	var total Sum
	add := func(i int, j uint16, units int64) {
		if int(j) < p.k() {
			total = total.plus(bits.Mul64(uint64(p.cost(i, int(j))), uint64(units)))
		}
	}
	for i, j := range res.Labels {
		units := int64(1)
		if p.Weights != nil {
			units = int64(res.Units[i])
		}
		add(i, j, units)
	}
	for _, m := range res.Extra {
		add(int(m.Point), m.Cluster, int64(m.Units))
	}
	return total
}

// maxPrice bounds prices and path lengths so that sums of four of them and of a
// cost fit in an int64.
const maxPrice = 1 << 60

// check refuses malformed and infeasible problems, naming clusters and numbers.
func (p *Problem) check() error {
	malformed := func(format string, a ...any) error {
		return fmt.Errorf("flow: %w: %s", ErrProblem, fmt.Sprintf(format, a...))
	}
	if p == nil {
		return malformed("it is nil")
	}
	n, d, k := p.Points.N, p.Points.D, len(p.Lo)
	switch {
	case k < 1 || k > math.MaxUint16:
		return malformed("%d clusters, want 1 to %d", k, math.MaxUint16)
	case len(p.Hi) != k:
		return malformed("%d minimum sizes but %d maximum sizes: give one of each per cluster", k, len(p.Hi))
	case d < 1:
		return malformed("points have %d coordinates, want at least 1", d)
	case len(p.Centroids) != k*d:
		return malformed("%d centroid coordinates, want k*d = %d*%d", len(p.Centroids), k, d)
	case p.FractionBits < 1 || p.FractionBits > kernels.MaxFractionBits:
		return malformed("FractionBits is %d, want 1 to %d", p.FractionBits, kernels.MaxFractionBits)
	case math.IsNaN(p.Radius) || p.Radius < 0:
		return malformed("Radius is %v, want a positive number or 0 for none", p.Radius)
	case p.Exclusivity < 0 || p.Exclusivity > k:
		return malformed("Exclusivity is %d, want 1 to k = %d", p.Exclusivity, k)
	case n > math.MaxInt32/4:
		return malformed("%d points, want at most %d", n, math.MaxInt32/4)
	case p.Weights != nil && len(p.Weights) != n:
		return malformed("%d weights for %d points: give one each", len(p.Weights), n)
	}
	penalty := 0.0
	if p.Penalty != nil {
		for _, x := range []float64{p.Penalty.Under, p.Penalty.Over} {
			if !(x >= 0 && x <= math.MaxInt32) {
				return malformed("a penalty of %v for a point, want 0 to %d", x, math.MaxInt32)
			}
			penalty += x
		}
	}
	for i, w := range p.Weights {
		if w < 1 {
			return malformed("point %d has weight %d, want at least 1", i, w)
		}
	}
	if total := p.total(); total > math.MaxInt32/4 {
		return malformed("the weights add up to %d, want at most %d", total, math.MaxInt32/4)
	} else if e := p.exclusivity(); total*int64(e) > math.MaxInt32 {
		return malformed("%d points of exclusivity %d, want a product of at most %d", total, e, math.MaxInt32)
	}
	if limit := math.Ldexp(float64(2*k+3)*4*float64(d)+penalty, 2*p.FractionBits); limit >= maxPrice {
		return malformed("d=%d, k=%d and %d fraction bits make prices of up to 2^%.0f, want less than 2^60: use fewer "+
			"fraction bits",
			d, k, p.FractionBits, math.Ceil(math.Log2(limit)))
	}
	for i, c := range p.Centroids {
		if !(math.Abs(float64(c)) <= 1) {
			return malformed("centroid %d has coordinate %d = %v, want -1 to 1", i/d, i%d, c)
		}
		if units := math.Ldexp(float64(c), p.FractionBits); units != math.Trunc(units) {
			return malformed("centroid %d has coordinate %d = %v, want a multiple of 2^-%d", i/d, i%d, c, p.FractionBits)
		}
	}
	return p.checkSizes()
}

// checkSizes refuses sizes that no assignment has whatever the points are.
func (p *Problem) checkSizes() error {
	n, k, e := int(p.total()), len(p.Lo), p.exclusivity()
	infeasible := func(format string, a ...any) error {
		return fmt.Errorf("flow: %w: %s", ErrInfeasible, fmt.Sprintf(format, a...))
	}
	var sumLo, sumHi int
	var few []string
	for j := range k {
		lo, hi := p.Lo[j], p.Hi[j]
		if lo < 0 {
			return infeasible("cluster %d has minimum size %d, want at least 0", j, lo)
		}
		if lo > hi {
			return infeasible("cluster %d has minimum size %d above its maximum size %d", j, lo, hi)
		}
		if lo > n {
			few = append(few, fmt.Sprintf("cluster %d needs %d", j, lo))
		}
		sumLo += min(lo, math.MaxInt/k)
		sumHi += min(hi, math.MaxInt/k)
	}
	if p.Total || p.Penalty != nil {
		return nil
	}
	switch {
	case len(few) > 0:
		return infeasible("%s, but there are only n=%d points: lower the minimum", list(few), n)
	case sumLo > n*e && e == 1:
		return infeasible("the minimum sizes of clusters 0 to %d (%s) add up to %d, but there are only n=%d points: "+
			"lower the minimum", k-1, span(p.Lo), sumLo, n)
	case sumLo > n*e:
		return infeasible("the minimum sizes of clusters 0 to %d (%s) add up to %d, but n=%d points with exclusivity %d "+
			"fill at most %d places: lower the minimum or raise the exclusivity", k-1, span(p.Lo), sumLo, n, e, n*e)
	case sumHi < n && p.Radius <= 0:
		return infeasible("the maximum sizes of clusters 0 to %d (%s) add up to %d, but there are n=%d points: raise the "+
			"maximum or give a radius", k-1, span(p.Hi), sumHi, n)
	}
	return nil
}

// list joins the first few entries.
func list(s []string) string {
	const shown = 8
	if len(s) > shown {
		return strings.Join(s[:shown], ", ") + fmt.Sprintf(" and %d more", len(s)-shown)
	}
	return strings.Join(s, ", ")
}

// span describes the sizes: one number if they are equal, else the range.
func span(sizes []int) string {
	lo, hi := sizes[0], sizes[0]
	for _, s := range sizes {
		lo, hi = min(lo, s), max(hi, s)
	}
	if lo == hi {
		return fmt.Sprintf("%d each", lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// outOfReach is the error for minimum sizes that the radius makes impossible.
// reached holds sizes that fall short of the minima by the fewest points.
func (p *Problem) outOfReach(reached []int64) error {
	var short []string
	for j, s := range reached {
		if j < p.k() && s < int64(p.Lo[j]) {
			short = append(short, fmt.Sprintf("cluster %d needs %d but can have at most %d", j, p.Lo[j], s))
		}
	}
	return fmt.Errorf("flow: %w: within radius %v %s (largest attainable sizes): widen the radius or lower the minimum",
		ErrInfeasible, p.Radius, list(short))
}
