//go:build !amd64 || purego

package kernels

func boundKeys(dist, second []float32, labels []uint16, moved []float64, s *KeyBound, keys, far []float32) {
	boundKeysPortable(dist, second, labels, moved, s, keys, far)
}
