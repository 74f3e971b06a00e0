package sketch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Protocol is a method of the vertical family.
type Method string

// The protocols.
const (
	// Plain sends exact local centres and memberships (Ding et al. 2016;
	// Sketch-V, section 3.2).
	Plain Method = "vertical-plain"
	// Independent sends noisy sizes of the local clusters and takes the parties'
	// columns for independent (IND-LAP; Sketch-V, section 4.1, baseline 1).
	Independent Method = "ind-lap"
	// LocalReports sends every record's membership under local privacy (LDP-AGG;
	// Sketch-V, section 4.1, baseline 2 and appendix B.2).
	LocalReports Method = "ldp-agg"
	// SketchBasic sends sketches and estimates each cell on its own
	// (DPFMPS-BasicEst; Sketch-V, Algorithms 3 and 4).
	SketchBasic Method = "sketch-basic"
	// Sketch sends sketches and estimates the grid by Job.Estimator.
	Sketch Method = "sketch"
)

// Protocols lists the protocols.
func methods() []Method {
	return []Method{Plain, Independent, LocalReports, SketchBasic, Sketch}
}

// private reports whether the protocol adds noise.
func (p Method) private() bool { return p != Plain }

func (p Method) sketches() bool { return p == Sketch || p == SketchBasic }

// Estimator turns what the server got into the weights of the grid.
type Estimator string

// The estimators.
const (
	// EstimatorEM is the joint likelihood of all sketches (jointEstimate). It is
	// the default of Sketch under the proven calibration.
	EstimatorEM Estimator = "em"
	// EstimatorPair is maximum likelihood for each pair of parties and
	// proportional fitting (pairEstimate).
	EstimatorPair Estimator = "pair-mle"
	// EstimatorPaper is DPFMPS-2PEst (twoPartyEstimate). It is the default under the
	// claimed calibration.
	EstimatorPaper Estimator = "paper"
	// EstimatorReports is LDP-AGG (Sketch-V, appendix B.2): the inverse of the joint
	// transition of all parties' reports; EstimatorReportPairs is LDP-AGG-2PEst, that of
	// each pair of parties and the additive fit. The latter is the default of LocalReports,
	// whose only estimators these are; with two parties they are one.
	EstimatorReports     Estimator = "ldp-agg"
	EstimatorReportPairs Estimator = "ldp-agg-2pest"
	// estimatorBasic is DPFMPS-BasicEst on all parties at once.
	estimatorBasic Estimator = "basic"
)

// LocalStart is how a party finds its first local centres.
type LocalStart string

// The starts.
const (
	// StartAuto is the tree under the proven calibration of the sketch protocols; the
	// forest elsewhere. Where of more than 5 columns a tree could not halve three of four
	// (treeHalvings), it is rounds.
	StartAuto LocalStart = "auto"
	// StartTree is k-means on the leaves of a midpoint tree of noisy counts.
	StartTree LocalStart = "tree"
	// StartForest is the LSH forest (DPLSF; Sketch-V, section 3.5).
	StartForest LocalStart = "lsf"
	// StartRounds is random directions around a private mean, from which more rounds
	// go on than after the others.
	StartRounds LocalStart = "rounds"
)

// Limits of a job.
const (
	maxParties  = 20
	maxLocalK   = 255
	maxSketches = kernels.MaxRegisters
	// DefaultSketches is M in Sketch-V, section 6; leastPlanned and mostPlanned bound
	// what is planned.
	DefaultSketches = 4096
	leastPlanned    = 1 << 9
	mostPlanned     = 1 << 16
	// DefaultGamma is the parameter of the heights of the likelihood estimators;
	// the paper's estimators have 1.
	DefaultGamma = 1.0 / 1024
	// defaultShare is Job.Share where all parties share their keys: the local centres need more of the budget; all
	// the more, smallShare is left, of two parties where n mu is below smallBudget. Pairs of parties with keys of
	// their own share pairsShare, and those whose joint grid is crowded (plan.crowded), with a column each
	// columnsShare; pairs whose parties have less than a manyClusters-th of the clusters share manyShare.
	defaultShare = 0.25
	smallShare   = 0.15
	smallBudget  = 600
	pairsShare   = 0.5
	columnsShare = 0.75
	manyShare    = 0.65
	manyClusters = 3
	// fewRefitted is the most clusters for which no mixture is fitted to a crowded joint grid.
	fewRefitted = 8
	// mostRefitted bounds M where it grows for the clusters of a mixture: beyond, time grows more than they gain.
	mostRefitted = 1 << 13
	// maxJointGamma is the largest gamma of the joint likelihood: beyond,
	// arrivals of two cells share a height too often.
	maxJointGamma = 1.0 / 64
)

