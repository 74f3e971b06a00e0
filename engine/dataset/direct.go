package dataset

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cohort-engine/cohort/kernels"
)

// eye reads records of a matrix in their own type; it belongs to one worker.
type eye interface {
	// extend notes the ranges of the columns in records lo to hi, and reports whether all are finite.
	extend(lo, hi int) bool
	ranges(lo, hi []float64) // sets what extend has noted
	// quantise puts records lo to hi on the grid, and returns how many values are outside their bounds.
	quantise(grid []float32, lo, hi int, units *kernels.UnitMap) int
	// look goes on looking for ids (blockStats.look).
	look(s *blockStats, lo, hi int)
	// notFinite finds the first value of records lo to hi that is not finite, and reports whether there is one.
	notFinite(lo, hi int) (i, j int, found bool)
}

// native is a Borrowed whose numbers kernels take as they are.
type native interface {
	Borrowed
	eye() eye
}

// Gridder puts borrowed records on a grid, a range at a time, in their own type where kernels take it. It belongs to
// one worker.
type Gridder struct {
	of   Borrowed
	eye  eye // nil where numbers are of other types
	wide []float64
}

// NewGridder makes one for records that have no fault (Check).
func NewGridder(of Borrowed) *Gridder {
	g := &Gridder{of: of}
	if n, ok := of.(native); ok {
		g.eye = n.eye()
	}
	return g
}

// Quantise puts records lo to hi on the grid, row after row, and returns how many values are outside their bounds.
func (g *Gridder) Quantise(grid []float32, lo, hi int, units *kernels.UnitMap) int {
	if g.eye != nil {
		return g.eye.quantise(grid, lo, hi, units)
	}
	return kernels.Quantise(grid, g.Rows(lo, hi), units)
}

// Rows are records lo to hi in float64, until they are asked for again.
func (g *Gridder) Rows(lo, hi int) []float64 {
	_, d := g.of.Shape()
	size := (hi - lo) * d
	if len(g.wide) < size {
		g.wide = make([]float64, size)
	}
	g.of.Widen(g.wide[:size], lo, hi, d)
	return g.wide[:size]
}

// matrixEye is the eye of a matrix.
type matrixEye[T float32 | float64] struct {
	m     *Matrix[T]
	room  []T // for records that do not follow each other
	noted *kernels.Ranges[T]
}

func (m *Matrix[T]) eye() eye { return &matrixEye[T]{m: m} }

// rows are records lo to hi, one after the other.
func (r *matrixEye[T]) rows(lo, hi int) []T {
	m, n := r.m, (hi-lo)*r.m.D
	if m.ColumnStride == 1 && m.RowStride == m.D {
		at := m.Offset + lo*m.D
		return m.Data[at : at+n]
	}
	if len(r.room) < n {
		r.room = make([]T, n)
	}
	rows := r.room[:n]
	m.copyTo(rows, lo, hi)
	return rows
}

// copyTo copies records lo to hi to rows.
func (m *Matrix[T]) copyTo(rows []T, lo, hi int) {
	for i := 0; i < hi-lo && m.ColumnStride == 1; i++ {
		at := m.Offset + (lo+i)*m.RowStride
		copy(rows[i*m.D:(i+1)*m.D], m.Data[at:])
	}
	for j := 0; j < m.D && m.ColumnStride != 1; j++ {
		at := m.Offset + lo*m.RowStride + j*m.ColumnStride
		for i := j; i < len(rows); i += m.D {
			rows[i] = m.Data[at]
			at += m.RowStride
		}
	}
}

func (r *matrixEye[T]) extend(lo, hi int) bool {
	if r.noted == nil {
		r.noted = kernels.NewRanges[T](r.m.D)
	}
	return kernels.Extend(r.noted, r.rows(lo, hi))
}

func (r *matrixEye[T]) ranges(lo, hi []float64) {
	for j := range lo {
		lo[j], hi[j] = r.noted.Column(j)
	}
	r.noted = nil
}

func (r *matrixEye[T]) quantise(grid []float32, lo, hi int, units *kernels.UnitMap) int {
	return kernels.Quantise(grid, r.rows(lo, hi), units)
}

func (r *matrixEye[T]) look(s *blockStats, lo, hi int) {
	m := r.m
	for j, id := range s.ids {
		for i := lo; i < hi && id; i++ {
			v := float64(m.Data[m.Offset+i*m.RowStride+j*m.ColumnStride])
			if id = v > s.last[j] && v == math.Trunc(v); math.IsInf(s.last[j], -1) {
				s.first[j] = v
			}
			s.last[j] = v
		}
		s.ids[j] = id
	}
}

func (r *matrixEye[T]) notFinite(lo, hi int) (i, j int, found bool) {
	for at, v := range r.rows(lo, hi) {
		if v-v != 0 {
			return at / r.m.D, at % r.m.D, true
		}
	}
	return 0, 0, false
}

