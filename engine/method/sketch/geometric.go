package sketch

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Geometric is the distribution of the sketches' hash values with parameter gamma:
// Pr[H <= t] = F(t) = 1 - (1+gamma)^-t for t = 1, 2, ... (Sketch-V, section
// 4.2). A height comes from a uniform hash u as the smallest t with u >=
// (1+gamma)^-t, so the maximum height of a set is the height of its minimum
// hash, and u = 1 - e^-v from the set's first arrival v.
//
// A Geometric is immutable after newGeometric.
type Geometric struct {
	// Gamma is the distribution's parameter.
	Gamma float64
	// least[t] is the least arrival of height t, -ln(1 - (1+gamma)^-t), for
	// t = 1 .. Max-1; 0 for Max, and +Inf for 0.
	least []float64
	// first[b] is the height at the end of bucket b of arrivals (see bucket).
	first []uint16
	// logCDF[t] = ln F(t), for t = 0 .. Max.
	logCDF []float64
	// arrival[t] = -ln(1-u) at u = (1+gamma)^-(t-1/2): the minimum hash of n ids
	// of height t as the first arrival of a process of rate n.
	arrival []float64
	// inverse[t] = (1+gamma)^-t.
	inverse []float64
}

// minGamma is the smallest parameter whose largest height fits 16 bits.
const minGamma = 1.0 / 1450

// newGeometric prepares the distribution with parameter gamma in [1/1450, 16]: below,
// a height would not fit two bytes.
func newGeometric(gamma float64) (*Geometric, error) {
	if err := checkGamma(gamma); err != nil {
		return nil, err
	}
	g := &Geometric{Gamma: gamma}
	step := elementary.Log(1 + gamma)
	top := int(math.Ceil(64*math.Ln2/step)) + 1
	g.least = make([]float64, top+1)
	g.logCDF = make([]float64, top+1)
	g.arrival = make([]float64, top+1)
	g.inverse = make([]float64, top+1)
	for t := range g.least {
		tail := elementary.Exp(-float64(t) * step)
		g.least[t] = minusLog1m(tail)
		g.inverse[t] = tail
		g.logCDF[t] = -g.least[t]
		g.arrival[t] = minusLog1m(elementary.Exp(-(float64(t) - 0.5) * step))
	}
	g.least[top], g.arrival[0] = 0, math.Inf(1)
	g.first = make([]uint16, bucket(g.least[1])+1)
	t := top
	for b := range g.first {
		for t > 1 && bucket(g.least[t-1]) <= b {
			t--
		}
		g.first[b] = uint16(t)
	}
	return g, nil
}

// minusLog1m returns -ln(1-x) for x in [0, 1), portable to the bit: what 1-x is
// off by is made good, as ln is nearly linear there.
func minusLog1m(x float64) float64 {
	u := 1 - x
	if u == 1 {
		return x
	}
	return elementary.Log(u) * (x / (u - 1))
}

func checkGamma(gamma float64) error {
	if !(gamma >= minGamma && gamma <= 16) {
		return fault.Range("gamma", gamma, "between 1/1450 and 16")
	}
	return nil
}

// max is the largest height: 65 at gamma = 1, 45448 at gamma = 1/1024.
func (g *Geometric) max() int { return len(g.least) - 1 }

// bytes is the size of one encoded height: 1 or 2.
func (g *Geometric) bytes() int {
	if g.max() <= math.MaxUint8 {
		return 1
	}
	return 2
}

// height returns the height of a first arrival.
func (g *Geometric) height(arrival float64) uint16 {
	t := uint16(1)
	if b := bucket(arrival); b < len(g.first) {
		t = g.first[b]
	}
	for arrival < g.least[t] {
		t++
	}
	return t
}

// bucket numbers the arrivals by their first bits, 256 buckets to an octave. What
// is below 2^-66, less than the arrivals of all heights but the last, is in bucket 0.
func bucket(arrival float64) int {
	const shift, lowest = 52 - 8, (1023 - 66) << 8
	return max(int(math.Float64bits(arrival)>>shift)-lowest, 0)
}

// floor returns alpha_min = ceil(log_{1+gamma}(1/(1-e^-eps))), the height below
// which no sketch goes under the published calibration (Sketch-V, Algorithm 2).
func (g *Geometric) floor(eps float64) (uint16, error) {
	a := math.Ceil(-math.Log(-math.Expm1(-eps)) / math.Log1p(g.Gamma))
	if a >= float64(g.max()) {
		return 0, fault.Request("epsilon",
			fmt.Sprintf("the floor of the sketches would be %.0f, beyond the largest height %d", a, g.max()),
			"use a larger epsilon or fewer sketches")
	}
	return uint16(max(a, 1)), nil
}

// phantomCount returns n_p = ceil(1/(e^eps - 1)), the ids that the published
// calibration adds to every sketch (Sketch-V, Algorithm 2).
func phantomCount(eps float64) float64 { return math.Ceil(1 / math.Expm1(eps)) }
