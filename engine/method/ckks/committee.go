package ckks

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/multiparty"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// member is one of the parties that share the secret key in the multiparty mode.
// The key is the sum of theirs; its public parts are made by the protocols of
// Mouchet et al. 2021 (one round; two for the relinearisation key) from a
// common seed, so a share carries only one polynomial per row. With a threshold
// each member also deals Shamir shares of its secret for the aggregates (Mouchet
// et al. 2022), and any Threshold members decrypt.
//
// Of a decryption share only coefficient 0 is sent: whoever saw the whole share
// of every member could decrypt everything.
type member struct {
	peer
	secret *secretKey
	// share is what the member decrypts aggregates with.
	share smallSecret
}

func (s *run) newMember(party int) *member {
	m := &member{peer: s.newPeer(party)}
	return m
}

// join makes the member's secret key too.
func (m *member) join(p *protocol.Party) {
	m.peer.join(p)
	m.secret = newSecretKey(m.params, m.rnd, alone)
	m.share = newSmallSecret(m.params, m.secret.small)
}

// play is the member's program.
func (m *member) play(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
	m.join(p)
	if err := m.sendTerms(ctx); err != nil {
		return nil, err
	}
	span := p.Begin(engine.PhaseEncrypt, 0)
	err := m.prepare(ctx)
	p.End(span)
	if err != nil {
		return nil, err
	}
	for t := range m.job.rounds() {
		if slices.Contains(m.online, int(p.Role)) {
			if err := m.answer(ctx, t+1); err != nil {
				return nil, err
			}
		}
		if err := p.EndRound(ctx, t, m.job.rounds()); err != nil {
			return nil, err
		}
	}
	final, err := m.receiveCentroids(ctx, 0, m.job.rounds())
	if err != nil {
		return nil, err
	}
	return m.outcome(final), nil
}

// keyShareMessage carries a member's shares of the public keys: of the first
// round (public key, ring-switching key, rotations, both halves of the
// relinearisation key's first round) or of the second (the relinearisation
// key's rows).
type keyShareMessage struct {
	Second bool
	Public *publicKey
	Small  *switchKey
	// Rotations has one key per power of two of the layout.
	Rotations []*switchKey
	// Relin has h0 and Mask h1 of the first round; in the second only Relin.
	Relin, Mask *switchKey
}

// free keeps the rows of a first round's keys, which are not used any more, for later polynomials.
func (m *keyShareMessage) free(p *parameters) {
	p.free(append(m.Rotations, m.Small, m.Relin, m.Mask)...)
	p.lattice.Free(m.Public.B)
}

func (m *keyShareMessage) marshal(p *parameters) []byte { return m.marshalIn(p, nil) }

// marshalIn writes the message in memory, if there is enough.
func (m *keyShareMessage) marshalIn(p *parameters, memory []byte) []byte {
	if m.Second {
		w := newWriterIn(p, kindKeyShare, slices.Grow(memory[:0], wireHead+sizes{p}.secondShare()))
		w.b = append(w.b, 2)
		w.switchKey(m.Relin)
		return w.end(alone)
	}
	w := newWriterIn(p, kindKeyShare, slices.Grow(memory[:0], wireHead+sizes{p}.firstShare(len(m.Rotations))))
	w.b = append(w.b, 1)
	w.publicKey(m.Public)
	w.switchKey(m.Small)
	w.u32(uint32(len(m.Rotations)))
	for _, k := range m.Rotations {
		w.switchKey(k)
	}
	w.switchKey(m.Relin)
	w.switchKey(m.Mask)
	return w.end(alone)
}

func readKeyShare(p *parameters, second bool, rotations int, b []byte) (*keyShareMessage, error) {
	r := newReader(p, kindKeyShare, b)
	want := byte(1)
	if second {
		want = 2
	}
	if got := r.u8(); r.err == nil && got != want {
		r.fail(fmt.Sprintf("is of round %d, want %d", got, want))
	}
	m := &keyShareMessage{Second: second}
	if !second {
		m.Public = r.publicKey(p.MaxLevel(), 0)
		m.Small = r.switchKey(p.small)
		for range r.count("rotation keys", rotations) {
			if r.err != nil {
				break
			}
			m.Rotations = append(m.Rotations, r.switchKey(p.rotation))
		}
	}
	m.Relin = r.switchKey(p.relin)
	if !second {
		m.Mask = r.switchKey(p.relin)
	}
	return m, r.finish(alone)
}

