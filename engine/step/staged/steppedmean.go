package staged

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/internal/elementary"
)

// SteppedMean is a planned private mean that is found in steps: each releases the sum of the offsets of all records
// from what the step before has come to, cut to a length that is less from step to step, and so is the noise. The first
// one finds a far corner of the box, the others come close to the many of the records that are there; of the few that
// are farther than the last length it sees the directions alone. All lengths are public (THEOREMS.md T2).
type SteppedMean struct {
	steps []*Release
	radii []float64
}

// meanSteps are the lengths that offsets are cut to, in half diagonals of the box. They come from generated sets of 300
// and 1,000 records in 4 to 16 dimensions at epsilon .01 and .03 (cohort bench floor).
var meanSteps = []float64{0.9, 0.6, 0.4}

// meanClear is how many times the square root of the number of columns all records stand above the noise of a count
// where one sum of whole offsets does: noise then has less than d/400 of the loss.
const meanClear = 20

// AddSteppedMean plans a mean with the whole of l.
func (f *Plan) AddSteppedMean(l Share) *SteppedMean {
	m, steps := new(SteppedMean), meanSteps
	if f.Signal(l) > meanClear*math.Sqrt(float64(f.D)) {
		steps = []float64{1}
	}
	for i, part := range steps {
		radius := part * math.Sqrt(float64(f.D))
		s := f.addRelease("mean", fmt.Sprintf("mean %d: sum of cut offsets of all records", i+1),
			f.Bound("relative sums", radius), l.Part(1/float64(len(steps))), f.D, 2)
		s.Words = f.D
		m.steps, m.radii = append(m.steps, s), append(m.radii, radius)
	}
	return m
}

// Clear says that one sum of whole offsets is enough for the mean.
func (m *SteppedMean) Clear() bool { return len(m.steps) == 1 }

// AddNearMean plans a mean of the offsets of all records from a point near them.
func (f *Plan) AddNearMean(l Share) *Release { return f.AddEqualRound("mean of near offsets", l, 1) }

// NearMean moves a public point on the grid to the mean of all records, whose offsets from it are cut to a radius that
// follows from what was released before.
func (p *Party) NearMean(ctx context.Context, s *Release, point []float32, radius float64) error {
	_, err := p.equalRound(ctx, NewOffsets(p.Pool(), 1, p.D, p.FractionBits), s, point, []float64{radius}, true, nil)
	return err
}

// MeanStep is what one step of a mean has released: the mean of the offsets of all records from a public point, each
// cut to a length, with noise of a known variance in each coordinate.
type MeanStep struct {
	From     []float32
	Radius   float64
	Offset   []float64
	Variance float64
}

// FoundMean is a released mean, the variance of its noise in each coordinate, and the steps that it is found by.
type FoundMean struct {
	Mean     []float64
	Variance float64
	Steps    []MeanStep
}

// SteppedMean releases a mean in steps. A step that comes out farther from the mean so far than the noise of both makes
// it takes its place, else the two are averaged by their noise.
func (p *Party) SteppedMean(ctx context.Context, m *SteppedMean) (*FoundMean, error) {
	found := new(FoundMean)
	for i, s := range m.steps {
		from := make([]float64, p.D)
		copy(from, found.Mean)
		if i > 0 {
			TowardCentre(from, found.Variance)
		}
		at, own := GridRow(from, p.FractionBits), s.Share.Variance(s.Scale/float64(p.N))
		offset, err := p.meanOffset(ctx, s, at, m.radii[i])
		if err != nil {
			return nil, err
		}
		found.add(MeanStep{at, m.radii[i], offset, own})
	}
	return found, nil
}

// add adds a step.
func (f *FoundMean) add(s MeanStep) {
	f.Steps = append(f.Steps, s)
	next := slices.Clone(s.Offset)
	for h := range next {
		next[h] += float64(s.From[h])
	}
	if len(f.Steps) == 1 {
		f.Mean, f.Variance = next, s.Variance
		return
	}
	trust := max(f.Variance/(f.Variance+s.Variance),
		1-float64(len(next))*s.Variance/elementary.SquaredDistance(next, f.Mean))
	for h, x := range next {
		f.Mean[h] += float64(trust * (x - f.Mean[h]))
	}
	f.Variance = float64((1-trust)*(1-trust)*f.Variance) + float64(trust*trust*s.Variance)
}

// meanOffset releases the sum of the offsets of all records from a public point on the grid, each cut to a length, and
// divides it by the public n, or by their total weight.
func (p *Party) meanOffset(ctx context.Context, s *Release, from []float32, radius float64) ([]float64, error) {
	mean, err := p.Release(ctx, s, []Group{{p.D, p.FractionBits, s.Scale}}, func(words []int64) error {
		return NewOffsets(p.Pool(), 1, p.D, p.FractionBits).add(ctx, p.Records, p.Weights, from, []float64{radius},
			offsetSums{words, make([]int64, 1)})
	})
	for h := range mean {
		mean[h] /= float64(p.N)
	}
	return mean, err
}

// TowardCentre shrinks a mean toward the centre of the box by the positive part of 1 - d variance/|mean|^2, variance
// being that of its noise in each coordinate (James and Stein).
func TowardCentre(mean []float64, variance float64) {
	factor := max(1-float64(len(mean))*variance/elementary.SquaredLength(mean), 0)
	for h := range mean {
		mean[h] *= factor
	}
}
