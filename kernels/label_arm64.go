//go:build arm64 && !purego

package kernels

// labelDistances is distancesPortable of whole panels by a routine.
func labelDistances(x *float32, panels int, c *Centroids, labels *uint16, dist *float32) {
	asmLabelDistances(x, panels, c.D, &c.rows[0], c.K, labels, dist)
}

// cutOffsets writes the offsets of whole panels, times factor, truncated and times unit, by a routine.
func cutOffsets(x *float32, panels int, c *Centroids, labels *uint16, factor *float32, unit float32, out []float32) {
	asmCutOffsets(x, panels, c.D, &c.rows[0], c.K, labels, factor, unit, &out[0])
}
