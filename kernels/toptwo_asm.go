//go:build (amd64 || arm64) && !purego

package kernels

func topTwo(p *Panels, c *Centroids, weight []float32, slack, window float32, labels []uint16, cells []uint32, gap []float32) {
	if current == generic {
		topTwoPortable(p, c, weight, slack, window, labels, cells, gap)
		return
	}
	full, low := p.N/Lanes, topTwoMask(c.K)
	step := panelsPerCall(c.K * (c.D + 2))
	for at := 0; at < full; at += step {
		asmTopTwoN(c.D, &p.Data[at*Lanes*p.D], min(step, full-at), &c.rows[0], c.K, &weight[0], low, slack, window, &labels[at*Lanes], &cells[at*Lanes], &gap[at*Lanes])
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		var l [Lanes]uint16
		var r [Lanes]uint32
		var g [Lanes]float32
		asmTopTwoN(c.D, &p.Data[base*p.D], 1, &c.rows[0], c.K, &weight[0], low, slack, window, &l[0], &r[0], &g[0])
		copy(labels[base:], l[:])
		copy(cells[base:], r[:])
		copy(gap[base:], g[:])
	}
}
