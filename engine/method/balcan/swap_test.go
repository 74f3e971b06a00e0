package balcan

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

// directLoss is the loss of centres in O(nk).
func directLoss(p *kernels.Panels, centers []float32, kind lossKind) float64 {
	loss := 0.0
	for i := range p.N {
		x := p.Point(i, nil)
		best := math.Inf(1)
		for j := 0; j < len(centers); j += p.D {
			s := 0.0
			for h := range p.D {
				t := float64(x[h]) - float64(centers[j+h])
				s += t * t
			}
			best = min(best, s)
		}
		if !kind.squared {
			best = math.Sqrt(best)
		}
		if kind.cap > 0 {
			best = min(best, float64(kind.cap))
		}
		loss += best
	}
	return loss
}

// TestSwapper compares the loss after every exchange with the direct form.
func TestSwapper(t *testing.T) {
	ctx, pool := context.Background(), stagedtest.Pool(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, kind := range []lossKind{{}, {squared: true}, {squared: true, cap: 0.25}} {
		for _, q := range []int{1, 3, 5} {
			const n, k, m = 5000, 4, 9
			p := datasettest.GridPanels(rng, n, q)
			candidates, centers := make([]float32, m*q), make([]float32, k*q)
			for i := range candidates {
				candidates[i] = staged.OnGrid(2*rng.Float64()-1, datasettest.Bits)
			}
			for i := range centers {
				centers[i] = staged.OnGrid(2*rng.Float64()-1, datasettest.Bits)
			}
			w := newSwapper(pool, p, candidates, k, kind)
			if got, want := w.set(centers), directLoss(p, centers, kind); math.Abs(got-want) > 1e-5*want {
				t.Errorf("q=%d: loss %v, directly %v", q, got, want)
			}
			after := make([]float64, m*k)
			if err := w.losses(ctx, after); err != nil {
				t.Fatal(err)
			}
			for c := range m {
				for j := range k {
					exchanged := append([]float32(nil), centers...)
					copy(exchanged[j*q:], candidates[c*q:(c+1)*q])
					if got, want := after[c*k+j], directLoss(p, exchanged, kind); math.Abs(got-want) > 1e-5*want {
						t.Errorf("q=%d: candidate %d for centre %d gives %v, directly %v", q, c, j, got, want)
					}
				}
			}
		}
	}
}

// TestSwapScoreSensitivity adds one record in front of the others, which moves
// every other to another place in the sums: every score falls, by at most the
// cap, exactly; and by the same as when it is added at the end.
func TestSwapScoreSensitivity(t *testing.T) {
	ctx, pool := context.Background(), stagedtest.Pool(t)
	rng := rand.New(rand.NewPCG(2, 2))
	const n, k, m, q = 6000, 3, 6, 4
	candidates, centers := make([]float32, m*q), make([]float32, k*q)
	for i := range candidates {
		candidates[i] = staged.OnGrid(2*rng.Float64()-1, datasettest.Bits)
	}
	copy(centers, candidates)
	rows := make([]float32, (n+1)*q)
	for i := range n {
		at, near := rng.IntN(m), rng.IntN(2) == 0
		for h := range q {
			x := rng.Float32()*2 - 1
			if near { // so near that sums of plain squares would be rounded
				x = candidates[at*q+h] + x/(1<<18)
			}
			rows[i*q+h] = x
		}
	}
	copy(rows[n*q:], rows[:q]) // the first record stands at the end, too
	kind := lossKind{squared: true, cap: swapLossCap}
	losses := func(from, to int) []float64 {
		p := kernels.NewPanels(to-from, q)
		kernels.Pack(p, rows[from*q:to*q])
		w := newSwapper(pool, p, candidates, k, kind)
		after := make([]float64, m*k+1)
		after[m*k] = w.set(centers)
		if err := w.losses(ctx, after[:m*k]); err != nil {
			t.Fatal(err)
		}
		return after
	}
	before, front, end := losses(1, n), losses(0, n), losses(1, n+1)
	for i := range before {
		if change := front[i] - before[i]; change < 0 || change > swapLossCap {
			t.Errorf("score %d changes by %v, want 0 to %v", i, -change, -float64(swapLossCap))
		}
		if front[i] != end[i] {
			t.Errorf("score %d is %v with the record in front and %v at the end", i, -front[i], -end[i])
		}
	}
}