// thresholdMessage carries a member's Shamir share for another member: a
// uniformly random polynomial to anyone who has fewer than Threshold of them.
type thresholdMessage struct{ Share [aggregateLevel + 1][]uint64 }

func (m *thresholdMessage) marshal(p *parameters) []byte {
	w := newWriter(p, kindThreshold, 0)
	for j, row := range m.Share {
		w.pack(row, p.Q()[j])
	}
	return w.b
}

func readThreshold(p *parameters, b []byte) (*thresholdMessage, error) {
	r := newReader(p, kindThreshold, b)
	m := new(thresholdMessage)
	for j := range m.Share {
		m.Share[j] = r.unpack(p.N()/p.stride, p.Q()[j])
	}
	return m, r.end()
}

// sharesMessage carries one number per aggregate: coefficient 0 of a member's
// decryption share, with its noise and smudging.
type sharesMessage struct {
	Round  int
	Shares [][aggregateLevel + 1]uint64
}

func (m *sharesMessage) marshal(p *parameters) []byte {
	w := newWriter(p, kindShares, 0)
	w.u32(uint32(m.Round))
	for _, s := range m.Shares {
		for j, x := range s {
			w.pack([]uint64{x}, p.Q()[j])
		}
	}
	return w.b
}

func readShares(p *parameters, round, count int, b []byte) (*sharesMessage, error) {
	r := newReader(p, kindShares, b)
	m := &sharesMessage{Round: r.count("as its round", round), Shares: make([][aggregateLevel + 1]uint64, count)}
	for i := range m.Shares {
		for j := range m.Shares[i] {
			if v := r.unpack(1, p.Q()[j]); v != nil {
				m.Shares[i][j] = v[0]
			}
		}
	}
	return m, r.end()
}

// commonSeed derives the seeds that all parties expand from the terms' seed.
func commonSeed(root []byte, purpose string, index int) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%x %s %d", root, purpose, index))
}

// prepareCommittee adds up the members' shares of the collective keys and takes
// everybody's columns encrypted under them.
func (a *alice) prepareCommittee(ctx context.Context) error {
	p, rotations := a.run.params, len(a.run.lay.shifts())
	var sum *keyShareMessage
	for q := 1; q < len(a.job.Columns); q++ {
		got, err := a.receiveShare(ctx, q, false, rotations)
		if err != nil {
			return err
		}
		if sum == nil {
			sum = got
			continue
		}
		sum.Public.addShare(p, got.Public)
		sum.Small.addShare(p, got.Small)
		for r := range sum.Rotations {
			sum.Rotations[r].addShare(p, got.Rotations[r])
		}
		sum.Relin.addShare(p, got.Relin)
		sum.Mask.addShare(p, got.Mask)
	}
	a.step = 2
	// Members need the sums: the public key to encrypt and the relinearisation key's
	// halves for the second round.
	back := sum.marshal(p)
	for q := 1; q < len(a.job.Columns); q++ {
		if err := a.send(ctx, a.setup, q, kindKeyShare, back); err != nil {
			return err
		}
	}
	var relin *switchKey
	for q := 1; q < len(a.job.Columns); q++ {
		got, err := a.receiveShare(ctx, q, true, 0)
		if err != nil {
			return err
		}
		if relin == nil {
			relin = got.Relin
		} else {
			relin.addShare(p, got.Relin)
		}
	}
	if err := a.receiveCollectiveKeys(ctx, a.Pool(), sum, relin); err != nil {
		return err
	}
	for q := 1; q < len(a.job.Columns); q++ {
		if err := a.receiveColumns(ctx, q); err != nil {
			return err
		}
	}
	a.step = a.firstRoundStep()
	return a.spreadColumns(ctx)
}

// firstRoundStep is the step in which the first round of the multiparty mode begins.
func (s *run) firstRoundStep() int {
	if s.job.threshold() == len(s.job.Columns)-1 {
		return 4
	}
	return 5 // shares of the members' secrets come before the columns
}

func (a *alice) receiveShare(ctx context.Context, from int, second bool, rotations int) (*keyShareMessage, error) {
	b, err := a.receive(ctx, from)
	if err != nil {
		return nil, err
	}
	return readKeyShare(a.run.params, second, rotations, b)
}

