package hybrid

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// places are where the many of the records may be, before anything is released: in each column, so far from the centre
// of the box (a deviation), with those odds, and at guessWall if that is beyond it. Bounds that fit the records have
// them about the centre; a heavy corner is as far from it as it can be, in most columns at the wall. They come from
// generated sets of 300 and 1,000 records in 4 to 30 dimensions at epsilon .01 and .03 (cohort bench floor): with more
// odds of the wall corners lose less, and many clusters of 300 records that the noise hides lose more.
var places = [...]struct{ far, odds float64 }{{0.12, 0.72}, {0.3, 0.15}, {0.55, 0.07}, {0.8, 0.03}, {2, 0.03}}

// A place is drawn by a walk, by Metropolis' rule, of placeMoves moves for each, after placeFirst places that are left
// out: the many may be beyond what a step of the mean was cut to, so that none of its sums, and no average of them,
// is about where they are, but all together tell it. Every third move is along the line from the centre of the box,
// by a factor whose logarithm has the deviation placeAlong, as sums that are cut tell directions best; the others go
// anywhere, by deviations of the noise from placeLong on down by as much as e^placeShort, as a walk in d columns moves
// by their root.
const (
	placeDraws, placeFirst = 400, 100
	placeWork              = 5000 // moves times columns: more would take longer than what else there is to do
	placeAlong             = 0.3
	placeLong, placeShort  = 4.5, 3
	placeNoise             = 0.5 // deviation of the noise at most: then the box bounds a place
)

// placeMoves is the number of moves for each draw.
func placeMoves(d int) int { return min(10+3*d, 3+placeWork/d) }

// atWall is where the many are for a place, which may be beyond guessWall.
func atWall(place, out []float64) {
	for h, x := range place {
		out[h] = min(max(x, -guessWall), guessWall)
	}
}

// draws are places, rows of d numbers, as likely as they are given the steps of the mean. start is where the walk
// begins, variance the least noise of a step that tells of the place.
func draws(steps []staged.MeanStep, start []float64, variance float64, stream *privacy.Stream) []float64 {
	d := len(start)
	at, next, room := make([]float64, d), make([]float64, d), make([]float64, d)
	for h, x := range start {
		at[h] = x / (1 - guessFew)
	}
	likely := likelihood(steps, at, room)
	long := placeLong * min(math.Sqrt(variance), placeNoise) / math.Sqrt(float64(d))
	out := make([]float64, 0, placeDraws*d)
	for draw := range placeFirst + placeDraws {
		for move := range placeMoves(d) {
			stretch := 0.0 // logarithm of what a move makes of a volume
			if move%3 == 2 {
				along := float64(placeAlong * stream.Normal())
				stretch = float64(float64(d) * along)
				for h, x := range at {
					next[h] = x * elementary.Exp(along)
				}
			} else {
				by := long * elementary.Exp(-placeShort*stream.Float64())
				for h, x := range at {
					next[h] = x + float64(by*stream.Normal())
				}
			}
			l := likelihood(steps, next, room)
			if odds := l - likely + stretch; odds >= 0 || stream.Float64() < elementary.Exp(odds) {
				at, next, likely = next, at, l
			}
		}
		if draw >= placeFirst {
			atWall(at, room)
			out = append(out, room...)
		}
	}
	return out
}

// likelihood is the logarithm, but for a constant, of how likely a place is: that it was there before anything is
// released, and that the steps of a mean come out as they did. room is for d numbers.
func likelihood(steps []staged.MeanStep, place, room []float64) float64 {
	d, square, most := float64(len(place)), elementary.SquaredLength(place), math.Inf(-1)
	var logs [len(places)]float64
	for i, p := range places {
		logs[i] = elementary.Log(p.odds) - float64(d*elementary.Log(p.far)) - square/(2*p.far*p.far)
		most = max(most, logs[i])
	}
	odds := 0.0
	for _, l := range logs {
		odds += elementary.Exp(l - most)
	}
	atWall(place, room)
	width := 0.0 // squared
	for _, x := range room {
		own := guessWidth * (1 - math.Abs(x))
		width += float64(own * own)
	}
	log := most + elementary.Log(odds)
	for i := range steps {
		log -= missed(&steps[i], room, width) / (2 * steps[i].Variance)
	}
	return log
}

// missed is the squared distance of what a step released from what is expected of it where the many are at a place,
// that squared width about it, and the few about the centre of the box: an offset that is longer than what it is cut
// to keeps its direction. Of many records these are as if all had the root mean square distance.
func missed(s *staged.MeanStep, place []float64, width float64) (square float64) {
	many, few := width, float64(guessWidth*guessWidth*float64(len(place)))
	for h, x := range place {
		from := float64(s.From[h])
		many += float64((x - from) * (x - from))
		few += float64(from * from)
	}
	keptMany := (1 - guessFew) * min(1, s.Radius/math.Sqrt(many))
	keptFew := guessFew * min(1, s.Radius/math.Sqrt(few))
	for h, x := range place {
		from := float64(s.From[h])
		e := s.Offset[h] - float64(keptMany*(x-from)) + float64(keptFew*from)
		square += float64(e * e)
	}
	return square
}
