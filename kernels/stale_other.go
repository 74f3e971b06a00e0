//go:build !amd64 || purego

package kernels

func stale(keys []float32, labels []uint16, limits []float32, masks []uint32) {
	stalePortable(keys, labels, limits, masks)
}

func staleByDistance(keys, far, squares []float32, s *DistanceBound, masks []uint32) {
	staleByDistancePortable(keys, far, squares, s, masks)
}
