package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Bounds are the limits of each coordinate in the data's own units. A private
// run needs them public: stated by the user, not computed from the records.
type Bounds struct {
	Lo, Hi   []float64
	FromData bool // computed from the records, so not covered by any epsilon
}

// SameBounds are lo and hi for each of d columns.
func SameBounds(d int, lo, hi float64) Bounds {
	return Bounds{Lo: slices.Repeat([]float64{lo}, d), Hi: slices.Repeat([]float64{hi}, d)}
}

// byteBounds are the bounds of d columns of bytes, public by their format.
func byteBounds(d int) Bounds { return SameBounds(d, 0, 255) }

// unitBounds are those of records of length 1.
func unitBounds(d int) Bounds { return SameBounds(d, -1, 1) }

// ParseBounds parses "lo:hi", the same for all d columns, or d such pairs
// separated by commas.
func ParseBounds(s string, d int) (Bounds, error) {
	if d < 0 {
		return Bounds{}, fault.Range("columns", d, "at least 0")
	}
	b := SameBounds(d, 0, 0)
	what := "bounds " + strconv.Quote(s)
	pairs := strings.Split(s, ",")
	if len(pairs) != 1 && len(pairs) != d {
		return Bounds{}, fault.Request(what, fmt.Sprintf("%s for %s", fault.Count(len(pairs), "pair"),
			fault.Count(d, "column")),
			"give one lo:hi, or one for each column")
	}
	for j := range d {
		if j >= len(pairs) {
			b.Lo[j], b.Hi[j] = b.Lo[0], b.Hi[0]
			continue
		}
		lo, hi, ok := strings.Cut(pairs[j], ":")
		if !ok {
			return Bounds{}, fault.Request(what, fmt.Sprintf("%q has no colon", pairs[j]), "write lo:hi, for example -1:1")
		}
		var err error
		if b.Lo[j], err = parseFloat([]byte(strings.TrimSpace(lo))); err == nil {
			b.Hi[j], err = parseFloat([]byte(strings.TrimSpace(hi)))
		}
		if err != nil {
			return Bounds{}, fault.Request(what, err.Error(), "write lo:hi, for example -1:1")
		}
	}
	return b, b.Validate(what)
}

// OpenBounds reads a file with one "lo,hi" row for each of the d columns.
func OpenBounds(ctx context.Context, path string, d int) (Bounds, error) {
	const rows = "write one lo,hi row per column, without names"
	t, err := Open(ctx, path, ReadOptions{Workers: 1})
	if err != nil {
		if f := (*fault.Error)(nil); errors.As(err, &f) && !errors.As(err, new(*fs.PathError)) {
			return Bounds{}, fault.Failed(f.What, f.Why, rows, err) // there is no choice of columns
		}
		return Bounds{}, err
	}
	if t.D != 2 {
		return Bounds{}, fault.Failed(path, fmt.Sprintf("%s in a row where bounds have two", fault.Count(t.D, "cell")),
			rows, nil)
	}
	if t.N != d {
		return Bounds{}, fault.Failed(path, fmt.Sprintf("%s for %s", fault.Count(t.N, "row"), fault.Count(d, "column")),
			rows, nil)
	}
	b := SameBounds(d, 0, 0)
	for j := range d {
		b.Lo[j], b.Hi[j] = t.Rows[2*j], t.Rows[2*j+1]
	}
	return b, b.Validate("bounds of " + path)
}

// BoundsFromData returns the smallest bounds that hold every record. They
// depend on the records, so a ledger has to say that no epsilon covers them. A
// constant column is an error: it has no width to map. A table of bytes needs no
// such look: its bounds are 0 and 255, by its format.
func BoundsFromData(t *Table) (Bounds, error) {
	s, err := t.Source()
	if err != nil {
		return Bounds{}, err
	}
	c := newCollector(s, &ReadOptions{Missing: t.Missing})
	return c.bounds(context.Background(), s, false, nil)
}

// bounds are those of all records of a source. put, unless nil, is called for each
// block. With oneScale columns may be constant.
func (c *collector) bounds(ctx context.Context, s Source, oneScale bool, put func(*Block)) (Bounds, error) {
	if c.schema.Bytes {
		return byteBounds(c.schema.D), nil
	}
	var err error
	if all := direct(s, &PrepareOptions{Read: *c.opts}); all != nil {
		err = all.extend(ctx, c)
	} else {
		work := func(b *Block) error {
			err := b.settle()
			b.look(true)
			return err
		}
		err = inOrder(ctx, s, &c.schema, c.opts, work, func(b *Block) error {
			if put != nil {
				put(b)
			}
			return c.put(b)
		})
	}
	if err != nil {
		return Bounds{}, err
	}
	if err := c.some(); err != nil {
		return Bounds{}, err
	}
	b := Bounds{Lo: c.lo, Hi: c.hi, FromData: true}
	for j := range b.Lo {
		state := ""
		switch lo, hi := b.Lo[j], b.Hi[j]; {
		case lo > hi:
			state = "has no values"
		case math.IsInf(hi-lo, 1):
			state = "has values too far apart"
		case lo == hi && !oneScale:
			state = fmt.Sprintf("is constant (%g)", lo)
		default:
			continue
		}
		return Bounds{}, fault.Failed(c.schema.Name,
			fmt.Sprintf("column %s %s, so the data gives it no bounds", c.schema.column(j), state),
			"state the bounds with --bounds or --bounds-file, or leave the column out with --columns", nil)
	}
	if oneScale {
		b = b.oneScale()
	}
	return b, b.Validate("bounds of " + c.schema.Name)
}

