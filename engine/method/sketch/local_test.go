package sketch

import (
	"flag"
	"testing"

	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

var update = flag.Bool("update", false, "write the golden results anew")

// TestGoldenForest compares the local centres that forests give, and what they
// enter into the ledger, with stored ones, to the bit.
func TestGoldenForest(t *testing.T) {
	const n, d = 4000, 7
	data := mixture(t, n, d)
	type golden struct {
		Name    string
		Centers []float32
		Ledger  []privacy.Entry
	}
	var got []golden
	for _, c := range []struct {
		name     string
		noise    func(*run) *forestRelease
		clusters int
	}{
		{"gaussian", func(r *run) *forestRelease { return r.gaussianForest(0, data.Points.D, forestLevels, 0.5) }, 3},
		{"gaussian, weak", func(r *run) *forestRelease { return r.gaussianForest(0, data.Points.D, forestLevels, 0.01) }, 5},
		{"laplace", func(r *run) *forestRelease { return r.laplaceForest(0, data.Points.D, paperLevels, 2) }, 4},
	} {
		r := &run{Plan: &protocol.Plan{Parties: 2, Seed: seed(9)}, job: &Job{Method: Sketch,
			Problem: protocol.Problem{Calibration: privacy.Proven, Neighbours: privacy.AddRemove,
				Clients: data.Table(), Bounds: data.Bounds}},
			plan: &plan{clusters: c.clusters}, bits: data.FractionBits}
		p := &party{run: r, points: data.Points, releases: partyReleases{forest: c.noise(r)}}
		onParty(t, p, p.startForest)
		var ledger []privacy.Entry
		for _, x := range r.Releases {
			for _, e := range x.Entries {
				e.Calibration, e.Conditions = "", nil // not among what is stored
				ledger = append(ledger, e)
			}
		}
		got = append(got, golden{c.name, p.centers, ledger})
	}
	enginetest.Golden(t, "forest.json", got, *update)
}

// TestLocalStart: the start follows from the columns and the budget for them, both public.
func TestLocalStart(t *testing.T) {
	for _, c := range []struct {
		n, columns int
		mu         float64
		want       LocalStart
	}{
		{5000, 5, 0.1, StartTree}, {5000, 6, 0.1, StartTree}, {5000, 11, 0.1, StartTree}, {5000, 12, 0.1, StartRounds},
		{5000, 11, 0.01, StartRounds}, {1_000_000, 22, 0.1, StartTree},
	} {
		r := &run{job: &Job{LocalStart: StartAuto, Problem: protocol.Problem{Records: c.n}}}
		if got := r.localStart(c.columns, c.mu); got != c.want {
			t.Errorf("%d records, %d columns, mu %v: %s, want %s", c.n, c.columns, c.mu, got, c.want)
		}
		r.job.LocalStart = StartForest
		if got := r.localStart(c.columns, c.mu); got != StartForest {
			t.Errorf("a stated start is not taken: %s", got)
		}
	}
}

// TestCentersSpend: what parties release of local centres and sizes, in as many rounds as there are, costs the squared
// mu that they have, wherever centres start.
func TestCentersSpend(t *testing.T) {
	for _, start := range []LocalStart{StartTree, StartRounds, StartForest} {
		data := mixture(t, 4000, 12)
		r, err := (&Job{Method: Sketch, LocalStart: start, Problem: protocol.Problem{Clients: data.Table(),
			Bounds: data.Bounds, Columns: EqualSplit(12, 2), K: 3, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-4}}}).prepare()
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, release := range r.Releases {
			for _, e := range release.Entries {
				if e.Cost.Family == "discrete-gaussian" {
					sum += max(float64(e.Cost.Rounds), 1) / (e.Cost.Scale * e.Cost.Scale)
				}
			}
		}
		if has := 2 * r.plan.localMu * r.plan.localMu; sum > has*(1+1e-9) || sum < 0.99*has {
			t.Errorf("%s: a squared mu of %v, spent %v", start, has, sum)
		}
	}
}

// TestTreeStart: the levels of a tree spend what they may, a tree that noise hides gives centres still, and a run that
// starts from trees of eight columns loses little.
func TestTreeStart(t *testing.T) {
	const n, d, k = 4000, 7, 3
	data := mixture(t, n, d)
	for _, mu := range []float64{0.5, 0.1, 1e-3} {
		r := &run{Plan: &protocol.Plan{Parties: 2, Seed: seed(9)}, job: &Job{Method: Sketch,
			Problem: protocol.Problem{Calibration: privacy.Proven, Neighbours: privacy.AddRemove,
				Clients: data.Table(), Bounds: data.Bounds}}, plan: &plan{clusters: k}, bits: data.FractionBits}
		p := &party{run: r, points: data.Points, releases: partyReleases{tree: r.gaussianTree(0, d, mu)}}
		onParty(t, p, p.startTree)
		spent := r.Releases[0].Entries[0].Cost
		if got := max(float64(spent.Rounds), 1) / (spent.Scale * spent.Scale); got > mu*mu*(1+1e-9) || got < 0.99*mu*mu {
			t.Errorf("mu %v: the levels spend a squared mu of %v", mu, got)
		}
		if len(p.centers) != k*d {
			t.Errorf("mu %v: %d numbers for %d centres", mu, len(p.centers), k)
		}
	}
	data = separated(t, 1000, 16, 5)
	r := runJob(t, 2, &Job{Method: Sketch, ExactWeights: true, Problem: protocol.Problem{Clients: data.Table(),
		Bounds: data.Bounds, Columns: EqualSplit(16, 2), K: 5,
		Budget: privacy.Budget{Epsilon: 1, Delta: 1e-3}, Seed: seed(1)}})
	if !(*r.NICV < 0.66) { // 0.63 without noise
		t.Errorf("loss %.3g from trees", *r.NICV)
	}
}
