//go:build amd64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

func project(p *Panels, m *Matrix, dst *Panels) {
	if current == generic || m.tileRows != maxTileWidth() {
		projectPortable(p, m, dst)
		return
	}
	full := p.N / Lanes
	step := panelsPerCall(m.tileRows * m.D)
	for at := 0; at < full; at += step {
		x, out := &p.Data[at*Lanes*p.D], dst.Data[at*Lanes*m.Q:]
		for a := 0; a < m.Q; a += m.tileRows {
			projectTile(min(m.tileRows, m.Q-a), x, min(step, full-at), m.D, &m.tiles[a*m.D], &out[a*Lanes], 4*Lanes*m.Q)
		}
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		var last [12 * Lanes]float32 // a tile of the widest path
		for a := 0; a < m.Q; a += m.tileRows {
			w := min(m.tileRows, m.Q-a)
			projectTile(w, &p.Data[base*p.D], 1, m.D, &m.tiles[a*m.D], &last[0], len(last)*4)
			for q := range w {
				copy(dst.Data[base*m.Q+(a+q)*Lanes:], last[q*Lanes:q*Lanes+p.N-base])
			}
		}
	}
}

// projectTile multiplies whole panels with a tile of w rows.
func projectTile(w int, x *float32, panels, d int, tile, out *float32, stride int) {
	if current == avx512 {
		switch w {
		case 1:
			asm.Project1AVX512(x, panels, d, tile, out, stride)
		case 2:
			asm.Project2AVX512(x, panels, d, tile, out, stride)
		case 3:
			asm.Project3AVX512(x, panels, d, tile, out, stride)
		case 4:
			asm.Project4AVX512(x, panels, d, tile, out, stride)
		case 5:
			asm.Project5AVX512(x, panels, d, tile, out, stride)
		case 6:
			asm.Project6AVX512(x, panels, d, tile, out, stride)
		case 7:
			asm.Project7AVX512(x, panels, d, tile, out, stride)
		case 8:
			asm.Project8AVX512(x, panels, d, tile, out, stride)
		case 9:
			asm.Project9AVX512(x, panels, d, tile, out, stride)
		case 10:
			asm.Project10AVX512(x, panels, d, tile, out, stride)
		case 11:
			asm.Project11AVX512(x, panels, d, tile, out, stride)
		case 12:
			asm.Project12AVX512(x, panels, d, tile, out, stride)
		}
		return
	}
	switch w {
	case 1:
		asm.Project1AVX2(x, panels, d, tile, out, stride)
	case 2:
		asm.Project2AVX2(x, panels, d, tile, out, stride)
	case 3:
		asm.Project3AVX2(x, panels, d, tile, out, stride)
	case 4:
		asm.Project4AVX2(x, panels, d, tile, out, stride)
	case 5:
		asm.Project5AVX2(x, panels, d, tile, out, stride)
	case 6:
		asm.Project6AVX2(x, panels, d, tile, out, stride)
	}
}
