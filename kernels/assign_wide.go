//go:build !arm64 || purego

package kernels

// assignSub assigns whole panels of fewer than exactDims dimensions.
func assignSub(x *float32, panels int, c *Centroids, labels *uint16, dist, second *float32) {
	if second != nil {
		asmAssignSecondN(c.D, x, panels, &c.rows[0], c.K, labels, dist, second)
	} else {
		asmAssignSubN(c.D, x, panels, &c.rows[0], c.K, labels, dist)
	}
}