// Job is one run of a vertical protocol. Its zero fields mean the default that
// the field's comment states; Method, Clients, Columns, K and, for a private
// protocol, Budget are required.
type Job struct {
	// Method is the method.
	Method Method
	// Problem's Clients is one part with the columns of all parties. Neither the order of
	// its Columns nor that of columns within a party changes the result. Its Calibration
	// is Proven or Claimed; there is no published one. Its Neighbours are AddRemove by
	// default, for which the sketches have proofs; LocalReports always means ReplaceOne:
	// the number of reports is public. Its Replay does not hold sketches, see WorstCase.
	protocol.Problem

	// LocalK is the number of local clusters; RuleAuto by default.
	LocalK LocalK
	// Sketches is M, the number of keys. By default it is planned from the budget and
	// the grid for the likelihood estimators under the proven calibration (see
	// plan.enoughSketches), DefaultSketches otherwise.
	Sketches int
	// Gamma is the parameter of the heights. It defaults to 1 for the paper's
	// estimators and under the claimed calibration, else to DefaultGamma.
	Gamma float64
	// Share is the part of the squared budget that the sketches get under the
	// proven calibration. By default it is DefaultShare, and less where the budget is small
	// for the number of records (see plan.chooseShare).
	Share float64
	// Estimator defaults to EstimatorEM under proven, EstimatorPaper under claimed.
	Estimator Estimator
	// LocalStart defaults to StartAuto.
	LocalStart LocalStart
	// Return defaults to ToServer. Noised is for Sketch under the proven calibration; it takes the place of an
	// estimator.
	Return Return

	// ExactCenters and ExactWeights replace the private local centres, or the
	// estimated weights of the grid, by exact ones, to tell their errors apart
	// (Sketch-V, figure 8). Such a run is not private, and its ledger says so.
	ExactCenters, ExactWeights bool
}

// id appends the id of a row to what it is given, by which parties matched it; nil for row
// numbers.
func (j *Job) id() func(row int, dst []byte) []byte {
	if j.IDs == nil {
		return nil
	}
	return func(row int, dst []byte) []byte { return append(dst, j.IDs[row]...) }
}

// mechanism is the kind of noise of what is not a sketch; it follows from the calibration.
func (j *Job) mechanism() protocol.Mechanism {
	if j.Method.sketches() && j.Calibration != privacy.Claimed {
		return protocol.Gaussian
	}
	return protocol.Laplace
}

// takes says what the method takes of a problem.
func (m Method) takes() protocol.Takes {
	t := protocol.Takes{Private: m.private(), Columns: true, Replay: true}
	if t.Private {
		t.Mechanisms = []protocol.Mechanism{protocol.Laplace, protocol.Gaussian}
	}
	return t
}

// relation is what the protocol's guarantee speaks of.
func (j *Job) relation() privacy.Neighbours {
	if j.Method == LocalReports {
		return privacy.ReplaceOne
	}
	return j.Neighbours
}

// withDefaults returns a copy of j with the zero fields filled in.
func (j *Job) withDefaults() *Job {
	c := *j
	if c.Calibration == "" {
		c.Calibration = privacy.Proven
	}
	if c.Neighbours == "" {
		c.Neighbours = privacy.AddRemove
	}
	c.Budget = c.Spends()
	if c.LocalK == (LocalK{}) {
		c.LocalK.Rule = RuleAuto
	}
	if c.Return == "" {
		c.Return = ToServer
	}
	if c.Estimator == "" {
		c.Estimator = EstimatorPaper
		switch {
		case c.Return == Noised:
			c.Estimator = estimatorDraws
		case c.Method == LocalReports:
			c.Estimator = EstimatorReportPairs
		case c.Calibration == privacy.Proven && c.Method == Sketch:
			c.Estimator = EstimatorEM
		}
	}
	if c.Method == SketchBasic {
		c.Estimator = estimatorBasic
	}
	if c.Gamma == 0 {
		c.Gamma = 1
		if c.likelihood() {
			c.Gamma = DefaultGamma
		}
	}
	if c.Sketches == 0 && !c.likelihood() {
		c.Sketches = DefaultSketches
	}
	if c.LocalStart == "" {
		c.LocalStart = StartAuto
	}
	c.Columns = Split(c.Columns).canonical()
	return &c
}

