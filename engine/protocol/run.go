package protocol

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// Program is what a role does: it closes over the role's own records, if it has
// any.
type Program func(ctx context.Context, p *Party) (*Outcome, error)

// Outcome is what a role of the result's audience ends with: public values, the
// same at all of them.
type Outcome struct {
	// Centroids has K rows of D, row-major, in the normalised box; fewer where the number of
	// clusters was chosen in the run.
	Centroids []float64
	// Sizes are the noisy sizes of the clusters, nil if they were not released.
	Sizes []float64
	// Weight is the noisy weight of all records, nil where they have none.
	Weight *float64
	// Iterations is the number of rounds done.
	Iterations int
	// Quality is what the roles measured together, nil fields where it is left out.
	Quality engine.Quality
	// LossEstimate is the mean squared distance to the centroids, estimated from what was
	// released; nil where the method cannot.
	LossEstimate *float64
	// Synopsis is what was released of where records are, in the normalised box.
	Synopsis []engine.Cell
	// KCurve has how well each number of clusters fits the synopsis, where K follows from it.
	KCurve []engine.KFit
	// Details has what only this method reports.
	Details map[string]any
}

// Session is a run under way. It is for code that drives a run round by round;
// Run does the whole.
type Session struct {
	plan     *Plan
	rt       *engine.Runtime
	local    *local
	apart    bool     // each role has a transport and a goroutine of its own
	seated   bool     // one role plays here, the others elsewhere
	parties  []*Party // and the server, last, if there is one
	room     []role
	made     []int // of all roles, by release
	exact    *exactSum
	shared   *shared
	round    int
	replayed bool // one of two runs, of which only the releases count
}

// role is one role here.
type role struct {
	Party
	seat
	program Program
	err     error // of its joining
	outcome *Outcome
}

// run runs the role's program.
func (r *role) run(ctx context.Context) error {
	defer r.transport.Leave()
	if r.err == nil {
		r.outcome, r.err = r.program(ctx, &r.Party)
	}
	return r.err
}

// Options are what a run needs besides its plan.
type Options struct {
	// Replay makes the run one of two on neighbouring data sets.
	Replay *privacy.Replay
	// Views, if not nil, records what every role sees of a run in one process.
	Views *Views
	// Draws, if not nil, records the noise that the roles of one process draw.
	Draws *Draws
	// Connect, if not nil, gives each role a transport of its own and a goroutine
	// of its own, in place of the shared memory of this process.
	Connect func(r Role) Transport
	// Seat, if not nil, makes the run that of one role, which has Connect for its
	// transport and Secrets for its randomness: the others play elsewhere.
	Seat *Seat
	// Secrets, if not nil, has the secrets of each role that plays here, in place of
	// those of the plan's seed or fresh ones.
	Secrets func(r Role) Secrets
	// Joined, if not nil, sees each role before it begins, for tests.
	Joined func(*Party)
}

// Seat is a role that plays by itself. The plan is made from shapes, and what the
// role holds comes with its seat.
type Seat struct {
	Role Role
	// Part has the role's own records: its rows, or its columns of all records in
	// increasing order. The server has none.
	Part dataset.Part
}

// Plays reports whether a role plays in this process.
func (o *Options) Plays(r Role) bool { return o.Seat == nil || o.Seat.Role == r }

// Records are those that a role plays with: of its seat, or of the job.
func (o *Options) Records(job dataset.Part) dataset.Part {
	if o.Seat == nil {
		return job
	}
	return o.Seat.Part
}

// Runner is a plan whose roles may meet over transports that are given.
type Runner interface {
	engine.Plan
	// Core is what the roles have in common.
	Core() *Plan
	// Connect is Run with options. The result of a seat has what its role learns:
	// no centroids where that is nothing, and the bytes of its own messages.
	Connect(ctx context.Context, rt *engine.Runtime, o Options) (*engine.Result, error)
}

// Core returns the plan itself.
func (pl *Plan) Core() *Plan { return pl }

// Start makes the roles of a run: programs has one for each party; server is nil
// where there is none, and otherwise the program of each.
func Start(rt *engine.Runtime, plan *Plan, programs []Program, server Program, o Options) *Session {
	s := &Session{plan: plan, rt: rt, local: newLocal(rt, o.Views, plan.Private), apart: o.Connect != nil,
		seated: o.Seat != nil, exact: new(exactSum), replayed: o.Replay != nil,
		shared: newShared(plan, o.Secrets != nil || o.Seat != nil)}
	servers := 0
	if server != nil {
		servers = max(plan.Servers, 1)
	}
	s.makeRoom(len(programs) + servers)
	for i, program := range programs {
		s.join(Role(i), program, o)
	}
	for i := range servers {
		s.join(ServerAt(i), server, o)
	}
	return s
}

// makeRoom makes room for so many roles at once.
func (s *Session) makeRoom(roles int) {
	if s.seated {
		roles = 1
	}
	s.room, s.made = make([]role, roles), make([]int, roles*len(s.plan.Releases))
	s.parties = make([]*Party, 0, roles)
	s.local.order = make([]*seat, 0, roles)
}

