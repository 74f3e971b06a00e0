package hybrid

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// TestHybridLedger runs every branch and mechanism and checks that the ledger's
// total fits the budget.
func TestHybridLedger(t *testing.T) {
	norm, table := datasettest.Builtin(t, "blobs", dataset.Generator{N: 3000, D: 12, K: 4, Separation: 6, Seed: 2})
	eng := enginetest.New(t)
	for _, branch := range []string{"tree", "grid", "projected", "high-d", "mean"} {
		for _, c := range []struct {
			budget     privacy.Budget
			mechanism  protocol.Mechanism
			neighbours privacy.Neighbours
			clients    int
		}{
			{privacy.Budget{Epsilon: 1, Delta: -1}, "", "", 1},
			{privacy.Budget{Epsilon: 0.1, Delta: 1e-5}, "", "", 3},
			{privacy.Budget{Epsilon: 2, Delta: 0}, "", "", 1},
			{privacy.Budget{Epsilon: 1, Delta: 1e-5}, protocol.Laplace, "", 1},
			{privacy.Budget{Epsilon: 1, Delta: 1e-5}, "", privacy.ReplaceOne, 1},
		} {
			parts, err := norm.Split(c.clients, nil, 3)
			if err != nil {
				t.Fatal(err)
			}
			seed := uint64(4)
			job := &Job{Problem: protocol.Problem{Clients: parts, Bounds: norm.Bounds, Labels: table.Labels, K: 4,
				Budget: c.budget, Mechanism: c.mechanism, Neighbours: c.neighbours, Seed: &seed}, Branch: branch}
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
			if c.mechanism != protocol.Laplace && *total.Epsilon < 0.98*limit {
				t.Errorf("%s %+v: total is %v, budget %v: budget is wasted", branch, c, *total.Epsilon, limit)
			}
			if res.Ledger.Delta != *res.Delta || len(res.Centroids) != 4 || len(res.Centroids[0]) != 12 {
				t.Errorf("%s: delta %v, %d centroids", branch, *res.Delta, len(res.Centroids))
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
		norm, table := datasettest.Builtin(t, "blobs", c.g)
		parts := norm.Table()
		eng, _ := engine.New()
		seed := uint64(9)
		res, err := eng.Run(context.Background(), &Job{Problem: protocol.Problem{Clients: parts, Bounds: norm.Bounds,
			Labels: table.Labels, K: c.g.K, Budget: privacy.Budget{Epsilon: 2, Delta: 1e-6}, Seed: &seed}})
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

// TestPlannedRunsEnd: what has a plan at the least budgets that have one runs to its end, with noise that a sampler
// has: it has been paid for.
func TestPlannedRunsEnd(t *testing.T) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 300, D: 3, K: 3, Separation: 5, Seed: 8})
	parts := norm.Table()
	eng := enginetest.New(t, engine.WithWorkers(1))
	for _, branch := range []string{"tree", "high-d", "projected"} {
		for _, neighbours := range []privacy.Neighbours{privacy.AddRemove, privacy.ReplaceOne} {
			for _, delta := range []float64{0, 1e-15} {
				run := 0
				for e := 1e-6; run < 6; e *= 1.3 {
					seed := uint64(run)
					j := &Job{Branch: branch, Frame: "off", Problem: protocol.Problem{Clients: parts, Bounds: norm.Bounds,
						K: 3, Neighbours: neighbours, Budget: privacy.Budget{Epsilon: e, Delta: delta}, Seed: &seed,
						NoQuality: true}}
					if _, err := j.Plan(); err != nil && e < 1 {
						continue
					}
					if _, err := eng.Run(t.Context(), j); err != nil {
						t.Fatalf("%s, %s, epsilon %g, delta %g: %v", branch, neighbours, e, delta, err)
					}
					run++
				}
			}
		}
	}
}

// TestClientsReleaseTheSame: the records of one client split among several give
// the same released sums, as all of them are additive.
func TestClientsReleaseTheSame(t *testing.T) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 2000, D: 3, K: 4, Separation: 5, Seed: 8})
	seed := uint64(5)
	var first [][]float64
	for _, clients := range []int{1, 2, 5} {
		parts, _ := norm.Split(clients, nil, 1)
		plan, err := (&Job{Problem: protocol.Problem{Clients: parts, Bounds: norm.Bounds, Noise: protocol.ByServer,
			K: 4, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}, Seed: &seed}}).Plan()
		if err != nil {
			t.Fatal(err)
		}
		pool := engine.NewPool(2)
		o := protocol.Options{}
		if clients == 1 { // who draws alone draws what the server draws among several
			o.Secrets = func(protocol.Role) protocol.Secrets { return protocol.SimulatedSecrets(seed, protocol.Server) }
		}
		res, err := plan.(*staged.Plan).Connect(context.Background(), engine.NewRuntime(pool), o)
		pool.Close()
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

