package ckks

import (
	"bytes"
	"context"
	"errors"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// smallChain is a tiny ring for tests of messages and roles, far below any
// security level; only buildParameters accepts it.
var smallChain = Chain{LogN: 9, Levels: signDepth + 1, LogLevel: 29, LogP: []int{30, 30, 30}}

func smallParameters(t testing.TB) *parameters {
	t.Helper()
	p, err := buildParameters(smallChain)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wireMessages has one message of every kind with its reader.
type wireMessage struct {
	name  string
	bytes []byte
	read  func([]byte) (marshaller, error)
}

// marshaller is a message.
type marshaller interface{ marshal(*parameters) []byte }

// keysAlone are keys that one worker writes.
type keysAlone struct{ *keysMessage }

func (m keysAlone) marshal(p *parameters) []byte { return m.keysMessage.marshal(p, alone) }

// columnAlone is a column that one worker writes.
type columnAlone struct {
	*columnMessage
	lay layout
}

func (m columnAlone) marshal(p *parameters) []byte { return m.columnMessage.marshal(p, m.lay, alone) }

// aggregatesAlone are aggregates that one worker writes.
type aggregatesAlone struct{ *aggregatesMessage }

func (m aggregatesAlone) marshal(p *parameters) []byte {
	return m.aggregatesMessage.marshal(p, alone, nil)
}

// wholeAggregates reads two totals of round 3, and refuses what their decryption does.
func wholeAggregates(p *parameters, secret *smallSecret, b []byte) (marshaller, error) {
	got, err := readAggregates(p, 3, 2, b)
	if err != nil {
		return nil, err
	}
	m := &aggregatesMessage{Round: 3, Units: got.Units}
	for i := range got.Totals {
		t := &got.Totals[i]
		if _, err := secret.product(p, t); err != nil {
			return nil, err
		}
		a := Aggregate{C0: t.C0}
		for j, packed := range t.c1 {
			a.C1[j] = make([]uint32, p.N()/p.stride)
			unpackRow(a.C1[j], packed, p.Q()[j])
		}
		m.Totals = append(m.Totals, a)
	}
	return aggregatesAlone{m}, nil
}

// productOf is the product of a secret with a total that has come as a message.
func productOf(t *testing.T, p *parameters, secret *smallSecret, a Aggregate) [aggregateLevel + 1]uint64 {
	t.Helper()
	m := &aggregatesMessage{Round: 1, Units: []float64{1}, Totals: []Aggregate{a}}
	got, err := readAggregates(p, 1, 1, m.marshal(p, alone, nil))
	if err != nil {
		t.Fatal(err)
	}
	x, err := secret.product(p, &got.Totals[0])
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func wireMessages(t testing.TB, p *parameters) []wireMessage {
	rnd := testEntropy(5)
	sk := newSecretKey(p, rnd, alone)
	lay := layout{n: 100, slots: p.slots(), batches: 1, blocks: 2}
	seedKey := rnd.key("test", 0)
	keys := &keysMessage{
		Relin:     newRelinearisation(p, sk, rnd).make(alone),
		Rotations: []*switchKey{newRotation(p, sk, 100, seedKey, rnd).make(alone)},
		Small:     newSmallRing(p, sk, seedKey, rnd).make(alone),
		Public:    newPublicKey(p, sk, aggregateLevel, -1, seedKey, rnd),
	}
	zero := func(level int, scale float64, purpose string) columnCipher {
		return columnCipher{SeededCipher: *encryptSeeded(p, make([]int64, p.N()), level, scale, sk, rnd, purpose, 0)}
	}
	topCipher, lowCipher := zero(p.MaxLevel(), 1<<22, "top"), zero(aggregateLevel, 1<<26, "low")
	column := &columnMessage{Column: 1, Seeded: true, Tops: []columnCipher{topCipher},
		Lows: []columnCipher{lowCipher}}
	topOpen, lowOpen := topCipher, lowCipher
	topOpen.C1, lowOpen.C1 = topCipher.C0, lowCipher.C0
	unseeded := &columnMessage{Column: 1, Tops: []columnCipher{topOpen}, Lows: []columnCipher{lowOpen}}
	full := &publicKeyMessage{Key: newPublicKey(p, sk, p.MaxLevel(), 0, seedKey, rnd)}
	aggregate, small := Aggregate{}, newSmallSecret(p, sk.small)
	var threshold thresholdMessage
	for j := range aggregate.C0 {
		aggregate.C0[j] = p.Q()[j] - 1
		for i := range p.N() / p.stride {
			x := uint64(i) * 12345 % p.Q()[j]
			aggregate.C1[j], threshold.Share[j] = append(aggregate.C1[j], uint32(x)), append(threshold.Share[j], x)
		}
	}
	totals := &aggregatesMessage{Round: 3, Units: []float64{1 << 40, 1 << 41}, Totals: []Aggregate{aggregate, aggregate}}
	member := &member{peer: peer{run: &run{jobPlan: &jobPlan{params: p}}, rnd: rnd}, secret: sk}
	first, u := member.firstShares(seedKey[:], []int{100})
	columns := func(b []byte) (marshaller, error) {
		m, late := readColumn(p, lay, []int{1}, 1<<22, 1<<26, b)
		return columnAlone{m, lay}, late.finish(alone)
	}
	return []wireMessage{
		{"keys", keys.marshal(p, alone), func(b []byte) (marshaller, error) {
			m, late := readKeys(p, 1, b)
			return keysAlone{m}, late.finish(alone)
		}},
		{"public key", full.marshal(p), func(b []byte) (marshaller, error) { return readPublicKey(p, b) }},
		{"seeded column", column.marshal(p, lay, alone), columns},
		{"column", unseeded.marshal(p, lay, alone), columns},
		{"aggregates", totals.marshal(p, alone, nil), func(b []byte) (marshaller, error) {
			return wholeAggregates(p, &small, b)
		}},
		{"centroids", (&centroidsMessage{Round: 3, Centroids: [][]float64{{0.5, -1}, {0, 1}}}).marshal(p),
			func(b []byte) (marshaller, error) { return readCentroids(p, 3, 2, 2, b) }},
		{"shares", (&sharesMessage{Round: 3, Shares: [][aggregateLevel + 1]uint64{aggregate.C0, aggregate.C0}}).marshal(p),
			func(b []byte) (marshaller, error) { return readShares(p, 3, 2, b) }},
		{"key share", first.marshal(p), func(b []byte) (marshaller, error) { return readKeyShare(p, false, 1, b) }},
		{"second key share", member.secondShare(first, u).marshal(p),
			func(b []byte) (marshaller, error) { return readKeyShare(p, true, 0, b) }},
		{"threshold share", threshold.marshal(p), func(b []byte) (marshaller, error) { return readThreshold(p, b) }},
	}
}

func TestMessagesRoundTripAndRefuse(t *testing.T) {
	p := smallParameters(t)
	other, err := buildParameters(Chain{LogN: 9, Levels: signDepth + 2, LogLevel: 29, LogP: []int{30, 30, 30}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range wireMessages(t, p) {
		t.Run(m.name, func(t *testing.T) {
			if got, err := m.read(m.bytes); err != nil {
				t.Fatalf("own message refused: %v", err)
			} else if !bytes.Equal(got.marshal(p), m.bytes) {
				t.Error("the message does not come back whole")
			}
			refused := func(what string, b []byte) {
				t.Helper()
				_, err := m.read(b)
				var f *fault.Error
				if !errors.As(err, &f) || f.Wrong {
					t.Errorf("%s: error is %v, want a failed run", what, err)
				}
			}
			for _, n := range []int{0, 1, 4, wireHead - 1, wireHead, len(m.bytes) / 2, len(m.bytes) - 1} {
				refused("truncated", m.bytes[:n])
			}
			refused("longer", append(bytes.Clone(m.bytes), 0))
			b := bytes.Clone(m.bytes)
			b[4]++
			refused("other kind", b)
			b = bytes.Clone(m.bytes)
			b[6] ^= 1
			refused("other parameters", b)
		})
	}
	if p.fingerprint == other.fingerprint {
		t.Error("two chains have one fingerprint")
	}
}

// A coefficient at or above its prime must not pass.
func TestCoefficientsAreBelowTheirPrime(t *testing.T) {
	p := smallParameters(t)
	q := p.Q()[0]
	w := newWriter(p, kindShares, 0)
	w.pack([]uint64{5, q, 7}, q)
	r := newReader(p, kindShares, w.b)
	if r.unpack(3, q); r.err == nil || !strings.Contains(r.err.Error(), "not below its prime") {
		t.Errorf("error is %v", r.err)
	}
	w = newWriter(p, kindShares, 0)
	values := []uint64{q - 1, 0, 1, q / 2, q - 2, 3}
	w.pack(values, q)
	r = newReader(p, kindShares, w.b)
	if got := r.unpack(len(values), q); !reflect.DeepEqual(got, values) || r.end() != nil {
		t.Errorf("got %v, %v", got, r.err)
	}
}

// Nor must one of a total, wherever in it.
func TestTotalsAreBelowTheirPrimes(t *testing.T) {
	p := smallParameters(t)
	small := newSmallSecret(p, newSecretKey(p, testEntropy(5), alone).small)
	n := p.N() / p.stride
	for _, at := range []int{-1, 0, n / 2, n - 1} {
		for j, q := range p.Q()[:aggregateLevel+1] {
			a := Aggregate{C1: [aggregateLevel + 1][]uint32{make([]uint32, n), make([]uint32, n)}}
			if at >= 0 {
				a.C1[j][at] = uint32(q)
			}
			m := &aggregatesMessage{Round: 3, Units: []float64{1, 1}, Totals: []Aggregate{a, a}}
			_, err := wholeAggregates(p, &small, m.marshal(p, alone, nil))
			if (err == nil) != (at < 0) || err != nil && !strings.Contains(err.Error(), "not below its prime") {
				t.Errorf("coefficient %d modulo prime %d: error %v", at, j, err)
			}
		}
	}
}

// Messages of the first wire format, whose primes had up to 34 bits, are refused by
// name.
func TestOldMessagesAreRefusedByName(t *testing.T) {
	for _, m := range wireMessages(t, smallParameters(t)) {
		old := append([]byte("CHE1"), m.bytes[4:]...)
		if _, err := m.read(old); err == nil || !strings.Contains(err.Error(), "CHE1") {
			t.Errorf("%s in the first wire format: %v", m.name, err)
		}
	}
}

// Whatever comes in is taken or refused, never a panic, and what is taken is what its writer makes
// of it. An input is a message without its last `cut` bytes that is overwritten from `at` on, so
// that it is short however long the message is.
func FuzzMessages(f *testing.F) {
	p := smallParameters(f)
	all := wireMessages(f, p)
	for i, m := range all {
		size := uint32(len(m.bytes))
		f.Add(uint8(i), uint32(0), uint32(0), []byte{})
		f.Add(uint8(i), uint32(0), size-100, []byte{})
		f.Add(uint8(i), uint32(0), size, m.bytes[:wireHead+4])
		f.Add(uint8(i), uint32(wireHead), uint32(0), []byte{1, 0, 0, 0, 0, 1})
		f.Add(uint8(i), size/2, uint32(0), []byte{255, 255, 255, 255, 255, 255, 255})
		f.Add(uint8(i), size, uint32(0), []byte{0})
	}
	var scratch []byte
	f.Fuzz(func(t *testing.T, i uint8, at, cut uint32, over []byte) {
		m := all[int(i)%len(all)]
		b := append(scratch[:0], m.bytes[:len(m.bytes)-min(int(cut), len(m.bytes))]...)
		n := copy(b[min(int(at), len(b)):], over)
		b = append(b, over[n:]...)
		scratch = b
		if got, err := m.read(b); err == nil && !bytes.Equal(got.marshal(p), b) {
			t.Errorf("%s: what was taken is not what its writer makes of it", m.name)
		}
	})
}

// No message type can hold a secret: none of its fields, at any depth, is of a
// type that secrets have.
func TestMessageTypesHoldNoSecret(t *testing.T) {
	secret := map[reflect.Type]bool{
		reflect.TypeFor[secretKey](): true, reflect.TypeFor[secretRows](): true, reflect.TypeFor[smallSecret](): true,
		reflect.TypeFor[entropy](): true, reflect.TypeFor[bob](): true, reflect.TypeFor[member](): true,
		reflect.TypeFor[computer](): true,
	}
	var walk func(path string, x reflect.Type, seen map[reflect.Type]bool)
	walk = func(path string, x reflect.Type, seen map[reflect.Type]bool) {
		if secret[x] {
			t.Errorf("%s has the secret type %v", path, x)
		}
		if seen[x] {
			return
		}
		seen[x] = true
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(path+"[]", x.Elem(), seen)
		case reflect.Struct:
			for i := range x.NumField() {
				walk(path+"."+x.Field(i).Name, x.Field(i).Type, seen)
			}
		case reflect.Interface, reflect.Func, reflect.Chan:
			t.Errorf("%s could carry anything: %v", path, x)
		}
	}
	for _, x := range []reflect.Type{
		reflect.TypeFor[terms](), reflect.TypeFor[keysMessage](), reflect.TypeFor[publicKeyMessage](),
		reflect.TypeFor[columnMessage](),
		reflect.TypeFor[aggregatesMessage](), reflect.TypeFor[centroidsMessage](), reflect.TypeFor[sharesMessage](),
		reflect.TypeFor[keyShareMessage](), reflect.TypeFor[thresholdMessage](),
	} {
		walk(x.Name(), x, map[reflect.Type]bool{})
	}
}

// traffic is one kind of message on one link.
type traffic struct {
	from, to int
	kind     Kind
}

// sent is what parties send one another.
type sent map[traffic]bool

// add adds kinds of messages from one party to another.
func (s sent) add(from, to int, kinds ...Kind) {
	for _, kind := range kinds {
		s[traffic{from, to, kind}] = true
	}
}

// transcriptCase is a run, and all that it has parties send.
type transcriptCase struct {
	job  Job
	want sent
}

// transcriptCases are runs of every mode, and all that the protocol has them send.
func transcriptCases() map[string]transcriptCase {
	two, aided, full, shared := sent{}, sent{}, sent{}, sent{}
	for _, s := range []sent{two, aided} {
		s.add(1, 0, kindTerms, kindKeys, kindColumn, kindCentroids)
		s.add(0, 1, kindAggregates, kindCentroids)
	}
	aided.add(1, 2, kindPublicKey)
	aided.add(2, 0, kindTerms, kindColumn)
	aided.add(0, 2, kindCentroids)
	for p := 1; p <= 2; p++ {
		full.add(p, 0, kindTerms, kindKeyShare, kindColumn, kindShares)
		full.add(0, p, kindKeyShare, kindAggregates, kindCentroids)
		shared.add(p, 0, kindColumn, kindShares)
		shared.add(0, p, kindAggregates)
	}
	for p := 1; p <= 3; p++ {
		shared.add(p, 0, kindTerms, kindKeyShare)
		shared.add(0, p, kindKeyShare, kindCentroids)
		for q := 1; q <= 3; q++ {
			if q != p {
				shared.add(p, q, kindThreshold)
			}
		}
	}
	return map[string]transcriptCase{
		"two-party":    {Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1, 2}}}}, two},
		"multiparty":   {Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}, Mode: Multiparty}, full},
		"server-aided": {Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}}, aided},
		"threshold": {Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}, {}}}, Mode: Multiparty,
			Threshold: 2}, shared},
	}
}

