package lloyd

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

// watcher keeps what observers see.
type watcher struct {
	engine.Trace
	centroids [][]float64
	losses    []float64
}

func (w *watcher) IterationEnd(it engine.Iteration) {
	w.centroids, w.losses = append(w.centroids, slices.Clone(it.Centroids)), append(w.losses, it.Loss)
}

func watch(t *testing.T, job Job) (*watcher, *engine.Result) {
	t.Helper()
	w := new(watcher)
	e := enginetest.New(t, engine.WithWorkers(2), engine.WithObserver(w))
	res := enginetest.Run(t, e, &job)
	return w, res
}

// Observers see the loss of a run without noise, which is that of the records, and the centroids of
// a private run whose releases outsiders see, but never its loss.
func TestObserversSeeWhatEverybodyMay(t *testing.T) {
	parts := blobs(t, 1500, 3, 5, 1, 11)
	seed := uint64(4)
	w, res := watch(t, Job{Method: Lloyd, Problem: protocol.Problem{K: 5, Clients: parts, Iterations: 6,
		Seed: &seed}, Init: step.Sphere})
	if w.Job.Method != "lloyd" || w.Job.N != 1500 || w.Job.D != 3 || w.Job.K != 5 || w.Job.Rounds != 6 ||
		w.Job.ID != 1 || w.Job.Parties != 1 {
		t.Errorf("job %+v", w.Job)
	}
	if len(w.losses) != res.Iterations {
		t.Fatalf("%d iterations of %d", len(w.losses), res.Iterations)
	}
	e := enginetest.New(t, engine.WithWorkers(1))
	for i := 1; i < len(w.losses); i++ {
		q, err := engine.Measure(context.Background(), e.Pool(), engine.Evaluation{Part: parts[0]}, w.centroids[i-1], 5)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(w.losses[i]-*q.WCSS) > 1e-9**q.WCSS {
			t.Errorf("iteration %d: loss %v, measured %v", i+1, w.losses[i], *q.WCSS)
		}
	}
	private, _ := watch(t, Job{Method: FastLloyd, Problem: protocol.Problem{K: 5,
		Clients: blobs(t, 1500, 3, 5, 3, 11), Budget: privacy.Budget{Epsilon: 1, Delta: -1}, Seed: &seed}})
	for i, loss := range private.losses {
		if !math.IsNaN(loss) || private.centroids[i] == nil {
			t.Errorf("iteration %d of a private run shows loss %v, centroids %v", i+1, loss, private.centroids[i])
		}
	}
}

// laps keeps which rounds' assignments ended within each iteration.
type laps struct {
	engine.Trace
	rounds []int
	within [][]int
}

func (l *laps) PhaseEnd(s engine.Span) {
	if s.Phase == engine.PhaseAssign {
		l.rounds = append(l.rounds, s.Iteration)
	}
}

func (l *laps) IterationEnd(engine.Iteration) {
	l.within, l.rounds = append(l.within, l.rounds), nil
}

// A party that has ended a round goes on to the next before the others have their turns: that is no part of the
// iteration before, whose time would have the work of two.
func TestIterationsHaveTheirOwnWork(t *testing.T) {
	parts := blobs(t, 1500, 3, 5, 3, 11)
	seed, l := uint64(4), new(laps)
	e := enginetest.New(t, engine.WithWorkers(1), engine.WithObserver(l))
	job := Job{Method: SuLloyd, Problem: protocol.Problem{K: 5, Clients: parts, Iterations: 4, Seed: &seed,
		Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}}}
	enginetest.Run(t, e, &job)
	for i, rounds := range l.within {
		if !slices.Equal(rounds, []int{i, i, i}) {
			t.Errorf("iteration %d has assignments of rounds %v", i, rounds)
		}
	}
	if len(l.within) != 4 {
		t.Errorf("%d iterations", len(l.within))
	}
}
