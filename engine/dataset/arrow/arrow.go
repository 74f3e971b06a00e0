// Package arrow reads record batches that another library hands over in the Arrow C data interface
// (https://arrow.apache.org/docs/format/CDataInterface.html): two C structs, whose layout never changes, that point at
// the columns' buffers. Nothing is copied; the batches stay their producer's, whose release function the
// caller calls when the records were read.
package arrow

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Schema is struct ArrowSchema.
type Schema struct {
	Format     *byte
	Name       *byte
	Metadata   *byte
	Flags      int64
	NChildren  int64
	Children   **Schema
	Dictionary *Schema
	Release    uintptr
	Private    uintptr
}

// Array is struct ArrowArray.
type Array struct {
	Length     int64
	NullCount  int64
	Offset     int64
	NBuffers   int64
	NChildren  int64
	Buffers    *unsafe.Pointer
	Children   **Array
	Dictionary *Array
	Release    uintptr
	Private    uintptr
}

// column is a column of a batch.
type column struct {
	valid  []byte // bits, nil if all are
	offset int    // of the first record in buffer and bits
	read   func(i int) float64
}

// Batch is a record batch.
type Batch struct {
	n       int
	names   []string
	columns []column
}

// numbers has, by format, the size of a number and how one at an address is read.
var numbers = map[string]struct {
	size int
	read func(p unsafe.Pointer) float64
}{
	"c": {1, func(p unsafe.Pointer) float64 { return float64(*(*int8)(p)) }},
	"C": {1, func(p unsafe.Pointer) float64 { return float64(*(*uint8)(p)) }},
	"s": {2, func(p unsafe.Pointer) float64 { return float64(*(*int16)(p)) }},
	"S": {2, func(p unsafe.Pointer) float64 { return float64(*(*uint16)(p)) }},
	"i": {4, func(p unsafe.Pointer) float64 { return float64(*(*int32)(p)) }},
	"I": {4, func(p unsafe.Pointer) float64 { return float64(*(*uint32)(p)) }},
	"l": {8, func(p unsafe.Pointer) float64 { return float64(*(*int64)(p)) }},
	"L": {8, func(p unsafe.Pointer) float64 { return float64(*(*uint64)(p)) }},
	"e": {2, func(p unsafe.Pointer) float64 { return float64(dataset.Half(*(*uint16)(p))) }},
	"f": {4, func(p unsafe.Pointer) float64 { return float64(*(*float32)(p)) }},
	"g": {8, func(p unsafe.Pointer) float64 { return *(*float64)(p) }},
}

