package lloyd

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/secagg"
	"github.com/cohort-engine/cohort/kernels"
)

// Plan is what a job will do: its sizes, radii, noise and releases. It does not
// change, and may be run again.
type Plan struct {
	*protocol.Plan
	job        *Job // with its defaults
	n, d, k, m int
	fraction   int
	scale      float64 // 2^fraction
	rounds     int
	// plain says that this is plain k-means: so many starts of at most so many rounds.
	plain            bool
	starts, perStart int
	exchanges        int // of clusters of the best start
	trained, batch   int // records that rounds go over, and rounds on batches
	// weighted says that records have weights, which count in multiples of weightUnit without a budget; else it is 1.
	weighted   bool
	weightUnit float64
	// exclusivity is the number of clusters that the calibration lets a record
	// contribute to: all of them under the papers' nonexclusive assignment.
	exclusivity int
	lo, hi      int       // the least and the greatest size of a cluster at any client
	sizes       [][2]int  // least and greatest size of a cluster, by client
	stages      []int     // the first rounds of those that have one radius and one noise
	radius      []float64 // R_t of relative, or the largest distance of constrained assignment, by stage; nil for none
	parts       []part    // what a round releases, in the order of the message
	length      int       // words of a message
	givenDelta  float64   // what the caller asked for, before defaults

	release *protocol.Release  // of every round
	groups  [][]protocol.Group // of the release, by stage; see layout
	seeds   *protocol.Release  // the records that centroids start at
	drawn   *protocol.Release  // the centroids that the server draws; nil if the clients do
	quality *step.Quality      // nil if left out
}

// part is one vector of a round's release.
type part struct {
	name           string
	offset, length int
	unit           float64      // what one integer unit is worth
	scales         []noiseScale // by stage; empty without noise
	rule           privacy.Rule // what the scales come from
}

// sensitivity bounds what one record can change of a part, in real units.
type sensitivity struct {
	joint bool   // the other part's entry covers it
	norm  string // "L1" or "L2"
	value float64
}

// newPlan works out the rounds, the noise and the releases of a checked job with
// defaults. givenDelta is the caller's.
func newPlan(j *Job, givenDelta float64) (*Plan, error) {
	p := &Plan{job: j, n: j.PublicRecords(), d: j.D(), k: j.K, m: len(j.Clients), fraction: j.Clients[0].FractionBits,
		givenDelta: givenDelta}
	p.scale = math.Ldexp(1, p.fraction)
	p.weighted = j.Weighted()
	p.setSizes()
	p.exclusivity = j.Exclusivity
	if j.NonExclusive && j.Calibration != privacy.Proven {
		p.exclusivity = j.K
	}
	p.Plan = &protocol.Plan{Method: string(j.Method), Calibration: privacy.None, Private: j.Method.Private(),
		K: p.k, D: p.d, N: p.n, Parties: p.m, FractionBits: p.fraction, Ring: j.Aggregator == ByRing,
		Servers: j.Servers,
		Leaves:  p.leaves(),
		Seed:    j.Seed, PublicSeed: protocol.NewPublicSeed(j.Seed)}
	p.plain, p.starts = j.improves(), j.starts()
	p.trained, p.batch = j.trained(), j.batch()
	if err := p.countRounds(); err != nil {
		return nil, err
	}
	if p.perStart = p.rounds; p.batch > 0 {
		p.perStart++ // over all records
	}
	p.exchanges = j.exchanges()
	p.rounds = p.perStart * (p.starts + p.exchanges)
	p.Rounds = p.rounds
	p.setStages()
	p.cutParts()
	if j.Metric == Cosine {
		p.Metric = string(Cosine)
	}
	if j.Method.Constrained() {
		p.ClusterSizes, p.Unassigned = &[2]int{p.lo, p.hi}, p.unassigned()
	}
	p.Coordinated = !p.Ring && p.Servers == 0 && (p.m > 1 || j.Aggregator == Naive || p.Private && !p.alone())
	if p.Private {
		if err := p.addNoise(); err != nil {
			return nil, err
		}
		p.doubt()
	}
	ring, err := secagg.ParseRing(j.RingBits)
	if err != nil {
		return nil, err
	}
	units, err := p.weigh()
	if err != nil {
		return nil, err
	}
	p.Capacity = secagg.Capacity{Ring: ring, Records: units, PerRecord: p.perRecord(), Noise: p.noiseReach()}
	if err := p.Capacity.Check(); err != nil {
		return nil, err
	}
	return p, p.addReleases()
}

