package staged_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
)

// TestDistanceQuantile compares the quantile, without noise to speak of, with the
// sorted distances: it is the upper edge of their bin; where records fill a hundredth of the box, it lies in the bin.
func TestDistanceQuantile(t *testing.T) {
	for _, width := range []float64{1, 0.02, 0.01, 0.005} {
		checkDistanceQuantile(t, width)
	}
}

func checkDistanceQuantile(t *testing.T, width float64) {
	rng := rand.New(rand.NewPCG(45, 46))
	const n, d = 4000, 6
	p := datasettest.GridPanels(rng, n, d)
	points, row := make([]float32, 2*d), make([]float32, d)
	for i := range points {
		points[i] = staged.OnGrid(width*(rng.Float64()-0.5), datasettest.Bits)
	}
	for i := range n {
		for h, x := range p.Point(i, row) {
			row[h] = staged.OnGrid(width*float64(x), datasettest.Bits)
		}
		p.Set(i, row)
	}
	dist := make([]float64, n)
	for i := range dist {
		dist[i] = math.Inf(1)
		for j := range 2 {
			square := 0.0
			for h, x := range p.Point(i, nil) {
				square += math.Pow(float64(x)-float64(points[j*d+h]), 2)
			}
			dist[i] = min(dist[i], math.Sqrt(square))
		}
	}
	slices.Sort(dist)
	top := 2 * math.Sqrt(d)
	for _, q := range []float64{0.1, 0.25, 0.4, 0.75} {
		f, got := stagedtest.Plan(t, p, 2), 0.0
		stage := f.AddDistances("the mean", staged.Share{Gaussian: true, Total: 1e6})
		stagedtest.OnParty(t, f, p, func(ctx context.Context, p *staged.Party) (err error) {
			got, err = p.DistanceQuantile(ctx, stage, points, top, q)
			return err
		})
		want := dist[int(math.Ceil(q*n))-1]
		least, most := want, want+top/64
		if bin := top / 64; want < bin/2 { // narrow bins, from a half of a half to the whole of it
			least, most = want/2, max(2*want, bin/16)
		} else if want < bin {
			least, most = bin/2, bin
		}
		if got < least-1e-6 || got > most+1e-6 {
			t.Errorf("quantile %v is %v, directly %v in bins of %v", q, got, want, top/64)
		}
	}
}

// TestReach: a quartile is within what records reach, even where noise has the last bin alone stand out, and that is
// less about a point that is far from the centre of the box, and more than nothing in its corner.
func TestReach(t *testing.T) {
	const n, d = 1000, 16
	noisy := make([]float64, staged.DistanceBins)
	noisy[staged.DistanceBins-1] = 5 * n
	for _, c := range []struct{ at, want float64 }{{0, 4}, {-0.6, 3.2}, {0.8, 2.4}, {1, 0.5}} {
		reach := staged.Reach(slices.Repeat([]float32{float32(c.at)}, d))
		if math.Abs(reach-c.want) > 1e-6 {
			t.Errorf("at %v in all columns records reach %v, want %v", c.at, reach, c.want)
		}
		if got := staged.NoisyDistances(noisy, n, n, d).Quartile(reach); !(got > 0) || got > reach*(1+1e-9) {
			t.Errorf("the quartile is %v where records reach %v", got, reach)
		}
	}
}

// TestQuartile compares the quartile with that of 5,000 distances in 16 columns, of which it may say less than a half
// or more than twice in few runs, and in no more than the quantile of the bins does. Without noise to speak of the
// two are one, and noise alone leaves the quartile where it is expected to be.
func TestQuartile(t *testing.T) {
	const n, d, tries = 5000, 16, 200
	rng := rand.New(rand.NewPCG(47, 48))
	for _, c := range []struct {
		quartile, deviation float64
		most                int
	}{{1.4, 800, 15}, {0.8, 600, 20}, {2.5, 800, 25}, {0.1, 300, 2}, {1.4, 5, 0}, {1.4, 1e6, 0}} {
		far, quantile := 0, 0
		for range tries {
			noisy := make([]float64, staged.DistanceBins)
			for i := range n { // a quarter from a half of the quartile to it, the others to twice it
				at := 0.5 + 2*float64(i)/n
				if 4*i > n {
					at = 1 + (float64(i)/n-0.25)/0.75
				}
				noisy[staged.DistanceBin(c.quartile*at, d)]++
			}
			for b := range noisy {
				noisy[b] += c.deviation * rng.NormFloat64()
			}
			h := staged.NoisyDistances(noisy, n, c.deviation, d)
			found, asIs := h.Quartile(math.Sqrt(d)), h.Quantile(0.25)
			if math.Abs(math.Log2(found/c.quartile)) > 1 {
				far++
			}
			if math.Abs(math.Log2(asIs/c.quartile)) > 1 {
				quantile++
			}
			if c.deviation == 5 && found != asIs {
				t.Fatalf("without noise to speak of the quartile is %v, the quantile %v", found, asIs)
			}
		}
		if far > c.most || far > quantile {
			t.Errorf("quartile %v under noise of %v: %d of %d are far off, %d of the quantile", c.quartile, c.deviation, far,
				tries, quantile)
		}
	}
}
