package ckks

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Mode says who holds the secret key.
type Mode string

const (
	// TwoParty: party 0 (Alice) computes on the columns of party 1 (Bob), who
	// holds the key.
	TwoParty Mode = "two-party"
	// ServerAided: more parties encrypt their columns under Bob's key and send
	// them to Alice; Alice and Bob must not collude.
	ServerAided Mode = "server-aided"
	// Multiparty: parties 1, 2, ... share the key; each decryption needs all of
	// them, or Threshold of them.
	Multiparty Mode = "multiparty"
)

// Argmin says how the nearest centroid is found under encryption.
type Argmin string

const (
	// Pairs compares pairs of clusters, a ciphertext per pair, and multiplies.
	Pairs Argmin = "pairs"
	// Rank is the paper's way: squared distances, k^2 comparisons packed into
	// one ciphertext per few points, rank and indicator.
	Rank Argmin = "rank"
)

// Job is one clustering under homomorphic encryption (CKKS-V). Its zero fields
// mean the documented defaults.
type Job struct {
	// Problem's Clients is one part with the columns of all parties; party 0 of Columns
	// computes. Its K is 2 to maxClusters. Its Iterations default to 10 without noise and 4
	// with, but 3 below epsilon 0.75 and 6 from epsilon 3 on. Its Calibration is Proven,
	// Claimed or None: without noise, and without privacy for the centroids. Its Start lies
	// in [-1, 1]. Its Colluders are of the parties that draw noise: the shares of all the
	// others make it up.
	protocol.Problem
	// Mode defaults to TwoParty for two parties and ServerAided for more.
	Mode Mode
	// Threshold, in Multiparty mode, is the number of key holders that a
	// decryption needs; 0 means all. Online lists the key holders (1, 2, ...)
	// that take part in decryptions; nil means the first Threshold ones.
	Threshold int
	Online    []int
	// Argmin is Pairs (default) or Rank.
	Argmin Argmin
	// KeepPairs compares every pair of clusters, also those whose soft cells do
	// not meet.
	KeepPairs bool
	// Init is step.Sphere (default) or step.Random.
	Init step.Init
	// Post is what happens to centroids outside the box: step.Fold (default), Truncate or
	// Keep (clamped, since comparisons need them inside).
	Post step.Post
	// Networks are the links for which transfer times are modelled; nil means
	// all of Networks().
	Networks []Network
	// OnRound, if set, is called after each round.
	OnRound func(Round)
	// Tap, if set, sees every message.
	Tap func(Envelope, []byte)

	// chain overrides the choice of primes in tests, without the security check.
	chain *Chain
}

// Round is what is known after one round.
type Round struct {
	Index      int         `json:"index"`
	Pairs      int         `json:"pairs"`
	Depth      int         `json:"depth"`
	Degree     int         `json:"degree"` // of the sign
	Operations Operations  `json:"operations"`
	Centroids  [][]float64 `json:"-"`
}

// name is what results call the method.
const name = "ckks"

func (j *Job) mode() Mode {
	switch {
	case j.Mode != "":
		return j.Mode
	case len(j.Columns) > 2:
		return ServerAided
	}
	return TwoParty
}

func (j *Job) argmin() Argmin {
	if j.Argmin == "" {
		return Pairs
	}
	return j.Argmin
}

func (j *Job) rounds() int {
	switch {
	case j.Iterations > 0:
		return j.Iterations
	case !j.private():
		return 10
	case j.Budget.Epsilon >= 3:
		return 6
	case j.Budget.Epsilon < 0.75:
		return 3
	}
	return 4
}

func (j *Job) post() step.Post { return cmp.Or(j.Post, step.Fold) }

func (j *Job) calibration() privacy.Calibration { return cmp.Or(j.Calibration, privacy.Proven) }

// private tells whether the run adds noise.
func (j *Job) private() bool { return j.Calibration != privacy.None }

func (j *Job) neighbours() privacy.Neighbours { return cmp.Or(j.Neighbours, privacy.AddRemove) }

// threshold is the number of key holders that a decryption needs.
func (j *Job) threshold() int {
	switch {
	case j.mode() != Multiparty:
		return 1
	case j.Threshold == 0:
		return len(j.Columns) - 1
	}
	return j.Threshold
}

