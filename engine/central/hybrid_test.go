package central

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

const testBits = 16

// gridPanels packs random records on the grid, some of them at corners.
func gridPanels(rng *rand.Rand, n, d int) *kernels.Panels {
	rows := make([]float32, n*d)
	for i := range rows {
		rows[i] = float32(rng.IntN(2<<testBits+1)-1<<testBits) / (1 << testBits)
	}
	for i := 0; i < n; i += 7 {
		for h := range d {
			rows[i*d+h] = float32(2*rng.IntN(2) - 1)
		}
	}
	p := kernels.NewPanels(n, d)
	kernels.Pack(p, rows)
	return p
}

// testFrame begins a plan of hybrid on the records of p alone, with the box for
// bounds.
func testFrame(t testing.TB, p *kernels.Panels, k int) *frame {
	t.Helper()
	seed := uint64(1)
	data := &Data{Clients: []dataset.Part{part(p)}, Bounds: unitBounds(p.D)}
	f, err := newFrame("hybrid", data, k, privacy.Budget{Epsilon: 1, Delta: 1e-6}, false, "", 1, &seed)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// onParty lets the party of f that holds the records of p run.
func onParty(t testing.TB, f *frame, p *kernels.Panels, run func(ctx context.Context, p *party) error) {
	t.Helper()
	pool := engine.NewPool(2)
	defer pool.Close()
	program := f.program(step.Records{Part: part(p)}, func(ctx context.Context, p *party) (*protocol.Outcome, error) { return nil, run(ctx, p) })
	if err := protocol.Start(engine.NewRuntime(pool), f.Plan, []protocol.Program{program}, nil, protocol.Options{}).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func unitBounds(d int) dataset.Bounds {
	b := dataset.Bounds{Lo: make([]float64, d), Hi: make([]float64, d)}
	for h := range b.Lo {
		b.Lo[h], b.Hi[h] = -1, 1
	}
	return b
}

func part(p *kernels.Panels) dataset.Part {
	rows := make([]int, p.N)
	for i := range rows {
		rows[i] = i
	}
	return dataset.Part{Points: p, Rows: rows, FractionBits: testBits}
}

// builtin returns a generated set on the grid.
func builtin(t testing.TB, name string, g dataset.Generator) (*dataset.Normalised, *dataset.Table) {
	t.Helper()
	table, err := dataset.Generate(context.Background(), name, g)
	if err != nil {
		t.Fatal(err)
	}
	b, err := dataset.BoundsFromData(table)
	if err != nil {
		t.Fatal(err)
	}
	norm, err := dataset.Normalise(table, b, testBits)
	if err != nil {
		t.Fatal(err)
	}
	return norm, table
}

// offsetsOf is the direct form of offsets.add: float64 distances, every offset
// cut to its radius.
func offsetsOf(p *kernels.Panels, centroids []float32, radius []float64) (sums []float64, counts []int64, clear []bool) {
	d, k := p.D, len(radius)
	sums, counts, clear = make([]float64, k*d), make([]int64, k), make([]bool, p.N)
	for i := range p.N {
		x := p.Point(i, nil)
		best, next, at := math.Inf(1), math.Inf(1), 0
		for j := range k {
			s := 0.0
			for h := range d {
				t := float64(x[h]) - float64(centroids[j*d+h])
				s += t * t
			}
			if s < best {
				best, next, at = s, best, j
			} else {
				next = min(next, s)
			}
		}
		clear[i] = next-best > 1e-4
		factor := min(1, radius[at]/math.Sqrt(best))
		for h := range d {
			sums[at*d+h] += factor * (float64(x[h]) - float64(centroids[at*d+h]))
		}
		counts[at]++
	}
	return sums, counts, clear
}

func newSums(k, d int) offsetSums { return offsetSums{make([]int64, k*d), make([]int64, k)} }

// TestOffsets compares sums and counts of cut offsets with the direct form.
func TestOffsets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pool := engine.NewPool(2)
	defer pool.Close()
	for _, d := range []int{1, 2, 3, 17, 100} {
		n, k := 2000, 5
		p := gridPanels(rng, n, d)
		centroids := make([]float32, k*d)
		for i := range centroids {
			centroids[i] = onGrid(rng.Float64()*2-1, testBits)
		}
		radius := make([]float64, k)
		for j := range radius {
			radius[j] = rng.Float64() * math.Sqrt(float64(d))
		}
		radius[0] = math.Inf(1)
		want, counts, sure := offsetsOf(p, centroids, radius)
		unsure := int64(0)
		for _, ok := range sure {
			if !ok {
				unsure++
			}
		}
		o, got := newOffsets(pool, k, d, testBits), newSums(k, d)
		if err := o.add(context.Background(), p, centroids, radius, got); err != nil {
			t.Fatal(err)
		}
		for j := range k {
			if diff := got.counts[j] - counts[j]; diff > unsure || -diff > unsure {
				t.Errorf("d=%d: cluster %d counts %d, directly %d", d, j, got.counts[j], counts[j])
			}
			for h := range d {
				// Truncation loses less than a grid unit a record.
				if got, want := float64(got.sums[j*d+h])/(1<<testBits), want[j*d+h]; math.Abs(got-want) > float64(n)/(1<<testBits)+2*float64(unsure)+1e-3 {
					t.Errorf("d=%d: sum of cluster %d along %d is %v, directly %v", d, j, h, got, want)
				}
			}
		}
	}
}

// TestOffsetSensitivity adds one record, often an extreme one, and measures the
// change before noise: one cluster, at most the radius in L2, count 1.
func TestOffsetSensitivity(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	pool := engine.NewPool(1)
	defer pool.Close()
	for trial := range 300 {
		d, k, n := []int{1, 2, 5, 20, 60}[trial%5], 3, 40
		p := gridPanels(rng, n+1, d)
		centroids := make([]float32, k*d)
		for i := range centroids {
			centroids[i] = onGrid(rng.Float64()*2-1, testBits)
		}
		radius := []float64{0.01 + rng.Float64(), 0.01 + rng.Float64(), 3 * rng.Float64()}
		before, after := newSums(k, d), newSums(k, d)
		o := newOffsets(pool, k, d, testBits)
		without := p.Slice(0, n)
		if err := o.add(context.Background(), &without, centroids, radius, before); err != nil {
			t.Fatal(err)
		}
		if err := o.add(context.Background(), p, centroids, radius, after); err != nil {
			t.Fatal(err)
		}
		changed := 0
		for j := range k {
			norm := int64(0)
			for h := range d {
				c := after.sums[j*d+h] - before.sums[j*d+h]
				norm += c * c
			}
			diff := after.counts[j] - before.counts[j]
			if norm == 0 && diff == 0 {
				continue
			}
			changed++
			if length := math.Sqrt(float64(norm)) / (1 << testBits); length > radius[j] {
				t.Errorf("d=%d: one record moves the sum of cluster %d by %v, radius %v", d, j, length, radius[j])
			}
			if diff != 1 {
				t.Errorf("d=%d: one record changes the count of cluster %d by %d", d, j, diff)
			}
		}
		if changed != 1 {
			t.Errorf("one record changes %d clusters", changed)
		}
	}
}

// TestRoundScales checks that every cluster's scales spend no more than the
// round's budget and, away from the floor, all of it.
func TestRoundScales(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		d := 1 + rng.IntN(800)
		l := law{gaussian: true, total: math.Exp(rng.Float64()*10 - 8)}
		radius, size := math.Exp(rng.Float64()*6-4), math.Exp(rng.Float64()*12)
		run := &frame{Plan: &protocol.Plan{Method: "hybrid"}, d: d}
		s := run.relativeScales(l, radius, size)
		cost := radius*radius/(s.sums*s.sums) + 1/(s.counts*s.counts)
		if cost > l.total*(1+1e-9) {
			t.Fatalf("d=%d radius=%v size=%v mu²=%v: costs %v", d, radius, size, l.total, cost)
		}
		if s.sums > minScale && s.counts > minScale && cost < l.total*(1-1e-9) {
			t.Fatalf("d=%d radius=%v size=%v mu²=%v: wastes all but %v", d, radius, size, l.total, cost)
		}
		e := run.relativeScales(law{total: l.total}, radius, size)
		if cost := radius*math.Sqrt(float64(d))/e.sums + 1/e.counts; cost > l.total*(1+1e-9) {
			t.Fatalf("Laplace: costs %v of %v", cost, l.total)
		}
	}
}

