package lloyd

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/kernels"
)

// The centroids of plain k-means are the means of their clusters, whatever the
// number of clients: the loss falls by nothing when all are replaced by the exact
// means of the records that are nearest to them.
func TestPlainKMeansEndsAtMeans(t *testing.T) {
	seed := uint64(3)
	for _, m := range []int{1, 3} {
		parts := blobs(t, 3000, 3, 5, m, 8)
		res := run(t, 2, Job{Method: Lloyd, Problem: protocol.Problem{K: 8, Clients: parts, Seed: &seed}})
		if res.Iterations >= 10*plainIterations {
			t.Fatalf("%d clients: %d rounds", m, res.Iterations)
		}
		sums, counts := make([]float64, 8*3), make([]float64, 8)
		eachRecord(parts, func(x []float32) {
			j, _ := nearestTo(res.Centroids, x)
			counts[j]++
			for h, v := range x {
				sums[j*3+h] += float64(v)
			}
		})
		for j, c := range res.Centroids {
			for h, x := range c {
				if mean := sums[j*3+h] / counts[j]; math.Abs(mean-x) > 1e-3 {
					t.Errorf("%d clients: centroid %d is %g in column %d, its mean %g", m, j, x, h, mean)
				}
			}
		}
	}
}

// eachRecord visits all records.
func eachRecord(parts []dataset.Part, visit func(x []float32)) {
	for _, p := range parts {
		for i := range p.Points.N {
			visit(p.Points.Point(i, nil))
		}
	}
}

// nearestTo is the nearest of centroids, in float64, and its squared distance.
func nearestTo(centroids [][]float64, x []float32) (at int, least float64) {
	least = math.Inf(1)
	for j, c := range centroids {
		sum := 0.0
		for h, v := range x {
			t := float64(v) - c[h]
			sum += float64(t * t)
		}
		if sum < least {
			at, least = j, sum
		}
	}
	return at, least
}

// Of several starts the best one is returned: with 25 far blobs and 25 clusters about
// a third of single starts miss a blob, which leaves a loss many times that of all
// found. That twenty starts all miss in one of 12 runs has a probability of
// 12 (1/3)^20 < 4e-9, that no single one does of (2/3)^12 < 1%; the seeds are fixed.
func TestBestOfSeveralStarts(t *testing.T) {
	parts := blobs(t, 2500, 2, 25, 2, 4)
	most := 2 * 2 * 0.05 * 0.05 // twice the variance of the blobs
	missed := 0
	for seed := range uint64(12) {
		one := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 25, Clients: parts, Seed: &seed}, NInit: 1})
		many := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 25, Clients: parts, Seed: &seed},
			NInit: 20})
		if *one.NICV > *many.NICV*(1+1e-4) {
			missed++
		}
		if *many.NICV > most || *many.NICV > *one.NICV*(1+1e-4) {
			t.Errorf("seed %d: twenty starts leave %g, one %g", seed, *many.NICV, *one.NICV)
		}
	}
	if missed == 0 {
		t.Error("no single start was worse")
	}
}

// Starts that stay behind are given up: ten starts on records without clusters, where each alone has many rounds,
// take less than half of the rounds of ten times one, and leave as little as the best of ten runs of one start within
// a hundredth.
func TestStartsThatStayBehindAreGivenUp(t *testing.T) {
	parts := blobs(t, 3000, 3, 1, 1, 1)
	rounds, alone, best := 0, 0, math.Inf(1)
	var losses []float64
	for seed := range uint64(10) {
		one := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 12, Clients: parts, Seed: &seed}, NInit: 1})
		many := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 12, Clients: parts, Seed: &seed}, NInit: 10})
		rounds, alone, best = rounds+many.Iterations, alone+10*one.Iterations, min(best, *one.NICV)
		losses = append(losses, *many.NICV)
	}
	slices.Sort(losses)
	if losses[5] > best*1.01 {
		t.Errorf("ten starts leave %g, the best of ten single ones %g", losses[5], best)
	}
	if rounds*2 > alone {
		t.Errorf("%d rounds, ten times those of one start are %d", rounds, alone)
	}
}

// A cluster that nobody is in begins again at a record: from two centroids far off
// and one at each of two blobs of three, all blobs are found.
func TestEmptyClustersBeginAgain(t *testing.T) {
	seed := uint64(1)
	parts := blobs(t, 600, 2, 3, 2, 3)
	free := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts, Seed: &seed}})
	start := slices.Concat(free.Centroids[0], []float64{1, 1, 1, 1})
	res := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts, Seed: &seed, Start: start}})
	if *res.NICV > *free.NICV*(1+1e-6) {
		t.Errorf("NICV is %g from centroids of empty clusters, %g from k-means++", *res.NICV, *free.NICV)
	}
}

