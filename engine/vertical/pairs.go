package vertical

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine/fault"
)

// Runner runs fn(worker, index) for every index in [0, n) on several workers;
// engine.Pool is one.
type Runner interface {
	Workers() int
	Run(ctx context.Context, n int, fn func(worker, index int)) error
}

// pairCell is the index of cell i in the table of parties l1 and l2.
func (g *Grid) pairCell(i, l1, l2 int) int {
	cell := g.Cell(i)
	return int(cell[l1])*g.Clusters + int(cell[l2])
}

// pairSums sums the weights, and counts the cells, by pair cell of l1 and l2.
func (g *Grid) pairSums(l1, l2 int, sums, cells []float64) {
	clear(sums)
	clear(cells)
	for i, w := range g.Weights {
		c := g.pairCell(i, l1, l2)
		sums[c] += w
		cells[c]++
	}
}

// support returns the grid to fit pair tables on: the dense grid where it has
// at most maxDense cells, else the cells all of whose pair cells are positive,
// built party by party. Where more than maxSupport partial cells remain, those
// of the largest smallest pair weight stay, so memory is bounded.
func support(parties, clusters int, pairs [][]float64) (*Grid, error) {
	if _, ok := product(clusters, parties, maxDense); ok {
		return newDenseGrid(parties, clusters)
	}
	list := &partials{parties: 1}
	for a := range clusters {
		list.cells = append(list.cells, uint8(a))
		list.weights = append(list.weights, math.Inf(1))
	}
	for l := 1; l < parties; l++ {
		next := &partials{parties: l + 1}
		for i, bound := range list.weights {
			cell := list.cells[i*l : (i+1)*l]
			for a := range clusters {
				weight := bound
				for l1, a1 := range cell {
					weight = min(weight, pairs[pairIndex(parties, l1, l)][int(a1)*clusters+a])
				}
				if weight > 0 {
					next.cells = append(append(next.cells, cell...), uint8(a))
					next.weights = append(next.weights, weight)
				}
			}
			if len(next.weights) > 2*maxSupport {
				next.shrink(maxSupport)
			}
		}
		next.shrink(maxSupport)
		list = next
	}
	if len(list.weights) == 0 {
		return nil, fault.Failed("weights", "no cell of the grid is consistent with the tables of all pairs of parties",
			"use a smaller local-k or a larger epsilon", nil)
	}
	return &Grid{Parties: parties, Clusters: clusters, Cells: list.cells, Weights: list.weights}, nil
}

// partials are cells of the first parties, in lexicographic order, with the
// smallest weight of their pair cells.
type partials struct {
	parties int
	cells   []uint8
	weights []float64
}

// shrink keeps the n partial cells of the largest weight; ties go to the
// smaller cell.
func (p *partials) shrink(n int) {
	if len(p.weights) <= n {
		return
	}
	sorted := slices.Clone(p.weights)
	slices.Sort(sorted)
	threshold := sorted[len(sorted)-n]
	above := 0
	for _, w := range p.weights {
		if w > threshold {
			above++
		}
	}
	ties, kept := n-above, 0
	for i, w := range p.weights {
		if w < threshold || w == threshold && ties == 0 {
			continue
		}
		if w == threshold {
			ties--
		}
		copy(p.cells[kept*p.parties:], p.cells[i*p.parties:(i+1)*p.parties])
		p.weights[kept] = w
		kept++
	}
	p.cells, p.weights = p.cells[:kept*p.parties], p.weights[:kept]
}

// pairTables estimates the table of every pair of parties by maximum
// likelihood: sizes of the clusters first, then each intersection, phantoms
// subtracted, projected on {w >= 0, sum w = records}.
func pairTables(ctx context.Context, run Runner, r *Release) ([][]float64, error) {
	k := r.Clusters
	type pair struct {
		view  *View
		sizes [2][]float64
		table []float64
	}
	var pairs []pair
	for l1 := range r.Parties {
		for l2 := l1 + 1; l2 < r.Parties; l2++ {
			pairs = append(pairs, pair{view: r.Pair(l1, l2), sizes: [2][]float64{make([]float64, k), make([]float64, k)}, table: make([]float64, k*k)})
		}
	}
	err := run.Run(ctx, len(pairs)*2*k, func(_, index int) {
		p, side, a := &pairs[index/(2*k)], index/k%2, index%k
		p.sizes[side][a] = p.view.Law.MaximumLikelihood(p.view.Sketches[side], a, p.view.Floor)
	})
	if err != nil {
		return nil, err
	}
	scratch := make([]pairLikelihood, run.Workers())
	counts := make([][]float64, run.Workers())
	err = run.Run(ctx, len(pairs)*k*k, func(worker, index int) {
		p, a, b := &pairs[index/(k*k)], index/k%k, index%k
		if counts[worker] == nil {
			counts[worker] = make([]float64, 128*128)
		}
		likelihood := &scratch[worker]
		likelihood.na, likelihood.nb = p.sizes[0][a], p.sizes[1][b]
		if likelihood.na <= 0 || likelihood.nb <= 0 {
			return
		}
		likelihood.load(p.view, a, b, counts[worker])
		p.table[a*k+b] = likelihood.maximum() - p.view.inCell()
	})
	if err != nil {
		return nil, err
	}
	tables := make([][]float64, len(pairs))
	for i := range pairs {
		tables[i] = pairs[i].table
		projectSimplex(tables[i], r.Records)
	}
	return tables, nil
}

// PairEstimate estimates all pair tables by maximum likelihood and returns the
// full grid fitted to them by iterative proportional fitting, the
// maximum-entropy solution.
func PairEstimate(ctx context.Context, run Runner, r *Release) (*Grid, error) {
	tables, err := pairTables(ctx, run, r)
	if err != nil {
		return nil, err
	}
	return proportionalFit(ctx, r, tables)
}

// fitSweeps and fitTolerance end the proportional fit.
const (
	fitSweeps    = 100
	fitTolerance = 1e-7
)

// proportionalFit starts from equal weights and multiplies the cells of each
// pair cell to its target until a sweep changes nothing.
func proportionalFit(ctx context.Context, r *Release, pairs [][]float64) (*Grid, error) {
	k := r.Clusters
	if r.Parties == 2 {
		g, err := newDenseGrid(2, k)
		if err == nil {
			copy(g.Weights, pairs[0])
		}
		return g, err
	}
	grid, err := support(r.Parties, k, pairs)
	if err != nil {
		return nil, err
	}
	for i := range grid.Weights {
		grid.Weights[i] = r.Records / float64(len(grid.Weights))
	}
	sums, cells := make([]float64, k*k), make([]float64, k*k)
	for range fitSweeps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		moved := 0.0
		for l1 := range r.Parties {
			for l2 := l1 + 1; l2 < r.Parties; l2++ {
				target := pairs[pairIndex(r.Parties, l1, l2)]
				grid.pairSums(l1, l2, sums, cells)
				for c := range sums {
					moved = max(moved, math.Abs(target[c]-sums[c]))
					if sums[c] > 0 {
						sums[c] = target[c] / sums[c]
					}
				}
				for i := range grid.Weights {
					grid.Weights[i] *= sums[grid.pairCell(i, l1, l2)]
				}
			}
		}
		if moved <= fitTolerance*r.Records {
			break
		}
	}
	rescale(grid.Weights, r.Records)
	return grid, nil
}