// Who sends what to whom, in every mode: nothing but what the protocol names,
// and no message contains key material or a plaintext column.
func TestTranscripts(t *testing.T) {
	for name, c := range transcriptCases() {
		t.Run(name, func(t *testing.T) {
			j := c.job
			data := sample(t, "blobs", 300, 3, 2, 3)
			j.Clients, j.Bounds, j.Calibration = data.Table(), data.Bounds, privacy.None
			j.K, j.Iterations, j.Seed, j.chain = 2, 2, seed(3), &smallChain
			got := sent{}
			var all [][]byte
			j.Tap = func(e Envelope, b []byte) {
				got.add(e.From, e.To, e.Kind)
				all = append(all, bytes.Clone(b))
			}
			pool := engine.NewPool(1)
			defer pool.Close()
			s := planned(t, &j)
			roles, programs := s.newParties()
			play(t, s.jobPlan, pool, programs...)
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("transcript %v, want %v", got, c.want)
			}
			for party := range j.Columns {
				for what, secret := range secretBytes(s, roles, party) {
					for i, b := range all {
						if bytes.Contains(b, secret) {
							t.Errorf("message %d contains %s of party %d", i, what, party)
						}
					}
				}
			}
		})
	}
}

// secretBytes are byte strings that would betray a party's secrets: its keys
// packed as a message packs polynomials, at every bit offset of a byte, and its
// columns as numbers.
func secretBytes(s *run, roles *parties, party int) map[string][]byte {
	out := make(map[string][]byte)
	var sk *secretKey
	switch {
	case roles.bob != nil && party == 1:
		sk = roles.bob.secret
	case roles.members != nil && party > 0:
		sk = roles.members[party-1].secret
	}
	if sk != nil {
		for name, k := range map[string]secretRows{"its key": sk.main, "its small key": sk.small} {
			packed := func(rows rns.Poly) []byte {
				w := &writer{p: s.params}
				appendRows(w, rows, s.params.Q())
				return w.end(alone)[:64]
			}
			out[name+" in the NTT domain"] = packed(rns.Poly(k)[:len(s.params.Q())])
			c := lattigo(s.params).RingQ().NewPoly()
			lattigo(s.params).RingQ().IMForm(k.wide(s.params).Value.Q, c)
			lattigo(s.params).RingQ().INTT(c, c)
			out[name+" as coefficients"] = packed(s.params.lattice.FromWide(c.Coeffs))
		}
	}
	for c, v := range s.newPeer(party).columns {
		w := &writer{p: s.params}
		for _, x := range v[:4] {
			w.f64(x)
		}
		out["column "+string(rune('0'+c))] = w.b
	}
	return out
}

