package hybrid

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// TestMillsRatio compares it with the error function of package math.
func TestMillsRatio(t *testing.T) {
	for z := -12.0; z <= 35; z += 1.0 / 64 {
		want := math.Erfc(-z/math.Sqrt2) / 2 / (math.Exp(-z*z/2) / math.Sqrt(2*math.Pi))
		if got := millsRatio(z); math.Abs(got/want-1) > 1e-10 {
			t.Fatalf("at %g: %.15g, want %.15g", z, got, want)
		}
	}
}

// TestExpectedCount compares it with sums over the counts that there may be.
func TestExpectedCount(t *testing.T) {
	odds, mean := 0.0, 0.0
	for _, l := range countPrior {
		odds, mean = odds+l.odds, mean+l.odds*l.mean
	}
	if math.Abs(odds-1) > 1e-12 || math.Abs(mean-1) > 0.01 {
		t.Errorf("odds of %g in all, a mean of %g", odds, mean)
	}
	for _, c := range []struct{ noisy, deviation, before float64 }{
		{0, 10, 5}, {-40, 10, 5}, {30, 10, 5}, {200, 10, 5}, {33, 1, 40}, {3, 10, 200}, {-5, 50, 0.5},
	} {
		sum, all := 0.0, 0.0
		step := min(c.before, c.deviation) / 400
		for x := step / 2; x < max(c.noisy, 0)+12*c.deviation; x += step {
			density := 0.0
			for _, l := range countPrior {
				m := l.mean * c.before
				density += l.odds / m * math.Exp(-x/m)
			}
			density *= math.Exp(-(c.noisy - x) * (c.noisy - x) / (2 * c.deviation * c.deviation))
			sum, all = sum+x*density, all+density
		}
		if got, want := expectedCount(c.noisy, c.deviation, c.before), sum/all; math.Abs(got/want-1) > 1e-3 {
			t.Errorf("%+v: %.6g, want %.6g", c, got, want)
		}
	}
	for _, noisy := range []float64{-1e6, 34.9, 35.1, 1e9} {
		if got := expectedCount(noisy, 1, 0.01); !(got > 0) || got > max(noisy, 1) {
			t.Errorf("of %g with noise 1, where .01 was expected: %g", noisy, got)
		}
	}
}

// TestCellsOfRecords: the released counts are those of the cells that draws are weighed by, one record less takes one
// from one cell, and a frame about a corner of the box has a width.
func TestCellsOfRecords(t *testing.T) {
	const n, d, cuts = 3000, 3, 5
	rng := rand.New(rand.NewPCG(81, 82))
	records, row := kernels.NewPanels(n, d), make([]float32, d)
	for i := range n {
		for h := range row {
			row[h] = staged.OnGrid(2*rng.Float64()-1, datasettest.Bits)
		}
		records.Set(i, row)
	}
	released := func(records *kernels.Panels, centre ...float32) (c *cellCounts) {
		f := stagedtest.Plan(t, records, 2)
		o := &meanPlan{cuts: cuts, cells: f.AddCounts("cells about the mean", "tree counts per level",
			staged.Share{Gaussian: true, Total: 1e4}, 1<<cuts)}
		stagedtest.OnParty(t, f, records, func(ctx context.Context, p *staged.Party) (err error) {
			c, err = o.releaseCells(ctx, p, centre, 0)
			return err
		})
		return c
	}
	c := released(records, -0.25, 0.5, 0)
	part := records.Slice(0, n-1)
	changed := 0.0
	for i, x := range released(&part, -0.25, 0.5, 0).counts {
		changed += math.Abs(math.Round(c.counts[i]) - math.Round(x))
	}
	if changed != 1 {
		t.Errorf("without a record counts change by %v in all", changed)
	}
	if f := released(records, 1, -1, 1).frame; f.Hi[0]-f.Lo[0] < 0.1 {
		t.Errorf("the frame about a corner is %v wide", f.Hi[0]-f.Lo[0])
	}
	counts, x, rest := make([]float64, 1<<cuts), make([]float64, d), make([]float64, d)
	for i := range n {
		for h, v := range records.Point(i, row) {
			x[h] = float64(v)
		}
		counts[c.of(x, rest)]++
	}
	used := 0
	for i, want := range counts {
		if math.Abs(c.counts[i]-want) > 1 { // a record may lie within a step of the grid beside a cut
			t.Errorf("cell %d: %g records, want %g", i, c.counts[i], want)
		}
		if want > 0 {
			used++
		}
	}
	if used != 1<<cuts || c.variance > 1e-3 {
		t.Errorf("%d cells have records, noise of variance %g", used, c.variance)
	}
}

