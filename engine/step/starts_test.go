package step

import (
	"math"
	"math/rand/v2"
	"slices"
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

// packPlainly is pack without a grid.
func packPlainly(centres []float64, k, d int, a float64, r Source) bool {
	for placed, retries := 0, 0; placed < k; {
		c := centres[placed*d : placed*d+d]
		for h := range c {
			c[h] = float64(r.Float64()*(2-2*a)) + (a - 1)
		}
		clear := true
		for i := range placed {
			s := 0.0
			for h, x := range c {
				t := x - centres[i*d+h]
				s += float64(t * t)
			}
			clear = clear && s >= 4*a*a
		}
		if clear {
			placed, retries = placed+1, 0
		} else if retries++; retries == sphereRetries {
			return false
		}
	}
	return true
}

func TestPackingByGridIsThePlainPacking(t *testing.T) {
	for _, c := range []struct{ k, d int }{{1, 1}, {7, 1}, {2, 2}, {15, 2}, {300, 2}, {100, 3}, {200, 4}, {150, 5},
		{60, 9}, {40, 64}} {
		for a := 1.0; a > 1e-4; a /= 1.3 {
			got, want := make([]float64, c.k*c.d), make([]float64, c.k*c.d)
			fits := pack(got, c.k, c.d, a, rand.New(rand.NewPCG(5, uint64(c.k))))
			plainly := packPlainly(want, c.k, c.d, a, rand.New(rand.NewPCG(5, uint64(c.k))))
			if fits != plainly || !slices.Equal(got, want) {
				t.Fatalf("k=%d d=%d radius %g: fits is %v, plainly %v, and centres differ: %v", c.k, c.d, a, fits, plainly,
					!slices.Equal(got, want))
			}
		}
	}
}

// A packing of the largest k ends in a fraction of a second; without a grid it takes minutes.
func TestSpherePackingOfManyCentres(t *testing.T) {
	for _, d := range []int{2, 3} {
		if got := SpherePacking(65534, d, rand.New(rand.NewPCG(1, 1))); len(got) != 65534*d {
			t.Fatalf("%d numbers", len(got))
		}
	}
}
