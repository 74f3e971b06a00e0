package lloyd

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/kernels"
)

// model is a role's view of the public centroids: all roles that see the releases compute the same.
type model struct {
	*public
	plan    *Plan
	limit   float64  // of a coordinate that enters a distance
	running *running // of rounds on batches
}

// public is what all roles make of a release. The parties of a process may share one, which the first that asks
// updates.
type public struct {
	centroids []float64 // k x d, after post-processing
	previous  []float64
	grid      []float32 // what enters the distances
	centres   *kernels.Centroids
	sums      []float64
	counts    []float64
	wcss      float64 // of the last round, without the squares of the records; NaN before
	updated   bool    // the centroids are as update left them
	rests     bool    // the run has come to rest, where no search tells
}

func newModel(p *Plan) *model { return &model{public: newPublic(p.k, p.d), plan: p, limit: p.limit()} }

func newPublic(k, d int) *public {
	kd := k * d
	reals := make([]float64, 3*kd+k)
	return &public{centroids: reals[:kd:kd], previous: reals[kd : 2*kd : 2*kd], sums: reals[2*kd : 3*kd : 3*kd],
		counts: reals[3*kd:], grid: make([]float32, kd), centres: kernels.NewCentroids(k, d), wcss: math.NaN()}
}

// limit bounds the coordinates that enter a distance: beyond 2^(24-f) a float32
// leaves the grid; constrained assignment works inside the box.
func (p *Plan) limit() float64 {
	if p.job.Method.Constrained() {
		return boxBound
	}
	return math.Ldexp(1, 24-p.fraction)
}

// first draws the first centroids from public randomness, or returns the given ones.
func (p *Plan) first(party *protocol.Party) []float64 {
	if p.job.Start != nil {
		return p.job.Start
	}
	return p.drawFirst(party.Public.Stream(everyClient, 0, "start"))
}

// drawFirst draws the first centroids.
func (p *Plan) drawFirst(st *privacy.Stream) []float64 {
	switch {
	case p.job.Init == step.Random:
		return step.RandomCentres(p.k, p.d, st)
	}
	if p.job.Calibration == privacy.Published {
		return step.HalvedPacking(p.k, p.d, st)
	}
	return step.SpherePacking(p.k, p.d, st)
}

// setGrid truncates the centroids toward zero onto the grid, as they enter
// distances.
func (m *model) setGrid() {
	m.updated = false
	for a := range m.plan.k {
		m.setGridRow(a)
	}
	m.centres.Set(m.grid)
}

// setGridRow is setGrid for one centroid, not yet as kernels take it.
func (m *model) setGridRow(a int) {
	d, scale := m.plan.d, m.plan.scale
	row, grid, stays := m.centroids[a*d:(a+1)*d], m.grid[a*d:(a+1)*d], m.plan.job.Method.Constrained()
	down := 1 / scale // both are powers of two
	for h, x := range row {
		if !(x > -m.limit && x < m.limit) {
			x = min(max(x, -m.limit), m.limit)
		}
		x = math.Trunc(x*scale) * down
		if x == 0 {
			x = 0 // not -0
		}
		if grid[h] = float32(x); !stays {
			row[h] = x
		}
	}
}

// update turns the sum that a round released into the next centroids, row by row, so that each is in the cache. A
// centroid stays whose sum and count are those of the round before.
func (m *model) update(t int, words []int64) {
	p := m.plan
	// After a drop-out the sum of means over m is short of an average.
	up := float64(p.m) / float64(p.present(t)) / p.scale
	in := p.domain(t)
	lasts := m.updated && m.running == nil && p.job.Method != Relative && p.job.Release != Centroid
	for a := range p.k {
		row, released := m.centroids[a*p.d:(a+1)*p.d], words[a*p.d:(a+1)*p.d]
		copy(m.previous[a*p.d:], row)
		if lasts && m.repeats(a, released, words[p.k*p.d+a], in) {
			continue
		}
		if p.job.Release == Centroid {
			for h, x := range released {
				row[h] = float64(x) * up
			}
		} else {
			m.divide(t, a, row, released, words[p.k*p.d+a], in)
		}
		p.job.Post.ApplyAll(row, -boxBound, boxBound)
		m.setGridRow(a)
	}
	m.centres.Set(m.grid)
	m.updated = true
}