// Fewer distinct records than clusters: the run ends, and every record is a centroid.
func TestFewerRecordsThanClusters(t *testing.T) {
	seed := uint64(1)
	points := kernels.NewPanels(40, 2)
	for i := range 40 {
		points.Set(i, []float32{float32(i%3) / 4, 0})
	}
	var res *engine.Result
	for _, start := range [][]float64{nil, make([]float64, 10)} {
		res = run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 5,
			Clients: []dataset.Part{{Points: points, FractionBits: 16}}, Seed: &seed, Start: start}})
		if *res.NICV != 0 {
			t.Errorf("NICV is %g", *res.NICV)
		}
	}
}

// Exchanges make a start better or leave it as it is, also among several clients; of
// starts that miss a blob they mend most. A single start misses one in about a third of
// all seeds (see above), so that none of 12 does has a probability below 1%; the seeds
// are fixed.
func TestExchangesMendAStart(t *testing.T) {
	parts := blobs(t, 2500, 2, 25, 2, 4)
	var losses [][2]float64
	least := math.Inf(1)
	for seed := range uint64(12) {
		loss := [2]float64{}
		for i, exchanges := range []int{0, maxExchanges} {
			p := planOf(t, &Job{Method: Lloyd, Problem: protocol.Problem{K: 25, Clients: parts, Seed: &seed},
				NInit: 1})
			p.exchanges = exchanges
			p.rounds += exchanges * p.perStart
			pool := engine.NewPool(1)
			res, err := p.Run(context.Background(), engine.NewRuntime(pool))
			pool.Close()
			if err != nil {
				t.Fatal(err)
			}
			loss[i] = *res.NICV
		}
		if loss[1] > loss[0]*(1+1e-6) {
			t.Errorf("seed %d: exchanges take the loss from %g to %g", seed, loss[0], loss[1])
		}
		losses, least = append(losses, loss), min(least, loss[0], loss[1])
	}
	missed, mended := 0, 0
	for _, loss := range losses {
		if loss[0] > 1.02*least {
			missed++
			if loss[1] < 1.02*least {
				mended++
			}
		}
	}
	t.Logf("%d starts of 12 miss a blob, exchanges mend %d", missed, mended)
	if missed == 0 || 2*mended < missed {
		t.Errorf("%d starts miss a blob, exchanges mend %d", missed, mended)
	}
}

// The number of starts falls with the size of the problem, and exchanges take their
// place.
func TestStartsBySize(t *testing.T) {
	for _, c := range []struct{ n, k, d, starts, exchanges int }{
		{100, 5, 2, 10, 0}, {99999, 10, 10, 10, 0}, {20000, 200, 2, 10, maxExchanges}, {100000, 10, 10, 9, maxExchanges},
		{1000000, 10, 10, 5, maxExchanges},
		{10000000, 10, 10, 1, maxExchanges}, {10000000, 3, 100, 1, 0}, {1000000, 4000, 2, 1, 0},
	} {
		j := &Job{Method: Lloyd, Problem: protocol.Problem{K: c.k, Records: c.n,
			Clients: []dataset.Part{{Points: kernels.NewPanels(1, c.d)}}}, Init: KMeansPlusPlus}
		if starts, exchanges := j.starts(), j.exchanges(); starts != c.starts || exchanges != c.exchanges {
			t.Errorf("%+v: %d starts and %d exchanges", c, starts, exchanges)
		}
	}
}

// Random starts are different records: as many clusters as records leave no loss from
// one start, and 40 seeds do not all begin at the same ones.
func TestRandomRecordsDiffer(t *testing.T) {
	parts := blobs(t, 60, 2, 3, 2, 4)
	first := map[float64]bool{}
	for seed := range uint64(40) {
		res := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 60, Clients: parts, Seed: &seed,
			Iterations: 1}, Init: SomeRecords, NInit: 1})
		if *res.NICV != 0 {
			t.Fatalf("seed %d: 60 records leave %g", seed, *res.NICV)
		}
		first[res.Centroids[0][0]] = true
	}
	if len(first) < 5 {
		t.Errorf("40 seeds begin at %d records", len(first))
	}
}
