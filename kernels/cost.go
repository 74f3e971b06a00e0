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
