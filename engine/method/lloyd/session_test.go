package lloyd

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/kernels"
)

// load reads a set and splits it among m clients.
func load(tb testing.TB, name string, m int, seed uint64) (*dataset.Normalised, []dataset.Part) {
	tb.Helper()
	if filepath.Ext(name) == "" {
		name += ".csv"
	}
	norm, _ := datasettest.SharedSet(tb, name)
	parts, err := norm.Split(m, nil, seed)
	if err != nil {
		tb.Fatal(err)
	}
	return norm, parts
}

func run(tb testing.TB, workers int, job Job) *engine.Result {
	tb.Helper()
	return enginetest.RunOn(tb, workers, &job)
}

// planOf is the plan of a job that is as it should be.
func planOf(tb testing.TB, job *Job) *Plan {
	tb.Helper()
	p, err := job.check()
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// trial is a run under way whose clients a test looks into.
type trial struct {
	*Plan
	session *protocol.Session
	clients []*client
	views   *protocol.Views
	steps   int // rounds done
}

// begin starts a run of a job on a pool of so many workers.
func begin(tb testing.TB, workers int, job Job) *trial {
	tb.Helper()
	p := planOf(tb, &job)
	pool := engine.NewPool(workers)
	tb.Cleanup(pool.Close)
	s := &trial{Plan: p, views: job.Views}
	s.session, s.clients = p.start(engine.NewRuntime(pool), protocol.Options{Views: job.Views})
	tb.Cleanup(s.session.Close)
	return s
}

// step runs one round and tells whether there are more.
func (s *trial) step(tb testing.TB) bool {
	tb.Helper()
	s.steps++
	more, err := s.session.Step(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return more && s.steps < s.rounds
}

// atStart is a model with the first centroids of a run.
func (p *Plan) atStart() *model {
	m := newModel(p)
	copy(m.centroids, p.first(&protocol.Party{Public: p.PublicSeed.Streams()}))
	m.setGrid()
	return m
}

// blobs returns n records around k far centres in the box, dealt to m clients.
func blobs(tb testing.TB, n, d, k, m int, seed uint64) []dataset.Part {
	tb.Helper()
	r := privacy.NewStreams(&seed).Stream(0, 0, "blobs")
	centres := step.HalvedPacking(k, d, r)
	norm := &dataset.Normalised{Points: kernels.NewPanels(n, d), FractionBits: 16}
	row := make([]float32, d)
	for i := range n {
		for h := range row {
			row[h] = dataset.Truncate(max(-1, min(1, centres[i%k*d+h]+0.05*r.Normal())), 16)
		}
		norm.Points.Set(i, row)
	}
	parts, err := norm.Split(m, nil, seed)
	if err != nil {
		tb.Fatal(err)
	}
	return parts
}

// Every method finds far apart clusters when the budget is ample.
func TestEveryMethodFindsClearClusters(t *testing.T) {
	seed := uint64(7) // whose sphere packing has a centre near each cluster
	parts := blobs(t, 3000, 2, 5, 3, 1)
	for _, m := range Methods() {
		for _, c := range []privacy.Calibration{privacy.Proven, privacy.Claimed, privacy.Published} {
			for _, mech := range []protocol.Mechanism{protocol.Laplace, protocol.Gaussian} {
				job := Job{Method: m, Problem: protocol.Problem{K: 5, Clients: parts, Calibration: c,
					Mechanism: mech, Seed: &seed, Budget: privacy.Budget{Epsilon: 500, Delta: 1e-6}}}
				if m == Relative {
					job.Schedule = LaterCode
				}
				if !m.Private() {
					job.Budget, job.Mechanism = privacy.Budget{}, ""
				}
				if !m.Private() && (c != privacy.Proven || mech != protocol.Laplace) ||
					m.Constrained() && mech == protocol.Gaussian &&
						c != privacy.Proven {
					continue
				}
				res := run(t, 2, job)
				if *res.NICV > 0.02 || *res.EmptyClusters > 0 {
					t.Errorf("%s %s %s: NICV %g, %d empty clusters", m, c, mech, *res.NICV, *res.EmptyClusters)
				}
			}
		}
	}
}

// The same seed gives the same result on any number of workers, whatever the
// protocol.
func TestDeterminismAcrossWorkers(t *testing.T) {
	seed := uint64(9)
	small, large := blobs(t, 600, 3, 4, 3, 2), blobs(t, 20000, 4, 16, 2, 2)
	for _, job := range []Job{
		{Method: Lloyd}, {Method: CLloyd}, {Method: SuLloyd}, {Method: CSuLloyd}, {Method: FastLloyd},
		{Method: Relative}, {Method: Relative, Problem: protocol.Problem{Mechanism: protocol.Laplace, Noise: protocol.ByEach},
			Aggregator: ByRing},
		{Method: FastLloyd, NonExclusive: true}, {Method: CLloyd, Exclusivity: 2, EtaMinAlpha: 1},
		{Method: CSuLloyd, Radius: 0.5}, {Method: SuLloyd, Problem: protocol.Problem{Noise: protocol.InShares,
			Mechanism: protocol.Gaussian}},
		{Method: Lloyd, Init: KMeansPlusPlus}, {Method: Lloyd, Init: step.Random},
	} {
		for _, parts := range [][]dataset.Part{small, large} {
			job.K, job.Clients, job.Seed = 4, parts, &seed
			if parts[0].Points.N > 5000 {
				job.K = 16
			}
			if job.Method.Private() {
				job.Budget = privacy.Budget{Epsilon: 1, Delta: -1}
			}
			first := ""
			for _, workers := range []int{1, 2, 5} {
				b := enginetest.JSON(t, run(t, workers, job))
				if first == "" {
					first = b
				}
				if first != b {
					t.Errorf("%+v: %d workers give another result than 1", job.Method, workers)
				}
			}
		}
	}
}
