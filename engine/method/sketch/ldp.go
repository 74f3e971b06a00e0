package sketch

import (
	"math"
	"math/bits"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// frequency is the local randomiser of one party's memberships: generalized
// randomized response where clusters <= 3 e^eps + 2, else optimized local
// hashing (Sketch-V, appendix B.2; Wang et al., Locally differentially private
// protocols for frequency estimation).
type frequency struct {
	Clusters int
	// Range is the number of hash values; 0 for randomized response.
	Range int
	// Keep is the probability that a report supports the true cluster, Support
	// that it supports a given other one.
	Keep, Support float64
	// keep is the probability that the report is the true value unchanged, in units of
	// 2^-64, given that it is one of size values.
	keep uint64
	size int
}

// newFrequency chooses the randomiser for eps-local privacy. eps must be
// positive.
func newFrequency(clusters int, eps float64) (*frequency, error) {
	if !(eps > 0) || math.IsInf(eps, 1) {
		return nil, fault.Range("epsilon", eps, "positive and finite")
	}
	e := math.Exp(eps)
	f := &frequency{Clusters: clusters, size: clusters}
	if float64(clusters) > 3*e+2 {
		f.Range = int(math.Floor(e + 1))
		f.size = f.Range
	}
	f.keep = keepUnits(f.size, e)
	f.Keep = f.truth()
	if f.Range > 0 {
		f.Support = 1 / float64(f.Range)
	} else {
		f.Support = (1 - f.Keep) / float64(clusters-1)
	}
	return f, nil
}

// keepUnits is the largest probability of the truth, up to a relative 2^-40 of that of
// a lie, in units of 2^-64, of which all decisions consist: with size values and
// e = e^eps computed to a relative 2^-48 a given value is at most e^eps times as likely
// from one truth as from another (THEOREMS.md T7 v).
func keepUnits(size int, e float64) uint64 {
	others := float64(size - 1)
	if size == 1 {
		return math.MaxUint64
	}
	lie := math.Ceil(math.Ldexp(others/(e+others)*(1+0x1p-40), 64))
	return -uint64(max(lie, 1)) // 2^64 less so many
}

// truth is the probability that a report is the true value.
func (f *frequency) truth() float64 { return math.Ldexp(float64(f.keep), -64) }

// report randomises value in [0, size): it stays with probability keep, else it
// becomes one of the others, all alike. Whatever it becomes takes the same numbers of
// the stream.
func (f *frequency) report(value int, st *privacy.Stream) int {
	if f.size == 1 {
		return value
	}
	u, other := st.Uint64(), int(st.Uint64n(uint64(f.size-1)))
	switch {
	case u < f.keep:
		return value
	case other >= value:
		other++
	}
	return other
}

// value is what a party reports on a record of cluster a.
func (f *frequency) value(party, row, a int) int {
	if f.Range > 0 {
		return f.hash(reportSeed(party, row), a)
	}
	return a
}

// hash maps cluster a to [0, Range) under a record's public hash seed.
func (f *frequency) hash(seed uint64, a int) int {
	return int(mulHigh(mixed(seed, a), uint64(f.Range)))
}

// mixed is number i of the public sequence of a seed (SplitMix64: Steele, Lea and Flood 2014).
func mixed(seed uint64, i int) uint64 {
	x := seed + 0x9e3779b97f4a7c15*uint64(i+1)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// supports reports whether a report supports cluster a.
func (f *frequency) supports(seed uint64, value, a int) bool {
	if f.Range == 0 {
		return value == a
	}
	return f.hash(seed, a) == value
}

func mulHigh(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}

// invert replaces the support counts of a dense grid of the given number of
// parties by unbiased counts: the transition matrix is the Kronecker product of
// one matrix (p-q) I + q 11' per party, so its inverse acts on one axis at a
// time, (1/(p-q)) (I - q/(p - q + q k) 11'), in parties * cells operations.
func (f *frequency) invert(counts []float64, parties int) {
	k := f.Clusters
	difference := f.Keep - f.Support
	common := f.Support / (difference + f.Support*float64(k))
	stride := 1
	for range parties {
		for base := range counts {
			if base/stride%k != 0 {
				continue
			}
			sum := 0.0
			for a := range k {
				sum += counts[base+a*stride]
			}
			for a := range k {
				counts[base+a*stride] = (counts[base+a*stride] - common*sum) / difference
			}
		}
		stride *= k
	}
}
