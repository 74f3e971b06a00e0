package he

import (
	"context"
	"fmt"
	"sort"

	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/vertical/he/rns"
)

// session is one run with all its parties. A party's state is reached only
// through its own fields; whatever passes between two parties passes through
// the transcript as bytes.
type session struct {
	job    *Job
	rt     *engine.Runtime
	plan   *jobPlan
	params *Parameters
	terms  Terms
	lay    layout
	cols   columns
	log    *Transcript

	streams *privacy.Streams
	// topScale and lowScale are the scales of encrypted columns.
	topScale, lowScale float64
	start              [][]float64

	alice *computer
	// bob holds the key in the two-party and server-aided modes, holders share
	// it in the multiparty mode.
	bob     *holder
	holders *committee

	rounds []Round
}

func newSession(j *Job, rt *engine.Runtime) (*session, error) {
	pl, err := j.plan()
	if err != nil {
		return nil, err
	}
	s := &session{job: j, rt: rt, plan: pl, streams: privacy.NewStreams(j.Seed)}
	if j.chain != nil {
		s.params, err = buildParameters(pl.chain)
	} else {
		s.params, err = NewParameters(pl.chain)
	}
	if err != nil {
		return nil, err
	}
	n, d := j.Data.Points.N, j.Data.Points.D
	s.cols = columns{d: d, encrypted: make([]bool, d)}
	for p, cs := range j.Columns {
		for _, c := range cs {
			s.cols.encrypted[c] = p > 0
		}
	}
	s.log = &Transcript{Parties: len(j.Columns), Tap: j.Tap}
	s.topScale = freshScale(s.params, s.cols)
	s.lowScale = columnScale(s.params, n, max(pl.noise.count, pl.noise.sum))
	s.start = j.StartCentroids()
	all := j.K * (j.K - 1) / 2
	pairs := all
	if !j.KeepPairs && j.argmin() == Pairs {
		r, err := planRound(s.params, s.cols, s.start, true)
		if err != nil {
			return nil, err
		}
		pairs = len(r.pairs)
	}
	s.lay = newLayout(n, s.params.Slots(), pairs, all)
	if j.argmin() == Rank {
		s.lay = newRankLayout(n, s.params.Slots(), j.K)
		s.topScale = rankScale
	}
	s.terms = Terms{
		Version: wireVersion, LogN: s.params.LogN(), Q: s.params.Q(), P: s.params.P(), N: n, D: d, K: j.K, Rounds: j.rounds(), Columns: j.Columns,
		Mode: string(j.mode()), Argmin: string(j.argmin()), Threshold: j.threshold(), Blocks: s.lay.blocks,
		SigmaCount: pl.noise.count, SigmaSum: pl.noise.sum, Calibration: string(j.calibration()), Neighbours: string(j.neighbours()),
		ColumnScale: s.lowScale, FreshScale: s.topScale, SignPolynomial: fmt.Sprint(inner, outer),
	}
	if j.mode() == Multiparty {
		seed := s.entropy(0).key("common seed", 0)
		s.terms.CommonSeed = seed[:]
	}
	return s, nil
}

