package horizontal

import (
	"context"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels"
)

// assigner fills the accumulators of the present clients with the sums and
// counts of their clusters for round t.
type assigner interface {
	assign(ctx context.Context, t int) error
}

func newAssigner(s *Session) assigner {
	switch {
	case s.job.NonExclusive:
		return newNonExclusive(s)
	case s.job.Algorithm.Constrained():
		return newConstrained(s)
	}
	return newNearest(s)
}

// Work is measured in products of points, clusters and coordinates.
const (
	// inlineWork is about what a core does while another one wakes up.
	inlineWork = 1 << 19
	// itemWork is the share of a client's points that a worker takes at a time.
	itemWork = 1 << 21
)

// nearest assigns each record to its nearest centroid, in one pass that also
// sums. Sums are integers, so neither the cut into items nor the order in which
// workers add matters.
type nearest struct {
	s       *Session
	items   [][2]int               // runs of points of the client at hand
	step    int                    // points of an item
	partial []*kernels.Accumulator // by worker; nil while every client is small
	whole   bool                   // clients are small: a worker takes whole ones
	small   bool                   // all clients together are small: no workers

	client     *client
	round      int
	pass, each func(worker, index int)
}

func newNearest(s *Session) *nearest {
	a := &nearest{s: s}
	largest := 0
	for _, c := range s.clients {
		largest = max(largest, c.points.N)
	}
	a.small = s.n*s.k*s.d <= inlineWork
	a.whole = largest*s.k*s.d <= itemWork
	if !a.whole {
		fit := engine.ShardBytes / (4 * s.d)
		a.step = max(min(itemWork/(s.k*s.d), fit)/kernels.Lanes, 1) * kernels.Lanes
		for range s.rt.Pool().Workers() {
			a.partial = append(a.partial, kernels.NewAccumulator(s.k, s.d, s.fraction))
		}
	}
	a.pass = func(worker, index int) {
		lo := index * a.step
		a.points(a.client, lo, min(lo+a.step, a.client.points.N), a.partial[worker])
	}
	a.each = func(_, index int) { a.one(a.s.clients[index]) }
	return a
}

func (a *nearest) assign(ctx context.Context, t int) error {
	a.round = t
	if a.s.job.Algorithm == Relative {
		a.s.setRadius(t)
	}
	switch {
	case a.small:
		for _, c := range a.s.clients {
			a.one(c)
		}
		return nil
	case a.whole:
		return a.s.rt.Pool().Run(ctx, len(a.s.clients), a.each)
	}
	for _, c := range a.s.clients {
		if c.gone {
			continue
		}
		span := a.s.rt.Begin(engine.PhaseAssign, t, c.index)
		for _, p := range a.partial {
			p.Reset()
		}
		a.client = c
		err := a.s.rt.Pool().Run(ctx, (c.points.N+a.step-1)/a.step, a.pass)
		c.acc.Reset()
		for _, p := range a.partial {
			c.acc.Merge(p)
		}
		a.s.rt.End(span)
		if err != nil {
			return err
		}
	}
	return nil
}

// one assigns all points of a client.
func (a *nearest) one(c *client) {
	if c.gone {
		return
	}
	span := a.s.rt.Begin(engine.PhaseAssign, a.round, c.index)
	c.acc.Reset()
	a.points(c, 0, c.points.N, c.acc)
	a.s.rt.End(span)
}

// points assigns and sums the points [lo, hi) of a client.
func (a *nearest) points(c *client, lo, hi int, acc *kernels.Accumulator) {
	p := c.points.Slice(lo, hi)
	if a.s.job.Algorithm != Relative {
		kernels.AssignAccumulate(p, a.s.centres, nil, acc)
		return
	}
	kernels.Assign(p, a.s.centres, c.labels[lo:hi], nil)
	kernels.AccumulateRelative(p, a.s.centres, a.s.r2, c.labels[lo:hi], acc)
}

// setRadius sets the squared radius of every cluster for round t. The kernel's
// distance has a relative error below (d+1) 2^-24; the radius is shortened by
// more than that, so that no record beyond R_t contributes.
func (s *Session) setRadius(t int) {
	r := s.radius[t]
	r2 := float32(r * r * (1 - float64(s.d+2)*0x1p-23))
	for a := range s.r2 {
		s.r2[a] = r2
	}
}
