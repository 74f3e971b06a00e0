//go:build amd64 && !purego && !linux

package kernels

// tilesGranted reports false: what other systems ask for before AMX is not known here.
func tilesGranted() bool { return false }