// repeats tells whether the sums and the count of centroid a are those that it was made of, in the same domain: as
// post-processing left them, which changes nothing that it has brought into the domain.
func (m *model) repeats(a int, words []int64, count int64, in domain) bool {
	if m.count(count, in) != m.counts[a] {
		return false
	}
	unit, sums := m.plan.parts[0].unit, m.sums[a*m.plan.d:(a+1)*m.plan.d]
	for h, x := range words {
		if float64(x)*unit != sums[h] {
			return false
		}
	}
	return true
}

// count is the count of a cluster, brought into the domain.
func (m *model) count(count int64, in domain) float64 {
	return m.plan.job.PostCount.Apply(float64(count)*m.plan.parts[1].unit, in.least, in.most)
}

// domain bounds the count of a cluster and a coordinate's sum over one record.
type domain struct{ least, most, reach float64 }

// domain is that of round t.
func (p *Plan) domain(t int) domain {
	in := domain{0, float64(p.n), boxBound}
	switch {
	case !p.job.Method.Constrained():
	case p.job.Calibration == privacy.Published:
		// The released code treats the sums and counts of all clients with the
		// sizes that a cluster has at one.
		in.least, in.most = float64(p.lo), float64(p.hi)
	default:
		in.least, in.most = float64(p.together(0)), float64(p.together(1))
	}
	if p.job.Method == Relative {
		in.reach = min(p.radiusOf(t), 2*boxBound)
	}
	return in
}

// divide computes centroid a, row, from noisy sums and a count.
func (m *model) divide(t, a int, row []float64, words []int64, count int64, in domain) {
	p := m.plan
	j := p.job
	sums := m.sums[a*p.d : (a+1)*p.d]
	for h, x := range words {
		sums[h] = float64(x) * p.parts[0].unit
	}
	j.PostSum.ApplyAll(sums, -in.reach*in.most, in.reach*in.most)
	m.counts[a] = m.count(count, in)
	n := m.counts[a]
	if m.running != nil {
		sums, n = m.running.add(a, sums, n)
	}
	if j.Method == Relative {
		p.move(row, sums, n, p.radiusOf(t))
	} else {
		p.mean(row, sums, n)
	}
}

// mean sets row to sums/count, or to the direction of sums for the metric Cosine.
// Without noise an empty cluster keeps its centroid. The papers' calibrations divide by whatever the noisy count is, as
// the released code does, also without noise (Published), where an empty cluster
// goes to the origin; Proven takes it to be at least one record.
func (p *Plan) mean(row, sums []float64, count float64) {
	switch {
	case !p.Private && p.job.Calibration != privacy.Published:
		if count == 0 {
			return
		}
	case p.job.Calibration == privacy.Proven:
		count = max(count, 1)
	default:
		count += 1e-6
	}
	if p.job.Metric == Cosine {
		if l := math.Sqrt(elementary.SquaredLength(sums)); l > 0 {
			count = l
		}
	}
	for h, x := range sums {
		row[h] = x / count
	}
}

// move adds sums/count to row, cut to length r.
func (p *Plan) move(row, sums []float64, count, r float64) {
	if p.job.Calibration == privacy.Proven {
		count = max(count, 1)
	} else {
		count += 1e-9
	}
	length := 0.0
	for h, x := range sums {
		sums[h] = x / count
		length += float64(sums[h] * sums[h])
	}
	cut := 1.0
	if length > r*r {
		cut = r / math.Sqrt(length)
	}
	for h, x := range sums {
		row[h] += float64(x * cut)
	}
}

// withoutSquares is the sum of squared distances of the records to the centroids before the last
// update, without the records' squares, which do not change: -2 c.x + |c|^2 over each cluster.
func (m *model) withoutSquares() float64 {
	sum, d := 0.0, m.plan.d
	for a, n := range m.counts {
		sums := m.sums[a*d : (a+1)*d]
		for h, x := range m.previous[a*d : (a+1)*d] {
			sum += float64(x * (x*n - 2*sums[h]))
		}
	}
	return sum
}

// still tells whether a run without noise has come to rest: no centroid moved
// further than the tolerance in the last round, or the WCSS hardly changed.
func (m *model) still() bool {
	if m.plan.Private {
		return false
	}
	if m.plan.job.WCSSChange > 0 {
		before := m.wcss
		if m.wcss = m.withoutSquares(); math.Abs(m.wcss-before) < m.plan.job.WCSSChange {
			return true
		}
	}
	most := 0.0
	for a := range m.plan.k {
		from, to := a*m.plan.d, (a+1)*m.plan.d
		most = max(most, elementary.SquaredDistance(m.centroids[from:to], m.previous[from:]))
	}
	return math.Sqrt(most) <= m.plan.job.Tolerance
}
