package kernels

func topTwo(p *Panels, rows, weight []float32, slack, window float32, labels []uint16, cells []uint32, gap []float32) {
	if current == generic {
		topTwoPortable(p, rows, weight, slack, window, labels, cells, gap)
		return
	}
	k := len(weight)
	full, low := p.N/Lanes, topTwoMask(k)
	step := panelsPerCall(k * (p.D + 2))
	for at := 0; at < full; at += step {
		asmTopTwoN(p.D, &p.Data[at*Lanes*p.D], min(step, full-at), &rows[0], k, &weight[0], low, slack, window,
			&labels[at*Lanes], &cells[at*Lanes], &gap[at*Lanes])
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		var l [Lanes]uint16
		var r [Lanes]uint32
		var g [Lanes]float32
		asmTopTwoN(p.D, &p.Data[base*p.D], 1, &rows[0], k, &weight[0], low, slack, window, &l[0], &r[0], &g[0])
		copy(labels[base:], l[:])
		copy(cells[base:], r[:])
		copy(gap[base:], g[:])
	}
}
