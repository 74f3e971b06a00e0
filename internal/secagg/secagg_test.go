package secagg

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secret"
	"github.com/cohort-engine/cohort/internal/vary"
)

// newClient is a client's end with a key of its own.
func newClient(root secret.Root, ring Ring, index, clients, length int) (*Client, error) {
	key, err := NewKey(root, ring, length)
	if err != nil {
		return nil, err
	}
	return key.Client(index, clients)
}

// round runs one masked aggregation over the wire and returns what each client
// that is present unmasks, and the messages.
func round(t testing.TB, ring Ring, number int, values [][]int64, noise []int64, present []bool) (sums [][]int64,
	wires [][]byte) {
	t.Helper()
	clients, length := len(values), len(noise)
	root := secret.Simulated(1, "test")
	total, message := NewMasked(ring, clients, length), NewMasked(ring, clients, length)
	total.Reset(number)
	ends := make([]*Client, clients)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range ends {
		var err error
		ends[i], err = newClient(root, ring, i, clients, length)
		check(err)
		if !present[i] {
			continue
		}
		check(ends[i].Mask(message, number, values[i]))
		wire := message.AppendWire(nil)
		wires = append(wires, wire)
		check(message.ReadFrom(wire, number, i))
		check(total.Merge(message))
	}
	check(total.Add(noise))
	wire := total.AppendSum(nil)
	wires = append(wires, wire)
	for i := range ends {
		if !present[i] {
			continue
		}
		check(message.ReadSum(wire, number))
		sum := make([]int64, length)
		check(ends[i].Unmask(sum, message))
		sums = append(sums, sum)
	}
	return sums, wires
}

func TestSurvivorsUnmaskTheSumOfThosePresent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ring := rapid.SampledFrom([]Ring{Ring64, Ring32}).Draw(rt, "ring")
		clients, length := rapid.IntRange(1, 20).Draw(rt, "clients"), rapid.IntRange(1, 9).Draw(rt, "length")
		// Values may wrap inside the ring as long as the sum fits.
		limit := int64(math.MaxInt32 / 32)
		if ring == Ring64 {
			limit = math.MaxInt64 / 32
		}
		value := rapid.SliceOfN(rapid.Int64Range(-limit, limit), length, length)
		values := make([][]int64, clients)
		present := make([]bool, clients)
		for i := range values {
			values[i] = value.Draw(rt, "values")
			present[i] = rapid.IntRange(0, 3).Draw(rt, "present") > 0
		}
		present[rapid.IntRange(0, clients-1).Draw(rt, "survivor")] = true
		noise := value.Draw(rt, "noise")
		want := slices.Clone(noise)
		all := true
		for i, v := range values {
			all = all && present[i]
			for j := range v {
				if present[i] {
					want[j] += v[j]
				}
			}
		}
		number := int(rapid.Uint32().Draw(rt, "round"))
		sums, wires := round(t, ring, number, values, noise, present)
		for _, s := range sums {
			if !slices.Equal(s, want) {
				rt.Fatalf("sum %v, want %v", s, want)
			}
		}
		for i, w := range wires {
			bytes := length * ring.Bytes()
			if i == len(wires)-1 && !all {
				bytes += (clients + 7) / 8
			}
			if len(w) != bytes {
				rt.Fatalf("message %d has %d bytes, want %d", i, len(w), bytes)
			}
		}
	})
}

// TestSumsWrapAsTheRing draws values and noise from the whole of int64, so that single values, partial
// sums, masks and the noise all wrap: what is unmasked is the exact integer sum modulo the ring, in any
// order of the clients (privacy/THEOREMS.md, T6 v).
func TestSumsWrapAsTheRing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ring := rapid.SampledFrom([]Ring{Ring64, Ring32}).Draw(rt, "ring")
		clients, length := rapid.IntRange(1, 12).Draw(rt, "clients"), rapid.IntRange(1, 6).Draw(rt, "length")
		value := rapid.SliceOfN(rapid.OneOf(rapid.Int64(),
			rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, math.MinInt32, math.MaxInt32, -1})), length, length)
		values, present := make([][]int64, clients), make([]bool, clients)
		for i := range values {
			values[i], present[i] = value.Draw(rt, "values"), true
		}
		noise := value.Draw(rt, "noise")
		bits := uint(8 * ring.Bytes())
		half, whole := new(big.Int).Lsh(big.NewInt(1), bits-1), new(big.Int).Lsh(big.NewInt(1), bits)
		want := make([]int64, length)
		for j := range want {
			sum := big.NewInt(noise[j])
			for _, v := range values {
				sum.Add(sum, big.NewInt(v[j]))
			}
			sum.Mod(sum.Add(sum, half), whole) // Euclidean: in [0, 2^bits)
			want[j] = sum.Sub(sum, half).Int64()
		}
		number := int(rapid.Uint32().Draw(rt, "round"))
		for _, order := range [][][]int64{values, reversed(values)} {
			sums, _ := round(t, ring, number, order, noise, present)
			for _, s := range sums {
				if !slices.Equal(s, want) {
					rt.Fatalf("%v: sum %v, want %v", ring, s, want)
				}
			}
		}
	})
}

