package sketch

import (
	"context"
	"math"
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
	for range (g.len() + fitBlock - 1) / fitBlock {
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
		for i := block * fitBlock; i < min((block+1)*fitBlock, g.len()); i++ {
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
		for i := block * fitBlock; i < min((block+1)*fitBlock, g.len()); i++ {
			g.Weights[i] = apply(g.Weights[i], f.sums[g.pairCell(i, l1, l2)])
		}
	})
	return moved, err
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

// pairEstimate estimates all pair tables by maximum likelihood and fits a grid to them.
func pairEstimate(ctx context.Context, run runner, r *Release) (*Grid, error) {
	tables, err := pairTables(ctx, run, r)
	if err != nil {
		return nil, err
	}
	return fitPairs(ctx, run, r, tables)
}

// fitSweeps and fitTolerance end the proportional fit.
const (
	fitSweeps    = 60
	fitTolerance = 1e-6
)

// leastSum is the least weight of a pair cell that is scaled: below, a quotient could overflow.
const leastSum = 1e-30

// fitPairs returns a grid whose pair tables are the given ones, as far as there is one: of a grid that can be listed
// that of the largest entropy, else a mixture. Noise can make tables that no weights agree with; then the mixture is
// the answer, and the release doubts it.
func fitPairs(ctx context.Context, run runner, r *Release, pairs [][]float64) (*Grid, error) {
	switch {
	case r.Parties == 2:
		g, err := newDenseGrid(2, r.Clusters)
		if err == nil {
			copy(g.Weights, pairs[0])
		}
		return g, err
	case r.Mixture || !r.listed():
		return mixtureEstimate(ctx, run, r, pairs, r.Margins)
	}
	grid, err := proportionalFit(ctx, run, r, pairs)
	if err != nil || total(grid.Weights) > leastSum {
		return grid, err
	}
	r.doubts = append(r.doubts, "no weights of the grid agree with the tables of all pairs of parties, which noise has "+
		"made; the answer is a mixture's: use a smaller local-k or a larger epsilon")
	return mixtureEstimate(ctx, run, r, pairs, r.Margins)
}

// listed reports whether a grid of all cells is within its limit.
func (r *Release) listed() bool {
	_, ok := product(r.Clusters, r.Parties, maxDense)
	return ok
}

// proportionalFit starts from equal weights of all cells and multiplies those of each
// pair cell to its target until a sweep changes nothing (iterative proportional fitting).
// Where the tables contradict each other no weight may be left.
func proportionalFit(ctx context.Context, run runner, r *Release, pairs [][]float64) (*Grid, error) {
	grid, err := newDenseGrid(r.Parties, r.Clusters)
	if err != nil {
		return nil, err
	}
	for i := range grid.Weights {
		grid.Weights[i] = r.Records / float64(len(grid.Weights))
	}
	fit := newPairFit(grid)
	ratio := func(target, sum, _ float64) float64 {
		if sum > leastSum {
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
	if total(grid.Weights) > leastSum {
		rescale(grid.Weights, r.Records)
	}
	return grid, nil
}
