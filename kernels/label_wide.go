//go:build !arm64 || purego

package kernels

// labelDistances is distancesPortable of whole panels by a routine.
func labelDistances(x *float32, panels int, c *Centroids, labels *uint16, dist *float32) {
	if c.few != nil {
		asmLabelDistancesFew(x, panels, c.D, c.few.of(c), c.K, labels, dist)
	} else {
		asmLabelDistances(x, panels, c.D, &c.rows[0], c.K, labels, dist)
	}
}

// cutOffsets writes the offsets of whole panels, times factor, truncated and times unit, by a routine.
func cutOffsets(x *float32, panels int, c *Centroids, labels *uint16, factor *float32, unit float32, out []float32) {
	if c.few != nil {
		asmCutOffsetsFew(x, panels, c.D, c.few.of(c), c.K, labels, factor, unit, &out[0])
	} else {
		asmCutOffsets(x, panels, c.D, &c.rows[0], c.K, labels, factor, unit, &out[0])
	}
}
