package sketch

import (
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Limits of the grid's memory. A dense grid has at most maxDense cells. The joint
// likelihood is used up to maxJoint cells, beyond that pairs of parties have keys of
// their own.
const (
	maxDense = 1_000_000
	maxJoint = 7_000
)

// Grid is the weighted grid of the server: cells are tuples (a_1, ..., a_S) of
// local clusters, one per party (Sketch-V, section 3.2).
type Grid struct {
	Parties, Clusters int
	// Cells holds the tuples of the support one after the other, Parties bytes
	// each, in increasing lexicographic order. A dense grid has all of them.
	Cells []uint8
	// Weights has one entry per cell of the support.
	Weights []float64
}

// len is the number of cells in the support.
func (g *Grid) len() int { return len(g.Weights) }

// cell returns the tuple of cell i.
func (g *Grid) cell(i int) []uint8 { return g.Cells[i*g.Parties : (i+1)*g.Parties] }

// newDenseGrid returns the grid with all clusters^parties cells.
func newDenseGrid(parties, clusters int) (*Grid, error) {
	n, ok := product(clusters, parties, maxDense)
	if !ok {
		return nil, gridTooLarge(parties, clusters)
	}
	g := &Grid{Parties: parties, Clusters: clusters, Cells: make([]uint8, n*parties), Weights: make([]float64, n)}
	for i := range n {
		cell, rest := g.cell(i), i
		for l := parties - 1; l >= 0; l-- {
			cell[l] = uint8(rest % clusters)
			rest /= clusters
		}
	}
	return g, nil
}

func gridTooLarge(parties, clusters int) error {
	fits := int(math.Floor(math.Pow(maxDense, 1/float64(parties)) + 1e-9))
	size := math.Pow(float64(clusters), float64(parties))
	return fault.Request("local-k",
		fmt.Sprintf("a grid of %d^%d = %.4g cells would need %.3g GiB and exceed the limit of %d cells",
			clusters, parties, size, size*float64(8+parties)/(1<<30), maxDense),
		fmt.Sprintf("use local-k %d, the largest that fits %d parties, or --estimator em or pair-mle, which list "+
			"part of it", fits, parties))
}

// dense returns the row-major index of a cell in the full grid.
func dense(cell []uint8, clusters int) int {
	i := 0
	for _, a := range cell {
		i = i*clusters + int(a)
	}
	return i
}

// margin sums the weights by the cluster of party l.
func (g *Grid) margin(l int, dst []float64) []float64 {
	clear(dst)
	for i, w := range g.Weights {
		dst[g.Cells[i*g.Parties+l]] += w
	}
	return dst
}

// round puts the weights on multiples of 2^-10, so that the last bits of
// logarithms, which differ between architectures, cannot matter.
func (g *Grid) round() {
	for i, w := range g.Weights {
		g.Weights[i] = math.Round(w*1024) / 1024
	}
}

// projectSimplex replaces w by the nearest point of {w >= 0, sum w = total} in
// Euclidean distance. total must be positive.
func projectSimplex(w []float64, total float64) {
	s := slices.Clone(w)
	slices.Sort(s)
	slices.Reverse(s)
	sum, threshold := 0.0, 0.0
	for i, x := range s {
		sum += x
		t := (sum - total) / float64(i+1)
		if x <= t {
			break
		}
		threshold = t
	}
	for i, x := range w {
		w[i] = max(x-threshold, 0)
	}
}
