package lloyd

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/kernels"
)

// Work is measured in products of points, clusters and coordinates.
const (
	// inlineWork is about what a core does while another one wakes up.
	inlineWork = 1 << 18
	// itemWork is the share of a client's points that a worker takes at a time.
	itemWork = 1 << 21
	// leastItem is the number of points of an item at least where d >= step.ChainDims: a
	// pass over the centroids serves 48 points, and centroids that have left the first
	// cache come back for each.
	leastItem = 288
	// relativeWork is what the cut at the radius and the separate sum add to a
	// point.
	relativeWork = 8
)

// nearest assigns each record to its nearest centroid, in one pass that also
// sums. Sums are integers, so neither the cut into items nor the order in which
// workers add matters, and a round may go on from the sums of the one before.
type nearest struct {
	c       *client
	per     int                    // work of a point
	inline  int                    // work that wakes no worker
	most    int                    // points of an item at most
	step    int                    // points of an item
	partial []*kernels.Accumulator // by worker, the first of which has base; nil where one worker does all
	abreast bool                   // of the other clients
	small   bool                   // all clients together are small: no workers

	deltas *step.Deltas      // nil when each round begins anew
	bounds *step.PointBounds // the same, for records of many dimensions
	// base holds the sums of the records that are not far: for Relative, which adds
	// the far ones and makes all relative, apart from those of the client.
	base *kernels.Accumulator

	// The squared distance beyond which a point is far: of Relative the squared
	// radius of the round, a little shortened, with its exact square in grid units;
	// else infinite.
	near  float32
	reach int64
	far   []farPoints // by worker
	dist  []float32   // of Relative where the assignment gives no distance of its own

	round  int
	looked atomic.Int64 // at so many points
	pass   func(worker, index int)
	alone  func(context.Context) error
}

func newNearest(c *client) *nearest {
	a := &nearest{c: c, near: float32(math.Inf(1)), base: c.acc}
	n, workers := c.points.N, c.party.Pool().Workers()
	a.per, a.inline = c.perPoint(), inline()
	if c.job.Method == Relative {
		c.labels = step.NewLabels(n)
		a.base = kernels.NewAccumulator(c.k, c.d, c.fraction)
	}
	if c.job.Method == Relative && c.d >= step.ChainDims {
		a.dist = make([]float32, n)
	}
	shape := step.DeltaShape{Records: c.trained, Rounds: c.rounds, Radius: c.job.Method == Relative, Workers: workers}
	if c.batch > 0 {
		shape.Rounds = c.starts // one goes over all records
	}
	labels := c.labels
	if labels == nil && c.seeder != nil && c.starts == 1 && c.exchanges == 0 {
		labels = c.seeder.own.Yield() // it is asked again only if a cluster is empty
	}
	if a.deltas = step.NewDeltas(c.points, c.centres, c.grid, labels, shape); a.deltas != nil {
		c.labels = a.deltas.Labels()
	}
	a.small = c.small(workers)
	a.abreast = n*a.per <= 8*itemWork && (c.m%workers == 0 || c.m >= 4*workers)
	helpers := 1
	if !a.small && !a.abreast {
		helpers = workers
		fit := max(engine.ShardBytes/(4*c.d), engine.MinShardPoints)
		a.most = max(min(itemWork/a.per, fit), a.grain())
		if c.d >= step.ChainDims {
			a.most = max(a.most, leastItem)
		}
		a.partial = append(a.partial, a.base)
		for range workers - 1 {
			a.partial = append(a.partial, kernels.NewAccumulator(c.k, c.d, c.fraction))
		}
	}
	if c.job.Method == Relative {
		for range helpers {
			a.far = append(a.far, newFarPoints(c.Plan))
		}
	}
	if !a.small {
		a.pass = func(worker, index int) {
			lo := index * a.step
			a.looked.Add(int64(a.points(worker, lo, min(lo+a.step, a.c.points.N), a.partial[worker])))
		}
		a.alone = func(context.Context) error {
			a.all()
			return nil
		}
		c.party.Pool().Wake()
	}
	c.centres.PrepareFilter(&c.points)
	if a.bounds = step.NewPointBounds(c.points, c.centres, c.grid, shape, c.each); a.bounds != nil {
		c.labels = a.bounds.Labels()
	}
	return a
}

