package sum

import (
	"bytes"
	"crypto/ecdh"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/internal/secagg"
)

// attacker has all bytes that the server received in a sum, and the state of some parties.
// It knows the keys of masks that follow from these: colluders' own, and those whose secrets
// it has enough shares of.
type attacker struct {
	Config
	x         *exchange
	colluders []int
	public    map[int]*ecdh.PublicKey
	secrets   map[int]*ecdh.PrivateKey // of the keys of a sum
	seeds     map[int][secretBytes]byte
	masked    map[int][]uint64
}

// newAttacker looks at a sum. more has shares that an attacker should not have, by owner,
// sharer and kind: to see that it would be found out.
func newAttacker(t *testing.T, c Config, x *exchange, colluders []int, more func(owner, sharer int) []byte) *attacker {
	t.Helper()
	a := &attacker{Config: c, x: x, colluders: colluders, public: make(map[int]*ecdh.PublicKey),
		secrets: make(map[int]*ecdh.PrivateKey), seeds: make(map[int][secretBytes]byte), masked: make(map[int][]uint64)}
	shares := make(map[[2]int]map[int][secretBytes]byte) // by owner and kind, then by sharer
	learn := func(owner, sharer int, kind byte, share [secretBytes]byte) {
		at := [2]int{owner, int(kind)}
		if shares[at] == nil {
			shares[at] = make(map[int][secretBytes]byte)
		}
		shares[at][sharer] = share
	}
	for _, m := range x.seen {
		kind, _, rest, err := split(m.body)
		if err != nil {
			t.Fatal(err)
		}
		switch kind {
		case kindKeys:
			if a.public[m.party], err = ecdh.X25519().NewPublicKey(rest[:keyBytes]); err != nil {
				t.Fatal(err)
			}
		case kindMasked:
			a.masked[m.party] = c.readWords(rest)
		case kindReveal:
			err = c.entries(rest, 1+secretBytes, func(owner int, b []byte) error {
				learn(owner, m.party, b[0], [secretBytes]byte(b[1:]))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, q := range colluders {
		a.secrets[q], a.seeds[q] = x.clients[q].secret, x.clients[q].seed
		for owner, both := range x.clients[q].shares {
			learn(owner, q, 0, both[0])
			learn(owner, q, 1, both[1])
		}
	}
	if more != nil {
		for owner := range c.Parties {
			for sharer := range c.Parties {
				if b := more(owner, sharer); b != nil {
					learn(owner, sharer, b[0], [secretBytes]byte(b[1:]))
				}
			}
		}
	}
	a.combine(t, shares)
	return a
}

// combine makes secrets of as many shares as make one up.
func (a *attacker) combine(t *testing.T, shares map[[2]int]map[int][secretBytes]byte) {
	t.Helper()
	if a.Plain {
		return
	}
	enough := newGraph(&a.Config).threshold
	for at, of := range shares {
		if len(of) < enough {
			continue
		}
		var points []uint16
		var values [][secretBytes]byte
		for _, q := range slices.Sorted(maps.Keys(of))[:enough] {
			points, values = append(points, uint16(q+1)), append(values, of[q])
		}
		w, err := weights(points)
		if err != nil {
			t.Fatal(err)
		}
		secret := combine(w, values)
		if at[1] == 0 {
			a.seeds[at[0]] = secret
			continue
		}
		if a.secrets[at[0]], err = ecdh.X25519().NewPrivateKey(secret[:]); err != nil {
			t.Fatal(err)
		}
	}
}

// term is a mask in the message of a party: its key, with which sign, and whether the
// attacker knows it.
type term struct {
	key   string
	off   bool
	known bool
}

// terms are the masks in the message of a party of the set, by what the parties know
// themselves; the test checks them against the message.
func (a *attacker) terms(t *testing.T, party int, vector []byte) (all []term) {
	t.Helper()
	if a.Plain {
		return nil
	}
	client := a.x.clients[party]
	_, knows := a.seeds[party]
	all = append(all, term{string(a.ownKey(client.seed)), false, knows})
	for q := range client.shares {
		if q == party {
			continue
		}
		key, err := a.pairKey(a.x.server.Number, client.secret, a.public[q], party, q)
		if err != nil {
			t.Fatal(err)
		}
		known := false
		for _, pair := range [][2]int{{party, q}, {q, party}} {
			if secret := a.secrets[pair[0]]; secret != nil {
				again, err := a.pairKey(a.x.server.Number, secret, a.public[pair[1]], party, q)
				known = known || err == nil && string(again) == string(key)
			}
		}
		all = append(all, term{string(key), q < party, known})
	}
	words := a.readWords(vector)
	for _, m := range all {
		a.addMask(words, []byte(m.key), m.off)
	}
	if !bytes.Equal(secagg.AppendWords(nil, a.Ring, words), secagg.AppendWords(nil, a.Ring, a.masked[party])) {
		t.Fatalf("the message of party %d is not its vector under these masks", party+1)
	}
	return all
}

// strip is what the attacker makes of a party's message.
func (a *attacker) strip(party int, terms []term) []uint64 {
	words := slices.Clone(a.masked[party])
	for _, m := range terms {
		if m.known {
			a.addMask(words, []byte(m.key), !m.off)
		}
	}
	return words
}

// others are the parties of the set that do not collude.
func (a *attacker) others() (parties []int) {
	for p := range a.Parties {
		if a.x.server.Set().Has(p) && !slices.Contains(a.colluders, p) {
			parties = append(parties, p)
		}
	}
	return parties
}

// evenness is the chi-square statistic of the bytes of words, in deviations.
func evenness(words []uint64) float64 {
	var counts [256]float64
	for _, w := range words {
		for i := range 8 {
			counts[byte(w>>(8*i))]++
		}
	}
	n, chi := float64(8*len(words)), 0.0
	for _, k := range counts {
		chi += (k - n/256) * (k - n/256) / (n / 256)
	}
	return (chi - 255) / math.Sqrt(2*255)
}

// To the server and threshold-1 colluders the vector of every other party is
// uniform, and the vectors of the others together give their sum and no more. A sum
// without the pairs' masks is found out. (A uniform vector is called uneven with
// probability below 1e-9: ten deviations of a chi-square.)
func TestCollusion(t *testing.T) {
	const length = 20000
	for _, c := range []struct {
		Config
		gone drops
	}{
		{Config{Parties: 5, Threshold: 3}, nil},
		{Config{Parties: 6, Threshold: 4}, drops{5: Vectors, 4: Reveals}},
		{Config{Parties: 5, Threshold: 3, Plain: true}, nil},
	} {
		all := members(c.Config)
		vectors := slices.Repeat([][]byte{make([]byte, 8*length)}, c.Parties)
		for i := range vectors {
			vectors[i] = make([]byte, 8*length)
			vectors[i][0] = byte(1 + i)
		}
		x, err := run(c.Config, all, 3, vectors, c.gone)
		if err != nil {
			t.Fatal(err)
		}
		a := newAttacker(t, c.Config, x, []int{0, 1}, nil)
		rest := make([]uint64, length)
		want := uint64(0)
		for _, p := range a.others() {
			words := a.strip(p, a.terms(t, p, vectors[p]))
			if found := evenness(words) > 10; found != c.Plain {
				t.Errorf("%+v: the vector of party %d is found out: %v", c, p+1, found)
			}
			for i, w := range words {
				rest[i] += w
			}
			want += uint64(1 + p)
		}
		if rest[0] != want || slices.ContainsFunc(rest[1:], func(w uint64) bool { return w != 0 }) {
			t.Errorf("%+v: the others' vectors do not add up to their sum", c)
		}
	}
}

// small is the ring in which everything is enumerated: the integers modulo 4.
const small = 4

// digits are the numbers of n digits in the small ring.
func digits(n int) (all [][]int) {
	all = [][]int{nil}
	for range n {
		var longer [][]int
		for _, x := range all {
			for d := range small {
				longer = append(longer, append(slices.Clone(x), d))
			}
		}
		all = longer
	}
	return all
}

// views counts, for each choice of the others' values in the small ring, by how many choices
// of the masks that the attacker does not know it sees each of what it can see. Masks of
// different keys are independent and uniform.
func (a *attacker) views(t *testing.T, vectors [][]byte) (values [][]int, seen []map[string]int) {
	t.Helper()
	parties := a.others()
	terms := make([][]term, len(parties))
	unknown := make(map[string]int)
	for i, p := range parties {
		terms[i] = a.terms(t, p, vectors[p])
		for _, m := range terms[i] {
			if _, has := unknown[m.key]; !m.known && !has {
				unknown[m.key] = len(unknown)
			}
		}
	}
	if len(unknown) > 8 {
		t.Fatalf("%d masks are too many to enumerate", len(unknown))
	}
	values, masks := digits(len(parties)), digits(len(unknown))
	for _, v := range values {
		counts := make(map[string]int)
		for _, mask := range masks {
			view := make([]byte, len(parties))
			for i := range parties {
				y := v[i]
				for _, m := range terms[i] {
					switch {
					case m.known:
					case m.off:
						y -= mask[unknown[m.key]]
					default:
						y += mask[unknown[m.key]]
					}
				}
				view[i] = byte((y%small + small) % small)
			}
			counts[string(view)]++
		}
		seen = append(seen, counts)
	}
	return values, seen
}

// sumOnly reports whether all that views tell of the values is their sum: values of one sum
// give the same views as often, those of another none of them. If so, each value is uniform
// given what is seen and the sum, and any but one of them together.
func sumOnly(values [][]int, seen []map[string]int) bool {
	bySum := make(map[int]map[string]int)
	for i, v := range values {
		total := 0
		for _, x := range v {
			total += x
		}
		total %= small
		if bySum[total] == nil {
			bySum[total] = seen[i]
		}
		if !maps.Equal(bySum[total], seen[i]) {
			return false
		}
	}
	for total, views := range bySum {
		for other, more := range bySum {
			for view := range views {
				if _, both := more[view]; both && other != total {
					return false
				}
			}
		}
	}
	return true
}

// Whoever drops out, all bytes that the server received and the state of up to threshold-1
// parties tell the sum of the others' vectors and nothing else, by enumeration of all values
// and masks in a small ring. As many colluders as the threshold, sums without masks of pairs,
// and a party that gives away both secrets of another are found out.
func TestAttackerEnumerated(t *testing.T) {
	c := Config{Parties: 5, Threshold: 3}
	vectors, _ := vectorsOf(c, 3, 7)
	rng := rand.New(rand.NewPCG(8, 9))
	for number := range uint32(36) {
		c, gone := Config{Parties: 4 + int(number%2), Threshold: 3}, drops{}
		for range (number / 2) % uint32(c.Parties-c.Threshold+1) {
			gone[rng.IntN(c.Parties)] = Phase(rng.IntN(int(Done)))
		}
		all := members(c)
		x, err := run(c, all, number, vectors, gone)
		if err != nil {
			t.Fatalf("%v: %v", gone, err)
		}
		colluders := rng.Perm(c.Parties)[:c.Parties-3+int(number/4)%(6-c.Parties)] // at most three others, two at least
		a := newAttacker(t, c, x, colluders, nil)
		if values, seen := a.views(t, vectors); !sumOnly(values, seen) {
			t.Errorf("with %v gone, %v learn more than the sum", gone, colluders)
		}
	}
	exposed := func(what string, c Config, colluders []int, more func(x *exchange) func(int, int) []byte) {
		t.Helper()
		x, err := run(c, members(c), 1, vectors, nil)
		if err != nil {
			t.Fatal(err)
		}
		var shares func(int, int) []byte
		if more != nil {
			shares = more(x)
		}
		a := newAttacker(t, c, x, colluders, shares)
		if values, seen := a.views(t, vectors); sumOnly(values, seen) {
			t.Errorf("%s: nothing was found out", what)
		}
	}
	exposed("as many colluders as the threshold", c, []int{0, 2, 4}, nil)
	exposed("plain sums", Config{Parties: 5, Threshold: 3, Plain: true}, []int{0}, nil)
	exposed("both secrets of a party", c, []int{0, 1}, func(x *exchange) func(int, int) []byte {
		return func(owner, sharer int) []byte {
			if owner != 3 || sharer != 4 {
				return nil
			}
			share := x.clients[sharer].shares[owner][1]
			return append([]byte{1}, share[:]...)
		}
	})
}

// The statement of secrecy does not depend on the ring: the masks of 32-bit sums are
// those of the same keys.
func TestAttackerOtherRing(t *testing.T) {
	c := Config{Parties: 4, Threshold: 3, Ring: secagg.Ring32}
	vectors, _ := vectorsOf(c, 2, 3)
	x, err := run(c, members(c), 0, vectors, drops{3: Shares})
	if err != nil {
		t.Fatal(err)
	}
	a := newAttacker(t, c, x, []int{1}, nil)
	if fmt.Sprint(a.others()) != "[0 2]" {
		t.Fatalf("the others are %v", a.others())
	}
	if values, seen := a.views(t, vectors); !sumOnly(values, seen) {
		t.Error("more than the sum is learnt")
	}
}
