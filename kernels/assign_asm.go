//go:build (amd64 || arm64) && !purego

package kernels

// callBudget bounds the multiply-adds of one assembly call: a call is not
// preemptible, and this many take some tens of microseconds.
const callBudget = 1 << 21

// panelsPerCall returns how many panels a call may visit at the given cost in
// multiply-adds per point: a multiple of 4, so that groups stay whole.
func panelsPerCall(costPerPoint int) int {
	return max(1, callBudget/Lanes/costPerPoint/4) * 4
}

func assign(p *Panels, c *Centroids, labels []uint16, dist, second []float32) {
	if current == generic {
		assignPortable(p, c, labels, dist, second)
		return
	}
	full := p.N / Lanes
	step := panelsPerCall(c.K * c.D)
	for at := 0; at < full; at += step {
		count := min(step, full-at)
		var d, s *float32
		if dist != nil {
			d = &dist[at*Lanes]
		}
		if second != nil {
			s = &second[at*Lanes]
		}
		assignPanels(&p.Data[at*Lanes*p.D], count, c, &labels[at*Lanes], d, s)
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		var l [Lanes]uint16
		var d, s [Lanes]float32
		var sp *float32
		if second != nil {
			sp = &s[0]
		}
		assignPanels(&p.Data[base*p.D], 1, c, &l[0], &d[0], sp)
		copy(labels[base:], l[:])
		if dist != nil {
			copy(dist[base:], d[:])
		}
		if second != nil {
			copy(second[base:], s[:])
		}
	}
}

// assignPanels assigns whole panels on the current path; dist may be nil, and
// second too, but not dist alone when second is given.
func assignPanels(x *float32, panels int, c *Centroids, labels *uint16, dist, second *float32) {
	if c.D < exactDims {
		assignSub(x, panels, c, labels, dist, second)
		return
	}
	assignDot(x, panels, c, labels, dist, second)
	if dist != nil {
		finishDot(x, panels, c.D, dist, second)
	}
}
