package he

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/multiparty"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"

	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// committee are the parties that share the secret key in the multiparty mode.
// The key is the sum of theirs; its public parts are made by the protocols of
// Mouchet et al. 2021 (one round; two for the relinearisation key) from a
// common seed, so a share carries only one polynomial per row. With a threshold
// each member also deals Shamir shares of its secret for the aggregates (Mouchet
// et al. 2022), and any Threshold members decrypt.
//
// Of a decryption share only coefficient 0 is sent: whoever saw the whole share
// of every member could decrypt everything.
type committee struct {
	members []*member
	online  []int // indices into members
	average averager
}

// member is one key holder.
type member struct {
	params  *Parameters
	party   int
	secret  *secretKey
	rnd     entropy
	noise   noisePlan
	streams *privacy.Streams
	// share is what the member decrypts aggregates with.
	share smallSecret
	k, d  int
}

// KeyShareMessage carries a member's shares of the public keys: of the first
// round (public key, ring-switching key, rotations, both halves of the
// relinearisation key's first round) or of the second (the relinearisation
// key's rows).
type KeyShareMessage struct {
	Second bool
	Public *PublicKey
	Small  *SwitchKey
	// Rotations has one key per power of two of the layout.
	Rotations []*SwitchKey
	// Relin has h0 and Mask h1 of the first round; in the second only Relin.
	Relin, Mask *SwitchKey
}

func (m *KeyShareMessage) marshal(p *Parameters) []byte {
	w := newWriter(p, KindKeyShare, 1<<23)
	if m.Second {
		w.b = append(w.b, 2)
		w.switchKey(m.Relin)
		return w.b
	}
	w.b = append(w.b, 1)
	w.publicKey(m.Public)
	w.switchKey(m.Small)
	w.u32(uint32(len(m.Rotations)))
	for _, k := range m.Rotations {
		w.switchKey(k)
	}
	w.switchKey(m.Relin)
	w.switchKey(m.Mask)
	return w.b
}

func readKeyShare(p *Parameters, second bool, rotations int, b []byte) (*KeyShareMessage, error) {
	r := newReader(p, KindKeyShare, b)
	want := byte(1)
	if second {
		want = 2
	}
	if got := r.u8(); r.err == nil && got != want {
		r.fail(fmt.Sprintf("is of round %d, want %d", got, want))
	}
	m := &KeyShareMessage{Second: second}
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
	return m, r.end()
}

// ThresholdMessage carries a member's Shamir share for another member: a
// uniformly random polynomial to anyone who has fewer than Threshold of them.
type ThresholdMessage struct{ Share [aggregateLevel + 1][]uint64 }

func (m *ThresholdMessage) marshal(p *Parameters) []byte {
	w := newWriter(p, KindThreshold, len(m.Share[0])*8)
	for j, row := range m.Share {
		w.pack(row, p.Q()[j])
	}
	return w.b
}

func readThreshold(p *Parameters, b []byte) (*ThresholdMessage, error) {
	r := newReader(p, KindThreshold, b)
	m := new(ThresholdMessage)
	for j := range m.Share {
		m.Share[j] = r.unpack(p.N()/p.stride, p.Q()[j])
	}
	return m, r.end()
}

// SharesMessage carries one number per aggregate: coefficient 0 of a member's
// decryption share, with its noise and smudging.
type SharesMessage struct {
	Round  int
	Shares [][aggregateLevel + 1]uint64
}

func (m *SharesMessage) marshal(p *Parameters) []byte {
	w := newWriter(p, KindShares, len(m.Shares)*8)
	w.u32(uint32(m.Round))
	for _, s := range m.Shares {
		for j, x := range s {
			w.pack([]uint64{x}, p.Q()[j])
		}
	}
	return w.b
}

