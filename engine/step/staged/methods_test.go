package staged_test

import (
	"context"
	"flag"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method/balcan"
	"github.com/cohort-engine/cohort/engine/method/eugkm"
	"github.com/cohort-engine/cohort/engine/method/evolve"
	"github.com/cohort-engine/cohort/engine/method/hybrid"
	"github.com/cohort-engine/cohort/engine/method/lsf"
	"github.com/cohort-engine/cohort/engine/method/pca"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/protocol/protocoltest"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
	"github.com/cohort-engine/cohort/internal/fault"
)

// asked is the problem with what is asked of it.
func asked(p protocol.Problem, k int, b privacy.Budget, seed *uint64) protocol.Problem {
	p.K, p.Budget, p.Seed = k, b, seed
	return p
}

// rounds is the problem with a number of them.
func rounds(n int, p protocol.Problem) protocol.Problem {
	p.Iterations = n
	return p
}

// TestRolesApart runs every method with each role in a goroutine of its own, which
// shares nothing but bytes with the others, and gets the bits of the roles that
// share a process.
func TestRolesApart(t *testing.T) {
	seed := uint64(12)
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 1500, D: 9, K: 4, Separation: 6, Seed: 6})
	budget, pure := privacy.Budget{Epsilon: 2, Delta: 1e-5}, privacy.Budget{Epsilon: 2, Delta: 0}
	pool := engine.NewPool(2)
	defer pool.Close()
	split := func(m int) protocol.Problem {
		parts, err := norm.Split(m, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		return protocol.Problem{Clients: parts, Bounds: norm.Bounds}
	}
	for _, c := range []struct {
		name string
		job  engine.Job
	}{
		{"tree of three", &hybrid.Job{Problem: asked(split(3), 4, budget, &seed), Branch: "tree"}},
		{"framed tree of two", &hybrid.Job{Problem: asked(split(2), 4, budget, &seed), Branch: "tree", Frame: "on"}},
		{"balanced tree of two", &hybrid.Job{Problem: asked(split(2), 4, pure, &seed), Balance: 1.5}},
		{"projected of three", &hybrid.Job{Problem: asked(split(3), 4, budget, &seed), Branch: "projected"}},
		{"mean of three", &hybrid.Job{Problem: asked(split(3), 4, budget, &seed), Branch: "mean"}},
		{"high-d of two", &hybrid.Job{Problem: asked(split(2), 4, pure, &seed), Branch: "high-d"}},
		{"lsf", &lsf.Job{Problem: asked(split(1), 4, budget, &seed)}},
		{"eugkm", &eugkm.Job{Problem: rounds(2, asked(split(1), 4, budget, &seed))}},
		{"evolve", &evolve.Job{Problem: asked(split(1), 4, budget, &seed)}},
		{"balcan", &balcan.Job{Problem: asked(split(1), 4, budget, &seed)}},
		{"balcan-edler", &balcan.Edler{Problem: asked(split(1), 4, budget, &seed)}},
		{"pca", &pca.Job{Problem: asked(split(1), 4, privacy.Budget{}, &seed)}},
	} {
		plan, err := c.job.Plan()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		together, err := plan.Run(context.Background(), engine.NewRuntime(pool))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		o := plan.(*staged.Plan)
		var roles protocoltest.Roles
		options := protocoltest.Apart(o.Plan)
		options.Joined = roles.Join
		apart, err := o.Connect(context.Background(), engine.NewRuntime(pool), options)
		if err != nil {
			t.Fatalf("%s, apart: %v", c.name, err)
		}
		want := o.Parties
		if o.Coordinated {
			want++
		}
		roles.Check(t, want)
		if diff := cmp.Diff(stagedtest.Text(t, together), stagedtest.Text(t, apart)); diff != "" {
			t.Errorf("%s: roles apart differ:\n%s", c.name, diff)
		}
	}
}