// TestHybridLedger runs every branch and mechanism and checks that the ledger's
// total fits the budget.
func TestHybridLedger(t *testing.T) {
	norm, table := builtin(t, "blobs", dataset.Generator{N: 3000, D: 12, K: 4, Separation: 6, Seed: 2})
	eng, err := engine.New()
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	for _, branch := range []string{"tree", "projected", "high-d"} {
		for _, c := range []struct {
			budget     privacy.Budget
			laplace    bool
			neighbours privacy.Neighbours
			clients    int
		}{
			{privacy.Budget{Epsilon: 1, Delta: -1}, false, "", 1},
			{privacy.Budget{Epsilon: 0.1, Delta: 1e-5}, false, "", 3},
			{privacy.Budget{Epsilon: 2, Delta: 0}, false, "", 1},
			{privacy.Budget{Epsilon: 1, Delta: 1e-5}, true, "", 1},
			{privacy.Budget{Epsilon: 1, Delta: 1e-5}, false, privacy.ReplaceOne, 1},
		} {
			parts, err := norm.Split(c.clients, nil, 3)
			if err != nil {
				t.Fatal(err)
			}
			seed := uint64(4)
			job := &Hybrid{Data: Data{Clients: parts, Bounds: norm.Bounds, Labels: table.Labels}, K: 4, Budget: c.budget, Laplace: c.laplace, Neighbours: c.neighbours, Branch: branch, Seed: &seed}
			res, err := eng.Run(context.Background(), job)
			if err != nil {
				t.Fatalf("%s %+v: %v", branch, c, err)
			}
			total := res.Ledger.TotalFor("outsider")
			limit := c.budget.Epsilon
			if total.Epsilon == nil || *total.Epsilon > limit*(1+1e-6) {
				t.Errorf("%s %+v: total is %v, budget %v", branch, c, *total.Epsilon, limit)
			}
			// With a delta, Laplace noise costs less than the sum of its epsilons.
			if !c.laplace && *total.Epsilon < 0.98*limit {
				t.Errorf("%s %+v: total is %v, budget %v: budget is wasted", branch, c, *total.Epsilon, limit)
			}
			if res.Ledger.Delta != *res.Delta || len(res.Centroids) != 4 || len(res.Centroids[0]) != 12 {
				t.Errorf("%s: delta %v, %d centroids", branch, *res.Delta, len(res.Centroids))
			}
		}
	}
}

