package dataset

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// PrepareOptions says how Prepare puts records on the grid.
type PrepareOptions struct {
	Read ReadOptions // Labels, Missing and Workers; the rest concerns OpenSource
	// Bounds are the public bounds of the columns. Nil takes them from the records,
	// which are then read twice, and all of a source that can be read once is held.
	Bounds *Bounds
	// OneScale maps all columns by one scale (Bounds.oneScale), the widest column's.
	OneScale bool
	// Unit scales each record to length 1 first, so that distances are those of directions: the bounds are [-1, 1] then.
	// A record of length 0 is an error.
	Unit         bool
	FractionBits int // of the grid; 0: DefaultFractionBits, or with Unit MaxFractionBits
	// Weights has a finite weight, 0 or more, for each record of the source, or is nil.
	Weights []float64
	// DigestKey, if not nil, asks for Prepared.Digests.
	DigestKey *[16]byte
	NoLabels  bool // leave out the labels of the source, which take memory
	// MaxMemory bounds the bytes of the panels; 0: what is available.
	MaxMemory int64
	// Cache is a folder that keeps the panels in a file, which is mapped: for sets
	// beyond memory, and sets that are prepared once for many programs. Prepared.Close
	// gives the mapping back. A preparation that was interrupted goes on where it was.
	Cache string

	noteBytes int64 // written to the cache between two notes; 0: noteBytes
}

// Prepared are records ready to be clustered, as often as wanted.
type Prepared struct {
	Normalised
	Table *Table // names, labels, ids, counts of files and the report; without Rows
	// Digests identify the columns, in their own units and whatever the order of the rows. They are keyed, and
	// hashes of private data to whoever has the key.
	Digests []string

	mapped bool // the panels are a file
}

// heldBytes bounds the decoded records that are kept between the pass that finds
// their bounds and the one that puts them on the grid, so that a small set is read
// once.
const heldBytes = 16 << 20

// Prepare reads the records of a source once, or twice without bounds, and puts them
// on the grid while they are read: beside the panels it needs a few pieces of the
// source per worker. It refuses records that are not finite and sets that cannot
// fit in memory.
func Prepare(ctx context.Context, s Source, opts PrepareOptions) (*Prepared, error) {
	if err := given(ctx, s); err != nil {
		return nil, err
	}
	schema := s.Schema()
	if opts.FractionBits == 0 {
		if opts.FractionBits = DefaultFractionBits; opts.Unit {
			opts.FractionBits = MaxFractionBits
		}
	}
	if b := unitBounds(schema.D); opts.Unit && opts.Bounds == nil {
		opts.Bounds = &b
	}
	if opts.FractionBits < 1 || opts.FractionBits > MaxFractionBits {
		return nil, fault.Request(fmt.Sprintf("fraction bits %d", opts.FractionBits), "outside 1 to 22",
			"choose a number of fraction bits from 1 to 22, 16 by default")
	}
	if opts.Cache == "" {
		if err := checkFit(&schema, opts.MaxMemory); err != nil {
			return nil, err
		}
	}
	var b Bounds
	var file *cache
	if opts.Bounds != nil {
		b = *opts.Bounds
		if len(b.Lo) != schema.D || len(b.Hi) != schema.D {
			return nil, fault.Request("bounds", fmt.Sprintf("%s for %s", fault.Count(len(b.Lo), "pair"),
				fault.Count(schema.D, "column")),
				"give one pair per column")
		}
		if err := b.Validate("bounds"); err != nil {
			return nil, err
		}
		if opts.Unit {
			if err := b.checkUnit(); err != nil {
				return nil, err
			}
		}
		if opts.OneScale {
			b = b.oneScale()
			if err := b.Validate("bounds"); err != nil {
				return nil, err
			}
		}
	}
	if opts.Cache != "" {
		var err error
		if file, err = openCache(ctx, opts.Cache, &schema, &opts); err != nil {
			return nil, err
		}
		defer file.release()
		if opts.Bounds == nil {
			b = file.state.Bounds // found by a pass that ended, or none
		}
	}
	if b.Lo == nil {
		var err error
		if b, s, err = boundsOf(ctx, s, &opts, file != nil); err != nil {
			return nil, err
		}
	}
	return prepare(ctx, s, b, &opts, file)
}

