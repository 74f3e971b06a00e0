package ckks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// NetworkTime is the modelled transfer time of a run on one network.
type NetworkTime struct {
	Network  string  `json:"network"`
	Seconds  float64 `json:"transfer_seconds"`
	Messages int     `json:"messages"`
}

// complete measures the final centroids and says in the result what the run was.
func (s *run) complete(ctx context.Context, rt *engine.Runtime, session *protocol.Session, res *engine.Result,
	rounds []Round) (err error) {
	j := s.job
	res.Comm.Rounds = s.log.steps()
	networks := j.Networks
	if networks == nil {
		networks = Networks()
	}
	var times []NetworkTime
	for _, w := range networks {
		times = append(times, NetworkTime{Network: w.Name, Seconds: s.log.transferTime(w).Round(time.Millisecond).Seconds(),
			Messages: len(s.log.Messages)})
	}
	var ops Operations
	for _, r := range rounds {
		ops.add(r.Operations)
	}
	res.Details = map[string]any{
		"mode": string(j.mode()), "argmin": string(j.argmin()), "security": s.params.Security.String(),
		"log_qp": s.params.Security.LogQP,
		"rounds": rounds, "operations": ops, "networks": times, "blocks": s.lay.blocks, "batches": s.lay.batches,
		"bytes_total": s.log.total(),
	}
	res.Notes = append(res.Notes, s.params.Security.String())
	if j.NoQuality || s.seat != nil {
		return nil
	}
	part := dataset.Part{Points: j.Clients[0].Points, FractionBits: j.Clients[0].FractionBits}
	span := rt.Begin(engine.PhasePostprocess, 0, engine.Server)
	defer rt.End(span)
	res.Quality, err = engine.Measure(ctx, rt.Pool(), engine.Evaluation{Part: part, Labels: j.Labels,
		Clamped: j.Clamped}, session.Centroids(), j.K)
	return err
}

// partyName is what people call a party: they count from 1.
func partyName(party int) string { return protocol.Role(party).String() }

// addReleases plans what each party and an outsider see.
func (pl *jobPlan) addReleases() {
	j := pl.job
	pl.Notes = append(pl.Notes,
		"ciphertexts: "+pl.params.Security.String()+
			"; the conjugate-invariant ring is taken at its own dimension, as its library's authors do",
		"the number of records n and their ids are known to every party; n is used to check the totals of every round")
	makers := protocol.EachShare
	if !j.private() {
		makers = protocol.Nobody
		pl.Notes = append(pl.Notes, "no noise: "+pl.openers()[0]+" sees exact counts and sums of every round, all parties "+
			"the exact centroids")
	}
	if d := pl.noise.schemeDistance(pl.Rounds); d == 1 || !pl.noise.keyHolder {
		pl.Notes = append(pl.Notes, "what is decrypted carries the encryption scheme's own error with no noise over it "+
			"that the computing party does not know: "+
			"there is no bound on what it tells of keys and columns (IND-CPA-D)")
	} else {
		pl.Notes = append(pl.Notes, fmt.Sprintf("what is decrypted carries the encryption scheme's own error under the "+
			"noise: all rounds are within total variation %.2g "+
			"of those of a scheme without error, not 2^-40; epsilon counts the error, the hardness of the keys beside it "+
			"(IND-CPA-D) is assumed", d))
	}
	if j.Bounds.FromData {
		pl.Notes = append(pl.Notes, "bounds come from the data")
	}
	if !j.NoQuality {
		pl.Notes = append(pl.Notes, "quality is computed from the private data")
	}
	pl.setup = pl.Add(&protocol.Release{Name: "keys and encrypted columns", Times: 1})
	pl.released = pl.Add(&protocol.Release{Name: decrypted, Makers: makers, Times: pl.Rounds, Entries: pl.entries()})
	pl.opened = pl.Add(&protocol.Release{Name: decrypted + ", opened together", Makers: makers, Times: pl.Rounds})
	pl.centroids = pl.Add(&protocol.Release{Name: "centroids", Times: pl.Rounds})
}

