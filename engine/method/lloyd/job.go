package lloyd

import (
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/engine/step/seeding"
	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Method is a protocol of the horizontal family.
type Method string

// The methods.
const (
	// Lloyd is plain k-means over masked sums and counts, without noise: greedy
	// k-means++, the best of several starts. With Init: Sphere it is the papers' Lloyd
	// (Thesis-H §5.3).
	Lloyd Method = "lloyd"
	// CLloyd is Lloyd with size-constrained assignment, without noise.
	CLloyd Method = "clloyd"
	// SuLloyd is DPLloyd with Su et al.'s budget split and nearest assignment,
	// released as sums and counts (Thesis-H §7.2.4, protocol MNA).
	SuLloyd Method = "sulloyd"
	// CSuLloyd is SuLloyd under size constraints (FastLloyd §5.1).
	CSuLloyd Method = "csulloyd"
	// FastLloyd releases centroids under size constraints (FastLloyd, Algorithm
	// 1; Thesis-H §7.2.5, protocol AMN).
	FastLloyd Method = "fastlloyd"
	// Relative releases sums and counts of the records within a radius of their
	// centroid, relative to that centroid (the follow-up of FastLloyd that
	// CKKS-V §6 describes).
	Relative Method = "relative"
)

// Methods lists the methods.
func Methods() []Method { return []Method{Lloyd, CLloyd, SuLloyd, CSuLloyd, FastLloyd, Relative} }

// Private reports whether the method adds noise.
func (m Method) Private() bool {
	return m == SuLloyd || m == CSuLloyd || m == FastLloyd || m == Relative
}

// Constrained reports whether the method bounds the sizes of clusters.
func (m Method) Constrained() bool { return m == CLloyd || m == CSuLloyd || m == FastLloyd }

// gaussian reports whether Gaussian noise is the default where there is a delta.
func (m Method) gaussian(c privacy.Calibration) bool {
	return m == Relative || c == privacy.Proven && (m == CSuLloyd || m == FastLloyd)
}

// The choices of first centroids that look at the data.
const (
	KMeansPlusPlus step.Init = "kmeans++" // greedy k-means++
	Oversampled    step.Init = "kmeans||" // k-means||: a few passes, each of which draws many records
	SomeRecords    step.Init = "records"  // records at random, as FAISS has them
)

// InitBy is who draws first centroids that are no records.
type InitBy string

// The drawers.
const (
	// ByClients lets every client draw the same ones, from randomness that they share
	// (Thesis-H §5.1.1).
	ByClients InitBy = "clients"
	// ByTheirServer lets the server draw them and send them to the clients, at the cost of a
	// round and of the server's knowing them (Thesis-H §5.1.2).
	ByTheirServer InitBy = "server"
)

// Metric is what makes a record near to a centroid.
type Metric string

// The metrics.
const (
	Euclidean Metric = "euclidean"
	// Cosine keeps centroids at length 1, so that the nearest has the largest cosine: spherical k-means (Dhillon and
	// Modha, Concept decompositions for large sparse text data using clustering, Machine Learning 42, 2001). Records
	// are taken to have length 1, too (dataset.PrepareOptions.Unit).
	Cosine Metric = "cosine"
)

// Release is what the clients send of an iteration.
type Release string

// The releases.
const (
	// SumCount sends sums and counts (MNA).
	SumCount Release = "sumcount"
	// Centroid sends local means divided by the number of clients (AMN).
	Centroid Release = "centroid"
)

// Aggregator is who adds up what the clients send.
type Aggregator string

// The aggregators.
const (
	// ByServer sends masked vectors to a server.
	ByServer Aggregator = "server"
	// ByRing passes a masked partial sum from client to client (Thesis-H §7.3.1).
	ByRing Aggregator = "ring"
	// Naive sends plain sums and counts to a server that computes the centroids
	// (Thesis-H §5.2): the protocol that the others improve on.
	Naive Aggregator = "naive"
	// ByShares splits values among two or three servers under additive secret sharing
	// (Thesis-H §7.3.2, FastLloyd §7.2).
	ByShares Aggregator = "shares"
)

// Solver is the solver of size-constrained assignment.
type Solver string

// The solvers; their assignments are identical.
const (
	Fast      Solver = "fast"
	Reference Solver = "reference"
	// Verified is Fast with a check of each assignment's certificate.
	Verified Solver = "verified"
)

// Drop makes client Client fail in round Iteration, counted from 0, and stay
// away from then on.
type Drop struct{ Client, Iteration int }

// DefaultAlpha is the default of EtaMinAlpha and EtaMaxAlpha (FastLloyd §5.2.2).
const DefaultAlpha = 1.25

// maxRadii is the largest number of rounds where each has a radius of its own: the noise of every
// radius has a table of its own.
const maxRadii = 1000

// Job is one run of a horizontal method. Its zero fields mean the default that
// the field's comment states; Method, K, Clients and, for a private method,
// Budget are required.
type Job struct {
	// Method is the method.
	Method Method
	// Problem's Iterations are, by default and of plain k-means, at most 300 from each
	// start. Its Calibration may also be Published for methods without noise: an empty
	// cluster's centroid becomes the origin then, as in the released code. Its Mechanism
	// defaults to Gaussian at a positive delta, for Relative, and under Proven for CSuLloyd
	// and FastLloyd, whose L2 sensitivity 2 sqrt(k d) is far below the L1 sensitivity 2 k d;
	// else to Laplace. Its Noise defaults to InShares under Proven with several clients that
	// stay, so that no single role knows it; under the papers' calibrations to
	// protocol.ByServer, or ByEach where there is no server.
	protocol.Problem

	// Tolerance ends a run without noise when no centroid moved further than
	// this (in the normalised box). It defaults to 0: when nothing moves, and of plain
	// k-means when nearly nothing does: the squares of all moves together are 1e-8 of
	// the variance of a column.
	Tolerance float64
	// Rest, if positive, ends each start of plain k-means when the squares of all moves together are at most this share
	// of the variance of a column.
	Rest float64
	// Metric is Euclidean by default; plain k-means takes Cosine, too.
	Metric Metric
	// MaxPoints, if positive, lets plain k-means train on at most so many records for each cluster, drawn at random.
	MaxPoints int
	// Batch, if positive and below the number of records, lets each start of plain k-means go over batches of so many
	// records, drawn at random, in all rounds but the last, which goes over all. Iterations counts the rounds on
	// batches then; by default they go over the records twice.
	Batch int
	// Init defaults to KMeansPlusPlus for Lloyd, which is then plain k-means, and to
	// Sphere for the others and for Lloyd with the papers' options (Release,
	// Aggregator, Calibration, Drops).
	Init step.Init
	// InitBy is who draws Sphere and Random centroids; ByClients by default.
	InitBy InitBy
	// WCSSChange, if positive, ends a run without noise, or each start of plain k-means, when the sum of
	// squared distances to the centroids, in the normalised box, changes by less than this in a round
	// (Thesis-H, equation 2.4).
	WCSSChange float64
	// NInit is the number of starts of plain k-means; 0 means 10 while n k d < 10^7,
	// falling to 1 at 10^9, where some clusters of the best one are tried elsewhere
	// instead.
	NInit int
	// Post treats noisy centroids, PostSum and PostCount noisy sums and counts.
	// They default to Fold, Keep and Keep.
	Post, PostSum, PostCount step.Post
	// Release chooses what Lloyd and CLloyd aggregate; SumCount by default. The
	// other methods define it, but SuLloyd takes Centroid under the papers'
	// calibrations (CDPLloyd, Thesis-H §6.3).
	Release Release

	// EtaMinAlpha and EtaMaxAlpha set the sizes: each client's clusters have
	// ceil(n/(EtaMinAlpha k M)) to floor(EtaMaxAlpha n/(k M)) records. They
	// default to DefaultAlpha.
	EtaMinAlpha, EtaMaxAlpha float64
	// ClientShares, if not nil, are public: what part of the records each client holds, in any unit. Sizes are
	// in proportion to them, instead of alike for all clients.
	ClientShares []float64
	// Exclusivity E lets a record belong to up to E clusters where a minimum
	// size demands it (Thesis-H §4.1.4); 0 and 1 mean one cluster.
	Exclusivity int
	// ExclusivityOf, if not nil, has a number of its own for each client; the noise is for the
	// largest of them.
	ExclusivityOf []int
	// NonExclusive assigns to each cluster its nearest records, as many as the
	// minimum size, whatever other clusters take (Thesis-H §4.1.2).
	NonExclusive bool
	// Radius, if positive, forbids assignments at a larger distance in the
	// normalised box (FastLloyd §7.1).
	Radius float64
	// Schedule is the radius rule of Relative, Geometric by default, or takes the
	// place of Radius with one for each round (FastLloyd §7.1, Sqrt).
	Schedule Schedule
	// Beyond treats the records of Relative beyond the radius; Clip by default,
	// Exclude under LaterCode.
	Beyond Beyond
	// Flow defaults to Fast.
	Flow Solver

	// Aggregator defaults to ByServer.
	Aggregator Aggregator
	// Servers is the number of servers of ByShares: 2 (default) or 3.
	Servers int
	// RingBits is 32 or 64 (default): the ring that sums are taken in.
	RingBits int
	// Drops lists clients that fail during the run.
	Drops []Drop

	// Views, if not nil, records what every party sees.
	Views *protocol.Views
}

// withDefaults returns a copy of j with the zero fields filled in.
func (j *Job) withDefaults() *Job {
	c := *j
	set(&c.Calibration, privacy.Proven)
	set(&c.Neighbours, privacy.AddRemove)
	if c.Budget.Delta != 0 && j.Method.gaussian(c.Calibration) {
		set(&c.Mechanism, protocol.Gaussian)
	}
	set(&c.Mechanism, protocol.Laplace) // or a pure guarantee is asked for
	if c.mayImprove() {
		set(&c.Init, KMeansPlusPlus)
	}
	set(&c.Init, step.Sphere)
	set(&c.Metric, Euclidean)
	set(&c.Post, step.Fold)
	set(&c.PostSum, step.Keep)
	set(&c.PostCount, step.Keep)
	set(&c.Release, SumCount)
	if j.Method == FastLloyd {
		c.Release = Centroid
	}
	set(&c.EtaMinAlpha, DefaultAlpha)
	set(&c.EtaMaxAlpha, DefaultAlpha)
	c.Exclusivity = max(c.Exclusivity, 1)
	for _, e := range c.ExclusivityOf {
		c.Exclusivity = max(c.Exclusivity, e)
	}
	if j.Method == Relative {
		set(&c.Schedule, Geometric)
	}
	if c.Schedule == LaterCode {
		set(&c.Beyond, Exclude)
	}
	set(&c.Beyond, Clip)
	set(&c.Flow, Fast)
	set(&c.Aggregator, ByServer)
	set(&c.Colluders, 1)
	if c.Aggregator == ByShares {
		set(&c.Servers, 2)
		set(&c.Noise, protocol.AmongServers)
	}
	set(&c.Noise, protocol.DefaultNoise(c.Calibration, len(c.Clients), c.staying(), c.Colluders,
		c.Aggregator != ByRing))
	set(&c.RingBits, 64)
	if c.Budget.Delta < 0 {
		c.Budget.Delta = privacy.DefaultDelta(c.PublicRecords())
		if c.Mechanism == protocol.Laplace {
			c.Budget.Delta = 0
		}
	}
	return &c
}

// mayImprove tells whether the options leave out what only the papers' form has:
// rounds that are all alike, from one start.
func (j *Job) mayImprove() bool {
	return j.Method == Lloyd && j.Release != Centroid && j.Aggregator != Naive && j.Calibration != privacy.Published &&
		len(j.Drops) == 0
}

// improves tells whether a job with its defaults is plain k-means: several starts,
// each until it rests, empty clusters placed anew.
func (j *Job) improves() bool { return j.mayImprove() && looks(j.Init) }

// asksPlain is improves before the defaults are filled in.
func (j *Job) asksPlain() bool { return j.mayImprove() && (j.Init == "" || looks(j.Init)) }

// looks tells whether first centroids come from the records.
func looks(i step.Init) bool { return i == KMeansPlusPlus || i == Oversampled || i == SomeRecords }

// starts is the number of starts of plain k-means.
func (j *Job) starts() int {
	switch {
	case !j.improves() || j.Start != nil:
		return 1
	case j.NInit > 0:
		return j.NInit
	case j.batch() > 0:
		return 1
	}
	work, most := float64(j.trained())*float64(j.K)*float64(j.D()), smallWork
	starts := maxStarts
	for ; starts > 1 && work >= most; starts-- {
		most *= startStep
	}
	return starts
}

// exchanges is how often plain k-means moves clusters of the best start where size alone
// keeps it from more starts, or there are so many clusters that no start has all in their places.
func (j *Job) exchanges() int {
	if !j.improves() || j.Start != nil || j.NInit > 0 || j.batch() > 0 ||
		j.starts() == maxStarts && j.K < manyClusters || j.K < 4 || j.K > mostExchanged {
		return 0
	}
	return maxExchanges
}

// set fills in a default.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// sizes returns the least and greatest number of records of a cluster at a client
// (Thesis-H §7.1.3): ceil(n/(alpha_min k M)) and floor(alpha_max n/(k M)), with the
// client's public share of the records in the place of 1/M where it is given. Where no
// whole number lies between them, a proven run has clusters of lo records: its proofs
// take any hi from lo on, and no number of records may end a run that has paid for it.
func (j *Job) sizes(client int) (lo, hi int) {
	share := j.shares(float64(j.K), client)
	n := float64(j.PublicRecords())
	lo, hi = int(math.Ceil(n/(j.EtaMinAlpha*share))), int(math.Floor(j.EtaMaxAlpha*n/share))
	if j.total() {
		hi = max(lo, hi)
	}
	return lo, hi
}

// shares is how many times the public share of a client in the records makes up so many times all of them.
func (j *Job) shares(all float64, client int) float64 {
	if j.ClientShares != nil {
		return all * seeding.Sum(j.ClientShares) / j.ClientShares[client]
	}
	return all * float64(len(j.Clients))
}

// Plan implements engine.Job.
func (j *Job) Plan() (engine.Plan, error) {
	if j == nil {
		return nil, protocol.ErrNoJob
	}
	return j.check()
}

// takes says what the method takes of a problem.
func (m Method) takes() protocol.Takes {
	t := protocol.Takes{Private: m.Private(), Several: true, Servers: true, Iterations: true, Start: true,
		Follows: !m.Private(), Weights: m == Lloyd || m == SuLloyd || m == Relative}
	if t.Private {
		t.Mechanisms = []protocol.Mechanism{protocol.Laplace, protocol.Gaussian}
	}
	return t
}

// check returns the job with its defaults and its noise plan, or the first fault.
func (j *Job) check() (*Plan, error) {
	if !slices.Contains(Methods(), j.Method) {
		return nil, fault.Unknown("method", string(j.Method), Describe().Names())
	}
	if err := j.Check(string(j.Method), j.Method.takes()); err != nil {
		return nil, err
	}
	for _, f := range []func(*Job) error{(*Job).checkWeights, (*Job).checkChoices, (*Job).checkLarge} {
		if err := f(j); err != nil {
			return nil, err
		}
	}
	c := j.withDefaults()
	for _, f := range []func(*Job) error{(*Job).checkBudget, func(*Job) error { return j.own().Check() },
		(*Job).checkConstraints, (*Job).checkParties} {
		if err := f(c); err != nil {
			return nil, err
		}
	}
	return newPlan(c, max(j.Budget.Delta, 0))
}

// checkChoices refuses values that exclude each other, and what an option's rule does not say.
func (j *Job) checkChoices() error {
	calibrations := []privacy.Calibration{"", privacy.Proven, privacy.Claimed, privacy.Published, privacy.None}
	switch {
	case !slices.Contains(calibrations, j.Calibration):
		return fault.Range("calibration", j.Calibration, "proven, claimed, published or none")
	case j.RingBits != 0 && j.RingBits != 32 && j.RingBits != 64:
		return fault.Range("ring", j.RingBits, "32 or 64")
	case j.Iterations < 0:
		return fault.Range("iterations", j.Iterations, "0 (the method's rule) or more")
	case j.Iterations > maxRadii && (j.Method == Relative ||
		j.Method.Private() && j.Schedule != "" && j.Schedule != LaterCode):
		return fault.Range("iterations", j.Iterations,
			fmt.Sprintf("at most %d: each round has its own radius and noise", maxRadii))
	case j.ExclusivityOf != nil && (len(j.ExclusivityOf) != len(j.Clients) || slices.Min(j.ExclusivityOf) < 1):
		return fault.Request("exclusivity", fmt.Sprintf("has %s for %s", fault.Count(len(j.ExclusivityOf), "number"),
			fault.Count(len(j.Clients), "client")),
			"give one of at least 1 for all, or one for each")
	case j.Exclusivity < 0 || j.Exclusivity > max(j.K, 1) || j.ExclusivityOf != nil &&
		slices.Max(j.ExclusivityOf) > j.K:
		return fault.Range("exclusivity", slices.Max(append(slices.Clone(j.ExclusivityOf), j.Exclusivity)),
			fmt.Sprintf("1 to k = %d", j.K))
	case j.NInit > 1 && j.Start != nil:
		return fault.Request("n-init", fmt.Sprintf("is %d and the first centroids are given", j.NInit),
			"leave one of them out")
	case j.NInit > 1 && !j.asksPlain():
		return fault.Request("n-init", fmt.Sprintf("is %d for the papers' form of Lloyd, which has one start", j.NInit),
			"use lloyd with --init kmeans++, or leave it out")
	case j.Rest != 0 && !(j.Rest > 0 && j.asksPlain()):
		return fault.Request("rest", fmt.Sprintf("is %g", j.Rest),
			"give a positive share for lloyd with --init kmeans++, or leave it out")
	}
	return nil
}

// checkBudget refuses budgets, calibrations and neighbours that the method has
// no statement for. j has its defaults.
func (j *Job) checkBudget() error {
	if !j.Method.Private() {
		return nil
	}
	switch {
	case j.Mechanism == protocol.Gaussian && j.Budget.Delta == 0:
		return fault.Request("delta", "is 0, which the Gaussian mechanism cannot give",
			"use --mechanism laplace, which is pure, or a positive delta")
	case looks(j.Init):
		return fault.Request("init", string(j.Init)+" looks at the data, which "+string(j.Method)+" does not pay for",
			"use sphere or random, or a method without noise")
	}
	if j.Calibration != privacy.Proven {
		switch {
		case j.Neighbours == privacy.ReplaceOne:
			return fault.Request("neighbours",
				"replace-one has no "+string(j.Calibration)+" statement: the papers add or remove a record",
				"use --calibration proven")
		case j.Mechanism == protocol.Gaussian && j.Method.Constrained():
			return fault.Request("mechanism", "the papers have no Gaussian form of "+string(j.Method),
				"use --calibration proven, or --mechanism laplace")
		case j.Method == Relative && j.Calibration == privacy.Published && j.Schedule != LaterCode:
			return fault.Request("calibration", "published follows the released code, which has another radius rule",
				"use --radius-schedule later-code, or --calibration claimed")
		case j.Method.Constrained() && j.Calibration == privacy.Published && j.Schedule != "" && j.Schedule != Sqrt:
			return fault.Request("calibration", "published follows the released code, whose radius rule is sqrt",
				"use --radius-schedule sqrt, or --calibration claimed")
		}
	}
	if j.Neighbours == privacy.ReplaceOne && j.Exclusivity > 1 {
		return fault.Request("neighbours", "replace-one has no proof for exclusivity above 1",
			"use --neighbours add-remove; lloyd-type, size-constrained and nonexclusive assignment have one for "+
				"replace-one")
	}
	return nil
}

// checkConstraints refuses constraints on methods without them and sizes that
// cannot be met. Under Proven the assignment is total: what cannot be met is
// filled up or left unassigned (THEOREMS.md T1).
func (j *Job) checkConstraints() error {
	switch {
	case j.Release != Centroid || !j.Method.Private() || j.Method == FastLloyd:
	case j.Method == SuLloyd && j.Calibration != privacy.Proven && j.Mechanism == protocol.Laplace:
	case j.Method == SuLloyd:
		return fault.Request("release", "means of unconstrained clusters are too sensitive to be of use: Thesis-H's "+
			"figures have them with Laplace noise",
			"use sums and counts, fastlloyd, or --calibration claimed or published with --mechanism laplace")
	default:
		return fault.Request("release", string(j.Method)+" releases sums and counts",
			"leave the option out, or use fastlloyd")
	}
	if !j.Method.Constrained() {
		switch {
		case j.Radius > 0:
			return fault.Request("radius", string(j.Method)+" has no such option",
				"use it with clloyd, csulloyd or fastlloyd; relative has radius-schedule")
		case j.Schedule != "" && j.Method != Relative:
			return fault.Request("radius-schedule", string(j.Method)+" has no radius",
				"use it with relative, clloyd, csulloyd or fastlloyd")
		case j.ClientShares != nil:
			return fault.Request("client-shares", string(j.Method)+" has no sizes of clusters",
				"use it with clloyd, csulloyd or fastlloyd")
		case j.Exclusivity > 1 || j.NonExclusive:
			return fault.Request("exclusivity", string(j.Method)+" assigns each record to its nearest centroid",
				"use it with clloyd, csulloyd or fastlloyd")
		}
		return nil
	}
	if j.Radius > 0 && j.Schedule != "" {
		return fault.Request("radius", "a constant radius and a schedule exclude each other",
			"leave --radius or --radius-schedule out")
	}
	if j.NonExclusive && (j.Exclusivity > 1 || j.Radius > 0 || j.Schedule != "") {
		return fault.Request("exclusivity", "nonexclusive takes neither an exclusivity number nor a radius",
			"leave one of them out")
	}
	if err := j.checkShares(); err != nil {
		return err
	}
	for i, p := range j.Clients {
		lo, hi := j.sizes(i)
		n := p.Points.N
		has := func(side string) string {
			if j.Method.Private() && j.Records > 0 {
				return "has " + side + " records than planned" // how many is nobody's to read
			}
			return "has " + fault.Count(n, "record")
		}
		who := clientName(i)
		switch {
		case lo > hi && !j.NonExclusive:
			return impossible(who, fmt.Sprintf("a cluster needs at least %d and at most %s", lo,
				fault.Count(hi, "record")),
				"raise --eta-min-alpha or --eta-max-alpha")
		case j.total(): // whatever the client holds
		case lo > n:
			return impossible(who, fmt.Sprintf("%s and each cluster needs at least %d of them", has("fewer"), lo),
				"raise --eta-min-alpha")
		case j.NonExclusive:
		case j.K*lo > n*j.exclusivityAt(i):
			return impossible(who, fmt.Sprintf("%s and %s of at least %d need %d", has("fewer"),
				fault.Count(j.K, "cluster"), lo, j.K*lo),
				"raise --eta-min-alpha")
		case j.Radius == 0 && j.Schedule == "" && j.K*hi < n:
			return impossible(who, fmt.Sprintf("%s and %s of at most %d hold %d", has("more"),
				fault.Count(j.K, "cluster"), hi, j.K*hi),
				"raise --eta-max-alpha")
		}
	}
	return nil
}

// checkShares refuses shares of clients that are none.
func (j *Job) checkShares() error {
	switch {
	case j.ClientShares == nil:
		return nil
	case j.Calibration == privacy.Published:
		return fault.Request("client-shares", "published follows the released code, where all clients have one size",
			"use --calibration proven or claimed")
	case len(j.ClientShares) != len(j.Clients):
		return fault.Request("client-shares", fmt.Sprintf("are %d for %s", len(j.ClientShares),
			fault.Count(len(j.Clients), "client")),
			"give one for each")
	}
	for _, x := range j.ClientShares {
		if !(x > 0) || x > 1e9 || x < 1e-9 {
			return fault.Range("client-shares", x, "1e-9 to 1e9")
		}
	}
	return nil
}

// exclusivityAt is the number of clusters that a record of a client may join.
func (j *Job) exclusivityAt(client int) int {
	if j.ExclusivityOf != nil {
		return j.ExclusivityOf[client]
	}
	return j.Exclusivity
}

// impossible is the refusal of sizes that no assignment has.
func impossible(who, why, do string) error {
	return &fault.Error{What: who, Why: why, Do: do, Wrong: true, Err: flow.ErrInfeasible}
}

// total reports whether the constrained assignment has to succeed on every data
// set: the proofs need it, the papers' calibrations do not have it.
func (j *Job) total() bool {
	return j.Method.Private() && j.Calibration == privacy.Proven
}

// checkParties refuses impossible combinations of aggregator, noise and drops.
func (j *Job) checkParties() error {
	switch {
	case j.Aggregator == Naive && j.Method.Private():
		return fault.Request("aggregator", "naive shows the server every client's sums",
			"use it with lloyd or clloyd only")
	case j.Aggregator == Naive && j.Release == Centroid:
		return fault.Request("aggregator", "naive sends sums and counts", "leave --release centroid out")
	case j.Aggregator == ByRing && j.Noise == protocol.ByServer && j.Method.Private():
		return fault.Request("noise", "a ring has no server that could add it", "use --noise local or --noise split")
	}
	if err := j.checkServers(); err != nil {
		return err
	}
	if err := j.checkEnds(); err != nil {
		return err
	}
	for _, d := range j.Drops {
		if d.Client < 0 || d.Client >= len(j.Clients) || d.Iteration < 0 {
			return fault.Request("drop", fmt.Sprintf("%s in round %d does not exist", clientName(d.Client),
				d.Iteration+1),
				fmt.Sprintf("name a client from 1 to %d and a round from 1", len(j.Clients)))
		}
	}
	left := j.staying()
	if left == 0 {
		return fault.Request("drop", "leaves no client", "let at least one client stay")
	}
	if j.Noise == protocol.AmongServers {
		left = j.Servers
	}
	if j.Method.Private() {
		return protocol.Drawers{By: j.Noise, All: left, Stay: left, Colluders: j.Colluders}.Check()
	}
	return nil
}

// checkEnds refuses starts by a server that there is not, and ends that nobody can tell.
func (j *Job) checkEnds() error {
	switch {
	case j.InitBy == ByTheirServer && (j.Aggregator == ByRing || j.Aggregator == ByShares ||
		len(j.Clients) == 1 && j.Aggregator != Naive):
		return fault.Request("init-by", "there is no server that could draw the first centroids",
			"take several clients and --aggregator server, or leave it out")
	case j.InitBy == ByTheirServer && (looks(j.Init) || j.Start != nil):
		return fault.Request("init-by", "the first centroids are records, or given", "use --init sphere or random")
	case j.WCSSChange == 0:
		return nil
	case j.Method.Private():
		return fault.Request("wcss-change", "the rounds of "+string(j.Method)+" are planned before any record is read",
			"use --iterations")
	case j.Release == Centroid || j.Aggregator == Naive:
		return fault.Request("wcss-change", "clients see neither sums nor counts, from which it follows",
			"use --release sumcount and --aggregator server, or --tolerance")
	case j.Exclusivity > 1 || j.NonExclusive || len(j.Drops) > 0:
		return fault.Request("wcss-change", "the records that count change from round to round",
			"use --tolerance, or leave exclusivity and drops out")
	}
	return nil
}

// checkServers refuses impossible combinations of several servers.
func (j *Job) checkServers() error {
	switch {
	case j.Aggregator != ByShares && j.Noise == protocol.AmongServers && j.Method.Private():
		return fault.Request("noise", "servers needs several of them", "use --aggregator shares")
	case j.Aggregator != ByShares && j.Servers != 0:
		return fault.Request("servers", fmt.Sprintf("are %d and the aggregator is %s", j.Servers, j.Aggregator),
			"use --aggregator shares")
	case j.Aggregator != ByShares:
		return nil
	case j.Servers < 2 || j.Servers > 3:
		return fault.Range("servers", j.Servers, "2 or 3")
	case len(j.Clients) < 2:
		return fault.Request("aggregator",
			"shares is given for one client, which has nobody's values but its own to add",
			"take more clients")
	case j.Noise == protocol.ByServer && j.Method.Private():
		return fault.Request("noise", "server would let one of several servers know all of it", "use --noise servers")
	case len(j.Drops) > 0:
		return fault.Request("drop", "lets clients fail, whose shares only some servers may have",
			"use --aggregator server")
	}
	return nil
}

// staying is the least number of clients in a sum of the run.
func (j *Job) staying() int {
	gone := make(map[int]bool)
	for _, d := range j.Drops {
		gone[d.Client] = true
	}
	left := len(j.Clients) - len(gone)
	if j.Survivors > 0 {
		left = min(left, j.Survivors)
	}
	return left
}