// boundsOf finds the bounds of the records, and returns a source of the same
// records for another pass, which is s itself if again.
func boundsOf(ctx context.Context, s Source, opts *PrepareOptions, again bool) (Bounds, Source, error) {
	c := newCollector(s, &opts.Read)
	if c.schema.Bytes {
		return byteBounds(c.schema.D), s, nil
	}
	held := &heldSource{of: s, schema: c.schema}
	keep := func(b *Block) {
		if held != nil && !held.add(b) {
			held = nil // too much to keep: the source is read again
		}
	}
	if c.schema.Cheap || again {
		held, keep = nil, nil
	}
	b, err := c.bounds(ctx, s, opts.OneScale, keep)
	if err != nil || held == nil {
		return b, s, err
	}
	return b, held, nil
}

// prepare makes the pass that puts records on the grid; file is the cache that the
// panels go to, or nil.
func prepare(ctx context.Context, s Source, b Bounds, opts *PrepareOptions, file *cache) (*Prepared, error) {
	c := newCollector(s, &opts.Read)
	c.noLabels = opts.NoLabels
	d := c.schema.D
	var digest *columnDigests
	if opts.DigestKey != nil {
		digest = newColumnDigests(*opts.DigestKey, d)
	}
	var to sink
	if file != nil {
		file.state.Bounds = b
		file.restore(c, digest)
		s, to = later{s, file.state.Chunks}, file
	} else {
		known := c.schema.N
		if opts.Read.Missing == DropRow {
			known = -1
		}
		to = newPanelSink(known, &c.schema, opts.Read.threads())
		defer to.release()
	}
	if all := direct(s, opts); all != nil {
		if err := all.pack(ctx, c, kernels.NewUnitMap(b.Lo, b.Hi, opts.FractionBits), to.(*panelSink).panels); err != nil {
			return nil, err
		}
	} else if file == nil || !file.state.Complete {
		err := pack(ctx, s, c, b, opts, to, digest)
		if file != nil {
			file.state.Complete = err == nil
			if e := file.note(c, digest); e != nil && err == nil {
				err = cacheFault(opts.Cache, e)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	p := &Prepared{Table: &Table{}}
	if err := c.finish(ctx, p.Table); err != nil {
		return nil, err
	}
	points, err := to.finish()
	if err != nil {
		return nil, err
	}
	p.Normalised, p.mapped = Normalised{Points: points, Bounds: b, FractionBits: opts.FractionBits,
		Clamped: c.clamped, Unit: opts.Unit}, file != nil
	if p.Weights, err = p.Table.weights(opts.Weights, c.seen); err != nil {
		p.Close()
		return nil, err
	}
	if digest != nil {
		p.Digests = digest.text(c.n)
	}
	return p, nil
}

// pack puts the records of a source on the grid and into the sink.
func pack(ctx context.Context, s Source, c *collector, b Bounds, opts *PrepareOptions, to sink,
	digest *columnDigests) error {
	units, d := kernels.NewUnitMap(b.Lo, b.Hi, opts.FractionBits), c.schema.D
	work := func(blk *Block) error {
		if err := blk.settleAll(&b, opts.Unit, digest); err != nil {
			return err
		}
		if blk.packed = to.place(blk, units); !blk.packed {
			blk.quantise(units)
		}
		// NaN and infinity lie outside any bounds.
		if blk.stats.clamped > 0 && blk.Missing == RefuseMissing {
			if err := blk.settle(); err != nil {
				return err
			}
		}
		blk.look(false)
		return nil
	}
	file, _ := to.(*cache)
	return inOrder(ctx, s, &c.schema, &opts.Read, work, func(blk *Block) error {
		if blk.digest != nil {
			digest.merge(blk.digest)
		}
		if blk.packed {
			to.skip(blk.N)
		} else if err := to.append(blk.grid[:blk.N*d], blk.N); err != nil {
			return err
		}
		if err := c.put(blk); err != nil || file == nil {
			return err
		}
		return file.advance(c, digest)
	})
}

// settleAll makes the rows of the block ready for the grid, but does not look for missing values that are refused.
// The digest, unless nil, is of what the records have, before missing values are filled in.
func (b *Block) settleAll(bounds *Bounds, unit bool, digest *columnDigests) error {
	if b.Missing != RefuseMissing {
		if err := b.settle(); err != nil {
			return err
		}
	}
	if b.digest = nil; digest != nil {
		b.digest = digest.empty()
		b.digest.add(b.Rows)
	}
	if b.Missing != RefuseMissing {
		b.fill(bounds)
	}
	if unit {
		return b.toUnit()
	}
	return nil
}

// quantise puts the rows of the block on the grid.
func (b *Block) quantise(units *kernels.UnitMap) {
	if cap(b.grid) < len(b.Rows) {
		b.grid = make([]float32, len(b.Rows))
	}
	b.stats.clamped = kernels.Quantise(b.grid[:len(b.Rows)], b.Rows, units)
}

// fill puts the middle of the bounds in place of missing values.
func (b *Block) fill(bounds *Bounds) {
	d := len(bounds.Lo)
	for i, left := 0, b.stats.filled; left > 0; i++ {
		if v := b.Rows[i]; math.IsNaN(v) {
			lo, hi := bounds.Lo[i%d], bounds.Hi[i%d]
			b.Rows[i] = lo + (hi-lo)/2
			left--
		}
	}
}

// weights checks the weights of seen records and returns those that were kept.
func (t *Table) weights(w []float64, seen int) ([]float64, error) {
	if w == nil {
		return nil, nil
	}
	if len(w) != seen {
		return nil, fault.Request("weights", fmt.Sprintf("%d for %s", len(w), fault.Count(seen, "record")),
			"give one weight per record")
	}
	for i, v := range w {
		if !(v >= 0) || math.IsInf(v, 0) {
			return nil, fault.Request("weights", fmt.Sprintf("weight %d is %g", i+1, v), "give finite weights of 0 or more")
		}
	}
	return kept(w, t.Report.Dropped), nil
}

// heldSource is decoded records that were kept from a pass over another source.
type heldSource struct {
	of     Source
	schema Schema
	blocks []Block
	bytes  int
}

// add keeps a copy of the block. It reports false when there is too much, which
// there never is of a source that can be read once.
func (h *heldSource) add(b *Block) bool {
	if h.bytes += 8 * len(b.Rows); h.bytes > heldBytes && !h.schema.Once {
		return false
	}
	kept := *b
	kept.grid, kept.stats = nil, blockStats{dropped: append([]int(nil), b.stats.dropped...), filled: b.stats.filled}
	kept.Rows = append([]float64(nil), b.Rows...)
	kept.Texts, kept.Ends = append([]byte(nil), b.Texts...), append([]int(nil), b.Ends...)
	kept.Labels = append([]int32(nil), b.Labels...)
	h.blocks = append(h.blocks, kept)
	return true
}

func (h *heldSource) Schema() Schema { return h.schema }

func (h *heldSource) allLabels() []int32 {
	if l, ok := h.of.(labelled); ok {
		return l.allLabels()
	}
	return nil
}

// Chunks yields the blocks.
func (h *heldSource) Chunks(_ context.Context, yield func(Chunk) error) error {
	for i := range h.blocks {
		if err := yield((*heldChunk)(&h.blocks[i])); err != nil {
			return err
		}
	}
	return nil
}

// heldChunk is a block that was kept.
type heldChunk Block

// Decode copies the block. Its records are settled: what was dropped is counted
// again, what was filled in is found again.
func (c *heldChunk) Decode(b *Block) error {
	b.N, b.File, b.Record, b.Comments = c.N, c.File, c.Record, c.Comments
	b.schema, b.before = c.schema, c.before
	b.Rows = append(b.Rows, c.Rows...)
	b.Texts, b.Ends, b.Labels = append(b.Texts, c.Texts...), append(b.Ends, c.Ends...), append(b.Labels, c.Labels...)
	b.stats.dropped = append(b.stats.dropped, c.stats.dropped...)
	return nil
}