// Ciphertexts of the right form with the wrong content decrypt to nonsense,
// which the check total finds.
func TestCheckTotalFindsWrongCiphertexts(t *testing.T) {
	for name, spoil := range map[string]func(*run, *parties){
		"a column of random numbers": func(s *run, roles *parties) {
			noise := uniformRows(s.params, newPRNG(make([]byte, 32)), s.params.MaxLevel(), -1)
			roles.alice.tops[1][0] = &cipher{c: [2]rns.Poly{noise, noise}, scale: s.topScale}
		},
		"values outside the bounds": func(s *run, roles *parties) {
			far := make([]float64, s.lay.n)
			for i := range far {
				far[i] = 3
			}
			columns := newColumnEncryption(roles.bob.Pool(), s.params, s.lay, map[int][]float64{1: far},
				[]int{1}, s.topScale, s.lowScale, roles.bob.rnd,
				func(level int, scale float64, purpose string, index int) encryption {
					return beginSeeded(s.params, level, scale, roles.bob.secret, roles.bob.rnd, purpose, index)
				}, true)
			region(alone).all(columns.early())
			msgs, err := columns.finish(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for i := range msgs[0].Tops {
				roles.alice.tops[1][i] = msgs[0].Tops[i].expand(s.params)
			}
		},
	} {
		checkFinds(t, name, &Job{chain: &smallChain}, spoil)
		checkFinds(t, name+", by rank", &Job{Argmin: Rank, chain: smallRank(2)}, spoil)
	}
}

// checkFinds lets a job run a round, spoils what it has encrypted, and wants the next round to be refused.
func checkFinds(t *testing.T, name string, j *Job, spoil func(*run, *parties)) {
	t.Helper()
	data := sample(t, "blobs", 300, 2, 2, 3)
	j.Problem = protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}},
		K: 2, Iterations: 1, Calibration: privacy.None, Seed: seed(3)}
	pool := engine.NewPool(1)
	defer pool.Close()
	s, roles := setUp(t, j, pool)
	round := func() error {
		return protocol.Start(engine.NewRuntime(pool), s.Plan, firstRound(s, roles, nil), nil,
			protocol.Options{}).Run(context.Background())
	}
	if err := round(); err != nil {
		t.Fatalf("%s: sound ciphertexts: %v", name, err)
	}
	spoil(s, roles)
	if err := roles.alice.spreadColumns(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := round(); err == nil || !strings.Contains(err.Error(), "check total") {
		t.Errorf("%s: error is %v", name, err)
	}
}

