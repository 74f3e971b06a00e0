//go:build purego || !amd64

package kernels

func within(p *Panels, c *Centroids, limit []float32, masks []uint16) {
	withinPortable(p, c, limit, masks)
}
