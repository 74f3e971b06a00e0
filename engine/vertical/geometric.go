package vertical

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"sort"

	"github.com/cohort-engine/cohort/engine/fault"
)

// Geometric is the law of the sketches' hash values with parameter gamma:
// Pr[H <= t] = F(t) = 1 - (1+gamma)^-t for t = 1, 2, ... (Sketch-V, section
// 4.2). A height comes from a uniform 64-bit hash x as the smallest t with
// x/2^64 >= (1+gamma)^-t, so the maximum height of a set is the height of its
// minimum hash.
//
// A Geometric is immutable after NewGeometric.
type Geometric struct {
	// Gamma is the law's parameter.
	Gamma float64
	// thresholds[t-1] = ceil(2^64 (1+gamma)^-t): H <= t iff x >= thresholds[t-1].
	thresholds []uint64
	// cdf[t] = F(t), logCDF[t] = ln F(t), for t = 0 .. Max.
	cdf, logCDF []float64
	// arrival[t] = -ln(1-u) at u = (1+gamma)^-(t-1/2): the minimum hash of n ids
	// of height t as the first arrival of a process of rate n.
	arrival []float64
	// inverse[t] = (1+gamma)^-t.
	inverse []float64
}

// minGamma is the smallest parameter whose largest height fits 16 bits.
const minGamma = 1.0 / 1450

// NewGeometric prepares the law with parameter gamma in [1/1450, 16]: below,
// a height would not fit two bytes.
func NewGeometric(gamma float64) (*Geometric, error) {
	if err := checkGamma(gamma); err != nil {
		return nil, err
	}
	g := &Geometric{Gamma: gamma}
	// 1/(1+gamma) as a fraction of 128 bits, rounded down; powers in the same
	// form. The relative error of the t-th power stays below t 2^-126, so a
	// threshold is exact or off by one unit of 2^-64.
	one := new(big.Int).Lsh(big.NewInt(1), 128)
	ratio, _ := new(big.Float).SetPrec(256).Quo(new(big.Float).SetPrec(256).SetInt(one),
		new(big.Float).SetPrec(256).Add(big.NewFloat(1), big.NewFloat(gamma))).Int(nil)
	rlo := new(big.Int).And(ratio, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	rhi := new(big.Int).Rsh(ratio, 64).Uint64()
	hi, lo := rhi, rlo
	for {
		t := hi
		if lo != 0 {
			t++
		}
		g.thresholds = append(g.thresholds, t)
		if t <= 1 {
			break
		}
		hi, lo = mulFraction(hi, lo, rhi, rlo)
	}
	top := g.Max()
	g.cdf = make([]float64, top+1)
	g.logCDF = make([]float64, top+1)
	g.arrival = make([]float64, top+1)
	g.inverse = make([]float64, top+1)
	step := math.Log1p(gamma)
	for t := range g.cdf {
		tail := math.Exp(-float64(t) * step)
		g.inverse[t] = tail
		g.cdf[t] = -math.Expm1(-float64(t) * step)
		g.logCDF[t] = math.Log1p(-tail)
		g.arrival[t] = -math.Log1p(-math.Exp(-(float64(t) - 0.5) * step))
	}
	g.arrival[0] = math.Inf(1)
	return g, nil
}

func checkGamma(gamma float64) error {
	if !(gamma >= minGamma && gamma <= 16) {
		return fault.Range("gamma", gamma, "between 1/1450 and 16")
	}
	return nil
}

// mulFraction returns the upper 128 bits of the product of two 128-bit fractions.
func mulFraction(ahi, alo, bhi, blo uint64) (hi, lo uint64) {
	_, c0 := mul(alo, blo)
	l1, h1 := mul(ahi, blo)
	l2, h2 := mul(alo, bhi)
	l3, h3 := mul(ahi, bhi)
	s, c := bits.Add64(l1, l2, 0)
	var carry uint64
	_, c2 := bits.Add64(s, c0, 0)
	carry = c + c2
	lo, c = bits.Add64(l3, h1, 0)
	hi = h3 + c
	lo, c = bits.Add64(lo, h2, 0)
	hi += c
	lo, c = bits.Add64(lo, carry, 0)
	hi += c
	return hi, lo
}

func mul(a, b uint64) (lo, hi uint64) {
	hi, lo = bits.Mul64(a, b)
	return lo, hi
}

// Max is the largest height: 65 at gamma = 1, 45472 at gamma = 1/1024.
func (g *Geometric) Max() int { return len(g.thresholds) + 1 }

// Bytes is the size of one encoded height: 1 or 2.
func (g *Geometric) Bytes() int {
	if g.Max() <= math.MaxUint8 {
		return 1
	}
	return 2
}

// Height returns the height of the hash x.
func (g *Geometric) Height(x uint64) uint16 {
	return uint16(1 + sort.Search(len(g.thresholds), func(i int) bool { return x >= g.thresholds[i] }))
}

// Floor returns alpha_min = ceil(log_{1+gamma}(1/(1-e^-eps))), the height below
// which no sketch goes under the published calibration (Sketch-V, Algorithm 2).
func (g *Geometric) Floor(eps float64) (uint16, error) {
	a := math.Ceil(-math.Log(-math.Expm1(-eps)) / math.Log1p(g.Gamma))
	if a >= float64(g.Max()) {
		return 0, fault.Request("epsilon", fmt.Sprintf("the floor of the sketches would be %.0f, beyond the largest height %d", a, g.Max()),
			"use a larger epsilon or fewer sketches")
	}
	return uint16(max(a, 1)), nil
}

// PhantomCount returns n_p = ceil(1/(e^eps - 1)), the ids that the published
// calibration adds to every sketch (Sketch-V, Algorithm 2).
func PhantomCount(eps float64) float64 { return math.Ceil(1 / math.Expm1(eps)) }

// phantomHash turns v, uniform on 64 bits, into the minimum of n uniform 64-bit
// hashes: u = 1 - (1-V)^(1/n).
func phantomHash(v uint64, n float64) uint64 {
	u := -math.Expm1(math.Log1p(-(float64(v)+0.5)*0x1p-64) / n)
	if x := u * 0x1p64; x < 0x1p64 {
		return uint64(x)
	}
	return math.MaxUint64
}
