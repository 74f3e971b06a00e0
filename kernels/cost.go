package kernels

import (
	"fmt"
	"math"
)

// CostRows writes the exact squared distances, in grid units of
// 2^-fractionBits squared, of the points [lo, hi) to all centroids:
// dst[(i-lo)*K+a] is the cost of point i and centroid a, and
// len(dst) = (hi-lo)*K. Points and centroids lie on the grid. lo need not be a
// multiple of 16.
func CostRows(p Panels, lo, hi int, c *Centroids, fractionBits int, dst []int64) {
	checkPair("CostRows", &p, c)
	if lo < 0 || hi < lo || hi > p.N {
		panic(fmt.Sprintf("kernels: CostRows: points [%d:%d] of %d", lo, hi, p.N))
	}
	if fractionBits < 0 || fractionBits > MaxFractionBits {
		panic(fmt.Sprintf("kernels: CostRows: fractionBits=%d, want 0 to %d", fractionBits, MaxFractionBits))
	}
	checkLength("CostRows", "dst", len(dst), (hi-lo)*c.K)
	costRows(&p, lo, hi, c, fractionBits, dst)
}

// costRowsPortable is the reference form of [CostRows].
func costRowsPortable(p *Panels, lo, hi int, c *Centroids, fractionBits int, dst []int64) {
	d := p.D
	scale := float32(math.Ldexp(1, fractionBits))
	for i := lo; i < hi; i++ {
		row := dst[(i-lo)*c.K : (i-lo+1)*c.K]
		base := i/Lanes*d*Lanes + i%Lanes
		for a := range row {
			var cost int64
			for j, cj := range c.rows[a*d : a*d+d] {
				t := int64((p.Data[base+j*Lanes] - cj) * scale)
				cost += t * t
			}
			row[a] = cost
		}
	}
}

// costDims is the number of dimensions whose squared distances are summed in
// float64 at a time: for the finest grid, 32 squares of at most 2^46 sum to at
// most 2^51, up to where float64 sums of integers are exact and convert with one addition.
const costDims = 32

func costRows(p *Panels, lo, hi int, c *Centroids, fractionBits int, dst []int64) {
	if current == generic {
		costRowsPortable(p, lo, hi, c, fractionBits, dst)
		return
	}
	var wide [costDims * Lanes]float64
	d, k, stride := p.D, c.K, wideStride(c.K)
	scale, rows := math.Ldexp(1, 2*fractionBits), c.wide.of(c)
	for lo < hi {
		first := lo % Lanes
		lanes := min(Lanes-first, hi-lo)
		panel := p.Data[(lo-first)*d : (lo-first+Lanes)*d]
		for j := 0; j < d; j += costDims {
			asmCostPanel(&panel[j*Lanes], min(costDims, d-j), &wide[0], first, lanes, &rows[j*stride], stride, k, scale,
				int64(j), &dst[0])
		}
		lo += lanes
		dst = dst[lanes*k:]
	}
}

// wideRows are centroids as [CostRows] takes them: [D][stride], coordinate by coordinate, padded to a multiple of 8.
// The first call after Set makes them.
type wideRows struct {
	form lazy
	data []float64
}

// wideStride is the padded length of a coordinate of k centroids.
func wideStride(k int) int { return (k + 7) &^ 7 }

// of returns the rows of the centroids that w belongs to.
func (w *wideRows) of(c *Centroids) []float64 {
	w.form.need(func() { w.fill(c) })
	return w.data
}

func (w *wideRows) fill(c *Centroids) {
	stride := wideStride(c.K)
	if len(w.data) < c.D*stride {
		w.data = aligned[float64](c.D * stride)
	}
	for i := range c.K {
		for j, x := range c.Row(i) {
			w.data[j*stride+i] = float64(x)
		}
	}
}
