package flow

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cohort-engine/cohort/kernels"
)

// hasty is a tuning that makes tiny instances go through samples, small windows,
// several passes, shards and blocks, and the completion ask for members often.
var hasty = tuning{sampleRatio: 2, shardPoints: 16, blockClusters: 2,
	freeShare: 0.1, rounds: 8,
	orderClusters: 1 << 30, orderForms: 1 << 30, firstCluster: 1, firstSample: 2,
	sampleRest: 0.1, fullRest: 0, stepWindow: 0.1}

// rash is a tuning that leaves nearly all work to the completion, which starts with
// few members, and scaling one that makes it scale.
var (
	rash = tuning{sampleRatio: 2, shardPoints: 16, blockClusters: 2, freeShare: 0.01, rounds: 8,
		orderClusters: 1 << 30, orderForms: 1 << 30, firstCluster: 1 << 20, fullRest: 1 << 20, stepWindow: 0.01}
	scaling = tuning{sampleRatio: 2, shardPoints: 16, blockClusters: 2, freeShare: 0.1,
		orderClusters: 1 << 30, orderForms: 1 << 30, firstCluster: 1 << 20, fullRest: 1 << 20, stepWindow: 0.01}
)

// orderly is hasty with the points in order.
var orderly = func() tuning {
	t := hasty
	t.orderClusters, t.orderForms = 0, 0
	return t
}()

// solvers are of every tuning.
func solvers() []*Solver {
	return []*Solver{{}, {tuning: &hasty}, {tuning: &rash}, {tuning: &scaling}, {tuning: &orderly}}
}

// panels packs points given in grid units.
func panels(points [][]int, d, fractionBits int) kernels.Panels {
	p := kernels.NewPanels(len(points), d)
	kernels.Pack(p, grid(points, fractionBits))
	return *p
}

func grid(points [][]int, fractionBits int) []float32 {
	var rows []float32
	for _, x := range points {
		for _, c := range x {
			rows = append(rows, float32(math.Ldexp(float64(c), -fractionBits)))
		}
	}
	return rows
}

