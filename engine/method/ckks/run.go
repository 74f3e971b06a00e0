package ckks

import (
	"context"
	"slices"
	"sort"

	"github.com/cohort-engine/cohort/engine/protocol"
)

// run is what all parties of a run know: the plan, the lattice parameters, the
// terms. Messages are recorded for the models of networks.
type run struct {
	*jobPlan
	terms terms
	lay   layout
	log   *transcript
	// topScale and lowScale are the scales of encrypted columns.
	topScale, lowScale float64
	start              [][]float64
	// seat is the role that plays here; nil if all do.
	seat *protocol.Seat
}

func newRun(pl *jobPlan) *run {
	j, p := pl.job, pl.params
	s := &run{jobPlan: pl}
	n, d := pl.N, pl.D
	s.log = &transcript{Parties: len(j.Columns), Tap: j.Tap}
	s.lay = newLayout(n, p.slots(), j.K, s.cols.count(), j.mode() != TwoParty)
	sign := pairSign
	s.topScale = s.lay.freshScale(p)
	if j.argmin() == Rank {
		s.lay = newRankLayout(n, p.slots(), j.K)
		s.topScale, sign = rankScale, rankSignFor(j.K)
	}
	s.lowScale = columnScale(p, n, max(pl.noise.count, pl.noise.sum))
	s.terms = terms{
		Version: wireVersion, LogN: p.LogN(), Q: p.Q(), P: p.P(), N: n, D: d, K: j.K, Rounds: j.rounds(), Columns: j.Columns,
		Mode: string(j.mode()), Argmin: string(j.argmin()), Threshold: j.threshold(), Blocks: s.lay.blocks,
		SigmaCount: pl.noise.count, SigmaSum: pl.noise.sum, Calibration: string(j.calibration()),
		Neighbours:  string(j.neighbours()),
		ColumnScale: s.lowScale, FreshScale: s.topScale, SignPolynomial: sign.String(),
	}
	if j.mode() == Multiparty {
		s.terms.CommonSeed = make([]byte, 32)
		_, _ = pl.PublicSeed.Streams().Stream(int(protocol.Server), 0, "common seed").Read(s.terms.CommonSeed) // never fails
	}
	return s
}

// ready makes what the roles need next: the start, the embedding, and the tables of each prime's transforms.
func (s *run) ready(run region) {
	parts := []func(){func() { s.start = s.job.startFrom(s.PublicSeed) }, func() { s.params.embedding() }}
	run.all(append(parts, s.params.lattice.Tables()...))
}

// peer is one party's side of a run: its own columns and randomness.
type peer struct {
	*run
	*protocol.Party
	columns map[int][]float64
	rnd     entropy
	made    map[float64]*protocol.Distribution // noise of rounds so far, by its deviation
	step    int                                // of communication: what is sent in one step travels at the same time
	round   int
	tied    bool // it was noted that most records had little of any membership
}

// newPeer hands a party its columns.
func (s *run) newPeer(party int) peer {
	m := make(map[int][]float64)
	points, at := s.job.Clients[0].Points, func(column int) int { return column }
	if s.seat != nil { // its own columns alone, in increasing order
		own := slices.Sorted(slices.Values(s.job.Columns[party]))
		points, at = s.seat.Part.Points, func(column int) int { return slices.Index(own, column) }
	}
	if s.seat == nil || int(s.seat.Role) == party {
		row := make([]float32, points.D)
		for _, c := range s.job.Columns[party] {
			m[c] = make([]float64, points.N)
		}
		for i := range points.N {
			row = points.Point(i, row)
			for c, v := range m {
				v[i] = float64(row[at(c)])
			}
		}
	}
	return peer{run: s, columns: m}
}

// join gives the party its randomness and its end of the transport.
func (q *peer) join(p *protocol.Party) { q.Party, q.rnd = p, entropy{p.Root("keys and encryptions")} }

// send gives another party a message that belongs to a release of the plan.
func (q *peer) send(ctx context.Context, r *protocol.Release, to int, kind Kind, b []byte) error {
	if err := ctx.Err(); err != nil { // parts of the message may be missing
		return err
	}
	q.log.record(Envelope{Step: q.step, Round: q.round, From: int(q.Role), To: to, Kind: kind, Bytes: len(b)}, b)
	return q.Send(ctx, r, protocol.Role(to), b)
}