// prepare makes the member's shares of the collective keys, deals shares of its
// secret where there is a threshold, and sends its columns.
func (m *member) prepare(ctx context.Context) error {
	p, shifts := m.params, m.lay.shifts()
	var first *keyShareMessage
	var ephemeral secretRows
	if err := m.Abreast(ctx, func(context.Context) error {
		first, ephemeral = m.firstShares(m.terms.CommonSeed, shifts)
		return nil
	}); err != nil {
		return err
	}
	m.step = 1
	message := first.marshal(p)
	if err := m.send(ctx, m.setup, 0, kindKeyShare, message); err != nil {
		return err
	}
	first.free(p)
	b, err := m.receive(ctx, 0)
	if err != nil {
		return err
	}
	sum, err := readKeyShare(p, false, len(shifts), b)
	if err != nil {
		return err
	}
	p.free(append(sum.Rotations, sum.Small)...)
	var second *keyShareMessage
	if err := m.Abreast(ctx, func(context.Context) error {
		second = m.secondShare(sum, ephemeral)
		return nil
	}); err != nil {
		return err
	}
	m.step = 3
	// Who has answered with the sum has read the first share.
	if err := m.send(ctx, m.setup, 0, kindKeyShare, second.marshalIn(p, message)); err != nil {
		return err
	}
	p.free(second.Relin)
	if err := m.dealThreshold(ctx); err != nil {
		return err
	}
	m.step = m.firstRoundStep() - 1
	return m.provide(ctx, sum.Public)
}

// firstShares makes a member's shares of the first round and the ephemeral
// secret of the relinearisation protocol.
func (m *member) firstShares(root []byte, shifts []int) (*keyShareMessage, secretRows) {
	p := m.params
	msg := &keyShareMessage{
		Public: newPublicKey(p, m.secret, p.MaxLevel(), 0, commonSeed(root, "public key", 0), m.rnd),
		Small:  newSmallRing(p, m.secret, commonSeed(root, "ring switching key", 0), m.rnd).make(alone),
	}
	for _, shift := range shifts {
		msg.Rotations = append(msg.Rotations, newRotation(p, m.secret, shift, commonSeed(root, "rotation key", shift),
			m.rnd).make(alone))
	}
	// h0 = s_i P w - u_i a + e0,  h1 = s_i a + e1, row by row.
	seed := commonSeed(root, "relinearisation key", 0)
	ephemeral := &secretDraft{prng: m.rnd.prng("ephemeral secret", 0), stride: 1}
	sampleSecrets(p, alone, ephemeral)
	u := ephemeral.key
	msg.Relin = newSwitchKey(p, m.secret.main, u, p.relin, seed, m.rnd, "relinearisation key, round 1", 0,
		alone)
	msg.Mask = &switchKey{gadget: p.relin, Seed: seed}
	as, errs := newPRNG(seed[:]), m.rnd.prng("relinearisation key, mask", 0)
	s := m.secret.main.factor(p.lattice, len(m.secret.main))
	for range msg.Relin.Rows {
		a, h := uniformRows(p, as, p.MaxLevel(), p.MaxLevelP()), p.errorRows(errs)
		p.lattice.MultiplyAdd(h, a, s)
		p.lattice.Free(a)
		msg.Mask.Rows = append(msg.Mask.Rows, h)
	}
	p.lattice.Wipe(s)
	return msg, u
}

// secondShare is s_i h0 + (u_i - s_i) h1 + e2, row by row, from the sums h0, h1, which serve again.
func (m *member) secondShare(sum *keyShareMessage, u secretRows) *keyShareMessage {
	p := m.params
	s := m.secret.main.factor(p.lattice, len(m.secret.main))
	diff := u.factor(p.lattice, len(u))
	p.lattice.Sub(diff, diff, s)
	out := &switchKey{gadget: p.relin, Seed: sum.Relin.Seed}
	errs := m.rnd.prng("relinearisation key, round 2", 0)
	for i := range sum.Relin.Rows {
		e := p.errorRows(errs)
		p.lattice.MultiplyAdd(e, sum.Relin.Rows[i], s)
		p.lattice.MultiplyAdd(e, sum.Mask.Rows[i], diff)
		p.lattice.Free(sum.Relin.Rows[i], sum.Mask.Rows[i])
		out.Rows = append(out.Rows, e)
	}
	p.lattice.Wipe(s, diff, rns.Poly(u))
	return &keyShareMessage{Second: true, Relin: out}
}

