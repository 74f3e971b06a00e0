package hybrid

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

func TestNormal(t *testing.T) {
	for z := -9.0; z <= 9; z += 0.01 {
		below, zDensity := normal(z)
		if want := math.Erfc(-z/math.Sqrt2) / 2; math.Abs(below-want) > 1.5e-7 {
			t.Fatalf("below %v: %v, want %v", z, below, want)
		}
		if want := z * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi); math.Abs(zDensity-want) > 1e-12 {
			t.Fatalf("density at %v times that: %v, want %v", z, zDensity, want)
		}
	}
}

// TestLossOfWideBoxes: one normal cluster lies across the corner of boxes of half the side, ten times as wide as it is.
// The boxes' weights alone say how wide the cluster is; as if it filled them it would be seventeen times as wide. A
// thirtieth of the weight lies in empty boxes: as much noise is left out, and what is no noise counts.
func TestLossOfWideBoxes(t *testing.T) {
	const sigma, center, n, d = 0.05, 0.03, 10000, 2
	above := math.Erfc(-center/sigma/math.Sqrt2) / 2
	boxes := func(far float64) []synopsis.Box {
		var all []synopsis.Box
		for x := range 4 {
			for y := range 4 {
				p := 1.0
				for _, c := range []int{x, y} {
					p *= []float64{0, 1 - above, above, 0}[c]
				}
				lo := []float64{float64(x)/2 - 1, float64(y)/2 - 1}
				w := n * p
				if p == 0 {
					w = far
				}
				all = append(all, synopsis.Box{Lo: lo, Hi: []float64{lo[0] + 0.5, lo[1] + 0.5}, Weight: w})
			}
		}
		return all
	}
	at, least := []float32{center, center}, make([]float64, 1)
	want := d * sigma * sigma
	exact := lossEstimate(boxes(0), at, 1, d, 1, 0, least, inTurn)
	if exact < 0.9*want || exact > 1.2*want {
		t.Errorf("loss %v, want about %v", exact, want)
	}
	if noisy := lossEstimate(boxes(30), at, 1, d, 30, 12*30, least, inTurn); noisy < 0.9*want || noisy > 1.3*want {
		t.Errorf("with noise %v, want about %v", noisy, want)
	}
	if far := lossEstimate(boxes(300), at, 1, d, 30, 12*30, least, inTurn); far < 10*want {
		t.Errorf("with records far off %v, want far more than %v", far, want)
	}
	if wide := lossEstimate(boxes(0), at, 1, d, 1, 0, []float64{4 * sigma * sigma}, inTurn); wide < 3*want {
		t.Errorf("%v around a centroid with noise of twice the width, want about %v", wide, 4*want)
	}
}

func inTurn(n int, task func(i int)) {
	for i := range n {
		task(i)
	}
}

// TestLossOfManyColumns: products of sixty columns' probabilities stay above 0.
func TestLossOfManyColumns(t *testing.T) {
	const d = 60
	lo, hi := make([]float64, d), make([]float64, d)
	for h := range d {
		lo[h], hi[h] = -1, -0.5
	}
	at := make([]float32, 2*d)
	for h := range d {
		at[d+h] = 1
	}
	loss := lossEstimate([]synopsis.Box{{Lo: lo, Hi: hi, Weight: 100}}, at, 2, d, 1, 0, make([]float64, 2), inTurn)
	if !(loss > 0.25*d && loss < d) { // from 0, in each column
		t.Errorf("loss %v", loss)
	}
}

// TestLossEstimate: the loss that is estimated from the release is about that of the records, for few and many,
// narrow and wide clusters, and records without any.
func TestLossEstimate(t *testing.T) {
	eng := enginetest.New(t)
	for _, c := range []struct {
		n, d, k   int
		deviation float64 // 0 for uniform records
	}{
		{200, 2, 5, 0.2}, {1000, 2, 5, 0.05}, {1000, 4, 5, 0.05}, {1000, 8, 8, 0.05}, {5000, 4, 5, 0.2},
		{5000, 8, 8, 0.05}, {20000, 2, 5, 0.05}, {20000, 8, 8, 0.2}, {1000, 2, 5, 0}, {20000, 3, 5, 0},
	} {
		client := datasettest.Part(normalRecords(c.n, c.d, c.k, c.deviation))
		var ratios []float64
		for seed := range uint64(15) {
			res := enginetest.Run(t, eng, &Job{Branch: "tree", Problem: protocol.Problem{
				Clients: []dataset.Part{client}, Bounds: datasettest.UnitBounds(c.d), K: c.k,
				Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6}, Seed: &seed}})
			ratios = append(ratios, *res.LossEstimate / *res.NICV)
		}
		slices.Sort(ratios)
		if ratios[7] < 0.4 || ratios[7] > 3 {
			t.Errorf("%d x %d, k = %d, deviation %v: the estimate is %.2f of the loss", c.n, c.d, c.k, c.deviation, ratios)
		}
	}
}

