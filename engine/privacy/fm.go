package privacy

import (
	"fmt"
	"math"
)

// FM is one key of the Flajolet-Martin partition sketches of several parties whose phantoms belong to
// grid cells and are hashed alike by all (T3): the joint release of all parties' sketches, one per
// party and cluster. The bounds hold against a viewer who knows neither the keys nor the ids.
//
// They follow from the dominating pair of T3. With every cell but the record's revealed, the release
// is T = max(m, Q), where m is the maximum of n = Phantoms or n+1 hashes and Q, of the distribution
// Pr[F(Q) <= y] = sum_t (-1)^(t+1) C(S,t) y^(n u_t) over t = 1..S with u_t = k^S - (k-1)^t k^(S-t) - 1,
// is the least over parties of the maximum of the other cells of the record's cluster. Heights are a
// rounding of continuous hashes, so the distribution of continuous hashes bounds every Gamma. With
// G(b) = sum_t (-1)^(t+1) C(S,t) / (n u_t + b),
//
//	E[(P_{n+1}/P_n)^a] under P_n     = 1 + G(n+a)   (n ((n+1)/n)^a - (n+a)),
//	E[(P_n/P_{n+1})^a] under P_{n+1} = 1 + G(n+1-a) ((n+1) (n/(n+1))^a - (n+1-a)),
//
// the latter infinite unless n u_1 + n + 1 > a. The ratio has no upper bound as Q falls, and orders beyond the
// number of phantoms in a cluster none either, so there is no pure epsilon and no rho.
type FM struct {
	unproved
	// Gamma is the parameter of the heights, 0 for hashes that are not rounded to heights. RDP does not
	// depend on it.
	Gamma float64
	// Phantoms is n_c, the number of phantoms in each of the Cells^Parties grid cells.
	Phantoms int
	// Parties is S, Cells the number k of clusters of each party.
	Parties, Cells int
}

// RDP is the larger of the two divergences.
func (f FM) RDP(alpha float64) float64 {
	n := float64(f.Phantoms)
	step := math.Log1p(1 / n)
	forward := f.mix(n+alpha) * (n*math.Expm1(alpha*step) - alpha)
	backward := math.Inf(1)
	if b := n + 1 - alpha; n*f.others(1)+b > 0 {
		backward = f.mix(b) * ((n+1)*math.Expm1(-alpha*step) + alpha)
	}
	// The alternating sum loses at most S bits; 1e-9 covers that for S <= 20.
	r := math.Log1p(math.Max(math.Max(forward, backward), 0)*(1+1e-9)) / (alpha - 1)
	if math.IsNaN(r) {
		return math.Inf(1)
	}
	return r
}

// others is u_t, the cells outside the record's own that its clusters at t parties hold.
func (f FM) others(t int) float64 {
	k, s := float64(f.Cells), float64(f.Parties)
	return math.Pow(k, s) - math.Pow(k-1, float64(t))*math.Pow(k, s-float64(t)) - 1
}

// mix is G(b).
func (f FM) mix(b float64) float64 {
	var sum float64
	binomial := -1.0
	for t := 1; t <= f.Parties; t++ {
		binomial *= -float64(f.Parties-t+1) / float64(t)
		sum += binomial / (float64(f.Phantoms)*f.others(t) + b)
	}
	return sum
}

func (f FM) validate() error {
	switch {
	case f.Parties < 2 || f.Parties > 20:
		return fmt.Errorf("fm: parties is %d: %w: must be 2 to 20", f.Parties, ErrRange)
	case f.Cells < 2:
		return fmt.Errorf("fm: cells is %d: %w: must be at least 2", f.Cells, ErrRange)
	case f.Phantoms < 1:
		return fmt.Errorf("fm: phantoms is %d: %w: must be at least 1", f.Phantoms, ErrRange)
	case !(f.Gamma >= 0):
		return fmt.Errorf("fm: gamma is %v: %w: must not be negative", f.Gamma, ErrRange)
	}
	return nil
}

// maxPhantoms bounds the search of FMPhantoms; sketches with more say nothing about any data.
const maxPhantoms = 1 << 40

// FMPhantoms returns the least number of phantoms per cell at which keys releases of f (whose own
// Phantoms is ignored), together with the other mechanisms, stay within the budget by the RDP
// accountant.
func FMPhantoms(b Budget, f FM, keys int, others ...Mechanism) (int, error) {
	f.Phantoms = 1
	if err := f.validate(); err != nil {
		return 0, err
	}
	if err := b.Validate(); err != nil {
		return 0, err
	}
	if b.Delta == 0 {
		return 0, fmt.Errorf("fm: delta is 0: %w: sketches have no pure epsilon: give a positive delta", ErrRange)
	}
	fits := func(n int) bool {
		a := newRDPAccountant()
		for _, m := range others {
			a.Compose(m, 1)
		}
		f.Phantoms = n
		a.Compose(f, keys)
		return a.Delta(b.Epsilon) <= b.Delta
	}
	hi := 1
	for !fits(hi) {
		if hi *= 2; hi > maxPhantoms {
			return 0, fmt.Errorf("fm: epsilon %v at delta %v: %w: the other releases of the run leave nothing for the "+
				"sketches", b.Epsilon, b.Delta, ErrRange)
		}
	}
	lo := hi / 2 // does not fit, or is 0
	for hi-lo > 1 {
		if m := (lo + hi) / 2; fits(m) {
			hi = m
		} else {
			lo = m
		}
	}
	return hi, nil
}
