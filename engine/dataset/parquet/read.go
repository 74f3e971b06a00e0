// Package parquet reads and writes Apache Parquet files. It stands apart from
// package dataset so that a program links the format's library only if it wants it.
package parquet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Format lets dataset.OpenSource read Parquet files.
var Format = dataset.Format{Magic: "PAR1", Open: open}

// bandRows is about the number of records that are decoded at a time from a file that
// tells where its pages begin, mostBandRows the most of them. Other files are decoded a row group at a time.
const (
	bandRows     = 1 << 15
	mostBandRows = 4 * bandRows
)

// source reads a Parquet file.
type source struct {
	path    string
	stored  *os.File
	info    fs.FileInfo // of stored, when it was opened
	file    *parquet.File
	schema  dataset.Schema
	columns []column
	text    int // leaf of labels or ids, or -1
	// cuts has, for each row group, the record at which each piece that is decoded at a time ends.
	cuts [][]int
}

// column is a leaf of numbers.
type column struct {
	leaf   int
	number func(parquet.Value) float64
	scale  float64 // of integers that need no more
	plain  bool    // the values are numbers as they are stored, times scale
	most   byte    // definition level of a value
}

// open reads the schema of a file. Its columns are all leaves that are not
// repeated, by their paths, in the order of the file.
func open(_ context.Context, path string, opts dataset.ReadOptions) (s dataset.Source, err error) {
	defer guard(path, &err)
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.File(path, "check the path", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fault.File(path, "check the path", err)
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true))
	if err != nil {
		f.Close()
		return nil, damaged(path, err)
	}
	src := &source{path: path, stored: f, info: info, file: file, text: -1}
	return src, src.choose(info, &opts)
}

// choose settles which leaves are coordinates.
func (s *source) choose(info fs.FileInfo, opts *dataset.ReadOptions) error {
	var leaves []*parquet.Column
	var names []string
	var walk func(c *parquet.Column)
	walk = func(c *parquet.Column) {
		if c.Leaf() {
			leaves, names = append(leaves, c), append(names, strings.Join(c.Path(), "."))
		}
		for _, child := range c.Columns() {
			walk(child)
		}
	}
	walk(s.file.Root())
	chosen, err := opts.Choose(names, len(leaves))
	if err != nil {
		return err
	}
	text, flag := opts.TextColumn()
	if text != "" {
		one, err := dataset.ChooseColumns(text, names, len(leaves))
		if err != nil {
			return err
		}
		if len(one) != 1 || leaves[one[0]].MaxRepetitionLevel() > 0 {
			return fault.Request("--"+flag, fmt.Sprintf("%q is not one column of values", text), "name one column")
		}
		s.text = one[0]
	}
	s.schema = dataset.Schema{Name: s.path, N: int(s.file.NumRows()), Size: info.Size(),
		Identity: fmt.Sprintf("%s %q %q", dataset.FileIdentity(s.path, info), opts.Columns+dataset.QuoteColumns(opts.Named),
			text)}
	for _, leaf := range chosen {
		if leaf == s.text {
			continue
		}
		c, err := numbers(leaves[leaf])
		if err != nil {
			where := fmt.Sprintf("%s, column %d (%s)", s.path, leaf+1, names[leaf])
			return fault.Failed(where, err.Error(), "leave it out, such as with --columns -"+names[leaf], err)
		}
		c.leaf = leaf
		s.columns = append(s.columns, c)
		s.schema.Columns, s.schema.Numbers = append(s.schema.Columns, names[leaf]), append(s.schema.Numbers, leaf+1)
	}
	if s.schema.D = len(s.columns); s.schema.D == 0 {
		return opts.NoNumbers(s.path)
	}
	if s.schema.N == 0 && !opts.MayLack {
		return fault.Failed(s.path, "the file has no records", "give a file with at least one record", nil)
	}
	return s.pieces()
}

// pieces decides how much is decoded at a time.
func (s *source) pieces() error {
	groups := s.file.RowGroups()
	bands := true
	for _, g := range groups {
		chunks := g.ColumnChunks()
		for _, c := range s.columns {
			if index, err := chunks[c.leaf].OffsetIndex(); err != nil || index == nil || index.NumPages() == 0 {
				bands = false
			}
		}
	}
	largest, total := 0, int64(0)
	for _, g := range groups {
		rows := int(g.NumRows())
		var cuts []int
		switch {
		case rows > 0 && bands:
			cuts = s.bands(g, rows)
		case rows > 0:
			cuts = []int{rows}
		}
		from := 0
		for _, to := range cuts {
			largest, from = max(largest, to-from), to
		}
		s.cuts = append(s.cuts, cuts)
		total += g.NumRows()
	}
	if total != int64(s.schema.N) {
		return damaged(s.path, fmt.Errorf("row groups of %d records where the file declares %d", total, s.schema.N))
	}
	s.schema.BlockBytes = 8 * int64(largest) * int64(s.schema.D)
	return nil
}

