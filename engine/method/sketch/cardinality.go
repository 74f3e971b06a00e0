package sketch

import "math"

// harmonic estimates the size of a set from the sum over keys of
// (1+gamma)^-alpha: the harmonic mean of (1+gamma)^alpha times the constant
// gamma/((1+gamma) ln(1+gamma)), .7213 at gamma = 1, which makes it unbiased
// for large sets. The estimate as printed in Sketch-V, Algorithm 4, line 10,
// (1+gamma)^harmonicMean(alpha), is off by that factor and by Jensen's
// inequality.
func (g *Geometric) harmonic(sum float64, keys int) float64 {
	c := g.Gamma / ((1 + g.Gamma) * math.Log1p(g.Gamma))
	return c * float64(keys) / sum
}

// harmonicMean estimates the number of ids in cluster a, phantoms included. For
// large sets its relative standard error is sqrt((2+gamma) ln(1+gamma)/gamma -
// 1)/sqrt(keys): 1.04/sqrt(keys) at gamma = 1, 1/sqrt(keys) as gamma falls.
func (g *Geometric) harmonicMean(s *Sketches, a int) float64 {
	sum := 0.0
	for i := a; i < len(s.Heights); i += s.Clusters {
		sum += g.inverse[s.Heights[i]]
	}
	return g.harmonic(sum, s.Keys)
}

// maximumLikelihood estimates the number of ids in cluster a, phantoms
// included, from the exact distribution Pr[alpha <= t] = F(t)^N of the maxima, censored
// below floor (0 for none). The log likelihood sum_i ln(F(t_i)^N -
// F(t_i - 1)^N) is concave in N; its derivative is convex, so Newton steps from
// below rise to the root.
func (g *Geometric) maximumLikelihood(s *Sketches, a int, floor uint16) float64 {
	counts := make(map[uint16]float64, s.Keys)
	total := 0.0
	for i := a; i < len(s.Heights); i += s.Clusters {
		counts[s.Heights[i]]++
		total += g.arrival[s.Heights[i]]
	}
	type term struct{ count, log, step float64 }
	terms := make([]term, 0, len(counts))
	for t := 1; t < len(g.logCDF); t++ {
		if c := counts[uint16(t)]; c > 0 {
			terms = append(terms, term{c, g.logCDF[t], g.logCDF[t] - g.logBelow(uint16(t), floor)})
		}
	}
	n := float64(s.Keys) / total / 4
	for range 200 {
		d1, d2 := 0.0, 0.0
		for _, t := range terms {
			d1 += t.count * t.log
			if math.IsInf(t.step, 1) {
				continue
			}
			e := math.Expm1(n * t.step)
			if math.IsInf(e, 1) {
				continue
			}
			d1 += t.count * t.step / e
			d2 -= t.count * (t.step / e) * (t.step / e) * (e + 1)
		}
		if d2 == 0 {
			return 0 // every maximum lies at the floor: the likelihood has no interior maximum
		}
		next := n - d1/d2
		if next <= 0 {
			next = n / 4
		}
		if math.Abs(next-n) <= 1e-10*n {
			return next
		}
		n = next
	}
	return n
}

// logBelow is ln F(t-1), with F := 0 below the floor.
func (g *Geometric) logBelow(t, floor uint16) float64 {
	if t <= max(floor, 1) {
		return math.Inf(-1)
	}
	return g.logCDF[t-1]
}

// pairLikelihood estimates the size of the intersection of two clusters by
// maximum likelihood. na and nb are their sizes, phantoms included.
//
// With r = F(s-1)/F(s) and nu = na + nb - x for an intersection of x, the joint
// distribution of the two maxima s and t is
//
//	s < t: Pr_na[s] (F(t)^(nb-x) - F(t-1)^(nb-x)), and mirrored for s > t;
//	s = t: F(s)^nu ((1-r^na)(1-r^nb) + r^na r^nb (r^-x - 1)).
//
// Factors without x are left out. The maximum over (0, min(na, nb)) is found by
// golden section.
type pairLikelihood struct {
	na, nb float64
	terms  []pairTerm
}

type pairTerm struct {
	count float64
	kind  int8    // -1: s < t, 1: s > t, 0: equal
	log   float64 // ln F of the deciding height
	step  float64 // ln F(height) - ln F(height-1)
	apart float64 // equal heights: (1-r^na)(1-r^nb)
	join  float64 // equal heights: r^na r^nb
}

func (p *pairLikelihood) at(x float64) float64 {
	sum := 0.0
	for i := range p.terms {
		t := &p.terms[i]
		switch t.kind {
		case 0:
			v := t.apart
			if t.join > 0 {
				v += t.join * math.Expm1(x*t.step)
			}
			sum += t.count * (math.Log(v) - float64(x*t.log))
		case -1:
			n := p.nb - x
			sum += float64(t.count * (float64(n*t.log) + math.Log(-math.Expm1(-n*t.step))))
		default:
			n := p.na - x
			sum += float64(t.count * (float64(n*t.log) + math.Log(-math.Expm1(-n*t.step))))
		}
	}
	return sum
}

// load collects the terms of clusters a and b of the two parties of v.
func (p *pairLikelihood) load(v *View, a, b int, scratch []float64) {
	p.terms = p.terms[:0]
	g, x, y := v.Distribution, v.Sketches[0], v.Sketches[1]
	if top := g.max() + 1; top*top <= len(scratch) {
		counts := scratch[:top*top]
		clear(counts)
		for i := range x.Keys {
			counts[int(x.Heights[i*x.Clusters+a])*top+int(y.Heights[i*y.Clusters+b])]++
		}
		for s := 1; s < top; s++ {
			for t := 1; t < top; t++ {
				if c := counts[s*top+t]; c > 0 {
					p.add(v, uint16(s), uint16(t), c)
				}
			}
		}
		return
	}
	for i := range x.Keys {
		p.add(v, x.Heights[i*x.Clusters+a], y.Heights[i*y.Clusters+b], 1)
	}
}

func (p *pairLikelihood) add(v *View, s, t uint16, count float64) {
	top := max(s, t)
	term := pairTerm{count: count, log: v.Distribution.logCDF[top]}
	term.step = term.log - v.Distribution.logBelow(top, v.Floor)
	switch {
	case s < t:
		term.kind = -1
	case s > t:
		term.kind = 1
	default:
		ra, rb := math.Exp(-p.na*term.step), math.Exp(-p.nb*term.step)
		term.apart, term.join = (1-ra)*(1-rb), ra*rb
	}
	p.terms = append(p.terms, term)
}

// maximum returns the x in [0, min(na, nb)] of the largest likelihood.
func (p *pairLikelihood) maximum() float64 {
	ratio := (math.Sqrt(5) - 1) / 2
	lo, hi := 0.0, min(p.na, p.nb)
	x1, x2 := hi-ratio*(hi-lo), lo+ratio*(hi-lo)
	f1, f2 := p.at(x1), p.at(x2)
	for hi-lo > 1e-6*(p.na+p.nb) {
		if f1 < f2 {
			lo, x1, f1 = x1, x2, f2
			x2 = lo + ratio*(hi-lo)
			f2 = p.at(x2)
		} else {
			hi, x2, f2 = x2, x1, f1
			x1 = hi - ratio*(hi-lo)
			f1 = p.at(x1)
		}
	}
	return (lo + hi) / 2
}