// receive waits for a party's next message.
func (q *peer) receive(ctx context.Context, from int) ([]byte, error) {
	return q.Receive(ctx, protocol.Role(from))
}

// order lists a party's columns in increasing order.
func order(m map[int][]float64) []int {
	var cs []int
	for c := range m {
		cs = append(cs, c)
	}
	sort.Ints(cs)
	return cs
}

// sendTerms tells the computing party what this one believes to run.
func (q *peer) sendTerms(ctx context.Context) error {
	b, err := q.terms.marshal()
	if err != nil {
		return err
	}
	return q.send(ctx, q.setup, 0, kindTerms, b)
}

// provide encrypts the party's columns under a public key, which it takes over, and sends them to the
// computing party.
func (q *peer) provide(ctx context.Context, key *publicKey) error {
	enc := newPublicEncryptor(q.params, key, q.rnd)
	columns := newColumnEncryption(q.Pool(), q.params, q.lay, q.columns, order(q.columns), q.topScale, q.lowScale, q.rnd,
		func(level int, scale float64, purpose string, index int) encryption {
			return encryption{finish: func(m []int64) (columnCipher, []func()) {
				c := newColumnCipher(level, scale)
				return c, []func(){func() { enc.encrypt(c, m, purpose, index) }}
			}}
		}, false)
	abreast(ctx, q.Pool()).all(columns.early())
	msgs, err := columns.finish(ctx)
	if err != nil {
		return err
	}
	q.params.lattice.Free(enc.b, enc.a)
	return q.sendColumns(ctx, msgs)
}

// sendColumns sends encrypted columns, whose polynomials serve again.
func (q *peer) sendColumns(ctx context.Context, msgs []*columnMessage) error {
	for _, m := range msgs {
		if err := q.send(ctx, q.setup, 0, kindColumn, m.marshal(q.params, q.lay, abreast(ctx, q.Pool()))); err != nil {
			return err
		}
		for _, c := range slices.Concat(m.Tops, m.Lows) {
			q.params.lattice.Free(c.C0, c.C1)
		}
	}
	return nil
}

// receiveCentroids reads the centroids of a round.
func (q *peer) receiveCentroids(ctx context.Context, from, round int) ([][]float64, error) {
	b, err := q.receive(ctx, from)
	if err != nil {
		return nil, err
	}
	m, err := readCentroids(q.params, round, q.job.K, q.cols.d, b)
	if err != nil {
		return nil, err
	}
	return m.Centroids, nil
}

func (q *peer) sendCentroids(ctx context.Context, r *protocol.Release, to, round int, centroids [][]float64) error {
	return q.send(ctx, r, to, kindCentroids, (&centroidsMessage{Round: round, Centroids: centroids}).marshal(q.params))
}

// noiseGroups is the layout of a round's noise: the discrete Gaussian of the plan's
// deviation for each total, in units of the aggregate.
func (q *peer) noiseGroups(units []float64) ([]protocol.Group, error) {
	if q.made == nil {
		q.made = make(map[float64]*protocol.Distribution)
	}
	groups := make([]protocol.Group, len(units))
	for i, u := range units {
		sigma := q.noise.sum * u
		if i%(1+q.cols.d) == 0 {
			sigma = q.noise.count * u
		}
		g := q.made[sigma]
		if g == nil {
			var err error
			if g, err = protocol.NewDistribution(protocol.Noise{Mechanism: protocol.Gaussian, Scale: sigma,
				Shares: q.noise.needed}, nil); err != nil {
				return nil, err
			}
			q.made[sigma] = g
		}
		groups[i] = protocol.Group{Values: 1, Noise: g}
	}
	groups[0].Stream = "ckks noise"
	return groups, nil
}

// outcome is what a party ends with.
func (q *peer) outcome(final [][]float64) *protocol.Outcome {
	o := &protocol.Outcome{Iterations: q.job.rounds()}
	for _, c := range final {
		o.Centroids = append(o.Centroids, c...)
	}
	return o
}