// takes says what the method takes of a problem.
var takes = protocol.Takes{Private: true, Columns: true, Iterations: true, Start: true, Colluders: true, Counted: true,
	Quiet:      true,
	Mechanisms: []protocol.Mechanism{protocol.Gaussian}}

// check checks every field.
func (j *Job) check() error {
	if err := j.Check(name, takes); err != nil {
		return err
	}
	if err := j.own().Check(); err != nil {
		return err
	}
	d := j.D()
	seen := make([]bool, d)
	for p, cs := range j.Columns {
		if p > 0 && len(cs) == 0 && j.mode() != Multiparty {
			return fault.Request("ckks Columns", partyName(p)+" has none", "give every party at least one column")
		}
		for _, c := range cs {
			if c < 0 || c >= d || seen[c] {
				return fault.Request("ckks Columns", fmt.Sprintf("column %d of %s is out of range or taken", c+1, partyName(p)),
					"give every column to one party")
			}
			seen[c] = true
		}
	}
	switch {
	case len(j.Columns) < 2:
		return fault.Range("ckks parties", len(j.Columns), "at least 2")
	case slices.Contains(seen, false):
		return fault.Request("ckks Columns", fmt.Sprintf("column %d has no party", slices.Index(seen, false)+1),
			"give every column to one party")
	case j.K < 2 || j.K > maxClusters:
		return fault.Range("k", j.K, fmt.Sprintf("2 to %d, what the depth of the ciphertexts allows", maxClusters))
	case j.Iterations < 0 || j.Iterations > 1000:
		return fault.Range("iterations", j.Iterations, "0 (the default) to 1000")
	case j.Mode == TwoParty && len(j.Columns) != 2:
		return fault.Request("Mode", fmt.Sprintf("is two-party for %d parties", len(j.Columns)),
			"use server-aided or multiparty")
	case j.Argmin == Rank && j.private() && j.calibration() == privacy.Proven:
		return fault.Request("argmin", "is rank: a record's memberships by rank have no proven bound",
			"use pairs, or --calibration claimed to reproduce the paper")
	case j.Argmin == Rank && j.K > maxRankClusters:
		return fault.Range("k", j.K, fmt.Sprintf("at most %d with rank, which takes 3.5 GB of memory there of 1,000 "+
			"records; pairs take up to %d", maxRankClusters, maxClusters))
	}
	for i, x := range j.Start {
		if !(x >= -1 && x <= 1) {
			return fault.Request("start", fmt.Sprintf("centroid %d has the coordinate %g, outside [-1, 1]", i/d+1, x),
				"comparisons would leave their domain: give centroids inside the bounds")
		}
	}
	if err := j.validateHolders(); err != nil {
		return err
	}
	if j.private() && j.Budget.Delta == 0 {
		return fault.Request("delta", "is 0 and ckks adds Gaussian noise, which has no pure guarantee",
			"give a --delta such as 1e-5, or use a method with Laplace noise (sulloyd)")
	}
	return nil
}

func (j *Job) validateHolders() error {
	if j.mode() != Multiparty {
		if j.Threshold != 0 || len(j.Online) > 0 {
			return fault.Request("Threshold", "is given in "+string(j.mode())+" mode, where one party holds the key",
				"use multiparty mode")
		}
		return nil
	}
	holders := len(j.Columns) - 1
	t := j.threshold()
	if t < 1 || t > holders {
		return fault.Range("Threshold", t, fmt.Sprintf("1 to the %d key holders", holders))
	}
	for i, p := range j.Online {
		if p < 1 || p > holders || slices.Contains(j.Online[:i], p) {
			return fault.Range("Online", j.Online, fmt.Sprintf("different key holders of 1 to %d", holders))
		}
	}
	if len(j.Online) > 0 && len(j.Online) < t {
		return fault.Request("Online", fmt.Sprintf("has %d key holders and decryption needs %d", len(j.Online), t),
			"wait for more key holders, or lower the threshold and make new keys")
	}
	return nil
}

// jobPlan is a checked job with its primes, its noise and what it will release.
type jobPlan struct {
	*protocol.Plan
	job    *Job
	params *parameters
	cols   columns
	noise  noisePlan
	online []int // the parties that decrypt
	// setup is keys and encrypted columns, released a round's totals under both
	// sides' noise, opened the same where the computing party opens them, centroids
	// what is computed from them.
	setup, released, opened, centroids *protocol.Release
}