// TestLedgerChargesWhatStops checks that the ledger of a method whose synopsis may stop early charges its
// whole budget whatever the outcome: twenty records stop it at most levels, and at different ones.
func TestLedgerChargesWhatStops(t *testing.T) {
	norm, _ := builtin(t, "blobs", dataset.Generator{N: 20, D: 2, K: 2, Separation: 6, Seed: 2})
	parts, _ := norm.Split(1, nil, 1)
	eng, _ := engine.New()
	defer eng.Close()
	budget := privacy.Budget{Epsilon: 0.5, Delta: 1e-5}
	for seed := range uint64(6) {
		data := Data{Clients: parts, Bounds: norm.Bounds}
		for _, job := range []engine.Job{&LSF{Data: data, K: 2, Budget: budget, Seed: &seed}, &Balcan{Data: data, K: 2, Budget: budget, Seed: &seed},
			&Hybrid{Data: data, K: 2, Budget: budget, Branch: "tree", Seed: &seed}} {
			res, err := eng.Run(context.Background(), job)
			if err != nil {
				t.Fatal(err)
			}
			if total := *res.Ledger.TotalFor("outsider").Epsilon; total > budget.Epsilon*(1+1e-6) || total < 0.9*budget.Epsilon {
				t.Errorf("%s, seed %d: the ledger says %v of %v", job.Method(), seed, total, budget.Epsilon)
			}
		}
	}
}

