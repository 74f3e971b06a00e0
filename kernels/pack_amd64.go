//go:build amd64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

// streamBytes is the size of panels from which packing writes past the caches:
// they would push out each other, and reading lines before they are overwritten
// costs a third of the traffic.
const streamBytes = 24 << 20

func pack(dst *Panels, rows []float32) {
	d := dst.D
	if current == generic || d == 1 {
		packPortable(dst, rows)
		return
	}
	panels := dst.N / Lanes
	if d < Lanes {
		// The transpose reads whole blocks of 4 columns: it stops early enough.
		for panels > 0 && (panels*Lanes-1)*d+(d+3)&^3 > len(rows) {
			panels--
		}
	}
	stream := panels*Lanes*d*4 >= streamBytes
	step := panelsPerCall(8 * d)
	for at := 0; at < panels; at += step {
		packPanels(&dst.Data[at*Lanes*d], &rows[at*Lanes*d], min(step, panels-at), d, stream)
	}
	if base := panels * Lanes; base < dst.N {
		rest := dst.Slice(base, dst.N)
		packPortable(&rest, rows[base*d:])
	}
}

// packPanels transposes whole panels of d > 1 dimensions; stream writes past the
// caches.
func packPanels(dst, rows *float32, panels, d int, stream bool) {
	switch d {
	case 2:
		asm.Pack2AVX2(dst, rows, panels, stream)
	case 3:
		asm.Pack3AVX2(dst, rows, panels, stream)
	case 4:
		asm.Pack4AVX2(dst, rows, panels, stream)
	case 5:
		asm.Pack5AVX2(dst, rows, panels, stream)
	case 6:
		asm.Pack6AVX2(dst, rows, panels, stream)
	case 7:
		asm.Pack7AVX2(dst, rows, panels, stream)
	case 8:
		asm.Pack8AVX2(dst, rows, panels, stream)
	case 9:
		asm.Pack9AVX2(dst, rows, panels, stream)
	case 10:
		asm.Pack10AVX2(dst, rows, panels, stream)
	case 11:
		asm.Pack11AVX2(dst, rows, panels, stream)
	case 12:
		asm.Pack12AVX2(dst, rows, panels, stream)
	case 13:
		asm.Pack13AVX2(dst, rows, panels, stream)
	case 14:
		asm.Pack14AVX2(dst, rows, panels, stream)
	case 15:
		asm.Pack15AVX2(dst, rows, panels, stream)
	default:
		if stream {
			asm.PackStreamAVX2(dst, rows, panels, d)
		} else {
			asm.PackAVX2(dst, rows, panels, d)
		}
	}
}
