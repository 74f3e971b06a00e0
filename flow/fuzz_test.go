package flow

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// FuzzSolve reads an instance from bytes: shape, options, sizes, then coordinates
// on a coarse grid, where ties abound.
func FuzzSolve(f *testing.F) {
	f.Add([]byte{2, 3, 1, 0, 0, 0, 1, 2, 1, 2, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add([]byte{1, 5, 2, 3, 1, 1, 0, 9, 0, 9, 1, 1, 3, 0, 2, 2, 9, 9, 9, 9, 9, 1, 1, 1, 1, 200, 100, 50})
	f.Add([]byte{3, 4, 2, 2, 40, 0, 2, 3, 2, 3, 2, 3, 2, 3, 8, 6, 4, 2, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23})
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b)
		}
		d, k, bits := 1+next()%3, 1+next()%6, 1+next()%4
		p := &Problem{FractionBits: bits, Exclusivity: next() % (k + 1), Radius: float64(next()%64) / 16,
			Total: next()%2 == 1}
		for range k {
			lo := next() % 8
			p.Lo, p.Hi = append(p.Lo, lo), append(p.Hi, lo+next()%8)
		}
		one := 1 << bits
		var centroids, points [][]int
		row := func() []int {
			x := make([]int, d)
			for j := range x {
				x[j] = next()%(2*one+1) - one
			}
			return x
		}
		for range k {
			centroids = append(centroids, row())
		}
		for len(data) > 0 && len(points) < 40 {
			points = append(points, row())
		}
		p.Points, p.Centroids = panels(points, d, bits), grid(centroids, bits)
		for _, s := range solvers() {
			if err := agree(p, s); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// mixture draws n points from k Gaussians around uniform centres, with other
// uniform centroids and sizes within a factor 1.25 of the mean.
func mixture(n, d, k int) *Problem {
	rng := rand.New(rand.NewPCG(7, uint64(n+d*k)))
	const f = 16
	snap := func(x float64) float32 {
		return float32(math.Ldexp(math.Trunc(math.Ldexp(min(1, max(-1, x)), f)), -f))
	}
	centres := make([]float64, k*d)
	p := &Problem{FractionBits: f, Lo: slices.Repeat([]int{(4*n + 5*k - 1) / (5 * k)}, k),
		Hi: slices.Repeat([]int{5 * n / (4 * k)}, k)}
	for i := range centres {
		centres[i] = 1.4*rng.Float64() - 0.7
		p.Centroids = append(p.Centroids, snap(2*rng.Float64()-1))
	}
	rows := make([]float32, 0, n*d)
	for range n {
		c := rng.IntN(k)
		for j := range d {
			rows = append(rows, snap(centres[c*d+j]+0.12*rng.NormFloat64()))
		}
	}
	points := kernels.NewPanels(n, d)
	kernels.Pack(points, rows)
	p.Points = *points
	return p
}

// TestRoundsAreBounded completes from prices 0, where nearly all units are in excess, from
// a quantum as large as all costs on, and solves cold where clusters have few points.
func TestRoundsAreBounded(t *testing.T) {
	impatient := standard
	impatient.firstCluster, impatient.fullRest, impatient.bulkRounds = 1<<20, 1<<20, 0
	for _, c := range []struct {
		n, k, most int
		tuning     *tuning
	}{{2500, 100, 1000, &impatient}, {10000, 400, 400, nil}} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		p, s := mixture(c.n, 2, c.k), Solver{tuning: c.tuning}
		var res Result
		if err := s.Solve(ctx, nil, p, &res); err != nil {
			t.Fatalf("%d clusters: %v after %d rounds", c.k, err, s.members.t.rounds)
		}
		if res.Stats.Rounds > c.most {
			t.Errorf("%d clusters took %d rounds, want at most %d", c.k, res.Stats.Rounds, c.most)
		}
		if err := Verify(p, &res); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

// TestForgottenSolverIsNew solves a problem by a solver that has solved another.
func TestForgottenSolverIsNew(t *testing.T) {
	p := mixture(3000, 2, 20)
	other := *p
	other.Centroids = slices.Clone(p.Centroids)
	for i := range other.Centroids {
		other.Centroids[i] = -p.Centroids[i]
	}
	var s Solver
	var ours, want Result
	for _, q := range []*Problem{&other, p} {
		s.Forget()
		if err := s.Solve(context.Background(), nil, q, &ours); err != nil {
			t.Fatal(err)
		}
	}
	if err := NewSolver().Solve(context.Background(), nil, p, &want); err != nil {
		t.Fatal(err)
	}
	ours.Stats.MoveBytes = want.Stats.MoveBytes // memory is kept
	if diff := cmp.Diff(want, ours); diff != "" {
		t.Errorf("a forgotten solver solves otherwise (-new +forgotten):\n%s", diff)
	}
}

// TestExactPassesAgree compares passes by boxes and in single precision with all costs of all points.
func TestExactPassesAgree(t *testing.T) {
	const crowded = .25
	ctx, run := context.Background(), parallel.Serial{}
	for form, change := range []func(p *Problem){
		func(*Problem) {},
		func(p *Problem) { p.Total, p.Radius = true, .3 },
		func(p *Problem) { p.Total, p.Radius = true, crowded },
		func(p *Problem) { p.Exclusivity = 3 },
		func(p *Problem) { p.Exclusivity, p.Radius = 2, .2 },
		func(p *Problem) { p.Penalty = &Penalty{Under: .05, Over: .1} },
	} {
		p := mixture(30000, 2, 160)
		change(p)
		var s Solver
		p, err := s.order.arrange(ctx, run, p)
		if err != nil {
			t.Fatal(err)
		}
		s.prepare(run, p, p.plain())
		s.ascent.resize(p.k())
		rng := rand.New(rand.NewPCG(3, uint64(form)))
		prices := make([]int64, p.k())
		look := func(ordered bool, window float64) (v view) {
			s.ordered = ordered
			if err := s.evaluate(ctx, run, p, prices, &v, window, true); err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(v.extra, byPoint)
			return v
		}
		for j := range prices {
			prices[j] = int64(rng.NormFloat64() * 3e7)
			if p.Radius == crowded { // many points would rather stay unassigned
				prices[j] += p.UnassignedCost() - p.reach()/2
			}
		}
		want := look(false, filterSingles/2)
		if !want.exact {
			t.Fatalf("form %d: nothing to compare with", form)
		}
		for _, ordered := range []bool{false, true} {
			for _, window := range []float64{filterSingles, singles / 2, 1e-4} {
				got := look(ordered, window)
				slack := 1e-5
				if got.exact {
					slack = 0
					if !slices.Equal(got.labels, want.labels) || !slices.Equal(got.size, want.size) ||
						!slices.Equal(got.extra, want.extra) {
						t.Errorf("form %d: a pass with window %v, ordered %v, sees other columns", form, window, ordered)
					}
				}
				for i, gap := range got.gap {
					most, near := float64(want.gap[i])*(1+1e-5), want.gap[i] <= float32(window)
					wrong := float64(gap) > most || near && float64(gap) < most*(1-2e-5)-slack
					if wrong || gap > noGap && got.labels[i] != want.labels[i] {
						t.Fatalf("form %d: a pass with window %v, ordered %v, sees point %d in %d with a gap of %v, want %d and %v",
							form, window, ordered, i, got.labels[i], gap, want.labels[i], want.gap[i])
					}
				}
			}
		}
	}
}

// crew is a Runner of goroutines that can be made to count and to delay calls.
type crew struct {
	workers int
	calls   atomic.Int64
	before  func(call int64)
}

func (c *crew) Workers() int { return c.workers }

func (c *crew) Run(ctx context.Context, n int, fn func(worker, index int)) error {
	var next atomic.Int64
	var group sync.WaitGroup
	for worker := range c.workers {
		group.Go(func() {
			for index := int(next.Add(1)) - 1; index < n && ctx.Err() == nil; index = int(next.Add(1)) - 1 {
				if c.before != nil {
					c.before(c.calls.Add(1))
				}
				fn(worker, index)
			}
		})
	}
	group.Wait()
	return ctx.Err()
}

func TestWorkersDoNotChangeTheAnswer(t *testing.T) {
	// With 300 clusters workers share the moves that a search asks for.
	for _, p := range []*Problem{mixture(20000, 3, 12), mixture(9000, 2, 300)} {
		var one Result
		if err := new(Solver).Solve(context.Background(), nil, p, &one); err != nil {
			t.Fatal(err)
		}
		if err := Verify(p, &one); err != nil {
			t.Fatal(err)
		}
		for _, workers := range []int{2, 3, 8} {
			var many Result
			if err := new(Solver).Solve(context.Background(), &crew{workers: workers}, p, &many); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(one) != fmt.Sprint(many) {
				t.Errorf("%d workers differ from one", workers)
			}
		}
	}
}

func TestCancelStopsWithinAShard(t *testing.T) {
	p := mixture(40000, 2, 10)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	run := &crew{workers: 1}
	run.before = func(call int64) {
		if call == 3 {
			cancel()
		}
	}
	s := new(Solver)
	var res Result
	if err := s.Solve(ctx, run, p, &res); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled Solve returned %v", err)
	}
	if calls := run.calls.Load(); calls != 3 {
		t.Errorf("%d shards were started, want 3", calls)
	}
	if err := s.Solve(context.Background(), nil, p, &res); err != nil {
		t.Fatal(err)
	}
	if err := Verify(p, &res); err != nil {
		t.Error(err)
	}
	done, stop := context.WithDeadline(context.Background(), time.Now())
	defer stop()
	if _, err := Reference(done, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("reference past its deadline returned %v", err)
	}
}

// TestCancelledPassLeavesNothingBehind: what workers have counted before a pass ends early is in no later one.
func TestCancelledPassLeavesNothingBehind(t *testing.T) {
	for _, k := range []int{10, 30} { // several counters of a pair, and one
		p, s := mixture(40000, 2, k), new(Solver)
		var res, other Result
		if err := new(Solver).Solve(context.Background(), nil, p, &other); err != nil {
			t.Fatal(err)
		}
		for last := int64(1); last < 60; last += 3 {
			ctx, cancel := context.WithCancel(context.Background())
			run := &crew{workers: 2, before: func(call int64) {
				if call == last {
					cancel()
				}
			}}
			if err := s.Solve(ctx, run, p, &res); !errors.Is(err, context.Canceled) {
				t.Fatalf("cancelled Solve returned %v", err)
			}
			cancel()
			s.Forget()
			if err := s.Solve(context.Background(), nil, p, &res); err != nil {
				t.Fatal(err)
			}
			res.Stats.MoveBytes = other.Stats.MoveBytes
			if fmt.Sprint(res) != fmt.Sprint(other) {
				t.Fatalf("k=%d, after a solve that ended at call %d: %+v, want %+v", k, last, res.Stats, other.Stats)
			}
		}
	}
}

// TestMemoryIsNotAllArcs bounds what a solve of 2*10^5 points and 40 clusters
// allocates by far less than 16 bytes for each of the 8*10^6 arcs, also where the
// maximum sizes are no bound.
func TestMemoryIsNotAllArcs(t *testing.T) {
	p := mixture(200000, 4, 40)
	for range 2 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var res Result
		if err := new(Solver).Solve(context.Background(), nil, p, &res); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 50e6 {
			t.Errorf("allocated %d MB with maximum size %d", used>>20, p.Hi[0])
		}
		if err := Verify(p, &res); err != nil {
			t.Error(err)
		}
		p.Hi = slices.Repeat([]int{p.Points.N}, 40)
	}
}

// TestLargeInstancesAgreeWithReference compares on instances that need samples,
// several shards and widened windows.
func TestLargeInstancesAgreeWithReference(t *testing.T) {
	for _, c := range []struct{ n, d, k int }{{3000, 2, 20}, {2500, 5, 40}, {1500, 17, 10}, {6000, 1, 4}} {
		p := mixture(c.n, c.d, c.k)
		s := new(Solver)
		for _, spoil := range []func(){func() {}, func() { p.Total = true }, func() { p.Radius = 0.7 },
			func() { p.Exclusivity, p.Total, p.Radius = 2, false, 0 }} {
			spoil()
			if err := agree(p, s); err != nil {
				t.Errorf("%+v, total %v, radius %v, exclusivity %d: %v", c, p.Total, p.Radius, p.Exclusivity, err)
			}
		}
	}
}

// TestTiesAtDistanceZero: points on coincident centroids are tied, although single
// precision sees gaps between the indices of the centroids there.
func TestTiesAtDistanceZero(t *testing.T) {
	for n := 1; n < 30; n++ {
		points := make([][]int, n)
		for i := range points {
			points[i] = []int{1 + i%2}
		}
		for key := range byte(8) {
			p := &Problem{Points: panels(points, 1, 2), Centroids: grid([][]int{{1}, {2}, {1}, {2}, {1}}, 2), FractionBits: 2,
				Lo: make([]int, 5), Hi: slices.Repeat([]int{n}, 5), Key: [16]byte{key}}
			for _, s := range solvers() {
				if err := agree(p, s); err != nil {
					t.Fatalf("n=%d: %v", n, err)
				}
			}
		}
	}
}

// TestSinglePrecisionIsNotTrusted: the points lie so near to the boundary of two
// clusters that only exact costs tell which one is nearer.
func TestSinglePrecisionIsNotTrusted(t *testing.T) {
	const n, bits = 300, 22
	const half = 1 << (bits - 1)
	rng := rand.New(rand.NewPCG(8, 8))
	points := make([][]int, n)
	for i := range points {
		points[i] = []int{rng.IntN(9) - 4, rng.IntN(2*half) - half, rng.IntN(2*half) - half}
	}
	for _, bounds := range [][2]int{{0, n}, {n / 2, n / 2}} {
		p := &Problem{Points: panels(points, 3, bits), Centroids: grid([][]int{{-8, 7, 5}, {8, 7, 5}}, bits),
			FractionBits: bits,
			Lo:           []int{bounds[0], bounds[0]}, Hi: []int{bounds[1], bounds[1]}}
		for _, s := range solvers() {
			if err := agree(p, s); err != nil {
				t.Errorf("sizes %v: %v", bounds, err)
			}
		}
	}
}

// TestStages: passes at better and better prices, then paths. A stage says how many
// points the one before has looked at.
func TestStages(t *testing.T) {
	for _, radius := range []float64{0, 1} {
		p := mixture(20000, 3, 12)
		p.Radius = radius
		s := new(Solver)
		var stages []Stage
		looked := 0
		s.Began = func(stage Stage, count int) {
			stages = append(stages, stage)
			looked += count
		}
		var res Result
		for range 2 {
			stages, looked = nil, 0
			if err := s.Solve(context.Background(), nil, p, &res); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(stages, []Stage{Prices, Paths}) {
				t.Errorf("radius %v: stages %v", radius, stages)
			}
			if looked < p.Points.N || looked > res.Stats.Passes*p.Points.N {
				t.Errorf("%d passes looked at %d points of %d", res.Stats.Passes, looked, p.Points.N)
			}
		}
	}
}

// TestAscentLeavesFewPaths: from prices 0 more than a quarter of the points are
// outside the bounds; a few for each cluster are left to the exact solver.
func TestAscentLeavesFewPaths(t *testing.T) {
	for _, c := range []struct{ n, d, k int }{{20000, 3, 12}, {12500, 2, 100}, {30000, 6, 3}, {8000, 20, 10}} {
		p := mixture(c.n, c.d, c.k)
		s := new(Solver)
		var res Result
		if err := s.Solve(context.Background(), nil, p, &res); err != nil {
			t.Fatal(err)
		}
		if err := Verify(p, &res); err != nil {
			t.Error(err)
		}
		if most := 100 + 3*c.k; res.Stats.Paths > most || res.Stats.Passes > 60 {
			t.Errorf("%+v: %d paths after %d passes, want at most %d after 60", c, res.Stats.Paths, res.Stats.Passes, most)
		}
	}
}

// TestOneCluster: nothing is certain of a point that has one cluster to choose from, and
// may be out of its reach.
func TestOneCluster(t *testing.T) {
	for _, radius := range []float64{0, .5, 2} {
		p := &Problem{Points: panels([][]int{{2}, {-1}, {2}}, 1, 1), Centroids: grid([][]int{{-2}}, 1), FractionBits: 1,
			Lo: []int{0}, Hi: []int{5}, Radius: radius, Total: true, Weights: []int32{1, 2, 1}}
		for _, s := range solvers() {
			if err := agree(p, s); err != nil {
				t.Errorf("radius %v: %v", radius, err)
			}
		}
	}
}

// TestStepsLeaveFewPaths: with a radius, two clusters a point or soft sizes the
// prices of Newton's steps leave a few units for each cluster to the completion; completed
// samples leave ten times as many.
func TestStepsLeaveFewPaths(t *testing.T) {
	for name, change := range map[string]func(p *Problem){
		"radius":      func(p *Problem) { p.Radius, p.Total = .5, true },
		"exclusivity": func(p *Problem) { p.Exclusivity = 2 },
		"penalty":     func(p *Problem) { p.Penalty = &Penalty{.1, .1} },
	} {
		p := mixture(12500, 2, 100)
		change(p)
		s := new(Solver)
		var one, two Result
		if err := s.Solve(context.Background(), nil, p, &one); err != nil {
			t.Fatal(err)
		}
		if err := Verify(p, &one); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if most := 6 * len(p.Lo); one.Stats.Paths > most {
			t.Errorf("%s: %d paths, want at most %d", name, one.Stats.Paths, most)
		}
		if err := new(Solver).Solve(context.Background(), &crew{workers: 2}, p, &two); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(one) != fmt.Sprint(two) {
			t.Errorf("%s: two workers differ from one", name)
		}
	}
}

// TestPricesOfATotalProblem starts total problems whose prices are free up to a
// constant, with arcs nearly as long as can be, from prices beyond that of a
// filler: those that the exact solver ends with may not prove the answer.
func TestPricesOfATotalProblem(t *testing.T) {
	const k, each, bits = 3, 4, 6
	beyond := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		row := func(side int) []int { return []int{side * (1<<bits - rng.IntN(9)), side << bits} }
		var points, centroids [][]int
		for range k * each {
			points = append(points, row(-1))
		}
		for range k {
			centroids = append(centroids, row(1))
		}
		p := &Problem{Points: panels(points, 2, bits), Centroids: grid(centroids, bits), FractionBits: bits,
			Lo: slices.Repeat([]int{each}, k), Hi: slices.Repeat([]int{each}, k), Total: true}
		for _, sign := range []int64{-1, 1} {
			s := new(Solver)
			s.StartFrom(slices.Repeat([]int64{sign * maxPrice}, k))
			if err := agree(p, s); err != nil {
				t.Fatalf("seed %d, sign %d: %v", seed, sign, err)
			}
			if s.columns > k { // solved again
				beyond++
			}
		}
	}
	if beyond == 0 {
		t.Error("the prices of the exact solver were within the limits in all instances")
	}
}

