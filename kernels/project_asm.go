//go:build (amd64 || arm64) && !purego

package kernels

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
			asmProjectN(min(m.tileRows, m.Q-a), x, min(step, full-at), m.D, &m.tiles[a*m.D], &out[a*Lanes], 4*Lanes*m.Q)
		}
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		var last [12 * Lanes]float32 // a tile of the widest path
		for a := 0; a < m.Q; a += m.tileRows {
			w := min(m.tileRows, m.Q-a)
			asmProjectN(w, &p.Data[base*p.D], 1, m.D, &m.tiles[a*m.D], &last[0], len(last)*4)
			for q := range w {
				copy(dst.Data[base*m.Q+(a+q)*Lanes:], last[q*Lanes:q*Lanes+p.N-base])
			}
		}
	}
}