// bands cuts a row group where pages of its first column end, which mostly are those of the others, too: a page that
// is cut is decompressed for either side.
func (s *source) bands(g parquet.RowGroup, rows int) []int {
	index, _ := g.ColumnChunks()[s.columns[0].leaf].OffsetIndex()
	var cuts []int
	from := 0
	for page := range index.NumPages() {
		first := int(min(index.FirstRowIndex(page), int64(rows)))
		for first-from > mostBandRows {
			from += bandRows
			cuts = append(cuts, from)
		}
		if first-from >= bandRows && first < rows {
			from = first
			cuts = append(cuts, from)
		}
	}
	for rows-from > mostBandRows {
		from += bandRows
		cuts = append(cuts, from)
	}
	return append(cuts, rows)
}

// numbers says how the values of a leaf become numbers: integers, floats and
// booleans as they are, decimals with their scale, dates as days and times of day
// and timestamps as seconds, since 1970 where they have a date.
func numbers(c *parquet.Column) (column, error) {
	if c.MaxRepetitionLevel() > 0 {
		return column{}, errors.New("it is repeated")
	}
	out := column{scale: 1, most: byte(c.MaxDefinitionLevel())}
	logical := c.Type().LogicalType()
	var value any
	if logical != nil {
		value = logical.Value
	}
	unsigned := false
	switch l := value.(type) {
	case *format.DecimalType:
		out.scale = math.Pow10(-int(l.Scale))
	case *format.TimestampType:
		out.scale = unit(l.Unit)
	case *format.TimeType:
		out.scale = unit(l.Unit)
	case *format.IntType:
		unsigned = !l.IsSigned
	}
	scale := out.scale
	switch kind := c.Type().Kind(); {
	case kind == parquet.Boolean:
		out.number = func(v parquet.Value) float64 {
			if v.Boolean() {
				return 1
			}
			return 0
		}
	case kind == parquet.Int32 && unsigned:
		out.number = func(v parquet.Value) float64 { return float64(uint32(v.Int32())) }
	case kind == parquet.Int64 && unsigned:
		out.number = func(v parquet.Value) float64 { return float64(uint64(v.Int64())) }
	case kind == parquet.Int32:
		out.plain, out.number = true, func(v parquet.Value) float64 { return scaled(float64(v.Int32()), scale) }
	case kind == parquet.Int64:
		out.plain, out.number = true, func(v parquet.Value) float64 { return scaled(float64(v.Int64()), scale) }
	case kind == parquet.Float:
		out.plain, out.number = true, func(v parquet.Value) float64 { return float64(v.Float()) }
	case kind == parquet.Double:
		out.plain, out.number = true, func(v parquet.Value) float64 { return v.Double() }
	case kind == parquet.Int96:
		out.number = func(v parquet.Value) float64 { return int96Seconds(v.Int96()) }
	case isDecimal(value):
		out.number = func(v parquet.Value) float64 { return scaled(bigEndian(v.ByteArray()), scale) }
	case isHalf(value):
		out.number = func(v parquet.Value) float64 { return half(v.ByteArray()) }
	default:
		return out, fmt.Errorf("%s is no number", c.Type())
	}
	return out, nil
}

// scaled divides by powers of ten, which are exact, rather than multiply by their
// inverses, which are not.
func scaled(x, scale float64) float64 {
	if scale < 1 {
		return x / math.Round(1/scale)
	}
	return x * scale
}

func isDecimal(v any) bool { _, ok := v.(*format.DecimalType); return ok }
func isHalf(v any) bool    { _, ok := v.(*format.Float16Type); return ok }

// unit is the length in seconds of the unit of a time.
func unit(u format.TimeUnit) float64 {
	switch u.Value.(type) {
	case *format.MilliSeconds:
		return 1e-3
	case *format.MicroSeconds:
		return 1e-6
	}
	return 1e-9
}

// int96Seconds is the time of a legacy timestamp: nanoseconds of a Julian day.
func int96Seconds(v [3]uint32) float64 {
	const julian1970 = 2440588
	nanoseconds := float64(uint64(v[1])<<32 | uint64(v[0]))
	return float64((float64(v[2])-julian1970)*86400) + nanoseconds/1e9
}

