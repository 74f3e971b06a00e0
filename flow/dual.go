package flow

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// approach brings the prices close to the optimum on subsamples, smallest first,
// then on all points, leaves in ascent.seen what a pass over all points sees, and
// returns the window that the completion should begin with. Newton's steps raise the
// dual. Where they stop paying, a subsample is completed, and without boxes around
// the points all larger ones are, too. So is the smallest one of a problem that is not plain. A
// plain problem on a line needs none of these.
func (s *Solver) approach(ctx context.Context, run Runner, p *Problem, plain bool) (float64, error) {
	n, k, t := p.Points.N, p.k(), s.tune()
	s.ascent.together, s.ascent.plain = s.ordered || !plain, plain
	s.ascent.radius, s.ascent.scale, s.ascent.refills, s.stalled = 0, 1/s.unit, false, false
	s.ascent.resize(k)
	if n == 0 {
		return 0, s.evaluate(ctx, run, p, s.prices[:k], &s.ascent.seen, 0, true)
	}
	if plain && p.Points.D == 1 {
		s.onLine(p)
		_, err := s.ascend(ctx, run, p, math.Inf(1))
		return 0, err
	}
	least := max(t.firstCluster*k, t.firstSample)
	if s.warm && !plain {
		window, err := s.lookExactly(ctx, run, p)
		outside := s.ascent.gradient(s.prices[:k], &s.ascent.seen, s.ascent.excess)
		// A sample's prices would leave as many.
		if total := float64(p.total()); err != nil || 2*outside <= math.Sqrt(total*float64(k*(t.sampleRatio-1))) {
			return window, err
		}
	}
	if s.warm {
		least *= 2 // prices of the problem before are about as good as those of a smaller sample
	}
	least = min(n, least)
	size := n
	for size/t.sampleRatio >= least {
		size /= t.sampleRatio
	}
	first := !plain
	for ; size*t.sampleRatio <= n; size *= t.sampleRatio {
		if err := s.improve(ctx, run, p, size, first || s.stalled); err != nil {
			return 0, err
		}
		first = false
	}
	if s.stalled || first {
		return s.lookExactly(ctx, run, p)
	}
	// Go on while a pass costs less than the paths it is likely to save.
	enough := max(t.fullRest*float64(k), passWorth(n, p.Points.D, k))
	outside, err := s.ascend(ctx, run, p, enough)
	if err != nil || outside == 0 {
		return 0, err
	}
	clear(s.ascent.vacant)
	s.ascent.newton(s.prices[:k])
	window := t.stepWindow * s.ascent.largest()
	if n >= wellSampled*k {
		window *= 0.8 // what paths still move is less of the step
	}
	if math.IsNaN(window) { // no step to go by
		window = s.firstWindow(n, k)
	}
	if s.ordered || !plain {
		// A step may be short because the one before went too far.
		window = max(min(window, s.firstWindow(n, k)), s.ascent.quantile(min(0.6, 8*outside/float64(n))))
	}
	if room := memberBytes / (8 * float64(n) * float64(p.Points.D)); room < 1 {
		window = min(window, s.ascent.quantile(room))
	}
	return window, nil
}

// onLine sets the prices of a plain problem on a line.
func (s *Solver) onLine(p *Problem) {
	scale := math.Ldexp(1, p.FractionBits)
	x, clusters := make([]int64, p.Points.N), make([]int64, p.k())
	for i := range x {
		x[i] = int64(float64(p.Points.Data[at(int32(i), 1)]) * scale)
	}
	for j, y := range p.Centroids {
		clusters[j] = int64(float64(y) * scale)
	}
	s.line.Solve(x, p.Weights, clusters, p.Lo, p.Hi, s.prices[:p.k()])
}

// improve brings the prices close to the optimum of a subsample of the given size. Where
// Newton's steps stop paying before, or at once, or need more than single precision, it completes it.
func (s *Solver) improve(ctx context.Context, run Runner, whole *Problem, size int, complete bool) error {
	if err := s.draw(ctx, run, whole, size); err != nil {
		return err
	}
	p := &s.sample
	// The sizes of a sample are off by more than this anyway.
	enough := s.tune().sampleRest * math.Sqrt(float64(size)*float64(p.k()))
	if !complete {
		if s.ordered {
			s.ascent.radius = 0
		}
		outside, err := s.ascend(ctx, run, p, enough)
		if a := &s.ascent; err == nil && 2*outside > float64(p.total()) && !a.together && !a.refills {
			a.refills, a.radius = true, 0
			outside, err = s.ascend(ctx, run, p, enough)
		}
		most := 6 * enough
		if !s.ordered && s.ascent.radius < singles {
			most = enough // the filter serves where steps go all the way
		}
		if err != nil || outside <= most && (s.ordered || s.ascent.radius >= filterSingles) {
			return err
		}
		s.stalled = !s.ordered // what the completion ends at is close enough for the next sample's steps
	}
	window, err := s.lookExactly(ctx, run, p)
	if err == nil {
		err = s.members.begin(ctx, run, s, p, &s.ascent.seen, window)
	}
	if err == nil {
		err = s.complete(ctx, int64(enough))
	}
	clear(s.prices[p.k():])
	return err
}

// wellSampled is the number of points of a cluster from which steps of prices are nearly all that is left to do.
const wellSampled = 1000

