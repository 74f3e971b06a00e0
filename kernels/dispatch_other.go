//go:build purego || !amd64

// The kernels of this file have assembly on amd64 only.

package kernels

func distances(p *Panels, c *Centroids, labels []uint16, dist []float32) {
	distancesPortable(p, c, labels, dist)
}

func largest(labels []uint16) uint16 { return largestPortable(labels) }

func cut(labels []uint16, dist []float32, r2 float32, none uint16) {
	cutPortable(labels, dist, r2, none)
}

func toFixed64(dst []uint64, src []float64, scale float64) { toFixed64Portable(dst, src, scale) }
func toFixed64Nearest(dst []uint64, src []float64, scale float64) {
	toFixed64NearestPortable(dst, src, scale)
}
func fromFixed64(dst []float64, src []uint64, scale float64) { fromFixed64Portable(dst, src, scale) }
func toFixed32(dst []uint32, src []float32, scale float32)   { toFixed32Portable(dst, src, scale) }
func toFixed32Nearest(dst []uint32, src []float32, scale float32) {
	toFixed32NearestPortable(dst, src, scale)
}
func fromFixed32(dst []float32, src []uint32, scale float32) { fromFixed32Portable(dst, src, scale) }
