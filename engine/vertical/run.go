package vertical

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/synopsis"
)

func partyName(l int) string { return fmt.Sprintf("party %d", l) }

// session is one run of a job.
type session struct {
	job     *Job
	plan    *plan
	rt      *engine.Runtime
	streams *privacy.Streams
	secret  Secret
	parties []*party
	ledger  privacy.Ledger
	comm    engine.Comm
	notes   []string
	// received are the local centres of each party as the server decoded them.
	received [][]float32
}

// newSession sets up the parties.
func newSession(j *Job, rt *engine.Runtime) (*session, error) {
	c := j.withDefaults()
	plan, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	s := &session{job: c, plan: plan, rt: rt, streams: privacy.NewStreams(c.Seed)}
	s.ledger.Delta = c.Budget.Delta
	s.comm = engine.Comm{Rounds: 1, BytesSent: make([]int64, plan.parties), BytesReceived: make([]int64, plan.parties)}
	s.secret = NewSecret(s.streams)
	for l, columns := range c.Split {
		s.parties = append(s.parties, &party{
			index: l, points: c.Data.Columns(columns), fractionBits: c.Data.FractionBits, streams: s.streams, rt: rt,
			clusters: plan.clusters, records: c.publicRecords(), tape: c.Tape,
			protocol: c.Protocol, calibration: c.Calibration, neighbours: c.relation(),
		})
	}
	s.received = make([][]float32, plan.parties)
	if c.Protocol.sketches() && plan.law == nil {
		if plan.law, err = NewGeometric(c.Gamma); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Run implements engine.Plan.
func (j *Job) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	s, err := newSession(j, rt)
	if err != nil {
		return nil, err
	}
	grid, err := s.weights(ctx)
	if err != nil || j.Tape != nil {
		return &engine.Result{}, err
	}
	if j.ExactWeights && j.Protocol.Private() {
		grid = s.truth()
		if err := s.enterExact("exact weights of the grid"); err != nil {
			return nil, err
		}
	}
	solution, err := s.cluster(ctx, grid)
	if err != nil {
		return nil, err
	}
	rt.IterationEnd(0, 1)
	return s.result(ctx, grid, solution)
}

// weights runs the parties and the server's estimation.
func (s *session) weights(ctx context.Context) (*Grid, error) {
	g, err := s.protocol(ctx)
	if err == nil {
		g.round()
	}
	return g, err
}

func (s *session) protocol(ctx context.Context) (*Grid, error) {
	switch s.job.Protocol {
	case Plain:
		return s.plain(ctx)
	case Independent:
		return s.independent(ctx)
	case LocalReports:
		return s.localReports(ctx)
	default:
		return s.sketches(ctx)
	}
}

// send encodes and decodes a party's message, whose sizes and sets are given: the
// server sees no more.
func (s *session) send(p *party, m *Message) (*Message, error) {
	span := s.rt.Begin(engine.PhaseEncode, 0, p.index)
	defer s.rt.End(span)
	m.Party, m.Clusters, m.Columns, m.FractionBits = p.index, p.clusters, p.d(), p.fractionBits
	unit := math.Ldexp(1, p.fractionBits)
	for _, c := range p.centers {
		m.Centers = append(m.Centers, int32(float64(c)*unit))
	}
	heightBytes := 1
	if s.plan.law != nil {
		heightBytes = s.plan.law.Bytes()
	}
	encoded := m.Encode(heightBytes)
	s.comm.BytesSent[p.index] += int64(len(encoded))
	m, err := DecodeMessage(encoded)
	if err != nil {
		return nil, err
	}
	s.received[p.index] = make([]float32, len(m.Centers))
	for i, c := range m.Centers {
		s.received[p.index][i] = float32(float64(c) / unit)
	}
	return m, nil
}

// plain is the baseline without privacy.
func (s *session) plain(ctx context.Context) (*Grid, error) {
	for _, p := range s.parties {
		if err := p.plainCenters(ctx); err != nil {
			return nil, err
		}
		if _, err := p.assign(ctx); err != nil {
			return nil, err
		}
		if _, err := s.send(p, &Message{}); err != nil {
			return nil, err
		}
		s.comm.BytesSent[p.index] += int64(len(p.labels)) // one byte per membership
		if err := s.enterExact(partyName(p.index) + ": exact local centres and memberships"); err != nil {
			return nil, err
		}
	}
	span := s.rt.Begin(engine.PhaseWeights, 0, engine.Server)
	defer s.rt.End(span)
	return s.truth(), nil
}

// enterExact adds a release without noise to the ledger.
func (s *session) enterExact(what string) error {
	return s.ledger.Add(privacy.Entry{What: what, Viewers: []string{"server"}, Mechanism: "none", Calibration: privacy.None, Unbounded: true})
}

// truth is the grid of exact counts, its support the cells that hold a record.
func (s *session) truth() *Grid {
	k, parties := s.plan.clusters, s.plan.parties
	n := s.job.records()
	counts := make(map[string]float64)
	cell := make([]byte, parties)
	if size, ok := product(k, parties, maxDense); ok {
		flat := make([]float64, size)
		for i := range n {
			at := 0
			for _, p := range s.parties {
				at = at*k + int(p.labels[i])
			}
			flat[at]++
		}
		g := &Grid{Parties: parties, Clusters: k}
		for at, w := range flat {
			if w == 0 {
				continue
			}
			rest := at
			for l := parties - 1; l >= 0; l-- {
				cell[l] = byte(rest % k)
				rest /= k
			}
			g.Cells = append(g.Cells, cell...)
			g.Weights = append(g.Weights, w)
		}
		return g
	}
	for i := range n {
		for l, p := range s.parties {
			cell[l] = byte(p.labels[i])
		}
		counts[string(cell)]++
	}
	cells := make([]string, 0, len(counts))
	for c := range counts {
		cells = append(cells, c)
	}
	slices.Sort(cells)
	g := &Grid{Parties: parties, Clusters: k}
	for _, c := range cells {
		g.Cells = append(g.Cells, c...)
		g.Weights = append(g.Weights, counts[c])
	}
	return g
}

// laplaceCenters are local centres by the Laplace form of the forest.
func (s *session) laplaceCenters(ctx context.Context, p *party, epsilon float64) error {
	if s.job.ExactCenters {
		return s.exactCenters(ctx, p)
	}
	return p.startForest(ctx, p.laplaceForest(paperLevels, epsilon))
}

// exactCenters are local centres without noise.
func (s *session) exactCenters(ctx context.Context, p *party) error {
	if err := p.plainCenters(ctx); err != nil {
		return err
	}
	return s.enterExact(partyName(p.index) + ": exact local centres")
}

// releaseRecords is the published estimate of n: one party's count with
// Laplace noise under eps_0.
func (s *session) releaseRecords() (float64, error) {
	n := []int64{int64(s.job.records())}
	p := s.parties[0]
	bound := p.bound("number of records", 0)
	scale := gaussianScale(bound.L1(), s.plan.eps0)
	noisy, err := p.addLaplace(s.streams.Stream(0, 0, "records"), scale, n, 0)
	if err != nil {
		return 0, err
	}
	p.enter(bound, "discrete-laplace", scale, "records", 1, 1)
	s.comm.BytesSent[0] += 8
	return max(noisy[0], 1), nil
}

// independent is IND-LAP.
func (s *session) independent(ctx context.Context) (*Grid, error) {
	records, err := s.releaseRecords()
	if err != nil {
		return nil, err
	}
	sizes := make([][]float64, s.plan.parties)
	for l, p := range s.parties {
		if err := s.laplaceCenters(ctx, p, s.plan.eps1); err != nil {
			return nil, err
		}
		exact, err := p.assign(ctx)
		if err != nil {
			return nil, err
		}
		bound := p.bound("sizes of the local clusters", 0)
		scale := gaussianScale(bound.L1(), s.plan.eps2)
		if _, err := p.addLaplace(p.stream(0, "sizes"), scale, exact, 0); err != nil {
			return nil, err
		}
		p.enter(bound, "discrete-laplace", scale, "records", 1, 1)
		m, err := s.send(p, &Message{Sizes: exact})
		if err != nil {
			return nil, err
		}
		sizes[l] = floats(m.Sizes, m.SizeBits)
		for a, x := range sizes[l] {
			sizes[l][a] = max(x, 0)
		}
		if err := s.enterParty(p); err != nil {
			return nil, err
		}
	}
	span := s.rt.Begin(engine.PhaseWeights, 0, engine.Server)
	defer s.rt.End(span)
	grid, err := newDenseGrid(s.plan.parties, s.plan.clusters)
	if err != nil {
		return nil, err
	}
	independent(grid, sizes, records)
	rescale(grid.Weights, records)
	return grid, nil
}

// enterParty moves a party's releases to the ledger.
func (s *session) enterParty(p *party) error {
	for _, e := range p.ledger {
		e.Conditions, e.Remark = e.Bound.Rule.Conditions, e.Bound.Rule.Worth
		if s.job.Protocol == LocalReports && s.job.Calibration == privacy.Claimed && e.Cost.Family == "discrete-laplace" {
			truth := e.Cost // to data sets of one size; the claim is for adding or removing a record
			truth.Scale /= 2
			e.True = &truth
		}
		if s.job.Tape != nil {
			continue // pricing the entries would cost more than the run
		}
		if err := s.ledger.Add(e); err != nil {
			return err
		}
	}
	p.ledger = nil
	return nil
}

// localReports is LDP-AGG.
func (s *session) localReports(ctx context.Context) (*Grid, error) {
	k, n := s.plan.clusters, s.job.records()
	f, err := NewFrequency(k, s.plan.eps2)
	if err != nil {
		return nil, err
	}
	const block = 1 << 14
	reports := make([][]uint8, s.plan.parties)
	for l, p := range s.parties {
		// Records have n reports whatever they hold, so neighbours replace a
		// record.
		if err := s.laplaceCenters(ctx, p, s.plan.eps1); err != nil {
			return nil, err
		}
		if _, err := p.assign(ctx); err != nil {
			return nil, err
		}
		if _, err := s.send(p, &Message{}); err != nil {
			return nil, err
		}
		reports[l] = make([]uint8, n)
		span := s.rt.Begin(engine.PhaseNoise, 0, p.index)
		err := s.rt.Pool().Run(ctx, (n+block-1)/block, func(_, b int) {
			st := p.stream(b, "reports")
			for i := b * block; i < min((b+1)*block, n); i++ {
				reports[l][i] = uint8(f.report(f.value(l, i, int(p.labels[i])), st.Uint64(), st.Uint64()))
			}
		})
		s.rt.End(span)
		if err != nil {
			return nil, err
		}
		if err := p.reportsOnTape(f, reports[l]); err != nil {
			return nil, err
		}
		s.comm.BytesSent[l] += int64(n) // one byte per report; hash seeds are public functions of party and row
		p.enter(p.bound("memberships under local privacy", 0), "randomized-response", s.plan.eps2, "", 1, 1)
		p.ledger[len(p.ledger)-1].Cost = privacy.Spec{Family: "pure", Epsilon: s.plan.eps2}
		if err := s.enterParty(p); err != nil {
			return nil, err
		}
	}
	span := s.rt.Begin(engine.PhaseWeights, 0, engine.Server)
	defer s.rt.End(span)
	return s.aggregateReports(ctx, f, reports)
}

// reportsOnTape passes a party's reports to its tape.
func (p *party) reportsOnTape(f *Frequency, reports []uint8) error {
	if p.tape == nil {
		return nil
	}
	exact, released := make([]int64, len(reports)), make([]int64, len(reports))
	for i, r := range reports {
		exact[i], released[i] = int64(f.value(p.index, i, int(p.labels[i]))), int64(r)
	}
	truth, lie := math.Log(f.truth), math.Log((1-f.truth)/float64(f.size-1))
	err := p.tape.Release(exact, released, privacy.OtherLikelihood(func(exact, released int64) float64 {
		if exact == released {
			return truth
		}
		return lie
	}))
	for i, r := range released {
		reports[i] = uint8(r)
	}
	return err
}

// reportSeed is the public seed of the hash function of a report.
func reportSeed(party, row int) uint64 {
	return uint64(row)*0xd1342543de82ef95 + uint64(party+1)*0x2545f4914f6cdd1d
}

// aggregateReports estimates the grid from reports: for two parties by the
// inverse of the joint transition, for more from all pairs by the additive fit.
func (s *session) aggregateReports(ctx context.Context, f *Frequency, reports [][]uint8) (*Grid, error) {
	k, parties, n := s.plan.clusters, s.plan.parties, float64(s.job.records())
	r := &Release{Parties: parties, Clusters: k, Records: n}
	sizes := make([][]float64, parties)
	for l := range sizes {
		counts, err := s.supportCounts(ctx, f, reports, []int{l})
		if err != nil {
			return nil, err
		}
		f.Invert(counts, 1)
		projectSimplex(counts, n)
		sizes[l] = counts
	}
	var pairs [][]float64
	for l1 := range parties {
		for l2 := l1 + 1; l2 < parties; l2++ {
			counts, err := s.supportCounts(ctx, f, reports, []int{l1, l2})
			if err != nil {
				return nil, err
			}
			f.Invert(counts, 2)
			projectSimplex(counts, n)
			pairs = append(pairs, counts)
		}
	}
	if parties == 2 {
		g, err := newDenseGrid(2, k)
		if err == nil {
			copy(g.Weights, pairs[0])
		}
		return g, err
	}
	return additiveFit(ctx, s.rt.Pool(), r, pairs, sizes)
}

// supportCounts counts, for each cell of the given parties, the records all of
// whose reports support it.
func (s *session) supportCounts(ctx context.Context, f *Frequency, reports [][]uint8, parties []int) ([]float64, error) {
	k, n := s.plan.clusters, s.job.records()
	size := powInt(k, len(parties))
	const block = 1 << 14
	partial := make([][]float64, s.rt.Pool().Workers())
	err := s.rt.Pool().Run(ctx, (n+block-1)/block, func(worker, b int) {
		if partial[worker] == nil {
			partial[worker] = make([]float64, size)
		}
		counts := partial[worker]
		supported := make([][]int, len(parties))
		for i := b * block; i < min((b+1)*block, n); i++ {
			for x, l := range parties {
				supported[x] = supported[x][:0]
				for a := range k {
					if f.supports(reportSeed(l, i), int(reports[l][i]), a) {
						supported[x] = append(supported[x], a)
					}
				}
			}
			for _, a := range supported[0] {
				if len(parties) == 1 {
					counts[a]++
					continue
				}
				for _, b := range supported[1] {
					counts[a*k+b]++
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	total := make([]float64, size)
	for _, p := range partial {
		for i, x := range p { // counts are integers, so their order does not matter
			total[i] += x
		}
	}
	return total, nil
}

// sketches runs the sketch protocols.
func (s *session) sketches(ctx context.Context) (*Grid, error) {
	release, err := s.exchange(ctx)
	if err != nil {
		return nil, err
	}
	s.warn(release)
	grid, err := s.estimate(ctx, release)
	if err == nil && grid.Len() == maxSupport {
		s.notes = append(s.notes, fmt.Sprintf("the support was cut to the %d cells of the largest pair weights", maxSupport))
	}
	return grid, err
}

// estimate is phase 3.
func (s *session) estimate(ctx context.Context, r *Release) (*Grid, error) {
	span := s.rt.Begin(engine.PhaseWeights, 0, engine.Server)
	defer s.rt.End(span)
	return r.Estimate(ctx, s.rt.Pool(), s.job.Estimator)
}

// exchange is phases 1 and 2 of all parties; it returns what the server got.
func (s *session) exchange(ctx context.Context) (*Release, error) {
	j, plan := s.job, s.plan
	span := s.rt.Begin(engine.PhaseSketch, 0, engine.Server)
	sk, err := newSketcher(ctx, s.rt.Pool(), s.secret, j.records(), j.ID)
	s.rt.End(span)
	if err != nil {
		return nil, err
	}
	proven := j.Calibration == privacy.Proven
	messages := make([]*Message, plan.parties)
	for l, p := range s.parties {
		if err := s.localCenters(ctx, p, proven); err != nil {
			return nil, err
		}
		sizes, err := p.assign(ctx)
		if err != nil {
			return nil, err
		}
		var m Message
		if proven {
			bound := p.bound("sizes of the local clusters", 0)
			sigma := gaussianScale(bound.L2(), plan.localMu*math.Sqrt(sizeShare))
			if _, err := p.addGaussian(p.stream(0, "sizes"), sigma, sizes, 0); err != nil {
				return nil, err
			}
			p.enter(bound, "discrete-gaussian", sigma, "records", 1, 1)
			m.Sizes, m.SizeBits = sizes, releaseBits
		}
		if m.Sets, err = s.encodeMemberships(ctx, sk, p); err != nil {
			return nil, err
		}
		if messages[l], err = s.send(p, &m); err != nil {
			return nil, err
		}
		if err := s.enterParty(p); err != nil {
			return nil, err
		}
	}
	release := s.receive(messages)
	if !proven {
		if release.Records, err = s.releaseRecords(); err != nil {
			return nil, err
		}
		if err := s.enterParty(s.parties[0]); err != nil {
			return nil, err
		}
	}
	return release, s.enterSketches()
}

// localCenters is phase 1 of the sketch protocols.
func (s *session) localCenters(ctx context.Context, p *party, proven bool) error {
	j := s.job
	if j.ExactCenters {
		return s.exactCenters(ctx, p)
	}
	if !proven {
		return s.laplaceCenters(ctx, p, s.plan.eps1)
	}
	rounds, radius := 1, gridRadius
	if j.Start == StartForest || j.Start == StartAuto && p.d() > gridColumns {
		if err := p.startForest(ctx, p.gaussianForest(forestLevels, s.plan.localMu*math.Sqrt(startShare))); err != nil {
			return err
		}
		radius = forestRadius
		if p.d() > gridColumns {
			rounds = 2
			if j.Budget.Epsilon >= 1 {
				rounds = refineRounds
			}
		}
	} else if err := p.startGrid(ctx, s.plan.localMu); err != nil {
		return err
	}
	return p.refine(ctx, rounds, radius, s.plan.localMu)
}

// encodeMemberships is phase 2 for one party: its sketches under the joint keys,
// or under those of each pair that it belongs to.
func (s *session) encodeMemberships(ctx context.Context, sk *sketcher, p *party) ([]*Sketches, error) {
	span := s.rt.Begin(engine.PhaseSketch, 0, p.index)
	defer s.rt.End(span)
	if !s.plan.pairKeys {
		set, err := s.sketchSet(ctx, sk, p, 0, s.plan.parties, p.index)
		return []*Sketches{set}, err
	}
	var sets []*Sketches
	for other := range s.plan.parties {
		if other == p.index {
			continue
		}
		at := 0
		if other < p.index {
			at = 1
		}
		index := pairIndex(s.plan.parties, min(other, p.index), max(other, p.index))
		set, err := s.sketchSet(ctx, sk, p, 1+index, 2, at)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// sketchSet makes a party's sketches under key set number set, which `parties`
// parties share and in which it has position `at`.
func (s *session) sketchSet(ctx context.Context, sk *sketcher, p *party, set, parties, at int) (*Sketches, error) {
	var phantoms cellPhantoms
	if s.job.Calibration == privacy.Proven {
		phantoms = cellPhantoms{parties: parties, at: at, perCell: s.plan.phantoms}
	}
	e, err := sk.encode(ctx, set, s.plan.sketches, p.labels, p.clusters, phantoms)
	if err != nil {
		return nil, err
	}
	if s.job.Calibration != privacy.Proven {
		e.addOwnPhantoms(p.stream(set, "phantoms"), s.plan.phantoms)
	}
	return sk.sketches(ctx, e, s.plan.law, s.plan.floor)
}

// receive is what the server makes of the messages.
func (s *session) receive(messages []*Message) *Release {
	plan := s.plan
	r := &Release{Parties: plan.parties, Clusters: plan.clusters}
	view := func(sketches ...*Sketches) *View {
		return &View{Law: plan.law, Sketches: sketches, Phantoms: plan.phantoms, Shared: s.job.Calibration == privacy.Proven, Floor: plan.floor}
	}
	if plan.pairKeys {
		for l1 := range plan.parties {
			for l2 := l1 + 1; l2 < plan.parties; l2++ {
				r.Pairs = append(r.Pairs, view(messages[l1].Sets[l2-1], messages[l2].Sets[l1]))
			}
		}
	} else {
		r.Joint = view()
		for _, m := range messages {
			r.Joint.Sketches = append(r.Joint.Sketches, m.Sets[0])
		}
	}
	if messages[0].Sizes == nil {
		return r
	}
	// Every party counts all records; noisy sizes below 1 say no more than 1.
	for _, m := range messages {
		margin := floats(m.Sizes, m.SizeBits)
		for a, x := range margin {
			r.Records += x / float64(plan.parties)
			margin[a] = max(x, 1)
		}
		r.Margins = append(r.Margins, margin)
	}
	r.Records = max(r.Records, 1)
	for _, margin := range r.Margins {
		rescale(margin, r.Records)
	}
	return r
}

// Estimate turns the release into the weights of the grid.
func (r *Release) Estimate(ctx context.Context, run Runner, e Estimator) (*Grid, error) {
	switch {
	case e == estimatorBasic:
		return BasicEstimate(r.Joint, r.Records)
	case e == EstimatorPaper:
		return TwoPartyEstimate(ctx, run, r)
	case e == EstimatorPair:
		return PairEstimate(ctx, run, r)
	case r.Joint != nil:
		return JointEstimate(ctx, run, r.Joint, r.Records, r.Margins)
	}
	return PairwiseJointEstimate(ctx, run, r)
}

// enterSketches adds the sketches to the ledger.
func (s *session) enterSketches() error {
	j, plan := s.job, s.plan
	condition := []string{"the keys and the ids stay among the parties: who holds the keys can test a sketch for any id",
		"the keyed arrivals are AES-128, so the guarantee is computational"}
	bound := tableBound(j.Protocol, j.Calibration, "sketches", privacy.Shape{D: j.Data.Points.D, K: plan.clusters, Bound: 1})
	if j.Calibration == privacy.Proven {
		e := bound.Entry("sketches of all parties, jointly", "fm", "L1")
		e.Viewers, e.Scale, e.Unit, e.Cost = []string{"server"}, plan.phantoms, "phantoms per cell", plan.sketchSpec(j)
		e.Conditions = condition
		return s.ledger.Add(e)
	}
	for l := range plan.parties {
		e := bound.Entry(partyName(l)+": sketches of the local clusters", "fm", "L1")
		e.Viewers, e.Scale, e.Unit = []string{"server"}, plan.phantoms, "phantoms per sketch"
		e.Cost, e.Unbounded, e.Conditions = privacy.Spec{Family: "pure", Epsilon: plan.eps2}, true, condition
		e.Remark = fmt.Sprintf("the claimed total composes the parties' sketches as if their keys were independent; they share them: no Renyi bound holds for the joint release, "+
			"and two parties' sketches alone have a true epsilon of at least about %.2g at delta %.2g (T3)", s.trueEpsilon(), j.Budget.Delta)
		if err := s.ledger.Add(e); err != nil {
			return err
		}
	}
	return nil
}

// trueEpsilon is about the epsilon, at the run's delta, of the claimed sketches
// of two parties on the worst pair of data sets, from the tail of their joint
// law (THEOREMS.md, T3): delta(eps) ~ M/(2 gamma n_p^2 (e^eps - 1)). It leaves
// out all but that tail, so it errs on the low side.
func (s *session) trueEpsilon() float64 {
	return math.Log1p(float64(s.plan.sketches) / (2 * s.job.Gamma * s.plan.phantoms * s.plan.phantoms * s.job.Budget.Delta))
}

// warn notes settings in which the sketches can say little.
func (s *session) warn(r *Release) {
	views := r.Pairs
	if r.Joint != nil {
		views = []*View{r.Joint}
	}
	// The paper's estimators see the records through the union of almost all
	// sketches; the likelihoods see each cell against its own background.
	phantoms, records, where := views[0].inUnion(), r.Records, "the union of sketches that an estimate rests on holds"
	if s.job.Estimator == EstimatorEM || s.job.Estimator == EstimatorPair && views[0].Shared {
		phantoms, records, where = views[0].inCell(), r.Records/float64(r.Clusters), "each cell of the grid holds"
	}
	if phantoms > records {
		s.notes = append(s.notes, fmt.Sprintf("%s %.0f phantoms for about %.0f records: expect weights that are mostly noise; use more records, a larger epsilon, a smaller local-k or fewer sketches", where, phantoms, records))
	}
	if s.plan.pairKeys {
		s.notes = append(s.notes, fmt.Sprintf("each of the %d pairs of parties has keys of its own", len(r.Pairs)))
		if _, ok := product(r.Clusters, r.Parties, maxDense); !ok {
			s.notes = append(s.notes, fmt.Sprintf("the grid of %d^%d cells is not built: its support is the cells that no pair of parties excludes, at most %d", r.Clusters, r.Parties, maxSupport))
		}
	}
}

// cluster is phase 4: weighted k-means on the grid, whose points are the
// concatenated local centres.
func (s *session) cluster(ctx context.Context, grid *Grid) (*synopsis.Solution, error) {
	span := s.rt.Begin(engine.PhaseSearch, 0, engine.Server)
	defer s.rt.End(span)
	w := gridPoints(grid, s.received, s.job.Data.Points.D, s.job.Split)
	return synopsis.Search(ctx, s.rt.Pool(), w, s.job.K, synopsis.SearchOptions{Starts: 20}, s.streams.Stream(-1, 0, "final search"))
}

// Server is the server's side of a sketch protocol after the parties have sent
// their messages, for code that drives the protocol step by step.
type Server struct {
	session *session
	release *Release
}

// Exchange runs the parties of a sketch protocol (phases 1 and 2).
func (j *Job) Exchange(ctx context.Context, rt *engine.Runtime) (*Server, error) {
	if err := j.Validate(); err != nil {
		return nil, err
	}
	if !j.Protocol.sketches() {
		return nil, fault.Request("method", string(j.Protocol)+" sends no sketches", "use sketch or sketch-basic")
	}
	s, err := newSession(j, rt)
	if err != nil {
		return nil, err
	}
	release, err := s.exchange(ctx)
	return &Server{s, release}, err
}

// Weights estimates the weights of the grid (phase 3).
func (v *Server) Weights(ctx context.Context) (*Grid, error) {
	return v.session.estimate(ctx, v.release)
}

// Cluster runs weighted k-means on the grid (phase 4).
func (v *Server) Cluster(ctx context.Context, g *Grid) (*synopsis.Solution, error) {
	return v.session.cluster(ctx, g)
}

// gridPoints lists the cells of positive weight as points with all d columns in
// the data's order.
func gridPoints(grid *Grid, centers [][]float32, d int, split Split) *synopsis.Weighted {
	w := &synopsis.Weighted{D: d}
	point := make([]float64, d)
	for i, weight := range grid.Weights {
		if weight <= 0 {
			continue
		}
		for l, a := range grid.Cell(i) {
			columns := split[l]
			for h, column := range columns {
				point[column] = float64(centers[l][int(a)*len(columns)+h])
			}
		}
		w.Append(point, weight)
	}
	return w
}

// result fills in the engine's result.
func (s *session) result(ctx context.Context, grid *Grid, solution *synopsis.Solution) (*engine.Result, error) {
	j := s.job
	d := j.Data.Points.D
	r := &engine.Result{
		Method: j.Method(), N: j.records(), D: d, K: j.K, Parties: s.plan.parties, Iterations: 1,
		Calibration: string(privacy.None), Comm: s.comm, Seed: j.Seed, Notes: s.notes, Ledger: &s.ledger,
		Details: map[string]any{"local_k": s.plan.clusters, "grid_cells": grid.Len(), "weights": solution.Weights},
	}
	if j.Protocol.Private() {
		r.Calibration = string(j.Calibration)
		r.Epsilon, r.Delta = &j.Budget.Epsilon, &j.Budget.Delta
		r.Sizes = solution.Weights
	}
	if j.Protocol.sketches() {
		r.Details["sketches"], r.Details["gamma"] = s.plan.sketches, j.Gamma
		r.Details["phantoms"], r.Details["estimator"] = s.plan.phantoms, string(j.Estimator)
	}
	normalised := make([]float64, len(solution.Centers))
	for c := range j.K {
		for h := range d {
			normalised[c*d+h] = float64(dataset.Truncate(solution.Centers[c*d+h], j.Data.FractionBits))
		}
		row := normalised[c*d : (c+1)*d]
		if j.Data.Bounds.Lo != nil {
			row = j.Data.Bounds.Denormalise(nil, row)
		}
		r.Centroids = append(r.Centroids, slices.Clone(row))
	}
	if j.Data.Bounds.FromData {
		s.ledger.Note("bounds come from the data")
	}
	if j.Seed != nil && j.Protocol.Private() {
		s.ledger.Note("the seed: whoever knows it can subtract the noise and test the sketches, so a run with one is a simulation")
	}
	s.ledger.Note("the number of records is taken as public for defaults such as delta and the number of local clusters")
	if j.NoQuality {
		return r, nil
	}
	span := s.rt.Begin(engine.PhasePostprocess, 0, engine.Server)
	defer s.rt.End(span)
	s.ledger.Note("quality, and the relative intersection error, are computed from the private data")
	r.Details["relative_intersection_error"] = IntersectionError(grid, s.truth(), j.records())
	part := dataset.Part{Points: j.Data.Points, FractionBits: j.Data.FractionBits}
	var err error
	r.Quality, err = engine.Measure(ctx, s.rt.Pool(), engine.Evaluation{Parts: []dataset.Part{part}, Labels: j.Labels, Clamped: j.Data.Clamped},
		normalised, j.K)
	return r, err
}

// IntersectionError is the relative intersection error of Sketch-V, section
// 6.2: (1/n) sum over cells of |w - truth|.
func IntersectionError(w, truth *Grid, n int) float64 {
	sum := 0.0
	i, t := 0, 0
	for i < w.Len() || t < truth.Len() {
		order := 0
		switch {
		case i == w.Len():
			order = 1
		case t == truth.Len():
			order = -1
		default:
			order = slices.Compare(w.Cell(i), truth.Cell(t))
		}
		switch {
		case order < 0:
			sum += math.Abs(w.Weights[i])
			i++
		case order > 0:
			sum += truth.Weights[t]
			t++
		default:
			sum += math.Abs(w.Weights[i] - truth.Weights[t])
			i++
			t++
		}
	}
	return sum / float64(n)
}
