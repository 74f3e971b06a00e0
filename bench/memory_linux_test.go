package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method/ckks"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/pages"
)

// A run of ckks takes at its peak no more memory than its plan states, and three quarters of it at least where no pair
// is pruned: of few records and many, with more clusters, more columns, key holders who decrypt together, and by rank.
func TestPlannedMemory(t *testing.T) {
	const workers = 2
	pages.Heap() // as the commands do
	for _, x := range []struct {
		n, k, d, parties, rounds int
		argmin                   ckks.Argmin
	}{
		{1000, 2, 2, 2, 1, ckks.Pairs}, {10000, 8, 2, 2, 1, ckks.Pairs}, {100000, 5, 2, 2, 1, ckks.Pairs},
		{20000, 3, 16, 2, 1, ckks.Pairs}, {10000, 5, 5, 5, 1, ckks.Pairs}, {10000, 5, 6, 6, 10, ckks.Pairs},
		{1000, 5, 2, 2, 1, ckks.Rank}, {1000, 16, 2, 2, 1, ckks.Rank}, {10000, 10, 2, 2, 1, ckks.Rank},
		{10000, 5, 2, 2, 1, ckks.Rank}, // an empty cluster's count is below 0
	} {
		if testing.Short() && (x.n >= 100000 || x.argmin == ckks.Rank) {
			continue
		}
		data, err := timeSet(context.Background(), x.n, x.d, x.k)
		if err != nil {
			t.Fatal(err)
		}
		job := heJob(data, x.k, x.rounds, 1, heBudget())
		job.KeepPairs, job.Argmin = true, x.argmin
		if x.argmin == ckks.Rank {
			job.Calibration = privacy.Claimed // no other has a price for ranks
		}
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
		enginetest.Run(t, e, job)
		took := float64(peakMemory()-before) / 1e6
		e.Close()
		cell := fmt.Sprintf("n %d k %d d %d, %d parties, %d rounds by %s", x.n, x.k, x.d, x.parties, x.rounds, x.argmin)
		t.Logf("%s: planned %.0f MB, took %.0f", cell, planned, took)
		if took > planned || took < 0.75*planned {
			t.Errorf("%s: %.0f MB are planned, and %.0f taken", cell, planned, took)
		}
	}
}
