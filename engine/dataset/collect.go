package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cohort-engine/cohort/internal/fault"
)

// collector gathers what belongs to the records but is no coordinate, block by
// block in their order.
type collector struct {
	schema Schema
	opts   *ReadOptions
	labels []int32 // that the source has for all records
	ids    bool    // which are ids
	// noLabels leaves out the labels.
	noLabels bool

	seen, n int // records met, records kept
	lo, hi  []float64
	clamped int
	table   Table
	alive   []bool // columns that may be ids
	last    []float64
	classes map[string]int32
	names   []string // by class
}

// labelled is a source that knows the labels of its records beforehand.
type labelled interface{ allLabels() []int32 }

func newCollector(s Source, opts *ReadOptions) *collector {
	c := &collector{schema: s.Schema(), opts: opts, classes: make(map[string]int32), ids: opts.id != ""}
	if l, ok := s.(labelled); ok {
		c.labels = l.allLabels()
	}
	if c.schema.Files > 1 {
		c.table.Files = make([]int, c.schema.Files)
	}
	return c
}

// put takes the next block in order.
func (c *collector) put(b *Block) error {
	s := &b.stats
	for len(c.table.starts) <= b.File && c.schema.Files > 1 {
		c.table.starts = append(c.table.starts, c.seen)
	}
	for _, i := range s.dropped {
		c.table.Report.Dropped = append(c.table.Report.Dropped, c.seen+i)
	}
	c.seen += b.N + len(s.dropped)
	c.opts.progress(c.seen, &c.schema)
	c.table.Report.Comments += b.Comments
	c.table.Report.Filled += s.filled
	c.clamped += s.clamped
	if c.ids || !c.noLabels {
		if c.schema.N > 0 && c.table.Labels == nil && len(b.Labels)+len(b.Ends) > 0 && !c.ids {
			c.table.Labels = make([]int32, 0, c.schema.N)
		}
		c.table.Labels = append(c.table.Labels, b.Labels...)
		if c.ids {
			c.putIDs(b)
		} else {
			for i := range b.Ends {
				c.putLabel(b.text(i))
			}
		}
	}
	if b.N == 0 {
		return nil
	}
	if c.table.Files != nil {
		c.table.Files[b.File] += b.N
	}
	if c.n == 0 {
		c.alive, c.last = slices.Clone(s.ids), slices.Clone(s.last)
		c.lo, c.hi = slices.Clone(s.lo), slices.Clone(s.hi)
	} else {
		for j := range c.alive {
			c.alive[j] = c.alive[j] && s.ids[j] && s.first[j] > c.last[j]
		}
		copy(c.last, s.last)
		for j := range c.lo {
			c.lo[j], c.hi[j] = min(c.lo[j], s.lo[j]), max(c.hi[j], s.hi[j])
		}
	}
	c.n += b.N
	return nil
}

// putIDs takes the ids of a block, which share their memory.
func (c *collector) putIDs(b *Block) {
	all, from := string(b.Texts), 0
	for _, end := range b.Ends {
		c.table.IDs = append(c.table.IDs, all[from:end])
		from = end
	}
}

// putLabel takes the label in text of the next record.
func (c *collector) putLabel(text []byte) {
	class, ok := c.classes[string(text)]
	if !ok {
		class = int32(len(c.names))
		c.names = append(c.names, string(text))
		c.classes[c.names[class]] = class
	}
	c.table.Labels = append(c.table.Labels, class)
}

// finish completes t, which may have its rows.
func (c *collector) finish(ctx context.Context, t *Table) error {
	s := &c.schema
	if err := c.some(); err != nil {
		return err
	}
	rows := t.Rows
	*t = c.table
	t.Rows, t.Name, t.N, t.D, t.Columns, t.Bytes, t.Missing = rows, s.Name, c.n, s.D, s.Columns, s.Bytes, c.opts.Missing
	t.numbers, t.header, t.Report.Counts = s.Numbers, s.Header, s.Counts
	for j, id := range c.alive {
		if id && c.n >= leastForIDs {
			t.Report.IDLike = append(t.Report.IDLike, s.column(j))
		}
	}
	if c.labels != nil && !c.noLabels {
		if len(c.labels) != c.seen {
			return fault.Failed(s.Name, fmt.Sprintf("%s for %s", fault.Count(len(c.labels), "label"),
				fault.Count(c.seen, "record")),
				"give one label per record", nil)
		}
		t.Labels = kept(c.labels, t.Report.Dropped)
	}
	c.numericLabels(t)
	if c.noLabels {
		return nil
	}
	return t.withLabels(ctx, c.opts.Labels, c.seen)
}

