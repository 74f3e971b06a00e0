package instance

import (
	"math"

	"github.com/cohort-engine/cohort/flow"
)

// Ball draws n points in the plane: 99 of 100 from a Gaussian of the given
// deviation at one place, the others uniform in the box.
func Ball(n, k int, deviation float64) *Set {
	g := newTwister(blobSeed)
	s := &Set{Name: "ball", N: n, D: 2, K: k}
	for i := range n {
		for range s.D {
			x := g.uniform()
			if i%100 > 0 {
				x = -0.4 + float64(deviation*g.normal())
			}
			s.Rows = append(s.Rows, x)
		}
	}
	return s
}

// Places draws n points in the plane from the given number of distinct places.
func Places(n, places, k int) *Set {
	g := newTwister(blobSeed)
	at := make([]float64, 2*places)
	for i := range at {
		at[i] = g.uniform()
	}
	s := &Set{Name: "places", N: n, D: 2, K: k}
	for range n {
		q := int(g.below(uint64(places)))
		s.Rows = append(s.Rows, at[2*q], at[2*q+1])
	}
	return s
}

// Lattice draws n points from a lattice of side x side places in the plane.
func Lattice(n, side, k int) *Set {
	g := newTwister(blobSeed)
	s := &Set{Name: "lattice", N: n, D: 2, K: k}
	for range 2 * n {
		s.Rows = append(s.Rows, 2*float64(g.below(uint64(side)))/float64(side-1)-1)
	}
	return s
}

// Zipf is the assignment of the set with sizes in proportion to 1/j, exactly.
func (s *Set) Zipf(centroids []float64) *flow.Problem {
	p := s.Bounded(centroids, 0, 0)
	sum, total := 0.0, 0
	for j := range s.K {
		sum += 1 / float64(j+1)
	}
	for j := range s.K {
		p.Lo[j] = int(math.Floor(float64(s.N) / (sum * float64(j+1))))
		total += p.Lo[j]
	}
	for j := 0; total < s.N; j = (j + 1) % s.K {
		p.Lo[j]++
		total++
	}
	copy(p.Hi, p.Lo)
	return p
}

// Equal is the assignment of the set with sizes that differ by at most 1, exactly.
func (s *Set) Equal(centroids []float64) *flow.Problem {
	p := s.Bounded(centroids, 0, 0)
	for j := range s.K {
		p.Lo[j] = s.N / s.K
		if j < s.N%s.K {
			p.Lo[j]++
		}
	}
	copy(p.Hi, p.Lo)
	return p
}