// TestSteadyStateAllocatesLittle: the passes and the paths of a warm solver work
// in memory it holds.
func TestSteadyStateAllocatesLittle(t *testing.T) {
	p := mixture(5000, 2, 5)
	s := new(Solver)
	var res Result
	for range 3 {
		if err := s.Solve(context.Background(), nil, p, &res); err != nil {
			t.Fatal(err)
		}
	}
	if allocs := testing.AllocsPerRun(10, func() {
		if err := s.Solve(context.Background(), nil, p, &res); err != nil {
			t.Fatal(err)
		}
	}); allocs > 0 {
		t.Errorf("%v allocations per solve", allocs)
	}
}

// TestDegenerateInstances checks the certificates where ties or unreachable sizes
// abound, on instances too large for the reference.
func TestDegenerateInstances(t *testing.T) {
	const n, d, k = 8000, 2, 20
	for _, c := range []struct {
		name       string
		spoil      func(p *Problem)
		infeasible bool
	}{
		{"equal points", func(p *Problem) {
			for i := range p.Points.Data {
				p.Points.Data[i] = 0.5
			}
		}, false},
		{"equal centroids", func(p *Problem) { p.Centroids = slices.Repeat([]float32{0.25}, k*d) }, false},
		{"points on a coarse grid", func(p *Problem) {
			for i, x := range p.Points.Data {
				p.Points.Data[i] = float32(int(x*8)) / 8
			}
		}, false},
		{"minima out of reach", func(p *Problem) { p.Radius = 0.2 }, true},
		{"minima out of reach, total", func(p *Problem) { p.Radius, p.Total = 0.2, true }, false},
		{"too few points, total", func(p *Problem) {
			p.Lo, p.Hi, p.Total = slices.Repeat([]int{n/k + 80}, k), slices.Repeat([]int{n}, k), true
		}, false},
		{"too many points, total", func(p *Problem) {
			p.Lo, p.Hi, p.Total = make([]int, k), slices.Repeat([]int{n/k - 80}, k), true
		}, false},
		{"exclusivity 2", func(p *Problem) {
			p.Lo, p.Hi, p.Exclusivity = slices.Repeat([]int{n/k + 80}, k), slices.Repeat([]int{n}, k), 2
		}, false},
	} {
		p := mixture(n, d, k)
		c.spoil(p)
		var res Result
		err := new(Solver).Solve(context.Background(), nil, p, &res)
		if c.infeasible {
			if !errors.Is(err, ErrInfeasible) {
				t.Errorf("%s: %v, want %v", c.name, err, ErrInfeasible)
			}
			continue
		}
		if err == nil {
			err = Verify(p, &res)
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestVerifyRefusesOtherAssignments spoils an optimal result in every way that
// Verify has to notice.
func TestVerifyRefusesOtherAssignments(t *testing.T) {
	p := mixture(600, 2, 6)
	solve := func() *Result {
		var res Result
		if err := new(Solver).Solve(context.Background(), nil, p, &res); err != nil {
			t.Fatal(err)
		}
		return &res
	}
	if err := Verify(p, solve()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(r *Result){
		"two labels exchanged": func(r *Result) {
			for i := range r.Labels {
				if r.Labels[i] != r.Labels[0] {
					r.Labels[0], r.Labels[i] = r.Labels[i], r.Labels[0]
					return
				}
			}
		},
		"one label changed":  func(r *Result) { r.Labels[5] = (r.Labels[5] + 1) % 6 },
		"label out of range": func(r *Result) { r.Labels[5] = 7 },
		"unassigned":         func(r *Result) { r.Labels[5] = 6 },
		"size misstated":     func(r *Result) { r.Sizes[2]++ },
		"filler invented":    func(r *Result) { r.Fillers[1] = 1 },
		"prices missing":     func(r *Result) { r.Prices = r.Prices[:5] },
		"price changed":      func(r *Result) { r.Prices[slices.Index(r.Prices, slices.Max(r.Prices))] += 1 << 30 },
		"extra membership":   func(r *Result) { r.Extra = append(r.Extra, Membership{3, 2, 1}) },
	} {
		r := solve()
		spoil(r)
		if err := Verify(p, r); err == nil {
			t.Errorf("%s: Verify found nothing", name)
		}
	}
	// A tie resolved against the hash: two coincident centroids.
	copy(p.Centroids[2:4], p.Centroids[:2])
	r := solve()
	for i, label := range r.Labels {
		j := slices.IndexFunc(r.Labels, func(l uint16) bool { return label < 2 && l == 1-label })
		if j >= 0 {
			r.Labels[i], r.Labels[j] = r.Labels[j], r.Labels[i]
			break
		}
	}
	if err := Verify(p, r); err == nil {
		t.Error("Verify accepts a tie against the hash")
	}
}