// normalRecords are records around k centres in [-1,1]^d, or all over it where deviation is 0.
func normalRecords(n, d, k int, deviation float64) *kernels.Panels {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(d)))
	centers, rows := make([]float64, k*d), make([]float32, 0, n*d)
	for i := range centers {
		centers[i] = 1.6*rng.Float64() - 0.8
	}
	for range n {
		j := rng.IntN(k)
		for h := range d {
			x := 2*rng.Float64() - 1
			if deviation > 0 {
				x = centers[j*d+h] + float64(deviation*rng.NormFloat64())
			}
			rows = append(rows, staged.OnGrid(x, datasettest.Bits))
		}
	}
	p := kernels.NewPanels(n, d)
	kernels.Pack(p, rows)
	return p
}

// TestExplainLeavesLittleOut: the loss does not depend on workers, and what clusters make of boxes, without those that
// hardly reach them, is within the stated share of what all make of them, and none is left out that has a part in it.
func TestExplainLeavesLittleOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 22))
	few := 0
	for _, d := range []int{1, 2, 3, 9} {
		k := 150
		centroids, least := make([]float32, k*d), make([]float64, k)
		for i := range centroids {
			centroids[i] = float32(rng.Float64()*2.2 - 1.1)
		}
		var boxes []synopsis.Box
		for range 400 {
			lo, hi := make([]float64, d), make([]float64, d)
			near, anywhere := rng.IntN(k), rng.IntN(3) == 0
			for h := range d {
				side, at := math.Pow(2, -float64(rng.IntN(10))), float64(centroids[near*d+h])
				if anywhere {
					at = rng.Float64()*2 - 1
				}
				lo[h] = max(-1, min(side*math.Floor(at/side), 1-side))
				hi[h] = lo[h] + side
			}
			boxes = append(boxes, synopsis.Box{Lo: lo, Hi: hi, Weight: rng.ExpFloat64() * 100})
		}
		abreast := func(n int, task func(i int)) {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { task(i) })
			}
			all.Wait()
		}
		one := lossEstimate(boxes, centroids, k, d, 10, 50, least, inTurn)
		if many := lossEstimate(boxes, centroids, k, d, 10, 50, least, abreast); one != many {
			t.Errorf("d=%d: the loss is %v, abreast %v", d, one, many)
		}
		m := newLossMixture(boxes, centroids, k, d, 10, 50, least)
		m.each = inTurn
		part := &m.parts[0]
		for _, factor := range []float64{1, 0.03, 1e-4} {
			m.sides(factor)
			for i := range boxes {
				m.explain(part, i)
				all, parts := 0.0, make([]float64, k)
				for j := range k {
					parts[j] = m.share[j]
					for h := range d {
						parts[j] *= exactMass(m, int(m.side[i*d+h]), j, h, factor)
					}
					all += parts[j]
				}
				if math.Abs(part.sum-all) > 2*lossLeftOut*all {
					t.Fatalf("d=%d: box %d has %g, of all clusters %g", d, i, part.sum, all)
				}
				for j, p := range parts {
					if p > 1e-3*all && !slices.Contains(part.which, int32(j)) {
						t.Fatalf("d=%d: box %d lacks cluster %d, of share %g", d, i, j, p/all)
					}
				}
				if len(part.which) < k/2 {
					few++
				}
			}
		}
	}
	if few < 1000 {
		t.Errorf("clusters are left out for %d boxes alone", few)
	}
}

// exactMass is the mass of side e, of column h, under cluster j.
func exactMass(m *lossMixture, e, j, h int, factor float64) float64 {
	center := m.centers[j*m.d+h]
	sigma := math.Sqrt(max(m.variance[j*m.d+h]*factor, leastVariance))
	below, _ := normal((m.edges[e][0] - center) / sigma)
	above, _ := normal((m.edges[e][1] - center) / sigma)
	if m.edges[e][0] <= -1 {
		below = 0
	}
	if m.edges[e][1] >= 1 {
		above = 1
	}
	return max(above-below, m.floor)
}