// perPoint is the work of a point.
func (p *Plan) perPoint() int {
	if p.job.Method == Relative {
		return p.k*p.d + relativeWork
	}
	return p.k * p.d
}

// inline is the work that wakes no worker.
func inline() int {
	if kernels.ISA() == "generic" {
		return inlineWork / 16 // about the factor between plain Go and vectors
	}
	return inlineWork
}

// small tells whether rounds to the nearest centroid are so short that one of so many workers does
// those of all clients.
func (p *Plan) small(workers int) bool {
	work := p.trained * p.perPoint()
	return work <= inline() || workers == 1 && work <= itemWork
}

func (a *nearest) assign(ctx context.Context, t int) error {
	a.round = t
	if a.c.job.Method == Relative {
		a.setRadius(t)
	}
	left := min(a.deltas.Begin(t, a.near), a.bounds.Begin())
	var err error
	switch {
	case a.small || left <= a.inline/(a.per*a.c.m):
		a.all()
	case a.abreast:
		err = a.c.party.Abreast(ctx, a.alone)
	default:
		err = a.together(ctx)
	}
	a.deltas.End()
	a.bounds.End()
	return err
}

// carries tells whether the round goes on from the sums of the one before.
func (a *nearest) carries() bool { return a.deltas.Carries() || a.bounds.Carries() }

// together assigns the points with all workers.
func (a *nearest) together(ctx context.Context) error {
	span := a.c.party.Begin(engine.PhaseAssign, a.round)
	for i, p := range a.partial {
		if i > 0 || !a.carries() {
			p.Reset()
		}
	}
	for w := range a.far {
		a.far[w].acc.Reset()
	}
	a.looked.Store(0)
	err := a.c.party.Pool().Run(ctx, a.cut(a.c.points.N), a.pass)
	for _, p := range a.partial[1:] {
		a.base.Merge(p)
	}
	a.center(a.far)
	span.Settled = a.c.points.N - int(a.looked.Load())
	a.c.party.End(span)
	return err
}

// all assigns all points with one worker.
func (a *nearest) all() {
	span := a.c.party.Begin(engine.PhaseAssign, a.round)
	if !a.carries() {
		a.base.Reset()
	}
	var far []farPoints
	if a.far != nil {
		far = a.far[:1]
		far[0].acc.Reset()
	}
	span.Settled = a.c.points.N - a.points(0, 0, a.c.points.N, a.base)
	a.center(far)
	a.c.party.End(span)
}

// cut sets the step for n points and returns the number of items: of at most
// a.most points, of equal size, as many for each worker.
func (a *nearest) cut(n int) int {
	workers := len(a.partial)
	items := (n + a.most*workers - 1) / (a.most * workers) * workers
	a.step = ((n+items-1)/items + a.grain() - 1) / a.grain() * a.grain()
	return (n + a.step - 1) / a.step
}

// grain is the number of points that no cut divides.
func (a *nearest) grain() int {
	if a.deltas != nil {
		return kernels.BoundPoints
	}
	return kernels.Lanes
}

// points assigns the points [lo, hi) and adds them to acc; if the
// round carries on from the one before, it adds what has changed. Far points are
// summed apart. It returns the number of points looked at.
func (a *nearest) points(worker int, lo, hi int, acc *kernels.Accumulator) int {
	c := a.c
	if a.bounds.Carries() {
		return a.bounds.Reassign(worker, lo, hi, acc)
	}
	if !a.deltas.Carries() {
		a.anew(worker, lo, hi, acc)
		return hi - lo
	}
	looked := 0
	for lo < hi {
		from, to := a.deltas.Unsettled(lo, hi)
		if from < to {
			p, labels := c.points.Slice(from, to), c.labels[from:to]
			ch := kernels.Reassign(p, c.centres, a.near, labels, acc, a.deltas.Bounds(worker, to-from))
			a.deltas.Note(worker, from, to, ch.Moved)
			if ch.Cut && a.c.job.Beyond == Clip {
				a.far[worker].find(p, labels, uint16(a.c.k), a)
			}
		}
		looked += to - from
		lo = to
	}
	return looked
}

