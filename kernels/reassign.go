package kernels

import (
	"fmt"
	"math"
	"math/bits"
)

// BoundPoints is the number of points that share a [Bound].
const BoundPoints = 128

// Bound says how far centroids may move before the labels of a block of
// [BoundPoints] points can change (the bound of Hamerly, Making k-means even
// faster, SDM 2010, for a block instead of a point).
type Bound struct {
	// Margin is less than the distance, not squared, of each point to its second
	// nearest centroid minus that to its nearest one, by more than rounding can
	// account for: while no two centroids have moved by more than Margin together,
	// [Assign] gives the same labels. It is not positive for a block with a point
	// that is cut, so that such a block is never taken for settled.
	Margin float64
	// Reach is at least the distance of each point to its nearest centroid, rounding
	// included: if centroids have moved by at most m, no point is cut at an r2 of at
	// least ((Reach+m)(1+2^-18))^2.
	Reach float64
}

// Change is what [Reassign] found.
type Change struct {
	Moved int  // points whose label differs from before
	Cut   bool // whether a point has the label K now
}

// Reassign takes an assignment and its sums from one set of centroids to the
// next: labels come from an earlier assignment of the same points, which acc
// includes. Afterwards they are the labels that [AssignAccumulateRadius] finds
// with r2 (+Inf for no cut), and acc differs by the points that moved. bounds,
// when not nil, receives the bounds of the blocks of BoundPoints points; it needs
// D < 16, where distances have a small relative error.
func Reassign(p Panels, c *Centroids, r2 float32, labels []uint16, acc *Accumulator, bounds []Bound) Change {
	checkLength("Reassign", "labels", len(labels), p.N)
	acc.checkAssigned("Reassign", &p, c, labels)
	if bounds != nil {
		checkLength("Reassign", "bounds", len(bounds), (p.N+BoundPoints-1)/BoundPoints)
		if p.D >= exactDims {
			panic(fmt.Sprintf("kernels: Reassign: d=%d, want less than %d for bounds", p.D, exactDims))
		}
	}
	checkLabels("Reassign", labels, c.K)
	cuts := !math.IsInf(float64(r2), 1)
	if bounds == nil && !cuts {
		if moved, ok := reassignRanked(&p, c, labels, acc); ok {
			return Change{Moved: moved}
		}
	}
	var ch Change
	var label [chunkPoints]uint16
	var dist, second [chunkPoints]float32
	var masks [chunkPoints / 32]uint32
	scale := float32(math.Ldexp(1, acc.FractionBits))
	for lo := 0; lo < p.N; lo += chunkPoints {
		hi := min(lo+chunkPoints, p.N)
		part, n := p.Slice(lo, hi), hi-lo
		now, before := label[:n], labels[lo:hi]
		copy(now, before) // as guesses
		switch {
		case bounds != nil:
			assign(&part, c, now, dist[:n], second[:n])
		case !cuts:
			assign(&part, c, now, nil, nil)
		case p.D < exactDims:
			assign(&part, c, now, dist[:n], nil)
		default:
			assign(&part, c, now, nil, nil)
			distances(&part, c, now, dist[:n])
		}
		if cuts {
			cut(now, dist[:n], r2, uint16(c.K))
			ch.Cut = ch.Cut || int(largest(now)) == c.K
		}
		changed(before, now, masks[:(n+31)/32])
		ch.Moved += marked(masks[:(n+31)/32])
		acc.carry(&part, masks[:(n+31)/32], before, now, scale)
		if bounds != nil {
			fillBounds(bounds[lo/BoundPoints:], dist[:n], second[:n], c, r2)
		}
	}
	return ch
}

// MeasureBounds fills in the bounds of the blocks of BoundPoints points as [Reassign] does, without a cut.
func MeasureBounds(p Panels, c *Centroids, bounds []Bound) {
	checkPair("MeasureBounds", &p, c)
	checkLength("MeasureBounds", "bounds", len(bounds), (p.N+BoundPoints-1)/BoundPoints)
	if p.D >= exactDims {
		panic(fmt.Sprintf("kernels: MeasureBounds: d=%d, want less than %d", p.D, exactDims))
	}
	var label [BoundPoints]uint16
	var dist, second [BoundPoints]float32
	for b := range bounds {
		lo := b * BoundPoints
		part := p.Slice(lo, min(lo+BoundPoints, p.N))
		assign(&part, c, label[:part.N], dist[:part.N], second[:part.N])
		fillBounds(bounds[b:b+1], dist[:part.N], second[:part.N], c, float32(math.Inf(1)))
	}
}

// marked returns the number of bits that are set.
func marked(masks []uint32) int {
	count := 0
	for _, m := range masks {
		count += bits.OnesCount32(m)
	}
	return count
}

// carry moves the points that masks marks, and their labels before, to the labels
// now.
func (a *Accumulator) carry(p *Panels, masks []uint32, before, now []uint16, scale float32) {
	for b, m := range masks {
		for ; m != 0; m &= m - 1 {
			i := 32*b + bits.TrailingZeros32(m)
			if x := a.narrowPoint(p, i); x != nil {
				a.moveRow(x, int(before[i]), int(now[i]), scale)
			} else {
				a.move(p.Data[i/Lanes*Lanes*p.D+i%Lanes:], Lanes, int(before[i]), int(now[i]), scale)
			}
			before[i] = now[i]
		}
	}
}

