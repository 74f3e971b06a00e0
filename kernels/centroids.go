package kernels

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// maxK is the largest number of centroids: labels are uint16 and the label K
// stands for "none".
const maxK = 1<<16 - 1

// exactDims is the number of dimensions from which distances are computed as
// |x|^2 + |c|^2 - 2 x.c instead of the sum of (x-c)^2. It is part of the result
// (the two forms round differently), so it is the same on every path.
const exactDims = 16

// Centroids holds K centroids of D coordinates in the layouts the kernels read.
// It is read-only for all kernels, so workers may share it; Set must not run at
// the same time as they do.
type Centroids struct {
	K, D   int
	rows   []float32 // [K][D]
	half   []float32 // [K], |c|^2/2 as one fused chain in dimension order
	wide   *wideRows
	few    *columns  // nil for more than Lanes
	panel  []float32 // of Lanes rows, where halves are taken by panel
	tiles  []float32 // the rows by tiling, for D >= exactDims, made where they are needed first after Set
	tiled  *lazy     // nil where D is less, and for a view of tiles
	tiling tiling
	filter *filterCentroids // nil without PrepareFilter
	rank   *rankCentroids   // likewise
	narrow *narrowCentroids // likewise
}

// NewCentroids makes room for k centroids of d coordinates, all zero. It panics
// unless 0 < k <= 65535 and d > 0.
func NewCentroids(k, d int) *Centroids {
	if k <= 0 || k > maxK || d <= 0 {
		panic(fmt.Sprintf("kernels: NewCentroids: k=%d, d=%d, want 0 < k <= %d and d > 0", k, d, maxK))
	}
	c := &Centroids{
		K: k, D: d,
		rows: alignedFloat32(k * d),
		half: alignedFloat32(max(k, oneTile)),
		wide: &wideRows{},
	}
	if k <= Lanes {
		c.few = &columns{}
	}
	if d >= exactDims {
		c.tiling = dotTiling(k, d)
		c.tiles, c.tiled = alignedFloat32(max(k, c.tiling.width)*d), &lazy{}
		if k >= Lanes {
			c.panel = alignedFloat32(Lanes * d)
		}
	}
	return c
}

// resize makes room for k centroids, no more than there was room for at first; Set comes next.
func (c *Centroids) resize(k int) {
	if c.K = k; c.tiles != nil {
		c.tiling = dotTiling(k, c.D)
	}
	if c.filter != nil {
		c.filter.resize(k)
	}
}

// Set copies row-major centroids (len(rows) = K*D) and prepares their other
// forms. Values are finite; for exact sums and costs they lie on the grid.
func (c *Centroids) Set(rows []float32) {
	if len(rows) != c.K*c.D {
		panic(fmt.Sprintf("kernels: Centroids.Set: len(rows)=%d, want k*d=%d", len(rows), c.K*c.D))
	}
	copy(c.rows, rows)
	c.wide.form.made.Store(false)
	if c.few != nil {
		c.few.form.made.Store(false)
	}
	c.setHalves()
	if c.filter != nil {
		c.filter.form.made.Store(false)
	}
	if c.rank != nil {
		c.rank.set(c)
	}
	if c.narrow != nil {
		c.narrow.form.made.Store(false)
	}
	if c.tiled != nil {
		c.tiled.made.Store(false)
		for i := c.K; i < c.tiling.width; i++ {
			c.half[i] = float32(math.Inf(1)) // of no centroid: beyond all scores
		}
	}
}

// setHalves takes the chains of the squared lengths, of Lanes rows at a time where there are as many.
func (c *Centroids) setHalves() {
	i := 0
	if c.panel != nil && current != generic {
		panel := Panels{N: Lanes, D: c.D, Data: c.panel}
		for ; i+Lanes <= c.K; i += Lanes {
			pack(&panel, c.rows[i*c.D:(i+Lanes)*c.D])
			halves := c.half[i : i+Lanes]
			clear(halves)
			asmFinishDot(&panel.Data[0], 1, c.D, &halves[0], nil)
			for l, norm := range halves {
				halves[l] = norm / 2
			}
		}
	}
	for ; i < c.K; i++ {
		var norm float32
		for _, x := range c.Row(i) {
			norm = fma32(x, x, norm)
		}
		c.half[i] = norm / 2
	}
}

// lazy is a form of centroids that is made where it is needed first; a new Set clears made.
type lazy struct {
	mutex sync.Mutex
	made  atomic.Bool
}

// need calls fill unless it has been called.
func (l *lazy) need(fill func()) {
	if l.made.Load() {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !l.made.Load() {
		fill()
		l.made.Store(true)
	}
}

// tile makes the tiles.
func (c *Centroids) tile() {
	if c.tiled != nil {
		c.tiled.need(func() { c.tiling.fill(c.tiles, c.rows[:c.K*c.D], c.D) })
	}
}

// Row returns centroid i; the slice must not be written to.
func (c *Centroids) Row(i int) []float32 { return c.rows[i*c.D : (i+1)*c.D : (i+1)*c.D] }

// checkPair panics unless panels and centroids are well formed and of equal D.
func checkPair(what string, p *Panels, c *Centroids) {
	p.check(what)
	if c.D != p.D {
		panic(fmt.Sprintf("kernels: %s: centroids have d=%d, panels have d=%d", what, c.D, p.D))
	}
}

// checkLength panics unless got = want.
func checkLength(what, name string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("kernels: %s: len(%s)=%d, want %d", what, name, got, want))
	}
}
