package ckks

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// startCentroids picks k public starting centroids in [-1, 1]^d: "random" draws
// them uniformly. "sphere" keeps them apart: the centres of spheres of the
// largest radius a (found by halving) that random placement can fit into the
// box, at least a from its border and 2a from each other; then ten rounds of
// Lloyd's algorithm on uniform points of the box spread them evenly. No record
// is looked at.
func startCentroids(st *privacy.Stream, kind step.Init, k, d int) [][]float64 {
	if kind == step.Random {
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
	for range 10 {
		best = relax(st, best, 4000+100*k)
	}
	return best
}

// relax moves centroids to the means of those of n uniform points in the box
// that are nearest to them.
func relax(st *privacy.Stream, centroids [][]float64, n int) [][]float64 {
	d := len(centroids[0])
	counts := make([]float64, len(centroids))
	next := make([][]float64, len(centroids))
	for j := range next {
		next[j] = make([]float64, d)
	}
	x := make([]float64, d)
	for range n {
		for h := range x {
			x[h] = 2*st.Float64() - 1
		}
		best, at := math.Inf(1), 0
		for j, c := range centroids {
			if s := elementary.SquaredDistance(x, c); s < best {
				best, at = s, j
			}
		}
		counts[at]++
		for h := range x {
			next[at][h] += x[h]
		}
	}
	for j := range next {
		for h := range d {
			if counts[j] == 0 {
				next[j][h] = centroids[j][h]
			} else {
				next[j][h] /= counts[j]
			}
		}
	}
	return next
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
				if elementary.SquaredDistance(c, o) < 4*a*a {
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