// columnsOf extracts a party's columns from the panels.
func (s *session) columnsOf(party int) map[int][]float64 {
	m := make(map[int][]float64)
	p := s.job.Data.Points
	row := make([]float32, p.D)
	for _, c := range s.job.Columns[party] {
		m[c] = make([]float64, p.N)
	}
	for i := range p.N {
		row = p.Point(i, row)
		for c, v := range m {
			v[i] = float64(row[c])
		}
	}
	return m
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

func (s *session) entropy(party int) entropy { return entropy{seed: s.job.Seed, party: party} }

// run executes setup and rounds and returns the final centroids.
func (s *session) run(ctx context.Context) ([][]float64, error) {
	if err := s.exchangeTerms(); err != nil {
		return nil, err
	}
	span := s.rt.Begin(engine.PhaseEncrypt, 0, engine.Server)
	err := s.setup(ctx)
	s.rt.End(span)
	if err != nil {
		return nil, err
	}
	current := s.start
	for t := range s.job.rounds() {
		s.log.round = t + 1
		if current, err = s.round(ctx, t, current); err != nil {
			return nil, err
		}
		s.rt.IterationEnd(t, s.job.rounds())
	}
	return current, s.publish(current)
}

// exchangeTerms lets every party send its terms to Alice and Alice compare.
func (s *session) exchangeTerms() error {
	b, err := s.terms.marshal()
	if err != nil {
		return err
	}
	for p := 1; p < len(s.job.Columns); p++ {
		if err := s.terms.agree(p, s.log.send(p, 0, KindTerms, b)); err != nil {
			return err
		}
	}
	s.log.next()
	return nil
}

// setup makes keys and encrypts columns.
func (s *session) setup(ctx context.Context) error {
	own := s.columnsOf(0)
	values := make([][]float64, s.cols.d)
	for c, v := range own {
		values[c] = v
	}
	alice, err := newComputer(ctx, s.rt.Pool(), s.params, s.lay, s.cols, values, s.lowScale, s.entropy(0))
	if err != nil {
		return err
	}
	s.alice = alice
	if s.job.mode() == Multiparty {
		return s.setupCommittee(ctx)
	}
	return s.setupHolder(ctx)
}

// setupHolder is the setup with one key holder: Bob sends keys and his columns
// to Alice, and his public key to the other parties, who send her theirs.
func (s *session) setupHolder(ctx context.Context) error {
	p, pool := s.params, s.rt.Pool()
	rnd := s.entropy(1)
	bob := &holder{
		params: p, secret: newSecretKey(p, rnd), columns: s.columnsOf(1), rnd: rnd, noise: s.plan.noise, streams: s.streams, party: 1,
		n: s.lay.n, k: s.job.K, d: s.cols.d, post: s.job.post(), current: s.start,
	}
	bob.small = newSmallSecret(p, bob.secret.small)
	s.bob = bob
	keys, err := bob.keys(ctx, pool, s.lay)
	if err != nil {
		return err
	}
	got, err := readKeys(p, len(s.lay.shifts()), s.log.send(1, 0, KindKeys, keys.marshal(p)))
	if err != nil {
		return err
	}
	if err := s.alice.install(got.Relin.expand(p), got.Rotations, got.Small, got.Public); err != nil {
		return err
	}

	msgs, err := encryptColumns(ctx, pool, p, s.lay, bob.columns, order(bob.columns), s.topScale, s.lowScale, func(m ring.Poly, scale float64, purpose string, index int) ColumnCipher {
		return ColumnCipher{SeededCipher: *encryptSeeded(p, m, scale, bob.secret, rnd, purpose, index)}
	}, true)
	if err != nil {
		return err
	}
	if err := s.deliver(1, msgs); err != nil {
		return err
	}
	if len(s.job.Columns) > 2 {
		pk := (&PublicKeyMessage{Key: newPublicKey(p, bob.secret, p.MaxLevel(), 0, rnd.key("public key: seed", 1), rnd)}).marshal(p)
		for q := 2; q < len(s.job.Columns); q++ {
			s.log.send(1, q, KindPublicKey, pk)
		}
		s.log.next()
		for q := 2; q < len(s.job.Columns); q++ {
			m, err := readPublicKey(p, pk)
			if err != nil {
				return err
			}
			if err := s.provide(ctx, q, m.Key); err != nil {
				return err
			}
		}
	}
	// Bob needs the starting centroids for clusters that stay empty.
	s.log.next()
	m, err := readCentroids(p, 0, s.job.K, s.cols.d, s.log.send(0, 1, KindCentroids, (&CentroidsMessage{Centroids: s.start}).marshal(p)))
	if err != nil {
		return err
	}
	bob.current = m.Centroids
	s.log.next()
	if s.job.argmin() == Rank {
		return s.alice.spread(ctx, pool)
	}
	return nil
}

// keys makes the evaluation keys; they are independent work items.
func (h *holder) keys(ctx context.Context, pool *engine.Pool, lay layout) (*KeysMessage, error) {
	p := h.params
	shifts := lay.shifts()
	m := &KeysMessage{Rotations: make([]*SwitchKey, len(shifts))}
	err := pool.Run(ctx, 3+len(shifts), func(_, i int) {
		switch i {
		case 0:
			m.Relin = newRelinearisation(p, h.secret, h.rnd)
		case 1:
			m.Small = newSmallRing(p, h.secret, h.rnd.key("ring switching key: seed", 0), h.rnd)
		case 2:
			m.Public = newPublicKey(p, h.secret, aggregateLevel, -1, h.rnd.key("public key: seed", 0), h.rnd)
		default:
			m.Rotations[i-3] = newRotation(p, h.secret, shifts[i-3], h.rnd.key("rotation key: seed", shifts[i-3]), h.rnd)
		}
	})
	return m, err
}

// install keeps the evaluation keys.
func (c *computer) install(relin *rns.Key, rotations []*SwitchKey, small *SwitchKey, public *PublicKey) (err error) {
	keys := map[int]*rns.Key{}
	for i, shift := range c.lay.shifts() {
		keys[shift] = rotations[i].expand(c.params)
	}
	c.small = small.expand(c.params)
	c.receivePublicKey(public)
	c.ev, err = newEvaluator(c.params, relin, keys)
	return err
}

// receivePublicKey keeps the part of a public key that re-randomisation needs.
func (c *computer) receivePublicKey(k *PublicKey) {
	b, a := k.expand(c.params)
	c.pk = [2]rns.Poly{c.params.lattice.FromWide(b.Q.Coeffs[:aggregateLevel+1]), c.params.lattice.FromWide(a.Q.Coeffs[:aggregateLevel+1])}
}

// receiveColumn installs an encrypted column.
func (c *computer) receiveColumn(m *ColumnMessage) {
	for i := range m.Tops {
		c.tops[m.Column] = append(c.tops[m.Column], m.Tops[i].expand(c.params))
	}
	for i := range m.Lows {
		c.lows[m.Column] = append(c.lows[m.Column], m.Lows[i].expand(c.params))
	}
}

// deliver sends a party's column messages to Alice.
func (s *session) deliver(party int, msgs []*ColumnMessage) error {
	for _, m := range msgs {
		got, err := readColumn(s.params, s.lay, s.job.Columns[party], s.topScale, s.lowScale, s.log.send(party, 0, KindColumn, m.marshal(s.params)))
		if err != nil {
			return err
		}
		s.alice.receiveColumn(got)
	}
	return nil
}

// provide encrypts a party's columns under a public key and sends them.
func (s *session) provide(ctx context.Context, party int, key *PublicKey) error {
	p := s.params
	own := s.columnsOf(party)
	enc := newPublicEncryptor(p, key, s.entropy(party))
	msgs, err := encryptColumns(ctx, s.rt.Pool(), p, s.lay, own, order(own), s.topScale, s.lowScale, func(m ring.Poly, scale float64, purpose string, index int) ColumnCipher {
		return enc.encrypt(m, scale, purpose, index)
	}, false)
	if err != nil {
		return err
	}
	return s.deliver(party, msgs)
}

// publicEncryptor encrypts under another party's key. The encryption of zero is
// made modulo Q p_0 and divided by p_0, so its noise is that of a rounding.
type publicEncryptor struct {
	p    *Parameters
	b, a ringqp.Poly
	rnd  entropy
}

func newPublicEncryptor(p *Parameters, key *PublicKey, rnd entropy) *publicEncryptor {
	b, a := key.expand(p)
	r := p.RingP().AtLevel(0)
	q := p.RingQ()
	// Montgomery form, for the products with the ternary secret.
	mb, ma := p.RingQP().AtLevel(p.MaxLevel(), 0).NewPoly(), p.RingQP().AtLevel(p.MaxLevel(), 0).NewPoly()
	q.MForm(b.Q, mb.Q)
	q.MForm(a.Q, ma.Q)
	r.MForm(b.P, mb.P)
	r.MForm(a.P, ma.P)
	return &publicEncryptor{p: p, b: mb, a: ma, rnd: rnd}
}

func (e *publicEncryptor) encrypt(m ring.Poly, scale float64, purpose string, index int) ColumnCipher {
	p, l := e.p, m.Level()
	rnd := e.rnd.prng(purpose, index)
	qp := p.RingQP().AtLevel(l, 0)
	u := qp.NewPoly()
	u.Q = ternary(p, rnd, l)
	qp.ExtendBasisSmallNormAndCenter(u.Q, 0, u.Q, u.P)
	qp.NTT(u, u)
	extend := ring.NewBasisExtender(p.RingQ(), p.RingP())
	half := func(key ringqp.Poly) ring.Poly {
		x := gaussian(p, rnd, l, 0)
		qp.MulCoeffsMontgomeryThenAdd(u, ringqp.Poly{Q: ring.Poly{Coeffs: key.Q.Coeffs[:l+1]}, P: key.P}, x)
		out := ring.NewPoly(p.N(), l)
		extend.ModDownQPtoQNTT(l, 0, x.Q, x.P, out)
		return out
	}
	c0, c1 := half(e.b), half(e.a)
	p.RingQ().AtLevel(l).Add(c0, m, c0)
	return ColumnCipher{SeededCipher: SeededCipher{Scale: scale, C0: c0}, C1: &c1}
}

// round runs one round from the centroids `current` and returns the next ones.
func (s *session) round(ctx context.Context, t int, current [][]float64) ([][]float64, error) {
	pool := s.rt.Pool()
	span := s.rt.Begin(engine.PhaseCompare, t, 0)
	members, done, err := s.members(ctx, current)
	s.rt.End(span)
	if err != nil {
		return nil, err
	}
	span = s.rt.Begin(engine.PhaseSum, t, 0)
	totals, err := s.alice.totals(ctx, pool, t, members)
	s.rt.End(span)
	if err != nil {
		return nil, err
	}
	span = s.rt.Begin(engine.PhaseNoise, t, 0)
	msg, _, err := s.perturb(t, totals)
	s.rt.End(span)
	if err != nil {
		return nil, err
	}
	span = s.rt.Begin(engine.PhaseDecrypt, t, 1)
	next, total, err := s.decrypt(t+1, msg, current)
	s.rt.End(span)
	if err != nil {
		return nil, err
	}
	done.Index, done.Operations, done.Total, done.Centroids = t, s.alice.operations(), total, next
	s.rounds = append(s.rounds, done)
	if s.job.OnRound != nil {
		s.job.OnRound(done)
	}
	return next, nil
}

// perturb makes the message of a round's aggregates, with Alice's noise, which it returns too.
func (s *session) perturb(t int, totals []total) (*AggregatesMessage, []int64, error) {
	msg := &AggregatesMessage{Round: t + 1}
	for _, x := range totals {
		msg.Units = append(msg.Units, x.unit)
		msg.Totals = append(msg.Totals, x.Aggregate)
	}
	if !s.plan.noise.active() {
		return msg, nil, nil
	}
	z, err := drawNoise(s.plan.noise, s.streams, 0, t+1, msg.Units, s.cols.d)
	for i := range z {
		msg.Totals[i].addInteger(s.params, z[i])
	}
	return msg, z, err
}

// members computes the encrypted memberships for the given centroids.
func (s *session) members(ctx context.Context, current [][]float64) ([][]*cipher, Round, error) {
	pool := s.rt.Pool()
	if s.job.argmin() == Rank {
		m, err := s.alice.rankMembers(ctx, pool, planRank(s.params, s.cols, current))
		return m, Round{Pairs: s.job.K * s.job.K, Depth: treeDepth(s.job.K - 1)}, err
	}
	r, err := planRound(s.params, s.cols, current, !s.job.KeepPairs)
	if err != nil {
		return nil, Round{}, err
	}
	m, err := s.alice.members(ctx, pool, r)
	return m, Round{Pairs: len(r.pairs), Depth: r.depth}, err
}

// decrypt sends the aggregates and returns the centroids that come back.
func (s *session) decrypt(round int, msg *AggregatesMessage, current [][]float64) ([][]float64, float64, error) {
	p := s.params
	if s.job.mode() == Multiparty {
		return s.decryptTogether(round, msg, current)
	}
	next, total, err := s.bob.update(round, s.log.send(0, 1, KindAggregates, msg.marshal(p)))
	if err != nil {
		return nil, 0, err
	}
	s.log.next()
	back, err := readCentroids(p, round, s.job.K, s.cols.d, s.log.send(1, 0, KindCentroids, (&CentroidsMessage{Round: round, Centroids: next}).marshal(p)))
	s.log.next()
	if err != nil {
		return nil, 0, err
	}
	return back.Centroids, total, nil
}

// publish sends the final centroids to the parties that have not seen them.
func (s *session) publish(final [][]float64) error {
	first := 2
	if s.job.mode() == Multiparty {
		first = 1
	}
	b := (&CentroidsMessage{Round: s.job.rounds(), Centroids: final}).marshal(s.params)
	for q := first; q < len(s.job.Columns); q++ {
		if _, err := readCentroids(s.params, s.job.rounds(), s.job.K, s.cols.d, s.log.send(0, q, KindCentroids, b)); err != nil {
			return err
		}
	}
	return nil
}
