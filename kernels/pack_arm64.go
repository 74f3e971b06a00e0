//go:build arm64 && !purego

package kernels

func pack(dst *Panels, rows []float32) {
	panels, d := dst.N/Lanes, dst.D
	if current == generic {
		panels = 0
	}
	step := panelsPerCall(8 * d)
	for at := 0; at < panels; at += step {
		asmPack(&dst.Data[at*Lanes*d], &rows[at*Lanes*d], min(step, panels-at), d)
	}
	if base := panels * Lanes; base < dst.N {
		rest := dst.Slice(base, dst.N)
		packPortable(&rest, rows[base*d:])
	}
}