// setStages cuts the rounds where their radius changes or a client fails, and sets the radius of each stage, where
// there is one.
func (p *Plan) setStages() {
	j := p.job
	p.stages, p.radius = append([]int{0}, p.Leaves...), nil
	switch {
	case j.Schedule == LaterCode:
		p.stages = append(p.stages, 1)
	case j.Schedule != "":
		for t := range p.rounds {
			p.stages = append(p.stages, t)
		}
	}
	slices.Sort(p.stages)
	p.stages = slices.DeleteFunc(slices.Compact(p.stages), func(t int) bool { return t < 0 || t >= p.rounds })
	if j.Schedule == "" && j.Radius == 0 {
		return
	}
	for _, t := range p.stages {
		r := j.Radius
		if j.Schedule != "" {
			r = j.Schedule.radius(t, p.k, p.d)
		}
		p.radius = append(p.radius, r)
	}
}

// stage is that of round t.
func (p *Plan) stage(t int) int {
	at, first := slices.BinarySearch(p.stages, t)
	if !first {
		at--
	}
	return at
}

// until is the round after a stage, at most one of so many.
func (p *Plan) until(stage, rounds int) int {
	if stage+1 < len(p.stages) {
		return min(p.stages[stage+1], rounds)
	}
	return rounds
}

// radiusOf is the radius of round t.
func (p *Plan) radiusOf(t int) float64 { return p.radius[p.stage(t)] }

// setSizes sets the sizes of clusters.
func (p *Plan) setSizes() {
	p.lo = math.MaxInt
	for i := range p.m {
		lo, hi := p.job.sizes(i)
		p.sizes = append(p.sizes, [2]int{lo, hi})
		p.lo, p.hi = min(p.lo, lo), max(p.hi, hi)
	}
}

// together is the least, or the greatest, size of a cluster over all clients.
func (p *Plan) together(which int) (size int) {
	for _, s := range p.sizes {
		size += s[which]
	}
	return size
}

// unassigned is how many records are left over where every cluster has as many as it
// may: of the nonexclusive assignment, as many as it must.
func (p *Plan) unassigned() int {
	left := 0
	for i := range p.job.Clients {
		most := p.sizes[i][1]
		if p.job.NonExclusive {
			most = p.sizes[i][0]
		}
		left += max(0, p.held(i)-p.k*most)
	}
	return left
}

// held is how many records a client has, as far as that is public: its share of a number that is stated.
func (p *Plan) held(client int) int {
	j := p.job
	if j.Records == 0 {
		return j.Clients[client].Points.N
	}
	return int(float64(p.n) / j.shares(1, client))
}

// cutParts sets what a round releases.
func (p *Plan) cutParts() {
	j, kd := p.job, p.k*p.d
	if j.Release == Centroid {
		p.parts = []part{{name: "centroids", length: kd, unit: 1 / p.scale}}
	} else {
		p.parts = []part{{name: "sums", length: kd, unit: 1 / p.scale},
			{name: "counts", offset: kd, length: p.k, unit: 1}}
		if j.Method == Relative {
			p.parts[0].name, p.parts[1].name = "relative sums", "relative counts"
		}
		if p.weighted && p.Private || p.Private && j.Mechanism == protocol.Gaussian && j.Calibration == privacy.Proven {
			// Counts on the fine grid make the slack of discretisation vanish, and have room for weights.
			p.parts[1].unit = 1 / p.scale
		}
	}
	last := p.parts[len(p.parts)-1]
	p.length = last.offset + last.length
}

// leaves is, by client, the round from which a simulated failure keeps it away.
func (p *Plan) leaves() []int {
	if len(p.job.Drops) == 0 {
		return nil
	}
	leaves := make([]int, p.m)
	for i := range leaves {
		leaves[i] = -1
	}
	for _, d := range p.job.Drops {
		if l := &leaves[d.Client]; *l < 0 || d.Iteration < *l {
			*l = d.Iteration
		}
	}
	return leaves
}

// present is the number of clients that take part in a round.
func (p *Plan) present(t int) int {
	if p.Leaves == nil {
		return p.m
	}
	n := 0
	for q := range p.m {
		if p.Present(protocol.Role(q), t) {
			n++
		}
	}
	return n
}

// shares is the number of clients whose shares of the noise make up the whole in a
// round; 0 if one draw is the whole. The shares of the round in which a client
// fails are drawn after the failure is known: a sum that lacks shares is never
// unmasked.
func (p *Plan) shares(t int) int {
	if !p.job.Method.Private() {
		return 0
	}
	return p.drawers(t).Shares()
}