func TestTermsMustAgree(t *testing.T) {
	data := sample(t, "blobs", 300, 2, 2, 3)
	session := func(change func(*Job)) *run {
		j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}},
			K: 2, Iterations: 2, Calibration: privacy.None, Seed: seed(3)}, chain: &smallChain}
		change(j)
		return planned(t, j)
	}
	mine := session(func(*Job) {})
	for field, change := range map[string]func(*Job){
		"rounds 3": func(j *Job) { j.Iterations = 3 },
		"columns":  func(j *Job) { j.Columns = [][]int{{1}, {0}} },
		"primes": func(j *Job) {
			c := smallChain
			c.Levels++
			j.chain = &c
		},
		"n 200": func(j *Job) { j.Clients = sample(t, "blobs", 200, 2, 2, 3).Table() },
	} {
		b, err := session(change).terms.marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := mine.terms.agree(1, b); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error is %v", field, err)
		}
	}
	if err := mine.terms.agree(1, []byte("{}{")); err == nil {
		t.Error("nonsense was accepted as terms")
	}
}

// encryptSeeded encrypts integers with the secret key.
func encryptSeeded(p *parameters, m []int64, level int, scale float64, sk *secretKey, rnd entropy, purpose string,
	index int) *SeededCipher {
	e := beginSeeded(p, level, scale, sk, rnd, purpose, index)
	region(alone).all(e.draws)
	c, rows := e.finish(m)
	region(alone).all(rows)
	return &c.SeededCipher
}

