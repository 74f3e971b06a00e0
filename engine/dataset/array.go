package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// array is the numbers of a binary file.
type array struct {
	kind    number
	n, d    int  // as the header declares them
	fortran bool // column after column
	skip    int  // bytes before the first number
}

// arraySource reads an array.
type arraySource struct {
	array
	file    *file
	schema  Schema
	columns []int // of the file, that are read; nil: all
	seeks   bool  // the file can be read at any place
}

// MostColumns is the number of columns that can be chosen from, or planned for: a header may lie.
const MostColumns = 1 << 20

// newArray checks what the header of an array declares against the size of its
// file.
func newArray(f *file, opts *ReadOptions, a array) (Source, error) {
	if text, flag := opts.TextColumn(); text != "" {
		return nil, fault.Request("--"+flag, f.name+" is an array of numbers",
			"give the labels or ids in a file of text, or in Parquet")
	}
	if a.n == 0 && !opts.MayLack {
		return nil, fault.Failed(f.name, "the file has no records", "give a file with at least one record", nil)
	}
	s := &arraySource{array: a, file: f, seeks: f.path != "" && !f.gzip && !f.once}
	s.schema = Schema{Name: f.name, N: -1, D: a.d, Once: f.once, Size: f.size, RowBytes: int64(a.d * a.kind.size),
		Bytes: a.kind == idxKinds[0x08]}
	if opts.Columns != "" {
		if a.d > MostColumns {
			return nil, fault.Failed(f.name, fmt.Sprintf("%d columns are too many to choose from", a.d),
				"write fewer, or use all", nil)
		}
		var err error
		if s.columns, err = ChooseColumns(opts.Columns, nil, a.d); err != nil {
			return nil, err
		}
		s.schema.D = len(s.columns)
		for _, c := range s.columns {
			s.schema.Numbers = append(s.schema.Numbers, c+1)
		}
	}
	if f.identity != "" {
		s.schema.Identity = fmt.Sprintf("%s %v", f.identity, s.columns)
	}
	if s.seeks {
		want := a.bytes()
		switch have := float64(f.size) - float64(a.skip); {
		case have < want:
			return nil, readFault(f.name, 0, io.ErrUnexpectedEOF)
		case have > want:
			return nil, s.moreData()
		}
		s.schema.N, s.schema.Cheap = a.n, true
	}
	return s, nil
}

// bytes is the size of the numbers, which may be beyond an int.
func (a *array) bytes() float64 { return float64(a.n) * float64(a.d) * float64(a.kind.size) }

func (s *arraySource) Schema() Schema { return s.schema }

func (s *arraySource) moreData() error {
	return fault.Failed(s.file.name, fmt.Sprintf("more data than the %d x %d values its header declares", s.n, s.d),
		"write the file again", nil)
}

// arrayChunkValues is about how many numbers a worker decodes at a time.
const arrayChunkValues = 1 << 15

// Chunks yields runs of records: rows one after the other, or the same rows of each
// column. A file is mapped, and its pages are read where they are decoded.
func (s *arraySource) Chunks(ctx context.Context, yield func(Chunk) error) error {
	if s.seeks && mapsFiles {
		return s.mapped(yield)
	}
	if s.fortran && s.d > 1 { // whose first record ends where the last does
		data, err := s.readAll()
		if err != nil {
			return err
		}
		return yield(&arrayChunk{source: s, n: s.n, data: data, stride: s.n})
	}
	r, err := s.file.reader()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := r.discard(s.skip); err != nil {
		return readFault(s.file.name, 0, err)
	}
	free := make(chan []byte, 64)
	rows := s.rows()
	for first := 0; first < s.n; first += rows {
		count := min(rows, s.n-first)
		var data []byte
		select {
		case data = <-free:
		default:
		}
		data, err := readInto(data[:0], r, float64(count)*float64(s.d)*float64(s.kind.size))
		if err != nil {
			return readFault(s.file.name, 0, err)
		}
		if err := yield(&arrayChunk{source: s, first: first, n: count, data: data, free: free}); err != nil {
			return err
		}
	}
	return s.atEnd(r)
}

// rows is how many records a chunk has.
func (s *arraySource) rows() int { return max(arrayChunkValues/s.d/kernels.Lanes, 1) * kernels.Lanes }

// mapping is memory that a file is mapped to, until nobody has it any more.
type mapping struct{ memory []byte }