// drawers are those who draw the noise of a round: clients, or the servers.
func (p *Plan) drawers(t int) protocol.Drawers {
	d := protocol.Drawers{By: p.job.Noise, All: p.present(t), Stay: p.least(t), Colluders: p.job.Colluders}
	if d.By == protocol.AmongServers {
		d.All, d.Stay = p.Servers, p.Servers
	}
	return d
}

// least is the least number of clients in the sum of a round.
func (p *Plan) least(t int) int {
	if p.job.Survivors > 0 {
		return min(p.present(t), p.job.Survivors)
	}
	return p.present(t)
}

// addReleases adds to the plan what leaves a party.
func (p *Plan) addReleases() error {
	j := p.job
	if looks(j.Init) && (p.plain || j.Start == nil) {
		p.seeds = p.Add(&protocol.Release{Name: "first centroids", Times: p.seedSums(), Before: true})
	}
	if j.InitBy == ByTheirServer {
		p.drawn = p.Add(&protocol.Release{Name: "first centroids of the server", Before: true})
		p.Messages = protocol.NoMessages(p.m)
		for q := range p.m {
			p.Messages.BytesReceived[q] = int64(8 * p.k * p.d)
		}
		p.Messages.Rounds = 1
		if j.Aggregator == Naive {
			p.addReports()
		}
	}
	makers, name := protocol.Nobody, p.parts[0].name
	if len(p.parts) > 1 {
		name += " and " + p.parts[1].name
	}
	if p.Private {
		p.Calibration = j.Calibration
		p.Budget = privacy.Budget{Epsilon: j.Budget.Epsilon, Delta: p.delta()}
		makers = j.Noise.Makers()
		if p.alone() {
			makers = protocol.Holder
		}
		p.ServerNoise = p.serverNoise
	}
	p.release = p.Add(&protocol.Release{Name: name, Makers: makers, Times: p.rounds, Entries: p.entries(p.rounds)})
	if j.Aggregator != Naive {
		p.release.Words = p.length
	}
	if err := p.layOut(); err != nil {
		return err
	}
	p.note()
	if !j.NoQuality {
		limit := p.limit()
		if !j.Method.Private() || j.Post != step.Keep {
			limit = boxBound
		}
		var err error
		if p.quality, err = step.PlanQuality(p.Plan, limit, j.Labels); err != nil {
			return err
		}
	}
	return nil
}

// addReports counts the messages of naive rounds.
func (p *Plan) addReports() {
	for q := range p.m {
		rounds := p.rounds
		if p.Leaves != nil && p.Leaves[q] >= 0 {
			rounds = min(rounds, p.Leaves[q])
		}
		p.Messages.BytesSent[q] += int64(rounds) * int64(8*p.length)
		p.Messages.BytesReceived[q] += int64(rounds) * int64(8*p.k*p.d)
	}
	p.Messages.Rounds += p.rounds
}

// serverNoise is what the server draws for its t-th sum.
func (p *Plan) serverNoise(t int) []protocol.Group {
	if p.release.Makers != protocol.ServerAlone && p.release.Makers != protocol.ServerShares || t >= p.rounds {
		return nil
	}
	return p.layout(t)
}

// layout are the groups of round t: without noise all rounds have the same.
func (p *Plan) layout(t int) []protocol.Group {
	if !p.Private {
		t = 0
	}
	return p.groups[p.stage(t)]
}

// layOut sets the groups of the rounds' release; stages of one noise share their
// distributions.
func (p *Plan) layOut() error {
	j := p.job
	last := make([]*protocol.Distribution, len(p.parts))
	for at, t := range p.stages {
		groups := make([]protocol.Group, len(p.parts))
		for i := range p.parts {
			part := &p.parts[i]
			groups[i] = protocol.Group{Stream: part.name, Values: part.length}
			if part.offset > 0 && !p.weighted {
				groups[i].Shift = p.countShift()
			}
			if !p.Private {
				continue
			}
			noise := protocol.Noise{Mechanism: j.Mechanism, Scale: part.scales[at].scale / part.unit,
				Shares: p.shares(t), Rounding: rounding(j.Calibration)}
			if last[i] == nil || last[i].Noise != noise {
				var err error
				if last[i], err = protocol.NewDistribution(noise, nil); err != nil {
					return err
				}
			}
			groups[i].Noise = last[i]
		}
		if p.groups = append(p.groups, groups); !p.Private {
			break
		}
	}
	return nil
}