// TestWeighCells: with little noise the draws of a cell weigh as much as its records, with much noise as before.
func TestWeighCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(83, 84))
	for _, deviation := range []float64{0.01, 1e6} {
		w := &synopsis.Weighted{D: 2}
		for range 400 {
			w.Append([]float64{rng.Float64() - 0.5, rng.Float64() - 0.5}, 1)
		}
		c := &cellCounts{counts: []float64{700, 100, 0, 200}, variance: deviation * deviation, records: 1000,
			frame: &staged.Frame{Lo: []float64{-1, -1}, Hi: []float64{1, 1}}, cuts: 2}
		before := make([]float64, 4)
		rest := make([]float64, 2)
		for i := range w.Weights {
			before[c.of(w.Points[2*i:2*i+2], rest)] += 1000.0 / 400
		}
		c.weigh(w)
		after, all := make([]float64, 4), 0.0
		for i, x := range w.Weights {
			after[c.of(w.Points[2*i:2*i+2], rest)] += x
			all += x
		}
		for cell := range after {
			want := c.counts[cell]
			if deviation > 1 {
				want = before[cell] * all / 1000
			}
			if math.Abs(after[cell]-want) > 0.01*all {
				t.Errorf("noise %g, cell %d: %g, want %g", deviation, cell, after[cell], want)
			}
		}
	}
}

// TestCellsOfPlan: a mean has cells where the signal is enough for them, and all releases together the whole budget.
func TestCellsOfPlan(t *testing.T) {
	for _, c := range []struct {
		n, d, k int
		epsilon float64
		cuts    int
	}{{5000, 4, 5, 0.01, 5}, {1000, 4, 2, 0.03, 4}, {1000, 8, 2, 0.03, 4}, {1000, 4, 5, 0.01, 0}, {1000, 4, 20, 0.03, 0},
		{1000, 3, 20, 0.3, 7}, {5000, 30, 5, 0.03, 0}} {
		h := meanPlanOf(t, c.n, c.d, c.k, datasettest.Bits, c.epsilon)
		total := 0.0
		for _, r := range h.Releases {
			total += math.Pow(r.Entries[0].Sensitivity/r.Entries[0].Scale, 2)
		}
		if h.mean.cuts != c.cuts || (h.mean.cells != nil) != (c.cuts > 0) || math.Abs(total/h.Share.Total-1) > 1e-6 {
			t.Errorf("%+v: %d cuts, %.6g of the budget", c, h.mean.cuts, total/h.Share.Total)
		}
	}
}

// TestCellsOfCoarseGrid: no column is cut more often than its grid has halves.
func TestCellsOfCoarseGrid(t *testing.T) {
	if h := meanPlanOf(t, 5000, 3, 5, 1, 1); h.mean.cuts != 3 {
		t.Errorf("three columns with one fraction bit have %d cuts", h.mean.cuts)
	}
}

// meanPlanOf is the plan of a mean.
func meanPlanOf(t *testing.T, n, d, k, fractionBits int, epsilon float64) *plan {
	t.Helper()
	shape := dataset.Part{Points: dataset.Shape(n, *box(d), fractionBits).Points, FractionBits: fractionBits}
	job := &Job{Branch: "mean", Problem: protocol.Problem{Clients: []dataset.Part{shape}, Bounds: *box(d), K: k,
		Budget: privacy.Budget{Epsilon: epsilon, Delta: -1}}}
	h := planOf(t, job)
	return h
}
