package kernels

// AssignAccumulateRadius is [AssignAccumulate] with a cut: a point whose squared
// distance to its nearest centroid exceeds r2 gets the label K and is left out of
// the sums and counts. The distance is that of [Assign] for D < 16 and that of
// [Distances], which does not suffer from cancellation, from there on. labels may
// be nil.
func AssignAccumulateRadius(p Panels, c *Centroids, r2 float32, labels []uint16, acc *Accumulator) {
	acc.checkAssigned("AssignAccumulateRadius", &p, c, labels)
	if p.D < exactDims && fuses(acc) {
		assignAccumulateFused(&p, c, r2, labels, acc)
		return
	}
	var scratch [chunkPoints]uint16
	var dist [chunkPoints]float32
	for lo := 0; lo < p.N; lo += chunkPoints {
		hi := min(lo+chunkPoints, p.N)
		part := p.Slice(lo, hi)
		l, x := scratch[:hi-lo], dist[:hi-lo]
		if labels != nil {
			l = labels[lo:hi]
		}
		if p.D < exactDims {
			assign(&part, c, l, x, nil)
		} else {
			assign(&part, c, l, nil, nil)
			distances(&part, c, l, x)
		}
		cut(l, x, r2, uint16(c.K))
		if labels == nil {
			accumulate(&part, l, acc)
		}
	}
	if labels != nil {
		accumulate(&p, labels, acc)
	}
}