// drawProblem makes a random instance; few fraction bits make ties frequent.
func drawProblem(t *rapid.T) *Problem {
	d := rapid.IntRange(1, 3).Draw(t, "d")
	f := rapid.SampledFrom([]int{1, 2, 3, 5, 16}).Draw(t, "fractionBits")
	k := rapid.IntRange(1, 7).Draw(t, "k")
	n := rapid.IntRange(0, 60).Draw(t, "n")
	shape := rapid.SampledFrom([]string{"random", "equal points", "duplicates", "k = n",
		"equal centroids"}).Draw(t, "shape")
	if shape == "k = n" {
		n = k
	}
	one := 1 << f
	seed := rapid.Uint64().Draw(t, "seed")
	rng := rand.New(rand.NewPCG(seed, 1))
	point := func() []int {
		x := make([]int, d)
		for j := range x {
			x[j] = rng.IntN(2*one+1) - one
		}
		return x
	}
	points := make([][]int, n)
	for i := range points {
		points[i] = point()
		if i > 0 && (shape == "equal points" || shape == "duplicates" && rng.IntN(2) == 0) {
			points[i] = points[rng.IntN(i)]
		}
	}
	centroids := make([][]int, k)
	for j := range centroids {
		centroids[j] = point()
		if j > 0 && shape == "equal centroids" && rng.IntN(2) == 0 {
			centroids[j] = centroids[rng.IntN(j)]
		}
	}
	p := &Problem{Points: panels(points, d, f), Centroids: grid(centroids, f), FractionBits: f,
		Lo: make([]int, k), Hi: make([]int, k)}
	if rapid.IntRange(0, 2).Draw(t, "e") == 0 {
		p.Exclusivity = rapid.IntRange(1, k).Draw(t, "exclusivity")
	}
	if rapid.IntRange(0, 2).Draw(t, "cut") == 0 {
		p.Radius = rapid.Float64Range(0.05, 2).Draw(t, "radius")
	}
	p.Total = rapid.IntRange(0, 2).Draw(t, "free") == 0
	bounds := rapid.SampledFrom([]string{"loose", "tight", "lo = hi", "sum hi = n", "wild"}).Draw(t, "bounds")
	sizes := make([]int, k) // of some assignment
	for range n {
		sizes[rng.IntN(k)]++
	}
	for j := range k {
		p.Lo[j], p.Hi[j] = sizes[j], sizes[j]
		switch bounds {
		case "loose":
			p.Lo[j], p.Hi[j] = rng.IntN(sizes[j]+1), sizes[j]+rng.IntN(n+1)
		case "tight":
			p.Lo[j], p.Hi[j] = max(0, sizes[j]-1), sizes[j]+1
		case "sum hi = n":
			p.Lo[j] = rng.IntN(sizes[j] + 1)
		case "wild":
			p.Lo[j] = rng.IntN(n/k + 2)
			p.Hi[j] = p.Lo[j] + rng.IntN(n/k+2)
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "weigh") == 0 {
		p.Weights = make([]int32, n)
		for i := range p.Weights {
			p.Weights[i] = 1 + int32(rng.IntN(4))
		}
		for j := range k { // sizes of twice as many points on average
			p.Lo[j], p.Hi[j] = p.Lo[j]*2, p.Hi[j]*2+1+3*n/k
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "soft") == 0 {
		p.Penalty = &Penalty{rapid.Float64Range(0, 2).Draw(t, "under"), rapid.Float64Range(0, 2).Draw(t, "over")}
	}
	for range 16 {
		p.Key[rng.IntN(16)] = byte(rng.Uint32())
	}
	return p
}

// agree checks s against the reference and its certificate.
func agree(p *Problem, s *Solver) error {
	ctx := context.Background()
	want, refErr := Reference(ctx, p)
	var got Result
	err := s.Solve(ctx, nil, p, &got)
	if refErr != nil || err != nil {
		if !errors.Is(refErr, ErrInfeasible) || !errors.Is(err, ErrInfeasible) {
			return fmt.Errorf("reference says %v, solver says %v", refErr, err)
		}
		return nil
	}
	if g, w := Distance(p, &got), Distance(p, want); g != w {
		return fmt.Errorf("distance %v, reference %v", g, w)
	}
	type answer struct {
		Labels         []uint16
		Extra          []Membership
		Sizes, Fillers []int
		Units          []int32
		Unassigned     int
	}
	of := func(r *Result) answer {
		return answer{append([]uint16{}, r.Labels...), append([]Membership{}, r.Extra...), r.Sizes, r.Fillers,
			append([]int32{}, r.Units...), r.Unassigned}
	}
	if diff := cmp.Diff(of(want), of(&got)); diff != "" {
		return fmt.Errorf("answers differ (-reference +solver):\n%s", diff)
	}
	return Verify(p, &got)
}

func TestSolveAgreesWithReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		for _, s := range solvers() {
			if err := agree(p, s); err != nil {
				t.Fatal(err)
			}
			// Again from the last prices, with moved centroids and other bounds.
			for j := range p.Centroids {
				if j%3 == 0 {
					p.Centroids[j] = -p.Centroids[j]
				}
			}
			slices.Reverse(p.Lo)
			slices.Reverse(p.Hi)
			if err := agree(p, s); err != nil {
				t.Fatalf("warm: %v", err)
			}
		}
	})
}

