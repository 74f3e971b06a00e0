//go:build amd64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

func twoLeast(p *Panels, c *Centroids, bias []float32, slack, window float32, labels []uint16, cells []uint32, gap []float32) {
	if current == generic {
		rivalsPortable(p, c, bias, slack, window, labels, cells, gap)
		return
	}
	full := p.N / Lanes
	step := panelsPerCall(c.K * (c.D + 2))
	for at := 0; at < full; at += step {
		rivalsPanels(&p.Data[at*Lanes*p.D], min(step, full-at), c, &bias[0], slack, window, &labels[at*Lanes], &cells[at*Lanes], &gap[at*Lanes])
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		var l [Lanes]uint16
		var r [Lanes]uint32
		var g [Lanes]float32
		rivalsPanels(&p.Data[base*p.D], 1, c, &bias[0], slack, window, &l[0], &r[0], &g[0])
		copy(labels[base:], l[:])
		copy(cells[base:], r[:])
		copy(gap[base:], g[:])
	}
}

// rivalsPanels handles whole panels on the current path.
func rivalsPanels(x *float32, panels int, c *Centroids, bias *float32, slack, window float32, labels *uint16, cells *uint32, gap *float32) {
	r, low := &c.rows[0], rivalMask(c.K)
	if current == avx512 {
		switch c.D {
		case 1:
			asm.Rivals1AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 2:
			asm.Rivals2AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 3:
			asm.Rivals3AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 4:
			asm.Rivals4AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 5:
			asm.Rivals5AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 6:
			asm.Rivals6AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 7:
			asm.Rivals7AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 8:
			asm.Rivals8AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 9:
			asm.Rivals9AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 10:
			asm.Rivals10AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 11:
			asm.Rivals11AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 12:
			asm.Rivals12AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 13:
			asm.Rivals13AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 14:
			asm.Rivals14AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 15:
			asm.Rivals15AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		}
		return
	}
	switch c.D {
	case 1:
		asm.Rivals1AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 2:
		asm.Rivals2AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 3:
		asm.Rivals3AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 4:
		asm.Rivals4AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 5:
		asm.Rivals5AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 6:
		asm.Rivals6AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 7:
		asm.Rivals7AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 8:
		asm.Rivals8AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 9:
		asm.Rivals9AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 10:
		asm.Rivals10AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 11:
		asm.Rivals11AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 12:
		asm.Rivals12AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 13:
		asm.Rivals13AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 14:
		asm.Rivals14AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 15:
		asm.Rivals15AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	}
}