// Plan implements engine.Job: it chooses the primes and calibrates the noise.
func (j *Job) Plan() (engine.Plan, error) {
	if j == nil {
		return nil, protocol.ErrNoJob
	}
	pl, err := j.plan()
	if err != nil {
		return nil, err
	}
	return pl, nil
}

func (j *Job) plan() (*jobPlan, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	n, d := j.Clients[0].Points.N, j.Clients[0].Points.D
	pl := &jobPlan{job: j, Plan: &protocol.Plan{Method: name, Calibration: j.calibration(), Private: j.private(),
		K: j.K, D: d, N: n, Parties: len(j.Columns), FractionBits: j.Clients[0].FractionBits, Rounds: j.rounds(),
		Seed:       j.Seed,
		PublicSeed: protocol.NewPublicSeed(j.Seed)}}
	var chain Chain
	var err error
	switch {
	case j.chain != nil:
		chain = *j.chain
	case j.argmin() == Rank:
		chain = rankChain(j.K)
	default:
		if chain, err = chooseChain(j.pairsDepth()); err != nil {
			return nil, err
		}
	}
	if j.chain != nil {
		pl.params, err = buildParameters(chain)
	} else {
		pl.params, err = newParameters(chain)
	}
	if err != nil {
		return nil, err
	}
	failure := unlikely
	if j.private() {
		pl.Budget = j.Spends()
		failure = min(failure, roundingFailure*pl.Budget.Delta)
		if pl.noise, err = planNoise(j.calibration(), j.neighbours(), pl.Budget, j.rounds(), n, j.K, d,
			func(noise, failure float64) (arithmetic, bool) {
				return j.setting(pl.params, noise, failure).bound()
			}); err != nil {
			return nil, err
		}
		if s := pl.noise.trueSpec; s != nil { // of memberships in one cluster each
			s.Scale /= j.overlap()
		}
	}
	if pl.cols, err = j.columns(pl.params, failure); err != nil {
		return nil, err
	}
	pl.online = []int{1}
	if j.mode() == Multiparty {
		pl.online = nil
		for q := 1; q <= j.threshold(); q++ {
			pl.online = append(pl.online, q)
		}
		if len(j.Online) > 0 {
			pl.online = slices.Clone(j.Online[:j.threshold()])
		}
	}
	if err := pl.noise.share(len(pl.online), max(j.Colluders, 1)); err != nil {
		return nil, err
	}
	// The aggregate of all records, with room for noise, must fit the modulus.
	worst := float64(n) + 200*math.Sqrt(pl.noise.surplus())*math.Max(pl.noise.count, pl.noise.sum)
	if bits := math.Log2(worst) + float64(minColumnBits+chain.LogLevel-chain.LogN) + 2; bits > 2*aggregateBits-1 {
		return nil, fault.Request("ckks budget",
			fmt.Sprintf("%d records with noise of deviation %.3g overflow the aggregates' modulus", n, pl.noise.count),
			"use fewer records or a larger budget")
	}
	pl.addReleases()
	return pl, nil
}

// setting is what bounds of errors depend on, for noise of a deviation in records.
func (j *Job) setting(p *parameters, noise, failure float64) *setting {
	s := &setting{p: p, n: j.Clients[0].Points.N, k: j.K, d: j.D(), rounds: j.rounds(),
		encrypted: j.D() - len(j.Columns[0]), holders: 1, public: j.mode() != TwoParty, failure: failure}
	if j.mode() == Multiparty {
		s.holders, s.collective = len(j.Columns)-1, true
	}
	s.lowScale = columnScale(p, s.n, noise)
	s.unit = s.lowScale * math.Exp2(float64(p.Chain.LogLevel)) / float64(p.N())
	s.prepare()
	return s
}

// columns are the columns that are encrypted, and the room that comparisons keep for it.
func (j *Job) columns(p *parameters, failure float64) (columns, error) {
	cols := columns{d: j.D(), encrypted: make([]bool, j.D())}
	for party, cs := range j.Columns {
		for _, c := range cs {
			cols.encrypted[c] = party > 0
		}
	}
	set := j.setting(p, 1, failure)
	if cols.spare = set.spare(); j.argmin() == Rank {
		cols.spare = rankSpare * math.Sqrt(float64(set.holders))
	}
	if cols.spare > mostSpare {
		return columns{}, fault.Request("ckks parties", fmt.Sprintf("encryption under a key of %d parties may move "+
			"comparisons by %.2g of their range", len(j.Columns)-1, cols.spare), "use fewer key holders or clusters")
	}
	return cols, nil
}