// likelihood reports whether the sketches are proven and for a likelihood estimator.
func (j *Job) likelihood() bool {
	return j.Calibration == privacy.Proven &&
		(j.Estimator == EstimatorEM || j.Estimator == EstimatorPair || j.Estimator == estimatorDraws)
}

// check checks the fields.
func (j *Job) check() error {
	if j == nil {
		return protocol.ErrNoJob
	}
	if !slices.Contains(methods(), j.Method) {
		return fault.Unknown("method", string(j.Method), Describe().Names())
	}
	if err := j.Check(string(j.Method), j.Method.takes()); err != nil {
		return err
	}
	if j.Mechanism != "" && j.Mechanism != j.mechanism() {
		return fault.Request("mechanism", string(j.Mechanism)+" is not what "+string(j.Method)+" is calibrated with",
			"leave it out")
	}
	if err := Split(j.Columns).Check(j.D()); err != nil {
		return err
	}
	if len(j.Columns) > maxParties {
		return fault.Range("parties", len(j.Columns), fmt.Sprintf("at most %d", maxParties))
	}
	if err := j.own().Check(); err != nil {
		return err
	}
	c := j.withDefaults()
	switch c.Calibration {
	case privacy.Proven, privacy.Claimed:
	default:
		return fault.Request("calibration", fmt.Sprintf("is %s: the authors released no code", c.Calibration),
			"use proven or claimed")
	}
	if c.Method.private() {
		if err := c.validateBudget(); err != nil {
			return err
		}
	}
	if c.Method.sketches() {
		if err := c.validateSketches(); err != nil {
			return err
		}
	}
	return nil
}

// mostEpsilon is the largest budget of sketches: the losses of noise so small pass those that their accountant tells
// apart.
const mostEpsilon = 500

func (j *Job) validateBudget() error {
	if j.Method.sketches() && j.Calibration == privacy.Proven && j.Budget.Epsilon > mostEpsilon {
		return fault.Range("epsilon", j.Budget.Epsilon,
			fmt.Sprintf("at most %d for sketches: more changes nothing", mostEpsilon))
	}
	if j.Method.sketches() && j.Budget.Delta == 0 {
		return fault.Request("delta", "is 0, but sketches have no pure guarantee",
			"give a positive delta, or use ind-lap or ldp-agg, which have one")
	}
	if able := privacy.Provers(privacy.ReplaceOne); j.relation() == privacy.ReplaceOne && j.Method != LocalReports {
		switch {
		case !slices.Contains(able, string(j.Method)):
			return fault.Request("neighbours", "is replace-one, for which "+string(j.Method)+" has no proof",
				"use add-remove, and half the epsilon for the same effect, or a method that has one: "+strings.Join(able, ", "))
		case j.Calibration != privacy.Proven:
			return fault.Request("neighbours", "replace-one has no "+string(j.Calibration)+
				" statement: the paper adds or removes a record", "use --calibration proven")
		}
	}
	if (j.LocalStart == StartTree || j.LocalStart == StartRounds) &&
		(!j.Method.sketches() || j.Calibration != privacy.Proven) {
		return fault.Request("local-start", "is "+string(j.LocalStart)+
			", which belongs to the sketches under the proven calibration", "use lsf or auto")
	}
	return nil
}

func (j *Job) validateSketches() error {
	if err := j.validateReturn(); err != nil {
		return err
	}
	if err := checkGamma(j.Gamma); err != nil {
		return err
	}
	if j.Share == 1 {
		return fault.Range("sketch-share", j.Share, "between 0 and 1, both excluded")
	}
	if j.Calibration == privacy.Claimed {
		if j.Gamma < 1 {
			return fault.Request("gamma",
				fmt.Sprintf("is %v under the claimed calibration, whose true delta tends to .46 as gamma falls (T3)", j.Gamma),
				"use gamma 1, or --calibration proven")
		}
		if j.Estimator == EstimatorEM {
			return fault.Request("estimator",
				"em needs phantoms that the parties share, which the claimed calibration does not have",
				"use paper or pair-mle, or --calibration proven")
		}
	}
	if (j.Estimator == EstimatorEM || j.Return == Noised) && j.Gamma > maxJointGamma {
		return fault.Request("gamma", fmt.Sprintf("is %v, but equal heights are taken for one arrival", j.Gamma),
			"use at most 1/64, or another --estimator")
	}
	return nil
}

