package privacy

import (
	"fmt"
	"math"
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

// Losses are those of (n_c, n_c+1) and (n_c+1, n_c) ids in the cell, on heights of parameter Gamma: two
// atoms per height h, one for a maximum of h above the censor, one for a censor of h.
func (f FM) Losses() []*Losses {
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
// It takes a tenth of a second.
func FMPhantomsPLD(b Budget, f FM, keys int, others ...Mechanism) (int, error) {
	hi, err := FMPhantoms(b, f, keys, others...)
	if err != nil {
		return 0, err
	}
	fits := func(n int) bool {
		a := &PLDAccountant{}
		for _, m := range others {
			a.Compose(m, 1)
		}
		f.Phantoms = n
		a.Compose(f, keys)
		return a.Delta(b.Epsilon) <= b.Delta
	}
	if !fits(hi) {
		return 0, fmt.Errorf("fm: %d phantoms fit by RDP but not by PLD: some other release has no loss distribution: use FMPhantoms", hi)
	}
	lo := 0
	for step := hi/16 + 1; lo == 0 && hi > 1; step *= 2 {
		if m := max(1, hi-step); fits(m) {
			hi = m
		} else {
			lo = m
		}
	}
	for hi-lo > 1 {
		if m := lo + (hi-lo)/2; fits(m) {
			hi = m
		} else {
			lo = m
		}
	}
	return hi, nil
}