// TestSeveralClustersWithinReach has points that stand between "unassigned" and "escape", two
// columns whose prices are fixed: a Newton step must leave such pairs out.
func TestSeveralClustersWithinReach(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		const n, k, d, f = 42, 2, 1, 2
		rows := func(n int) []float32 {
			points := make([][]int, n)
			for i := range points {
				points[i] = []int{rng.IntN(2<<f+1) - 1<<f}
			}
			return grid(points, f)
		}
		points := kernels.NewPanels(n, d)
		kernels.Pack(points, rows(n))
		p := &Problem{Points: *points, Centroids: rows(k), FractionBits: f, Exclusivity: 2, Radius: 0.8,
			Lo: []int{rng.IntN(9), rng.IntN(9)}, Hi: []int{9 + rng.IntN(20), 9 + rng.IntN(20)}}
		for i, s := range solvers() {
			if err := agree(p, s); err != nil {
				t.Errorf("seed %d, solver %d: %v", seed, i, err)
			}
		}
	}
}

func TestReferenceAgreesWithEnumeration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		p.Weights = nil
		if p.Points.N > 6 {
			p.Points = p.Points.Slice(0, 6)
			for j := range p.Lo {
				p.Lo[j] = min(p.Lo[j], 6/len(p.Lo))
				p.Hi[j] = max(p.Hi[j], 2)
			}
		}
		if p.k() > 4 || p.exclusivity() > 2 {
			t.Skip("too many assignments")
		}
		want, feasible := enumerate(p)
		got, err := Reference(context.Background(), p)
		if err != nil {
			if feasible || !errors.Is(err, ErrInfeasible) {
				t.Fatalf("feasible %v, reference says %v", feasible, err)
			}
			return
		}
		if !feasible {
			t.Fatal("reference solves an infeasible problem")
		}
		units := got.Unassigned
		for _, f := range got.Fillers {
			units += f
		}
		d := Distance(p, got)
		if p.Penalty != nil {
			under, over := p.slopes()
			for j, size := range got.Sizes {
				d = d.plus(0, uint64(under*int64(max(0, p.Lo[j]-size))+over*int64(max(0, size-p.Hi[j]))))
			}
		}
		if int64(units) != want.units || d != (Sum{Lo: uint64(want.distance)}) {
			t.Fatalf("reference: %d units, distance %v; enumeration: %+v", units, d, want)
		}
	})
}

// enumerate tries all assignments and returns the least weight without hashes.
func enumerate(p *Problem) (best weight, feasible bool) {
	n, k := p.Points.N, p.k()
	c := kernels.NewCentroids(k, p.Points.D)
	c.Set(p.Centroids)
	costs := make([]int64, n*k)
	kernels.CostRows(p.Points, 0, n, c, p.FractionBits, costs)
	sizes := make([]int, k)
	var try func(i int, w weight)
	try = func(i int, w weight) {
		if i == n {
			for j, size := range sizes {
				if p.Penalty != nil {
					under, over := p.slopes()
					w.distance += under*int64(max(0, p.Lo[j]-size)) + over*int64(max(0, size-p.Hi[j]))
					continue
				}
				if size > p.Hi[j] {
					return
				}
				if size < p.Lo[j] {
					if !p.Total {
						return
					}
					w.units += int64(p.Lo[j] - size)
				}
			}
			if !feasible || w.less(best) {
				best, feasible = w, true
			}
			return
		}
		if p.mayLeave() {
			try(i+1, w.plus(weight{units: 1}))
		}
		for a := range k {
			if costs[i*k+a] > p.reach() {
				continue
			}
			sizes[a]++
			try(i+1, w.plus(weight{distance: costs[i*k+a]}))
			for b := a + 1; b < k && p.exclusivity() > 1; b++ {
				if costs[i*k+b] <= p.reach() {
					sizes[b]++
					try(i+1, w.plus(weight{distance: costs[i*k+a] + costs[i*k+b]}))
					sizes[b]--
				}
			}
			sizes[a]--
		}
	}
	try(0, weight{})
	return best, feasible
}