// TestGoldenResults compares the results of a few seeded jobs with stored ones,
// to the bit: on every architecture and instruction set. Epsilons of the ledger
// come from numeric accountants, whose last bits are not part of that promise.
func TestGoldenResults(t *testing.T) {
	seed := uint64(20)
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 3000, D: 10, K: 5, Separation: 5, Seed: 6})
	flat, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 3000, D: 2, K: 5, Separation: 6, Seed: 7})
	three, _ := norm.Split(3, nil, 1)
	one := norm.Table()
	two := flat.Table()
	data, clients, plane := protocol.Problem{Clients: one, Bounds: norm.Bounds},
		protocol.Problem{Clients: three, Bounds: norm.Bounds}, protocol.Problem{Clients: two, Bounds: flat.Bounds}
	budget, pure := privacy.Budget{Epsilon: 1, Delta: 1e-5}, privacy.Budget{Epsilon: 1, Delta: 0}
	type golden struct {
		Name      string
		Centroids [][]float64
		NICV      float64
		Comm      engine.Comm
	}
	var got []golden
	eng := enginetest.New(t)
	for _, c := range []struct {
		name string
		job  engine.Job
	}{
		{"lsf", &lsf.Job{Problem: asked(data, 5, budget, &seed)}},
		{"lsf laplace", &lsf.Job{Problem: asked(data, 5, pure, &seed), Levels: 9}},
		{"hybrid tree", &hybrid.Job{Problem: asked(data, 5, budget, &seed), Branch: "tree"}},
		{"hybrid plane", &hybrid.Job{Problem: asked(plane, 5, budget, &seed)}},
		{"hybrid balance", &hybrid.Job{Problem: asked(plane, 5, pure, &seed), Balance: 1.2}},
		{"hybrid projected", &hybrid.Job{Problem: asked(clients, 5, budget, &seed), Branch: "projected"}},
		{"hybrid high-d", &hybrid.Job{Problem: asked(data, 5, budget, &seed), Branch: "high-d"}},
		{"balcan", &balcan.Job{Problem: asked(data, 5, budget, &seed)}},
		{"balcan-edler", &balcan.Edler{Problem: asked(data, 5, budget, &seed), Rounds: 2}},
	} {
		res, err := eng.Run(context.Background(), c.job)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got = append(got, golden{c.name, res.Centroids, *res.NICV, res.Comm})
	}
	enginetest.Golden(t, "golden.json", got, *update)
}

var update = flag.Bool("update", false, "write the golden results anew")

// TestLedgerChargesWhatStops checks that the ledger of a method whose synopsis may stop early charges its
// whole budget whatever the outcome: twenty records stop it at most levels, and at different ones.
func TestLedgerChargesWhatStops(t *testing.T) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 20, D: 2, K: 2, Separation: 6, Seed: 2})
	parts := norm.Table()
	eng := enginetest.New(t)
	budget := privacy.Budget{Epsilon: 0.5, Delta: 1e-5}
	for seed := range uint64(6) {
		data := protocol.Problem{Clients: parts, Bounds: norm.Bounds}
		for _, job := range []engine.Job{&lsf.Job{Problem: asked(data, 2, budget, &seed)},
			&balcan.Job{Problem: asked(data, 2, budget, &seed)},
			&hybrid.Job{Problem: asked(data, 2, budget, &seed), Branch: "tree"}} {
			res := enginetest.Run(t, eng, job)
			if total := *res.Ledger.TotalFor("outsider").Epsilon; total > budget.Epsilon*(1+1e-6) ||
				total < 0.9*budget.Epsilon {
				t.Errorf("%T, seed %d: the ledger says %v of %v", job, seed, total, budget.Epsilon)
			}
		}
	}
}

// TestSameBits runs each method on different numbers of workers.
func TestSameBits(t *testing.T) {
	norm, table := datasettest.Builtin(t, "blobs", dataset.Generator{N: 3000, D: 10, K: 5, Separation: 5, Seed: 6})
	seed := uint64(11)
	for _, clients := range []int{1, 3} {
		parts, _ := norm.Split(clients, nil, 1)
		data := protocol.Problem{Clients: parts, Bounds: norm.Bounds, Labels: table.Labels}
		budget := privacy.Budget{Epsilon: 1, Delta: 1e-5}
		jobs := []engine.Job{
			&hybrid.Job{Problem: asked(data, 5, budget, &seed), Branch: "tree"},
			&hybrid.Job{Problem: asked(data, 5, budget, &seed), Branch: "projected"},
			&hybrid.Job{Problem: asked(data, 5, budget, &seed), Branch: "high-d"},
		}
		if clients == 1 {
			jobs = append(jobs, &lsf.Job{Problem: asked(data, 5, budget, &seed)},
				&balcan.Job{Problem: asked(data, 5, budget, &seed)},
				&balcan.Edler{Problem: asked(data, 5, budget, &seed), Rounds: 2})
		}
		for _, job := range jobs {
			first := ""
			for _, workers := range []int{1, 2, 3} {
				text := enginetest.JSON(t, enginetest.RunOn(t, workers, job))
				if first == "" {
					first = text
				} else if first != text {
					t.Errorf("%T: the result depends on the number of workers", job)
				}
			}
		}
	}
}