// some refuses a source without records.
func (c *collector) some() error {
	switch {
	case c.n > 0 || c.opts.MayLack:
		return nil
	case len(c.table.Report.Dropped) > 0:
		return fault.Failed(c.schema.Name, "every record has a missing value",
			"leave columns out with --columns, or use --missing mean-of-bounds", nil)
	}
	return fault.Failed(c.schema.Name, "there are no records", "give at least one record", nil)
}

// numericLabels gives labels that were read as text their numbers, if all are
// integers.
func (c *collector) numericLabels(t *Table) {
	values := make([]int32, len(c.names))
	for class, name := range c.names {
		v, err := strconv.ParseFloat(name, 64)
		if err != nil || v != math.Trunc(v) || math.Abs(v) > math.MaxInt32 {
			return
		}
		values[class] = int32(v)
	}
	if c.names != nil {
		for i, class := range t.Labels {
			t.Labels[i] = values[class]
		}
	}
}

// kept returns the values of the records that were not dropped.
func kept[T any](all []T, dropped []int) []T {
	if len(dropped) == 0 {
		return all
	}
	out := make([]T, 0, len(all)-len(dropped))
	for i, x := range all {
		if len(dropped) > 0 && dropped[0] == i {
			dropped = dropped[1:]
			continue
		}
		out = append(out, x)
	}
	return out
}

// withLabels attaches the labels of a file, or of one file per data file, that has
// seen records.
func (t *Table) withLabels(ctx context.Context, spec string, seen int) error {
	if spec == "" {
		return nil
	}
	var labels []int32
	for _, path := range splitPaths(spec) {
		l, err := openLabels(ctx, path)
		if err != nil {
			return err
		}
		labels = append(labels, l...)
	}
	if len(labels) != seen {
		return fault.Failed(spec, fmt.Sprintf("%s for %s", fault.Count(len(labels), "label"),
			fault.Count(seen, "record")),
			"give one label per record", nil)
	}
	t.Labels = kept(labels, t.Report.Dropped)
	return nil
}

// files is several sources, one after the other.
type files struct {
	schema Schema
	parts  []Source
	labels []int32
}

func (f *files) Schema() Schema     { return f.schema }
func (f *files) allLabels() []int32 { return f.labels }

// add appends a source with the same columns.
func (f *files) add(s Source) error {
	part, whole := s.Schema(), &f.schema
	if len(f.parts) == 0 {
		name, bytes, count := whole.Name, whole.Bytes, whole.Files
		*whole = part
		whole.Name, whole.Bytes, whole.Files = name, bytes && part.Bytes, count
		f.parts = append(f.parts, s)
		return nil
	}
	if part.D != whole.D {
		return fault.Failed(part.Name, fmt.Sprintf("%s where %s has %d", fault.Count(part.D, "column"),
			f.parts[0].Schema().Name, whole.D),
			"give files with the same columns", nil)
	}
	if part.N < 0 || whole.N < 0 {
		whole.N = -1
	} else {
		whole.N += part.N
	}
	whole.Bytes, whole.Once, whole.Cheap = whole.Bytes && part.Bytes, whole.Once || part.Once, whole.Cheap && part.Cheap
	whole.Size += part.Size
	if whole.Identity += "\n" + part.Identity; part.Identity == "" {
		whole.Identity = ""
	}
	whole.BlockBytes = max(whole.BlockBytes, part.BlockBytes)
	f.parts = append(f.parts, s)
	return nil
}

// Chunks reads one source after the other.
func (f *files) Chunks(ctx context.Context, yield func(Chunk) error) error {
	first := 0
	for i, s := range f.parts {
		schema := s.Schema()
		err := s.Chunks(ctx, func(c Chunk) error { return yield(fileChunk{c, &schema, i, first}) })
		if err != nil {
			return err
		}
		first += schema.N
	}
	return nil
}

// fileChunk is a chunk of one of several sources.
type fileChunk struct {
	Chunk
	schema *Schema
	file   int
	first  int // record of the source among all, if all have numbers of records
}

// Decode decodes the chunk; its errors name its own file.
func (c fileChunk) Decode(b *Block) error {
	b.schema = c.schema
	err := c.Chunk.Decode(b)
	b.File = c.file
	if b.Record >= 0 {
		b.Record, b.before = b.Record+c.first, c.first
	}
	return err
}
