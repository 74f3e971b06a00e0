package hybrid

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// guess is what a weak signal tells of where the records are: a mean that was released in steps, with noise of a known
// variance in each coordinate, and perhaps the distances of the records from a centre. Of all sets of k points that has
// the least expected loss which is the best for records as they may be, given what was released: k-means on draws of
// these.
type guess struct {
	steps     []staged.MeanStep
	variance  float64
	centre    []float64         // public, from which distances and cells are
	distances *staged.Distances // nil where they are not released
	cells     *cellCounts       // nil where they are not released
}

const (
	// guessWidth is the deviation of records in a column about the centre of the box. About another place it is less by
	// the ratio of the distances to the wall.
	guessWidth = 0.42
	// guessFew is the part of records that are anywhere in the box, apart from the many.
	guessFew = 0.2
	// guessWall is how near the place of the many is to a wall at most, in a column.
	guessWall = 0.9
	// guessEach is the number of draws for each point, guessLeast and guessMost that of all.
	guessEach, guessLeast, guessMost = 150, 600, 3000
	// guessStarts is the number of starts of k-means on the draws.
	guessStarts = 3
	// guessParts is the number of parts, of as many records each, that the released distances are divided into.
	guessParts = 10
)

// records are draws of a record, for k points: of places where the many may be, and of the few.
func (g *guess) records(k int, stream *privacy.Stream) *synopsis.Weighted {
	d := len(g.centre)
	w, row := &synopsis.Weighted{D: d}, make([]float64, d)
	found := draws(g.steps, g.centre, g.variance, stream)
	for i := range min(max(guessEach*k, guessLeast), guessMost) {
		at := i % placeDraws * d
		few := stream.Float64() < guessFew
		for h, place := range found[at : at+d] {
			if few {
				place = 0
			}
			x := place + float64(guessWidth*(1-math.Abs(place))*stream.Normal())
			row[h] = min(max(x, -1), 1)
		}
		w.Append(row, 1)
	}
	g.weigh(w)
	if g.cells != nil {
		g.cells.weigh(w)
	}
	return w
}

// weigh weighs the draws so that they are as far from the centre as the records, unless the noise hides how far these
// are: the same part of all weight is in each part of the distances.
func (g *guess) weigh(w *synopsis.Weighted) {
	if g.distances == nil || g.distances.Noise > farNoise {
		return
	}
	part, draws := make([]int, w.Len()), [guessParts]float64{}
	var ends [guessParts - 1]float64
	for i := range ends {
		ends[i] = g.distances.Quantile(float64(i+1) / guessParts)
	}
	for i := range part {
		x := math.Sqrt(elementary.SquaredDistance(w.Points[i*w.D:(i+1)*w.D], g.centre))
		for part[i] < len(ends) && x > ends[part[i]] {
			part[i]++
		}
		draws[part[i]]++
	}
	for i, at := range part {
		w.Weights[i] = float64(w.Len()) / guessParts / draws[at]
	}
}
