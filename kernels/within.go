package kernels

import "fmt"

// WithinDims is the number of dimensions from which [Within] is not defined.
const WithinDims = exactDims

// Within marks the centroids near each point: bit l of masks[b*K+a] is set if the
// squared distance of point 16b+l to centroid a, computed as by [Assign], is at
// most limit[16b+l]. The limits of lanes past N may be anything; so may their
// bits. len(limit) = 16*ceil(N/16), len(masks) = K*ceil(N/16). It panics unless
// D < [WithinDims].
func Within(p Panels, c *Centroids, limit []float32, masks []uint16) {
	checkPair("Within", &p, c)
	if p.D >= WithinDims {
		panic(fmt.Sprintf("kernels: Within: d=%d, want d < %d", p.D, WithinDims))
	}
	checkLength("Within", "limit", len(limit), panelCount(p.N)*Lanes)
	checkLength("Within", "masks", len(masks), panelCount(p.N)*c.K)
	within(&p, c, limit, masks)
}

// withinPortable is the reference form of [Within].
func withinPortable(p *Panels, c *Centroids, limit []float32, masks []uint16) {
	d := p.D
	for b := range panelCount(p.N) {
		panel := p.Data[b*Lanes*d : (b+1)*Lanes*d]
		bound := (*[Lanes]float32)(limit[b*Lanes:])
		for a := range c.K {
			var s [Lanes]float32
			subChain(&s, panel, c.rows[a*d:a*d+d])
			var mask uint16
			for l, v := range s {
				if v <= bound[l] {
					mask |= 1 << l
				}
			}
			masks[b*c.K+a] = mask
		}
	}
}
