package sketch

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// run is what all roles of a run know: a job with its defaults, its public numbers
// and what it will release.
type run struct {
	*protocol.Plan
	job  *Job
	plan *plan
	bits int // fraction bits of the records
	// parties are the releases of each; message is what is computed from them.
	parties []partyReleases
	message *protocol.Release
	// memberships are sent exact where the run has no privacy, or is to be compared
	// with exact weights; nil elsewhere.
	memberships *protocol.Release
	hasRecords  bool
	returned    *release   // nil unless the parties see the result
	frequency   *frequency // of local reports
}

// Plan implements engine.Job.
func (j *Job) Plan() (engine.Plan, error) {
	r, err := j.prepare()
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (j *Job) prepare() (*run, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	c := j.withDefaults()
	p, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	if c.Method.sketches() && p.distribution == nil {
		if p.distribution, err = newGeometric(c.Gamma); err != nil {
			return nil, err
		}
	}
	r := &run{job: c, plan: p, bits: c.Clients[0].FractionBits, Plan: &protocol.Plan{Method: string(j.Method),
		Calibration: privacy.None, Private: c.Method.private(), Budget: c.Budget,
		K: c.K, D: c.Clients[0].Points.D, N: c.PublicRecords(), Parties: p.parties,
		FractionBits: c.Clients[0].FractionBits, Rounds: 1, Seed: c.Seed, PublicSeed: protocol.NewPublicSeed(c.Seed)}}
	if r.Private {
		r.Calibration = c.Calibration
	}
	if c.Method == LocalReports {
		if r.frequency, err = newFrequency(p.clusters, p.eps2); err != nil {
			return nil, err
		}
	}
	r.planReleases()
	if err := r.CheckNoise(); err != nil {
		return nil, err
	}
	r.planNotes()
	r.planMessages()
	return r, nil
}

// planMessages counts what each party sends to the server.
func (r *run) planMessages() {
	r.Messages = protocol.NoMessages(r.plan.parties)
	r.Messages.Rounds = 1
	for l, columns := range r.job.Columns {
		bytes := messageHeader + 4*r.plan.clusters*len(columns)
		if r.parties[l].sizes != nil {
			bytes += 8 * r.plan.clusters
		}
		if r.parties[l].sketches != nil {
			bytes += r.plan.keySets() * r.plan.sketches * r.plan.clusters * r.plan.distribution.bytes()
		}
		if r.parties[l].reports != nil {
			bytes += r.N
		}
		if r.parties[l].records != nil {
			bytes += 8
		}
		if r.memberships != nil {
			bytes += r.N
		}
		r.Messages.BytesSent[l] = int64(bytes)
		if r.returned != nil {
			r.Messages.BytesReceived[l] = int64(r.returnedBytes(r.K))
		}
	}
}

// planReleases plans what each party releases, in the order of the ledger.
func (r *run) planReleases() {
	j := r.job
	proven := j.Calibration == privacy.Proven
	r.hasRecords = j.Method == Independent || j.Method.sketches() && !proven
	var records *release
	if j.Method == Independent {
		records = r.planRecords()
	}
	for l := range r.plan.parties {
		r.parties = append(r.parties, r.planParty(l))
	}
	if r.hasRecords && records == nil {
		records = r.planRecords()
	}
	r.parties[0].records = records
	if j.Method.sketches() {
		r.planSketches()
	}
	if r.plan.returned != nil {
		r.planReturned()
	}
	r.message = r.Add(&protocol.Release{Name: "local centres and what is released beside them"})
	switch {
	case j.ExactWeights && r.Private:
		r.memberships = r.addExact("exact weights of the grid")
	case j.Method == Plain:
		r.memberships = r.Add(&protocol.Release{Name: "exact memberships"})
	}
}

// planSketches plans the sketches.
func (r *run) planSketches() {
	j, plan := r.job, r.plan
	condition := []string{"the keys and the ids stay among the parties: who holds the keys can test a sketch for any id",
		"the keyed arrivals are AES-128, so the guarantee is computational"}
	bound := tableBound(j.Method, j.Calibration, "sketches", privacy.Shape{D: r.D, K: plan.clusters, Bound: 1})
	if j.Calibration == privacy.Proven {
		e := bound.Entry("sketches of all parties, jointly", "fm", "L1")
		e.Viewers, e.Scale, e.Unit, e.Cost = []string{privacy.Server}, plan.phantoms, "phantoms per cell", plan.sketchSpec(j)
		e.Conditions = condition
		joint := r.Add(&protocol.Release{Name: e.What, Makers: protocol.Holder, Entries: []privacy.Entry{e}})
		for l := range r.parties {
			r.parties[l].sketches = joint
		}
		return
	}
	for l := range r.parties {
		e := bound.Entry(partyName(l)+": sketches of the local clusters", "fm", "L1")
		e.Viewers, e.Scale, e.Unit = []string{privacy.Server}, plan.phantoms, "phantoms per sketch"
		e.Cost, e.Unbounded, e.Conditions = privacy.Spec{Family: "pure", Epsilon: plan.eps2}, true, condition
		e.Remark = fmt.Sprintf("the claimed total composes the parties' sketches as if their keys were independent; they "+
			"share them: no Renyi bound holds for the joint release, "+
			"and two parties' sketches alone have a true epsilon of at least about %.2g at delta %.2g (T3)", r.trueEpsilon(),
			j.Budget.Delta)
		r.parties[l].sketches = r.Add(&protocol.Release{Name: e.What, Makers: protocol.Holder, Entries: []privacy.Entry{e}})
	}
}

// trueEpsilon is about the epsilon, at the run's delta, of the claimed sketches
// of two parties on the worst pair of data sets, from the tail of their joint
// distribution (THEOREMS.md, T3): delta(eps) ~ M/(2 gamma n_p^2 (e^eps - 1)). It leaves
// out all but that tail, so it errs on the low side.
func (r *run) trueEpsilon() float64 {
	phantoms := r.plan.phantoms
	return math.Log1p(float64(r.plan.sketches) / (2 * r.job.Gamma * phantoms * phantoms * r.job.Budget.Delta))
}

// planNotes says what the ledger does not cover.
func (r *run) planNotes() {
	j := r.job
	if j.Bounds.FromData {
		r.Notes = append(r.Notes, "bounds come from the data")
	}
	if j.Method.sketches() && r.returned == nil {
		r.Notes = append(r.Notes, "parties that see the result: they hold the keys, so that it is for the server alone; "+
			"sketch --return noised makes one that they may see")
	}
	if j.Records == 0 {
		r.Notes = append(r.Notes, "the number of records is taken as public for defaults such as delta and the number of "+
			"local clusters")
	} else if j.Method == LocalReports {
		r.Notes = append(r.Notes, "the number of records is that of the reports, which the server counts and the bytes sent "+
			"tell")
	}
	if j.Method.sketches() {
		r.Notes = append(r.Notes, "times: how long a party takes to make its sketches depends on the sizes of its local "+
			"clusters, and on the keys")
	}
	if !j.NoQuality {
		r.Notes = append(r.Notes, "quality, and the relative intersection error, are computed from the private data")
	}
}

// roles makes the parties, each with its own columns, and the server.
func (r *run) roles(ctx context.Context, pool *engine.Pool, o *protocol.Options) ([]*party, *server, error) {
	var parties []*party
	for l, columns := range r.job.Columns {
		p := &party{run: r, index: l, releases: r.parties[l]}
		switch {
		case o.Seat == nil:
			data := &r.job.Clients[0]
			p.points = kernels.NewPanels(data.Points.N, len(columns))
			err := pool.Scan(ctx, p.points, func(_ int, s engine.Shard) { data.CopyColumns(p.points, columns, s.Lo, s.Hi) })
			if err != nil {
				return nil, nil, err
			}
		case o.Plays(protocol.Role(l)):
			p.points = o.Seat.Part.Points
		}
		parties = append(parties, p)
	}
	return parties, &server{run: r}, nil
}

// programs are what the parties do.
func programs(parties []*party) []protocol.Program {
	var all []protocol.Program
	for _, p := range parties {
		all = append(all, p.play)
	}
	return all
}

// Run implements engine.Plan.
func (r *run) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	return r.Connect(ctx, rt, protocol.Options{Replay: r.job.Replay})
}

