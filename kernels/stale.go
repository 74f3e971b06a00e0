package kernels

import "fmt"

// Stale sets bit i%32 of masks[i/32] if the key of point i is at most the limit of its label. len(labels) = len(keys),
// and there is a word of masks for 32 of them; labels are less than len(limits).
func Stale(keys []float32, labels []uint16, limits []float32, masks []uint32) {
	checkLength("Stale", "labels", len(labels), len(keys))
	checkLength("Stale", "masks", len(masks), (len(keys)+31)/32)
	if len(limits) == 0 {
		panic("kernels: Stale: len(limits)=0, want more")
	}
	checkLabels("Stale", labels, len(limits)-1)
	stale(keys, labels, limits, masks)
}

// stalePortable is the reference form of [Stale].
func stalePortable(keys []float32, labels []uint16, limits []float32, masks []uint32) {
	clear(masks)
	for i, key := range keys {
		if key <= limits[labels[i]] {
			masks[i/32] |= 1 << (i % 32)
		}
	}
}

// A DistanceBound is what [StaleByDistance] compares with.
type DistanceBound struct{ Most, Least, Up, More float32 }

// StaleByDistance sets bit i%32 of masks[i/32] unless point i passes the bound: with t = keys[i]-Most and
// f = t + max(t, far[i]), each operation rounded to float32, f*f is at least Least and f*f*Up + More at most
// squares[i]. Nothing is NaN. far and squares are as long as keys, and there is a word of masks for 32 of them.
func StaleByDistance(keys, far, squares []float32, s DistanceBound, masks []uint32) {
	checkLength("StaleByDistance", "far", len(far), len(keys))
	checkLength("StaleByDistance", "squares", len(squares), len(keys))
	checkLength("StaleByDistance", "masks", len(masks), (len(keys)+31)/32)
	if s != s {
		panic(fmt.Sprintf("kernels: StaleByDistance: the bound is %v, want numbers", s))
	}
	staleByDistance(keys, far, squares, &s, masks)
}

// staleByDistancePortable is the reference form of [StaleByDistance].
func staleByDistancePortable(keys, far, squares []float32, s *DistanceBound, masks []uint32) {
	clear(masks)
	for i, key := range keys {
		t := key - s.Most
		f := t + max(t, far[i])
		f = f * f
		if f < s.Least || float32(f*s.Up)+s.More > squares[i] {
			masks[i/32] |= 1 << (i % 32)
		}
	}
}