// errorRows draws an error polynomial modulo all primes, times 2^64 as keys are.
func (p *parameters) errorRows(prng sampling.PRNG) rns.Poly {
	e, out := newSmalls(p.lattice.Room(), 1), p.lattice.NewPoly(len(p.q)+len(p.p)-1)
	smallErrors(e.at(0), prng)
	for i, row := range out {
		p.lattice.SmallRow(i, row, e.at(0))
	}
	e.wipe()
	return out
}

// addShare adds another member's rows, which serve again.
func (k *switchKey) addShare(p *parameters, o *switchKey) {
	for i, rows := range k.Rows {
		k.gadget.AddRows(rows, o.Rows[i])
	}
	p.free(o)
}

func (k *publicKey) addShare(p *parameters, o *publicKey) {
	p.lattice.Add(k.B, k.B, o.B)
	p.lattice.Free(o.B)
}

// receiveCollectiveKeys installs the keys that the committee made: the
// relinearisation key is (sum of the second round, h1).
func (c *computer) receiveCollectiveKeys(ctx context.Context, pool *engine.Pool, sum *keyShareMessage,
	relin *switchKey) error {
	key := c.params.relin.NewKey()
	for i, row := range relin.Rows {
		key.Set(i, row, sum.Mask.Rows[i])
	}
	all, err := c.expandKeys(ctx, pool, append([]*switchKey{sum.Small}, sum.Rotations...), sum.Public)
	if err != nil {
		return err
	}
	return c.keep(key, all[0], all[1:])
}

// aggregateRing are the parameters of the ring in which aggregates are
// decrypted and secrets are shared.
func (p *parameters) aggregateRing() (rlwe.Parameters, error) {
	return rlwe.NewParametersFromLiteral(rlwe.ParametersLiteral{
		LogN: p.Security.SwitchLogN, Q: p.Q()[:aggregateLevel+1], RingType: ring.ConjugateInvariant,
	})
}

// dealThreshold deals Shamir shares of the member's small secret to the others and
// turns those that it gets, if it is online, into an additive share of the key.
// Without a threshold the members' own secrets are the shares.
func (m *member) dealThreshold(ctx context.Context) error {
	members, t, own := len(m.job.Columns)-1, m.job.threshold(), int(m.Role)-1
	if t == members {
		return nil
	}
	small, err := m.params.aggregateRing()
	if err != nil {
		return fault.Failed("ckks threshold", err.Error(), "", err)
	}
	dealer := multiparty.NewThresholdizer(small)
	// The library's own sampler is not seeded: the coefficients are drawn here.
	poly := multiparty.ShamirPolynomial{Value: []ringqp.Poly{{Q: ring.Poly{Coeffs: m.share[:]}}}}
	rnd := m.rnd.prng("shamir polynomial", 0)
	for range t - 1 {
		x := ringqp.Poly{Q: small.RingQ().NewPoly()}
		ring.NewUniformSampler(rnd, small.RingQ()).Read(x.Q)
		poly.Value = append(poly.Value, x)
	}
	sum := dealer.AllocateThresholdSecretShare()
	secrets := [][][]uint64{slices.Clone(m.share[:])} // what is left of them when the shares are dealt
	for _, x := range poly.Value[1:] {
		secrets = append(secrets, x.Q.Coeffs)
	}
	defer func() {
		for _, rows := range append(secrets, sum.Q.Coeffs) {
			clearRows(rows)
		}
	}()
	for i := range members {
		share := dealer.AllocateThresholdSecretShare()
		dealer.GenShamirSecretShare(point(i), poly, &share)
		if i == own {
			sum = share
			continue
		}
		var msg thresholdMessage
		copy(msg.Share[:], share.Q.Coeffs)
		if err := m.send(ctx, m.setup, i+1, kindThreshold, msg.marshal(m.params)); err != nil {
			return err
		}
		clearRows(share.Q.Coeffs)
	}
	for i := range members {
		if i == own {
			continue
		}
		b, err := m.receive(ctx, i+1)
		if err != nil {
			return err
		}
		got, err := readThreshold(m.params, b)
		clear(b)
		if err != nil {
			return err
		}
		share := dealer.AllocateThresholdSecretShare()
		share.Q.Coeffs = got.Share[:]
		if err := dealer.AggregateShares(sum, share, &sum); err != nil {
			return fault.Failed("ckks threshold", err.Error(), "", err)
		}
		clearRows(got.Share[:])
	}
	if !slices.Contains(m.online, int(m.Role)) {
		return nil
	}
	var active []multiparty.ShamirPublicPoint
	for _, party := range m.online {
		active = append(active, point(party-1))
	}
	out := rlwe.NewSecretKey(small)
	if err := multiparty.NewCombiner(small, point(own), active, t).GenAdditiveShare(active, point(own), sum,
		out); err != nil {
		return fault.Failed("ckks threshold", err.Error(), "wait for more key holders", err)
	}
	copy(m.share[:], out.Value.Q.Coeffs)
	return nil
}