// direct is s if workers can take any of its records at any time: matrices below each other whose records all begin
// a panel, and nothing to be done but to put them on the grid.
func direct(s Source, opts *PrepareOptions) *joined {
	j, ok := s.(*joined)
	if !ok || j.beside || opts.Unit || opts.DigestKey != nil || opts.Cache != "" || opts.Read.Missing != RefuseMissing {
		return nil
	}
	for i, p := range j.parts {
		if _, ok := p.(native); !ok || j.starts[i]%kernels.Lanes != 0 {
			return nil
		}
	}
	return j
}

// begin begins the search for ids.
func (s *blockStats) begin(d int) {
	s.ids, s.first, s.last = make([]bool, d), make([]float64, d), make([]float64, d)
	for j := range s.ids {
		s.ids[j], s.last[j] = true, math.Inf(-1)
	}
}

// runsPerWorker cuts the records, so that a worker that the system holds up does not hold up the others, and
// leastRun is the number of values that a run has at least.
const (
	runsPerWorker = 8
	leastRun      = 1 << 15
)

// run is consecutive records of a part.
type run struct {
	part, lo, hi int
	block        *Block // what is found, and where errors are
	err          error
}

// sweep calls work for pieces of the records that stay in the first cache, run by run on all workers, and then puts
// what was found in order; worker makes what one worker does. The first error in the order of the records counts.
func (s *joined) sweep(ctx context.Context, c *collector, worker func() func(r eye, b *run, lo, hi int) error,
	end func(r eye, b *run)) error {
	d, workers := s.schema.D, c.opts.threads()
	rows := chunkRows(d)
	each := max(s.schema.N/(workers*runsPerWorker), leastRun/d)/rows*rows + rows
	var runs []*run
	for i, p := range s.parts {
		n, _ := p.Shape()
		for lo := 0; lo < n; lo += each {
			b := &Block{N: min(lo+each, n) - lo, File: i, Record: s.starts[i] + lo, schema: &c.schema}
			if len(s.holders) > 1 {
				b.schema, b.before = &s.holders[i], s.starts[i]
			}
			runs = append(runs, &run{part: i, lo: lo, hi: lo + b.N, block: b})
		}
	}
	var next atomic.Int64
	var failed atomic.Bool
	one := func() {
		work := worker()
		for at := int(next.Add(1)) - 1; at < len(runs) && !failed.Load(); at = int(next.Add(1)) - 1 {
			b := runs[at]
			r := s.parts[b.part].(native).eye()
			for lo := b.lo; lo < b.hi && b.err == nil; lo += rows {
				if b.err = ctx.Err(); b.err == nil {
					b.err = work(r, b, lo, min(lo+rows, b.hi))
				}
			}
			if b.err != nil {
				failed.Store(true)
				return
			}
			end(r, b)
		}
	}
	var others sync.WaitGroup
	for range min(workers, len(runs)) - 1 {
		others.Go(one)
	}
	one()
	others.Wait()
	for _, b := range runs {
		if b.err != nil {
			return b.err
		}
		if err := c.put(b.block); err != nil {
			return err
		}
	}
	return nil
}

// check is the error of the first value of records lo to hi that is not finite.
func (b *run) check(r eye, lo, hi int) error {
	i, j, found := r.notFinite(lo, hi)
	if !found {
		return nil
	}
	return b.block.notFiniteFault(lo-b.lo+i, j)
}

// extend notes the ranges of the columns.
func (s *joined) extend(ctx context.Context, c *collector) error {
	d := s.schema.D
	look := func(r eye, b *run, lo, hi int) error {
		if r.extend(lo, hi) {
			return nil
		}
		return b.check(r, lo, hi)
	}
	return s.sweep(ctx, c, func() func(eye, *run, int, int) error { return look }, func(r eye, b *run) {
		stats := &b.block.stats
		stats.lo, stats.hi = make([]float64, d), make([]float64, d)
		r.ranges(stats.lo, stats.hi)
	})
}

// pack puts the records on the grid and into panels.
func (s *joined) pack(ctx context.Context, c *collector, units *kernels.UnitMap, to *kernels.Panels) error {
	d := s.schema.D
	return s.sweep(ctx, c, func() func(eye, *run, int, int) error {
		room := make([]float32, chunkRows(d)*d+kernels.Lanes) // packing reads a little more
		return func(r eye, b *run, lo, hi int) error {
			stats := &b.block.stats
			if lo == b.lo {
				stats.begin(d)
			}
			r.look(stats, lo, hi)
			grid := room[:(hi-lo)*d]
			if outside := r.quantise(grid, lo, hi, units); outside > 0 {
				if err := b.check(r, lo, hi); err != nil {
					return err
				}
				stats.clamped += outside
			}
			view := to.Slice(s.starts[b.part]+lo, s.starts[b.part]+hi)
			kernels.Pack(&view, grid)
			return nil
		}
	}, func(eye, *run) {})
}
