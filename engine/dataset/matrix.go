package dataset

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Matrix is N records of D coordinates in somebody else's memory: coordinate j of
// record i is Data[Offset+i*RowStride+j*ColumnStride]. Both strides zero mean row
// after row without gaps; strides may be negative. The memory is read while the
// records are put on the grid, and never written nor kept.
type Matrix[T float32 | float64] struct {
	Data                    []T
	N, D                    int
	RowStride, ColumnStride int
	Offset                  int
	Columns                 []string // names of the columns, or nil
}

// ColumnMajor returns the matrix of n records whose columns follow each other.
func ColumnMajor[T float32 | float64](data []T, n, d int) Matrix[T] {
	return Matrix[T]{Data: data, N: n, D: d, RowStride: 1, ColumnStride: n}
}

// NoRecords is the refusal of memory that has none, in whatever form. A file may have none where its number is
// nobody's business ([ReadOptions.MayLack]); who hands over memory knows what is in it, and hears nothing new.
func NoRecords(name string) error {
	return fault.Request(name, "has no records", "give at least one record")
}

// Check fills in the strides and refuses a matrix that does not lie in its memory.
func (m *Matrix[T]) Check(name string) error {
	if m.RowStride == 0 && m.ColumnStride == 0 {
		m.RowStride, m.ColumnStride = m.D, 1
	}
	wrong := func(why, do string) error { return fault.Request(name, why, do) }
	switch {
	case m.D < 1:
		return wrong(fault.Count(m.D, "column"), "give at least one column")
	case m.N == 0:
		return NoRecords(name)
	case m.N < 0:
		return wrong(fault.Count(m.N, "record"), "give at least one record")
	case m.Columns != nil && len(m.Columns) != m.D:
		return wrong(fmt.Sprintf("%d names for %s", len(m.Columns), fault.Count(m.D, "column")),
			"give one name per column")
	}
	lo, hi := float64(m.Offset), float64(m.Offset) // in float64, where nothing wraps
	for _, step := range []float64{float64(m.N-1) * float64(m.RowStride), float64(m.D-1) * float64(m.ColumnStride)} {
		lo, hi = lo+min(step, 0), hi+max(step, 0)
	}
	if lo < 0 || hi >= float64(len(m.Data)) {
		return wrong(fmt.Sprintf("%d x %d values from %.0f to %.0f where there are %d", m.N, m.D, lo, hi, len(m.Data)),
			"make shape, strides and offset agree with the data")
	}
	return nil
}

// FromMatrix makes a source of records in memory, which it borrows.
func FromMatrix[T float32 | float64](name string, m Matrix[T]) (Source, error) {
	return Below(name, []Borrowed{&m})
}

// FromBatches makes a source of batches with d columns, each of which is borrowed
// until the next is asked for. A source of once batches can be read once.
func FromBatches[T float32 | float64](name string, d int, columns []string, once bool,
	batches iter.Seq2[Matrix[T], error]) (Source, error) {
	if d < 1 || (columns != nil && len(columns) != d) || batches == nil {
		return nil, fault.Request(name, fmt.Sprintf("%s with %d names", fault.Count(d, "column"), len(columns)),
			"give the number of columns, a name for each or none, and the batches")
	}
	return &batchSource[T]{schema: Schema{Name: name, N: -1, D: d, Columns: columns, Once: once}, batches: batches}, nil
}

// FromChannel makes a source, read once, of the batches that come over a channel
// until it is closed. A batch is borrowed until the next is taken.
func FromChannel[T float32 | float64](name string, d int, columns []string, batches <-chan Matrix[T]) (Source, error) {
	return FromBatches(name, d, columns, true, func(yield func(Matrix[T], error) bool) {
		for m := range batches {
			if !yield(m, nil) {
				return
			}
		}
	})
}

// matrixChunkValues is how many values of a matrix are decoded at a time: they stay
// in the first cache while they are put on the grid, and a small set takes little more.
const matrixChunkValues = 1 << 12

// chunkRows is the number of records of d values in a chunk.
func chunkRows(d int) int { return max(matrixChunkValues/d/kernels.Lanes, 4) * kernels.Lanes }

