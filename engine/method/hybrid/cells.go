package hybrid

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// A mean has counts of cells beside it in cellColumns and more, but not many, where all records stand cellSignal
// deviations, and cellEach for each cluster, for the root of a column above the noise of a count: below, the counts
// would tell less than the mean loses, and in fewer columns a grid tells more. They have cellShare of the budget, and
// as many cells, up to 2^cellCuts, which the draws of a guess still fill, as let an average one have more records
// than 1/cellNoise of the noise of its count. The cuts beside the mean are cellWidth deviations of the guessed
// records from it, so that the cells have about as many records each. The constants come from generated sets of 300
// to 5,000 records in 3 to 9 dimensions.
const (
	cellColumns          = 3
	cellSignal, cellEach = 5, 0.7
	cellShare, cellNoise = 0.6, 2
	cellCuts             = 7
	cellWidth            = 0.75
)

// cellsTell says, from public numbers only, that counts of cells about a mean tell more than the mean loses by them.
func (h *plan) cellsTell() bool {
	return h.K > 1 && h.D >= cellColumns && h.D < manyColumns &&
		h.Signal(h.Share) >= max(cellSignal, float64(cellEach*float64(h.K)))*math.Sqrt(float64(h.D))
}

// addCells plans the counts of cells about a mean.
func (h *plan) addCells(o *meanPlan, l staged.Share) {
	o.cuts = min(int(elementary.Log2(cellNoise*h.Signal(l))), cellCuts, h.D*h.FractionBits)
	o.cells = h.AddCounts("cells about the mean", "tree counts per level", l, 1<<o.cuts)
}

// cellCounts are noisy counts of the records of cells: of a frame about a mean, halved along its columns in turn.
// What lies beyond the frame is in its outer cells.
type cellCounts struct {
	counts   []float64
	variance float64 // of their noise
	records  float64 // public number of all
	frame    *staged.Frame
	cuts     int
}

// releaseCells counts the records about a public centre; variance is that of the noise in each of its coordinates.
func (o *meanPlan) releaseCells(ctx context.Context, p *staged.Party, centre []float32, variance float64) (
	c *cellCounts, err error) {
	c = &cellCounts{records: float64(p.N), frame: new(staged.Frame), cuts: o.cuts}
	for _, x := range centre {
		own := guessWidth * (1 - min(math.Abs(float64(x)), guessWall))
		half := 2 * cellWidth * math.Sqrt(float64(own*own)+variance)
		c.frame.Lo, c.frame.Hi = append(c.frame.Lo, float64(x)-half), append(c.frame.Hi, float64(x)+half)
	}
	c.counts, c.variance, err = p.ReleaseCells(ctx, o.cells, o.cuts, c.frame)
	return c, err
}

// of is the cell of a row. rest is room for one.
func (c *cellCounts) of(row, rest []float64) (cell int) {
	for h, x := range row {
		rest[h] = (x - c.frame.Lo[h]) / (c.frame.Hi[h] - c.frame.Lo[h])
	}
	for i := range c.cuts {
		h := i % len(row)
		rest[h] *= 2
		cell <<= 1
		if rest[h] >= 1 {
			rest[h]--
			cell |= 1
		}
	}
	return cell
}

// weigh weighs draws of records so that each cell has the weight that is expected, given its count and the weight that
// it had.
func (c *cellCounts) weigh(w *synopsis.Weighted) {
	cells, before := make([]int, w.Len()), make([]float64, len(c.counts))
	rest, all := make([]float64, w.D), 0.0
	for i, x := range w.Weights {
		cells[i] = c.of(w.Points[i*w.D:(i+1)*w.D], rest)
		before[cells[i]] += x
		all += x
	}
	factor := make([]float64, len(before))
	for cell, x := range before {
		if x > 0 {
			factor[cell] = expectedCount(c.counts[cell], math.Sqrt(c.variance), c.records*x/all) / x
		}
	}
	for i, cell := range cells {
		w.Weights[i] *= factor[cell]
	}
}

// countPrior is the distribution of a count that is expected to be 1, before anything is released: of exponential
// distributions with these means and odds. Most cells have few records, one in ten has a cluster.
var countPrior = [...]struct{ odds, mean float64 }{{0.6, 1.0 / 3}, {0.3, 4.0 / 3}, {0.1, 4}}

// expectedCount is what a count is expected to be, given itself with normal noise and what it was expected to be
// before: the mean of its distribution given the noisy count.
func expectedCount(noisy, deviation, before float64) float64 {
	y := noisy / deviation
	if y > 35 { // the distribution before does not matter
		return noisy
	}
	sum, all := 0.0, 0.0
	for _, l := range countPrior {
		// Of an exponential distribution of mean m a normal one of mean y - 1/m that is cut at 0 is left, with odds that
		// are those of before by its weight.
		m := l.mean * before / deviation
		ratio := millsRatio(y - 1/m)
		odds := l.odds / m * ratio
		sum += float64(odds * (y - 1/m + 1/ratio))
		all += odds
	}
	return deviation * sum / all
}

// millsRatio is the normal distribution function at z over its density there, with relative errors below 1e-10 for z
// below 35, and the same bits on all machines.
func millsRatio(z float64) float64 {
	if z < -3 { // Laplace's continued fraction
		f := -z
		for n := 100; n > 0; n-- {
			f = float64(n)/f - z
		}
		return 1 / f
	}
	term, sum := math.Abs(z), math.Abs(z)
	for i := 3; term > 1e-17*sum; i += 2 {
		term *= z * z / float64(i)
		sum += term
	}
	return float64(math.Sqrt(math.Pi/2)*elementary.Exp(z*z/2)) + math.Copysign(sum, z)
}