// join adds a role, if it plays here.
func (s *Session) join(id Role, program Program, o Options) {
	if !o.Plays(id) {
		return
	}
	at, releases := len(s.parties), len(s.plan.Releases)
	r := &s.room[at]
	p, seat := &r.Party, &r.seat
	*p = Party{Role: id, Plan: s.plan, Replay: o.Replay, rt: s.rt, views: o.Views, draws: o.Draws,
		made:  s.made[at*releases : (at+1)*releases],
		exact: s.exact, seen: engine.Seen{Loss: math.NaN()}, single: s.seated}
	r.program, r.err = program, p.take(o.Secrets, s.shared)
	seat.player = r
	s.local.add(seat, id)
	p.transport, p.seat = seat, seat
	if o.Connect != nil {
		p.transport, p.seat = o.Connect(id), nil
	}
	if o.Joined != nil {
		o.Joined(p)
	}
	s.parties = append(s.parties, p)
}

// Run goes on to the end.
func (s *Session) Run(ctx context.Context) error {
	if s.apart {
		return s.local.runApart(ctx)
	}
	s.local.goal = math.MaxInt
	return s.local.run(ctx, nil)
}

// Step goes on until all parties have ended one round more, or the run. It reports
// whether the run goes on.
func (s *Session) Step(ctx context.Context) (bool, error) {
	s.round++
	s.local.goal = s.round
	err := s.local.run(ctx, func() bool {
		for _, p := range s.parties {
			if !p.Role.Serves() && p.ended < s.round && !s.local.at(p.Role).left {
				return false
			}
		}
		return true
	})
	return err == nil && s.local.parties > 0, err
}

// Close ends a run, if it has not ended, and lets its roles forget their secrets.
func (s *Session) Close() {
	s.local.close()
	for _, p := range s.parties {
		p.forget()
	}
}

// outcome is what the first role of the result's audience ended with: the server's
// where no party sees the result.
func (s *Session) outcome() *Outcome {
	for i := range s.room {
		if o := s.room[i].outcome; o != nil {
			return o
		}
	}
	return nil
}

// Finish runs the session to its end and returns the result; bounds are those of the
// records. The result of a run with a replay that ends after its releases is empty.
func (s *Session) Finish(ctx context.Context, bounds dataset.Bounds) (*engine.Result, error) {
	defer s.Close()
	if err := s.Run(ctx); err != nil {
		return nil, err
	}
	if s.replayed && s.outcome() == nil {
		return &engine.Result{}, nil
	}
	return s.result(bounds)
}

// result puts together what the first party ended with and what everybody's part
// of the ledger and the traffic came to.
func (s *Session) result(bounds dataset.Bounds) (*engine.Result, error) {
	pl, first := s.plan, s.outcome()
	if first == nil && s.seated {
		first = &Outcome{}
	}
	if first == nil {
		return nil, errors.New("protocol: the run ended without a result")
	}
	r := &engine.Result{Method: pl.Method, N: pl.N, D: pl.D, K: pl.K, Parties: pl.Parties, Iterations: first.Iterations,
		Calibration: string(pl.Calibration), Seed: pl.Seed, Quality: first.Quality, Sizes: slices.Clone(first.Sizes),
		Weight:       first.Weight,
		LossEstimate: first.LossEstimate, KCurve: first.KCurve, Metric: pl.Metric,
		Details: first.Details,
		Doubts:  pl.doubts()}
	if rows := len(first.Centroids) / pl.D; rows > 0 {
		r.K = rows
	}
	if pl.Private {
		epsilon, delta := pl.Budget.Epsilon, pl.Budget.Delta
		r.Epsilon, r.Delta = &epsilon, &delta
	}
	booked := make(map[*Release][]privacy.Entry)
	for _, p := range s.parties {
		for _, b := range p.booked {
			booked[b.release] = b.entries
		}
		for _, n := range p.notes {
			if !slices.Contains(r.Notes, n) {
				r.Notes = append(r.Notes, n)
			}
		}
		if p.Role.Serves() {
			continue
		}
		sent, received := p.transport.Traffic()
		r.Comm.BytesSent, r.Comm.BytesReceived = append(r.Comm.BytesSent, sent+p.published-p.uncounted[0]),
			append(r.Comm.BytesReceived, received-p.uncounted[1])
		r.Comm.Rounds = max(r.Comm.Rounds, p.rounds)
	}
	var err error
	if r.Ledger, err = pl.Ledger(booked); err != nil {
		return nil, err
	}
	for _, c := range first.Synopsis {
		if len(bounds.Lo) == pl.D {
			r.Synopsis = append(r.Synopsis, engine.Cell{Lo: bounds.Denormalise(nil, c.Lo),
				Hi: bounds.Denormalise(nil, c.Hi), Weight: c.Weight})
		}
	}
	for j := range len(first.Centroids) / pl.D {
		row := first.Centroids[j*pl.D : (j+1)*pl.D]
		if len(bounds.Lo) == pl.D {
			row = bounds.Denormalise(nil, row)
		}
		r.Centroids = append(r.Centroids, slices.Clone(row))
	}
	return r, nil
}

// Centroids are those of the result, K rows of D, in the normalised box.
func (s *Session) Centroids() []float64 { return s.outcome().Centroids }
