//go:build !amd64 || purego

package kernels

func changed(before, now []uint16, masks []uint32) { changedPortable(before, now, masks) }

func extreme(dist, second []float32, dst [][4]float32) { extremesPortable(dist, second, dst) }