// TestWhoAddsTheNoise: by default no single role knows the noise of several clients'
// sums, a server that adds it has no bound, and what all draws have together is what
// the plan says.
func TestWhoAddsTheNoise(t *testing.T) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 600, D: 2, K: 3, Separation: 5, Seed: 8})
	seed := uint64(5)
	for _, c := range []struct {
		noise              protocol.NoiseBy
		clients, colluders int
		survivors          int
		laplace            bool
		makers             protocol.Makers
		excess             float64
	}{
		{"", 1, 0, 0, false, protocol.Holder, 1}, {"", 2, 0, 0, false, protocol.EachShare, 2},
		{"", 4, 0, 0, true, protocol.EachShare, 4.0 / 3},
		{"", 4, 2, 0, false, protocol.EachShare, 2}, {protocol.ByServer, 3, 0, 0, true, protocol.ServerAlone, 1},
		{protocol.ByEach, 3, 0, 0, false, protocol.EachWhole, 3},
		{"", 4, 0, 3, false, protocol.EachShare, 2}, {"", 5, 2, 4, true, protocol.EachShare, 2.5},
		{"", 3, 0, 1, false, protocol.EachWhole, 3},
	} {
		parts, _ := norm.Split(c.clients, nil, 1)
		job := &Job{Problem: protocol.Problem{Clients: parts, Bounds: norm.Bounds, Noise: c.noise,
			Colluders: c.colluders, Survivors: c.survivors, NoQuality: true, K: 3,
			Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}, Seed: &seed}, Branch: "tree"}
		if c.laplace {
			job.Budget.Delta = 0
		}
		plan, err := job.Plan()
		if err != nil {
			t.Fatal(err)
		}
		o := plan.(*staged.Plan)
		ledger, err := o.Ledger(nil)
		if err != nil {
			t.Fatal(err)
		}
		if total := ledger.TotalFor(privacy.Server); c.makers != protocol.Holder &&
			total.Unbounded != (c.makers == protocol.ServerAlone) {
			t.Errorf("%+v: the server's total is %+v", c, total)
		}
		for _, r := range o.Releases {
			if !r.Uncovered && r.Makers != c.makers {
				t.Errorf("%+v: makers of %s are %d", c, r.Name, r.Makers)
			}
		}
		draws := new(protocol.Draws)
		pool := engine.NewPool(1)
		_, err = o.Connect(context.Background(), engine.NewRuntime(pool), protocol.Options{Draws: draws})
		pool.Close()
		if err != nil {
			t.Fatal(err)
		}
		// Noise over its scale has the variance of all shares together: 600 values or more, at 6 deviations.
		sum, n := 0.0, 0
		for _, d := range draws.Seen {
			for _, x := range d.Values {
				z := float64(x) / d.Noise.Scale
				sum += z * z
				n++
			}
		}
		drawn := float64(n)
		if c.makers == protocol.EachShare || c.makers == protocol.EachWhole {
			drawn /= float64(c.clients)
		}
		whole := 1.0
		fourth := 3.0 // kurtosis of what one draw is at most like
		if c.laplace {
			whole, fourth = 2, 6*float64(c.clients)
		}
		if got, want := sum/drawn, c.excess*whole; math.Abs(got-want) > 6*want*math.Sqrt(fourth/drawn) {
			t.Errorf("%+v: the variance of the noise is %.3g of the scale's, want %.3g, over %.0f values", c, got, want, drawn)
		}
	}
	parts, _ := norm.Split(2, nil, 1)
	if _, err := (&Job{Problem: protocol.Problem{Clients: parts, Bounds: norm.Bounds, Colluders: 2,
		Noise: protocol.InShares, K: 3, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}}}).Plan(); !fault.IsRequest(
		err) {
		t.Errorf("two clients of whom two may collude: %v", err)
	}
}