// oneScale widens the bounds of each column, about their middle, to the width of the
// widest, so that distances on the grid are those of the data's own units, divided by
// half that width. Columns that are all constant get the width 1, or what the size of their values needs.
func (b Bounds) oneScale() Bounds {
	width, size := 0.0, 0.0
	for j := range b.Lo {
		width, size = max(width, b.Hi[j]-b.Lo[j]), max(size, math.Abs(b.Lo[j]))
	}
	if width == 0 {
		width = max(1, float64(size*0x1p-20))
	}
	out := Bounds{Lo: make([]float64, len(b.Lo)), Hi: make([]float64, len(b.Lo)), FromData: b.FromData}
	for j, lo := range b.Lo {
		middle := lo + (b.Hi[j]-lo)/2
		out.Lo[j], out.Hi[j] = min(lo, middle-width/2), max(b.Hi[j], middle+width/2)
	}
	return out
}

// Validate reports bounds that are reversed, empty, or so wide that their width
// is not a float64. The name stands in the error.
func (b Bounds) Validate(name string) error {
	if len(b.Lo) != len(b.Hi) {
		return fault.Request(name, fmt.Sprintf("%d lower and %d upper bounds", len(b.Lo), len(b.Hi)),
			"give one pair per column")
	}
	for j := range b.Lo {
		lo, hi := b.Lo[j], b.Hi[j]
		switch {
		case math.IsNaN(lo) || math.IsNaN(hi) || math.IsInf(hi-lo, 0):
			return fault.Request(name, fmt.Sprintf("%g:%g of column %d has no finite width", lo, hi, j+1),
				"give finite, narrower bounds")
		case lo >= hi:
			return fault.Request(name, fmt.Sprintf("the lower bound %g of column %d is not below the upper bound %g", lo, j+1,
				hi), "give a lower bound below the upper one")
		}
	}
	return nil
}

// Denormalise writes the record with normalised coordinates row, in the data's
// own units, to dst (made when nil) and returns it.
func (b Bounds) Denormalise(dst, row []float64) []float64 {
	if dst == nil {
		dst = make([]float64, len(row))
	}
	for j, v := range row {
		dst[j] = float64(b.Lo[j]*((1-v)/2)) + float64(b.Hi[j]*((1+v)/2))
	}
	return dst
}

// Relative maps a point in the data's own units to those of [-1,1], without clamping
// it: the inverse of Denormalise.
func (b Bounds) Relative(row []float64) []float64 {
	out := make([]float64, len(row))
	for h, x := range row {
		out[h] = float64(2*(x-b.Lo[h])/(b.Hi[h]-b.Lo[h])) - 1
	}
	return out
}

// Normalise maps points in the data's own units, such as centroids, to [-1,1], clamps them and returns
// them row-major.
func (b Bounds) Normalise(points [][]float64) ([]float64, error) {
	out := make([]float64, 0, len(points)*len(b.Lo))
	for i, row := range points {
		if len(row) != len(b.Lo) {
			return nil, fault.Request(fmt.Sprintf("point %d", i+1),
				fmt.Sprintf("has %s for %s", fault.Count(len(row), "number"), fault.Count(len(b.Lo), "column")),
				"give one number per column")
		}
		for h, y := range b.Relative(row) {
			if math.IsNaN(y) || math.IsInf(row[h], 0) {
				return nil, fault.Request(fmt.Sprintf("point %d", i+1), fmt.Sprintf("has %v", row[h]), "give finite numbers")
			}
			out = append(out, min(max(y, -1), 1))
		}
	}
	return out, nil
}

// Visit calls visit with consecutive rows of a source, row-major: NaN for a missing value, if read has a rule for
// such. It must not keep them. Of the records the error tells only what is not finite.
func Visit(ctx context.Context, s Source, read ReadOptions, visit func(rows []float64)) error {
	if err := given(ctx, s); err != nil {
		return err
	}
	schema := s.Schema()
	return inOrder(ctx, s, &schema, &read, (*Block).settle, func(b *Block) error {
		visit(b.Rows)
		return nil
	})
}

// Again is a source of the same records that can be read any number of times: s itself if it can, else one that
// holds what it reads now.
func Again(ctx context.Context, s Source, read ReadOptions) (Source, error) {
	if err := given(ctx, s); err != nil {
		return nil, err
	}
	schema := s.Schema()
	if !schema.Once {
		return s, nil
	}
	held := &heldSource{of: s, schema: schema}
	err := inOrder(ctx, s, &schema, &read, (*Block).settle, func(b *Block) error {
		held.add(b)
		return nil
	})
	held.schema.Once = false
	return held, err
}

// ByFile are sources of the records of each file of a source of several, or the source.
func ByFile(s Source) []Source {
	switch s := s.(type) {
	case *files:
		if s.schema.Files > 1 {
			return s.parts
		}
	case *heldSource:
		if s.schema.Files < 2 {
			break
		}
		parts := make([]Source, s.schema.Files)
		for i := range parts {
			part := &heldSource{of: s.of, schema: s.schema}
			part.schema.Files = 1
			for _, b := range s.blocks {
				if b.File == i {
					part.blocks = append(part.blocks, b)
				}
			}
			parts[i] = part
		}
		return parts
	}
	return []Source{s}
}

// Digests are those of Prepared.Digests, found in a pass over the source alone, and the number of its records.
func Digests(ctx context.Context, s Source, read ReadOptions, key [16]byte) (columns []string, n int, err error) {
	if err := given(ctx, s); err != nil {
		return nil, 0, err
	}
	digest := newColumnDigests(key, s.Schema().D)
	err = Visit(ctx, s, read, func(rows []float64) {
		digest.add(rows)
		n += len(rows) / len(digest.sums)
	})
	return digest.text(n), n, err
}
