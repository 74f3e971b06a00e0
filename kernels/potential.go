package kernels

import "fmt"

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
		chains[i%Lanes] += float64(min(nearest[i], dotSquare(dots, i, q, norms[i]+square)))
	}
}

// addChains adds the chains of a sum.
func addChains(c []float64) float64 {
	for step := len(c) / 2; step > 0; step /= 2 {
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
		sums[q] = addChains(chains[:])
	}
}

// Lower lowers nearest to the squared distances of the points to a candidate, which are those
// of [Potentials]: dots has the products of the points with all candidates, of which it is number q, and
// square is its squared length. len(norms) = len(nearest) = dots.N, 0 <= q < dots.D.
func Lower(dots Panels, q int, norms, nearest []float32, square float32) {
	dots.check("Lower")
	checkLength("Lower", "norms", len(norms), dots.N)
	checkLength("Lower", "nearest", len(nearest), dots.N)
	if q < 0 || q >= dots.D {
		panic(fmt.Sprintf("kernels: Lower: candidate %d of %d", q, dots.D))
	}
	lowerNearest(&dots, q, norms, nearest, square)
}

// lowerFrom is the reference form of [Lower], for the points from first on.
func lowerFrom(dots *Panels, first, q int, norms, nearest []float32, square float32) {
	for i := first; i < dots.N; i++ {
		nearest[i] = min(nearest[i], dotSquare(dots, i, q, norms[i]+square))
	}
}

func lowerPortable(dots *Panels, q int, norms, nearest []float32, square float32) {
	lowerFrom(dots, 0, q, norms, nearest, square)
}

// dotSquare is the squared distance of point i to candidate q, of which lengths is the sum of both squared lengths.
func dotSquare(dots *Panels, i, q int, lengths float32) float32 {
	return DotSquare(dots.Data[(i/Lanes*dots.D+q)*Lanes+i%Lanes], lengths)
}

// DotSquare is the squared distance, as [Potentials] has it, of a point and a candidate with the product dot, of which
// lengths is the sum of both squared lengths.
func DotSquare(dot, lengths float32) float32 {
	// Twice a number is exact, so that fused or not the result is the same.
	return max(0, lengths-2*dot)
}
