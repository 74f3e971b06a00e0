package horizontal

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/secagg"
)

// Result returns the centroids, the ledger and, unless the job leaves it out,
// the quality of the rounds done so far.
func (s *Session) Result(ctx context.Context) (*engine.Result, error) {
	j := s.job
	r := &engine.Result{Method: j.Method(), N: s.n, D: s.d, K: s.k, Parties: s.m, Iterations: s.round,
		Calibration: string(privacy.None), Comm: s.comm, Seed: j.Seed, Notes: s.notes}
	if j.Algorithm.Private() {
		epsilon, delta := j.Budget.Epsilon, j.Budget.Delta
		if j.Mechanism == Laplace {
			delta = s.tieDelta(s.rounds)
			if j.Calibration != privacy.Proven {
				delta = 0
			}
		}
		r.Epsilon, r.Delta, r.Calibration = &epsilon, &delta, string(j.Calibration)
	}
	if j.Algorithm.Private() && j.Release == SumCount {
		r.Sizes = slices.Clone(s.counts)
	}
	ledger, err := s.ledger()
	if err != nil {
		return nil, err
	}
	r.Ledger = ledger
	for a := range s.k {
		row := s.centroids[a*s.d : (a+1)*s.d]
		if len(j.Bounds.Lo) == s.d {
			row = j.Bounds.Denormalise(nil, row)
		}
		r.Centroids = append(r.Centroids, append([]float64(nil), row...))
	}
	if j.NoQuality {
		return r, nil
	}
	r.Quality, err = engine.Measure(ctx, s.rt.Pool(), engine.Evaluation{Parts: j.Clients, Labels: j.Labels, Clamped: j.Clamped}, s.centroids, s.k)
	return r, err
}

// Centroids returns the centroids after the last round, k rows of d, in the
// normalised box. The slice is the session's own.
func (s *Session) Centroids() []float64 { return s.centroids }

// PlannedLedger is the ledger of the whole run.
func (p *prepared) PlannedLedger() (*privacy.Ledger, error) {
	return (&Session{prepared: p, round: p.rounds, present: p.m}).ledger()
}

// ledger states what left a party, and what it costs.
func (s *Session) ledger() (*privacy.Ledger, error) {
	l := &privacy.Ledger{}
	if !s.job.Algorithm.Private() {
		s.plainLedger(l)
	} else if err := s.noisyLedger(l); err != nil {
		return nil, err
	}
	j := s.job
	if len(j.Bounds.Lo) > 0 && j.Bounds.FromData {
		l.Note("the bounds come from the data")
	}
	if j.Init == KMeansPlusPlus {
		l.Note("the first centroids are records (kmeans++)")
	}
	for _, d := range j.Drops {
		if d.Iteration < s.round {
			l.Note(fmt.Sprintf("%s failed in round %d; the rounds from there on sum the others' records", clientName(d.Client), d.Iteration+1))
		}
	}
	if !j.NoQuality {
		l.Note("the quality figures (NICV, WCSS, empty clusters, clamped count, label scores) are computed from the records")
	}
	if j.Seed != nil && j.Algorithm.Private() {
		l.Note("the seed: whoever knows it can subtract the noise, so a run with one is a simulation")
	}
	return l, nil
}

func (s *Session) capacity() secagg.Capacity {
	ring, _ := secagg.ParseRing(s.job.RingBits) // checked before the run
	return secagg.Capacity{Ring: ring, Records: s.n, PerRecord: s.perRecord(), Noise: s.noiseReach()}
}

// plainLedger lists what parties see of a run without noise.
func (s *Session) plainLedger(l *privacy.Ledger) {
	viewers := []string{privacy.Clients, privacy.Outsider}
	for _, p := range s.parts {
		what := fmt.Sprintf("exact %s of each cluster, %d rounds", p.name, s.round)
		e := privacy.Entry{Kind: privacy.Release, What: what, Viewers: viewers, Mechanism: "none", Calibration: privacy.None}
		if s.job.Aggregator != Naive {
			e.Conditions = []string{s.capacity().String()}
		}
		l.Entries = append(l.Entries, e)
		viewers = viewers[:1]
	}
	if s.job.Aggregator == Naive {
		l.Entries = append(l.Entries, privacy.Entry{Kind: privacy.Release, What: "exact sums and counts of every client", Viewers: []string{privacy.Server},
			Mechanism: "none", Calibration: privacy.None})
	}
}