// TestHybridFindsClusters checks quality where nothing should go wrong: the
// noise of 20000 records at epsilon 2 is far below the distance of clusters. Over
// the fixed seeds the outcome is deterministic.
func TestHybridFindsClusters(t *testing.T) {
	for _, c := range []struct {
		g      dataset.Generator
		branch string
	}{
		{dataset.Generator{N: 20000, D: 2, K: 10, Separation: 12, Seed: 1}, "tree"},
		{dataset.Generator{N: 20000, D: 60, K: 8, Separation: 12, Seed: 1}, "projected"},
	} {
		norm, table := builtin(t, "blobs", c.g)
		parts, _ := norm.Split(1, nil, 1)
		eng, _ := engine.New()
		seed := uint64(9)
		res, err := eng.Run(context.Background(), &Hybrid{Data: Data{Clients: parts, Bounds: norm.Bounds, Labels: table.Labels}, K: c.g.K, Budget: privacy.Budget{Epsilon: 2, Delta: 1e-6}, Seed: &seed})
		eng.Close()
		if err != nil {
			t.Fatal(err)
		}
		if res.Details["branch"] != c.branch {
			t.Errorf("d=%d: branch %v, want %s", c.g.D, res.Details["branch"], c.branch)
		}
		if *res.ARI < 0.99 {
			t.Errorf("d=%d: adjusted Rand index %v, want at least 0.99", c.g.D, *res.ARI)
		}
	}
}

// TestSameBits runs each method on different numbers of workers.
func TestSameBits(t *testing.T) {
	norm, table := builtin(t, "blobs", dataset.Generator{N: 3000, D: 10, K: 5, Separation: 5, Seed: 6})
	seed := uint64(11)
	for _, clients := range []int{1, 3} {
		parts, _ := norm.Split(clients, nil, 1)
		data := Data{Clients: parts, Bounds: norm.Bounds, Labels: table.Labels}
		budget := privacy.Budget{Epsilon: 1, Delta: 1e-5}
		jobs := []engine.Job{
			&Hybrid{Data: data, K: 5, Budget: budget, Seed: &seed, Branch: "tree"},
			&Hybrid{Data: data, K: 5, Budget: budget, Seed: &seed, Branch: "projected"},
			&Hybrid{Data: data, K: 5, Budget: budget, Seed: &seed, Branch: "high-d"},
		}
		if clients == 1 {
			jobs = append(jobs, &LSF{Data: data, K: 5, Budget: budget, Seed: &seed}, &Balcan{Data: data, K: 5, Budget: budget, Seed: &seed},
				&Edler{Data: data, K: 5, Budget: budget, Seed: &seed, Rounds: 2})
		}
		for _, job := range jobs {
			var first []byte
			for _, workers := range []int{1, 2, 3} {
				eng, err := engine.New(engine.WithWorkers(workers))
				if err != nil {
					t.Fatal(err)
				}
				res, err := eng.Run(context.Background(), job)
				eng.Close()
				if err != nil {
					t.Fatalf("%s: %v", job.Method(), err)
				}
				res.Timings = nil
				text, err := json.Marshal(res)
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = text
				} else if !bytes.Equal(first, text) {
					t.Errorf("%s: the result depends on the number of workers", job.Method())
				}
			}
		}
	}
}

