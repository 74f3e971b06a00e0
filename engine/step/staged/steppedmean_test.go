package staged_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
	"github.com/cohort-engine/cohort/kernels"
)

// squeezedTo are records that fill a part of the box, of that half width about a place in each column.
func squeezedTo(rng *rand.Rand, n, d int, place, width float64) *kernels.Panels {
	p, row := kernels.NewPanels(n, d), make([]float32, d)
	for i := range n {
		for h := range row {
			row[h] = staged.OnGrid(place+width*(2*rng.Float64()-1), datasettest.Bits)
		}
		p.Set(i, row)
	}
	return p
}

// meanErrors are the mean squared errors of means of records about a place, found in steps and by one sum, of a budget
// of mu for each, and the one that the steps' variance says.
func meanErrors(t *testing.T, records *kernels.Panels, mu, place float64) (steps, one, said float64) {
	const times = 40
	f := stagedtest.Plan(t, records, 2)
	l := staged.Share{Gaussian: true, Total: mu * mu}
	var stepped [times]*staged.SteppedMean
	var sums [times]*staged.Release
	for i := range times {
		stepped[i], sums[i] = f.AddSteppedMean(l), f.AddMean(l)
	}
	stagedtest.OnParty(t, f, records, func(ctx context.Context, p *staged.Party) error {
		for i := range times {
			found, err := p.SteppedMean(ctx, stepped[i])
			if err != nil {
				return err
			}
			whole, err := p.PrivateMean(ctx, sums[i])
			if err != nil {
				return err
			}
			for h, x := range found.Mean {
				steps += (x - place) * (x - place) / times
				one += (whole[h] - place) * (whole[h] - place) / times
			}
			said += found.Variance * float64(len(found.Mean)) / times
		}
		return nil
	})
	return steps, one, said
}

// TestSteppedMean: a mean in steps finds a corner of the box and the centre with less than .6 of the squared error of
// one sum that has the same budget, 40 times each over a fixed seed, and says how much noise it has; with a strong
// signal it is one sum of whole offsets.
func TestSteppedMean(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	for _, c := range []struct {
		d            int
		signal       float64
		place, width float64
	}{{8, 20, -0.8, 0.1}, {16, 30, 0.7, 0.1}, {8, 20, 0, 0.4}} {
		records := squeezedTo(rng, 1000, c.d, c.place, c.width)
		steps, one, said := meanErrors(t, records, c.signal/1000, c.place)
		if steps > 0.6*one {
			t.Errorf("%+v: squared error %.3g in steps, %.3g by one sum", c, steps, one)
		}
		if steps > 1.5*said || steps < said/1.5 {
			t.Errorf("%+v: squared error %.3g, said to be %.3g", c, steps, said)
		}
	}
	records := squeezedTo(rng, 1000, 4, 0.5, 0.5)
	steps, one, said := meanErrors(t, records, 10, 0.5)
	if said > 1e-5 || math.Abs(steps-one) > 0.1*one {
		t.Errorf("with little noise: squared error %.3g in steps, %.3g by one sum, noise %.3g", steps, one, said)
	}
}

// TestOffsetIsCut: a record at a corner of the box moves the first sum of a mean in steps by the planned length, in the
// same noise, and no farther.
func TestOffsetIsCut(t *testing.T) {
	const n, d = 500, 9
	records := squeezedTo(rand.New(rand.NewPCG(75, 76)), n+1, d, 0, 0.2)
	records.Set(n, []float32{1, -1, 1, 1, -1, 1, 1, -1, 1})
	without := records.Slice(0, n)
	var sums [2][]float64
	for i, p := range []*kernels.Panels{&without, records} {
		f := stagedtest.Plan(t, &without, 2) // n is public and the same
		m := f.AddSteppedMean(staged.Share{Gaussian: true, Total: 0.01})
		stagedtest.OnParty(t, f, p, func(ctx context.Context, p *staged.Party) (err error) {
			sums[i], err = p.FirstOffset(ctx, m)
			return err
		})
	}
	if change := n * distance(sums[0], sums[1]); change > 0.9*3 || change < 0.89*3 {
		t.Errorf("the sum changes by %v, offsets are cut to %v", change, 0.9*3)
	}
}

// TestSteppedMeanIsPrivate: a record moves each sum by its length at most, in the units of the noise by the root of its
// share of the budget.
func TestSteppedMeanIsPrivate(t *testing.T) {
	f := stagedtest.Plan(t, squeezedTo(rand.New(rand.NewPCG(73, 74)), 100, 6, 0, 1), 2)
	f.AddSteppedMean(staged.Share{Gaussian: true, Total: 0.01})
	total, before := 0.0, 1.0
	for _, r := range f.Releases {
		e := r.Entries[0]
		radius := e.Bound.Shape.Radius
		if e.Sensitivity != radius || radius >= before*math.Sqrt(6) {
			t.Errorf("%s: sensitivity %v, offsets cut to %v", r.Name, e.Sensitivity, radius)
		}
		before = radius / math.Sqrt(6)
		total += math.Pow(e.Sensitivity/e.Scale, 2)
	}
	if len(f.Releases) != 3 || math.Abs(total-0.01) > 1e-9 {
		t.Errorf("%d sums, squared mu %v in all", len(f.Releases), total)
	}
}
