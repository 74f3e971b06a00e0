package staged_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
	"github.com/cohort-engine/cohort/engine/synopsis"
)

// releases are all kinds of releases that count weights, one after the other.
type releases struct{ total, marginals, level, mean, sums, counts []float64 }

// release makes them of a client's records, with the noise of one seed.
func release(t *testing.T, f *staged.Plan, part dataset.Part, centroids []float32, radius []float64,
	scales []staged.Scales, mu2 float64) (r releases) {
	l := staged.Share{Gaussian: true, Total: mu2}
	f.AddTotal()
	level, round := f.AddCounts("level", "tree counts per level", l, 4), f.AddRound("round 1", l, len(radius))
	mean, distances := f.AddMean(l), f.AddDistances("the mean", l)
	marginals := f.AddMarginals(l)
	stagedtest.OnClient(t, f, part, func(ctx context.Context, p *staged.Party) (err error) {
		r.total = []float64{float64(p.N)}
		paths, err := synopsis.MidpointPaths(ctx, p.Pool(), p.Records, p.FractionBits, 2, 1)
		if err != nil {
			return err
		}
		w := synopsis.NewWalker(paths).Weigh(p.Weights)
		if r.level, err = p.ReleaseCounts(ctx, level, 4, func(words []int64) error {
			return w.Count(ctx, p.Pool(), words)
		}); err != nil {
			return err
		}
		if r.mean, err = p.PrivateMean(ctx, mean); err != nil {
			return err
		}
		for h := range r.mean {
			r.mean[h] *= float64(p.N) // the sum
		}
		if _, err = p.DistanceQuantile(ctx, distances, centroids, 2*math.Sqrt(float64(p.D)), 0.5); err != nil {
			return err
		}
		frame, err := p.ReleaseFrame(ctx, marginals)
		if err != nil {
			return err
		}
		r.marginals = append(frame.Lo, frame.Hi...)
		o := staged.NewOffsets(p.Pool(), len(radius), p.D, p.FractionBits)
		r.sums, r.counts, err = p.RelativeRound(ctx, o, round, centroids, radius, scales)
		return err
	})
	return r
}

// TestWeightedSensitivities adds an extreme record of some weight, often above the cap, to every release, and measures
// the change before noise: it is at most that of a record which counts for one, and not nothing.
func TestWeightedSensitivities(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	const n, k, d = 400, 3, 4
	for _, weight := range []float64{0.001, 0.3, 1, 50} {
		p := datasettest.GridPanels(rng, n+1, d)
		p.Set(n, []float32{1, -1, -1, 1})
		weights := make([]float64, n+1)
		for i := range weights {
			weights[i] = rng.Float64() * 1.2
		}
		weights[n] = weight
		with, without := datasettest.Part(p), datasettest.Part(p)
		with.Weights = weights
		fewer := p.Slice(0, n)
		without.Points, without.Rows, without.Weights = &fewer, without.Rows[:n], weights[:n]
		radius, scales, centroids := []float64{0.4, 0.9, 2}, make([]staged.Scales, k), make([]float32, k*d)
		for i := range centroids {
			centroids[i] = staged.OnGrid(2*rng.Float64()-1, datasettest.Bits)
		}
		f := stagedtest.PlanOf(t, without, k)
		for j := range scales {
			scales[j] = f.RelativeScales(staged.Share{Gaussian: true, Total: 1}, radius[j], n/k)
		}
		before := release(t, stagedtest.PlanOf(t, without, k), without, centroids, radius, scales, 1)
		after := release(t, stagedtest.PlanOf(t, without, k), with, centroids, radius, scales, 1)
		counts := math.Round(min(weight, 1)*(1<<16)) / (1 << 16)
		if change := distance(before.level, after.level); math.Abs(change-counts) > 1e-5 {
			t.Errorf("weight %v: the counts of a level change by %v", weight, change)
		}
		if change := after.total[0] - before.total[0]; math.Abs(change-counts) > 1 { // whole numbers
			t.Errorf("weight %v: the total changes by %v", weight, change)
		}
		if change := distance(before.mean, after.mean); change > counts*2*(1+1e-4) || change < counts {
			t.Errorf("weight %v: the sum of the records changes by %v of at most %v", weight, change, counts*2)
		}
		cost := 0.0
		for j := range k {
			cost += math.Pow(distance(before.sums[j*d:(j+1)*d], after.sums[j*d:(j+1)*d])/scales[j].Sums, 2)
			cost += math.Pow((after.counts[j]-before.counts[j])/scales[j].Counts, 2)
		}
		if cost > counts*counts*(1+1e-2) || cost == 0 {
			t.Errorf("weight %v: a round costs mu² = %v of at most %v", weight, cost, counts*counts)
		}
	}
}

// TestWeightsAreCopies: without noise to speak of, a round in which each record weighs m thirds is one in which it
// stands m times, a third of each.
func TestWeightsAreCopies(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 54))
	const n, k, d = 500, 4, 3
	p := datasettest.GridPanels(rng, n, d)
	part, copies := datasettest.Part(p), []int(nil)
	for i := range n {
		m := rng.IntN(4)
		part.Weights = append(part.Weights, float64(m)/3)
		for range m {
			copies = append(copies, i)
		}
	}
	many := datasettest.GridPanels(rng, len(copies), d)
	for to, from := range copies {
		many.Set(to, p.Point(from, nil))
	}
	centroids, radius := make([]float32, k*d), []float64{0.5, 0.8, 6, 1.1}
	for i := range centroids {
		centroids[i] = staged.OnGrid(2*rng.Float64()-1, datasettest.Bits)
	}
	scales := []staged.Scales{{1e-3, 1e-3}, {1e-3, 1e-3}, {1e-3, 1e-3}, {1e-3, 1e-3}}
	whole := datasettest.Part(many)
	got := release(t, stagedtest.PlanOf(t, part, k), part, centroids, radius, scales, 1e8)
	whole.Weights = make([]float64, many.N)
	for i := range whole.Weights {
		whole.Weights[i] = 1
	}
	want := release(t, stagedtest.PlanOf(t, whole, k), whole, centroids, radius, scales, 1e8)
	for i, x := range want.sums {
		if math.Abs(got.sums[i]-x/3) > 0.05 { // n grid units, and noise
			t.Errorf("sum %d is %v, a third of the copies' %v", i, got.sums[i], x/3)
		}
	}
	for j, x := range want.counts {
		if math.Abs(got.counts[j]-x/3) > 0.05 {
			t.Errorf("count %d is %v, a third of the copies' %v", j, got.counts[j], x/3)
		}
	}
}
