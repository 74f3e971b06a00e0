//go:build amd64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

// changed compares labels, 32 at a time.
func changed(before, now []uint16, masks []uint32) {
	blocks := len(now) / 32
	switch {
	case blocks == 0:
	case current == avx512:
		asm.ChangedLabelsAVX512(&before[0], &now[0], blocks, &masks[0])
	case current == avx2:
		asm.ChangedLabelsAVX2(&before[0], &now[0], blocks, &masks[0])
	default:
		blocks = 0
	}
	changedPortable(before[32*blocks:], now[32*blocks:], masks[blocks:])
}

func extreme(dist, second []float32, dst [][4]float32) {
	blocks := len(dist) / BoundPoints
	switch {
	case blocks == 0:
	case current == avx512:
		asm.DistanceBoundsAVX512(&dist[0], &second[0], blocks, &dst[0])
	case current == avx2:
		asm.DistanceBoundsAVX2(&dist[0], &second[0], blocks, &dst[0])
	default:
		blocks = 0
	}
	extremesPortable(dist[BoundPoints*blocks:], second[BoundPoints*blocks:], dst[blocks:])
}