// TestClientsReleaseTheSame: the records of one client split among several give
// the same released sums, as all of them are additive.
func TestClientsReleaseTheSame(t *testing.T) {
	norm, _ := builtin(t, "blobs", dataset.Generator{N: 2000, D: 3, K: 4, Separation: 5, Seed: 8})
	seed := uint64(5)
	var first [][]float64
	for _, clients := range []int{1, 2, 5} {
		parts, _ := norm.Split(clients, nil, 1)
		eng, _ := engine.New()
		res, err := eng.Run(context.Background(), &Hybrid{Data: Data{Clients: parts, Bounds: norm.Bounds}, K: 4, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}, Seed: &seed})
		eng.Close()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = res.Centroids
			continue
		}
		for j := range first {
			for h := range first[j] {
				if first[j][h] != res.Centroids[j][h] {
					t.Fatalf("%d clients: centroid %d is %v, with one client %v", clients, j, res.Centroids[j], first[j])
				}
			}
		}
		if res.Comm.BytesSent[0] == 0 || res.Comm.BytesReceived[0] == 0 {
			t.Error("no bytes were counted")
		}
	}
}

func TestBadRequests(t *testing.T) {
	norm, _ := builtin(t, "blobs", dataset.Generator{N: 50, D: 2, K: 2, Seed: 1})
	parts, _ := norm.Split(1, nil, 1)
	two, _ := norm.Split(2, nil, 1)
	data, several := Data{Clients: parts, Bounds: norm.Bounds}, Data{Clients: two, Bounds: norm.Bounds}
	good := privacy.Budget{Epsilon: 1, Delta: -1}
	for name, job := range map[string]engine.Job{
		"no clients":     &Hybrid{K: 2, Budget: good},
		"k = 0":          &Hybrid{Data: data, Budget: good},
		"k > n":          &Hybrid{Data: data, K: 51, Budget: good},
		"no epsilon":     &Hybrid{Data: data, K: 2},
		"delta 1":        &Hybrid{Data: data, K: 2, Budget: privacy.Budget{Epsilon: 1, Delta: 1}},
		"branch":         &Hybrid{Data: data, K: 2, Budget: good, Branch: "bush"},
		"lsf clients":    &LSF{Data: several, K: 2, Budget: good},
		"lsf levels":     &LSF{Data: data, K: 2, Budget: good, Levels: 65},
		"balcan clients": &Balcan{Data: several, K: 2, Budget: good},
		"edler clients":  &Edler{Data: several, K: 2, Budget: good},
		"edler gamma":    &Edler{Data: data, K: 2, Budget: good, GammaFactor: -1},
		"edler failure":  &Edler{Data: data, K: 2, Budget: good, Failure: 1},
		"edler split":    &Edler{Data: data, K: 2, Budget: good, Split: Split{Candidates: 0.9, Swap: 0.9, Recover: 0.1}},
		"edler project":  &Edler{Data: data, K: 2, Budget: good, Projection: "pca"},
		"bounds missing": &Hybrid{Data: Data{Clients: parts}, K: 2, Budget: good},
	} {
		eng, _ := engine.New()
		_, err := eng.Run(context.Background(), job)
		eng.Close()
		if err == nil || !fault.IsRequest(err) {
			t.Errorf("%s: error is %v, want a wrong request", name, err)
		}
	}
}

