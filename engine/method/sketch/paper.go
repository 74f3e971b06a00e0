package sketch

import (
	"context"
)

// basicEstimate is DPFMPS-BasicEst (Sketch-V, Algorithm 4): the size of each
// cell as records minus the size of the union of the complements of its
// clusters, whose sketch is the maximum of all other sketches; phantoms
// subtracted; the result projected on {w >= 0, sum w = records}. It returns the
// dense grid of v's parties.
//
// The work per key is not that of all cells: the maximum T over all sketches
// stands in every cell except where each party that holds T has its holder left
// out, and only those cells are corrected.
func basicEstimate(v *View, records float64) (*Grid, error) {
	s, k := v.parties(), v.clusters()
	grid, err := newDenseGrid(s, k)
	if err != nil {
		return nil, err
	}
	inverse := v.Distribution.inverse
	w := grid.Weights
	base := 0.0
	box := newBox(s, k)
	for i := range v.keys() {
		if !box.load(v, i) {
			base += inverse[box.top]
			continue
		}
		base += inverse[box.top]
		box.correct(w, inverse)
	}
	for c := range w {
		union := v.Distribution.harmonic(base+w[c], v.keys()) - v.inUnion()
		w[c] = records - union
	}
	projectSimplex(w, records)
	return grid, nil
}

// box holds, for one key, the largest and second largest height of each party
// and where the largest is.
type box struct {
	top           uint16
	first, second []uint16
	at            []int
	held          []bool // the party's largest height is the top
	stride        []int
	clusters      int
}

func newBox(parties, clusters int) *box {
	b := &box{first: make([]uint16, parties), second: make([]uint16, parties), at: make([]int, parties),
		held: make([]bool, parties), stride: make([]int, parties), clusters: clusters}
	stride := 1
	for l := parties - 1; l >= 0; l-- {
		b.stride[l] = stride
		stride *= clusters
	}
	return b
}

// load reads key i and reports whether any cell's union differs from the top.
func (b *box) load(v *View, i int) bool {
	b.top = 0
	for l, s := range v.Sketches {
		first, second, at := uint16(0), uint16(0), 0
		for a, h := range s.Row(i) {
			switch {
			case h > first:
				first, second, at = h, first, a
			case h > second:
				second = h
			}
		}
		b.first[l], b.second[l], b.at[l] = first, second, at
		b.top = max(b.top, first)
	}
	for l := range b.first {
		b.held[l] = b.first[l] == b.top
		if b.held[l] && b.second[l] == b.top {
			return false
		}
	}
	return true
}

// correct adds inverse[height of the union] - inverse[top] to the cells whose
// union leaves out every holder of the top.
func (b *box) correct(w, inverse []float64) {
	var visit func(l, index int, height uint16)
	visit = func(l, index int, height uint16) {
		if l == len(b.first) {
			w[index] += inverse[height] - inverse[b.top]
			return
		}
		if b.held[l] {
			visit(l+1, index+b.at[l]*b.stride[l], max(height, b.second[l]))
			return
		}
		for a := range b.clusters {
			h := b.first[l]
			if a == b.at[l] {
				h = b.second[l]
			}
			visit(l+1, index+a*b.stride[l], max(height, h))
		}
	}
	visit(0, 0, 0)
}

// sizes estimates the sizes of party l's clusters from its sketches alone, by
// the harmonic mean, phantoms subtracted.
func (r *Release) sizes(l int) []float64 {
	v, s := r.single(l)
	size := make([]float64, r.Clusters)
	for a := range size {
		size[a] = max(v.Distribution.harmonicMean(s, a)-v.inSketch(), 0)
	}
	return size
}

// independent returns the product grid records * prod_l size[l][a_l]/records.
func independent(grid *Grid, size [][]float64, records float64) {
	for i := range grid.Weights {
		w := records
		for l, a := range grid.cell(i) {
			w *= size[l][a] / records
		}
		grid.Weights[i] = w
	}
}

// additiveSweeps and additiveTolerance end the additive fit of 2PEst.
const (
	additiveSweeps    = 60
	additiveTolerance = 1e-6
)

// twoPartyEstimate is DPFMPS-2PEst (Sketch-V, Algorithm 5): all pairs by
// basicEstimate, then a full grid consistent with them by additive updates. A
// sweep visits every pair once (the paper draws pairs at random), with step 1,
// and clips negative cells at its end: left alone they destroy the margins.
// For two parties the pair is the grid.
func twoPartyEstimate(ctx context.Context, run runner, r *Release) (*Grid, error) {
	pairs := make([][]float64, 0, r.Parties*(r.Parties-1)/2)
	for l1 := range r.Parties {
		for l2 := l1 + 1; l2 < r.Parties; l2++ {
			g, err := basicEstimate(r.pair(l1, l2), r.Records)
			if err != nil {
				return nil, err
			}
			if r.Parties == 2 {
				return g, nil
			}
			pairs = append(pairs, g.Weights)
		}
	}
	size := make([][]float64, r.Parties)
	for l := range size {
		size[l] = r.sizes(l)
	}
	return additiveFit(ctx, run, r, pairs, size)
}

// additiveFit starts from independence and moves the grid towards the pair
// tables, each correction spread evenly over the cells of its pair cell. Where the grid
// cannot be listed a mixture takes its place.
func additiveFit(ctx context.Context, run runner, r *Release, pairs, size [][]float64) (*Grid, error) {
	if !r.listed() {
		return mixtureEstimate(ctx, run, r, pairs, size)
	}
	grid, err := newDenseGrid(r.Parties, r.Clusters)
	if err != nil {
		return nil, err
	}
	independent(grid, size, r.Records)
	fit := newPairFit(grid)
	even := func(target, sum, cells float64) float64 {
		if cells > 0 {
			return (target - sum) / cells
		}
		return 0
	}
	add := func(weight, change float64) float64 { return weight + change }
	for range additiveSweeps {
		moved := 0.0
		for l1 := range r.Parties {
			for l2 := l1 + 1; l2 < r.Parties; l2++ {
				m, err := fit.pass(ctx, run, l1, l2, pairs[pairIndex(r.Parties, l1, l2)], even, add)
				if err != nil {
					return nil, err
				}
				moved = max(moved, m)
			}
		}
		for i, w := range grid.Weights {
			grid.Weights[i] = max(w, 0)
		}
		if moved <= additiveTolerance*r.Records {
			break
		}
	}
	rescale(grid.Weights, r.Records)
	return grid, nil
}

// rescale multiplies w so that it sums to `to`; all zeros become equal shares.
func rescale(w []float64, to float64) {
	sum := total(w)
	if sum <= 0 {
		for i := range w {
			w[i] = to / float64(len(w))
		}
		return
	}
	for i := range w {
		w[i] *= to / sum
	}
}

func total(w []float64) float64 {
	sum := 0.0
	for _, x := range w {
		sum += x
	}
	return sum
}