// TestHybridQuality repeats the goals of the small sets: means over fixed
// seeds, so the outcome is deterministic.
func TestHybridQuality(t *testing.T) {
	for _, c := range []struct {
		set        string
		k          int
		low, whole float64 // goals at epsilon 0.1 and 1
	}{
		{"s1.csv", 15, 0.0121, 0.00826}, {"lsun.csv", 3, 0.219, 0.1604}, {"house.csv", 3, 0.171, 0.1544},
		{"adult.csv", 3, 0.2455, 0.2433}, {"iris.csv", 3, 0.81, 0.245},
	} {
		norm, _ := datasettest.SharedSet(t, c.set)
		parts := norm.Table()
		eng, _ := engine.New()
		for epsilon, goal := range map[float64]float64{0.1: c.low, 1: c.whole} {
			mean := 0.0
			runs := 20
			if c.set == "house.csv" {
				runs = 60 // its goal is within a standard error of 20
			}
			for run := range uint64(runs) {
				res := enginetest.Run(t, eng, &Job{Problem: protocol.Problem{Clients: parts,
					Bounds: norm.Bounds, K: c.k, Budget: privacy.Budget{Epsilon: epsilon, Delta: -1}, Seed: &run}})
				mean += *res.NICV / float64(runs)
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
		rows[2*i], rows[2*i+1] = staged.OnGrid(x+0.3*(rng.Float64()-0.5), datasettest.Bits),
			staged.OnGrid(y+0.3*(rng.Float64()-0.5), datasettest.Bits)
	}
	p := kernels.NewPanels(n, 2)
	kernels.Pack(p, rows)
	first, rest := p.Slice(0, 3200), p.Slice(3200, n)
	seed := uint64(2)
	eng := enginetest.New(t)
	run := func(balance, delta float64, clients ...*kernels.Panels) float64 {
		problem := protocol.Problem{Bounds: datasettest.UnitBounds(2), K: k, Seed: &seed,
			Budget: privacy.Budget{Epsilon: 2, Delta: delta}}
		for _, c := range clients {
			problem.Clients = append(problem.Clients, datasettest.Part(c))
		}
		res := enginetest.Run(t, eng, &Job{Problem: problem, Balance: balance})
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
					t.Errorf("balance %v: cluster %d has %v records on the synopsis, want %v to %v", balance, j, x, n/(balance*k),
						balance*n/k)
				}
			}
			if len(sizes) != k || math.Abs(sum-n) > 1e-6*n {
				t.Errorf("balance %v: sizes %v, want %d of %d records in all", balance, sizes, k, n)
			}
			if !strings.Contains(strings.Join(res.Notes, "\n"), "on the private synopsis") {
				t.Errorf("balance %v: the notes %q do not say where the sizes hold", balance, res.Notes)
			}
		}
		return *res.NICV
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

// planOf is the plan of a job that is as it should be.
func planOf(t testing.TB, j *Job) *plan {
	t.Helper()
	p, err := j.plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
