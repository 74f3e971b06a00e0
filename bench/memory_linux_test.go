package bench

import (
	"context"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks"
	"github.com/cohort-engine/cohort/internal/pages"
)

// A run of ckks takes at its peak no more memory than its plan states, and three quarters of it at least where no pair
// is pruned: of few records and many, with more clusters, more columns, and key holders who decrypt together.
func TestPlannedMemory(t *testing.T) {
	const workers = 2
	pages.Heap() // as the commands do
	for _, x := range []struct{ n, k, d, parties int }{
		{1000, 2, 2, 2}, {10000, 8, 2, 2}, {100000, 5, 2, 2}, {20000, 3, 16, 2}, {10000, 5, 5, 5},
	} {
		if testing.Short() && x.n >= 100000 {
			continue
		}
		data, err := timeSet(context.Background(), x.n, x.d, x.k)
		if err != nil {
			t.Fatal(err)
		}
		job := heJob(data, x.k, 1, 1, heBudget())
		job.KeepPairs = true
		if x.parties > 2 {
			job.Mode, job.Columns = ckks.Multiparty, nil
			for h := range x.d {
				job.Columns = append(job.Columns, []int{h})
			}
		}
		planned, err := hePlanned(job, workers)
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(engine.WithWorkers(workers))
		if err != nil {
			t.Fatal(err)
		}
		if !resetPeakMemory() {
			t.Skip("SKIPPED: the system does not start the peak of memory anew")
		}
		before := peakMemory()
		if _, err := e.Run(context.Background(), job); err != nil {
			t.Fatal(err)
		}
		took := float64(peakMemory()-before) / 1e6
		e.Close()
		t.Logf("n %d k %d d %d, %d parties: planned %.0f MB, took %.0f", x.n, x.k, x.d, x.parties, planned, took)
		if took > planned || took < 0.75*planned {
			t.Errorf("n %d k %d d %d, %d parties: %.0f MB are planned, and %.0f taken", x.n, x.k, x.d, x.parties, planned, took)
		}
	}
}
