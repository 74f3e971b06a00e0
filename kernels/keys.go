package kernels

import (
	"fmt"
	"math"
)

// NoKey is the key of a point without a bound.
const NoKey = -1

// A KeyBound is what [BoundKeys] reckons with: what a squared distance is off by at most, the error of the comparison
// of two distances, as a product of them, and what centroids have moved by since the first keys.
type KeyBound struct{ Off, Error, Most float64 }

// BoundKeys makes of the squared distances of points from the centroid that their label names, and from the next one,
// what bounds between rounds keep. With n = sqrt(dist+Off), f = sqrt(max(0, second-Off)), m = moved[label] and the
// slack s = min(f/2, f-n-Error/f) (1-2^-30), the key is (s+m+Most) (1-2^-20), and NoKey where s is not above 0; far is
// n-m + (n+m) 2^-20. They are float32 of what float64 gives with each operation rounded. All slices but moved have the
// length of labels, which are less than len(moved); Off and Error are above 0.
func BoundKeys(dist, second []float32, labels []uint16, moved []float64, s KeyBound, keys, far []float32) {
	checkLength("BoundKeys", "dist", len(dist), len(labels))
	checkLength("BoundKeys", "second", len(second), len(labels))
	checkLength("BoundKeys", "keys", len(keys), len(labels))
	checkLength("BoundKeys", "far", len(far), len(labels))
	if len(moved) == 0 || !(s.Off > 0 && s.Error > 0) {
		panic(fmt.Sprintf("kernels: BoundKeys: len(moved)=%d and the bound is %v, want more than 0", len(moved), s))
	}
	checkLabels("BoundKeys", labels, len(moved)-1)
	boundKeys(dist, second, labels, moved, &s, keys, far)
}

// boundKeysPortable is the reference form of [BoundKeys].
func boundKeysPortable(dist, second []float32, labels []uint16, moved []float64, s *KeyBound, keys, far []float32) {
	for i, l := range labels {
		near, next, way := math.Sqrt(float64(dist[i])+s.Off), math.Sqrt(max(0, float64(second[i])-s.Off)), moved[l]
		slack := float64(min(next/2, next-near-s.Error/next) * (1 - 0x1p-30))
		if keys[i] = NoKey; slack > 0 {
			keys[i] = float32((slack + way + s.Most) * (1 - 0x1p-20))
		}
		far[i] = float32(near - way + float64((near+way)*0x1p-20))
	}
}