// cutMatrix yields the records of m, the first of which is record first. Each chunk
// that is taken joins busy until it is decoded.
func cutMatrix[T float32 | float64](m *Matrix[T], first int, busy *sync.WaitGroup, yield func(Chunk) error) error {
	rows := chunkRows(m.D)
	for lo := 0; lo < m.N; lo += rows {
		c := &matrixChunk[T]{m: m, lo: lo, hi: min(lo+rows, m.N), first: first, busy: busy}
		busy.Add(1)
		if err := yield(c); err != nil {
			if !c.decoded {
				busy.Done() // it was not taken
			}
			return err
		}
	}
	return nil
}

// matrixChunk is the records lo to hi of a matrix.
type matrixChunk[T float32 | float64] struct {
	m       *Matrix[T]
	lo, hi  int
	first   int // record of the source that is the first of m
	busy    *sync.WaitGroup
	decoded bool
}

// Decode copies the records to b.
func (c *matrixChunk[T]) Decode(b *Block) error {
	b.Record = c.first + c.lo
	c.m.Widen(b.Grow(c.hi-c.lo, c.m.D), c.lo, c.hi, c.m.D)
	c.decoded = true
	c.busy.Done()
	return nil
}

// Widen copies records lo to hi to rows that are stride numbers apart. The matrix has no fault (Check).
func (m *Matrix[T]) Widen(rows []float64, lo, hi, stride int) {
	if m.ColumnStride == 1 {
		for i := range hi - lo {
			at := m.Offset + (lo+i)*m.RowStride
			widenTo(rows[i*stride:i*stride+m.D], m.Data[at:at+m.D])
		}
		return
	}
	for j := range m.D {
		at := m.Offset + lo*m.RowStride + j*m.ColumnStride
		for i := j; i < (hi-lo)*stride; i += stride {
			rows[i] = float64(m.Data[at])
			at += m.RowStride
		}
	}
}

// widenTo converts len(dst) values.
func widenTo[T float32 | float64](dst []float64, src []T) {
	if same, ok := any(src).([]float64); ok {
		copy(dst, same)
		return
	}
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = float64(v)
	}
}

// batchSource reads batches.
type batchSource[T float32 | float64] struct {
	schema  Schema
	batches iter.Seq2[Matrix[T], error]
}

func (s *batchSource[T]) Schema() Schema { return s.schema }

// Chunks cuts each batch, and waits until it is decoded before it asks for the next.
func (s *batchSource[T]) Chunks(ctx context.Context, yield func(Chunk) error) error {
	first, count := 0, 0
	for m, err := range s.batches {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		count++
		if m.N == 0 {
			continue
		}
		name := fmt.Sprintf("%s, batch %d", s.schema.Name, count)
		if m.D != s.schema.D {
			return fault.Request(name, fmt.Sprintf("%s where the source has %d", fault.Count(m.D, "column"),
				s.schema.D),
				"give batches with the same columns")
		}
		if err := m.Check(name); err != nil {
			return err
		}
		var busy sync.WaitGroup
		err := cutMatrix(&m, first, &busy, yield)
		busy.Wait()
		if err != nil {
			return err
		}
		first += m.N
	}
	return nil
}

// schema describes the table.
func (t *Table) schema() Schema {
	return Schema{Name: t.Name, N: t.N, D: t.D, Columns: t.Columns, Numbers: t.numbers, Header: t.header,
		Bytes: t.Bytes, Cheap: true}
}

// errNoTable is the refusal of no table.
var errNoTable = fault.Request("table", "is nil", "give one")

// Source makes a source of the records of a table.
func (t *Table) Source() (Source, error) {
	if t == nil {
		return nil, errNoTable
	}
	m := Matrix[float64]{Data: t.Rows, N: t.N, D: t.D, Columns: t.Columns}
	name := t.Name
	if name == "" {
		name = "table"
	}
	if err := m.Check(name); err != nil {
		return nil, err
	}
	s := &joined{parts: []Borrowed{&m}, starts: []int{0}, schema: t.schema()}
	s.schema.Name = name
	return s, nil
}