// bigEndian is the number of a decimal in two's complement.
func bigEndian(b []byte) float64 {
	x := 0.0
	for i, c := range b {
		digit := float64(c)
		if i == 0 {
			digit = float64(int8(c))
		}
		x = float64(x*256) + digit
	}
	return x
}

// half is a number of 16 bits, little-endian.
func half(b []byte) float64 {
	if len(b) != 2 {
		return math.NaN()
	}
	return float64(dataset.Half(binary.LittleEndian.Uint16(b)))
}

func (s *source) Schema() dataset.Schema { return s.schema }

// Chunks yields row groups, or bands of them.
func (s *source) Chunks(_ context.Context, yield func(dataset.Chunk) error) error {
	if err := dataset.Same(s.path, s.stored, s.info); err != nil {
		return err
	}
	first := 0
	for i, g := range s.file.RowGroups() {
		lo := 0
		for _, hi := range s.cuts[i] {
			if err := yield(&chunk{s: s, group: g, lo: lo, n: hi - lo, first: first + lo}); err != nil {
				return err
			}
			lo = hi
		}
		first += lo
	}
	return dataset.Same(s.path, s.stored, s.info)
}

// chunk is n records of a row group from lo on.
type chunk struct {
	s     *source
	group parquet.RowGroup
	lo, n int
	first int // record of the file
}

