package privacy

import (
	"fmt"
	"math"
	"sync"
)

// logs are log F(h) and log F(h-1) - log F(h).
func (f FM) logs(h int) (at, drop float64) {
	x := math.Exp(-float64(h) * math.Log1p(f.Gamma))
	at = math.Log1p(-x)
	if h == 1 {
		return at, math.Inf(-1)
	}
	return at, math.Log1p(-x * f.Gamma / (1 - x))
}

// censor returns Pr[Q <= z] where Q is the least, over the parties, of the largest height in the
// other cells of the cluster: the sum over t of (-1)^(t+1) C(S,t) F(z)^(n u_t), with
// u_t = k'^S - (k'-1)^t k'^(S-t) - 1. Far down the first term rules and the sum is accurate as it
// stands; elsewhere its complement is.
func (f FM) censor(logF float64) float64 {
	n := float64(f.Phantoms)
	low := -n*f.others(1)*logF > 1
	sum, binomial := 0.0, -1.0
	for t := 1; t <= f.Parties; t++ {
		binomial *= -float64(f.Parties-t+1) / float64(t)
		if x := n * f.others(t) * logF; low {
			sum += binomial * math.Exp(x)
		} else {
			sum -= binomial * math.Expm1(x)
		}
	}
	if !low {
		sum = 1 - sum
	}
	return math.Min(1, math.Max(0, sum))
}

// fineHeights is the Gamma below which Losses takes the heights for continuous: the difference is then below
// half a percent of the phantoms, and there would be thousands of heights.
const fineHeights = 0.02

// Losses are those of (n_c, n_c+1) and (n_c+1, n_c) ids in the cell: on heights of parameter Gamma, or, where
// they are fine, on continuous hashes, of which heights are a rounding (T3).
func (f FM) Losses() []*Losses {
	if f.Gamma < fineHeights {
		return f.continuousLosses()
	}
	return f.heightLosses()
}

// continuousLosses are those of the closed form of T3. In v = F(m) and y = F(Q) the outcome "at most y" has loss
// -log y, the outcome v > y loss -log v - log(1+1/n), and both have powers for masses: with c_t = (-1)^(t+1) C(S,t),
//
//	at most y, y in (a,b]:    P = sum_t c_t u_t/(u_t+1) [y^(n(u_t+1))]_a^b,
//	                          Q = sum_t c_t n u_t/(n u_t+n+1) [y^(n u_t+n+1)]_a^b,
//	v in (a,b], above y:      P = sum_t c_t 1/(u_t+1) [v^(n(u_t+1))]_a^b,
//	                          Q = sum_t c_t (n+1)/(n u_t+n+1) [v^(n u_t+n+1)]_a^b.
//
// The alternating sums lose up to S bits: P is rounded up by that and Q down.
func (f FM) continuousLosses() []*Losses {
	n, step := float64(f.Phantoms), math.Log1p(1/float64(f.Phantoms))
	const tail = 80 // S e^-80 of the mass lies beyond, at most
	beyond := float64(f.Parties) * math.Exp(-tail)
	reach := tail / (n * (f.others(1) + 1))
	lost := math.Ldexp(1, f.Parties-50)
	// power is [y^a] between the logarithms from <= to of y
	power := func(a, from, to float64) float64 { return math.Exp(a*to) * -math.Expm1(a*(from-to)) }
	masses := func(a, b float64) (p, q float64) { // of losses in (a,b]
		from, to := -b, -max(a, 0) // log y
		vFrom, vTo := -b-step, min(-a-step, 0)
		binomial := -1.0
		for t := 1; t <= f.Parties; t++ {
			binomial *= -float64(f.Parties-t+1) / float64(t)
			u := f.others(t)
			if from < to {
				p += binomial * u / (u + 1) * power(n*(u+1), from, to)
				q += binomial * n * u / (n*u + n + 1) * power(n*u+n+1, from, to)
			}
			if vFrom < vTo {
				p += binomial / (u + 1) * power(n*(u+1), vFrom, vTo)
				q += binomial * (n + 1) / (n*u + n + 1) * power(n*u+n+1, vFrom, vTo)
			}
		}
		return p, q
	}
	fewer := &Losses{lo: -step, hi: reach, above: beyond, cells: func(a, b float64) (float64, float64) {
		p, q := masses(a, b)
		return max(p, 0) * (1 + lost), max(q, 0) * (1 - lost)
	}}
	more := &Losses{lo: -reach, hi: step, below: beyond, cells: func(a, b float64) (float64, float64) {
		q, p := masses(-b, -a)
		return max(p, 0) * (1 + lost), max(q, 0) * (1 - lost)
	}}
	fewer.finish()
	more.finish()
	return []*Losses{fewer, more}
}