func readShares(p *Parameters, round, count int, b []byte) (*SharesMessage, error) {
	r := newReader(p, KindShares, b)
	m := &SharesMessage{Round: r.count("as its round", round), Shares: make([][aggregateLevel + 1]uint64, count)}
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

// setupCommittee makes the collective keys and collects everybody's columns
// encrypted under them.
func (s *session) setupCommittee(ctx context.Context) error {
	p := s.params
	shifts := s.lay.shifts()
	c := &committee{}
	s.holders = c
	for party := 1; party < len(s.job.Columns); party++ {
		rnd := s.entropy(party)
		m := &member{params: p, party: party, secret: newSecretKey(p, rnd), rnd: rnd, noise: s.plan.noise, streams: s.streams, k: s.job.K, d: s.cols.d}
		m.share = newSmallSecret(p, m.secret.small)
		c.members = append(c.members, m)
	}
	ephemeral := make([]*rlwe.SecretKey, len(c.members))
	first := make([]*KeyShareMessage, len(c.members))
	err := s.rt.Pool().Run(ctx, len(c.members), func(_, i int) {
		first[i], ephemeral[i] = c.members[i].firstShares(s.terms.CommonSeed, shifts)
	})
	if err != nil {
		return err
	}
	var sum *KeyShareMessage
	for i, m := range c.members {
		got, err := readKeyShare(p, false, len(shifts), s.log.send(m.party, 0, KindKeyShare, first[i].marshal(p)))
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
	s.log.next()
	// Alice returns the sums of the first round; members need the public key to
	// encrypt and the relinearisation key's halves for the second round.
	back := sum.marshal(p)
	second := make([]*KeyShareMessage, len(c.members))
	public := make([]*PublicKey, len(c.members))
	for i, m := range c.members {
		got, err := readKeyShare(p, false, len(shifts), s.log.send(0, m.party, KindKeyShare, back))
		if err != nil {
			return err
		}
		second[i], public[i] = m.secondShare(got, ephemeral[i]), got.Public
	}
	s.log.next()
	var relin *SwitchKey
	for i, m := range c.members {
		got, err := readKeyShare(p, true, 0, s.log.send(m.party, 0, KindKeyShare, second[i].marshal(p)))
		if err != nil {
			return err
		}
		if relin == nil {
			relin = got.Relin
		} else {
			relin.addShare(p, got.Relin)
		}
	}
	if err := s.alice.receiveCollectiveKeys(sum, relin); err != nil {
		return err
	}
	if err := s.dealThreshold(); err != nil {
		return err
	}
	for i, m := range c.members {
		if err := s.provide(ctx, m.party, public[i]); err != nil {
			return err
		}
	}
	s.log.next()
	return nil
}

// firstShares makes a member's shares of the first round and the ephemeral
// secret of the relinearisation protocol.
func (m *member) firstShares(root []byte, shifts []int) (*KeyShareMessage, *rlwe.SecretKey) {
	p := m.params
	msg := &KeyShareMessage{
		Public: newPublicKey(p, m.secret, p.MaxLevel(), 0, commonSeed(root, "public key", 0), m.rnd),
		Small:  newSmallRing(p, m.secret, commonSeed(root, "ring switching key", 0), m.rnd),
	}
	for _, shift := range shifts {
		msg.Rotations = append(msg.Rotations, newRotation(p, m.secret, shift, commonSeed(root, "rotation key", shift), m.rnd))
	}
	// h0 = s_i P w - u_i a + e0,  h1 = s_i a + e1, row by row.
	seed := commonSeed(root, "relinearisation key", 0)
	u := sampleSecret(p, m.rnd.prng("ephemeral secret", 0), 1)
	msg.Relin = newSwitchKey(p, m.secret.main.Value.Q, u, p.relin, seed, m.rnd, "relinearisation key, round 1", 0)
	msg.Mask = &SwitchKey{gadget: p.relin, Seed: seed}
	as, errs := newPRNG(seed[:]), m.rnd.prng("relinearisation key, mask", 0)
	qp := p.RingQP()
	for range msg.Relin.Rows {
		a := uniform(p, as, p.MaxLevel(), p.MaxLevelP())
		h := gaussian(p, errs, p.MaxLevel(), p.MaxLevelP())
		qp.MForm(h, h)
		qp.MulCoeffsMontgomeryThenAdd(a, m.secret.main.Value, h)
		msg.Mask.Rows = append(msg.Mask.Rows, h)
	}
	return msg, u
}

// secondShare is s_i h0 + (u_i - s_i) h1 + e2, row by row, from the sums h0, h1.
func (m *member) secondShare(sum *KeyShareMessage, u *rlwe.SecretKey) *KeyShareMessage {
	p := m.params
	qp := p.RingQP()
	diff := qp.NewPoly()
	qp.Sub(u.Value, m.secret.main.Value, diff)
	out := &SwitchKey{gadget: p.relin, Seed: sum.Relin.Seed}
	errs := m.rnd.prng("relinearisation key, round 2", 0)
	for i := range sum.Relin.Rows {
		e := gaussian(p, errs, p.MaxLevel(), p.MaxLevelP())
		qp.MForm(e, e)
		qp.MulCoeffsMontgomeryThenAdd(m.secret.main.Value, sum.Relin.Rows[i], e)
		qp.MulCoeffsMontgomeryThenAdd(diff, sum.Mask.Rows[i], e)
		out.Rows = append(out.Rows, e)
	}
	return &KeyShareMessage{Second: true, Relin: out}
}

// addShare adds another member's rows.
func (k *SwitchKey) addShare(p *Parameters, o *SwitchKey) {
	qp := p.RingQP().AtLevel(k.levels())
	for i := range k.Rows {
		qp.Add(k.Rows[i], o.Rows[i], k.Rows[i])
	}
}

func (k *PublicKey) addShare(p *Parameters, o *PublicKey) {
	p.RingQP().AtLevel(k.LevelQ, k.LevelP).Add(k.B, o.B, k.B)
}

// receiveCollectiveKeys installs the keys that the committee made: the
// relinearisation key is (sum of the second round, h1).
func (c *computer) receiveCollectiveKeys(sum *KeyShareMessage, relin *SwitchKey) error {
	key := c.params.relin.NewKey()
	for i, row := range relin.Rows {
		mask := sum.Mask.Rows[i]
		key.Set(i, row.Q.Coeffs, row.P.Coeffs, mask.Q.Coeffs, mask.P.Coeffs)
	}
	return c.install(key, sum.Rotations, sum.Small, sum.Public)
}

// aggregateRing are the parameters of the ring in which aggregates are
// decrypted and secrets are shared.
func (p *Parameters) aggregateRing() (rlwe.Parameters, error) {
	return rlwe.NewParametersFromLiteral(rlwe.ParametersLiteral{
		LogN: p.Security.SwitchLogN, Q: p.Q()[:aggregateLevel+1], RingType: ring.ConjugateInvariant,
	})
}

// dealThreshold lets every member deal Shamir shares of its small secret and
// turns those of the members online into additive shares of the key. Without a
// threshold the members' own secrets are the shares.
func (s *session) dealThreshold() error {
	c, t := s.holders, s.job.threshold()
	for i := range c.members {
		c.online = append(c.online, i)
	}
	if t == len(c.members) {
		return nil
	}
	small, err := s.params.aggregateRing()
	if err != nil {
		return fault.Failed("ckks threshold", err.Error(), "", err)
	}
	dealer := multiparty.NewThresholdizer(small)
	got := make([]multiparty.ShamirSecretShare, len(c.members))
	for i := range got {
		got[i] = dealer.AllocateThresholdSecretShare()
	}
	for _, m := range c.members {
		// The library's own sampler is not seeded: the coefficients are drawn here.
		poly := multiparty.ShamirPolynomial{Value: []ringqp.Poly{{Q: ring.Poly{Coeffs: m.share[:]}}}}
		rnd := m.rnd.prng("shamir polynomial", 0)
		for range t - 1 {
			x := ringqp.Poly{Q: small.RingQ().NewPoly()}
			ring.NewUniformSampler(rnd, small.RingQ()).Read(x.Q)
			poly.Value = append(poly.Value, x)
		}
		for i, to := range c.members {
			share := dealer.AllocateThresholdSecretShare()
			dealer.GenShamirSecretShare(point(i), poly, &share)
			if to != m {
				var msg ThresholdMessage
				copy(msg.Share[:], share.Q.Coeffs)
				back, err := readThreshold(s.params, s.log.send(m.party, to.party, KindThreshold, msg.marshal(s.params)))
				if err != nil {
					return err
				}
				share.Q.Coeffs = back.Share[:]
			}
			if err := dealer.AggregateShares(got[i], share, &got[i]); err != nil {
				return fault.Failed("ckks threshold", err.Error(), "", err)
			}
		}
	}
	s.log.next()
	c.online = c.online[:t]
	if s.job.Online != nil {
		c.online = nil
		for _, party := range s.job.Online[:t] {
			c.online = append(c.online, party-1)
		}
	}
	var active []multiparty.ShamirPublicPoint
	for _, i := range c.online {
		active = append(active, point(i))
	}
	for _, i := range c.online {
		out := rlwe.NewSecretKey(small)
		if err := multiparty.NewCombiner(small, point(i), active, t).GenAdditiveShare(active, point(i), got[i], out); err != nil {
			return fault.Failed("ckks threshold", err.Error(), "wait for more key holders", err)
		}
		copy(c.members[i].share[:], out.Value.Q.Coeffs)
	}
	return nil
}

// point is the public point of a member; 0 would be the secret.
func point(i int) multiparty.ShamirPublicPoint { return multiparty.ShamirPublicPoint(i + 1) }

// smudgeBits is the size of the uniform integer that every member adds to a
// decryption share so that the sum does not show the ciphertext's error. One
// record is worth about 2^40.
const smudgeBits = 34

// decryptShare answers Alice's aggregates with coefficient 0 of c1 s_i, noise
// and smudging included.
func (m *member) decryptShare(round int, message []byte) (*SharesMessage, error) {
	p := m.params
	got, err := readAggregates(p, round, m.k*(1+m.d), message)
	if err != nil {
		return nil, err
	}
	z := make([]int64, len(got.Totals))
	if m.noise.active() && m.noise.bob {
		if z, err = drawNoise(m.noise, m.streams, m.party, round, got.Units, m.d); err != nil {
			return nil, err
		}
	}
	flood := m.streams.Stream(m.party, round, "ckks smudging")
	out := &SharesMessage{Round: round}
	for i := range got.Totals {
		x := m.share.product(p, &got.Totals[i])
		z[i] += int64(flood.Uint64n(1<<smudgeBits)) - 1<<(smudgeBits-1)
		for j, r := range splitInteger(p, z[i]) {
			x[j] = p.aggregate[j].add(x[j], r)
		}
		out.Shares = append(out.Shares, x)
	}
	return out, nil
}

// decryptTogether sends the aggregates to the members online and adds their
// shares.
func (s *session) decryptTogether(round int, msg *AggregatesMessage, current [][]float64) ([][]float64, float64, error) {
	p, c := s.params, s.holders
	b := msg.marshal(p)
	replies := make([][]byte, len(c.online))
	for i, m := range c.online {
		shares, err := c.members[m].decryptShare(round, s.log.send(0, c.members[m].party, KindAggregates, b))
		if err != nil {
			return nil, 0, err
		}
		replies[i] = shares.marshal(p)
	}
	s.log.next()
	values := make([]int64, len(msg.Totals))
	sums := make([][aggregateLevel + 1]uint64, len(msg.Totals))
	for i := range sums {
		sums[i] = msg.Totals[i].C0
	}
	for i, m := range c.online {
		got, err := readShares(p, round, len(sums), s.log.send(c.members[m].party, 0, KindShares, replies[i]))
		if err != nil {
			return nil, 0, err
		}
		for v := range sums {
			for j := range sums[v] {
				sums[v][j] = p.aggregate[j].add(sums[v][j], got.Shares[v][j])
			}
		}
	}
	s.log.next()
	for v := range sums {
		values[v] = crt(p, sums[v])
	}
	noises := 1
	if s.plan.noise.bob {
		noises += len(c.online)
	}
	total, err := checkTotal(values, msg.Units, s.lay.n, s.job.K, s.cols.d, s.plan.noise, noises)
	if err != nil {
		return nil, 0, err
	}
	totals := c.average.add(inRecords(values, msg.Units), s.plan.noise, s.lay.n, s.job.K)
	return divide(totals, current, s.plan.noise, s.job.post()), total, nil
}
