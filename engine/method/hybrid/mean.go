package hybrid

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// meanPlan is the plan of the branch for a signal too weak for clusters.
type meanPlan struct {
	mean      *staged.SteppedMean
	distances *staged.Release // nil where its noise would hide the records
	cells     *staged.Release // counts of 2^cuts cells about the mean, nil where noise would hide them
	cuts      int
}

// certain is by how many standard deviations the squared length of one mean, which is the whole answer, is to exceed
// what noise alone has (d variances, and a deviation of root 2d of them) before it leaves the centre of the box: what
// noise hides is no worse than the centre. Of k points, the mean they are around may be wrong.
const certain = 3

// histogramShare is the share of the histogram of distances beside one mean.
const histogramShare = 0.1

// tooWeak is the rule, from public numbers only, for one mean in place of clusters: that their signal is too weak, or
// that counts of cells about a mean tell as much as a tree of as weak a signal, and more where the records are in a
// part of the box: below 6 deviations for each cluster, from 20 to 120, as more clusters are too many for so few cells.
func (h *plan) tooWeak() bool {
	signal := h.Signal(h.Share)
	return signal < h.leastSignal() || h.cellsTell() && signal < min(max(6*float64(h.K), 20), 120)
}

// leastSignal is what k clusters need of n mu, the number of standard deviations by which all records stand above the
// noise of a count: for one cluster, which is a mean, 24 for the root of each column; in many columns, where fewer
// may be measured and k may be no worse than half of it, .4k+7.7 for the root of each; in four columns and more
// (4k/3+3) min((d-3.8)^(3/4), 2.2 (d-3.8)^(1/2)), and at least 4k-3, and 7, times the cube root of d/4; below, where a
// tree finds many clusters as well, 2.5k from 3 to 8. The constants come from generated sets of 300 to 5,000 records in
// 2 to 30 dimensions (cohort bench floor).
func (h *plan) leastSignal() float64 {
	d, k := float64(h.D), float64(h.K)
	switch {
	case h.K == 1:
		return 24 * math.Sqrt(d)
	case h.D >= manyColumns:
		return (0.4*k + 7.7) * math.Sqrt(d)
	case h.D <= 3:
		return min(max(2.5*k, 3), 8)
	}
	return max((4*k/3+3)*min(elementary.Pow(d-3.8, 0.75), 2.2*math.Sqrt(d-3.8)),
		max(4*k-3, 7)*elementary.Pow(d/4, 1.0/3))
}

func (h *plan) addMean() *meanPlan {
	o, mean := new(meanPlan), h.Share
	histogram := mean.Part(histogramShare)
	far := h.K > 1 && h.Signal(histogram) > 12
	if far {
		mean = mean.Part(1 - histogramShare)
	}
	cells := mean.Part(cellShare)
	near := h.cellsTell()
	if near {
		mean = mean.Part(1 - cellShare)
	}
	o.mean = h.AddSteppedMean(mean)
	if far {
		o.distances = h.AddDistances("the mean", histogram)
	}
	if near {
		h.addCells(o, cells)
	}
	if h.K == 1 {
		return o // as was asked
	}
	around := "and points around it that no record has chosen"
	if o.cells != nil {
		around = "and points around it that the counts of a few cells tell"
	}
	h.Doubts = append(h.Doubts, "the budget is too small for clusters of so few records: the answer is one private mean, "+
		around+"; more records or a larger epsilon would help")
	return o
}

// run is the branch for a weak signal: one private mean, counts of cells about it, and from these, for nothing, the
// points that are best for where the records may be (guess). All but the sums, the histogram and the counts is
// post-processing.
func (o *meanPlan) run(ctx context.Context, p *staged.Party) (centroids []float32, err error) {
	released, err := p.SteppedMean(ctx, o.mean)
	if err != nil {
		return nil, err
	}
	g := &guess{steps: released.Steps, variance: released.Variance}
	g.centre = slices.Clone(released.Mean)
	noise := g.variance
	if p.K == 1 {
		noise *= 1 + certain*math.Sqrt(2/float64(p.D))
	}
	staged.TowardCentre(g.centre, noise)
	centre := staged.GridRow(g.centre, p.FractionBits)
	if o.distances != nil {
		if g.distances, err = p.ReleaseDistances(ctx, o.distances, centre, 2*math.Sqrt(float64(p.D))); err != nil {
			return nil, err
		}
	}
	if o.cells != nil {
		if g.cells, err = o.releaseCells(ctx, p, centre, g.variance); err != nil {
			return nil, err
		}
	}
	if p.K == 1 {
		return centre, nil
	}
	found, err := protocol.Once(p.Party, "guess", 0, func() (*synopsis.Solution, error) {
		stream, how := p.Public.Stream(int(protocol.Server), 0, "guess"), p.Searching
		how.Starts, how.Swaps = cmp.Or(how.Starts, guessStarts), -1
		return synopsis.Search(ctx, p.Pool(), g.records(p.K, stream), p.K, how, stream)
	})
	if err != nil {
		return nil, err
	}
	return staged.GridRow(found.Centers, p.FractionBits), nil
}

// meanVariance is the variance of the noise in each coordinate of a released mean.
func meanVariance(mean *staged.Release, p *staged.Party) float64 {
	return mean.Share.Variance(mean.Scale / float64(p.N))
}
