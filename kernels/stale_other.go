//go:build !amd64 || purego

package kernels

func stale(keys []float32, labels []uint16, limits []float32, masks []uint32) {
	stalePortable(keys, labels, limits, masks)
}

func sift(keys, far, squares []float32, s *Sieve, masks []uint32) {
	siftPortable(keys, far, squares, s, masks)
}
