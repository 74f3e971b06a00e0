package sketch

import (
	"math"
	"math/bits"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Frequency is the local randomiser of one party's memberships: generalized
// randomized response where clusters <= 3 e^eps + 2, else optimized local
// hashing (Sketch-V, appendix B.2; Wang et al., Locally differentially private
// protocols for frequency estimation).
type Frequency struct {
	Clusters int
	// Range is the number of hash values; 0 for randomized response.
	Range int
	// Keep is the probability that a report supports the true cluster, Support
	// that it supports a given other one.
	Keep, Support float64
	// truth is the probability that the report is the true value unchanged,
	// given that it is one of size values.
	truth float64
	size  int
}

// NewFrequency chooses the randomiser for eps-local privacy. eps must be
// positive.
func NewFrequency(clusters int, eps float64) (*Frequency, error) {
	if !(eps > 0) || math.IsInf(eps, 1) {
		return nil, fault.Range("epsilon", eps, "positive and finite")
	}
	e := math.Exp(eps)
	f := &Frequency{Clusters: clusters, size: clusters}
	if float64(clusters) > 3*e+2 {
		f.Range = int(math.Floor(e + 1))
		f.size = f.Range
	}
	f.truth = e / (e + float64(f.size) - 1)
	f.Keep = f.truth
	if f.Range > 0 {
		f.Support = 1 / float64(f.Range)
	} else {
		f.Support = (1 - f.truth) / float64(clusters-1)
	}
	return f, nil
}

// Report randomises value in [0, size): it stays with probability truth, else it
// becomes one of the others. u1 and u2 are uniform on 64 bits.
func (f *Frequency) report(value int, u1, u2 uint64) int {
	if float64(u1>>11)*0x1p-53 < f.truth {
		return value
	}
	other := int(mulHigh(u2, uint64(f.size-1)))
	if other >= value {
		other++
	}
	return other
}

// value is what a party reports on a record of cluster a.
func (f *Frequency) value(party, row, a int) int {
	if f.Range > 0 {
		return f.hash(reportSeed(party, row), a)
	}
	return a
}

// hash maps cluster a to [0, Range) under a record's public hash seed.
func (f *Frequency) hash(seed uint64, a int) int {
	x := seed + 0x9e3779b97f4a7c15*uint64(a+1)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int(mulHigh(x^x>>31, uint64(f.Range)))
}

// supports reports whether a report supports cluster a.
func (f *Frequency) supports(seed uint64, value, a int) bool {
	if f.Range == 0 {
		return value == a
	}
	return f.hash(seed, a) == value
}

func mulHigh(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}

// Invert replaces the support counts of a dense grid of the given number of
// parties by unbiased counts: the transition matrix is the Kronecker product of
// one matrix (p-q) I + q 11' per party, so its inverse acts on one axis at a
// time, (1/(p-q)) (I - q/(p - q + q k) 11'), in parties * cells operations.
func (f *Frequency) Invert(counts []float64, parties int) {
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
