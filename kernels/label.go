package kernels

import "math"

func largest(labels []uint16) uint16 {
	var most uint16
	if current != generic {
		const perBlock = 2 * Lanes
		for len(labels) >= perBlock {
			n := min(len(labels)/perBlock, blocksPerCall)
			most = max(most, asmMaxLabel(&labels[0], n))
			labels = labels[n*perBlock:]
		}
	}
	return max(most, largestPortable(labels))
}

func cut(labels []uint16, dist []float32, r2 float32, none uint16) {
	if current != generic {
		for len(labels) >= Lanes {
			n := min(len(labels)/Lanes, blocksPerCall)
			asmCutLabels(&labels[0], &dist[0], n, r2, int(none))
			labels, dist = labels[n*Lanes:], dist[n*Lanes:]
		}
	}
	cutPortable(labels, dist, r2, none)
}

func distances(p *Panels, c *Centroids, labels []uint16, dist []float32) {
	if current == generic || c.K*c.D > math.MaxInt32 {
		distancesPortable(p, c, labels, dist)
		return
	}
	full := p.N / Lanes
	step := panelsPerCall(16 * c.D) // a gather takes as long as many multiply-adds
	for at := 0; at < full; at += step {
		asmLabelDistances(&p.Data[at*Lanes*p.D], min(step, full-at), c.D, &c.rows[0], c.K, &labels[at*Lanes], &dist[at*Lanes])
	}
	if base := full * Lanes; base < p.N {
		rest := p.Slice(base, p.N)
		distancesPortable(&rest, c, labels[base:], dist[base:])
	}
}