// mostSpare is the most of a comparison's range that may go to the error of encrypted columns.
const mostSpare = 0.5

// unlikely is the probability at which comparisons may leave their domain where no budget asks for less.
const unlikely = 1e-9

// planarClusters is the number of clusters up to which sphere packings of the plane compare a
// cluster with at most 14 others, and clusters spread at random with about as many as
// planarDepth allows (THEOREMS.md T4: pairs that cannot meet are left out).
const planarClusters, planarDepth = 50, 4

// pairsDepth is the depth of the product trees that the chain of primes has room for: that of
// all pairs, or in the plane that of the pairs that are left after pruning. Centroids of later
// rounds that would need more are held back (run.reachable). It follows from public values
// that every party has before the public seed.
func (j *Job) pairsDepth() int {
	depth := treeDepth(j.K - 1)
	if j.D() == 2 && j.K <= planarClusters && !j.KeepPairs && j.Init != step.Random && j.Start == nil {
		return min(depth, planarDepth)
	}
	return depth
}

// StartCentroids returns the public centroids that a simulation begins with, in
// [-1, 1]^D. Without a seed each call draws others.
func (j *Job) StartCentroids() [][]float64 { return j.startFrom(protocol.NewPublicSeed(j.Seed)) }

// startFrom draws the first centroids, unless they are given.
func (j *Job) startFrom(public protocol.PublicSeed) [][]float64 {
	if j.Start != nil {
		return slices.Collect(slices.Chunk(j.Start, j.D()))
	}
	return startCentroids(public.Streams().Stream(0, 0, "start"), j.Init, j.K, j.Clients[0].Points.D)
}

// parties are the roles of a run: each holds its own records and randomness.
type parties struct {
	alice     *alice
	bob       *bob // two-party and server-aided
	providers []*provider
	members   []*member // multiparty
}

func (s *run) newParties() (*parties, []protocol.Program) {
	r := &parties{alice: s.newAlice()}
	programs := []protocol.Program{r.alice.play}
	for q := 1; q < len(s.job.Columns); q++ {
		switch {
		case s.job.mode() == Multiparty:
			r.members = append(r.members, s.newMember(q))
			programs = append(programs, r.members[q-1].play)
		case q == 1:
			r.bob = s.newBob()
			programs = append(programs, r.bob.play)
		default:
			r.providers = append(r.providers, &provider{s.newPeer(q)})
			programs = append(programs, r.providers[q-2].play)
		}
	}
	return r, programs
}

// Run implements engine.Plan.
func (pl *jobPlan) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	return pl.Connect(ctx, rt, protocol.Options{})
}

// Connect implements protocol.Runner.
func (pl *jobPlan) Connect(ctx context.Context, rt *engine.Runtime, options protocol.Options) (*engine.Result, error) {
	if err := step.CheckRecords(ctx, rt.Pool(), options.Records(dataset.Part{Points: pl.job.Clients[0].Points}),
		"ckks Data"); err != nil {
		return nil, err
	}
	res, _, err := newRun(pl).play(ctx, rt, options)
	return res, err
}

// play lets the roles play to the end, and then forget their secrets.
func (s *run) play(ctx context.Context, rt *engine.Runtime, options protocol.Options) (*engine.Result, *parties,
	error) {
	s.ready(abreast(ctx, rt.Pool()))
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s.seat = options.Seat
	roles, programs := s.newParties()
	defer roles.forget()
	session := protocol.Start(rt, s.Plan, programs, nil, options)
	res, err := session.Finish(ctx, s.job.Bounds)
	if err != nil {
		return nil, roles, err
	}
	return res, roles, s.complete(ctx, rt, session, res, roles.alice.rounds)
}

// forget clears the secrets of all roles, but not what these were drawn from: roots are values that Go copies and
// crypto/aes clears no schedule, so both are left to the collection of the heap.
func (r *parties) forget() {
	if r.alice.computer != nil {
		r.alice.masks.forget()
	}
	if r.bob != nil {
		r.bob.secret.forget()
		r.bob.small.forget()
	}
	for _, m := range r.members {
		m.secret.forget()
		m.share.forget()
	}
}
