package protocol

import (
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Problem is what the jobs of all methods have in common: every job embeds it. Its zero
// fields mean the default that the field's comment states; Clients, K and, for a private
// method, Budget are required. What a method does not take is refused, not ignored.
type Problem struct {
	// Clients holds each client's records on one grid. Of methods over columns, and of
	// those on one table, it is a single part with all columns.
	Clients []dataset.Part
	// Columns says, for methods over columns, which of them each party holds, by index
	// from 0.
	Columns [][]int
	// IDs has the id of each record where parties matched theirs; nil for row numbers.
	IDs []string
	// Bounds maps centroids back to the data's own units. The zero value leaves them in
	// [-1, 1].
	Bounds dataset.Bounds
	// Clamped is the number of coordinates that were outside the bounds, for the report.
	Clamped int
	// Labels has the true class of each row of the table (Part.Rows), for scores; nil if
	// unknown.
	Labels []int32

	// K is the number of clusters, 1 to 65534 and at most the number of records.
	K int
	// Records is the public number of records, which every parameter follows: rounds,
	// sizes, noise scales, the default delta. The clients may have more or fewer. 0 takes
	// their own number, and the ledger says that no budget covers it.
	Records int
	// Iterations is the number of rounds; 0 means the method's rule.
	Iterations int
	// Start, if not nil, has the first centroids: K rows of as many numbers as there are
	// columns, in the normalised box. They are taken to be public.
	Start []float64

	// Budget is what the whole run of a private method may spend. A negative Delta means
	// 1/(n ln n), 0 asks for a pure guarantee.
	Budget privacy.Budget
	// Calibration defaults to the method's first one: Proven, where it has that.
	Calibration privacy.Calibration
	// Neighbours is AddRemove by default, and what else the method has a proof for.
	Neighbours privacy.Neighbours
	// Mechanism is the kind of noise, the method's own by default.
	Mechanism Mechanism
	// Noise is who adds the noise of the sums of several clients, DefaultNoise if empty.
	Noise NoiseBy
	// Colluders is how many parties may read along with a viewer where they add shares of
	// the noise, a party that looks among them: the shares of all but so many make up the
	// whole. 0 means 1.
	Colluders int
	// Survivors is the least number of clients in a sum under InShares, where some may vanish:
	// any so many shares, less those of colluders, make up the whole noise, and what others add
	// stays in it. 0 means all clients, but for those that a simulation lets fail.
	Survivors int

	// Seed makes the run a reproducible simulation; without it noise and masks come from
	// the system.
	Seed *uint64
	// NoQuality leaves out what is computed from the private data and no budget covers.
	NoQuality bool
	// WeightCap is, for private methods whose records have weights (Part.Weights), the most that one may
	// weigh, a public number, 1 by default: heavier ones count as that, and noise hides so much.
	WeightCap float64
	// Replay makes the run one of two on neighbouring data sets, for an audit, which may end
	// after the last release, with an empty result. nil for a run of its own.
	Replay *privacy.Replay
}

// Takes says what a method takes of the fields that not all have.
type Takes struct {
	// Private methods spend a budget.
	Private bool
	// Columns are held by parties, at least two of them.
	Columns bool
	// Several clients may hold records, and share the noise of their sums.
	Several bool
	// Servers may be several, which share sums and their noise.
	Servers bool
	// Rounds can be counted, and the first centroids given.
	Iterations, Start bool
	// Colluders are assumed of methods that share noise otherwise than over sums of
	// several clients.
	Colluders bool
	// Counted records: all parties know how many there are, so that no other number can be
	// the public one.
	Counted bool
	// Quiet private methods also run without noise and budget, under privacy.None.
	Quiet bool
	// Follows says that the method without noise also follows released code, under privacy.Published.
	Follows bool
	// Weights of records count.
	Weights bool
	// Replay is for methods that are audited by replay.
	Replay bool
	// Mechanisms are the kinds of noise, of which the first is the default.
	Mechanisms []Mechanism
}

// ErrNoJob is the refusal of no job.
var ErrNoJob = fault.Request("job", "is nil", "give one")

// Check refuses a problem that makes no sense, or asks for what the method does not take.
// It leaves the records themselves to who holds them.
func (p *Problem) Check(method string, takes Takes) error {
	takes.Private = takes.Private && !(takes.Quiet && p.Calibration == privacy.None)
	who := "client"
	if takes.Columns {
		who = "table"
	}
	for _, check := range []func() error{
		func() error { return checkParts(p.Clients, who, p.Records > 0) },
		func() error { return p.checkTaken(method, takes) },
		func() error { return checkLabels(p.Clients, p.Labels) },
		p.checkWeights,
		func() error { return p.checkBounds() },
		p.checkNumbers,
		func() error { return p.checkBudget(method, takes) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkTaken refuses what the method does not take.
func (p *Problem) checkTaken(method string, takes Takes) error {
	if !takes.Several && len(p.Clients) != 1 {
		return fault.Range("clients", len(p.Clients), "1: "+method+" works on one table")
	}
	for _, f := range []struct {
		name         string
		given, taken bool
	}{
		{"columns", p.Columns != nil, takes.Columns},
		{"iterations", p.Iterations != 0, takes.Iterations},
		{"start", p.Start != nil, takes.Start},
		{"noise", p.Noise != "", takes.Several && takes.Private},
		{"colluders", p.Colluders != 0, takes.Several && takes.Private || takes.Colluders},
		{"survivors", p.Survivors != 0, takes.Several && takes.Private},
		{"epsilon", p.Budget.Epsilon != 0, takes.Private},
		{"neighbours", p.Neighbours != "", takes.Private},
		{"calibration", p.Calibration != "" && p.Calibration != privacy.None, takes.Private || takes.Quiet || takes.Follows},
		{"public-n", p.Records != 0, takes.Private && !takes.Counted},
		{"replay", p.Replay != nil, takes.Replay},
		{"weights", p.Weighted(), takes.Weights},
		{"weight-cap", p.WeightCap != 0, takes.Weights && takes.Private},
	} {
		if f.given && !f.taken {
			return fault.Request(f.name, method+" does not take it", "leave it out")
		}
	}
	if !slices.Contains([]NoiseBy{"", ByServer, ByEach, InShares, AmongServers}, p.Noise) {
		return fault.Range("noise", p.Noise, "server, local, split or servers")
	}
	if p.Noise == AmongServers && !takes.Servers {
		return fault.Request("noise", "is servers, and "+method+" has one server", "leave it out")
	}
	if p.Mechanism != "" && !slices.Contains(takes.Mechanisms, p.Mechanism) {
		return fault.Request("mechanism", fmt.Sprintf("%s is not what %s is calibrated with", p.Mechanism, method),
			"leave it out")
	}
	return nil
}

// MostIterations bounds the rounds of a run.
const MostIterations = 1_000_000

// distinct tells whether no id is there twice.
func distinct(ids []string) bool {
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	return len(known) == len(ids)
}

// checkNumbers refuses numbers that no method takes.
func (p *Problem) checkNumbers() error {
	n, d := p.PublicRecords(), p.D()
	switch {
	case p.Records < 0:
		return fault.Range("public-n", p.Records, "at least 1, or 0 for the data's own number")
	case p.K < 1 || p.K > math.MaxUint16-1:
		return fault.Range("k", p.K, fmt.Sprintf("1 to %d", math.MaxUint16-1))
	case p.K > n:
		return fault.Request("k", fmt.Sprintf("is %d for %s", p.K, fault.Count(n, "record")),
			"ask for at most one cluster per record")
	case p.Iterations > MostIterations:
		return fault.Range("iterations", p.Iterations, fmt.Sprintf("at most %d", MostIterations))
	case p.IDs != nil && len(p.IDs) != p.Own():
		return fault.Request("ids", fmt.Sprintf("are %d for %s", len(p.IDs), fault.Count(p.Own(), "record")),
			"give one for each record")
	case !distinct(p.IDs):
		// Two records of one id have one random draw, and a removed one may change what the other gets (PRIVACY C3).
		return fault.Request("ids", "are not distinct", "give each record its own")
	case p.Start != nil && len(p.Start) != p.K*d:
		return fault.Request("start", "has "+fault.Count(len(p.Start), "number"),
			fmt.Sprintf("give %s of %d", fault.Count(p.K, "row"), d))
	case p.Colluders < 0:
		return fault.Range("colluders", p.Colluders, "at least 1")
	case p.Survivors < 0 || p.Survivors > len(p.Clients):
		return fault.Range("survivors", p.Survivors, "at most the number of clients")
	}
	for _, x := range p.Start {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fault.Range("start", x, "finite numbers")
		}
	}
	return nil
}

// checkBudget refuses budgets and calibrations that the method has no statement for.
func (p *Problem) checkBudget(method string, takes Takes) error {
	if !takes.Private {
		return nil
	}
	b := p.Spends()
	switch {
	case !(b.Epsilon > 0) || math.IsInf(b.Epsilon, 1):
		return fault.Range("epsilon", b.Epsilon, "positive and finite")
	case !(b.Delta >= 0 && b.Delta < 1):
		return fault.Range("delta", b.Delta, "in [0, 1)")
	case p.Mechanism == Gaussian && b.Delta == 0:
		return fault.Request("delta", "is 0, which the Gaussian mechanism cannot give",
			"use --mechanism laplace, which is pure, or a positive delta")
	}
	if p.Calibration != "" {
		if err := privacy.CheckCalibration(method, p.Calibration); err != nil {
			return err
		}
	}
	if p.Neighbours != "" {
		return privacy.CheckNeighbours(method, p.Neighbours)
	}
	return nil
}

// checkBounds refuses bounds, if there are any, that are not one pair of finite numbers,
// in order, for each column.
func (p *Problem) checkBounds() error {
	b, d := p.Bounds, p.D()
	if len(b.Lo) == 0 && len(b.Hi) == 0 {
		return nil
	}
	if len(b.Lo) != d || len(b.Hi) != d {
		return fault.Request("bounds", fmt.Sprintf("%d lower and %d upper ones for %s", len(b.Lo), len(b.Hi),
			fault.Count(d, "column")), "give one pair per column")
	}
	for h := range d {
		if lo, hi := b.Lo[h], b.Hi[h]; !(lo <= hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0) {
			return fault.Request("bounds", fmt.Sprintf("of column %d are %g and %g", h+1, lo, hi),
				"give finite numbers, the lower one first")
		}
	}
	return nil
}

// Weighted says whether records have weights.
func (p *Problem) Weighted() bool {
	return slices.ContainsFunc(p.Clients, func(c dataset.Part) bool { return c.Weights != nil })
}

// MostWeight is the most that a record may weigh.
func (p *Problem) MostWeight() float64 {
	if p.WeightCap == 0 {
		return 1
	}
	return p.WeightCap
}

// WeightCondition says what records with weights count for under privacy.
func (p *Problem) WeightCondition() string {
	return fmt.Sprintf("a record weighs at most the public cap, %g, in units of which all of this is: a heavier one "+
		"counts as that (T15)", p.MostWeight())
}

// checkWeights refuses weights that are none, or that some clients lack.
func (p *Problem) checkWeights() error {
	if p.WeightCap != 0 && (!(p.WeightCap > 0) || math.IsInf(p.WeightCap, 0)) {
		return fault.Range("weight-cap", p.WeightCap, "positive and finite")
	}
	if !p.Weighted() {
		if p.WeightCap != 0 {
			return fault.Request("weight-cap", "is given, and the records have no weights", "leave it out, or give weights")
		}
		return nil
	}
	if !p.NoQuality {
		return fault.Request("quality", "is asked for, and counts each record once, while records have weights",
			"leave the quality out, or the weights")
	}
	for i, c := range p.Clients {
		who := fmt.Sprintf("client %d", i+1)
		if len(c.Weights) != c.Points.N {
			return fault.Request(who, fmt.Sprintf("has %s for %s", fault.Count(len(c.Weights), "weight"),
				fault.Count(c.Points.N, "record")),
				"give every client's records weights")
		}
		for _, w := range c.Weights {
			if !(w >= 0) || math.IsInf(w, 0) {
				return fault.Request(who, "has a weight that is negative or not finite", "give finite weights of 0 or more")
			}
		}
	}
	return nil
}

// D is the number of columns.
func (p *Problem) D() int { return p.Clients[0].Points.D }

// Own is the number of records of all clients.
func (p *Problem) Own() int {
	n := 0
	for _, c := range p.Clients {
		if c.Points != nil {
			n += c.Points.N
		}
	}
	return n
}

// PublicRecords is the number of records that parameters follow.
func (p *Problem) PublicRecords() int {
	switch {
	case p.Records > 0:
		return p.Records
	case p.Replay != nil && p.Replay.Records > 0:
		return p.Replay.Records
	}
	return p.Own()
}

// Spends is the budget with its default delta filled in.
func (p *Problem) Spends() privacy.Budget {
	b := p.Budget
	if b.Delta < 0 {
		b.Delta = privacy.DefaultDelta(p.PublicRecords())
	}
	return b
}

// NoiseOf is the kind of noise: what is asked for, or the default, and Laplace for a pure
// guarantee.
func (p *Problem) NoiseOf(byDefault Mechanism) Mechanism {
	switch {
	case p.Budget.Delta == 0:
		return Laplace
	case p.Mechanism != "":
		return p.Mechanism
	}
	return byDefault
}

// checkParts refuses the absence of parties, and what they hold where it is nothing or
// of different columns or grids. who is what a party is called. Under a public number of records some may hold none:
// a refusal would tell it.
func checkParts(parts []dataset.Part, who string, mayLack bool) error {
	if len(parts) == 0 {
		return fault.Range(who+"s", 0, "at least 1")
	}
	for i, p := range parts {
		refuse := func(why, do string) error { return fault.Request(fmt.Sprintf("%s %d", who, i+1), why, do) }
		switch {
		case p.Points == nil || p.Points.N < 1 && !mayLack:
			return refuse("holds no records", "give each "+who+" at least one record")
		case p.Points.D < 1:
			return refuse("has no columns", "give at least one column")
		case p.FractionBits < 1 || p.FractionBits > dataset.MaxFractionBits:
			return fault.Range("fraction bits", p.FractionBits, fmt.Sprintf("1 to %d", dataset.MaxFractionBits))
		case p.Points.D != parts[0].Points.D || p.FractionBits != parts[0].FractionBits:
			return refuse(fmt.Sprintf("has %s on the grid 2^-%d, %s 1 has %d on 2^-%d",
				fault.Count(p.Points.D, "column"), p.FractionBits,
				who, parts[0].Points.D, parts[0].FractionBits), "normalise all "+who+"s' records together")
		}
	}
	return nil
}

// checkLabels refuses labels, if there are any, that do not reach all rows of the parts.
func checkLabels(parts []dataset.Part, labels []int32) error {
	if labels == nil {
		return nil
	}
	for i, p := range parts {
		reach := p.Points.N <= len(labels)
		if p.Rows != nil {
			reach = len(p.Rows) >= p.Points.N &&
				!slices.ContainsFunc(p.Rows[:p.Points.N], func(r int) bool { return r < 0 || r >= len(labels) })
		}
		if !reach {
			return fault.Request("labels", fmt.Sprintf("%d do not reach all rows of part %d", len(labels), i+1),
				"give one label per record")
		}
	}
	return nil
}
