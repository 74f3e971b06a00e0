//go:build !amd64 || purego

package kernels

func extend[T float32 | float64](r *Ranges[T], rows []T) bool { return extendPortable(r, rows) }