// move takes a point, its coordinates step apart, from the sums of one cluster to those of another; the label
// K has no sums.
func (a *Accumulator) move(x []float32, step, from, to int, scale float32) {
	d := a.D
	x = x[:(d-1)*step+1]
	switch {
	case to == a.K:
		sums := a.Sums[from*d : from*d+d]
		a.Counts[from]--
		for j := range sums {
			sums[j] -= int64(int32(x[j*step] * scale))
		}
	case from == a.K:
		sums := a.Sums[to*d : to*d+d]
		a.Counts[to]++
		for j := range sums {
			sums[j] += int64(int32(x[j*step] * scale))
		}
	default:
		old, sums := a.Sums[from*d:from*d+d], a.Sums[to*d:to*d+d]
		a.Counts[from]--
		a.Counts[to]++
		for j := range sums {
			v := int64(int32(x[j*step] * scale))
			old[j] -= v
			sums[j] += v
		}
	}
}

// fillBounds derives bounds from the two smallest squared distances of points.
//
// A squared distance by the chain of [Assign] has a relative error below
// (D+3) 2^-24 =: e. If the squares of a point are b <= s, its distances differ by
// at least ((s-b) - 2es) / 2sqrt(s), and later distances up to 2 sqrt(s), the
// largest at which a label is still bound to stay, compare as they should if they
// differ by 2.1 e sqrt(s). Both deductions together are below
// (D+4) 2^-20 s / 2sqrt(s).
func fillBounds(dst []Bound, dist, second []float32, c *Centroids, r2 float32) {
	const up = 1 + 0x1p-18
	var extremes [chunkPoints / BoundPoints][4]float32
	extreme(dist, second, extremes[:(len(dist)+BoundPoints-1)/BoundPoints])
	share := math.Ldexp(float64(c.D+4), -20)
	for b := range (len(dist) + BoundPoints - 1) / BoundPoints {
		gap, most, far := float64(extremes[b][0]), float64(extremes[b][1]), extremes[b][2]
		dst[b] = Bound{Margin: (gap - share*most) / (2 * math.Sqrt(most)) * (1 - 0x1p-20),
			Reach: math.Sqrt(float64(far)) * up}
		switch {
		case far > r2 || most == 0:
			dst[b].Margin = 0
		case c.K == 1:
			dst[b].Margin = math.Inf(1)
		}
	}
}

// extremesPortable gives, for each block of BoundPoints points, the smallest
// second-dist, the largest second and the largest dist.
func extremesPortable(dist, second []float32, dst [][4]float32) {
	for b := range dst {
		lo, hi := b*BoundPoints, min((b+1)*BoundPoints, len(dist))
		least, most, far := second[lo]-dist[lo], second[lo], dist[lo]
		for i := lo + 1; i < hi; i++ {
			least, most, far = min(least, second[i]-dist[i]), max(most, second[i]), max(far, dist[i])
		}
		dst[b] = [4]float32{least, most, far}
	}
}

// changedPortable sets bit i%32 of masks[i/32] where labels differ.
func changedPortable(before, now []uint16, masks []uint32) {
	clear(masks)
	for i, l := range now {
		if l != before[i] {
			masks[i/32] |= 1 << (i % 32)
		}
	}
}

// UpdateSums takes sums from one set of labels to another: acc includes the points
// under the labels before; afterwards before holds the labels now, and acc differs
// by the points whose label changed, as many as it returns. If more than most
// points changed, it does nothing and returns -1: then it is better to accumulate
// anew.
func UpdateSums(p Panels, before, now []uint16, most int, acc *Accumulator) int {
	p.check("UpdateSums")
	checkLength("UpdateSums", "before", len(before), p.N)
	checkLength("UpdateSums", "now", len(now), p.N)
	acc.check("UpdateSums", &p)
	checkLabels("UpdateSums", before, acc.K)
	checkLabels("UpdateSums", now, acc.K)
	var masks [chunkPoints / 32]uint32
	count := 0
	for lo := 0; lo < p.N && count <= most; lo += chunkPoints {
		hi := min(lo+chunkPoints, p.N)
		used := masks[:(hi-lo+31)/32]
		changed(before[lo:hi], now[lo:hi], used)
		count += marked(used)
	}
	if count > most {
		return -1
	}
	scale := float32(math.Ldexp(1, acc.FractionBits))
	for lo := 0; lo < p.N; lo += chunkPoints {
		hi := min(lo+chunkPoints, p.N)
		part, used := p.Slice(lo, hi), masks[:(hi-lo+31)/32]
		changed(before[lo:hi], now[lo:hi], used)
		acc.carry(&part, used, before[lo:hi], now[lo:hi], scale)
	}
	return count
}

// changed compares labels, 32 at a time.
func changed(before, now []uint16, masks []uint32) {
	blocks := len(now) / 32
	if current == generic {
		blocks = 0
	}
	if blocks > 0 {
		asmChangedLabels(&before[0], &now[0], blocks, &masks[0])
	}
	changedPortable(before[32*blocks:], now[32*blocks:], masks[blocks:])
}

func extreme(dist, second []float32, dst [][4]float32) {
	blocks := len(dist) / BoundPoints
	if current == generic {
		blocks = 0
	}
	if blocks > 0 {
		asmDistanceBounds(&dist[0], &second[0], blocks, &dst[0])
	}
	extremesPortable(dist[BoundPoints*blocks:], second[BoundPoints*blocks:], dst[blocks:])
}
