package dataset

import (
	"fmt"

	"github.com/cohort-engine/cohort/engine/fault"
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
}

// Truncate rounds x in [-1, 1] toward zero onto the grid 2^-f, f <= 22. A
// record truncated so never grows in any norm, hence no sensitivity does
// (THEOREMS.md T6).
func Truncate(x float64, f int) float32 {
	scale := float64(uint64(1) << f)
	return float32(float64(int64(x*scale)) / scale)
}

// blockValues is the number of values that are brought to the grid at a time.
const blockValues = 1 << 13

// Normalise maps each coordinate from its bounds to [-1, 1], clamps and counts
// what is outside, and truncates toward zero onto the grid 2^-fractionBits.
func Normalise(t *Table, b Bounds, fractionBits int) (*Normalised, error) {
	if fractionBits < 1 || fractionBits > MaxFractionBits {
		return nil, fault.Request(fmt.Sprintf("fraction bits %d", fractionBits), "outside 1 to 22", "choose a number of fraction bits from 1 to 22, 16 by default")
	}
	if len(b.Lo) != t.D || len(b.Hi) != t.D {
		return nil, fault.Request("bounds", fmt.Sprintf("%d pairs for %d columns", len(b.Lo), t.D), "give one pair per column")
	}
	if err := b.Validate("bounds"); err != nil {
		return nil, err
	}
	out := &Normalised{Points: kernels.NewPanels(t.N, t.D), Bounds: b, FractionBits: fractionBits}
	// A block of grid values is packed while it is in the cache.
	step := max(blockValues/t.D/kernels.Lanes, 1) * kernels.Lanes
	units, block := kernels.NewUnitMap(b.Lo, b.Hi, fractionBits), make([]float32, min(step, t.N)*t.D)
	for lo := 0; lo < t.N; lo += step {
		hi := min(lo+step, t.N)
		grid, panels := block[:(hi-lo)*t.D], out.Points.Slice(lo, hi)
		out.Clamped += kernels.Quantise(grid, t.Rows[lo*t.D:hi*t.D], units)
		kernels.Pack(&panels, grid)
	}
	return out, nil
}

// Columns returns new panels with some of the columns, in that order: what one
// party of a vertical protocol holds.
func (n *Normalised) Columns(columns []int) *kernels.Panels {
	src := n.Points
	dst := kernels.NewPanels(src.N, len(columns))
	const lanes = kernels.Lanes
	for block := range (src.N + lanes - 1) / lanes {
		from := src.Data[block*lanes*src.D:]
		to := dst.Data[block*lanes*dst.D:]
		for i, c := range columns {
			copy(to[i*lanes:(i+1)*lanes], from[c*lanes:(c+1)*lanes])
		}
	}
	return dst
}