// anew assigns and sums points without regard to the round before.
func (a *nearest) anew(worker int, lo, hi int, acc *kernels.Accumulator) {
	c := a.c
	p := c.points.Slice(lo, hi)
	switch {
	case a.c.job.Method != Relative:
		var labels []uint16
		if a.deltas != nil || a.bounds != nil {
			labels = c.labels[lo:hi]
		}
		kernels.AssignAccumulate(p, a.c.centres, labels, acc)
	case a.c.d < step.ChainDims:
		// Assign's own distance has the small relative error that the radius
		// allows for, so one pass finds both.
		labels := c.labels[lo:hi]
		before := total(acc.Counts)
		kernels.AssignAccumulateRadius(p, a.c.centres, a.near, labels, acc)
		if far := len(labels) - (total(acc.Counts) - before); far > 0 && a.c.job.Beyond == Clip {
			a.far[worker].find(p, labels, uint16(a.c.k), a)
		}
	default:
		labels, dist := c.labels[lo:hi], a.dist[lo:hi]
		kernels.Assign(p, a.c.centres, labels, nil)
		kernels.Distances(p, a.c.centres, labels, dist)
		for i, x := range dist {
			if x > a.near {
				if a.c.job.Beyond == Clip {
					a.far[worker].clip(p, i, int(labels[i]), a)
				}
				labels[i] = uint16(a.c.k)
			}
		}
		kernels.Accumulate(p, labels, acc)
	}
}

func total(counts []int64) int {
	n := int64(0)
	for _, x := range counts {
		n += x
	}
	return int(n)
}

// center sets, for Relative, the client's sums to those of all records relative
// to the centroids.
func (a *nearest) center(far []farPoints) {
	c := a.c
	if c.job.Method != Relative {
		return
	}
	copy(c.acc.Sums, a.base.Sums)
	copy(c.acc.Counts, a.base.Counts)
	for w := range far {
		c.acc.Merge(far[w].acc)
	}
	for j, count := range c.acc.Counts {
		for h, x := range a.c.centres.Row(j) {
			c.acc.Sums[j*a.c.d+h] -= count * c.units(x)
		}
	}
}

// setRadius prepares round t: records that are not surely within R_t are measured in
// integers.
func (a *nearest) setRadius(t int) {
	a.near, a.reach = step.NearSquared(a.c.radiusOf(t), a.c.d), step.Reach(a.c.radiusOf(t), a.c.scale)
}

// farPoints is one worker's memory for the records beyond the radius.
type farPoints struct {
	acc    *kernels.Accumulator // their clipped sums
	points *kernels.Panels
	which  []int32 // far records that wait
	labels []uint16
	offset []int64
}

// farBatch is the number of far records that are assigned at a time.
const farBatch = 64

func newFarPoints(s *Plan) farPoints {
	return farPoints{acc: kernels.NewAccumulator(s.k, s.d, s.fraction), points: kernels.NewPanels(farBatch, s.d),
		which: make([]int32, 0, farBatch), labels: make([]uint16, farBatch), offset: make([]int64, s.d)}
}

// find clips the points whose label is none. Assigning them again gives the
// cluster that the cut took away.
func (f *farPoints) find(p kernels.Panels, labels []uint16, none uint16, a *nearest) {
	for i, l := range labels {
		if l != none {
			continue
		}
		if f.which = append(f.which, int32(i)); len(f.which) == farBatch {
			f.flush(&p, a)
		}
	}
	f.flush(&p, a)
}

func (f *farPoints) flush(p *kernels.Panels, a *nearest) {
	view, labels := kernels.Gather(f.points, p, f.which), f.labels[:len(f.which)]
	kernels.Assign(view, a.c.centres, labels, nil)
	for i, l := range labels {
		f.clip(view, i, int(l), a)
	}
	f.which = f.which[:0]
}

// clip adds point i of p to cluster j with its offset from the centroid cut to
// the length R_t. The centroid is added too, as center will subtract it.
func (f *farPoints) clip(p kernels.Panels, i, j int, a *nearest) {
	d := p.D
	base := i/kernels.Lanes*kernels.Lanes*d + i%kernels.Lanes
	centre := a.c.centres.Row(j)
	length := int64(0)
	for h, x := range centre {
		t := int64(float64(p.Data[base+h*kernels.Lanes])*a.c.scale) - int64(float64(x)*a.c.scale)
		f.offset[h] = t
		length += t * t
	}
	sums := f.acc.Sums[j*d : (j+1)*d]
	step.Clip(f.offset, length, a.reach)
	for h, x := range centre {
		sums[h] += f.offset[h] + int64(float64(x)*a.c.scale)
	}
	f.acc.Counts[j]++
}