func reversed(values [][]int64) [][]int64 {
	r := slices.Clone(values)
	slices.Reverse(r)
	return r
}

// TestMaskIsAESCounterMode compares the mask with the standard library's counter
// mode, and checks that the streams of different rounds and clients differ.
func TestMaskIsAESCounterMode(t *testing.T) {
	root := secret.Simulated(7, "test")
	for _, ring := range []Ring{Ring64, Ring32} {
		key := root.Derive(fmt.Sprintf("masks of %d blocks", (37*ring.Bytes()+15)/16)).Key()
		block, err := aes.NewCipher(key[:])
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]string{}
		for _, number := range []int{0, 1, 1 << 31, math.MaxUint32} {
			for client := range 3 {
				c, err := newClient(root, ring, client, 3, 37)
				if err != nil {
					t.Fatal(err)
				}
				m := NewMasked(ring, 3, 37)
				if err := c.Mask(m, number, make([]int64, 37)); err != nil {
					t.Fatal(err)
				}
				first := uint64(number) * uint64((37*ring.Bytes()+15)/16)
				iv := binary.BigEndian.AppendUint64([]byte{'m', 'a', 's', 'k', 0, 0, 0, byte(client)}, first)
				want := make([]byte, 37*ring.Bytes())
				cipher.NewCTR(block, iv).XORKeyStream(want, want)
				got := m.AppendWire(nil)
				if !bytes.Equal(got, want) {
					t.Fatalf("%v round %d client %d: mask %x, want %x", ring, number, client, got, want)
				}
				where := fmt.Sprint(number, client)
				for i := 0; i+16 <= len(got); i += 16 {
					b := string(got[i : i+16])
					if other, ok := seen[b]; ok && other != where {
						t.Fatalf("%s and %s share a block of the mask", other, where)
					}
					seen[b] = where
				}
			}
		}
	}
}

// TestMessagesHideTheValues checks the one-time pad: for two inputs the messages
// differ by the difference of the inputs only, and a mask has as many ones as
// zeros. The second check fails with probability below 1e-6 over roots: 5.5
// standard deviations of a binomial, at one fixed root.
func TestMessagesHideTheValues(t *testing.T) {
	const length = 4096
	zero, values := make([]int64, length), make([]int64, length)
	for i := range values {
		values[i] = int64(i*i) - 1000
	}
	c, err := newClient(secret.Simulated(3, "test"), Ring64, 0, 2, length)
	if err != nil {
		t.Fatal(err)
	}
	a, b := NewMasked(Ring64, 2, length), NewMasked(Ring64, 2, length)
	if err := c.Mask(a, 5, zero); err != nil {
		t.Fatal(err)
	}
	if err := c.Mask(b, 5, values); err != nil {
		t.Fatal(err)
	}
	ones := 0
	for i := range a.words {
		if b.words[i]-a.words[i] != uint64(values[i]) {
			t.Fatal("the mask depends on the values")
		}
		for w := a.words[i]; w != 0; w &= w - 1 {
			ones++
		}
	}
	if n := float64(length * 64); math.Abs(float64(ones)-n/2) > 5.5*math.Sqrt(n)/2 {
		t.Errorf("%d ones among %v bits of the mask", ones, n)
	}
	// A receiver with another root gets something else.
	other, err := newClient(secret.Simulated(4, "test"), Ring64, 1, 2, length)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]int64, length)
	if err := other.Unmask(got, b); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i] == values[i] {
			t.Fatalf("element %d came out without the root", i)
		}
	}
}

// TestMaskedHasNoWayToPlain looks at the exported surface of Masked: no field,
// and no method that returns or fills numbers.
func TestMaskedHasNoWayToPlain(t *testing.T) {
	typ := reflect.TypeFor[*Masked]()
	for i := range typ.Elem().NumField() {
		if f := typ.Elem().Field(i); f.IsExported() {
			t.Errorf("field %s is exported", f.Name)
		}
	}
	takes := map[string]bool{"Add": true}
	for i := range typ.NumMethod() {
		m := typ.Method(i)
		for j := range m.Type.NumOut() {
			if out := m.Type.Out(j); out.Kind() == reflect.Slice && out.Elem().Kind() != reflect.Uint8 {
				t.Errorf("method %s returns %v", m.Name, out)
			}
		}
		for j := 1; j < m.Type.NumIn(); j++ {
			if in := m.Type.In(j); in.Kind() == reflect.Slice && in.Elem().Kind() != reflect.Uint8 && !takes[m.Name] {
				t.Errorf("method %s takes %v", m.Name, in)
			}
		}
	}
	// Add reads its argument only.
	m := NewMasked(Ring64, 1, 2)
	v := []int64{1, -2}
	if err := m.Add(v); err != nil || !slices.Equal(v, []int64{1, -2}) {
		t.Errorf("Add changed its argument to %v, error %v", v, err)
	}
}

