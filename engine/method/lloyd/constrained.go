package lloyd

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/kernels"
)

// constrained assigns a client's records at the least total squared distance
// under the size bounds (FastLloyd §5.2.2), by min-cost flow.
type constrained struct {
	c       *client
	problem flow.Problem
	result  flow.Result
	solver  *flow.Solver
	tally   tally
	span    stageSpan
	abreast bool // one client per worker; else all workers on one client
	round   int
	ties    privacy.Stream
	alone   func(context.Context) error
}

func newConstrained(c *client) *constrained {
	a := &constrained{c: c, solver: c.party.Pool().TakeSolver()}
	lo, hi, own := make([]int, c.k), make([]int, c.k), c.sizes[c.party.Role]
	for j := range c.k {
		lo[j], hi[j] = own[0], own[1]
	}
	a.problem = flow.Problem{Points: c.points, Centroids: c.grid, FractionBits: c.fraction, Lo: lo, Hi: hi,
		Exclusivity: c.job.exclusivityAt(int(c.party.Role)), Total: c.job.total()}
	a.solver.Began = a.began
	a.tally = tally{acc: kernels.NewAccumulator(c.k, c.d, c.fraction), labels: step.NewLabels(c.points.N)}
	workers := c.party.Pool().Workers()
	a.abreast = workers > 1 && c.m >= workers
	a.alone = func(ctx context.Context) error { return a.solve(ctx, nil) }
	c.party.Pool().Wake()
	return a
}

// tieKey is the key of a client's tie-break in a round, from its own randomness. The
// centroids of a round follow from the assignments before it, so each has a key of its
// own (THEOREMS.md T1).
func tieKey(p *protocol.Party, round int, st *privacy.Stream) (key [16]byte) {
	p.Streams().Reset(st, int(p.Role), round, "ties")
	binary.LittleEndian.PutUint64(key[:8], st.Uint64())
	binary.LittleEndian.PutUint64(key[8:], st.Uint64())
	return key
}

func (a *constrained) assign(ctx context.Context, t int) error {
	a.round, a.problem.Key = t, tieKey(a.c.party, t, &a.ties)
	if a.c.radius != nil {
		a.problem.Radius = a.c.radiusOf(t)
		if a.c.squaredRadius() {
			a.problem.Radius = a.c.radius[0]
		}
	}
	if !a.abreast {
		return a.solve(ctx, a.c.party.Pool())
	}
	return a.c.party.Abreast(ctx, a.alone)
}

// solve assigns and sums the records; runner nil means this goroutine.
func (a *constrained) solve(ctx context.Context, runner flow.Runner) error {
	c, r := a.c, &a.result
	var err error
	if c.job.Flow == Reference {
		a.began(flow.Paths, 0)
		r, err = flow.Reference(ctx, &a.problem)
	} else {
		err = a.solver.Solve(ctx, runner, &a.problem, r)
	}
	if err == nil && c.job.Flow == Verified {
		err = flow.Verify(&a.problem, r)
	}
	a.ended(0)
	if errors.Is(err, flow.ErrInfeasible) || errors.Is(err, flow.ErrProblem) {
		return infeasible(c.party.Role, err, c.job.Method.Private())
	}
	if err != nil {
		return err
	}
	span := c.party.Begin(engine.PhaseAccumulate, a.round)
	span.Settled = c.points.N - a.tally.take(c, r.Labels)
	for _, m := range r.Extra {
		c.add(int(m.Point), int(m.Cluster))
	}
	for j, n := range r.Fillers {
		c.fill(j, n, c.centres.Row(j))
	}
	c.party.End(span)
	return nil
}

// stageSpan is the span of the solver's stage that runs, if one does.
type stageSpan struct {
	span engine.Span
	open bool
}

// began starts the span of a stage of the solver: the passes that assign records
// at prices are the assignment, what the paths then do is the flow.
func (a *constrained) began(stage flow.Stage, looked int) {
	a.ended(looked)
	phase := engine.PhaseAssign
	if stage == flow.Paths {
		phase = engine.PhaseFlow
	}
	a.span = stageSpan{a.c.party.Begin(phase, a.round), true}
}

// ended ends the span of the stage that runs, which has looked at so many records.
func (a *constrained) ended(looked int) {
	if !a.span.open {
		return
	}
	a.span.open = false
	a.span.span.Again = max(0, looked-a.c.points.N)
	a.c.party.End(a.span.span)
}

// tally is the sums of a client's records under the labels of the last round,
// without second memberships and fillers.
type tally struct {
	acc    *kernels.Accumulator
	labels []uint16
	begun  bool
}

// updateShare is the share of the records, as 1/updateShare, up to which taking
// them from sum to sum costs less than summing all.
const updateShare = 20

// take sets the client's sums to those under labels and returns the number of
// records that it summed or moved.
func (t *tally) take(c *client, labels []uint16) int {
	moved := -1
	if t.begun {
		moved = kernels.UpdateSums(c.points, t.labels, labels, c.points.N/updateShare, t.acc)
	}
	if moved < 0 {
		moved, t.begun = c.points.N, true
		t.acc.Reset()
		kernels.Accumulate(c.points, labels, t.acc)
		copy(t.labels, labels)
	}
	copy(c.acc.Sums, t.acc.Sums)
	copy(c.acc.Counts, t.acc.Counts)
	return moved
}

// add puts record i into cluster j.
func (c *client) add(i, j int) {
	d := c.points.D
	base := i/kernels.Lanes*d*kernels.Lanes + i%kernels.Lanes
	for h := range d {
		c.acc.Sums[j*d+h] += c.units(c.points.Data[base+h*kernels.Lanes])
	}
	c.acc.Counts[j]++
}

// fill puts n fillers at the old centroid into cluster j: dummies that make up
// for missing records (THEOREMS.md T1).
func (c *client) fill(j, n int, centroid []float32) {
	if n == 0 {
		return
	}
	d := c.points.D
	for h, x := range centroid {
		c.acc.Sums[j*d+h] += int64(n) * c.units(x)
	}
	c.acc.Counts[j] += int64(n)
}

// units is a grid value in grid units.
func (c *client) units(x float32) int64 {
	return int64(float64(x) * c.scale)
}
