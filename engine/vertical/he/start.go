package he

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// startCentroids picks k public starting centroids in [-1, 1]^d: "random" draws
// them uniformly; "sphere" keeps them apart, the centres of spheres of the
// largest radius a (found by halving) that random placement can fit into the
// box, at least a from its border and 2a from each other.
func startCentroids(st *privacy.Stream, kind string, k, d int) [][]float64 {
	if kind == "random" {
		out := make([][]float64, k)
		for j := range out {
			out[j] = make([]float64, d)
			for h := range out[j] {
				out[j][h] = 2*st.Float64() - 1
			}
		}
		return out
	}
	// The diagonal bounds the radius; 20 halvings find it to a millionth.
	lo, hi := 0.0, math.Sqrt(float64(d))
	best := pack(st, k, d, 0)
	for range 20 {
		a := (lo + hi) / 2
		if c := pack(st, k, d, a); c != nil {
			best, lo = c, a
		} else {
			hi = a
		}
	}
	return best
}

// pack places k points one after the other, each with up to 100 tries; nil if
// one does not fit.
func pack(st *privacy.Stream, k, d int, a float64) [][]float64 {
	if a >= 1 {
		return nil
	}
	var out [][]float64
	for len(out) < k {
		placed := false
		for try := 0; try < 100 && !placed; try++ {
			c := make([]float64, d)
			for h := range c {
				c[h] = (2*st.Float64() - 1) * (1 - a)
			}
			placed = true
			for _, o := range out {
				if squaredDistance(c, o) < 4*a*a {
					placed = false
					break
				}
			}
			if placed {
				out = append(out, c)
			}
		}
		if !placed {
			return nil
		}
	}
	return out
}

func squaredDistance(a, b []float64) float64 {
	var s float64
	for h := range a {
		t := a[h] - b[h]
		s += float64(t * t)
	}
	return s
}
