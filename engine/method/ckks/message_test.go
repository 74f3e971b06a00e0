package ckks

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"

	"github.com/cohort-engine/cohort/engine"
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
	read  func([]byte) error
}

func wireMessages(t testing.TB, p *parameters) []wireMessage {
	rnd := testEntropy(5)
	sk := newSecretKey(p, rnd)
	lay := layout{n: 100, slots: p.slots(), batches: 1, blocks: 2}
	seedKey := rnd.key("test", 0)
	keys := &keysMessage{
		Relin: newRelinearisation(p, sk, rnd), Rotations: []*switchKey{newRotation(p, sk, 100, seedKey, rnd)},
		Small: newSmallRing(p, sk, seedKey, rnd), Public: newPublicKey(p, sk, aggregateLevel, -1, seedKey, rnd),
	}
	top, low := p.RingQ().NewPoly(), p.RingQ().AtLevel(aggregateLevel).NewPoly()
	topCipher := columnCipher{SeededCipher: *encryptSeeded(p, top, 1<<22, sk, rnd, "top", 0)}
	lowCipher := columnCipher{SeededCipher: *encryptSeeded(p, low, 1<<26, sk, rnd, "low", 0)}
	column := &columnMessage{Column: 1, Seeded: true, Tops: []columnCipher{topCipher, topCipher},
		Lows: []columnCipher{lowCipher}}
	topOpen, lowOpen := topCipher, lowCipher
	topOpen.C1, lowOpen.C1 = &topCipher.C0, &lowCipher.C0
	unseeded := &columnMessage{Column: 1, Tops: []columnCipher{topOpen, topOpen}, Lows: []columnCipher{lowOpen}}
	full := &publicKeyMessage{Key: newPublicKey(p, sk, p.MaxLevel(), 0, seedKey, rnd)}
	aggregate := Aggregate{}
	for j := range aggregate.C0 {
		aggregate.C0[j] = p.Q()[j] - 1
		for i := range p.N() / p.stride {
			aggregate.C1[j] = append(aggregate.C1[j], uint64(i)*12345%p.Q()[j])
		}
	}
	totals := &aggregatesMessage{Round: 3, Units: []float64{1 << 40, 1 << 41}, Totals: []Aggregate{aggregate, aggregate}}
	member := &member{peer: peer{run: &run{jobPlan: &jobPlan{params: p}}, rnd: rnd}, secret: sk}
	first, u := member.firstShares(seedKey[:], []int{100})
	var threshold thresholdMessage
	copy(threshold.Share[:], aggregate.C1[:])
	return []wireMessage{
		{"keys", keys.marshal(p), func(b []byte) error { _, err := readKeys(p, 1, b); return err }},
		{"public key", full.marshal(p), func(b []byte) error { _, err := readPublicKey(p, b); return err }},
		{"seeded column", column.marshal(p),
			func(b []byte) error { _, err := readColumn(p, lay, []int{1}, 1<<22, 1<<26, b); return err }},
		{"column", unseeded.marshal(p),
			func(b []byte) error { _, err := readColumn(p, lay, []int{1}, 1<<22, 1<<26, b); return err }},
		{"aggregates", totals.marshal(p), func(b []byte) error { _, err := readAggregates(p, 3, 2, b); return err }},
		{"centroids", (&centroidsMessage{Round: 3, Centroids: [][]float64{{0.5, -1}, {0, 1}}}).marshal(p),
			func(b []byte) error { _, err := readCentroids(p, 3, 2, 2, b); return err }},
		{"shares", (&sharesMessage{Round: 3, Shares: [][aggregateLevel + 1]uint64{aggregate.C0, aggregate.C0}}).marshal(p),
			func(b []byte) error { _, err := readShares(p, 3, 2, b); return err }},
		{"key share", first.marshal(p), func(b []byte) error { _, err := readKeyShare(p, false, 1, b); return err }},
		{"second key share", member.secondShare(first, u).marshal(p),
			func(b []byte) error { _, err := readKeyShare(p, true, 0, b); return err }},
		{"threshold share", threshold.marshal(p), func(b []byte) error { _, err := readThreshold(p, b); return err }},
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
			if err := m.read(m.bytes); err != nil {
				t.Fatalf("own message refused: %v", err)
			}
			refused := func(what string, b []byte) {
				t.Helper()
				err := m.read(b)
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
	if p.fingerprint() == other.fingerprint() {
		t.Error("two chains have one fingerprint")
	}
}

// A coefficient at or above its prime must not pass.
func TestCoefficientsAreBelowTheirPrime(t *testing.T) {
	p := smallParameters(t)
	q := p.Q()[0]
	w := newWriter(p, KindShares, 64)
	w.pack([]uint64{5, q, 7}, q)
	r := newReader(p, KindShares, w.b)
	if r.unpack(3, q); r.err == nil || !strings.Contains(r.err.Error(), "not below its prime") {
		t.Errorf("error is %v", r.err)
	}
	w = newWriter(p, KindShares, 64)
	values := []uint64{q - 1, 0, 1, q / 2, q - 2, 3}
	w.pack(values, q)
	r = newReader(p, KindShares, w.b)
	if got := r.unpack(len(values), q); !reflect.DeepEqual(got, values) || r.end() != nil {
		t.Errorf("got %v, %v", got, r.err)
	}
}

// Messages of the first wire format, whose primes had up to 34 bits, are refused by
// name.
func TestOldMessagesAreRefusedByName(t *testing.T) {
	for _, m := range wireMessages(t, smallParameters(t)) {
		old := append([]byte("CHE1"), m.bytes[4:]...)
		if err := m.read(old); err == nil || !strings.Contains(err.Error(), "CHE1") {
			t.Errorf("%s in the first wire format: %v", m.name, err)
		}
	}
}

func FuzzMessages(f *testing.F) {
	p := smallParameters(f)
	all := wireMessages(f, p)
	for i, m := range all {
		if len(m.bytes) < 1<<16 {
			f.Add(uint8(i), m.bytes)
		}
		f.Add(uint8(i), m.bytes[:min(100, len(m.bytes)-1)])
	}
	f.Fuzz(func(t *testing.T, i uint8, b []byte) {
		m := all[int(i)%len(all)]
		// Whatever comes in is taken or refused; nothing panics.
		if err := m.read(b); err == nil && len(b) != len(m.bytes) {
			t.Errorf("%s: %d bytes accepted, want %d", m.name, len(b), len(m.bytes))
		}
	})
}

// No message type can hold a secret: none of its fields, at any depth, is of a
// type that secrets have.
func TestMessageTypesHoldNoSecret(t *testing.T) {
	secret := map[reflect.Type]bool{
		reflect.TypeFor[secretKey](): true, reflect.TypeFor[rlwe.SecretKey](): true, reflect.TypeFor[smallSecret](): true,
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
		reflect.TypeFor[Terms](), reflect.TypeFor[keysMessage](), reflect.TypeFor[publicKeyMessage](),
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

// Who sends what to whom, in every mode: nothing but what the protocol names,
// and no message contains key material or a plaintext column.
func TestTranscripts(t *testing.T) {
	setup := func(parties ...int) map[traffic]bool {
		m := make(map[traffic]bool)
		for _, p := range parties {
			m[traffic{p, 0, KindTerms}] = true
		}
		return m
	}
	two := setup(1)
	for _, x := range []traffic{{1, 0, KindKeys}, {1, 0, KindColumn}, {0, 1, KindAggregates}, {1, 0, KindCentroids},
		{0, 1, KindCentroids}} {
		two[x] = true
	}
	aided := setup(1, 2)
	for x := range two {
		aided[x] = true
	}
	for _, x := range []traffic{{1, 2, KindPublicKey}, {2, 0, KindColumn}, {0, 2, KindCentroids}} {
		aided[x] = true
	}
	shared := setup(1, 2, 3)
	for p := 1; p <= 3; p++ {
		shared[traffic{p, 0, KindKeyShare}], shared[traffic{0, p, KindKeyShare}] = true, true
		shared[traffic{0, p, KindCentroids}] = true
		for q := 1; q <= 3; q++ {
			if q != p {
				shared[traffic{p, q, KindThreshold}] = true
			}
		}
	}
	for _, x := range []traffic{{1, 0, KindColumn}, {2, 0, KindColumn}, {0, 1, KindAggregates}, {0, 2, KindAggregates},
		{1, 0, KindShares}, {2, 0, KindShares}} {
		shared[x] = true
	}
	full := setup(1, 2)
	for p := 1; p <= 2; p++ {
		for _, kind := range []Kind{KindKeyShare, KindColumn, KindShares} {
			full[traffic{p, 0, kind}] = true
		}
		for _, kind := range []Kind{KindKeyShare, KindAggregates, KindCentroids} {
			full[traffic{0, p, kind}] = true
		}
	}
	for _, c := range []struct {
		name string
		job  Job
		want map[traffic]bool
	}{
		{"two-party", Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1, 2}}}}, two},
		{"multiparty", Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}, Mode: Multiparty}, full},
		{"server-aided", Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}}, aided},
		{"threshold", Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}, {}}}, Mode: Multiparty,
			Threshold: 2}, shared},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := c.job
			data := sample(t, "blobs", 300, 3, 2, 3)
			j.Clients, j.Bounds, j.Calibration = data.Table(), data.Bounds, privacy.None
			j.K, j.Iterations, j.Seed, j.chain = 2, 2, seed(3), &smallChain
			got := make(map[traffic]bool)
			var all [][]byte
			j.Tap = func(e Envelope, b []byte) {
				got[traffic{e.From, e.To, e.Kind}] = true
				all = append(all, bytes.Clone(b))
			}
			pool := engine.NewPool(1)
			defer pool.Close()
			pl, err := j.plan()
			if err != nil {
				t.Fatal(err)
			}
			s, err := newRun(pl)
			if err != nil {
				t.Fatal(err)
			}
			roles, programs := s.newParties()
			if err := protocol.Start(engine.NewRuntime(pool), pl.Plan, programs, nil,
				protocol.Options{}).Run(context.Background()); err != nil {
				t.Fatal(err)
			}
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
		for name, k := range map[string]*rlwe.SecretKey{"its key": sk.main, "its small key": sk.small} {
			w := &writer{p: s.params}
			w.poly(k.Value.Q, s.params.RingQ())
			out[name+" in the NTT domain"] = w.b[:64]
			c := s.params.RingQ().NewPoly()
			s.params.RingQ().IMForm(k.Value.Q, c)
			s.params.RingQ().INTT(c, c)
			w = &writer{p: s.params}
			w.poly(c, s.params.RingQ())
			out[name+" as coefficients"] = w.b[:64]
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
			noise := uniform(s.params, newPRNG(make([]byte, 32)), s.params.MaxLevel(), -1).Q
			roles.alice.tops[1][0] = newCipherOf(s.params, noise, noise, s.topScale)
		},
		"values outside the bounds": func(s *run, roles *parties) {
			far := make([]float64, s.lay.n)
			for i := range far {
				far[i] = 3
			}
			msgs, err := encryptColumns(context.Background(), roles.bob.Pool(), s.params, s.lay, map[int][]float64{1: far},
				[]int{1}, s.topScale, s.lowScale, roles.bob.rnd,
				func(m ring.Poly, scale float64, purpose string, index int) columnCipher {
					return columnCipher{SeededCipher: *encryptSeeded(s.params, m, scale, roles.bob.secret, roles.bob.rnd,
						purpose, index)}
				}, true)
			if err != nil {
				t.Fatal(err)
			}
			for i := range msgs[0].Tops {
				roles.alice.tops[1][i] = msgs[0].Tops[i].expand(s.params)
			}
		},
	} {
		data := sample(t, "blobs", 300, 2, 2, 3)
		j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}},
			K: 2, Iterations: 1, Calibration: privacy.None, Seed: seed(3)}, chain: &smallChain}
		pool := engine.NewPool(1)
		s, roles := setUp(t, j, pool)
		round := func() error {
			alice := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
				roles.alice.Party = p
				_, err := roles.alice.playRound(ctx, 0, s.start)
				return nil, err
			}
			bob := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
				roles.bob.Party = p
				return nil, roles.bob.answer(ctx, 1)
			}
			return protocol.Start(engine.NewRuntime(pool), s.Plan, []protocol.Program{alice, bob}, nil,
				protocol.Options{}).Run(context.Background())
		}
		if err := round(); err != nil {
			t.Fatalf("sound ciphertexts: %v", err)
		}
		spoil(s, roles)
		err := round()
		if err == nil || !strings.Contains(err.Error(), "check total") {
			t.Errorf("%s: error is %v", name, err)
		}
		pool.Close()
	}
}

func TestTermsMustAgree(t *testing.T) {
	data := sample(t, "blobs", 300, 2, 2, 3)
	session := func(change func(*Job)) *run {
		j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}},
			K: 2, Iterations: 2, Calibration: privacy.None, Seed: seed(3)}, chain: &smallChain}
		change(j)
		pl, err := j.plan()
		if err != nil {
			t.Fatal(err)
		}
		s, err := newRun(pl)
		if err != nil {
			t.Fatal(err)
		}
		return s
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