// heightLosses has two atoms per height h, one for a maximum of h above the censor, one for a censor of h.
func (f FM) heightLosses() []*Losses {
	n := float64(f.Phantoms)
	fewer, more := &Losses{}, &Losses{}
	add := func(loss, p float64) {
		if p > 0 {
			fewer.atoms = append(fewer.atoms, atom{loss, p})
		}
		if q := p * math.Exp(-loss); q > 0 {
			more.atoms = append(more.atoms, atom{-loss, q})
		}
	}
	below := 0.0 // Pr[Q < h]
	for h := 1; ; h++ {
		at, drop := f.logs(h)
		// the cell's maximum is h, above the censor: F(h)^n - F(h-1)^n against n+1
		pn := math.Exp(n*at) * -math.Expm1(n*drop)
		loss := -at
		if !math.IsInf(drop, -1) {
			loss += math.Log(math.Expm1(n*drop) / math.Expm1((n+1)*drop))
		}
		add(loss, below*pn)
		// it is at most h, the value of the censor
		upTo := math.Max(below, f.censor(at))
		add(-at, (upTo-below)*math.Exp(n*at))
		below = upTo
		if -n*at < 1e-17 {
			break
		}
	}
	// heights beyond the last, and rounding, at the largest loss of great heights
	for _, l := range []struct {
		l    *Losses
		loss float64
	}{{fewer, 1e-16}, {more, math.Log1p(1 / n)}} {
		rest := 1e-16
		for _, a := range l.l.atoms {
			rest -= a.mass
		}
		if rest++; rest > 0 {
			l.l.atoms = append(l.l.atoms, atom{l.loss, rest})
		}
		l.l.finish()
	}
	return []*Losses{fewer, more}
}

// FMPhantomsPLD is FMPhantoms by the PLD accountant, which needs some 10% fewer phantoms and knows Gamma.
// keys counts all keys of the run, those of every pair of parties where pairs have their own: a record is
// in one cell of each. It takes some 20 ms.
func FMPhantomsPLD(b Budget, f FM, keys int, others ...Mechanism) (int, error) {
	f.Phantoms = 1
	if err := f.validate(); err != nil {
		return 0, err
	}
	mu, err := MuOf(b, 0)
	if err != nil {
		return 0, err
	}
	if keys < 1 {
		return 0, fmt.Errorf("fm: keys is %d: %w: must be at least 1", keys, ErrRange)
	}
	s := phantomSearch{budget: b, fm: f, keys: keys, others: others}
	n, slope := s.guess(mu)
	lo, hi := 0, 0 // the largest that does not fit, the least that does, 0 for unknown
	last, lastLog := 0, 0.0
	for tries := 0; hi == 0 || hi-lo > 1; tries++ {
		log := s.logDelta(n) // over the budget's
		if log <= 0 {
			hi = n
		} else {
			lo = n
		}
		if last != 0 && last != n {
			if d := (log - lastLog) / (math.Log(float64(n)) - math.Log(float64(last))); d < slope/4 && d > slope*4 {
				slope = d
			}
		}
		last, lastLog = n, log
		// a step of Newton's in log n, not far beyond what is known, rounded to the side that fits
		next := math.Ceil(float64(n) * math.Exp(min(max(-log/slope, -3), 3)))
		if hi == 0 && tries > manyTries {
			next = max(next, 16*float64(n))
		}
		if next > maxPhantoms {
			return 0, fmt.Errorf("fm: epsilon %v at delta %v: %w: the other releases of the run leave nothing for the "+
				"sketches", b.Epsilon, b.Delta, ErrRange)
		}
		n = max(int(next), lo+1)
		if hi != 0 {
			n = min(n, hi-1)
		}
	}
	return hi, nil
}

// manyTries is after how many numbers that do not fit a search takes longer steps: something else may take all of the
// budget.
const manyTries = 16

// phantomSearch looks for the number of phantoms at which a run has the delta of its budget.
type phantomSearch struct {
	budget Budget
	fm     FM
	keys   int
	others []Mechanism
}

// guess is the number of phantoms if all losses were normal, of the variance that the others leave, and the slope of
// log delta in log n there.
func (s *phantomSearch) guess(mu float64) (n int, slope float64) {
	left := mu * mu
	for _, m := range s.others {
		if x := m.Mu(); x < mu {
			left -= x * x
		}
	}
	left = max(left, mu*mu/1e6)
	n = 100
	for range 3 { // the deviation of a loss is nearly proportional to 1/n
		s.fm.Phantoms = n
		sd := s.fm.Losses()[0].sd
		n = int(math.Ceil(min(max(float64(n)*sd*math.Sqrt(float64(s.keys)/left), 1), maxPhantoms)))
	}
	const step = 1e-3
	up := math.Log(DeltaOfMu(mu*(1+step), s.budget.Epsilon)) - math.Log(DeltaOfMu(mu, s.budget.Epsilon))
	return n, min(-up/step*left/(mu*mu), -1e-3)
}

// logDelta is the logarithm of the delta at n phantoms over the budget's, of the dearer order of the neighbours.
func (s *phantomSearch) logDelta(n int) float64 {
	a := &PLDAccountant{}
	for _, m := range s.others {
		a.Compose(m, 1)
	}
	s.fm.Phantoms = n
	a.Compose(s.fm, s.keys)
	if a.unknown {
		return math.Inf(1)
	}
	var logs [2]float64
	var wait sync.WaitGroup
	for order := range logs {
		wait.Go(func() { logs[order] = math.Log(a.deltaOf(order, s.budget.Epsilon) / s.budget.Delta) })
	}
	wait.Wait()
	return max(logs[0], logs[1])
}
