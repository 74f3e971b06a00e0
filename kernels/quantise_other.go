//go:build purego || !amd64

package kernels

func quantise(dst []float32, src []float64, m *UnitMap) int { return quantisePortable(dst, src, m) }
