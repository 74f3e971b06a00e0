package flow

import (
	"context"
	"math"
	"slices"
)

// solvePlain solves a problem that worksOn, and reports false if another solver
// has to: the prices that it finds may not prove the answer in a total problem.
func (s *Solver) solvePlain(ctx context.Context, run Runner, p *Problem, res *Result) (bool, error) {
	k := p.k()
	most := p.Price() - p.reach()
	for j := range k {
		s.prices[j] = min(max(s.prices[j], -most), most)
	}
	for j := k; j < len(s.prices); j++ {
		s.prices[j] = 0
	}
	s.begin(Prices)
	window, err := s.approachPlain(ctx, run, p)
	if err != nil {
		return false, err
	}
	s.begin(Paths)
	x := &s.exchange
	if err := s.beginExchange(ctx, run, p, &s.ascent.seen, window); err != nil {
		return false, err
	}
	s.stats.Free = len(x.fresh)
	if err := x.solve(); err != nil {
		return false, err
	}
	s.stats.Paths, s.stats.Widenings = x.paths, x.widenings
	for j := range k {
		s.prices[j] = x.price(j)
		if p.Total && max(s.prices[j], -s.prices[j]) > most {
			s.prices = s.prices[:0]
			for range s.columns(p) {
				s.prices = append(s.prices, 0)
			}
			s.warm = false
			return false, nil
		}
	}
	s.warm = true
	res.Labels = append(res.Labels[:0], x.labels...)
	res.Prices = append(res.Prices[:0], s.prices[:k]...)
	s.gather(p)
	if len(s.ties) > 0 {
		if err := s.breakTies(ctx, p); err != nil {
			return false, err
		}
	}
	s.sizes(p, res)
	s.write(p, res)
	return true, nil
}

// approachPlain improves the starting prices on subsamples, smallest first, then
// on all points, and returns the window that the exact solver should begin with.
func (s *Solver) approachPlain(ctx context.Context, run Runner, p *Problem) (float64, error) {
	n, k := p.Points.N, p.k()
	t := s.tune()
	s.ascent.radius = 0
	if n*k <= t.allArcs {
		_, err := s.ascend(ctx, run, p, p.Points, p.Lo, p.Hi, math.Inf(1))
		return math.Inf(1), err
	}
	s.lo, s.hi = slices.Grow(s.lo[:0], k)[:k], slices.Grow(s.hi[:0], k)[:k]
	least := max(t.firstCluster*k, t.firstSample)
	size := n
	for size/sampleStep >= least {
		size /= sampleStep
	}
	for ; size*sampleStep <= n; size *= sampleStep {
		if err := s.draw(ctx, run, p, size); err != nil {
			return 0, err
		}
		s.scale(p, size)
		// The sizes of a sample are off by more than this anyway.
		enough := t.sampleRest * math.Sqrt(float64(size)*float64(k))
		if _, err := s.ascend(ctx, run, p, s.sample, s.lo, s.hi, enough); err != nil {
			return 0, err
		}
		s.stats.Samples++
	}
	// Go on while a pass costs less than the paths it is likely to save.
	d := p.Points.D
	enough := max(t.fullRest*float64(k), passTime(n, d, k)/(4*pathTime(n, d, k)))
	outside, err := s.ascend(ctx, run, p, p.Points, p.Lo, p.Hi, enough)
	if err != nil || outside == 0 {
		return 0, err
	}
	window := t.stepWindow * s.ascent.ahead(s.prices[:k])
	if room := memberBytes / (8 * float64(n) * float64(d)); room < 1 {
		window = min(window, s.ascent.quantile(room))
	}
	return window, nil
}

// memberBytes is about how much memory the members that the exact solver begins
// with take at most: their coordinates are copied and looked through again and
// again, and a search that needs more members asks for them.
const memberBytes = 32 << 20

// sampleStep is the ratio between the sizes of successive subsamples of the ascent.
const sampleStep = 4

// passTime and pathTime are rough times of a pass and of a shortest path, in
// nanoseconds of a recent core. A path searches a part of the clusters, moves some
// points and scans some members.
func passTime(n, d, k int) float64 { return float64(n) * (1 + 0.02*float64(k*(d+4))) }

func pathTime(n, d, k int) float64 {
	return 300 + 0.6*float64(k*k) + 4*float64(k*(d+2)) + float64(n)*float64(d)/float64(40*k)
}

// gather makes levels[0] of the tied points, whose clusters the hash decides.
func (s *Solver) gather(p *Problem) {
	x, r := &s.exchange, &s.levels[0]
	k, columns := p.k(), s.columns(p)
	r.resize(columns)
	r.filler, r.widen = 0, nil
	if p.mayLeave() {
		r.filler = p.Price()
	}
	for j := range columns {
		r.room[j], r.potential[j] = 1, -s.prices[j]
		if j < k {
			r.lo[j], r.hi[j], r.size[j] = x.lo[j], x.hi[j], x.size[j]
		} else {
			r.lo[j], r.hi[j], r.size[j] = 0, int64(p.Points.N), 0
		}
	}
	r.potential[columns] = 0
	s.free = s.free[:0]
	s.ties = x.tied(s.ties[:0])
	slices.SortFunc(s.ties, func(a, b tie) int {
		if a.point != b.point {
			return int(a.point - b.point)
		}
		return int(a.other - b.other)
	})
	for at, t := range s.ties {
		if at == 0 || s.ties[at-1].point != t.point {
			if at > 0 {
				r.close(absent)
			}
			s.free = append(s.free, t.point)
			r.arcs = append(r.arcs, arc{-s.prices[t.in], t.in, 1})
		}
		r.arcs = append(r.arcs, arc{-s.prices[t.other], t.other, 0})
	}
	if len(s.ties) > 0 {
		r.close(absent)
	}
}