// TestTinyData: with too few records or too little budget every method still
// gives k finite centres; those that look for cells above a threshold fall back
// to data-independent ones and say so.
func TestTinyData(t *testing.T) {
	norm, _ := builtin(t, "blobs", dataset.Generator{N: 12, D: 3, K: 3, Seed: 1})
	parts, _ := norm.Split(1, nil, 1)
	data := Data{Clients: parts, Bounds: norm.Bounds}
	budget, seed := privacy.Budget{Epsilon: 0.01, Delta: 1e-3}, uint64(3)
	for _, job := range []engine.Job{
		&Balcan{Data: data, K: 10, Budget: budget, Seed: &seed},
		&Edler{Data: data, K: 10, Budget: budget, Seed: &seed},
		&LSF{Data: data, K: 10, Budget: budget, Seed: &seed},
		&Hybrid{Data: data, K: 10, Budget: budget, Seed: &seed, Branch: "tree"},
		&Hybrid{Data: data, K: 10, Budget: budget, Seed: &seed, Branch: "projected"},
	} {
		eng, _ := engine.New()
		res, err := eng.Run(context.Background(), job)
		eng.Close()
		if err != nil {
			t.Fatalf("%s: %v", job.Method(), err)
		}
		if job.Method() != "hybrid" && !strings.Contains(strings.Join(res.Notes, "\n"), "data-independent") {
			t.Errorf("%s: notes are %q, want a word on data-independent centres", job.Method(), res.Notes)
		}
		for _, row := range res.Centroids {
			for _, x := range row {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("%s: centroid %v", job.Method(), row)
				}
			}
		}
	}
}

// TestExtremes runs every method on one record and at absurd budgets.
func TestExtremes(t *testing.T) {
	for _, c := range []struct {
		n, d, k int
		budget  privacy.Budget
	}{
		{1, 1, 1, privacy.Budget{Epsilon: 1, Delta: -1}}, {1, 40, 1, privacy.Budget{Epsilon: 1, Delta: 0}}, {3, 2, 3, privacy.Budget{Epsilon: 1e-9, Delta: 1e-9}},
		{200, 3, 2, privacy.Budget{Epsilon: 500, Delta: 1e-6}}, {200, 3, 2, privacy.Budget{Epsilon: 1, Delta: 1e-300}},
	} {
		p := gridPanels(rand.New(rand.NewPCG(1, 9)), c.n, c.d)
		data := Data{Clients: []dataset.Part{part(p)}, Bounds: unitBounds(c.d)}
		for _, job := range []engine.Job{&Hybrid{Data: data, K: c.k, Budget: c.budget}, &LSF{Data: data, K: c.k, Budget: c.budget},
			&Balcan{Data: data, K: c.k, Budget: c.budget}, &Edler{Data: data, K: c.k, Budget: c.budget}, &PCA{Data: data, K: c.k}} {
			eng, _ := engine.New()
			res, err := eng.Run(context.Background(), job)
			eng.Close()
			if c.budget.Epsilon < 1e-6 && fault.IsRequest(err) {
				continue // a budget that no noise can keep
			}
			if err != nil {
				t.Errorf("%s, n=%d d=%d, %+v: %v", job.Method(), c.n, c.d, c.budget, err)
				continue
			}
			if total := res.Ledger.TotalFor("outsider").Epsilon; job.Method() != "pca" && (total == nil || *total > c.budget.Epsilon*(1+1e-6)) {
				t.Errorf("%s, n=%d d=%d, %+v: the ledger's total does not fit", job.Method(), c.n, c.d, c.budget)
			}
		}
	}
}

// sharedSet reads a set of the data folder, or skips.
func sharedSet(t *testing.T, name string) (*dataset.Normalised, *dataset.Table) {
	t.Helper()
	path := "../../../shared/data/" + name
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no data set %s: the test needs ../shared/data", name)
	}
	table, err := dataset.Open(context.Background(), path, dataset.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := dataset.BoundsFromData(table)
	if err != nil {
		t.Fatal(err)
	}
	norm, err := dataset.Normalise(table, b, testBits)
	if err != nil {
		t.Fatal(err)
	}
	return norm, table
}

