package kernels

func project(p *Panels, m *Matrix, dst *Panels) {
	if current == generic {
		projectPortable(p, m, dst)
		return
	}
	full := p.N / Lanes
	step := panelsPerCall(m.tiling.width * m.D)
	for at := 0; at < full; at += step {
		x, out := &p.Data[at*Lanes*p.D], dst.Data[at*Lanes*m.Q:]
		for t, a := 0, 0; t < m.tiling.count; t++ {
			w := m.tiling.at(t)
			asmProjectN(w, x, min(step, full-at), m.D, &m.tiles[a*m.D], &out[a*Lanes], 4*Lanes*m.Q)
			a += w
		}
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		var last [maxTileWidth * Lanes]float32
		for t, a := 0, 0; t < m.tiling.count; t++ {
			w := m.tiling.at(t)
			asmProjectN(w, &p.Data[base*p.D], 1, m.D, &m.tiles[a*m.D], &last[0], len(last)*4)
			for q := range w {
				copy(dst.Data[base*m.Q+(a+q)*Lanes:], last[q*Lanes:q*Lanes+p.N-base])
			}
			a += w
		}
	}
}