// mapped yields chunks of the mapped file.
func (s *arraySource) mapped(yield func(Chunk) error) error {
	f, err := os.Open(s.file.path)
	if err != nil {
		return fault.File(s.file.path, "check the path", err)
	}
	defer f.Close()
	memory, err := mapFile(f, int64(s.skip)+int64(s.n)*int64(s.d)*int64(s.kind.size))
	if err != nil {
		return err
	}
	m := &mapping{memory}
	runtime.AddCleanup(m, unmapMemory, memory)
	memory = memory[s.skip:]
	rows, step, stride := s.rows(), s.d*s.kind.size, 0
	if s.fortran && s.d > 1 {
		rows, step, stride = max(rows, 512), s.kind.size, s.n // of a column's page some at least
	}
	for first := 0; first < s.n; first += rows {
		c := &arrayChunk{source: s, first: first, n: min(rows, s.n-first), stride: stride, mapping: m}
		if c.data = memory[first*step:]; stride == 0 {
			c.data = c.data[:c.n*step]
		}
		if err := yield(c); err != nil {
			return err
		}
	}
	return nil
}

// readInto appends that many bytes of r to buf. A header may declare more than there
// are, so room is made as they come.
func readInto(buf []byte, r io.Reader, count float64) ([]byte, error) {
	for float64(len(buf)) < count {
		room := int(min(count, max(float64(cap(buf)), float64(2*len(buf)), 1<<20)))
		if cap(buf) < room {
			buf = append(make([]byte, 0, room), buf...)
		}
		n, err := io.ReadFull(r, buf[len(buf):room])
		buf = buf[:len(buf)+n]
		if err != nil {
			return nil, unexpected(err)
		}
	}
	return buf, nil
}

// atEnd refuses data after the last record.
func (s *arraySource) atEnd(r io.Reader) error {
	var one [1]byte
	if _, err := io.ReadFull(r, one[:]); err == nil {
		return s.moreData()
	} else if err != io.EOF {
		return readFault(s.file.name, 0, err)
	}
	return nil
}

// readAll reads the numbers of a stream.
func (s *arraySource) readAll() ([]byte, error) {
	r, err := s.file.reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := r.discard(s.skip); err != nil {
		return nil, readFault(s.file.name, 0, err)
	}
	data, err := readInto(nil, r, s.bytes())
	if err != nil {
		return nil, readFault(s.file.name, 0, err)
	}
	return data, s.atEnd(r)
}

// column returns the column of the file that is coordinate j.
func (s *arraySource) column(j int) int {
	if s.columns == nil {
		return j
	}
	return s.columns[j]
}

// arrayChunk is some records of an array.
type arrayChunk struct {
	source   *arraySource
	first, n int
	data     []byte
	stride   int // numbers from one column to the next; 0: rows one after the other
	free     chan []byte
	mapping  *mapping // what data is of, if not nil
}

// Decode turns the numbers into float64.
func (c *arrayChunk) Decode(b *Block) (err error) {
	if c.mapping != nil {
		// A file that is cut short has pages that cannot be read.
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			runtime.KeepAlive(c.mapping)
			switch p := recover().(type) {
			case nil:
			case interface{ Addr() uintptr }:
				err = readFault(c.source.file.name, 0, io.ErrUnexpectedEOF)
			default:
				panic(p)
			}
		}()
	}
	s := c.source
	b.Record = c.first
	d, size := s.schema.D, s.kind.size
	rows := b.Grow(c.n, d)
	rowStep, columnStep := s.d*size, size
	if c.stride > 0 {
		rowStep, columnStep = size, c.stride*size
	}
	if s.columns == nil && c.stride == 0 {
		s.kind.values(rows, c.data)
	} else {
		for j := range d {
			at := s.column(j) * columnStep
			for i := range c.n {
				rows[i*d+j] = s.kind.value(c.data[at:])
				at += rowStep
			}
		}
	}
	select {
	case c.free <- c.data:
	default:
	}
	return nil
}

// values decodes len(dst) numbers one after the other.
func (k number) values(dst []float64, src []byte) {
	little := k.order == binary.LittleEndian
	switch {
	case k.float && k.size == 8 && little:
		for i := range dst {
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:]))
		}
	case k.float && k.size == 4 && little:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
		}
	case k.size == 1 && !k.signed:
		for i := range dst {
			dst[i] = float64(src[i])
		}
	default:
		for i := range dst {
			dst[i] = k.value(src[i*k.size:])
		}
	}
}
