//go:build amd64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

func within(p *Panels, c *Centroids, limit []float32, masks []uint16) {
	panels := panelCount(p.N)
	step := panelsPerCall(c.K * c.D)
	for at := 0; at < panels; at += step {
		count := min(step, panels-at)
		x, l, m := &p.Data[at*Lanes*p.D], &limit[at*Lanes], &masks[at*c.K]
		switch current {
		case avx512:
			within512(x, count, c, l, m)
		case avx2:
			within256(x, count, c, l, m)
		default:
			withinPortable(p, c, limit, masks)
			return
		}
	}
}

func within512(x *float32, panels int, c *Centroids, limit *float32, masks *uint16) {
	r := &c.rows[0]
	switch c.D {
	case 1:
		asm.Within1AVX512(x, panels, r, c.K, limit, masks)
	case 2:
		asm.Within2AVX512(x, panels, r, c.K, limit, masks)
	case 3:
		asm.Within3AVX512(x, panels, r, c.K, limit, masks)
	case 4:
		asm.Within4AVX512(x, panels, r, c.K, limit, masks)
	case 5:
		asm.Within5AVX512(x, panels, r, c.K, limit, masks)
	case 6:
		asm.Within6AVX512(x, panels, r, c.K, limit, masks)
	case 7:
		asm.Within7AVX512(x, panels, r, c.K, limit, masks)
	case 8:
		asm.Within8AVX512(x, panels, r, c.K, limit, masks)
	case 9:
		asm.Within9AVX512(x, panels, r, c.K, limit, masks)
	case 10:
		asm.Within10AVX512(x, panels, r, c.K, limit, masks)
	case 11:
		asm.Within11AVX512(x, panels, r, c.K, limit, masks)
	case 12:
		asm.Within12AVX512(x, panels, r, c.K, limit, masks)
	case 13:
		asm.Within13AVX512(x, panels, r, c.K, limit, masks)
	case 14:
		asm.Within14AVX512(x, panels, r, c.K, limit, masks)
	case 15:
		asm.Within15AVX512(x, panels, r, c.K, limit, masks)
	}
}

func within256(x *float32, panels int, c *Centroids, limit *float32, masks *uint16) {
	r := &c.rows[0]
	switch c.D {
	case 1:
		asm.Within1AVX2(x, panels, r, c.K, limit, masks)
	case 2:
		asm.Within2AVX2(x, panels, r, c.K, limit, masks)
	case 3:
		asm.Within3AVX2(x, panels, r, c.K, limit, masks)
	case 4:
		asm.Within4AVX2(x, panels, r, c.K, limit, masks)
	case 5:
		asm.Within5AVX2(x, panels, r, c.K, limit, masks)
	case 6:
		asm.Within6AVX2(x, panels, r, c.K, limit, masks)
	case 7:
		asm.Within7AVX2(x, panels, r, c.K, limit, masks)
	case 8:
		asm.Within8AVX2(x, panels, r, c.K, limit, masks)
	case 9:
		asm.Within9AVX2(x, panels, r, c.K, limit, masks)
	case 10:
		asm.Within10AVX2(x, panels, r, c.K, limit, masks)
	case 11:
		asm.Within11AVX2(x, panels, r, c.K, limit, masks)
	case 12:
		asm.Within12AVX2(x, panels, r, c.K, limit, masks)
	case 13:
		asm.Within13AVX2(x, panels, r, c.K, limit, masks)
	case 14:
		asm.Within14AVX2(x, panels, r, c.K, limit, masks)
	case 15:
		asm.Within15AVX2(x, panels, r, c.K, limit, masks)
	}
}