// rounding is how a calibration turns noise into integers.
func rounding(c privacy.Calibration) protocol.Rounding {
	switch c {
	case privacy.Claimed:
		return protocol.Nearest
	case privacy.Published:
		return protocol.TowardZero
	}
	return protocol.Exact
}

// countShift is log2 of a record in units of the count part.
func (p *Plan) countShift() uint { return uint(math.Round(-math.Log2(p.parts[1].unit))) }

// countRounds applies the method's rule.
func (p *Plan) countRounds() error {
	j := p.job
	p.rounds = j.Iterations
	switch {
	case p.rounds > 0:
	case p.batch > 0:
		p.rounds = min((batchPasses*p.trained+p.batch-1)/p.batch, mostBatches)
	case p.plain:
		p.rounds = plainIterations
	case !j.Method.Private():
		p.rounds = maxIterations
	case j.Method == Relative && j.Schedule == LaterCode && j.Mechanism == protocol.Gaussian:
		mu, err := privacy.MuOf(j.Budget, 0)
		if err != nil {
			return unpayable(err)
		}
		p.rounds = iterationsLater(1/mu, p.n, p.d, p.k)
	case j.Method == Relative && j.Schedule == LaterCode:
		p.rounds = iterationsSumCount(j.Budget.Epsilon, p.n, p.d, p.k, 1)
	case j.Method == Relative:
		p.rounds = maxIterations
	case j.Method.Constrained() && j.Calibration == privacy.Proven:
		return p.roundsFromNoise()
	case j.Release == Centroid && j.Method == SuLloyd:
		p.rounds = iterationsCentroid(j.Budget.Epsilon, p.d, p.k, 1, 1) // a cluster may be one record
	case j.Release == Centroid:
		p.rounds = iterationsCentroid(j.Budget.Epsilon, p.d, p.k, p.exclusivity, p.m*p.lo)
	default:
		p.rounds = iterationsSumCount(j.Budget.Epsilon, p.n, p.d, p.k, p.exclusivity)
	}
	return nil
}

// Run implements engine.Plan.
func (p *Plan) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	return p.Connect(ctx, rt, protocol.Options{Views: p.job.Views})
}

// Connect implements protocol.Runner.
func (p *Plan) Connect(ctx context.Context, rt *engine.Runtime, o protocol.Options) (*engine.Result, error) {
	s, _ := p.start(rt, o)
	return s.Finish(ctx, p.job.Bounds)
}

// Trial runs the plan with another seed, without a result, for what the options
// record.
func (p *Plan) Trial(ctx context.Context, rt *engine.Runtime, seed uint64, o protocol.Options) error {
	again := *p
	again.Plan = p.Plan.Again(seed)
	s, _ := again.start(rt, o)
	defer s.Close()
	return s.Run(ctx)
}

// start makes the roles of a run: each client has its own records.
func (p *Plan) start(rt *engine.Runtime, o protocol.Options) (*protocol.Session, []*client) {
	rt.Reserve((p.perStart + 1) * (p.m + 1)) // several starts seldom take more than one may
	programs, clients := make([]protocol.Program, p.m), make([]*client, p.m)
	playing := p.m
	if o.Seat != nil {
		playing = 1
	}
	// Where one worker does the rounds of all clients, their sums need not lie apart.
	accs := kernels.NewAccumulators(playing, p.k, p.d, p.fraction, o.Connect != nil || p.weighted ||
		p.job.Method.Constrained() || !p.small(rt.Pool().Workers()))
	privates := protocol.NewPrivates(playing, p.length)
	for i, part := range p.job.Clients {
		if !o.Plays(protocol.Role(i)) {
			continue
		}
		own := step.Records{Part: o.Records(part), Labels: p.job.Labels}
		if i == 0 {
			own.Clamped = p.job.Clamped
		}
		clients[i] = newClient(p, own, &accs[i%playing], &privates[i%playing])
		programs[i] = clients[i].run
	}
	var server protocol.Program
	switch {
	case p.job.Aggregator == Naive:
		server = newNaiveServer(p).run
	case p.Servers > 0:
		server = protocol.ServeShares
	case p.drawn != nil:
		server = p.serveStart
	case p.Coordinated:
		server = protocol.Serve
	}
	return protocol.Start(rt, p.Plan, programs, server, o), clients
}
