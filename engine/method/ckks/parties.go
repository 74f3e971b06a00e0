package ckks

import (
	"context"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// alice is party 1, who computes: her columns in the clear, the others' encrypted.
type alice struct {
	peer
	*computer
	rounds  []Round
	average averager // of totals that she decrypts together with the key holders
	message []byte   // of a round's totals, written again in the next
}

func (s *run) newAlice() *alice { return &alice{peer: s.newPeer(0)} }

// play is her program.
func (a *alice) play(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
	a.join(p)
	span := p.Begin(engine.PhaseEncrypt, 0)
	err := a.prepare(ctx)
	p.End(span)
	if err != nil {
		return nil, err
	}
	current := a.run.start
	for t := range a.job.rounds() {
		if current, err = a.playRound(ctx, t, current); err != nil {
			return nil, err
		}
		if err := p.EndRound(ctx, t, a.job.rounds()); err != nil {
			return nil, err
		}
	}
	return a.outcome(current), a.tell(ctx, current)
}

// tell sends the last centroids to those who have not made them.
func (a *alice) tell(ctx context.Context, centroids [][]float64) error {
	first := 2
	if a.job.mode() == Multiparty {
		first = 1
	}
	for q := first; q < len(a.job.Columns); q++ {
		if err := a.sendCentroids(ctx, a.centroids, q, a.job.rounds(), centroids); err != nil {
			return err
		}
	}
	return nil
}

// prepare is the setup: terms, keys and encrypted columns of the others.
func (a *alice) prepare(ctx context.Context) error {
	for q := 1; q < len(a.job.Columns); q++ {
		b, err := a.receive(ctx, q)
		if err == nil {
			err = a.terms.agree(q, b)
		}
		if err != nil {
			return err
		}
	}
	a.step++
	values := make([][]float64, a.run.cols.d)
	for c, v := range a.columns {
		values[c] = v
	}
	var err error
	if a.computer, err = newComputer(ctx, a.Pool(), a.run.params, a.run.lay, a.run.cols, values, a.lowScale,
		a.peer.rnd, a.job.K, a.job.rounds()); err != nil {
		return err
	}
	if a.job.mode() == Multiparty {
		return a.prepareCommittee(ctx)
	}
	return a.prepareHolder(ctx)
}

// prepareHolder takes keys and columns from Bob and the other parties' columns
// under his key, and tells Bob the start: he needs it for clusters that stay empty.
func (a *alice) prepareHolder(ctx context.Context) error {
	p := a.run.params
	b, err := a.receive(ctx, 1)
	if err != nil {
		return err
	}
	keys, late := readKeys(p, len(a.run.lay.shifts()), b)
	if err := a.install(ctx, a.Pool(), keys, late); err != nil {
		return err
	}
	for q := 1; q < len(a.job.Columns); q++ {
		if err := a.receiveColumns(ctx, q); err != nil {
			return err
		}
	}
	a.step = 2
	if len(a.job.Columns) > 2 {
		a.step = 3
	}
	if err := a.sendCentroids(ctx, a.setup, 1, 0, a.run.start); err != nil {
		return err
	}
	a.step++
	return a.spreadColumns(ctx)
}

// spreadColumns unpacks the encrypted columns where the nearest centroid is found by rank.
func (a *alice) spreadColumns(ctx context.Context) error {
	if a.job.argmin() != Rank {
		return nil
	}
	return a.spread(ctx, a.Pool())
}

// receiveColumns takes a party's columns.
func (a *alice) receiveColumns(ctx context.Context, party int) error {
	for range a.job.Columns[party] {
		b, err := a.receive(ctx, party)
		if err != nil {
			return err
		}
		m, late := readColumn(a.run.params, a.run.lay, a.job.Columns[party], a.topScale, a.lowScale, b)
		if err := a.receiveColumn(ctx, a.Pool(), m, late); err != nil {
			return err
		}
	}
	return nil
}

// playRound runs one round from the centroids `current` and returns the next ones.
func (a *alice) playRound(ctx context.Context, t int, current [][]float64) ([][]float64, error) {
	a.peer.round = t + 1
	span := a.Begin(engine.PhaseCompare, t)
	members, done, err := a.compareAll(ctx, t, current)
	a.End(span)
	if err != nil {
		return nil, err
	}
	span = a.Begin(engine.PhaseSum, t)
	a.steps = a.phase(a.Pool(), t, "sums", a.job.K*(1+a.run.cols.d))
	totals, err := a.totals(ctx, a.Pool(), t, members)
	a.End(span)
	if err != nil {
		return nil, err
	}
	msg, z, err := a.perturb(t, totals)
	clear(z)
	if err != nil {
		return nil, err
	}
	next, err := a.decrypt(ctx, t+1, msg, current)
	if err != nil {
		return nil, err
	}
	done.Index, done.Operations, done.Centroids = t, a.operations(), next
	a.rounds = append(a.rounds, done)
	if a.job.OnRound != nil {
		a.job.OnRound(done)
	}
	return next, nil
}

// perturb makes the message of a round's aggregates, with Alice's noise, which it
// returns too.
func (a *alice) perturb(t int, totals []total) (*aggregatesMessage, []int64, error) {
	msg := &aggregatesMessage{Round: t + 1}
	for _, x := range totals {
		msg.Units = append(msg.Units, x.unit)
		msg.Totals = append(msg.Totals, x.Aggregate)
	}
	if !a.noise.active() {
		return msg, nil, nil
	}
	groups, err := a.noiseGroups(msg.Units)
	if err != nil {
		return nil, nil, err
	}
	z, err := a.Share(a.released, t+1, groups)
	for i := range z {
		msg.Totals[i].addInteger(a.run.params, z[i])
	}
	return msg, z, err
}

// compareAll computes the encrypted memberships of round t for the given centroids.
func (a *alice) compareAll(ctx context.Context, t int, current [][]float64) ([][]*cipher, Round, error) {
	if a.job.argmin() == Rank {
		a.steps = a.phase(a.Pool(), t, "comparisons", 0)
		m, err := a.rankMembers(ctx, a.Pool(), planRank(a.run.params, a.run.cols, current))
		return m, Round{Pairs: a.job.K * a.job.K, Depth: treeDepth(a.job.K - 1), Degree: rankSignFor(a.job.K).degree()}, err
	}
	r, err := a.comparisons(t, current)
	if err != nil {
		return nil, Round{}, err
	}
	a.steps = a.phase(a.Pool(), t, "comparisons", a.run.lay.batches*(len(r.groups)+a.job.K))
	m, err := a.members(ctx, a.Pool(), r)
	return m, Round{Pairs: len(r.pairs), Depth: r.depth, Degree: r.sign.degree()}, err
}

// decrypt sends the aggregates and returns the centroids that come back.
func (a *alice) decrypt(ctx context.Context, round int, msg *aggregatesMessage,
	current [][]float64) ([][]float64, error) {
	if a.job.mode() == Multiparty {
		return a.decryptTogether(ctx, round, msg, current)
	}
	a.message = msg.marshal(a.run.params, abreast(ctx, a.Pool()), a.message)
	if err := a.send(ctx, a.released, 1, kindAggregates, a.message); err != nil {
		return nil, err
	}
	a.step++
	next, err := a.receiveCentroids(ctx, 1, round)
	a.step++
	return next, err
}

// bob holds the key: his columns, his noise.
type bob struct {
	peer
	secret  *secretKey
	small   smallSecret // made beside the keys
	average averager
	current [][]float64 // centroids of the last round
}

func (s *run) newBob() *bob {
	return &bob{peer: s.newPeer(1)}
}

// join makes his secret key too.
func (b *bob) join(p *protocol.Party) {
	b.peer.join(p)
	b.secret = newSecretKey(b.params, b.rnd, abreast(context.Background(), b.Pool()))
}

// play is his program.
func (b *bob) play(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
	b.join(p)
	if err := b.sendTerms(ctx); err != nil {
		return nil, err
	}
	span := p.Begin(engine.PhaseEncrypt, 0)
	err := b.prepare(ctx)
	p.End(span)
	if err != nil {
		return nil, err
	}
	if b.current, err = b.receiveCentroids(ctx, 0, 0); err != nil {
		return nil, err
	}
	b.step++
	if len(b.job.Columns) > 2 {
		b.step++
	}
	for t := range b.job.rounds() {
		if err := b.answer(ctx, t+1); err != nil {
			return nil, err
		}
		if err := p.EndRound(ctx, t, b.job.rounds()); err != nil {
			return nil, err
		}
	}
	return b.outcome(b.current), nil
}

// prepare sends keys and his columns to Alice, and his public key to the other
// parties, who send her theirs.
func (b *bob) prepare(ctx context.Context) error {
	b.step++
	p := b.params
	columns := newColumnEncryption(b.Pool(), p, b.lay, b.columns, order(b.columns), b.topScale, b.lowScale, b.rnd,
		func(level int, scale float64, purpose string, index int) encryption {
			return beginSeeded(p, level, scale, b.secret, b.rnd, purpose, index)
		}, true)
	keys, err := b.keys(ctx, append(columns.early(), func() { b.small = newSmallSecret(p, b.secret.small) }))
	if err != nil {
		return err
	}
	if err := b.send(ctx, b.setup, 0, kindKeys, keys.marshal(p, abreast(ctx, b.Pool()))); err != nil {
		return err
	}
	p.free(append(keys.Rotations, keys.Relin, keys.Small)...)
	msgs, err := columns.finish(ctx)
	if err != nil {
		return err
	}
	if err := b.sendColumns(ctx, msgs); err != nil {
		return err
	}
	if len(b.job.Columns) > 2 {
		pk := (&publicKeyMessage{Key: newPublicKey(p, b.secret, p.MaxLevel(), 0, b.rnd.key("public key: seed", 1),
			b.rnd)}).marshal(p)
		for q := 2; q < len(b.job.Columns); q++ {
			if err := b.send(ctx, b.setup, q, kindPublicKey, pk); err != nil {
				return err
			}
		}
	}
	b.step++
	return nil
}

// answer decrypts a round's aggregates, adds his noise, checks the totals and
// returns new centroids to Alice. The check comes after the noise: she knows her
// own (PRIVACY C7.4).
func (b *bob) answer(ctx context.Context, round int) error {
	b.peer.round = round
	b.step++
	message, err := b.receive(ctx, 0)
	if err != nil {
		return err
	}
	span := b.Begin(engine.PhaseDecrypt, round-1)
	b.current, err = b.update(ctx, round, message)
	b.End(span)
	if err != nil {
		return err
	}
	err = b.sendCentroids(ctx, b.centroids, 0, round, b.current)
	b.step++
	return err
}

// update turns a round's aggregates into the next centroids.
func (b *bob) update(ctx context.Context, round int, message []byte) ([][]float64, error) {
	p, d := b.params, b.cols.d
	m, err := readAggregates(p, round, b.job.K*(1+d), message)
	if err != nil {
		return nil, err
	}
	decrypted, errs := protocol.NewPrivate(len(m.Totals)), make([]error, len(m.Totals))
	err = decrypted.Fill(func(words []int64) error {
		err := b.Pool().Run(ctx, len(words), func(_, i int) {
			x, err := b.small.product(p, &m.Totals[i])
			for j := range x {
				x[j] = p.aggregate[j].add(x[j], m.Totals[i].C0[j])
			}
			words[i], errs[i] = crt(p, x), err
		})
		return firstError(err, errs)
	})
	var groups []protocol.Group
	if err == nil && b.noise.keyHolder {
		groups, err = b.noiseGroups(m.Units)
	}
	if err != nil {
		return nil, err
	}
	values, err := b.Open(b.released, round, groups, decrypted)
	if err != nil {
		return nil, err
	}
	return b.follow(round, b.current, values, m.Units, &b.average)
}

// provider is a party that encrypts its columns under Bob's key.
type provider struct{ peer }

// play is its program.
func (v *provider) play(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
	v.join(p)
	if err := v.sendTerms(ctx); err != nil {
		return nil, err
	}
	if err := v.prepare(ctx); err != nil {
		return nil, err
	}
	final, err := v.receiveCentroids(ctx, 0, v.job.rounds())
	if err != nil {
		return nil, err
	}
	return v.outcome(final), nil
}

// prepare takes Bob's key and sends the party's columns under it.
func (v *provider) prepare(ctx context.Context) error {
	b, err := v.receive(ctx, 1)
	if err != nil {
		return err
	}
	m, err := readPublicKey(v.params, b)
	if err != nil {
		return err
	}
	v.step = 2
	return v.provide(ctx, m.Key)
}

// keys makes the evaluation keys, each on all workers. also are other things to do meanwhile.
func (h *bob) keys(ctx context.Context, also []func()) (*keysMessage, error) {
	p, run := h.params, abreast(ctx, h.Pool())
	m := &keysMessage{}
	shifts := h.lay.shifts()
	drafts := []*draft{newRelinearisation(p, h.secret, h.rnd),
		newSmallRing(p, h.secret, h.rnd.key("ring switching key: seed", 0), h.rnd)}
	for _, shift := range shifts {
		drafts = append(drafts, newRotation(p, h.secret, shift, h.rnd.key("rotation key: seed", shift), h.rnd))
	}
	progress := &steps{pool: h.Pool(), what: "keys", total: 1 + len(drafts)}
	also = append([]func(){func() {
		m.Public = newPublicKey(p, h.secret, aggregateLevel, -1, h.rnd.key("public key: seed", 0), h.rnd)
		progress.one()
	}}, also...)
	for some := range slices.Chunk(drafts, keysAtOnce) {
		makeKeys(run, some, also...)
		also = nil
		for range some {
			progress.one()
		}
	}
	m.Relin, m.Small = drafts[0].key, drafts[1].key
	for _, d := range drafts[2:] {
		m.Rotations = append(m.Rotations, d.key)
	}
	return m, ctx.Err()
}

// install keeps the evaluation keys, of which rows are read late.
func (c *computer) install(ctx context.Context, pool *engine.Pool, m *keysMessage, late *reader) error {
	if err := late.end(); err != nil {
		return err
	}
	keys := append([]*switchKey{m.Relin, m.Small}, m.Rotations...)
	all, err := c.expandKeys(ctx, pool, keys, m.Public, late.late...)
	if err := firstError(err, []error{late.check()}); err != nil {
		return err
	}
	return c.keep(all[0], all[1], all[2:])
}

// expandKeys restores full keys and takes the public one. also are other things to do first.
func (c *computer) expandKeys(ctx context.Context, pool *engine.Pool, keys []*switchKey, public *publicKey,
	also ...func()) ([]*rns.Key, error) {
	also = append([]func(){func() { c.receivePublicKey(public) }}, also...)
	all := expandKeys(c.params, abreast(ctx, pool), keys, append(also, c.ahead...)...)
	c.ahead = nil
	return all, ctx.Err()
}

// keep makes the evaluator for full keys.
func (c *computer) keep(relin, small *rns.Key, rotations []*rns.Key) (err error) {
	c.small = small
	keys := map[int]*rns.Key{}
	for i, shift := range c.lay.shifts() {
		keys[shift] = rotations[i]
	}
	c.ev, err = newEvaluator(c.params, relin, keys)
	return err
}

// receivePublicKey keeps the part of a public key that re-randomisation needs.
func (c *computer) receivePublicKey(k *publicKey) {
	b, a := k.expand(c.params)
	room := c.params.lattice.Room()
	c.pk = [2]rns.Poly{room.Truncate(b, aggregateLevel), room.Truncate(a, aggregateLevel)}
}

// receiveColumn installs an encrypted column, of which rows are read late.
func (c *computer) receiveColumn(ctx context.Context, pool *engine.Pool, m *columnMessage, late *reader) error {
	if err := late.end(); err != nil {
		return err
	}
	tops, lows := len(m.Tops), len(m.Lows)
	c.tops[m.Column], c.lows[m.Column] = make([]*cipher, tops), make([]*cipher, lows)
	if c.lay.rank == nil {
		c.slots[m.Column] = make([][]float64, tops)
	}
	ciphers, dithers := tops+lows, len(c.slots[m.Column])
	err := pool.Run(ctx, ciphers+dithers+len(late.late), func(worker, i int) {
		switch {
		case i < tops:
			c.tops[m.Column][i] = m.Tops[i].expand(c.params)
		case i < ciphers:
			c.lows[m.Column][i-tops] = m.Lows[i-tops].expand(c.params)
		case i < ciphers+dithers:
			i -= ciphers
			x := make([]float64, c.params.N())
			c.its(worker).embed.subtractDither(dither(m.Dither), i, m.Tops[i].Scale, x)
			c.slots[m.Column][i] = x
		default:
			late.late[i-ciphers-dithers]()
		}
	})
	return firstError(err, []error{late.check()})
}