// packedBits is what packRow writes, bit by bit.
func packedBits(values []uint64, q uint64) []byte {
	width := bits.Len64(q - 1)
	out := make([]byte, packedSize(len(values), q))
	for i, v := range values {
		for b := range width {
			at := i*width + b
			out[at/8] |= byte(v>>b&1) << (at % 8)
		}
	}
	return out
}

func TestRowsArePackedBitByBit(t *testing.T) {
	rowsArePacked[uint64](t, []uint64{1<<24 - 3, 1<<27 - 39, 1<<30 - 35, 1<<29 + 11, 1<<30 + 3, 1<<33 + 17})
	rowsArePacked[uint32](t, []uint64{1<<24 - 3, 1<<27 - 39, 1<<30 - 35, 1<<29 + 11, 1<<30 + 3})
}

func rowsArePacked[T word](t *testing.T, primes []uint64) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, q := range primes {
		for n := range 70 {
			values, back := make([]uint64, n), make([]T, n)
			for i := range values {
				values[i] = [...]uint64{rnd.Uint64N(q), q - 1, 0}[rnd.IntN(3)]
				back[i] = T(values[i])
			}
			want, got := packedBits(values, q), make([]byte, packedSize(n, q))
			packRow(got, back, q)
			if !bytes.Equal(got, want) {
				t.Fatalf("%d values below %d: packed as %x, want %x", n, q, got, want)
			}
			clear(back)
			fault := unpackRow(back, got, q)
			for i, x := range back {
				if uint64(x) != values[i] || fault != "" {
					t.Fatalf("%d values below %d: unpacked as %v %s, want %v", n, q, back, fault, values)
				}
			}
			if n == 0 {
				continue
			}
			values[rnd.IntN(n)] = q // fits the width, not the prime
			if fault := unpackRow(back, packedBits(values, q), q); fault == "" {
				t.Fatalf("%d values up to %d: one is not below", n, q)
			}
		}
	}
}
