//go:build amd64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

func twoLeast(p *Panels, c *Centroids, bias []float32, slack float32, labels, rivals []uint16, gap []float32) {
	if current == generic {
		rivalsPortable(p, c, bias, slack, labels, rivals, gap)
		return
	}
	full := p.N / Lanes
	step := panelsPerCall(c.K * (c.D + 2))
	for at := 0; at < full; at += step {
		rivalsPanels(&p.Data[at*Lanes*p.D], min(step, full-at), c, &bias[0], slack, &labels[at*Lanes], &rivals[at*Lanes], &gap[at*Lanes])
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		var l, r [Lanes]uint16
		var g [Lanes]float32
		rivalsPanels(&p.Data[base*p.D], 1, c, &bias[0], slack, &l[0], &r[0], &g[0])
		copy(labels[base:], l[:])
		copy(rivals[base:], r[:])
		copy(gap[base:], g[:])
	}
}

// rivalsPanels handles whole panels on the current path.
func rivalsPanels(x *float32, panels int, c *Centroids, bias *float32, slack float32, labels, rivals *uint16, gap *float32) {
	r := &c.rows[0]
	if current == avx512 {
		switch c.D {
		case 1:
			asm.Rivals1AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 2:
			asm.Rivals2AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 3:
			asm.Rivals3AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 4:
			asm.Rivals4AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 5:
			asm.Rivals5AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 6:
			asm.Rivals6AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 7:
			asm.Rivals7AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 8:
			asm.Rivals8AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 9:
			asm.Rivals9AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 10:
			asm.Rivals10AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 11:
			asm.Rivals11AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 12:
			asm.Rivals12AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 13:
			asm.Rivals13AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 14:
			asm.Rivals14AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		case 15:
			asm.Rivals15AVX512(x, panels, r, c.K, bias, slack, labels, rivals, gap)
		}
		return
	}
	switch c.D {
	case 1:
		asm.Rivals1AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 2:
		asm.Rivals2AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 3:
		asm.Rivals3AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 4:
		asm.Rivals4AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 5:
		asm.Rivals5AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 6:
		asm.Rivals6AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 7:
		asm.Rivals7AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 8:
		asm.Rivals8AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 9:
		asm.Rivals9AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 10:
		asm.Rivals10AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 11:
		asm.Rivals11AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 12:
		asm.Rivals12AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 13:
		asm.Rivals13AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 14:
		asm.Rivals14AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	case 15:
		asm.Rivals15AVX2(x, panels, r, c.K, bias, slack, labels, rivals, gap)
	}
}