func TestBadRequests(t *testing.T) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 50, D: 2, K: 2, Seed: 1})
	parts := norm.Table()
	two, _ := norm.Split(2, nil, 1)
	data, several := protocol.Problem{Clients: parts, Bounds: norm.Bounds}, protocol.Problem{Clients: two,
		Bounds: norm.Bounds}
	good := privacy.Budget{Epsilon: 1, Delta: -1}
	for name, job := range map[string]engine.Job{
		"no clients":     &hybrid.Job{Problem: protocol.Problem{K: 2, Budget: good}},
		"k = 0":          &hybrid.Job{Problem: asked(data, 0, good, nil)},
		"k > n":          &hybrid.Job{Problem: asked(data, 51, good, nil)},
		"no epsilon":     &hybrid.Job{Problem: asked(data, 2, privacy.Budget{}, nil)},
		"delta 1":        &hybrid.Job{Problem: asked(data, 2, privacy.Budget{Epsilon: 1, Delta: 1}, nil)},
		"branch":         &hybrid.Job{Problem: asked(data, 2, good, nil), Branch: "bush"},
		"lsf clients":    &lsf.Job{Problem: asked(several, 2, good, nil)},
		"lsf levels":     &lsf.Job{Problem: asked(data, 2, good, nil), Levels: 65},
		"balcan clients": &balcan.Job{Problem: asked(several, 2, good, nil)},
		"edler clients":  &balcan.Edler{Problem: asked(several, 2, good, nil)},
		"edler gamma":    &balcan.Edler{Problem: asked(data, 2, good, nil), GammaFactor: -1},
		"edler failure":  &balcan.Edler{Problem: asked(data, 2, good, nil), Failure: 1},
		"edler split": &balcan.Edler{Problem: asked(data, 2, good, nil),
			Split: balcan.Split{Candidates: 0.9, Swap: 0.9, Recover: 0.1}},
		"edler project": &balcan.Edler{Problem: asked(data, 2, good, nil), Projection: "pca"},
		"bounds of one": &hybrid.Job{Problem: protocol.Problem{Clients: parts, K: 2, Budget: good,
			Bounds: dataset.Bounds{Lo: norm.Bounds.Lo[:1], Hi: norm.Bounds.Hi[:1]}}},
		"edler unbound":    &balcan.Edler{Problem: protocol.Problem{Clients: parts, K: 2, Budget: good}},
		"not lsf's rounds": &lsf.Job{Problem: rounds(3, asked(data, 2, good, nil))},
		"a paid pca":       &pca.Job{Problem: asked(data, 2, good, nil)},
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
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 12, D: 3, K: 3, Seed: 1})
	parts := norm.Table()
	data := protocol.Problem{Clients: parts, Bounds: norm.Bounds}
	budget, seed := privacy.Budget{Epsilon: 0.01, Delta: 1e-3}, uint64(3)
	for _, job := range []engine.Job{
		&balcan.Job{Problem: asked(data, 10, budget, &seed)},
		&balcan.Edler{Problem: asked(data, 10, budget, &seed)},
		&lsf.Job{Problem: asked(data, 10, budget, &seed)},
		&hybrid.Job{Problem: asked(data, 10, budget, &seed), Branch: "tree"},
		&hybrid.Job{Problem: asked(data, 10, budget, &seed), Branch: "projected"},
	} {
		eng, _ := engine.New()
		res, err := eng.Run(context.Background(), job)
		eng.Close()
		if err != nil {
			t.Fatalf("%T: %v", job, err)
		}
		if res.Method != "hybrid" && !strings.Contains(strings.Join(res.Notes, "\n"), "data-independent") {
			t.Errorf("%T: notes are %q, want a word on data-independent centres", job, res.Notes)
		}
		for _, row := range res.Centroids {
			for _, x := range row {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("%T: centroid %v", job, row)
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
		{1, 1, 1, privacy.Budget{Epsilon: 1, Delta: -1}}, {1, 40, 1, privacy.Budget{Epsilon: 1, Delta: 0}},
		{3, 2, 3, privacy.Budget{Epsilon: 1e-9, Delta: 1e-9}},
		{200, 3, 2, privacy.Budget{Epsilon: 500, Delta: 1e-6}}, {200, 3, 2, privacy.Budget{Epsilon: 1, Delta: 1e-300}},
	} {
		p := datasettest.GridPanels(rand.New(rand.NewPCG(1, 9)), c.n, c.d)
		data := protocol.Problem{Clients: []dataset.Part{datasettest.Part(p)}, Bounds: datasettest.UnitBounds(c.d)}
		for _, job := range []engine.Job{&hybrid.Job{Problem: asked(data, c.k, c.budget, nil)},
			&lsf.Job{Problem: asked(data, c.k, c.budget, nil)},
			&balcan.Job{Problem: asked(data, c.k, c.budget, nil)},
			&balcan.Edler{Problem: asked(data, c.k, c.budget, nil)},
			&pca.Job{Problem: asked(data, c.k, privacy.Budget{}, nil)}} {
			eng, _ := engine.New()
			res, err := eng.Run(context.Background(), job)
			eng.Close()
			if c.budget.Epsilon < 1e-6 && fault.IsRequest(err) {
				continue // a budget that no noise can keep
			}
			if err != nil {
				t.Errorf("%T, n=%d d=%d, %+v: %v", job, c.n, c.d, c.budget, err)
				continue
			}
			if total := res.Ledger.TotalFor("outsider").Epsilon; res.Method != "pca" &&
				(total == nil || *total > c.budget.Epsilon*(1+1e-6)) {
				t.Errorf("%T, n=%d d=%d, %+v: the ledger's total does not fit", job, c.n, c.d, c.budget)
			}
		}
	}
}
