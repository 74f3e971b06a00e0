//go:build amd64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

// projectTiles are the routines by path and by rows of a tile, from 1 on.
var projectTiles = map[path][]func(x *float32, panels, d int, tile, out *float32, stride int){
	avx512: {
		asm.Project1AVX512,
		asm.Project2AVX512,
		asm.Project3AVX512,
		asm.Project4AVX512,
		asm.Project5AVX512,
		asm.Project6AVX512,
		asm.Project7AVX512,
		asm.Project8AVX512,
		asm.Project9AVX512,
		asm.Project10AVX512,
		asm.Project11AVX512,
		asm.Project12AVX512,
	},
	avx2: {
		asm.Project1AVX2,
		asm.Project2AVX2,
		asm.Project3AVX2,
		asm.Project4AVX2,
		asm.Project5AVX2,
		asm.Project6AVX2,
	},
}

func project(p *Panels, m *Matrix, dst *Panels) {
	tiles := projectTiles[current]
	if tiles == nil || m.tileRows > len(tiles) {
		projectPortable(p, m, dst)
		return
	}
	full := p.N / Lanes
	step := panelsPerCall(m.tileRows * m.D)
	for at := 0; at < full; at += step {
		projectPanels(tiles, &p.Data[at*Lanes*p.D], min(step, full-at), m, dst.Data[at*Lanes*m.Q:])
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		last := make([]float32, m.Q*Lanes)
		projectPanels(tiles, &p.Data[base*p.D], 1, m, last)
		for q := range m.Q {
			copy(dst.Data[base*m.Q+q*Lanes:], last[q*Lanes:q*Lanes+p.N-base])
		}
	}
}

func projectPanels(tiles []func(x *float32, panels, d int, tile, out *float32, stride int), x *float32, panels int, m *Matrix, out []float32) {
	for a := 0; a < m.Q; a += m.tileRows {
		w := min(m.tileRows, m.Q-a)
		tiles[w-1](x, panels, m.D, &m.tiles[a*m.D], &out[a*Lanes], 4*Lanes*m.Q)
	}
}
