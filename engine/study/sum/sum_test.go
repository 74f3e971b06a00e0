package sum

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/internal/secagg"
	"github.com/cohort-engine/cohort/internal/vary"
)

// members makes the parties of a study, each with keys of its own.
func members(c Config) []*Member {
	all := make([]*Member, c.Parties)
	publics := make([]ed25519.PublicKey, c.Parties)
	for i := range all {
		seed := sha256.Sum256(fmt.Append(nil, "signing", i))
		key := ed25519.NewKeyFromSeed(seed[:])
		publics[i] = key.Public().(ed25519.PublicKey)
		all[i] = &Member{Config: c, Index: i, Root: sha256.Sum256(fmt.Append(nil, "root", i)),
			Pair: func(p int) ([32]byte, error) {
				return sha256.Sum256(fmt.Append(nil, "pair", min(i, p), max(i, p))), nil
			},
			Sign: func(b []byte) ([]byte, error) { return ed25519.Sign(key, b), nil },
			Verify: func(p int, b, signature []byte) bool {
				return ed25519.Verify(publics[p], b, signature)
			}}
	}
	return all
}

// exchange is a sum under way among parties of one test.
type exchange struct {
	server  *Server
	clients []*Client
	waiting []message // for the server
	seen    []message // by the server
}

type message struct {
	party int
	body  []byte
}

// drops says that a party is gone from a step on.
type drops map[int]Phase

// begin begins sum number among parties.
func begin(c Config, all []*Member, number uint32, vectors [][]byte) (*exchange, error) {
	x := &exchange{server: c.NewServer(number, slices.Repeat([]bool{true}, c.Parties))}
	for i, m := range all {
		client, first, err := m.Begin(number, vectors[i])
		if err != nil {
			return nil, err
		}
		x.clients = append(x.clients, client)
		x.waiting = append(x.waiting, message{i, first})
	}
	return x, nil
}

// take has the server take what is waiting from parties that are not gone.
func (x *exchange) take(gone drops) error {
	for _, w := range x.waiting {
		if from, is := gone[w.party]; is && from <= x.server.Phase() {
			continue
		}
		x.seen = append(x.seen, w)
		if late, err := x.server.Take(w.party, w.body); late || err != nil {
			return fmt.Errorf("party %d, late %v: %w", w.party, late, err)
		}
	}
	x.waiting = nil
	return nil
}

// answer has the parties answer what the server sends.
func (x *exchange) answer(outs []Out) error {
	for _, o := range outs {
		answer, _, err := x.clients[o.To].Take(o.Body)
		if err != nil {
			return fmt.Errorf("party %d: %w", o.To, err)
		}
		x.waiting = append(x.waiting, message{o.To, answer})
	}
	return nil
}

