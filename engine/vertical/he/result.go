package he

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// NetworkTime is the modelled transfer time of a run on one network.
type NetworkTime struct {
	Network  string  `json:"network"`
	Seconds  float64 `json:"transfer_seconds"`
	Messages int     `json:"messages"`
}

// result measures the final centroids and writes the ledger.
func (s *session) result(ctx context.Context, final [][]float64) (*engine.Result, error) {
	j := s.job
	n, d := s.lay.n, s.cols.d
	res := &engine.Result{
		Method: j.Method(), N: n, D: d, K: j.K, Parties: len(j.Columns), Iterations: j.rounds(), Calibration: string(j.calibration()), Seed: j.Seed,
	}
	if j.Budget != nil {
		b := j.budget()
		res.Epsilon, res.Delta = &b.Epsilon, &b.Delta
	}
	flat := make([]float64, 0, j.K*d)
	for _, c := range final {
		row := slices.Clone(c)
		if j.Data.Bounds.Lo != nil {
			row = j.Data.Bounds.Denormalise(nil, c)
		}
		res.Centroids = append(res.Centroids, row)
		flat = append(flat, c...)
	}
	sent, received := s.log.Bytes()
	res.Comm = engine.Comm{Rounds: s.log.Steps(), BytesSent: sent, BytesReceived: received}
	ledger, err := s.ledger()
	if err != nil {
		return nil, err
	}
	res.Ledger = ledger
	networks := j.Networks
	if networks == nil {
		networks = Networks()
	}
	var times []NetworkTime
	for _, w := range networks {
		times = append(times, NetworkTime{Network: w.Name, Seconds: s.log.TransferTime(w).Round(time.Millisecond).Seconds(), Messages: len(s.log.Messages)})
	}
	var ops Operations
	for _, r := range s.rounds {
		ops.add(r.Operations)
	}
	res.Details = map[string]any{
		"mode": string(j.mode()), "argmin": string(j.argmin()), "security": s.params.Security.String(), "log_qp": s.params.Security.LogQP,
		"rounds": s.rounds, "operations": ops, "networks": times, "blocks": s.lay.blocks, "batches": s.lay.batches,
		"bytes_total": s.log.Total(),
	}
	res.Notes = append(res.Notes, s.params.Security.String())
	if j.Data.Bounds.FromData {
		ledger.Note("bounds come from the data")
	}
	if j.NoQuality {
		return res, nil
	}
	ledger.Note("quality is computed from the private data")
	part := dataset.Part{Points: j.Data.Points, FractionBits: j.Data.FractionBits}
	if j.Labels != nil {
		part.Rows = make([]int, n)
		for i := range part.Rows {
			part.Rows[i] = i
		}
	}
	span := s.rt.Begin(engine.PhasePostprocess, 0, engine.Server)
	defer s.rt.End(span)
	res.Quality, err = engine.Measure(ctx, s.rt.Pool(), engine.Evaluation{Parts: []dataset.Part{part}, Labels: j.Labels, Clamped: j.Data.Clamped}, flat, j.K)
	return res, err
}

// ledger enters what each party and an outsider see.
func (s *session) ledger() (*privacy.Ledger, error) {
	j, pl := s.job, s.plan
	l := new(privacy.Ledger)
	l.Note("ciphertexts: " + s.params.Security.String() + "; the conjugate-invariant ring is taken at its own dimension, as its library's authors do")
	l.Note("the number of records n and their ids are known to every party; n is used to check the totals of every round")
	if j.Budget == nil {
		l.Note("no noise: the key holders see exact counts and sums of every round, all parties the exact centroids")
		return l, nil
	}
	l.Delta = j.budget().Delta
	n := pl.noise
	entry := n.bound.Entry(fmt.Sprintf("counts and sums of %d clusters, %d rounds, jointly", j.K, j.rounds()), "discrete-gaussian", "L2")
	entry.Scale, entry.Unit, entry.Cost, entry.True = 1, "noise units: counts over their deviation, sums over theirs", n.spec, n.trueSpec
	scales := fmt.Sprintf("deviation %.4g on counts and %.4g on sums of features in [-1, 1]", n.count, n.sum)
	if j.calibration() == privacy.Claimed {
		entry.Scale, entry.Unit = n.count, "each query alone"
		entry.Viewers = s.decryptors()
		entry.Remark = scales + "; the paper calibrates each count and sum by itself, true_epsilon is that of their joint release"
		if err := l.Add(entry); err != nil {
			return nil, err
		}
		// Whoever drew the noise knows it: against Alice nothing is hidden.
		alice := jointBound(privacy.Claimed, "centroids, to who drew the noise", n.bound.Shape).Entry(
			fmt.Sprintf("centroids of %d rounds, of which party 0 knows all the noise", j.rounds()), "discrete-gaussian", "L2")
		alice.Scale, alice.Unit = entry.Scale, entry.Unit // the entry above has the cost that the paper claims
		alice.Viewers, alice.Unbounded = []string{"party 0"}, true
		alice.Remark = "the paper lets the computing party draw the noise and sends it the quotients: it can solve for exact counts and sums"
		return l, l.Add(alice)
	}
	entry.Remark = scales + "; every party that may see a decrypted value or the centroids is faced with another party's full noise"
	if j.neighbours() == privacy.AddRemove {
		// Where n and the ids are common, replacing a record is the other question
		// a reader may ask.
		other := n.bound
		other.Shape.Neighbours = privacy.ReplaceOne
		entry.Remark += fmt.Sprintf("; if a record is replaced instead of added or removed, epsilon is %.4g", privacy.EpsilonOfMu(other.L2()*math.Sqrt(float64(j.rounds())), l.Delta, 0))
	}
	collusion := "the party that computes and a party that holds the key do not collude"
	if j.mode() == Multiparty {
		collusion = "at least one party does not collude with the others"
	}
	entry.Conditions = append(slices.Clone(n.bound.Rule.Conditions),
		"parties follow the protocol and clamp their columns to the bounds",
		collusion,
		fmt.Sprintf("soft memberships sum to at most 1 (factor %.6f), evaluation error at most %.3g in 2-norm", Overlap(j.K), evaluationError(s.lay.n, j.K, s.cols.d)),
		"noise streams are computationally indistinguishable from random; ring learning with errors is hard")
	for p := range j.Columns {
		entry.Viewers = append(entry.Viewers, fmt.Sprintf("party %d", p))
	}
	entry.Viewers = append(entry.Viewers, "outsider")
	return l, l.Add(entry)
}

// decryptors are the viewers that learn decrypted totals under one-sided noise.
func (s *session) decryptors() []string {
	v := []string{"party 1"}
	for p := 2; p < len(s.job.Columns); p++ {
		v = append(v, fmt.Sprintf("party %d", p))
	}
	return append(v, "outsider")
}