// noisyLedger lists the noisy releases, one entry per part and run of rounds
// that cost the same.
func (s *Session) noisyLedger(l *privacy.Ledger) error {
	j := s.job
	l.Delta = j.Budget.Delta
	if j.Mechanism == Laplace {
		l.Delta = 0
		if j.total() {
			l.Delta = s.tieDelta(s.rounds)
		}
	}
	if j.Aggregator == ByServer && !s.alone() {
		if err := l.Add(privacy.Entry{What: fmt.Sprintf("masked values of every client, %d rounds", s.round), Viewers: []string{privacy.Server},
			Mechanism: "mask", Calibration: j.Calibration,
			Conditions: []string{"the server does not have the clients' mask seed and colludes with no client"}}); err != nil {
			return err
		}
	}
	for i := range s.parts {
		part := &s.parts[i]
		for t := 0; t < s.round; {
			end := t + 1
			for end < s.round && part.scales[end] == part.scales[t] {
				end++
			}
			if err := l.Add(s.entry(part, t, end)); err != nil {
				return err
			}
			t = end
		}
	}
	s.remarks(l)
	return nil
}

// entry describes rounds [t, end) of a part, which have one scale.
func (s *Session) entry(part *part, t, end int) privacy.Entry {
	j := s.job
	c := part.scales[t]
	family := string(j.Mechanism)
	if j.Calibration == privacy.Proven {
		family = "discrete-" + family
	}
	which := fmt.Sprintf("rounds %d to %d", t+1, end)
	switch {
	case end-t == s.round:
		which = fmt.Sprintf("%d rounds", s.round)
	case end-t == 1:
		which = fmt.Sprintf("round %d", end)
	}
	e := s.bound(part, t).Entry(fmt.Sprintf("noisy %s of each cluster, %s", part.name, which), family, c.norm)
	e.Scale, e.Remark = c.scale, part.rule.Worth
	e.Viewers, e.Noise = s.audience()
	e.Conditions = append(slices.Clone(part.rule.Conditions), s.conditions()...)
	if part.unit == 1 || part.name == "relative counts" || part.name == "counts" {
		e.Unit = "records"
	}
	if c.joint {
		e.Remark = "the entry of the sums covers the counts: within one cluster only the sums change, between two both change by less"
		return e
	}
	e.Cost = privacy.Spec{Family: family, Scale: c.scale / c.value, Rounds: end - t}
	if j.Mechanism == Gaussian && j.Calibration == privacy.Proven {
		e.Cost.Slack = privacy.GaussianSlack(c.scale/part.unit, part.length)
		e.Cost.Distance = s.shareDistance(part, t) * float64(end-t)
	}
	if j.total() && part.offset == 0 { // the parts of a round share its assignment
		e.Cost.Failure = s.tieDelta(end - t)
	}
	real := s.trueSensitivity(part)
	if real == 0 {
		real = c.value
	}
	switch {
	case j.Calibration == privacy.Published && j.Mechanism == Laplace && j.Noise != Split:
		e.True = &privacy.Spec{Family: "pure", Epsilon: real/c.scale + float64(s.changed(part))*math.Ln2, Rounds: end - t}
	case real != c.value:
		e.True = &privacy.Spec{Family: family, Scale: c.scale / real, Rounds: end - t}
	}
	return e
}

// alone tells whether one client holds all records and draws the noise itself: there is no server then,
// and the client is in no audience (THEOREMS.md T10).
func (s *Session) alone() bool { return s.m == 1 && s.job.Calibration == privacy.Proven }

// audience is who sees a noisy release, and who knows its noise.
func (s *Session) audience() ([]string, *privacy.Noise) {
	if s.alone() {
		return []string{privacy.Outsider}, nil
	}
	viewers := []string{privacy.Clients, privacy.Outsider}
	switch s.job.Noise {
	case Local:
		return viewers, privacy.Shared(s.present, 1, 1, privacy.Clients)
	case Split:
		return viewers, privacy.Shared(s.present, s.needed, s.job.Colluders, privacy.Clients, privacy.Server, privacy.Outsider)
	}
	return viewers, privacy.DrawnBy(privacy.Server)
}