// TestHybridQuality repeats the goals of the small sets: means over 20 fixed
// seeds, so the outcome is deterministic.
func TestHybridQuality(t *testing.T) {
	for _, c := range []struct {
		set        string
		k          int
		low, whole float64 // goals at epsilon 0.1 and 1
	}{
		{"s1.csv", 15, 0.0121, 0.00826}, {"lsun.csv", 3, 0.219, 0.1604}, {"house.csv", 3, 0.171, 0.1544}, {"adult.csv", 3, 0.2455, 0.2433}, {"iris.csv", 3, 0.81, 0.308},
	} {
		norm, _ := sharedSet(t, c.set)
		parts, _ := norm.Split(1, nil, 1)
		eng, _ := engine.New()
		for epsilon, goal := range map[float64]float64{0.1: c.low, 1: c.whole} {
			mean := 0.0
			for run := range uint64(20) {
				res, err := eng.Run(context.Background(), &Hybrid{Data: Data{Clients: parts, Bounds: norm.Bounds}, K: c.k, Budget: privacy.Budget{Epsilon: epsilon, Delta: -1}, Seed: &run})
				if err != nil {
					t.Fatal(err)
				}
				mean += *res.NICV / 20
			}
			if mean > goal {
				t.Errorf("%s at epsilon %v: mean NICV %v, goal %v", c.set, epsilon, mean, goal)
			}
		}
		eng.Close()
	}
}

// TestHybridBalance asks for clusters of bounded sizes of unequal blobs: they hold
// on the synopsis, for one client and several, and bind.
func TestHybridBalance(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const n, k = 9000, 3
	rows := make([]float32, 2*n)
	for i := range n {
		x, y := -0.6, -0.6
		if i%10 == 0 { // a tenth of the records are elsewhere
			x, y = 0.6, 0.6
		}
		rows[2*i], rows[2*i+1] = onGrid(x+0.3*(rng.Float64()-0.5), testBits), onGrid(y+0.3*(rng.Float64()-0.5), testBits)
	}
	p := kernels.NewPanels(n, 2)
	kernels.Pack(p, rows)
	first, rest := p.Slice(0, 3200), p.Slice(3200, n)
	seed := uint64(2)
	eng, _ := engine.New()
	defer eng.Close()
	run := func(balance, delta float64, clients ...*kernels.Panels) float64 {
		data := Data{Bounds: unitBounds(2)}
		for _, c := range clients {
			data.Clients = append(data.Clients, part(c))
		}
		res, err := eng.Run(context.Background(), &Hybrid{Data: data, K: k, Budget: privacy.Budget{Epsilon: 2, Delta: delta}, Balance: balance, Seed: &seed})
		if err != nil {
			t.Fatal(err)
		}
		if total := res.Ledger.TotalFor("outsider").Epsilon; math.Abs(*total-2) > 1e-3 {
			t.Errorf("balance %v: total is %v", balance, *total)
		}
		sizes, _ := res.Details["synopsis_sizes"].([]float64)
		if balance == 0 {
			if sizes != nil {
				t.Errorf("sizes %v without a constraint", sizes)
			}
		} else {
			const unit = n / 8192.0 // the flow works on units of this weight
			sum := 0.0
			for j, x := range sizes {
				sum += x
				if x < n/(balance*k)-unit*1.01 || x > balance*n/k+unit*1.01 {
					t.Errorf("balance %v: cluster %d has %v records on the synopsis, want %v to %v", balance, j, x, n/(balance*k), balance*n/k)
				}
			}
			if len(sizes) != k || math.Abs(sum-n) > 1e-6*n {
				t.Errorf("balance %v: sizes %v, want %d of %d records in all", balance, sizes, k, n)
			}
			if !strings.Contains(strings.Join(res.Notes, "\n"), "on the private synopsis") {
				t.Errorf("balance %v: the notes %q do not say where the sizes hold", balance, res.Notes)
			}
		}
		flat := make([]float32, 0, 2*k)
		for _, c := range res.Centroids {
			flat = append(flat, float32(c[0]), float32(c[1]))
		}
		return directLoss(p, flat, lossKind{squared: true})
	}
	free := run(0, 1e-5, p)
	for _, balance := range []float64{1, 1.05, 1.5} {
		if balanced := run(balance, 1e-5, p); balanced <= free {
			t.Errorf("balance %v: loss %v, %v without: the sizes do not bind", balance, balanced, free)
		}
	}
	run(1.05, 1e-5, &first, &rest)
	run(1.05, 0, p)
}
