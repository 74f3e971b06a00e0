package dataset

import (
	"bytes"
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Missing says what is done about a missing value: an empty cell, NA, NaN, null,
// ?, or the null of a binary format. Infinity is never one. Each choice looks at
// one record at a time, so adding or removing a record still changes one record.
type Missing int

const (
	// RefuseMissing stops at the first missing value.
	RefuseMissing Missing = iota
	// DropRow leaves out each record with a missing value and counts it.
	DropRow
	// MeanOfBounds puts the middle of its column's bounds in place of each missing
	// value and counts it.
	MeanOfBounds
)

var missingNames = []string{"refuse", "drop-row", "mean-of-bounds"}

// String is the rule as --missing takes it.
func (m Missing) String() string { return missingNames[m] }

// ParseMissing returns the rule of that name.
func ParseMissing(name string) (Missing, error) {
	all := []Missing{RefuseMissing, DropRow, MeanOfBounds}
	return fault.Named("missing", name, all, Missing.String)
}

// missingValue stands for a missing value until the rule is applied.
var missingValue = math.NaN()

// isMissing reports whether a cell of text stands for a missing value.
func isMissing(cell []byte) bool {
	switch len(cell) {
	case 0:
		return true
	case 1:
		return cell[0] == '?'
	case 2, 3, 4:
		for _, word := range []string{"na", "n/a", "nan", "null", "none"} {
			if bytes.EqualFold(cell, []byte(word)) {
				return true
			}
		}
	}
	return false
}

// notFinite returns the index of the first NaN or infinity of x, or -1.
func notFinite(x []float64) int {
	const exponent = 0x7ff << 52
	for i, v := range x {
		if math.Float64bits(v)&exponent == exponent {
			return i
		}
	}
	return -1
}

// blockStats is what one block tells of its columns.
type blockStats struct {
	dropped         []int // records left out, by their place in the block
	filled, clamped int
	lo, hi          []float64 // least and greatest value of each column
	ids             []bool    // strictly increasing integers
	first, last     []float64 // records, for columns that are ids
}

// settle applies the rule for missing values to the decoded block and refuses
// what is not finite. Only MeanOfBounds leaves NaN in the rows.
func (b *Block) settle() error {
	d := b.schema.D
	at := notFinite(b.Rows)
	if at < 0 {
		return nil
	}
	kept := at / d
	for i := kept; i < b.N; i++ {
		row := b.Rows[i*d : (i+1)*d]
		missing := 0
		for j, v := range row {
			if math.IsInf(v, 0) || (math.IsNaN(v) && b.Missing == RefuseMissing) {
				return b.notFiniteFault(i, j)
			}
			if math.IsNaN(v) {
				missing++
			}
		}
		if missing > 0 && b.Missing == DropRow {
			b.stats.dropped = append(b.stats.dropped, i)
			continue
		}
		b.stats.filled += missing
		copy(b.Rows[kept*d:(kept+1)*d], row)
		b.moveText(i, kept)
		kept++
	}
	b.Rows, b.N = b.Rows[:kept*d], kept
	b.Ends, b.Labels = b.Ends[:min(kept, len(b.Ends))], b.Labels[:min(kept, len(b.Labels))]
	return nil
}

// moveText makes the label or id of record i that of record kept <= i.
func (b *Block) moveText(i, kept int) {
	if len(b.Labels) > 0 {
		b.Labels[kept] = b.Labels[i]
	}
	if len(b.Ends) == 0 || i == kept {
		return
	}
	from := 0
	if kept > 0 {
		from = b.Ends[kept-1]
	}
	b.Ends[kept] = from + copy(b.Texts[from:], b.text(i))
}

func (b *Block) notFiniteFault(i, j int) error {
	return fault.Failed(b.cell(i, j), errNotFinite.Error(), "correct the cell, or leave the column out with --columns",
		errNotFinite)
}

// cell names a cell of record i of the block for an error, or the record for no column, -1.
func (b *Block) cell(i, j int) string {
	if b.Record >= 0 {
		i += b.Record - b.before
	}
	return b.schema.place(i, j)
}

// leastForIDs is the number of records from which a column of increasing integers
// is taken for ids.
const leastForIDs = 20

// look collects the ranges of the columns and finds those that look like ids.
func (b *Block) look(ranges bool) {
	s, d := &b.stats, b.schema.D
	if s.ids == nil {
		s.ids, s.first, s.last = make([]bool, d), make([]float64, d), make([]float64, d)
	}
	if b.N == 0 {
		return
	}
	copy(s.first, b.Rows)
	copy(s.last, b.Rows[(b.N-1)*d:])
	for j := range d {
		s.ids[j] = increasingIntegers(b.Rows[j:], d)
	}
	if !ranges {
		return
	}
	if s.lo == nil {
		s.lo, s.hi = make([]float64, d), make([]float64, d)
	}
	for j := range d {
		s.lo[j], s.hi[j] = math.Inf(1), math.Inf(-1)
	}
	widen(s.lo, s.hi, b.Rows, s.filled > 0)
}

// increasingIntegers reports whether every d-th value of x is an integer above the
// one before.
func increasingIntegers(x []float64, d int) bool {
	before := math.Inf(-1)
	for i := 0; i < len(x); i += d {
		v := x[i]
		if !(v > before) || v != math.Trunc(v) {
			return false
		}
		before = v
	}
	return true
}

// widen extends the ranges of the columns to hold rows, which may hold NaN if gaps.
func widen(lo, hi, rows []float64, gaps bool) {
	d := len(lo)
	hi = hi[:d]
	for ; len(rows) >= d; rows = rows[d:] {
		for j, v := range rows[:d] {
			if gaps && math.IsNaN(v) {
				continue
			}
			if v < lo[j] {
				lo[j] = v
			}
			if v > hi[j] {
				hi[j] = v
			}
		}
	}
}
