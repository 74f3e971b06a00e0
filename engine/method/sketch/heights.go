package sketch

import "math/bits"

// Sketches are the membership sketches of one party as the server gets them:
// for each of Keys keys and each of Clusters local clusters the maximum height
// over the cluster's ids and phantoms.
type Sketches struct {
	Keys, Clusters int
	// Heights is row-major: the height of key i and cluster a is Heights[i*Clusters+a].
	Heights []uint16
}

// newSketches returns sketches with all heights zero.
func newSketches(keys, clusters int) *Sketches {
	return &Sketches{Keys: keys, Clusters: clusters, Heights: make([]uint16, keys*clusters)}
}

// Row returns the heights of key i, one per cluster.
func (s *Sketches) Row(i int) []uint16 { return s.Heights[i*s.Clusters : (i+1)*s.Clusters] }

// product returns base^exponent and whether it is at most limit; the product is
// meaningless if not.
func product(base, exponent, limit int) (int, bool) {
	p := uint64(1)
	for range exponent {
		hi, lo := bits.Mul64(p, uint64(base))
		if hi != 0 || lo > uint64(limit) {
			return 0, false
		}
		p = lo
	}
	return int(p), true
}
