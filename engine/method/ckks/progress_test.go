package ckks

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// watcher counts what it is told.
type watcher struct {
	mu   sync.Mutex
	seen map[string][3]int // calls, most done, total
}

func (w *watcher) JobBegin(engine.JobInfo)       {}
func (w *watcher) PhaseBegin(engine.Span)        {}
func (w *watcher) PhaseEnd(engine.Span)          {}
func (w *watcher) IterationEnd(engine.Iteration) {}
func (w *watcher) JobEnd(*engine.Result, error)  {}

func (w *watcher) Progress(what string, done, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.seen[what]
	w.seen[what] = [3]int{s[0] + 1, max(s[1], done), total}
}

// Every phase of every round tells each of its ciphertexts once, up to the number that it announced.
func TestPhasesTellHowFarTheyAre(t *testing.T) {
	data := sample(t, "blobs", 2500, 2, 3, 3) // several batches
	w := &watcher{seen: map[string][3]int{}}
	e := enginetest.New(t, engine.WithWorkers(2), engine.WithObserver(w))
	enginetest.Run(t, e, &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
		Columns: [][]int{{0}, {1}}, K: 3, Iterations: 2, Calibration: privacy.None, Seed: seed(1), NoQuality: true},
		chain: &Chain{LogN: 10, Levels: signDepth + 1, LogLevel: 29, LogP: []int{30, 30, 30}}})
	want := []string{"keys", "encryption"}
	for round := 1; round <= 2; round++ {
		for _, phase := range []string{"comparisons", "sums"} {
			want = append(want, fmt.Sprintf("round %d of 2, %s", round, phase))
		}
	}
	for _, what := range want {
		s := w.seen[what]
		if s[2] == 0 || s[0] != s[2] || s[1] != s[2] {
			t.Errorf("%q: told %d times, up to %d of %d", what, s[0], s[1], s[2])
		}
	}
	for what := range w.seen {
		if !strings.Contains(strings.Join(want, "; "), what) {
			t.Errorf("%q is told", what)
		}
	}
}
