package sketch

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/internal/fault"
)

// runner runs fn(worker, index) for every index in [0, n) on several workers;
// engine.Pool is one.
type runner interface {
	Workers() int
	Run(ctx context.Context, n int, fn func(worker, index int)) error
}

// pairCell is the index of cell i in the table of parties l1 and l2.
func (g *Grid) pairCell(i, l1, l2 int) int {
	cell := g.cell(i)
	return int(cell[l1])*g.Clusters + int(cell[l2])
}

// fitBlock is the number of cells that one task of a fit visits.
const fitBlock = 1 << 14

// pairFit visits the pair tables of a grid one after the other: each pass adds
// up the grid by the pair's cells and lets an update change the cells. Sums are
// taken block by block in a fixed order.
type pairFit struct {
	grid        *Grid
	sums, cells []float64
	partial     [][]float64 // by block: sums, then numbers of cells
}

func newPairFit(g *Grid) *pairFit {
	k2 := g.Clusters * g.Clusters
	f := &pairFit{grid: g, sums: make([]float64, k2), cells: make([]float64, k2)}
	for range (g.Len() + fitBlock - 1) / fitBlock {
		f.partial = append(f.partial, make([]float64, 2*k2))
	}
	return f
}

// pass turns the sums and the target of one pair into a change per pair cell
// by step, applies it to all cells by apply, and returns the largest difference
// between target and sum.
func (f *pairFit) pass(ctx context.Context, run runner, l1, l2 int, target []float64,
	step func(target, sum, cells float64) float64, apply func(weight, change float64) float64) (float64, error) {
	g, k2 := f.grid, len(f.sums)
	err := run.Run(ctx, len(f.partial), func(_, block int) {
		p := f.partial[block]
		clear(p)
		for i := block * fitBlock; i < min((block+1)*fitBlock, g.Len()); i++ {
			c := g.pairCell(i, l1, l2)
			p[c] += g.Weights[i]
			p[k2+c]++
		}
	})
	if err != nil {
		return 0, err
	}
	clear(f.sums)
	clear(f.cells)
	for _, p := range f.partial {
		for c := range f.sums {
			f.sums[c] += p[c]
			f.cells[c] += p[k2+c]
		}
	}
	moved := 0.0
	for c, sum := range f.sums {
		moved = max(moved, math.Abs(target[c]-sum))
		f.sums[c] = step(target[c], sum, f.cells[c])
	}
	err = run.Run(ctx, len(f.partial), func(_, block int) {
		for i := block * fitBlock; i < min((block+1)*fitBlock, g.Len()); i++ {
			g.Weights[i] = apply(g.Weights[i], f.sums[g.pairCell(i, l1, l2)])
		}
	})
	return moved, err
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
func pairTables(ctx context.Context, run runner, r *Release) ([][]float64, error) {
	k := r.Clusters
	type pair struct {
		view  *View
		sizes [2][]float64
		table []float64
	}
	var pairs []pair
	for l1 := range r.Parties {
		for l2 := l1 + 1; l2 < r.Parties; l2++ {
			pairs = append(pairs, pair{view: r.pair(l1, l2), sizes: [2][]float64{make([]float64, k), make([]float64, k)},
				table: make([]float64, k*k)})
		}
	}
	err := run.Run(ctx, len(pairs)*2*k, func(_, index int) {
		p, side, a := &pairs[index/(2*k)], index/k%2, index%k
		p.sizes[side][a] = p.view.Distribution.maximumLikelihood(p.view.Sketches[side], a, p.view.Floor)
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

// pairEstimate estimates all pair tables by maximum likelihood and returns the
// full grid fitted to them by iterative proportional fitting, the
// maximum-entropy solution.
func pairEstimate(ctx context.Context, run runner, r *Release) (*Grid, error) {
	tables, err := pairTables(ctx, run, r)
	if err != nil {
		return nil, err
	}
	return proportionalFit(ctx, run, r, tables)
}

// fitSweeps and fitTolerance end the proportional fit.
const (
	fitSweeps    = 60
	fitTolerance = 1e-6
)

// proportionalFit starts from equal weights and multiplies the cells of each
// pair cell to its target until a sweep changes nothing.
func proportionalFit(ctx context.Context, run runner, r *Release, pairs [][]float64) (*Grid, error) {
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
	fit := newPairFit(grid)
	ratio := func(target, sum, _ float64) float64 {
		if sum > 0 {
			return target / sum
		}
		return 0
	}
	scale := func(weight, ratio float64) float64 { return weight * ratio }
	for range fitSweeps {
		moved := 0.0
		for l1 := range r.Parties {
			for l2 := l1 + 1; l2 < r.Parties; l2++ {
				m, err := fit.pass(ctx, run, l1, l2, pairs[pairIndex(r.Parties, l1, l2)], ratio, scale)
				if err != nil {
					return nil, err
				}
				moved = max(moved, m)
			}
		}
		if moved <= fitTolerance*r.Records {
			break
		}
	}
	rescale(grid.Weights, r.Records)
	return grid, nil
}
