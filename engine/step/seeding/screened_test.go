package seeding

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/kernels"
)

// plainly is PlusPlus of one part by Try alone.
func plainly(p *Part, k int, uniform func() float64) (centres []float32, potentials []float64) {
	d := p.points.D
	p.Expect(k)
	for len(centres) < k*d {
		var rows []float32
		for _, pick := range p.Candidates(uniform) {
			rows = append(rows, p.Picked(pick)...)
		}
		potential := []float64{0}
		chosen := Best(p.Try(rows), potential)
		p.Add(chosen)
		potentials = append(potentials, potential[0])
		centres = append(centres, rows[chosen*d:(chosen+1)*d]...)
	}
	return centres, potentials
}

// TestStepsByBoundsChooseTheSameCentres compares with steps that make every sum, on blobs and on one cloud, with
// records that are there several times, and for a part that begins anew.
func TestStepsByBoundsChooseTheSameCentres(t *testing.T) {
	const n, d, k = 4100, 67, 300
	trials := Trials(k)
	for seed, spread := range []float64{0.01, 0.3} {
		points := blobs(rand.New(rand.NewPCG(8, uint64(seed))), n, d, 1+30*(1-seed), spread)
		for i := range n / 5 { // repeat the first records
			to, from := n-1-i, i
			for h := range d {
				at := func(i int) int { return (i/kernels.Lanes*d+h)*kernels.Lanes + i%kernels.Lanes }
				points.Data[at(to)] = points.Data[at(from)]
			}
		}
		want, potentials := plainly(NewPart(points, trials, nil), k, rand.New(rand.NewPCG(9, 9)).Float64)
		p := NewPart(points, trials, together)
		for range 2 { // the second time after Forget
			if got := PlusPlus([]*Part{p}, k, trials, rand.New(rand.NewPCG(9, 9)).Float64); !slices.Equal(got, want) {
				t.Fatalf("spread %g: other centres than by every sum", spread)
			}
			if p.Potential() != potentials[k-1] {
				t.Fatalf("spread %g: potential %g, want %g", spread, p.Potential(), potentials[k-1])
			}
			if s := p.screening; s != nil && s.whole {
				t.Errorf("spread %g: the last step made every sum", spread)
			}
			p.Forget()
		}
		ruledOut, screened := stepsAfterBegin(t, points, want[:200*d], trials)
		if screened && seed == 1 && ruledOut == 0 { // blobs are as small as what bounds leave open
			t.Errorf("spread %g: no candidate was ruled out", spread)
		}
	}
}

// stepsAfterBegin compares the steps after Begin and says how many candidates bounds ruled out, and whether there are
// bounds.
func stepsAfterBegin(t *testing.T, points kernels.Panels, rows []float32, trials int) (ruledOut int, screened bool) {
	t.Helper()
	centres := kernels.NewCentroids(len(rows)/points.D, points.D)
	centres.Set(rows)
	plain, bounded := NewPart(points, trials, nil), NewPart(points, trials, nil)
	bounded.Expect(300)
	plain.Begin(centres)
	bounded.Begin(centres)
	rng := rand.New(rand.NewPCG(4, 4))
	for step := range 12 {
		var rows []float32
		for range trials {
			rows = append(rows, plain.recordAt(rng.IntN(points.N), nil)...)
		}
		want, got := plain.Try(rows), bounded.Least(rows)
		best := slices.Index(want, slices.Min(want))
		for a, x := range got {
			if math.IsInf(x, 1) && want[a] > want[best] {
				ruledOut++
			} else if x != want[a] {
				t.Fatalf("step %d: candidate %d leaves %g, want %g", step, a, x, want[a])
			}
		}
		plain.Add(best)
		bounded.Add(best)
		if !slices.Equal(plain.nearest, bounded.nearest) {
			t.Fatalf("step %d: other distances", step)
		}
	}
	return ruledOut, bounded.screening != nil
}