// entries are the ledger's lines: all that is decrypted.
func (pl *jobPlan) entries() []privacy.Entry {
	j, n := pl.job, pl.noise
	if !j.private() {
		var all []string
		for p := range j.Columns {
			all = append(all, partyName(p))
		}
		exact := privacy.Entry{What: fmt.Sprintf("exact counts and sums of %d clusters, %s", j.K,
			fault.Count(pl.Rounds, "round")),
			Viewers:   pl.openers(),
			Mechanism: "none", Calibration: privacy.None, Unbounded: true}
		centroids := privacy.Entry{What: fmt.Sprintf("exact centroids of %s", fault.Count(pl.Rounds, "round")),
			Viewers:   append(all, privacy.Outsider),
			Mechanism: "none", Calibration: privacy.None, Unbounded: true}
		if j.argmin() == Rank {
			centroids.What += ", and of each whether most records count in it" // what breaks ties, and the note
		}
		return []privacy.Entry{exact, centroids}
	}
	entry := n.bound.Entry(fmt.Sprintf("counts and sums of %d clusters, %s, jointly", j.K,
		fault.Count(j.rounds(), "round")),
		"discrete-gaussian", "L2")
	entry.Scale, entry.Unit, entry.Cost, entry.True = 1, "noise units: counts over their deviation, sums over theirs",
		n.spec, n.trueSpec
	scales := fmt.Sprintf("deviation %.4g on counts and %.4g on sums of features in [-1, 1]", n.count, n.sum)
	if j.calibration() == privacy.Claimed {
		entry.Scale, entry.Unit = n.count, "each query alone"
		entry.Viewers = pl.decryptors()
		entry.Remark = scales + "; the paper calibrates each count and sum by itself, true_epsilon is that of their " +
			"joint release"
		if over := j.overlap(); over > 1 {
			entry.Remark += fmt.Sprintf(", of memberships of 2-norm %.4f at most", over)
		}
		// Whoever drew the noise knows it: against Alice nothing is hidden.
		alice := jointBound(privacy.Claimed, "centroids, to who drew the noise", n.bound.Shape).Entry(
			fmt.Sprintf("centroids of %s, of which %s knows all the noise", fault.Count(j.rounds(), "round"), partyName(0)),
			"discrete-gaussian", "L2")
		alice.Scale, alice.Unit = entry.Scale, entry.Unit // the entry above has the cost that the paper claims
		alice.Viewers, alice.Unbounded = []string{partyName(0)}, true
		alice.Remark = "the paper lets the computing party draw the noise and sends it the quotients: it can solve for " +
			"exact counts and sums"
		return []privacy.Entry{entry, alice}
	}
	entry.Remark = scales + "; every party that may see a decrypted value or the centroids is faced with noise of " +
		"that size that it does not know"
	if j.neighbours() == privacy.AddRemove {
		// Where n and the ids are common, replacing a record is the other question
		// a reader may ask.
		other := n.bound
		other.Shape.Neighbours = privacy.ReplaceOne
		entry.Remark += fmt.Sprintf("; if a record is replaced instead of added or removed, epsilon is %.4g",
			n.replaced(other, pl.Budget.Delta))
	}
	collusion := "the party that computes and a party that holds the key do not collude"
	if j.mode() == Multiparty {
		collusion = fmt.Sprintf("%s, which computes, colludes with fewer than %d of the key holders", partyName(0),
			j.threshold())
	}
	entry.Conditions = append(slices.Clone(n.bound.Rule.Conditions),
		"parties follow the protocol and clamp their columns to the bounds",
		collusion,
		fmt.Sprintf("soft memberships sum to at most 1 (factor %.6f)", overlap(j.K)), n.roundings(),
		"noise streams are computationally indistinguishable from random; ring learning with errors is hard")
	if j.mode() == Multiparty {
		// The shares' deviations are above 2^26 units of the aggregates, so their sum is
		// discrete Gaussian but for exp(-2^53) (T6 iv).
		entry.Conditions = append(entry.Conditions,
			fmt.Sprintf("of the %d parties that draw noise at most %d pool theirs", n.shares, n.shares-n.needed))
	}
	var roles []string
	for p := range j.Columns {
		roles = append(roles, partyName(p))
	}
	entry.Viewers = append(slices.Clone(roles), privacy.Outsider)
	entry.Noise = privacy.Shared(n.shares, n.needed, n.shares-n.needed, roles...)
	return []privacy.Entry{entry}
}

// roundings says what is known of the error of the arithmetic.
func (n noisePlan) roundings() string {
	return fmt.Sprintf("roundings of ciphertexts are random: they add at most %.3g in 2-norm to a round's totals, but "+
		"with probability %.2g over keys and roundings, which is in delta (T4)", n.error(), n.proved.failure)
}

// replaced is the epsilon of rounds under replacing a record, whose bound other is.
func (n noisePlan) replaced(other privacy.Bound, delta float64) float64 {
	other.Shape.Error = 0
	return privacy.EpsilonOfMu(n.proved.mu(other.L2(), min(n.count, n.sum)), delta-n.proved.failure, 0)
}

// openers are the parties that see decrypted totals: the key holder, or in multiparty mode the
// computing party, to whom the holders' shares go.
func (pl *jobPlan) openers() []string {
	if pl.job.mode() == Multiparty {
		return []string{partyName(0)}
	}
	return []string{partyName(1)}
}

// decryptors are the viewers that learn decrypted totals under one-sided noise.
func (pl *jobPlan) decryptors() []string {
	var v []string
	for p := 1; p < pl.Parties; p++ {
		v = append(v, partyName(p))
	}
	return append(v, privacy.Outsider)
}
