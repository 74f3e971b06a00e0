package lloyd

import (
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// delta is what the run is stated at: with Laplace noise what the tie-break of the
// flow solver costs, of a proven run.
func (p *Plan) delta() float64 {
	switch {
	case p.job.Mechanism != protocol.Laplace:
		return p.job.Budget.Delta
	case p.job.Calibration == privacy.Proven:
		return p.tieDelta(p.rounds)
	}
	return 0
}

// subtracts tells whether there are two clients that see exact values of both together.
func (p *Plan) subtracts() bool { return !p.Private && p.m == 2 && p.job.Aggregator != Naive }

const subtracts = "each of the two clients knows the other's exact values: it subtracts its own from those of both"

// note writes down what the budget does not cover.
func (p *Plan) note() {
	j := p.job
	say := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if p.Private && j.Mechanism == protocol.Laplace && p.givenDelta > 0 {
		say("delta = %.3g was given; Laplace noise does not need it", p.givenDelta)
	}
	if p.Private && j.Records == 0 && j.Neighbours == privacy.AddRemove {
		say("the number of records comes from the data")
	}
	if p.Private && j.Method.Constrained() && !j.total() && !j.NonExclusive && (p.radius != nil || j.Records > 0) {
		say("whether the sizes can be met follows from the records: a round in which no assignment has them ends the run " +
			"with an error")
	}
	p.noteDeal()
	if len(j.Bounds.Lo) > 0 && j.Bounds.FromData {
		say("the bounds come from the data")
	}
	if p.seeds != nil && j.Start == nil {
		say("the first centroids are records (%s)", j.Init)
	}
	if p.drawn != nil {
		say("the server chooses the first centroids, which depend on no record")
	}
	switch {
	case p.batch > 0:
		say("the rounds of a start go over batches of %s, the last over all", fault.Count(p.batch, "record"))
	case p.plain:
		say("a cluster that becomes empty begins again at a record")
	}
	if p.trained < p.n {
		say("%d of the %d records were trained on, drawn at random", p.trained, p.n)
	}
	if j.Metric == Cosine {
		say("centroids have length 1: squared distances are 2 - 2 cos")
	}
	if p.subtracts() {
		say(subtracts)
	}
	for _, d := range j.Drops {
		if d.Iteration < p.rounds {
			say("%s failed in round %d; the rounds from there on sum the others' records", clientName(d.Client),
				d.Iteration+1)
		}
	}
}

// noteDeal says that no bound holds for a record of a table that was dealt to clients who each keep sizes, or take
// means, of their own: one more deals all records anew, and T1 lets one client's change alone. Sums of all records do
// not depend on who holds them, nor does the deal on what replaces a record.
func (p *Plan) noteDeal() {
	j := p.job
	dealt := slices.ContainsFunc(j.Clients, func(c dataset.Part) bool { return c.Dealt })
	if !dealt || !p.Private || j.Neighbours == privacy.ReplaceOne ||
		!j.Method.Constrained() && j.Release != Centroid {
		return
	}
	p.Notes = append(p.Notes, "how the table was dealt to the clients, which follows from its number of records: "+
		"the bounds are for a record more or less at one client, the others' records staying as they are")
	p.Unpaid = "a record more would deal all of the table's records to other clients, which no bound of " +
		string(j.Method) + " covers"
	p.Doubts = append(p.Doubts, "epsilon does not cover how the table was dealt to the clients, as a record more deals "+
		"all of them anew: give a file of each client, or --neighbours replace-one")
}

// entries states what so many rounds release and what it costs.
func (p *Plan) entries(rounds int) []privacy.Entry {
	if p.Private {
		return p.noisyEntries(rounds)
	}
	return p.plainEntries(rounds)
}

// plainEntries are what parties see of rounds without noise.
func (p *Plan) plainEntries(rounds int) []privacy.Entry {
	list := make([]privacy.Entry, 0, len(p.parts)+1)
	viewers, conditions := []string{privacy.Clients, privacy.Outsider}, []string(nil)
	switch {
	case p.job.Aggregator == Naive:
	case p.release != nil: // it has planned them
		conditions = p.release.Entries[0].Conditions
	default:
		conditions = []string{p.Capacity.String()}
	}
	for _, part := range p.parts {
		e := privacy.Entry{What: "exact " + part.name + " of each cluster, " + fault.Count(rounds, "round"),
			Viewers: viewers, Mechanism: "none", Calibration: privacy.None, Conditions: conditions}
		list = append(list, e)
		viewers = viewers[:1]
	}
	if p.job.Aggregator == Naive {
		list = append(list, privacy.Entry{What: "exact sums and counts of every client",
			Viewers: []string{privacy.Server}, Mechanism: "none", Calibration: privacy.None})
	}
	return list
}

// noisyEntries are the noisy releases, one entry per part and run of stages that
// cost the same.
func (p *Plan) noisyEntries(rounds int) []privacy.Entry {
	var list []privacy.Entry
	if p.Coordinated {
		list = append(list, privacy.Entry{
			What:      "masked values of every client, " + fault.Count(rounds, "round"),
			Viewers:   []string{privacy.Server},
			Mechanism: "mask", Calibration: p.job.Calibration,
			Conditions: []string{"the server does not have the clients' mask seed and colludes with no client"}})
	}
	if p.Servers > 0 {
		list = append(list,
			privacy.Entry{What: fmt.Sprintf("additive shares of every client's values, one for each of %d "+
				"servers, %s", p.Servers, fault.Count(rounds, "round")),
				Viewers: []string{privacy.Server}, Mechanism: "mask", Calibration: p.job.Calibration,
				Conditions: []string{"parties follow the protocol, and not all servers pool their shares: those of all but one " +
					"are uniform"}})
	}
	first := len(list)
	for i := range p.parts {
		part := &p.parts[i]
		for at := 0; at < len(p.stages) && p.stages[at] < rounds; {
			last := at
			for last+1 < len(p.stages) && part.scales[last+1] == part.scales[at] {
				last++
			}
			list = append(list, p.entry(part, at, p.until(last, rounds)))
			at = last + 1
		}
	}
	p.remark(&list[first])
	return list
}

// entry describes the rounds of a part from a stage to round end, which have one scale.
func (p *Plan) entry(part *part, stage, end int) privacy.Entry {
	j := p.job
	c, t := part.scales[stage], p.stages[stage]
	family := string(j.Mechanism)
	if j.Calibration == privacy.Proven {
		family = "discrete-" + family
	}
	which := fmt.Sprintf("rounds %d to %d", t+1, end)
	switch {
	case end-t == p.rounds:
		which = fault.Count(end, "round")
	case end-t == 1:
		which = fmt.Sprintf("round %d", end)
	}
	e := p.bound(part, stage).Entry(fmt.Sprintf("noisy %s of each cluster, %s", part.name, which), family, c.norm)
	e.Scale, e.Remark = c.scale, part.rule.Worth
	e.Viewers, e.Noise = p.audience()
	e.Conditions = append(slices.Clone(part.rule.Conditions), p.conditions()...)
	if part.unit == 1 || part.name == "relative counts" || part.name == "counts" {
		e.Unit = "records"
	}
	if c.joint {
		e.Remark = "the entry of the sums covers the counts: within one cluster only the sums change, between two " +
			"both change by less"
		return e
	}
	e.Cost = privacy.Spec{Family: family, Scale: c.scale / c.value, Rounds: end - t}
	if j.Mechanism == protocol.Gaussian && j.Calibration == privacy.Proven {
		e.Cost.Slack = privacy.GaussianSlack(c.scale/part.unit, part.length)
		e.Cost.Distance = p.shareDistance(part, stage) * float64(end-t)
	}
	if j.total() && part.offset == 0 { // the parts of a round share its assignment
		e.Cost.Failure = p.tieDelta(end - t)
	}
	real := p.trueSensitivity(part)
	if real == 0 {
		real = c.value
	}
	switch {
	case j.Calibration == privacy.Published && j.Mechanism == protocol.Laplace && j.Noise != protocol.InShares:
		e.True = &privacy.Spec{Family: "pure", Epsilon: real/c.scale + float64(p.changed(part))*math.Ln2,
			Rounds: end - t}
	case real != c.value:
		e.True = &privacy.Spec{Family: family, Scale: c.scale / real, Rounds: end - t}
	}
	return e
}

// alone tells whether one client holds all records and draws the noise itself: there is no server then,
// and the client is in no audience (THEOREMS.md T10).
func (p *Plan) alone() bool { return p.m == 1 && p.job.Calibration == privacy.Proven }

// audience is who sees a noisy release, and who knows its noise.
func (p *Plan) audience() ([]string, *privacy.Noise) {
	if p.alone() {
		return []string{privacy.Outsider}, nil
	}
	return []string{privacy.Clients, privacy.Outsider}, p.drawers(p.rounds - 1).Known()
}

// changed is how many coordinates of a part one record can change. Under Published each costs ln 2 more
// than its noise says, since truncation toward zero doubles the probability of no noise (THEOREMS.md
// T6 vii).
func (p *Plan) changed(part *part) int {
	clusters := 1
	switch {
	case p.job.Method.Constrained() && part.name != "counts":
		clusters = p.k
	case p.job.Method.Constrained():
		clusters = max(p.job.Exclusivity, 1)
	}
	if p.job.Neighbours == privacy.ReplaceOne {
		clusters = min(2*clusters, p.k)
	}
	if part.name == "counts" || part.name == "relative counts" {
		return clusters
	}
	return clusters * p.d
}

// conditions are those of this run, beside the ones of the theorems.
func (p *Plan) conditions() []string {
	j := p.job
	list := []string{p.Capacity.String()}
	if p.weighted {
		list = append(list, j.WeightCondition())
	}
	if j.Method.Constrained() {
		sizes := fmt.Sprintf("a cluster has %d to %s at each client", p.lo, fault.Count(p.hi, "record"))
		if p.lo == p.hi {
			sizes += ": no other whole number is near enough to its share"
		}
		list = append(list, sizes)
		if j.ClientShares != nil {
			list = append(list, "the shares of the clients in the records are public")
		}
		if p.m > 1 && j.Neighbours == privacy.ReplaceOne {
			list = append(list, "a record that is replaced is so at the client that has it: one that goes to another client "+
				"is one less there and one more here, which two bounds for one record cover")
		}
		if d := p.tieDelta(p.rounds); j.total() && d > 0 {
			list = append(list, fmt.Sprintf("a tie that the hash leaves open adds %.2g to delta, for at most %s",
				d, fault.Count(p.n, "record")))
		}
	}
	by := p.drawers(p.rounds - 1)
	if j.Noise == protocol.ByEach {
		by.All = p.m
	}
	if c := by.Condition(); c != "" && !p.alone() {
		list = append(list, c)
	}
	if j.Noise == protocol.InShares && j.Aggregator == ByRing {
		list = append(list, "the two neighbours of a client in the ring do not pool what they see, which has its "+
			"share alone")
	}
	return list
}

// trueSensitivity is the proven L1 sensitivity of a release whose calibration
// claims less, 0 where the claim holds or nothing is proved (THEOREMS.md T1).
func (p *Plan) trueSensitivity(part *part) float64 {
	j := p.job
	if j.Method == SuLloyd && j.Release == Centroid {
		// A record that is the only one of a cluster at its client moves the mean
		// from the old centroid.
		return 2 * boxBound * float64(p.d) / float64(p.m)
	}
	if j.Calibration == privacy.Proven || !j.Method.Constrained() || part.name == "counts" {
		return 0
	}
	d, k, least := float64(p.d), float64(p.k), float64(p.m*p.lo)
	if p.exclusivity > 1 || p.radius != nil || j.NonExclusive {
		e := float64(j.Exclusivity)
		if j.Release == Centroid {
			return 2 * boxBound * e * k * d / least
		}
		return 2 * boxBound * e * k * d
	}
	if j.Release == Centroid {
		return 2 * boxBound * d * ((k-1)/least + 1/(least+1))
	}
	return boxBound * d * (2*k - 1)
}

// remark says in words, at the first noisy entry, what the calibration is worth.
func (p *Plan) remark(e *privacy.Entry) {
	say := func(text string) {
		if e.Remark != "" {
			e.Remark += "; "
		}
		e.Remark += text
	}
	switch p.job.Calibration {
	case privacy.Proven:
		say("proven: every step is covered by a theorem of THEOREMS.md, noise is exact and discrete")
	case privacy.Claimed:
		say("claimed: the noise that the paper's theorem asks for, drawn in floating point and rounded to nearest")
	case privacy.Published:
		say("published: the noise scale of the authors' released code, drawn in floating point and truncated toward " +
			"zero, which doubles the probability of no noise and costs ln 2 for each coordinate that changes (T6); " +
			"it serves to reproduce their figures")
	}
	if p.squaredRadius() {
		say("a round's noise is set to twice the square of its radius, and records are assigned within the radius " +
			"of the first, as in the released code: neither is Theorem 7.1")
	}
}

// perRecord is the largest magnitude that a record adds to a word.
func (p *Plan) perRecord() float64 {
	switch {
	case p.job.Release == Centroid:
		return p.scale / float64(max(p.n, 1))
	case p.job.Method == Relative:
		return 2 * p.scale
	}
	return float64(max(p.job.Exclusivity, 1)) * p.scale
}

// noiseReach is a magnitude that the noise of a word exceeds with probability
// below 2^-90: 64 scales of Laplace noise or 12 of Gaussian noise.
func (p *Plan) noiseReach() float64 {
	most := 0.0
	for _, part := range p.parts {
		for _, c := range part.scales {
			most = max(most, c.scale/part.unit)
		}
	}
	reach := 64.0
	if p.job.Mechanism == protocol.Gaussian {
		reach = 12
	}
	if p.job.Noise != protocol.ByServer {
		reach *= math.Sqrt(float64(max(p.m, p.Servers))) * 2
	}
	return reach * most
}