// changed is how many coordinates of a part one record can change. Under Published each costs ln 2 more
// than its noise says, since truncation toward zero doubles the probability of no noise (THEOREMS.md
// T6 vii).
func (s *Session) changed(part *part) int {
	clusters := 1
	switch {
	case s.job.Algorithm.Constrained() && part.name != "counts":
		clusters = s.k
	case s.job.Algorithm.Constrained():
		clusters = max(s.job.Exclusivity, 1)
	}
	if s.job.Neighbours == privacy.ReplaceOne {
		clusters = min(2*clusters, s.k)
	}
	if part.name == "counts" || part.name == "relative counts" {
		return clusters
	}
	return clusters * s.d
}

// conditions are those of this run, beside the ones of the theorems.
func (s *Session) conditions() []string {
	j := s.job
	list := []string{s.capacity().String()}
	if j.Algorithm.Constrained() {
		list = append(list, fmt.Sprintf("a cluster has %d to %d records at each client", s.lo, s.hi))
		if d := s.tieDelta(s.rounds); j.total() && d > 0 {
			list = append(list, fmt.Sprintf("a tie that the hash leaves open adds %.2g to delta", d))
		}
	}
	switch j.Noise {
	case Local:
		list = append(list, fmt.Sprintf("every client adds the whole noise, so the release carries %d times its variance", s.m))
	case Split:
		list = append(list, fmt.Sprintf("every client adds a share of the noise, of which %d make up the whole; so many of the clients other than the viewer keep theirs secret", s.needed))
		if j.Aggregator == ByRing {
			list = append(list, "the two neighbours of a client in the ring do not pool what they see, which has its share alone")
		}
	}
	return list
}

// trueSensitivity is the proven L1 sensitivity of a release whose calibration
// claims less, 0 where the claim holds or nothing is proved (THEOREMS.md T1).
func (s *Session) trueSensitivity(part *part) float64 {
	j := s.job
	if j.Algorithm == SuLloyd && j.Release == Centroid {
		// A record that is the only one of a cluster at its client moves the mean
		// from the old centroid.
		return 2 * boxBound * float64(s.d) / float64(s.m)
	}
	if j.Calibration == privacy.Proven || !j.Algorithm.Constrained() || part.name == "counts" {
		return 0
	}
	d, k, least := float64(s.d), float64(s.k), float64(s.m*s.lo)
	if s.exclusivity > 1 || s.radius != nil || j.NonExclusive {
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

// remarks says in words what the calibration is worth.
func (s *Session) remarks(l *privacy.Ledger) {
	j := s.job
	say := func(text string) {
		for i := range l.Entries {
			if e := &l.Entries[i]; e.Kind == privacy.Release && e.Cost.Family != "" {
				if e.Remark != "" {
					e.Remark += "; "
				}
				e.Remark += text
				return
			}
		}
	}
	switch j.Calibration {
	case privacy.Proven:
		say("proven: every step is covered by a theorem of THEOREMS.md, noise is exact and discrete")
	case privacy.Claimed:
		say("claimed: the noise that the paper's theorem asks for, drawn in floating point and rounded to nearest")
	case privacy.Published:
		say("published: the noise scale of the authors' released code, drawn in floating point and truncated toward zero, which doubles the probability of no noise and costs ln 2 for each coordinate that changes (T6); it serves to reproduce their figures")
	}
	if s.squaredRadius() {
		say("a round's noise is set to twice the square of its radius, and records are assigned within the radius of the first, as in the released code: neither is Theorem 7.1")
	}
	if j.Mechanism == Laplace && s.givenDelta > 0 {
		l.Note(fmt.Sprintf("delta = %.3g was given; Laplace noise does not need it", s.givenDelta))
	}
}

// perRecord is the largest magnitude that a record adds to a word.
func (s *prepared) perRecord() float64 {
	switch {
	case s.job.Release == Centroid:
		return s.scale / float64(max(s.n, 1))
	case s.job.Algorithm == Relative:
		return 2 * s.scale
	}
	return float64(max(s.job.Exclusivity, 1)) * s.scale
}

// noiseReach is a magnitude that the noise of a word exceeds with probability
// below 2^-90: 64 scales of Laplace noise or 12 of Gaussian noise.
func (s *prepared) noiseReach() float64 {
	most := 0.0
	for _, part := range s.parts {
		for _, c := range part.scales {
			most = max(most, c.scale/part.unit)
		}
	}
	reach := 64.0
	if s.job.Mechanism == Gaussian {
		reach = 12
	}
	if s.job.Noise != ByTheServer {
		reach *= math.Sqrt(float64(s.m)) * 2
	}
	return reach * most
}