// Decode reads the pages of each column.
func (c *chunk) Decode(b *dataset.Block) (err error) {
	defer guard(c.s.path, &err)
	b.Record = c.first
	rows, d := b.Grow(c.n, c.s.schema.D), c.s.schema.D
	chunks := c.group.ColumnChunks()
	var held heldPages
	defer held.release()
	for j := range c.s.columns {
		column := &c.s.columns[j]
		err := c.pages(chunks[column.leaf], func(p parquet.Page, at int) error {
			if to := rows[at*d+j:]; c.n > mostBandRows || !held.add(p, column, to, at, d) {
				return column.decode(p, to, d)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if j%heldColumns == heldColumns-1 || j == d-1 {
			held.spread(c.n, d)
		}
	}
	if c.s.text >= 0 {
		return c.pages(chunks[c.s.text], func(p parquet.Page, _ int) error { return addTexts(b, p) })
	}
	return nil
}

// pages calls fn for each page of the records of the chunk, with the index of the
// record at which it begins.
func (c *chunk) pages(of parquet.ColumnChunk, fn func(p parquet.Page, at int) error) error {
	pages := of.Pages()
	defer pages.Close()
	if c.lo > 0 {
		if err := pages.SeekToRow(int64(c.lo)); err != nil {
			return damaged(c.s.path, err)
		}
	}
	for at := 0; at < c.n; {
		p, err := pages.ReadPage()
		if err != nil {
			return damaged(c.s.path, err)
		}
		part := p
		if rows := int(p.NumRows()); rows > c.n-at {
			part = p.Slice(0, int64(c.n-at))
		}
		count := int(part.NumRows())
		err = fn(part, at)
		parquet.Release(p)
		if err != nil {
			return damaged(c.s.path, err)
		}
		at += count
	}
	return nil
}

// heldColumns is the number of columns whose pages are held until they can be written together, since their values
// share lines of the caches; heldRows is how many of their records are written at a time.
const (
	heldColumns = 8
	heldRows    = 128
)

// heldPages are pages of doubles, none of them missing.
type heldPages struct {
	pages []parquet.Page
	parts []heldPart
}

// heldPart is the values of a page, whose first goes to to[0], of record at.
type heldPart struct {
	values, to []float64
	at         int
}

// add holds a page if its values are doubles as they are stored.
func (h *heldPages) add(p parquet.Page, c *column, to []float64, at, stride int) bool {
	n := int(p.NumValues())
	if !c.plain || n == 0 || len(p.DefinitionLevels()) > 0 || p.Dictionary() != nil || p.Type().Kind() != parquet.Double {
		return false
	}
	data := p.Data()
	values := data.Double()
	if len(values) < n || (n-1)*stride >= len(to) {
		return false
	}
	parquet.Retain(p)
	h.pages, h.parts = append(h.pages, p), append(h.parts, heldPart{values[:n], to, at})
	return true
}

// spread writes the values held for n records to every stride-th place, and lets the pages go.
func (h *heldPages) spread(n, stride int) {
	if each := len(h.parts) / heldColumns; h.together() {
		for at := range each {
			h.rows(at, each, stride)
		}
		h.release()
		return
	}
	for lo := 0; lo < n && len(h.parts) > 0; lo += heldRows {
		for _, p := range h.parts {
			from, upTo := max(lo-p.at, 0), min(lo+heldRows-p.at, len(p.values))
			if from >= upTo {
				continue
			}
			to := p.to[from*stride:]
			for i, v := range p.values[from:upTo] {
				to[i*stride] = v
			}
		}
	}
	h.release()
}

// together reports whether what is held is pages of heldColumns columns next to each other, which begin at the same
// records.
func (h *heldPages) together() bool {
	each := len(h.parts) / heldColumns
	for i, p := range h.parts {
		first := &h.parts[i%max(each, 1)]
		if p.at != first.at || len(p.values) != len(first.values) || len(first.to)-len(p.to) != i/max(each, 1) {
			return false
		}
	}
	return each*heldColumns == len(h.parts)
}

// rows writes the values of a page of each column, of which each has so many, record by record.
func (h *heldPages) rows(page, each, stride int) {
	n := len(h.parts[page].values)
	var v [heldColumns][]float64
	for j := range v {
		v[j] = h.parts[page+j*each].values[:n]
	}
	to := h.parts[page].to
	for i := range n {
		row := (*[heldColumns]float64)(to[i*stride:])
		row[0], row[1], row[2], row[3] = v[0][i], v[1][i], v[2][i], v[3][i]
		row[4], row[5], row[6], row[7] = v[4][i], v[5][i], v[6][i], v[7][i]
	}
}

func (h *heldPages) release() {
	for _, p := range h.pages {
		parquet.Release(p)
	}
	h.pages, h.parts = h.pages[:0], h.parts[:0]
}

// decode writes the values of a page to every stride-th element of dst.
func (c *column) decode(p parquet.Page, dst []float64, stride int) error {
	n := int(p.NumValues())
	levels := p.DefinitionLevels()
	if n == 0 {
		return nil
	}
	if need := (n-1)*stride + 1; need > len(dst) || (len(levels) > 0 && len(levels) != n) {
		return errors.New("a page has another number of values than it declares")
	}
	if c.plain && p.Dictionary() == nil {
		data := p.Data()
		switch p.Type().Kind() {
		case parquet.Double:
			return spread(dst, stride, data.Double(), levels, c.most, n, 1)
		case parquet.Float:
			return spread(dst, stride, data.Float(), levels, c.most, n, 1)
		case parquet.Int32:
			return spread(dst, stride, data.Int32(), levels, c.most, n, c.scale)
		case parquet.Int64:
			return spread(dst, stride, data.Int64(), levels, c.most, n, c.scale)
		}
	}
	values := p.Values()
	var buf [256]parquet.Value
	for i := 0; i < n; {
		m, err := values.ReadValues(buf[:min(len(buf), n-i)])
		for _, v := range buf[:m] {
			x := math.NaN()
			if !v.IsNull() {
				x = c.number(v)
			}
			dst[i*stride] = x
			i++
		}
		if i < n && (err != nil || m == 0) {
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}

// spread writes n values, NaN where their definition level is below most.
func spread[T float64 | float32 | int32 | int64](dst []float64, stride int, src []T, levels []byte, most byte, n int,
	scale float64) error {
	if len(levels) == 0 {
		if len(src) < n {
			return io.ErrUnexpectedEOF
		}
		for i, v := range src[:n] {
			dst[i*stride] = float64(v)
		}
	} else {
		for i, level := range levels {
			x := math.NaN()
			if level == most {
				if len(src) == 0 {
					return io.ErrUnexpectedEOF
				}
				x, src = float64(src[0]), src[1:]
			}
			dst[i*stride] = x
		}
	}
	if scale != 1 {
		for i := range n {
			dst[i*stride] = scaled(dst[i*stride], scale)
		}
	}
	return nil
}

// addTexts appends the values of a page as labels or ids.
func addTexts(b *dataset.Block, p parquet.Page) error {
	values := p.Values()
	var buf [64]parquet.Value
	for left := int(p.NumValues()); left > 0; {
		m, err := values.ReadValues(buf[:min(len(buf), left)])
		for _, v := range buf[:m] {
			switch {
			case v.IsNull():
				return errors.New("a label or id is missing")
			case v.Kind() == parquet.ByteArray || v.Kind() == parquet.FixedLenByteArray:
				b.AddText(v.ByteArray())
			default:
				b.AddText([]byte(v.String()))
			}
		}
		if left -= m; left > 0 && (err != nil || m == 0) {
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}

// damaged describes a file that cannot be decoded.
func damaged(path string, err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fault.Failed(path, "the Parquet file cannot be read: "+err.Error(), "fetch or write the file again", err)
}

// guard turns a panic of the library on a damaged file into an error.
func guard(path string, err *error) {
	if r := recover(); r != nil {
		*err = damaged(path, fmt.Errorf("%v", r))
	}
}
