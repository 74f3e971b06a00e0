package kernels

import "math"

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
	scale := math.Ldexp(1, 2*fractionBits)
	for lo < hi {
		first := lo % Lanes
		lanes := min(Lanes-first, hi-lo)
		panel := p.Data[(lo-first)*d : (lo-first+Lanes)*d]
		for j := 0; j < d; j += costDims {
			asmCostPanel(&panel[j*Lanes], min(costDims, d-j), &wide[0], first, lanes, &c.wide[j*stride], stride, k, scale,
				int64(j), &dst[0])
		}
		lo += lanes
		dst = dst[lanes*k:]
	}
}