// point is the public point of a member; 0 would be the secret.
func point(i int) multiparty.ShamirPublicPoint { return multiparty.ShamirPublicPoint(i + 1) }

// smudgeBits is the size of the uniform integer that every member adds to a
// decryption share so that the sum does not show the ciphertext's error. One
// record is worth about 2^40.
const smudgeBits = 34

// answer returns to Alice, of a round's aggregates, coefficient 0 of c1 s_i with
// noise and smudging.
func (m *member) answer(ctx context.Context, round int) error {
	p := m.params
	m.peer.round = round
	m.step = m.firstRoundStep() + 2*round - 1
	b, err := m.receive(ctx, 0)
	if err != nil {
		return err
	}
	span := m.Begin(engine.PhaseDecrypt, round-1)
	defer m.End(span)
	got, err := readAggregates(p, round, m.job.K*(1+m.cols.d), b)
	if err != nil {
		return err
	}
	z := make([]int64, len(got.Totals))
	if m.noise.active() && m.noise.keyHolder {
		groups, err := m.noiseGroups(got.Units)
		if err != nil {
			return err
		}
		if z, err = m.Share(m.released, round, groups); err != nil {
			return err
		}
	}
	flood := m.Streams().Stream(int(m.Role), round, "ckks smudging")
	out := &sharesMessage{Round: round}
	for i := range got.Totals {
		x, err := m.share.product(p, &got.Totals[i])
		if err != nil {
			return err
		}
		z[i] += int64(flood.Uint64n(1<<smudgeBits)) - 1<<(smudgeBits-1)
		for j, r := range splitInteger(p, z[i]) {
			x[j] = p.aggregate[j].add(x[j], r)
		}
		out.Shares = append(out.Shares, x)
	}
	clear(z)
	return m.send(ctx, m.released, 0, kindShares, out.marshal(p))
}

// decryptTogether sends the aggregates to the members online and adds their
// shares.
func (a *alice) decryptTogether(ctx context.Context, round int, msg *aggregatesMessage,
	current [][]float64) ([][]float64, error) {
	p := a.run.params
	a.message = msg.marshal(p, abreast(ctx, a.Pool()), a.message)
	for _, q := range a.online {
		if err := a.send(ctx, a.released, q, kindAggregates, a.message); err != nil {
			return nil, err
		}
	}
	a.step += 2
	sums := make([][aggregateLevel + 1]uint64, len(msg.Totals))
	for i := range sums {
		sums[i] = msg.Totals[i].C0
	}
	for _, q := range a.online {
		b, err := a.receive(ctx, q)
		if err != nil {
			return nil, err
		}
		got, err := readShares(p, round, len(sums), b)
		if err != nil {
			return nil, err
		}
		for v := range sums {
			for j := range sums[v] {
				sums[v][j] = p.aggregate[j].add(sums[v][j], got.Shares[v][j])
			}
		}
	}
	// Her own noise is in the ciphertexts, so what comes out has everybody's.
	decrypted := protocol.NewPrivate(len(sums))
	if err := decrypted.Fill(func(words []int64) error {
		for v := range sums {
			words[v] = crt(p, sums[v])
		}
		return nil
	}); err != nil {
		return nil, err
	}
	values, err := a.Open(a.opened, round, nil, decrypted)
	if err != nil {
		return nil, err
	}
	return a.follow(round, current, values, msg.Units, &a.average)
}