func TestCapacity(t *testing.T) {
	for _, c := range []struct {
		c  Capacity
		ok bool
	}{
		{Capacity{Ring64, 1 << 46, 65536, 0}, true},
		{Capacity{Ring64, 1 << 47, 65536, 0}, false},
		{Capacity{Ring32, 1<<15 - 1, 65536, 0}, true},
		{Capacity{Ring32, 1 << 15, 65536, 0}, false},
		{Capacity{Ring32, 1<<15 - 1, 65536, 1 << 17}, false},
		{Capacity{Ring64, 1, math.NaN(), 0}, false},
	} {
		err := c.c.Check()
		if (err == nil) != c.ok || (err != nil && !fault.IsRequest(err)) {
			t.Errorf("%v: error is %v", c.c, err)
		}
	}
	if got := (Capacity{Ring32, 10, 4, 2}).String(); got != "ring Z_2^32: |sum| <= 10 x 4 + noise 2 = 42 is below 2^31" {
		t.Errorf("text is %q", got)
	}
	if _, err := ParseRing(16); !fault.IsRequest(err) {
		t.Errorf("16 bits: error is %v", err)
	}
	if r, err := ParseRing(32); err != nil || r != Ring32 {
		t.Errorf("32 bits give %v, %v", r, err)
	}
}

func TestMistakesAreRefused(t *testing.T) {
	c, err := newClient(secret.Simulated(1, ""), Ring64, 0, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	a, b := NewMasked(Ring64, 2, 3), NewMasked(Ring64, 2, 3)
	if err := c.Mask(a, 0, []int64{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	b.Reset(0)
	if err := b.Merge(a); err != nil {
		t.Fatal(err)
	}
	later := NewMasked(Ring64, 2, 3)
	later.Reset(1)
	for name, err := range map[string]error{
		"twice":          b.Merge(a),
		"another round":  later.Merge(a),
		"another ring":   NewMasked(Ring32, 2, 3).Merge(a),
		"another length": NewMasked(Ring64, 2, 4).Merge(a),
		"short mask":     c.Mask(a, 0, []int64{1}),
		"negative round": c.Mask(a, -1, []int64{1, 2, 3}),
		"short noise":    a.Add([]int64{1}),
		"short unmask":   c.Unmask(make([]int64, 2), a),
		"short message":  a.ReadFrom(make([]byte, 23), 0, 0),
		"long message":   a.ReadSum(make([]byte, 26), 0),
		"no such client": second(newClient(secret.Simulated(1, ""), Ring64, 2, 2, 3)),
		"no elements":    second(newClient(secret.Simulated(1, ""), Ring64, 0, 2, 0)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestRoundsAllocateNothing(t *testing.T) {
	const clients, length = 4, 45
	values := make([][]int64, clients)
	roots := make([]secret.Root, clients)
	ends := make([]*Client, clients)
	for i := range values {
		values[i] = make([]int64, length)
		roots[i] = secret.Simulated(uint64(i), "")
		ends[i], _ = newClient(roots[0], Ring64, i, clients, length)
	}
	total, message := NewMasked(Ring64, clients, length), NewMasked(Ring64, clients, length)
	wire := make([]byte, 0, 8*length+1)
	sum := make([]int64, length)
	number := 0
	masked := func() {
		total.Reset(number)
		for i, c := range ends {
			_ = c.Mask(message, number, values[i])
			wire = message.AppendWire(wire[:0])
			_ = message.ReadFrom(wire, number, i)
			_ = total.Merge(message)
		}
		_ = total.Add(values[0])
		wire = total.AppendSum(wire[:0])
		_ = message.ReadSum(wire, number)
		_ = ends[1].Unmask(sum, message)
		number++
	}
	if n := testing.AllocsPerRun(50, masked); n != 0 {
		t.Errorf("a masked round allocates %v times", n)
	}
}

func FuzzReadSum(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 1, false)
	f.Add([]byte{1, 2, 3, 4, 255, 255}, 9, true)
	f.Fuzz(func(t *testing.T, b []byte, clients int, narrow bool) {
		vary.Bytes(b, func(b []byte) {
			if clients < 1 || clients > 100 {
				return
			}
			ring := Ring64
			if narrow {
				ring = Ring32
			}
			m := NewMasked(ring, clients, 1)
			if err := m.ReadSum(b, 0); err != nil {
				return
			}
			got := m.AppendSum(nil)
			if m.count < clients && (len(got) != len(b) || !bytes.Equal(got[:ring.Bytes()], b[:ring.Bytes()])) {
				t.Fatalf("%x reads and writes as %x", b, got)
			}
		})
	})
}

func BenchmarkMask(b *testing.B) {
	const length = 300
	c, err := newClient(secret.Simulated(1, ""), Ring64, 0, 2, length)
	if err != nil {
		b.Fatal(err)
	}
	m := NewMasked(Ring64, 2, length)
	values := make([]int64, length)
	b.SetBytes(8 * length)
	round := 0
	for b.Loop() {
		if err := c.Mask(m, round, values); err != nil {
			b.Fatal(err)
		}
		round++
	}
}