// validateReturn checks what the parties are to see.
func (j *Job) validateReturn() error {
	switch {
	case j.Return == ToServer:
		return nil
	case j.Method != Sketch || j.Calibration != privacy.Proven:
		return fault.Request("return", "is noised, which the method sketch has, under the proven calibration",
			"use --return server, or --method sketch --calibration proven")
	case j.Estimator != estimatorDraws:
		return fault.Request("estimator", "is given, and what is returned is estimated from the cells that keys draw",
			"leave out --estimator, or use --return server")
	case j.ExactCenters || j.ExactWeights:
		return fault.Request("return", "is noised, and exact values are asked for", "use --return server")
	}
	return nil
}

// plan is what the public parameters of a job decide before any data is
// touched: numbers of clusters, noise scales, phantoms.
type plan struct {
	parties, clusters int
	// mixture and classes are those of Release.
	mixture bool
	classes int
	// pairKeys says that each pair of parties has keys of its own.
	pairKeys bool
	// distribution is nil until a session needs it, unless the calibration did.
	distribution *Geometric
	// sketches is Job.Sketches, or what is planned.
	sketches int
	phantoms float64
	floor    uint16
	// returned is nil unless the parties are to see the result.
	returned *returned

	// share is Job.Share, or what is planned; localMu is that of each party's local part
	// beside the proven sketches.
	share, localMu float64
	// The pure budgets: n-hat, local centres and memberships of each party.
	eps0, eps1, eps2 float64
	// keyEps is eps', the published epsilon of one sketch.
	keyEps, delta2 float64
}

// claimed split of the budget (Sketch-V, Algorithm 1 and footnote 1).
const recordsShare = 0.02

func newPlan(j *Job) (*plan, error) {
	s := len(j.Columns)
	p := &plan{parties: s, sketches: j.Sketches, classes: min(2*j.K, mostClasses)}
	perParty := j.Budget.Epsilon / float64(2*s)
	switch {
	case j.Method == LocalReports:
		p.eps1, p.eps2 = perParty, perParty
	case j.Method.private():
		p.eps0 = recordsShare * j.Budget.Epsilon
		p.eps1, p.eps2 = (1-recordsShare)*perParty, (1-recordsShare)*perParty
	}
	p.delta2 = j.Budget.Delta / float64(s)
	if err := p.chooseClusters(j); err != nil {
		return nil, err
	}
	if !j.Method.sketches() {
		return p, nil
	}
	_, dense := product(p.clusters, s, maxDense)
	if j.Estimator == estimatorBasic && !dense {
		return nil, gridTooLarge(s, p.clusters)
	}
	cells, small := product(p.clusters, s, maxJoint)
	if j.Calibration == privacy.Claimed {
		return p, p.calibrateClaimed(j)
	}
	switch j.Estimator {
	case EstimatorEM, estimatorDraws:
		sparse := p.pairKeys && sparseCell*cells > j.PublicRecords() // chosen for pairs
		p.pairKeys = s > 2 && (!small || s*p.clusters > 128 || sparse)
		p.mixture = p.pairKeys && j.Estimator == EstimatorEM
	case EstimatorPair, EstimatorPaper:
		p.pairKeys = s > 2
	}
	if err := p.checkJoint(j); err != nil {
		return nil, err
	}
	return p, p.calibrateProven(j)
}

// checkJoint keeps the joint likelihood within its limits, as after the release is too late.
func (p *plan) checkJoint(j *Job) error {
	if j.Estimator != EstimatorEM {
		return nil
	}
	if p.clusters > maxMask {
		return fault.Range("local-k", p.clusters, fmt.Sprintf("at most %d with --estimator em", maxMask))
	}
	if events := p.sketches * p.sharing() * p.clusters; events > emEvents {
		return fault.Request("sketches", fmt.Sprintf("make up to %d events for the joint likelihood of %d parties with %d "+
			"clusters, beyond its limit of %d", events, p.sharing(), p.clusters, emEvents),
			"use fewer sketches, a smaller local-k, or --estimator pair-mle")
	}
	return nil
}

