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
	// relativeWork is what the cut at the radius and the separate sum add to a
	// point.
	relativeWork = 8
)

// nearest assigns each record to its nearest centroid, in one pass that also
// sums. Sums are integers, so neither the cut into items nor the order in which
// workers add matters.
type nearest struct {
	s       *Session
	most    int                    // points of an item at most
	step    int                    // points of an item of the client at hand
	partial []*kernels.Accumulator // by worker; nil while every client is small
	whole   bool                   // a worker takes whole clients
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
	workers := s.rt.Pool().Workers()
	per := s.k * s.d // products of a point
	if s.job.Algorithm == Relative {
		per += relativeWork
	}
	a.small = s.n*per <= inlineWork || workers == 1 && s.n*per <= itemWork
	a.whole = largest*per <= 8*itemWork && (s.m%workers == 0 || s.m >= 4*workers)
	if !a.small && !a.whole {
		fit := engine.ShardBytes / (4 * s.d)
		a.most = max(min(itemWork/per, fit), kernels.Lanes)
		for range workers {
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
		err := a.s.rt.Pool().Run(ctx, a.cut(c.points.N), a.pass)
		c.acc.Reset()
		for _, p := range a.partial {
			c.acc.Merge(p)
		}
		a.center(c)
		a.s.rt.End(span)
		if err != nil {
			return err
		}
	}
	return nil
}

// cut sets the step for n points and returns the number of items: of at most
// a.most points, of equal size, as many for each worker.
func (a *nearest) cut(n int) int {
	workers := len(a.partial)
	items := (n + a.most*workers - 1) / (a.most * workers) * workers
	a.step = ((n+items-1)/items + kernels.Lanes - 1) / kernels.Lanes * kernels.Lanes
	return (n + a.step - 1) / a.step
}

// one assigns all points of a client.
func (a *nearest) one(c *client) {
	if c.gone {
		return
	}
	span := a.s.rt.Begin(engine.PhaseAssign, a.round, c.index)
	c.acc.Reset()
	a.points(c, 0, c.points.N, c.acc)
	a.center(c)
	a.s.rt.End(span)
}

// points assigns and sums the points [lo, hi) of a client.
func (a *nearest) points(c *client, lo, hi int, acc *kernels.Accumulator) {
	p := c.points.Slice(lo, hi)
	if a.s.job.Algorithm != Relative {
		kernels.AssignAccumulate(p, a.s.centres, nil, acc)
		return
	}
	if a.s.d < chainDims {
		// Assign's own distance has the small relative error that the radius
		// allows for, so one pass finds both.
		kernels.AssignRadius(p, a.s.centres, a.s.r2[0], c.labels[lo:hi], nil)
		kernels.Accumulate(p, c.labels[lo:hi], acc)
		return
	}
	kernels.Assign(p, a.s.centres, c.labels[lo:hi], nil)
	kernels.AccumulateRelative(p, a.s.centres, a.s.r2, c.labels[lo:hi], acc)
}

// chainDims is the number of dimensions from which kernels.Assign computes
// distances by |c|^2 - 2x.c, which cancel, instead of the sum of (x-c)^2.
const chainDims = 16

// center turns the sums of records into sums relative to the centroids.
func (a *nearest) center(c *client) {
	if a.s.job.Algorithm != Relative || a.s.d >= chainDims {
		return
	}
	for j, count := range c.acc.Counts {
		for h, x := range a.s.centres.Row(j) {
			c.acc.Sums[j*a.s.d+h] -= count * c.units(x)
		}
	}
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