func TestErrorsNameClustersAndNumbers(t *testing.T) {
	points := panels([][]int{{0}, {1}, {2}, {3}}, 1, 4)
	base := func() *Problem {
		return &Problem{Points: points, Centroids: grid([][]int{{0}, {3}}, 4), FractionBits: 4, Lo: []int{1, 1},
			Hi: []int{3, 3}}
	}
	for _, c := range []struct {
		name  string
		spoil func(*Problem)
		kind  error
		words []string
	}{
		{"minima above n", func(p *Problem) { p.Lo = []int{3, 2} }, ErrInfeasible, []string{"2 to 3", "add up to 5", "n=4"}},
		{"maxima below n", func(p *Problem) { p.Hi = []int{1, 2} }, ErrInfeasible, []string{"1 to 2", "add up to 3", "n=4"}},
		{"lo above hi", func(p *Problem) { p.Lo[1], p.Hi[1] = 3, 2 }, ErrInfeasible, []string{"cluster 1", "3", "2"}},
		{"negative lo", func(p *Problem) { p.Lo[0] = -1 }, ErrInfeasible, []string{"cluster 0", "-1"}},
		{"one minimum above n", func(p *Problem) { p.Lo[1], p.Hi[1], p.Exclusivity = 5, 9, 2 }, ErrInfeasible,
			[]string{"cluster 1", "5", "n=4"}},
		{"radius", func(p *Problem) { p.Radius, p.Lo[1], p.Lo[0] = 1.0/16, 3, 0 }, ErrInfeasible,
			[]string{"radius 0.0625", "cluster 1 needs 3", "at most 2"}},
		{"unequal lengths", func(p *Problem) { p.Hi = []int{4} }, ErrProblem, []string{"2", "1"}},
		{"centroids", func(p *Problem) { p.Centroids = p.Centroids[:1] }, ErrProblem, []string{"want k*d = 2*1"}},
		{"centroid NaN", func(p *Problem) { p.Centroids[1] = float32(math.NaN()) }, ErrProblem,
			[]string{"centroid 1", "NaN"}},
		{"centroid off the grid", func(p *Problem) { p.Centroids[1] = 1.0 / 3 }, ErrProblem,
			[]string{"centroid 1", "0.33333334"}},
		{"fraction bits", func(p *Problem) { p.FractionBits = 23 }, ErrProblem, []string{"23", "1 to 22"}},
		{"exclusivity", func(p *Problem) { p.Exclusivity = 3 }, ErrProblem, []string{"3", "k = 2"}},
		{"units of all points", func(p *Problem) {
			p.Centroids, p.Lo, p.Hi = grid([][]int{{0}, {1}, {2}, {3}, {4}}, 4), make([]int, 5), []int{9, 9, 9, 9, 9}
			p.Weights, p.Exclusivity = []int32{1<<29 - 4, 1, 1, 1}, 5
		}, ErrProblem, []string{"536870911 points of exclusivity 5", "at most 2147483647"}},
		{"radius NaN", func(p *Problem) { p.Radius = math.NaN() }, ErrProblem, []string{"Radius", "NaN"}},
	} {
		p := base()
		c.spoil(p)
		_, refErr := Reference(context.Background(), p)
		for who, err := range map[string]error{"solver": new(Solver).Solve(context.Background(), nil, p, &Result{}),
			"reference": refErr} {
			if !errors.Is(err, c.kind) {
				t.Errorf("%s: %s: %v, want %v", c.name, who, err, c.kind)
				continue
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %s: %q does not say %q", c.name, who, err, w)
				}
			}
		}
	}
}

// What is nil is refused.
func TestNil(t *testing.T) {
	p := &Problem{Points: *kernels.NewPanels(1, 1), Centroids: []float32{0}, FractionBits: 8, Lo: []int{1}, Hi: []int{1}}
	res, err := Reference(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	_, refErr := Reference(t.Context(), nil)
	for who, err := range map[string]error{"reference": refErr, "verify": Verify(nil, res),
		"solver":                  new(Solver).Solve(t.Context(), nil, nil, &Result{}),
		"solver without a result": new(Solver).Solve(t.Context(), nil, p, nil)} {
		if !errors.Is(err, ErrProblem) {
			t.Errorf("%s: %v", who, err)
		}
	}
	if Verify(p, nil) == nil {
		t.Error("no result is verified")
	}
}