func (p *plan) chooseClusters(j *Job) error {
	n, s := j.PublicRecords(), p.parties
	switch {
	case j.LocalK.N != 0:
		p.clusters = j.LocalK.N
	case j.LocalK.Rule == RulePaper && j.Method.private():
		delta := p.delta2
		if delta == 0 {
			delta = 1 / float64(n)
		}
		p.clusters = paperLocalK(j.K, s, n, cmp.Or(j.Sketches, DefaultSketches), p.eps2, delta)
	case j.LocalK.Rule == RulePaper, j.LocalK.Rule == RuleAuto:
		p.clusters = autoLocalK(j.K, s, n)
		for j.Return == Noised && p.clusters > max(j.K, 2) && 60*p.clusters*p.clusters > n {
			p.clusters--
		}
		cells, small := product(p.clusters, s, maxJoint)
		if (!small || recordsACell*cells > n) && s > 2 && j.likelihood() && j.Estimator == EstimatorEM {
			return p.chooseForMany(j)
		}
	default:
		return fault.Request("local-k", fmt.Sprintf("has the unknown rule %q", j.LocalK.Rule), "use auto, paper or a number")
	}
	if j.LocalK.N == 0 {
		p.clusters = min(p.clusters, maxLocalK, n)
	}
	if p.clusters < 2 || p.clusters > maxLocalK || p.clusters > n {
		return fault.Range("local-k", p.clusters,
			fmt.Sprintf("from 2 to %d and at most the number of records, %d", maxLocalK, n))
	}
	if _, ok := product(p.clusters, s, maxDense); !ok && (j.Method == Independent || j.Method == LocalReports) {
		return gridTooLarge(s, p.clusters)
	}
	return nil
}

func (p *plan) calibrateClaimed(j *Job) error {
	if limit := 2 * math.Log(1/p.delta2); p.eps2 > limit {
		return fault.Request("epsilon",
			fmt.Sprintf("gives each party eps_2 = %.4g for its sketches, beyond 2 ln(1/delta_2) = %.4g, where the claimed "+
				"lemma ends", p.eps2, limit),
			"use a smaller epsilon or delta, or --calibration proven")
	}
	var err error
	if p.distribution, err = newGeometric(j.Gamma); err != nil {
		return err
	}
	p.keyEps = p.eps2 / (4 * math.Sqrt(float64(j.Sketches)*math.Log(1/p.delta2)))
	p.phantoms = phantomCount(p.keyEps)
	p.floor, err = p.distribution.floor(p.keyEps)
	return err
}

// chooseShare plans the share of the sketches from mu, the budget's. Counts of n records have errors of the order 1/mu,
// so n mu says how much of the clusters is seen. Of two parties, where it is small, the local centres fail before the
// intersections do. Where each pair of parties has keys of its own, the tables of pairs fail first: on sets of 1,000 to
// 20,000 records and 8 and 16 parties a half does better than a quarter nearly everywhere, at most by 40 %.
// The cells of all parties fail first, too, where more clusters than a party has are to be told apart in them; three
// quarters are theirs where a party has one column, of which few local centres say nearly all.
func (p *plan) chooseShare(j *Job, mu float64) {
	switch p.share = defaultShare; {
	case j.Share != 0:
		p.share = j.Share
	case j.Return == Noised:
	case p.crowded(j) && j.widest() == 1:
		p.share = columnsShare
	case p.pairKeys && manyClusters*p.clusters < j.K:
		p.share = manyShare
	case p.pairKeys || p.crowded(j):
		p.share = pairsShare
	case p.parties == 2 && float64(j.PublicRecords())*mu < smallBudget:
		p.share = smallShare
	}
}

// refits says whether a mixture is fitted to the joint likelihood of a crowded grid (see refitJoint). Of few clusters
// the cells that the likelihood leaves say more: without a mixture, sets of 1,000 with nine of ten records in a corner
// lose .4 to .7 for five to eight clusters, separated ones .98 to .99; but 1.1 for 20 clusters and three local ones.
func (p *plan) refits(j *Job) bool { return j.K > fewRefitted && p.crowded(j) }

// crowded says whether the joint likelihood of three parties and more is to tell apart more clusters than a party has,
// in more cells than twice the numbers of a mixture of them.
func (p *plan) crowded(j *Job) bool {
	cells, small := product(p.clusters, p.parties, maxJoint)
	return small && !p.pairKeys && p.parties > 2 && p.clusters < j.K && cells > 2*j.K*p.parties*(p.clusters-1)
}

