package horizontal

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/kernels"
)

// constrained assigns each client's records at the least total squared distance
// under the size bounds (FastLloyd §5.2.2), by min-cost flow.
type constrained struct {
	s        *Session
	problems []flow.Problem
	results  []flow.Result
	solvers  []*flow.Solver
	tallies  []tally
	errs     []error
	spans    []stageSpan
	abreast  bool // one client per worker; else all workers on one client
	context  context.Context
	round    int
	each     func(worker, index int)
}

func newConstrained(s *Session) *constrained {
	a := &constrained{s: s, problems: make([]flow.Problem, s.m), results: make([]flow.Result, s.m), errs: make([]error, s.m),
		spans: make([]stageSpan, s.m)}
	lo, hi := make([]int, s.k), make([]int, s.k)
	for j := range s.k {
		lo[j], hi[j] = s.lo, s.hi
	}
	for i, c := range s.clients {
		a.problems[i] = flow.Problem{Points: c.points, Centroids: s.grid, FractionBits: s.fraction, Lo: lo, Hi: hi,
			Exclusivity: s.job.Exclusivity, Key: s.tieKey(), Total: s.job.total()}
		solver := flow.NewSolver()
		solver.Began = func(stage flow.Stage, looked int) { a.began(c, stage, looked) }
		a.solvers = append(a.solvers, solver)
		a.tallies = append(a.tallies, tally{acc: kernels.NewAccumulator(s.k, s.d, s.fraction), labels: newLabels(c.points.N)})
	}
	workers := s.rt.Pool().Workers()
	a.abreast = workers > 1 && s.m >= workers
	a.each = func(_, index int) { a.errs[index] = a.one(a.s.clients[index], nil) }
	s.rt.Pool().Rouse()
	return a
}

// restart keeps the solvers, whose answers do not depend on where they start.
func (a *constrained) restart() {
	for i := range a.problems {
		a.problems[i].Key = a.s.tieKey()
	}
}

func (a *constrained) rewind() {}

// tieKey is the public key of the run's tie-break.
func (s *Session) tieKey() (key [16]byte) {
	st := s.streams.Stream(everyClient, 0, "ties")
	binary.LittleEndian.PutUint64(key[:8], st.Uint64())
	binary.LittleEndian.PutUint64(key[8:], st.Uint64())
	return key
}

func (a *constrained) assign(ctx context.Context, t int) error {
	a.context, a.round = ctx, t
	if a.s.radius != nil {
		reach := a.s.radius[t]
		if a.s.squaredRadius() {
			reach = a.s.radius[0]
		}
		for i := range a.problems {
			a.problems[i].Radius = reach
		}
	}
	if a.abreast {
		if err := a.s.rt.Pool().Run(ctx, len(a.s.clients), a.each); err != nil {
			return err
		}
		for _, err := range a.errs {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range a.s.clients {
		if err := a.one(c, a.s.rt.Pool()); err != nil {
			return err
		}
	}
	return nil
}

// one assigns and sums one client's records; runner nil means this goroutine.
func (a *constrained) one(c *client, runner flow.Runner) error {
	if c.gone {
		return nil
	}
	rt, r := a.s.rt, &a.results[c.index]
	var err error
	if a.s.job.Flow == Reference {
		a.began(c, flow.Paths, 0)
		r, err = flow.Reference(a.context, &a.problems[c.index])
	} else {
		err = a.solvers[c.index].Solve(a.context, runner, &a.problems[c.index], r)
	}
	if err == nil && a.s.job.Flow == Verified {
		err = flow.Verify(&a.problems[c.index], r)
	}
	a.ended(c, 0)
	if errors.Is(err, flow.ErrInfeasible) || errors.Is(err, flow.ErrProblem) {
		return infeasible(c.index, err)
	}
	if err != nil {
		return err
	}
	span := rt.Begin(engine.PhaseAccumulate, a.round, c.index)
	span.Settled = c.points.N - a.tallies[c.index].take(c, r.Labels)
	for _, m := range r.Extra {
		c.add(int(m.Point), int(m.Cluster))
	}
	for j, n := range r.Fillers {
		c.fill(j, n, a.s.centres.Row(j))
	}
	rt.End(span)
	return nil
}

// stageSpan is the span of the solver's stage that runs for a client, if one does.
type stageSpan struct {
	span engine.Span
	open bool
}

// began starts the span of a stage of a client's solver: the passes that assign
// records at prices are its assignment, what the paths then do is its flow.
func (a *constrained) began(c *client, stage flow.Stage, looked int) {
	a.ended(c, looked)
	phase := engine.PhaseAssign
	if stage == flow.Paths {
		phase = engine.PhaseFlow
	}
	a.spans[c.index] = stageSpan{a.s.rt.Begin(phase, a.round, c.index), true}
}

// ended ends the span of the stage that runs, which has looked at so many records.
func (a *constrained) ended(c *client, looked int) {
	s := &a.spans[c.index]
	if !s.open {
		return
	}
	s.open = false
	s.span.Again = max(0, looked-c.points.N)
	a.s.rt.End(s.span)
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
	return int64(float64(x) * float64(int64(1)<<c.acc.FractionBits))
}
