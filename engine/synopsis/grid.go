package synopsis

import (
	"context"

	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// Grid is the box [-1,1]^D cut into Side^D equal cells in one step. A record is
// in exactly one cell, so the counts have sensitivity 1.
type Grid struct{ D, Side int }

// maxGridCells bounds the memory of a grid.
const maxGridCells = 1 << 24

// NewGrid returns the grid whose cells number about `cells`, with a side in
// [lo, hi]; the side shrinks as far as needed to keep the memory bounded.
func NewGrid(d int, cells float64, lo, hi int) Grid {
	g := Grid{D: d, Side: lo}
	for g.Side < hi && power(g.Side+1, d) <= cells {
		g.Side++
	}
	for g.Side > 1 && power(g.Side, d) > maxGridCells {
		g.Side--
	}
	return g
}

func power(x, d int) float64 {
	p := 1.0
	for range d {
		p *= float64(x)
	}
	return p
}

// Cells returns Side^D.
func (g Grid) Cells() int {
	n := 1
	for range g.D {
		n *= g.Side
	}
	return n
}

// Count adds the number of records in every cell to counts, axis 0 varying
// slowest; with units not nil each record counts for so many.
func (g Grid) Count(ctx context.Context, r Runner, p *kernels.Panels, units []uint32, counts []int64) error {
	r = parallel.Or(r)
	parts := make([][]int64, r.Workers())
	step := shardPoints(g.D)
	err := r.Run(ctx, (p.N+step-1)/step, func(worker, s int) {
		if parts[worker] == nil {
			parts[worker] = make([]int64, len(counts))
		}
		lo, hi := s*step, min((s+1)*step, p.N)
		if units == nil {
			kernels.CountGrid(p.Slice(lo, hi), g.Side, parts[worker])
		} else {
			kernels.WeighGrid(p.Slice(lo, hi), g.Side, units[lo:hi], parts[worker])
		}
	})
	if err != nil {
		return err
	}
	for _, part := range parts {
		for i, n := range part {
			counts[i] += n
		}
	}
	return nil
}
