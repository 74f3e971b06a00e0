//go:build !arm64 || purego

package kernels

func pack(dst *Panels, rows []float32) {
	d := dst.D
	if current == generic || d == 1 {
		packPortable(dst, rows)
		return
	}
	panels := dst.N / Lanes
	if d < Lanes {
		// The transpose reads whole blocks of 4 columns: it stops early enough.
		for panels > 0 && (panels*Lanes-1)*d+(d+3)&^3 > cap(rows) {
			panels--
		}
	}
	step := panelsPerCall(8 * d)
	for at := 0; at < panels; at += step {
		packPanels(&dst.Data[at*Lanes*d], &rows[at*Lanes*d], min(step, panels-at), d, dst.stream)
	}
	if base := panels * Lanes; base < dst.N {
		rest := dst.Slice(base, dst.N)
		packPortable(&rest, rows[base*d:])
	}
}

// packPanels transposes whole panels of d > 1 dimensions; stream writes past the
// caches.
func packPanels(dst, rows *float32, panels, d int, stream bool) {
	switch {
	case d < Lanes:
		asmPackNarrow(dst, rows, panels, d, stream)
	case stream:
		asmPackStream(dst, rows, panels, d)
	default:
		asmPack(dst, rows, panels, d)
	}
}