// Connect implements protocol.Runner.
func (r *run) Connect(ctx context.Context, rt *engine.Runtime, options protocol.Options) (*engine.Result, error) {
	if err := step.CheckRecords(ctx, rt.Pool(), options.Records(dataset.Part{Points: r.job.Clients[0].Points}),
		"data"); err != nil {
		return nil, err
	}
	parties, v, err := r.roles(ctx, rt.Pool(), &options)
	if err != nil {
		return nil, err
	}
	s := protocol.Start(rt, r.Plan, programs(parties), v.play, options)
	res, err := s.Finish(ctx, r.job.Bounds)
	if err != nil || options.Replay != nil {
		return res, err
	}
	res.Comm.Rounds = 1
	if r.job.NoQuality || options.Seat != nil {
		return res, nil // nobody who plays alone has all columns
	}
	span := rt.Begin(engine.PhasePostprocess, 0, engine.Server)
	defer rt.End(span)
	labels := make([][]uint16, len(parties))
	for l, p := range parties {
		labels[l] = p.labels
	}
	j := r.job
	exact, err := exactGrid(ctx, rt.Pool(), labels, r.plan.clusters)
	if err != nil {
		return nil, err
	}
	if n := r.job.Own(); n > 0 {
		res.Details["relative_intersection_error"] = intersectionError(v.grid, exact, n)
	}
	part := dataset.Part{Points: j.Clients[0].Points, FractionBits: j.Clients[0].FractionBits}
	res.Quality, err = engine.Measure(ctx, rt.Pool(), engine.Evaluation{Part: part, Labels: j.Labels,
		Clamped: j.Clamped}, s.Centroids(), j.K)
	return res, err
}

// Server is the server's side of a sketch protocol after the parties have sent
// their messages, for code that drives the protocol step by step.
type Server struct {
	server  *server
	release *Release
}

// Exchange runs the parties of a sketch protocol (phases 1 and 2).
func (j *Job) Exchange(ctx context.Context, rt *engine.Runtime) (*Server, error) {
	r, err := j.prepare()
	if err != nil {
		return nil, err
	}
	if !j.Method.sketches() {
		return nil, fault.Request("method", string(j.Method)+" sends no sketches", "use sketch or sketch-basic")
	}
	if r.returned != nil {
		return nil, fault.Request("return", "is noised, and step by step nothing is returned", "use server")
	}
	parties, v, err := r.roles(ctx, rt.Pool(), &protocol.Options{})
	if err != nil {
		return nil, err
	}
	gather := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		v.Party = p
		return nil, v.gather(ctx)
	}
	if err := protocol.Start(rt, r.Plan, programs(parties), gather, protocol.Options{}).Run(ctx); err != nil {
		return nil, err
	}
	return &Server{v, v.release()}, nil
}

// Weights estimates the weights of the grid (phase 3).
func (s *Server) Weights(ctx context.Context) (*Grid, error) {
	return s.server.estimate(ctx, s.release)
}

// Cluster runs weighted k-means on the grid (phase 4).
func (s *Server) Cluster(ctx context.Context, g *Grid) (*synopsis.Solution, error) {
	return s.server.cluster(ctx, g)
}