// calibrateProven gives a share of the squared mu of the budget to the sketches, the
// rest to the parties' local centres, and finds the least phantoms that keep the
// whole within the budget by the distribution of its losses.
func (p *plan) calibrateProven(j *Job) error {
	values := p.parties // that one record changes, over all Gaussian releases
	for _, columns := range j.Columns {
		values += forestLevels + 1 + len(columns) + staged.MostRounds*(len(columns)+1)
	}
	slack := privacy.GaussianSlack(minScale*(1<<releaseBits), values)
	mu, err := privacy.DiscreteMu(j.Budget, slack)
	if err != nil {
		return fault.Request("budget", err.Error(), "")
	}
	p.chooseShare(j, mu)
	p.localMu = mu * math.Sqrt((1-p.share)/float64(p.parties))
	a := p.phantomsAKey(mu * math.Sqrt(p.share))
	switch {
	case j.Return == Noised:
		if err := p.planReturn(j, slack, a); err != nil {
			return err
		}
	case p.sketches == 0:
		clusters := 0.0
		switch {
		case p.crowded(j):
			clusters = float64(j.K)
		case p.mixture: // what a table errs in, others make up for
			clusters = float64(j.K) / 2
		}
		p.sketches = p.enoughSketches(float64(j.PublicRecords()), a, clusters)
	}
	spec := p.sketchSpec(j)
	n, err := privacy.FMPhantomsPLD(j.Budget,
		privacy.FM{Gamma: j.Gamma, Parties: spec.Parties, Cells: spec.Cells}, spec.Rounds,
		privacy.Gaussian{Scale: 1 / (p.localMu * math.Sqrt(float64(p.parties))), Discretised: slack})
	if err != nil {
		return fault.Request("budget", err.Error(), "use a larger --sketch-share")
	}
	p.phantoms = max(p.phantoms, float64(n))
	if p.returned == nil {
		return nil
	}
	return p.noiseOfDraws(j, p.sketches, p.phantoms, slack)
}

// phantomsAKey is about how many phantoms a cell needs, in square roots of the number of keys: a key's loss has the
// variance H_S/((k'^(S-1) - 1) n_c^2) (THEOREMS.md T3) and all keys together mu^2.
func (p *plan) phantomsAKey(mu float64) float64 {
	s, sets := p.sharing(), 1
	if p.pairKeys {
		sets = p.parties * (p.parties - 1) / 2
	}
	harmonic := 0.0
	for i := range s {
		harmonic += 1 / float64(i+1)
	}
	return math.Sqrt(float64(sets)*harmonic/(math.Pow(float64(p.clusters), float64(s-1))-1)) / mu
}

// enoughSketches plans M. The phantoms of M keys are about a sqrt(M) in a cell
// (phantomsAKey). Of each key the cell's sketches tell it from the U records and u n_c phantoms
// of its clusters, which hold the part u = U k'^S/n of all cells, so the weight of an empty
// cell has the variance n_c (U + u n_c)/M = a U/sqrt(M) + a^2 u. More keys lower the first
// term only: M doubles from leastPlanned until it is three fifths of the second, up to
// mostPlanned. The time of the joint likelihood grows with M.
//
// That is the noise of a cell without records. Where a mixture is fitted, cells may hold few records and the grid more
// phantoms than there are records: of M keys few tell records then, and the weight of one of so many clusters has the
// relative variance clusters (U + u n_c)/(M n) besides. M doubles until that is .03, up to mostRefitted.
func (p *plan) enoughSketches(records, a, clusters float64) int {
	m := leastPlanned
	cells := math.Pow(float64(p.clusters), float64(p.sharing()))
	for m < mostPlanned && records/math.Sqrt(float64(m)) > 0.6*a*cells {
		m *= 2
	}
	for m < mostRefitted && clusters*(records+a*math.Sqrt(float64(m))*cells) > 0.03*records*float64(m) {
		m *= 2
	}
	return m
}

// sketchSpec describes the sketches for the ledger.
func (p *plan) sketchSpec(j *Job) privacy.Spec {
	s := privacy.Spec{Family: "fm", Gamma: j.Gamma, Phantoms: int(p.phantoms), Parties: p.parties, Cells: p.clusters,
		Rounds: p.sketches}
	if p.pairKeys {
		s.Parties = 2
		s.Rounds *= p.parties * (p.parties - 1) / 2
	}
	return s
}

// keySets is the number of key sets under which a party makes sketches.
func (p *plan) keySets() int {
	if p.pairKeys {
		return p.parties - 1
	}
	return 1
}