// run plays sum number to its end.
func run(c Config, all []*Member, number uint32, vectors [][]byte, gone drops) (*exchange, error) {
	x, err := begin(c, all, number, vectors)
	if err != nil {
		return nil, err
	}
	for x.server.Phase() != Done {
		if err := x.take(gone); err != nil {
			return nil, err
		}
		outs, err := x.server.Close()
		if err != nil {
			return x, err
		}
		if err := x.answer(outs); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// vectorsOf makes vectors, and their sum over a set.
func vectorsOf(c Config, length int, seed uint64) (vectors [][]byte, total func(set Set) []byte) {
	rng := rand.New(rand.NewPCG(seed, 1))
	words := make([][]uint64, c.Parties)
	for i := range words {
		words[i] = make([]uint64, length)
		for j := range words[i] {
			words[i][j] = rng.Uint64()
		}
		vectors = append(vectors, secagg.AppendWords(nil, c.Ring, words[i]))
	}
	return vectors, func(set Set) []byte {
		sum := make([]uint64, length)
		for i := range c.Parties {
			for j := range sum {
				if set.Has(i) {
					sum[j] += words[i][j]
				}
			}
		}
		return secagg.AppendWords(nil, c.Ring, sum)
	}
}

// Whoever drops out in whatever step, the sum is that of those whose vectors came, or
// there is none.
func TestDropOuts(t *testing.T) {
	for _, ring := range []secagg.Ring{secagg.Ring64, secagg.Ring32} {
		c := Config{Parties: 5, Threshold: 3, Ring: ring}
		all := members(c)
		vectors, total := vectorsOf(c, 7, 1)
		for a := Keys; a <= Done; a++ {
			for b := a; b <= Done; b++ {
				for _, third := range []Phase{Vectors, Done} {
					if ring == secagg.Ring32 && third != Done {
						continue
					}
					gone := drops{1: a, 4: b, 2: third}
					x, err := run(c, all, uint32(a), vectors, gone)
					left := 0
					for p := range c.Parties {
						if from, is := gone[p]; !is || from == Done {
							left++
						}
					}
					if left < c.Threshold {
						if err == nil {
							t.Fatalf("%v: a sum with %d parties left", gone, left)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%v: %v", gone, err)
					}
					if set := x.server.Set(); !bytes.Equal(x.server.Total(), total(set)) {
						t.Errorf("%v: the sum over %v is wrong", gone, set)
					}
					for p := range c.Parties {
						from, is := gone[p]
						if in := x.server.Set().Has(p); in != (!is || from > Vectors) {
							t.Errorf("%v: party %d in the set: %v", gone, p+1, in)
						}
					}
					result := x.server.Result(x.server.Total())
					for p := range c.Parties {
						if _, r, err := x.clients[p].Take(result); err != nil || !bytes.Equal(r.Set, x.server.Set()) {
							t.Errorf("%v: party %d: %v", gone, p+1, err)
						}
					}
				}
			}
		}
	}
}

// Above 200 parties each has a hundred neighbours, and the sum is the same.
func TestNeighbours(t *testing.T) {
	c := Config{Parties: 240, Threshold: 160}
	g := newGraph(&c)
	for i, near := range g.near {
		if len(near) != degree || slices.Contains(near, i) {
			t.Fatalf("party %d has %d neighbours", i+1, len(near))
		}
		for _, j := range near {
			if !slices.Contains(g.near[j], i) {
				t.Fatalf("party %d is no neighbour of its neighbour %d", i+1, j+1)
			}
		}
	}
	if testing.Short() {
		t.Skip("skipped in short mode: the sum itself takes 5 seconds")
	}
	gone := drops{}
	for p := range 48 {
		gone[5*p] = Phase(p % 4)
	}
	vectors, total := vectorsOf(c, 3, 2)
	x, err := run(c, members(c), 1, vectors, gone)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x.server.Total(), total(x.server.Set())) {
		t.Error("the sum is wrong")
	}
}

// Every set of threshold shares gives the secret.
func TestShamir(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for a := range 200 {
		if x := uint16(1 + 321*a); times(x, inverse(x)) != 1 {
			t.Fatalf("%d times its inverse is %d", x, times(x, inverse(x)))
		}
	}
	for range 1000 { // four products at once are those of each
		var l lanes
		factor := uint16(rng.Uint32())
		for i := range l {
			l[i] = rng.Uint64()
		}
		for i, v := range l.scaled(factor) {
			for at := 0; at < 64; at += 16 {
				if got, want := uint16(v>>at), times(uint16(l[i]>>at), factor); got != want {
					t.Fatalf("%d times %d is %d, not %d", uint16(l[i]>>at), factor, got, want)
				}
			}
		}
	}
	var secret [32]byte
	random := func(b []byte) []byte {
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	random(secret[:])
	coefficients := random(make([]byte, 2*secretBytes))
	points := []uint16{1, 2, 700, 9, 65535}
	for set := range 1 << len(points) {
		var xs []uint16
		var shares [][32]byte
		for i, x := range points {
			if set>>i&1 == 1 {
				xs, shares = append(xs, x), append(shares, share(secret, coefficients, x))
			}
		}
		if len(xs) == 0 {
			continue
		}
		w, err := weights(xs)
		if err != nil {
			t.Fatal(err)
		}
		if got := combine(w, shares); (got == secret) != (len(xs) >= 3) {
			t.Errorf("%d shares: the secret came out: %v", len(xs), got == secret)
		}
	}
	if _, err := weights([]uint16{3, 3}); err == nil {
		t.Error("one share was taken twice")
	}
}

// refuses has a party, or the server, take what breaks the rules.
func (x *exchange) refuses(t *testing.T, what string, party int, body []byte) {
	t.Helper()
	if _, _, err := x.clients[party].Take(body); !errors.Is(err, errMessage) {
		t.Errorf("%s: %v", what, err)
	}
}

func (x *exchange) serverRefuses(t *testing.T, what string, party int, body []byte) {
	t.Helper()
	if _, err := x.server.Take(party, body); !errors.Is(err, errMessage) {
		t.Errorf("%s: %v", what, err)
	}
}

// Messages that break the rules are refused, and change nothing.
func TestRefusals(t *testing.T) {
	c := Config{Parties: 4, Threshold: 3}
	all := members(c)
	vectors, total := vectorsOf(c, 5, 4)
	x, err := begin(c, all, 2, vectors)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := all[0].Begin(3, vectors[0])
	if err != nil {
		t.Fatal(err)
	}
	keys := x.waiting
	step := func(outs []Out) []Out {
		t.Helper()
		if err := errors.Join(x.answer(outs), x.take(nil)); err != nil {
			t.Fatal(err)
		}
		next, err := x.server.Close()
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	if err := x.take(nil); err != nil {
		t.Fatal(err)
	}
	for _, m := range keys {
		x.serverRefuses(t, "a second key", m.party, m.body)
	}
	x.serverRefuses(t, "a key of another sum", 0, other)
	outs := step(nil)
	x.refuses(t, "a key that its owner did not sign", outs[0].To, flipped(outs[0].Body, headBytes+2))
	outs = step(step(outs)) // the set
	x.refuses(t, "a set below the threshold", 0, append(head(kindSet, 2), 0b0011))
	outs = step(outs) // signers
	x.refuses(t, "a second set", 0, append(head(kindSet, 2), 0b0111))
	for _, o := range outs {
		if o.To == 0 {
			one := o.Body[:headBytes+2+signBytes]
			x.refuses(t, "a set that one party signed", 0, one)
			x.refuses(t, "a set that one party signed, thrice", 0, slices.Concat(one, one[headBytes:], one[headBytes:]))
			x.refuses(t, "a set with a signature that its party did not make", 0, flipped(o.Body, len(o.Body)-1))
		}
	}
	step(outs)
	if !bytes.Equal(x.server.Total(), total(x.server.Set())) {
		t.Error("the sum is wrong")
	}
	otherSet := slices.Concat(head(kindResult, 2), []byte{0b0111}, x.server.Total())
	x.refuses(t, "a sum over a set that was not signed", 0, otherSet)
}

// flipped are bytes of which one has changed.
func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}

// A party that is not in a set cannot make up for one that has not signed it.
func TestSignersAreOfTheSet(t *testing.T) {
	c := Config{Parties: 4, Threshold: 3}
	all := members(c)
	vectors, _ := vectorsOf(c, 5, 4)
	x, err := run(c, all, 2, vectors, drops{3: Vectors})
	if err != nil {
		t.Fatal(err)
	}
	client := x.clients[0]
	statement := client.statement("set", 2, client.set)
	signers := func(parties ...int) []byte {
		b := head(kindSigners, 2)
		for _, p := range parties {
			signature, err := all[p].Sign(statement)
			if err != nil {
				t.Fatal(err)
			}
			b = entry(b, p, signature)
		}
		return b
	}
	client.next = kindSigners // as before it heard of them
	if _, _, err := client.Take(signers(0, 1, 3)); !errors.Is(err, errMessage) {
		t.Errorf("a signer that is not in the set: %v", err)
	}
	if _, _, err := client.Take(signers(0, 1, 2)); err != nil {
		t.Errorf("the signers of the set: %v", err)
	}
}

// A result without a set is of all parties, and who has signed the set of some refuses it.
func TestResultOfAll(t *testing.T) {
	c := Config{Parties: 4, Threshold: 3}
	vectors, _ := vectorsOf(c, 5, 4)
	for _, gone := range []drops{nil, {3: Vectors}} {
		x, err := run(c, members(c), 2, vectors, gone)
		if err != nil {
			t.Fatal(err)
		}
		bare := append(head(kindResult, 2), x.server.Total()...)
		if whole := bytes.Equal(x.server.Result(x.server.Total()), bare); whole != (gone == nil) {
			t.Errorf("without %v a result has no set: %v", gone, whole)
		}
		switch _, r, err := x.clients[0].Take(bare); {
		case gone == nil && (err != nil || r.Set.Count() != 4):
			t.Errorf("a sum of all parties: %v", err)
		case gone != nil && !errors.Is(err, errMessage):
			t.Errorf("a sum of all parties where three were to be in it: %v", err)
		}
	}
}

// A party sums with those alone who were told what it was told: noise whose scale follows from results would else be
// less than what another party's records need. The others can go on without it.
func TestPartiesHaveHadTheSameResults(t *testing.T) {
	c := Config{Parties: 4, Threshold: 3}
	vectors, total := vectorsOf(c, 5, 4)
	for _, odd := range []struct {
		lie  func(result []byte) []byte
		gone drops
		same bool
	}{
		{func(b []byte) []byte { return b }, nil, true},
		{func(b []byte) []byte { b[len(b)-1]++; return b }, nil, false},
		{func(b []byte) []byte { return append(append(head(kindResult, 0), 0x07), b[headBytes:]...) }, nil, false},
		{func(b []byte) []byte { b[len(b)-1]++; return b }, drops{3: Keys}, true}, // whom no other hears of
	} {
		all := members(c)
		first, err := run(c, all, 0, vectors, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, client := range first.clients {
			result := first.server.Result(first.server.Total())
			if i == 3 {
				result = odd.lie(result)
				client.set = nil // as one that comes late
			}
			if _, _, err := client.Take(result); err != nil {
				t.Fatal(err)
			}
		}
		switch x, err := run(c, all, 1, vectors, odd.gone); {
		case !odd.same && !errors.Is(err, errMessage):
			t.Errorf("parties that were told different results: %v", err)
		case odd.same && err != nil:
			t.Errorf("parties that were told the same: %v", err)
		case odd.same && !bytes.Equal(x.server.Total(), total(x.server.Set())):
			t.Error("the sum is wrong")
		}
	}
}

// Above 200 parties those who sign a set for a party are its neighbours: others, of whom there are enough for
// several sets, do not count.
func TestSignersAreNeighbours(t *testing.T) {
	c := Config{Parties: 240, Threshold: 160}
	all := members(c)
	vectors, _ := vectorsOf(c, 3, 4)
	client, _, err := all[0].Begin(1, vectors[0])
	if err != nil {
		t.Fatal(err)
	}
	client.set = slices.Repeat([]byte{255}, c.Parties/8)
	near := client.graph.near[0]
	signers := func(is func(p int) bool, most int) []byte {
		b, n := head(kindSigners, 1), 0
		for p := range c.Parties {
			if n == most || !is(p) {
				continue
			}
			signature, err := all[p].Sign(client.statement("set", 1, client.set))
			if err != nil {
				t.Fatal(err)
			}
			b, n = entry(b, p, signature), n+1
		}
		return b
	}
	neighbour := func(p int) bool { return slices.Contains(near, p) }
	for _, x := range []struct {
		what  string
		list  []byte
		taken bool
	}{
		{"others", signers(func(p int) bool { return p != 0 && !neighbour(p) }, c.shares()), false},
		{"too few neighbours", signers(neighbour, c.shares()-1), false},
		{"enough neighbours", signers(neighbour, c.shares()), true},
	} {
		client.next = kindSigners
		if _, _, err := client.Take(x.list); (err == nil) != x.taken {
			t.Errorf("signatures of %s: %v", x.what, err)
		}
	}
}

// With as many colluders as Colluders says, a server that leaves out the others of two runs of fifty on the
// circle has all secrets that it takes to tell the sum of those between apart; with one fewer it lacks one.
func TestColludersOfACircle(t *testing.T) {
	for _, c := range []Config{{Parties: 300, Threshold: 210}, {Parties: 1000, Threshold: 600},
		{Parties: 201, Threshold: 201}, {Parties: 400, Threshold: 201}} {
		g, order := newGraph(&c), c.circle()
		const gap, between = degree / 2, degree/2 + 1
		attack := func(colluders [2]int) bool {
			role := make([]byte, c.Parties) // 's' for the sum, 'c' for colluders, 'g' for those who are left out
			for at, p := range order[:2*gap+between] {
				switch {
				case at >= gap && at < gap+between:
					role[p] = 's'
				case at < colluders[0], at >= gap+between && at < gap+between+colluders[1]:
					role[p] = 'c'
				default:
					role[p] = 'g'
				}
			}
			for p, near := range g.near {
				holders := b2i(role[p] != 'g') // who is left out is not told of the set and reveals nothing
				for _, q := range near {
					holders += b2i(role[q] != 'g')
				}
				if (role[p] == 's' || role[p] == 'g') && holders < g.threshold {
					return false // its seed, or its key
				}
			}
			return true
		}
		half := c.Colluders() / 2
		if c.Colluders() != 2*half || !attack([2]int{half, half}) {
			t.Errorf("%d of %d: %d colluders do not have the secrets", c.Threshold, c.Parties, c.Colluders())
		}
		if half > 0 && (attack([2]int{half - 1, half}) || attack([2]int{half, half - 1})) {
			t.Errorf("%d of %d: fewer than %d colluders have the secrets", c.Threshold, c.Parties, c.Colluders())
		}
	}
	if c := (&Config{Parties: 200, Threshold: 150}); c.Colluders() != 100 {
		t.Errorf("150 of 200: %d", c.Colluders())
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// FuzzServer feeds a server messages of anybody, at any place among those of the parties. One
// that is refused or late leaves no trace: the sum of the others, which is looked at now and then, is what it
// would be, and the server takes the next input.
func FuzzServer(f *testing.F) {
	c := Config{Parties: 3, Threshold: 2}
	vectors, _ := vectorsOf(c, 2, 1)
	x, err := run(c, members(c), 0, vectors, nil)
	if err != nil {
		f.Fatal(err)
	}
	for i, m := range x.seen {
		f.Add(byte(m.party+1+4*i), m.body)
	}
	play := func(s *Server, from, to int) error {
		for _, m := range x.seen[from:to] {
			_, _ = s.Take(m.party, m.body)
			if s.Ready() {
				if _, err := s.Close(); err != nil {
					return err
				}
			}
		}
		return nil
	}
	type place struct {
		server *Server
		inputs int
	}
	places := make([]place, len(x.seen))
	f.Fuzz(func(t *testing.T, party byte, b []byte) {
		vary.Bytes(b, func(b []byte) {
			at := int(party/4) % len(places)
			p := &places[at]
			if p.server == nil {
				*p = place{server: c.NewServer(0, slices.Repeat([]bool{true}, 3))}
				if err := play(p.server, 0, at); err != nil {
					t.Fatal(err)
				}
			}
			late, err := p.server.Take(int(party)%4-1, b)
			if p.inputs++; (err != nil || late) && p.inputs < 1000 {
				return
			}
			end := play(p.server, at, len(x.seen)) // must not panic
			if (err != nil || late) && (end != nil || !bytes.Equal(p.server.Total(), x.server.Total())) {
				t.Fatalf("messages that were refused at place %d have changed the sum: %v", at, end)
			}
			p.server = nil
		})
	})
}

// FuzzClient feeds a party messages of anybody.
func FuzzClient(f *testing.F) {
	c := Config{Parties: 3, Threshold: 2}
	all := members(c)
	vectors, _ := vectorsOf(c, 2, 1)
	for kind := kindKeys; kind <= kindResult; kind++ {
		f.Add(append(head(kind, 0), 1, 0))
		f.Add(append(head(kind, 0), bytes.Repeat([]byte{1, 0}, 50)...))
	}
	begun, _, err := all[0].Begin(0, vectors[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		vary.Bytes(b, func(b []byte) {
			client := new(Client) // each input's own: making keys for it would take most of the time
			*client = *begun
			client.words = slices.Clone(begun.words)
			for next := kindKeyList; next <= kindSigners; next += 2 {
				client.next = next
				client.set = c.newSet()
				if client.shares == nil {
					client.shares = map[int][2][secretBytes]byte{}
				}
				_, result, _ := client.Take(b)
				if result != nil && (len(result.Vector) != 16 || result.Set.Count() < 2) {
					t.Fatal("a result of another shape was taken")
				}
			}
		})
	})
}

// A server that is given its earlier life's state needs no vectors again: messages without
// bodies, or whole ones, of those who were in the sum lead to it, and others are refused.
func TestRestore(t *testing.T) {
	c := Config{Parties: 3, Threshold: 2, Plain: true}
	vectors, total := vectorsOf(c, 4, 1)
	first := c.NewServer(5, []bool{true, true, true})
	send := func(s *Server, p int, body []byte) error {
		t.Helper()
		_, err := s.Take(p, append(VectorHead(5), body...))
		return err
	}
	for _, p := range []int{0, 2} {
		if err := send(first, p, vectors[p]); err != nil {
			t.Fatal(err)
		}
	}
	if err := send(first, 1, vectors[1][:8]); err == nil {
		t.Fatal("a vector of another length was taken")
	}
	state := first.State()
	if _, err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := c.NewServer(5, []bool{true, true, true})
	if err := second.Restore(state); err != nil {
		t.Fatal(err)
	}
	if send(second, 0, nil) != nil || send(second, 1, nil) == nil || send(second, 2, vectors[2]) != nil {
		t.Error("it takes others than before")
	}
	if _, err := second.Close(); err != nil || !bytes.Equal(second.Set(), first.Set()) ||
		!bytes.Equal(second.Total(), total(first.Set())) {
		t.Errorf("the sum is of %v, not %v: %v", second.Set(), first.Set(), err)
	}
	if err := c.NewServer(5, []bool{true, true, true}).Restore(state[:3]); err == nil {
		t.Error("a cut state was taken")
	}
}
