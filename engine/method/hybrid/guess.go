package hybrid

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// guess is what a weak signal tells of where the records are: a released mean with noise of a known variance in each
// coordinate, and perhaps the distances of the records from a centre. Of all sets of k points that has the least
// expected loss which is the best for records as they may be, given what was released: k-means on draws of these.
type guess struct {
	mean      []float64
	variance  float64
	centre    []float64
	distances *staged.Distances // nil where they are not released
	cells     *cellCounts       // nil where they are not released
}

// places are where the many of the records may be, before anything is released: in each column, so far from the centre
// of the box (a deviation), with those odds. Bounds that fit the records have them about the centre; a heavy corner is
// as far from it as it can be.
var places = [...]struct{ far, odds float64 }{{0.12, 0.7}, {0.3, 0.15}, {0.55, 0.1}, {0.8, 0.05}}

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

// odds are those of the places, given the mean. Their sum is total.
func (g *guess) odds() (odds [len(places)]float64, total float64) {
	d, square, most := float64(len(g.mean)), elementary.SquaredLength(g.mean), math.Inf(-1)
	for i, p := range places {
		v := float64(p.far*p.far) + g.variance
		odds[i] = elementary.Log(p.odds) - float64(d*elementary.Log(v)/2) - square/(2*v)
		most = max(most, odds[i])
	}
	for i := range odds {
		odds[i] = elementary.Exp(odds[i] - most)
		total += odds[i]
	}
	return odds, total
}

// records are draws of a record, for k points.
func (g *guess) records(k int, stream *privacy.Stream) *synopsis.Weighted {
	w, row := &synopsis.Weighted{D: len(g.mean)}, make([]float64, len(g.mean))
	odds, total := g.odds()
	for range min(max(guessEach*k, guessLeast), guessMost) {
		u, i := stream.Float64()*total, 0
		for i < len(odds)-1 && u >= odds[i] {
			u -= odds[i]
			i++
		}
		g.draw(row, places[i].far, stream)
		w.Append(row, 1)
	}
	g.weigh(w)
	if g.cells != nil {
		g.cells.weigh(w)
	}
	return w
}

// draw draws a record where the many are so far from the centre of the box before the mean is known: their place given
// the mean is normal about a part of it. That mean is of all records, and the few are about the centre.
func (g *guess) draw(row []float64, far float64, stream *privacy.Stream) {
	known := far * far / (float64(far*far) + g.variance)
	doubt, few := math.Sqrt(known*g.variance), stream.Float64() < guessFew
	for h := range row {
		place := (float64(known*g.mean[h]) + float64(doubt*stream.Normal())) / (1 - guessFew)
		place = min(max(place, -guessWall), guessWall)
		if few {
			place = 0
		}
		x := place + float64(guessWidth*(1-math.Abs(place))*stream.Normal())
		row[h] = min(max(x, -1), 1)
	}
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
