package step

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSpherePackingKeepsApart(t *testing.T) {
	for _, c := range []struct{ k, d int }{{1, 1}, {2, 1}, {15, 2}, {100, 2}, {3, 6}, {50, 3}, {10, 784}} {
		r := rand.New(rand.NewPCG(1, uint64(c.k)))
		got := SpherePacking(c.k, c.d, r)
		if len(got) != c.k*c.d {
			t.Fatalf("k=%d d=%d: %d numbers", c.k, c.d, len(got))
		}
		// The radius in use is at most half of the smallest distance, and at most the
		// margin to the faces.
		margin, apart := math.Inf(1), math.Inf(1)
		for i := range c.k {
			row := got[i*c.d : (i+1)*c.d]
			for _, x := range row {
				margin = min(margin, 1-math.Abs(x))
			}
			for j := range i {
				square := 0.0
				for h, x := range row {
					square += (x - got[j*c.d+h]) * (x - got[j*c.d+h])
				}
				apart = min(apart, math.Sqrt(square))
			}
		}
		a := min(margin, apart/2)
		_, halved := halve(c.k, c.d, rand.New(rand.NewPCG(1, uint64(c.k))))
		if a < halved*(1-1e-12) {
			t.Errorf("k=%d d=%d: margin %g, distance %g: less than the radius %g that halving finds", c.k, c.d, margin,
				apart, halved)
		}
		// Random packing jams at .547 of the plane; spheres whose centres stay a from
		// the faces fill a little less of the box, and 100 failures in a row end the
		// search before it jams.
		if filled := float64(c.k) * math.Pi * a * a / 4; c.d == 2 && c.k >= 15 && (filled < 0.35 || filled > 0.6) {
			t.Errorf("k=%d: spheres of radius %g fill %.2f of the box", c.k, a, filled)
		}
	}
}

func TestSpherePackingDependsOnSourceAlone(t *testing.T) {
	a := SpherePacking(15, 2, rand.New(rand.NewPCG(3, 4)))
	b := SpherePacking(15, 2, rand.New(rand.NewPCG(3, 4)))
	c := SpherePacking(15, 2, rand.New(rand.NewPCG(3, 5)))
	same := true
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("coordinate %d differs between equal sources", i)
		}
		same = same && a[i] == c[i]
	}
	if same {
		t.Fatal("different sources give the same centres")
	}
}

func TestRandomCentresFillTheBox(t *testing.T) {
	c := RandomCentres(1000, 2, rand.New(rand.NewPCG(1, 1)))
	lo, hi := 0.0, 0.0
	for _, x := range c {
		if x < -1 || x >= 1 {
			t.Fatalf("coordinate %g outside [-1,1)", x)
		}
		lo, hi = min(lo, x), max(hi, x)
	}
	// 2000 uniform draws all above -0.98: probability 0.99^2000 = 2e-9.
	if lo > -0.98 || hi < 0.98 {
		t.Errorf("draws span [%g, %g]", lo, hi)
	}
}
