package dataset

import (
	"context"

	"github.com/cohort-engine/cohort/kernels"
)

// DefaultFractionBits and MaxFractionBits are the default and the largest f of
// the grid 2^-f. A grid value of up to 22 fraction bits in [-1, 1] is exact in
// float32.
const (
	DefaultFractionBits = 16
	MaxFractionBits     = 22
)

// Normalised are the records of a table on the grid 2^-FractionBits in [-1, 1].
type Normalised struct {
	Points       *kernels.Panels
	Bounds       Bounds
	FractionBits int
	Clamped      int // coordinates that were outside their bounds
	// Weights has the weight of each record, or is nil if all weigh the same.
	Weights []float64
	// Unit says that the records were scaled to length 1.
	Unit bool
}

// Table is all records as those of one holder.
func (n *Normalised) Table() []Part {
	return []Part{{Points: n.Points, FractionBits: n.FractionBits, Weights: n.Weights}}
}

// Truncate rounds x in [-1, 1] toward zero onto the grid 2^-f, f <= 22. A
// record truncated so never grows in any norm, hence no sensitivity does
// (THEOREMS.md T6).
func Truncate(x float64, f int) float32 {
	scale := float64(uint64(1) << f)
	return float32(float64(int64(x*scale)) / scale)
}

// Normalise maps each coordinate from its bounds to [-1, 1], clamps and counts
// what is outside, and truncates toward zero onto the grid 2^-fractionBits. A value
// that is not finite is an error, unless Table.Missing has a rule for NaN.
func Normalise(t *Table, b Bounds, fractionBits int) (*Normalised, error) {
	if t == nil {
		return nil, errNoTable
	}
	s, err := t.Source()
	if err != nil {
		return nil, err
	}
	if fractionBits == 0 {
		fractionBits = -1 // which is no default here
	}
	p, err := Prepare(context.Background(), s,
		PrepareOptions{Read: ReadOptions{Missing: t.Missing}, Bounds: &b, FractionBits: fractionBits})
	if err != nil {
		return nil, err
	}
	return &p.Normalised, nil
}

// Columns returns new panels with some of the columns, in that order: what one
// party of a vertical protocol holds.
func (p *Part) Columns(columns []int) *kernels.Panels {
	dst := kernels.NewPanels(p.Points.N, len(columns))
	p.CopyColumns(dst, columns, 0, p.Points.N)
	return dst
}

// CopyColumns is Columns into panels of as many points, for the points from lo, the first
// of a panel, to hi.
func (p *Part) CopyColumns(dst *kernels.Panels, columns []int, lo, hi int) {
	src := p.Points
	const lanes = kernels.Lanes
	for block := lo / lanes; block < (hi+lanes-1)/lanes; block++ {
		from := src.Data[block*lanes*src.D:]
		to := dst.Data[block*lanes*dst.D:]
		for i, c := range columns {
			*(*[lanes]float32)(to[i*lanes:]) = *(*[lanes]float32)(from[c*lanes:])
		}
	}
}
