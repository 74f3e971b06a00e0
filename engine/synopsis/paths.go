package synopsis

import (
	"context"
	"fmt"
	"math"
	mathbits "math/bits"
	"slices"

	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// Paths holds, for every record of one party, its path down a fixed partition:
// one digit of Bits bits a level. A path depends on its record and on public
// data alone.
type Paths struct {
	Bits, Levels int
	// low and high are the halves of the codes, which have level 0's digit in their highest bits; high is nil where
	// 32 bits are enough.
	low, high []uint32
	outside   []bool // records that are in no cell, nil for none
}

func newPaths(bits, levels, n int) *Paths {
	p := &Paths{Bits: bits, Levels: levels, low: make([]uint32, n)}
	if bits*levels > 32 {
		p.high = make([]uint32, n)
	}
	return p
}

// Len returns the number of records.
func (p *Paths) Len() int { return len(p.low) }

// code is that of record i.
func (p *Paths) code(i int) uint64 {
	if p.high == nil {
		return uint64(p.low[i])
	}
	return uint64(p.high[i])<<32 | uint64(p.low[i])
}

// set sets the codes of the records from first on.
func (p *Paths) set(first int, codes ...uint64) {
	for i, c := range codes {
		p.low[first+i] = uint32(c)
	}
	for i, c := range codes {
		if p.high == nil {
			break
		}
		p.high[first+i] = uint32(c >> 32)
	}
}

// MidpointPaths cuts the box [-1,1]^d of points on the grid 2^-fractionBits by
// midpoints, along axes 0, 1, ..., d-1, 0, 1, ... in turn; a level is `bits`
// cuts. A coordinate at a midpoint goes to the upper half. It panics unless
// bits*levels is in 1..64 and no axis is cut more than fractionBits+1 times.
func MidpointPaths(ctx context.Context, r Runner, p *kernels.Panels, fractionBits, bits, levels int) (*Paths, error) {
	return PathsAlong(ctx, r, p, fractionBits, bits, InTurn(p.D, bits*levels), nil)
}

// PathsAlong is MidpointPaths with the axes to cut, in their order: whole levels of `bits`. Where
// image is not nil, it is the images of coordinates h of records, on the same grid, that are cut.
func PathsAlong(ctx context.Context, r Runner, p *kernels.Panels, fractionBits, bits int, order []int,
	image func(h int, dst, src []float32)) (*Paths, error) {
	cuts := len(order)
	times := make([]int, p.D)
	for _, h := range order {
		times[h]++
	}
	if bits < 1 || cuts > 64 || cuts%bits != 0 || slices.Max(times) > fractionBits+1 {
		panic(fmt.Sprintf("synopsis: %d cuts, %d a level, %v times an axis at %d fraction bits", cuts, bits, times,
			fractionBits))
	}
	levels := cuts / bits
	paths := newPaths(bits, levels, p.N)
	scale := float32(int64(1) << fractionBits)
	top := uint32(1)<<(fractionBits+1) - 1
	spreads := spreadAxes(order, times, fractionBits)
	err := eachShard(ctx, r, p.N, p.D, func(lo, hi int) {
		var images [kernels.Lanes]float32
		var axis [kernels.Lanes]uint32
		for b := lo / kernels.Lanes; b*kernels.Lanes < hi; b++ {
			panel := p.Data[b*p.D*kernels.Lanes:]
			var codes [kernels.Lanes]uint64
			for at := range spreads {
				s := &spreads[at]
				if s.first {
					row := (*[kernels.Lanes]float32)(panel[s.axis*kernels.Lanes:])
					if image != nil {
						image(s.axis, images[:], row[:])
						row = &images
					}
					for i, x := range row {
						axis[i] = min(uint32(int32(x*scale)+1<<fractionBits), top)
					}
				}
				shift := s.shift % 32 // as it is: the compiler sees that no shift is larger
				for i, x := range &axis {
					codes[i] |= s.to[uint8(x>>shift)]
				}
			}
			paths.set(b*kernels.Lanes, codes[:min(kernels.Lanes, hi-b*kernels.Lanes)]...)
		}
	})
	return paths, err
}

// spread takes up to eight bits of the place on an axis, from the bit shift on, to where codes have them.
type spread struct {
	axis  int
	first bool // of the axis
	shift uint
	to    *[256]uint64
}

// spreadAxes are the spreads of all axes that are cut so many times, in the order of the axes. The first cut
// of all is the highest bit of a code, and that of an axis the highest of its fractionBits+1 bits.
func spreadAxes(order, times []int, fractionBits int) []spread {
	var all []spread
	for h, cuts := range times {
		var bits []uint64 // of codes, from the axis's last cut on
		for t := len(order) - 1; t >= 0; t-- {
			if order[t] == h {
				bits = append(bits, 1<<(len(order)-1-t))
			}
		}
		for first := cuts; first > 0; { // all but the highest bits by eights
			size := (first-1)%8 + 1
			s := spread{axis: h, first: first == cuts, shift: uint(fractionBits + 1 - cuts + first - size), to: new([256]uint64)}
			for v := 1; v < 1<<size; v++ {
				s.to[v] = s.to[v&(v-1)] | bits[first-size+mathbits.TrailingZeros(uint(v))]
			}
			all = append(all, s)
			first -= size
		}
	}
	return all
}

// CubePaths cuts the cube of the given side with its lowest corner at lo by
// halving all axes at every level (2^D children). A record outside the cube is
// counted nowhere. It panics unless D*levels is in 1..64.
func CubePaths(ctx context.Context, r Runner, p *kernels.Panels, lo []float64, side float64,
	levels int) (*Paths, error) {
	if levels < 1 || p.D*levels > 64 || len(lo) != p.D {
		panic(fmt.Sprintf("synopsis: CubePaths: %d levels in %d dimensions", levels, p.D))
	}
	paths := newPaths(p.D, levels, p.N)
	paths.outside = make([]bool, p.N)
	cells := float64(uint64(1) << levels)
	err := eachShard(ctx, r, p.N, p.D*levels, func(from, to int) {
		at := make([]uint64, p.D)
		for i := from; i < to; i++ {
			for h := range at {
				x := (float64(p.Data[(i/kernels.Lanes*p.D+h)*kernels.Lanes+i%kernels.Lanes]) - lo[h]) / side * cells
				if !(x >= 0 && x < cells) {
					paths.outside[i] = true
					break
				}
				at[h] = uint64(x)
			}
			if paths.outside[i] {
				continue
			}
			code := uint64(0)
			for l := levels - 1; l >= 0; l-- {
				for _, x := range at {
					code = code<<1 | x>>l&1
				}
			}
			paths.set(i, code)
		}
	})
	return paths, err
}

// shardPoints is the number of records of a piece of work that costs about d
// operations a record.
func shardPoints(d int) int { return max((1<<16)/d/kernels.Lanes, 4) * kernels.Lanes }

// eachShard runs fn on ranges of records that start at multiples of 16 and
// depend on n and d alone.
func eachShard(ctx context.Context, r Runner, n, d int, fn func(lo, hi int)) error {
	step := shardPoints(d)
	return parallel.Or(r).Run(ctx, (n+step-1)/step, func(_, s int) { fn(s*step, min((s+1)*step, n)) })
}

// Walker takes the records of one party down a trie, level by level.
type Walker struct {
	paths *Paths
	level int
	// cell is the cell of each record that is still inside an open node, and
	// ^leaf of each that is not.
	cell []int32
	next []int32 // where each cell of the last level leads
	part [][]int64
	// units is what each record counts for, nil for one.
	units []uint32
}

// NewWalker starts at the root, which is open.
func NewWalker(paths *Paths) *Walker {
	w := &Walker{paths: paths, cell: make([]int32, paths.Len())}
	for i, out := range paths.outside {
		if out {
			w.cell[i] = outsideCell
		}
	}
	return w
}

// Weigh lets each record count for so many units.
func (w *Walker) Weigh(units []uint32) *Walker {
	w.units = units
	return w
}

// outsideCell marks a record that is in no cell.
const outsideCell = math.MinInt32

// Count adds to counts[node<<bits|digit] what the party's records with
// that digit in that open node count for, their number without weights, at the level that the walk has reached.
// len(counts) is the number of cells of that level.
func (w *Walker) Count(ctx context.Context, r Runner, counts []int64) error {
	r = parallel.Or(r)
	if len(w.part) < r.Workers() {
		w.part = make([][]int64, r.Workers())
	}
	for i := range w.part {
		if cap(w.part[i]) < len(counts) {
			w.part[i] = make([]int64, len(counts))
		}
		w.part[i] = w.part[i][:len(counts)]
		clear(w.part[i])
	}
	bits, shift := w.paths.Bits, w.paths.Bits*(w.paths.Levels-1-w.level)
	mask := uint64(1)<<bits - 1
	const step = 1 << 14
	err := r.Run(ctx, (len(w.cell)+step-1)/step, func(worker, s int) {
		part := w.part[worker]
		lo, hi := s*step, min((s+1)*step, len(w.cell))
		for i, c := range w.cell[lo:hi] {
			if c < 0 {
				continue
			}
			if w.next != nil {
				if c = w.next[c]; c < 0 {
					w.cell[lo+i] = c
					continue
				}
			}
			c = c<<bits | int32(w.paths.code(lo+i)>>shift&mask)
			w.cell[lo+i] = c
			if w.units == nil {
				part[c]++
			} else {
				part[c] += int64(w.units[lo+i])
			}
		}
	})
	if err != nil {
		return err
	}
	for _, part := range w.part {
		for i, n := range part {
			counts[i] += n
		}
	}
	return nil
}

// Descend goes one level down. next[cell] is the index of the cell's node among
// the open nodes of the next level, or ^leaf if the cell is a leaf.
func (w *Walker) Descend(next []int32) {
	w.next = next
	w.level++
}

// leaves writes the leaf of every record to leaf; a record that is still inside
// an open node, or in no cell, gets -1.
func (w *Walker) leaves(leaf []int32) {
	for i, c := range w.cell {
		if c >= 0 && w.next != nil {
			c = w.next[c]
		}
		leaf[i] = -1
		if c < 0 && c != outsideCell {
			leaf[i] = ^c
		}
	}
}
