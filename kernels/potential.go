package kernels

// Potentials gives, for each of the candidates of a step of k-means++, the sum
// over the points of the smaller of nearest and the squared distance to the
// candidate. dots has the products of the points with the candidates, as [Project]
// leaves them, norms the squared lengths of the points and squares those of the
// candidates; a squared distance is max(0, fma(-2, dot, norm+square)). A sum is one
// of float64 in 16 chains, point i in chain i modulo 16 in point order, added two by
// two: the chain l+8 to l, then l+4 to l, l+2 and l+1. len(norms) = len(nearest) =
// dots.N; len(squares) = len(sums) = dots.D.
func Potentials(dots Panels, norms, nearest, squares []float32, sums []float64) {
	dots.check("Potentials")
	checkLength("Potentials", "norms", len(norms), dots.N)
	checkLength("Potentials", "nearest", len(nearest), dots.N)
	checkLength("Potentials", "squares", len(squares), dots.D)
	checkLength("Potentials", "sums", len(sums), dots.D)
	potentials(&dots, norms, nearest, squares, sums)
}

// addPotential adds the terms of candidate q, from point first on, to the chains.
func addPotential(dots *Panels, first, q int, norms, nearest []float32, square float32, chains *[Lanes]float64) {
	for i := first; i < dots.N; i++ {
		d := fma32(-2, dots.Data[(i/Lanes*dots.D+q)*Lanes+i%Lanes], norms[i]+square)
		chains[i%Lanes] += float64(min(nearest[i], max(0, d)))
	}
}

// addChains adds the chains of a sum.
func addChains(c *[Lanes]float64) float64 {
	for step := Lanes / 2; step > 0; step /= 2 {
		for l := range step {
			c[l] += c[l+step]
		}
	}
	return c[0]
}

// potentialsPortable is the reference form of [Potentials].
func potentialsPortable(dots *Panels, norms, nearest, squares []float32, sums []float64) {
	for q, square := range squares {
		var chains [Lanes]float64
		addPotential(dots, 0, q, norms, nearest, square, &chains)
		sums[q] = addChains(&chains)
	}
}