// Import checks a batch, whose columns are the children of a struct, or one column, and returns its
// records. They are read where they are: schema and array must last as long. A null is NaN, a missing
// value.
func Import(name string, schema *Schema, array *Array) (*Batch, error) {
	switch {
	case schema == nil || array == nil:
		return nil, fault.Request(name, "has no schema or no array", "hand over both")
	case schema.Release == 0 || array.Release == 0:
		return nil, fault.Request(name, "was released already", "hand it over once")
	case schema.Format == nil:
		return nil, fault.Request(name, "its schema has no format", "hand over an Arrow schema")
	}
	b := &Batch{n: int(array.Length)}
	if text(schema.Format) != "+s" {
		return b, b.add(name, schema, array, 0)
	}
	if schema.NChildren != array.NChildren {
		return nil, fault.Request(name, fmt.Sprintf("has %d columns and its schema %d", array.NChildren, schema.NChildren),
			"hand over what belongs together")
	}
	if array.NullCount != 0 && array.NBuffers > 0 && *array.Buffers != nil {
		return nil, fault.Request(name, "has rows that are null", "leave them out")
	}
	children, kinds := unsafe.Slice(array.Children, array.NChildren), unsafe.Slice(schema.Children, schema.NChildren)
	for j, child := range children {
		if child.Length < array.Offset+array.Length {
			return nil, fault.Request(name, fmt.Sprintf("column %d has %d of %d rows", j+1, child.Length, array.Offset+
				array.Length), "hand over whole columns")
		}
		if err := b.add(name, kinds[j], child, int(array.Offset)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// add takes a column; the batch begins at record first of it.
func (b *Batch) add(name string, schema *Schema, array *Array, first int) error {
	label := text(schema.Name)
	what := fmt.Sprintf("%s, column %d", name, len(b.columns)+1)
	if label != "" {
		what += " (" + label + ")"
	}
	format := text(schema.Format)
	kind, ok := numbers[format]
	if !ok || schema.Dictionary != nil {
		return fault.Request(what, fmt.Sprintf("has the Arrow format %q, which is no number", format),
			"leave it out, or make numbers of it")
	}
	if array.NBuffers != 2 {
		return fault.Request(what, fmt.Sprintf("has %d buffers where numbers have two", array.NBuffers),
			"hand over an Arrow array")
	}
	buffers := unsafe.Slice(array.Buffers, 2)
	if buffers[1] == nil && array.Length > 0 {
		return fault.Request(what, "has no values", "hand over an Arrow array")
	}
	c := column{offset: int(array.Offset) + first}
	if array.NullCount != 0 && buffers[0] != nil {
		c.valid = unsafe.Slice((*byte)(buffers[0]), (c.offset+b.n+7)/8)
	}
	data := buffers[1]
	c.read = func(i int) float64 { return kind.read(unsafe.Add(data, i*kind.size)) }
	b.columns, b.names = append(b.columns, c), append(b.names, label)
	return nil
}

// text is a C string.
func text(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// Shape implements dataset.Borrowed.
func (b *Batch) Shape() (n, d int) { return b.n, len(b.columns) }

// Names are those of the columns, nil if one has none.
func (b *Batch) Names() []string {
	if slices.Contains(b.names, "") {
		return nil
	}
	return b.names
}

// Check implements dataset.Borrowed.
func (b *Batch) Check(name string) error {
	switch {
	case len(b.columns) == 0:
		return fault.Request(name, "has no columns", "give at least one column")
	case b.n < 1:
		return dataset.NoRecords(name)
	}
	return nil
}

// Widen implements dataset.Borrowed.
func (b *Batch) Widen(rows []float64, lo, hi, stride int) {
	for j := range b.columns {
		c := &b.columns[j]
		for i := lo; i < hi; i++ {
			at := c.offset + i
			v := math.NaN()
			if c.valid == nil || c.valid[at/8]>>(at%8)&1 == 1 {
				v = c.read(at)
			}
			rows[(i-lo)*stride+j] = v
		}
	}
}

// Records joins the batches of a stream to the records of one holder. Empty ones are left out.
func Records(name string, batches []*Batch) (dataset.Borrowed, error) {
	s := &stream{}
	for i, b := range batches {
		if len(s.batches) > 0 {
			first := s.batches[0]
			if len(b.columns) != len(first.columns) || !slices.Equal(b.names, first.names) {
				return nil, fault.Request(fmt.Sprintf("%s, batch %d", name, i+1), "has columns "+strings.Join(b.names, ", ")+
					" and the first "+strings.Join(first.names, ", "), "give batches with the same columns")
			}
		}
		if b.n > 0 {
			s.starts = append(s.starts, s.n)
			s.batches = append(s.batches, b)
			s.n += b.n
		}
	}
	if s.n == 0 {
		return nil, dataset.NoRecords(name)
	}
	return s, nil
}

// stream is batches one after the other.
type stream struct {
	batches []*Batch
	starts  []int
	n       int
}

func (s *stream) Shape() (n, d int) { return s.n, len(s.batches[0].columns) }

func (s *stream) Names() []string { return s.batches[0].Names() }

func (s *stream) Check(name string) error { return s.batches[0].Check(name) }

func (s *stream) Widen(rows []float64, lo, hi, stride int) {
	i, exact := slices.BinarySearch(s.starts, lo)
	if !exact {
		i--
	}
	for at := lo; at < hi; i++ {
		b, start := s.batches[i], s.starts[i]
		to := min(hi, start+b.n)
		b.Widen(rows[(at-lo)*stride:], at-start, to-start, stride)
		at = to
	}
}
