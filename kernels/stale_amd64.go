//go:build amd64 && !purego

package kernels

// fewLimits are kept in registers.
const fewLimits = 64

func stale(keys []float32, labels []uint16, limits []float32, masks []uint32) {
	var few [fewLimits]float32
	tabled := len(limits) <= fewLimits && current >= avx512
	if tabled {
		copy(few[:], limits)
	}
	at := 0
	for left := len(keys) / 32; left > 0 && current != generic; left = len(keys)/32 - at {
		n := min(left, blocksPerCall)
		if tabled {
			asmStaleFew(&keys[32*at], &labels[32*at], &few, n, &masks[at])
		} else {
			asmStaleKeys(&keys[32*at], &labels[32*at], &limits[0], n, &masks[at])
		}
		at += n
	}
	stalePortable(keys[32*at:], labels[32*at:], limits, masks[at:])
}

func staleByDistance(keys, far, squares []float32, s *DistanceBound, masks []uint32) {
	at := 0
	for left := len(keys) / 32; left > 0 && current != generic; left = len(keys)/32 - at {
		n := min(left, blocksPerCall)
		asmStaleByDistance(&keys[32*at], &far[32*at], &squares[32*at], n, s.Most, s.Least, s.Up, s.More, &masks[at])
		at += n
	}
	staleByDistancePortable(keys[32*at:], far[32*at:], squares[32*at:], s, masks[at:])
}