// lookExactly leaves in ascent.seen what an exact pass at s.prices sees, and returns a window for its gaps.
func (s *Solver) lookExactly(ctx context.Context, run Runner, p *Problem) (float64, error) {
	prices := s.prices[:p.k()]
	s.setRanges(p)
	s.ascent.level(p, prices)
	err := s.evaluate(ctx, run, p, prices, &s.ascent.seen, 0, true)
	return s.firstWindow(p.Points.N, p.k()), err
}

// firstWindow chooses a window for the gaps of ascent.seen that leaves about as many
// points as a subsample gets wrong, by some of the gaps.
func (s *Solver) firstWindow(n, k int) float64 {
	if k == 1 {
		return math.Inf(1)
	}
	share := min(0.6, s.tune().freeShare*2*math.Sqrt(float64(k)/float64(n)))
	return s.ascent.quantile(share)
}

// memberBytes is about how much memory the members that the completion begins with
// take at most: their coordinates are copied and looked through again and again, and
// a search that needs more members asks for them.
const memberBytes = 64 << 20

// passTime and pathTime are rough times of a pass and of a shortest path, in
// nanoseconds of a recent core. A path searches a part of the clusters, moves some
// points and scans some members.
func passTime(n, d, k int) float64 { return float64(n) * (1 + 0.02*float64(k*(d+4))) }

func pathTime(n, d, k int) float64 {
	return 300 + 0.6*float64(k*k) + 4*float64(k*(d+2)) + float64(n)*float64(d)/float64(40*k)
}

// passWorth is how many units outside the bounds a pass has to bring back to be worth its time.
func passWorth(n, d, k int) float64 { return passTime(n, d, k) / (4 * pathTime(n, d, k)) }

// draw fills the sample with one point out of each of size equal runs of points.
func (s *Solver) draw(ctx context.Context, run Runner, p *Problem, size int) error {
	d := p.Points.D
	points := s.sample.Points
	blocks := (size + kernels.Lanes - 1) / kernels.Lanes
	if cap(points.Data) < blocks*d*kernels.Lanes {
		points = *kernels.NewPanels(size, d)
	}
	points.N, points.D, points.Data = size, d, points.Data[:blocks*d*kernels.Lanes]
	lo, hi, weights := s.sample.Lo, s.sample.Hi, s.sample.Weights[:0]
	s.sample = *p
	s.sample.Points, s.sample.Lo, s.sample.Hi = points, lo, hi
	if p.Weights != nil {
		s.sample.Weights = slices.Grow(weights, size)[:size]
	}
	s.pass.p = p
	parts := (size + drawPoints - 1) / drawPoints
	if err := crewOf(run, parts > 1).Run(ctx, parts, s.works.draw); err != nil {
		return err
	}
	s.scale(p)
	if s.ordered {
		s.order.part.Set(points, leafPoints)
	}
	return nil
}

// drawPoints is the number of points that one call of pick draws.
const drawPoints = 1024

// pick draws one part of the sample.
func (s *Solver) pick(_, index int) {
	p, size := s.pass.p, s.sample.Points.N
	n, d, whole, sample := p.Points.N, p.Points.D, p.Points.Data, s.sample.Points.Data
	first := index * drawPoints
	each, more := n/size, n%size
	hi, rest := first*n/size, first*n%size // a point of the sample is drawn from [lo, hi)
	for q := first; q < min(size, first+drawPoints); q++ {
		lo := hi
		hi, rest = hi+each, rest+more
		if rest >= size {
			hi, rest = hi+1, rest-size
		}
		mixed := uint64(q+1) * 0x9e3779b97f4a7c15
		mixed = (mixed ^ mixed>>32) * 0xd6e8feb86659fd93
		i := lo + int((mixed>>32)*uint64(hi-lo)>>32)
		from, to := at(int32(i), d), at(int32(q), d)
		for range d {
			sample[to] = whole[from]
			from += kernels.Lanes
			to += kernels.Lanes
		}
		if p.Weights != nil {
			s.sample.Weights[q] = p.Weights[i]
		}
	}
}

// scale sets the bounds of the sample.
func (s *Solver) scale(p *Problem) {
	k := p.k()
	q := &s.sample
	q.Lo, q.Hi = sized(q.Lo, k), sized(q.Hi, k)
	n, size := p.total(), q.total()
	ratio := float64(size) / float64(n)
	var sumLo, sumHi int64
	for j := range p.Lo {
		q.Lo[j] = int(math.Ceil(float64(min(int64(p.Lo[j]), n)) * ratio))
		q.Hi[j] = int(math.Floor(float64(min(int64(p.Hi[j]), n)) * ratio))
		q.Lo[j] = min(q.Lo[j], q.Hi[j])
		sumLo += int64(q.Lo[j])
		sumHi += int64(q.Hi[j])
	}
	if s.outside >= 0 || p.Penalty != nil {
		return
	}
	for j := 0; sumHi < size; j = (j + 1) % k {
		if q.Hi[j] < p.Hi[j] {
			q.Hi[j]++
			sumHi++
		}
	}
	for j := 0; sumLo > size*int64(p.exclusivity()); j = (j + 1) % k {
		if q.Lo[j] > 0 {
			q.Lo[j]--
			sumLo--
		}
	}
}
