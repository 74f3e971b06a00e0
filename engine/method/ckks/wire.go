package ckks

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/internal/fault"
)

// The wire form of a message: magic, kind, fingerprint of the parameters, body.
// Integers are little endian; the coefficients of a polynomial are packed with
// as many bits as their prime has, least significant bit first. A reader
// accepts exactly what a writer makes: lengths follow from the parameters,
// coefficients are below their prime, padding is zero and nothing follows.

// The first word has the version: "CHE1" messages have primes of up to 34 bits and
// seeds that expand by another generator.
const (
	wireMagic = 0x32454843 // "CHE2"
	wireFirst = 0x31454843 // "CHE1"
	wireHead  = 4 + 1 + 8
)

// Kind says what a message is.
type Kind uint8

// The kinds of messages.
const (
	kindTerms Kind = iota + 1
	kindKeys
	kindPublicKey
	kindColumn
	kindAggregates
	kindCentroids
	kindShares
	kindKeyShare
	kindThreshold
	kinds
)

var kindNames = [kinds]string{"", "terms", "evaluation keys", "public key", "encrypted column",
	"encrypted aggregates", "centroids", "decryption shares", "key share", "threshold share"}

// String names the kind.
func (k Kind) String() string {
	if k == 0 || k >= kinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// writer appends a message's wire form.
type writer struct {
	p    *parameters
	b    []byte
	late []func() // fill the places of polynomials' rows
}

// newWriter begins a message, which has room for a body of a size.
func newWriter(p *parameters, kind Kind, size int) *writer {
	return newWriterIn(p, kind, make([]byte, 0, wireHead+size))
}

// newWriterIn begins a message behind b.
func newWriterIn(p *parameters, kind Kind, b []byte) *writer {
	w := &writer{p: p, b: b}
	w.u32(wireMagic)
	w.b = append(w.b, byte(kind))
	w.u64(p.fingerprint)
	return w
}

func (w *writer) u32(x uint32)  { w.b = binary.LittleEndian.AppendUint32(w.b, x) }
func (w *writer) u64(x uint64)  { w.b = binary.LittleEndian.AppendUint64(w.b, x) }
func (w *writer) f64(x float64) { w.u64(math.Float64bits(x)) }

// pack appends values of q's width.
func (w *writer) pack(values []uint64, q uint64) { packRow(w.place(len(values), q), values, q) }

// place appends room for n values of q's width.
func (w *writer) place(n int, q uint64) []byte {
	from, size := len(w.b), packedSize(n, q)
	w.b = slices.Grow(w.b, size)[:from+size]
	return w.b[from:]
}

// word is what residues are kept in.
type word interface{ uint32 | uint64 }

// packRow fills out with values of q's width.
func packRow[T word](out []byte, values []T, q uint64) {
	width, at := bits.Len64(q-1), 0
	if width == wideBits {
		n := packWide(out, values)
		out, values = out[n*wideBits/8:], values[n:]
	}
	var acc uint64
	var fill int
	for _, v := range values {
		acc |= uint64(v) << fill
		if fill += width; fill >= 64 {
			binary.LittleEndian.PutUint64(out[at:], acc)
			at += 8
			fill -= 64
			acc = uint64(v) >> (width - fill)
		}
	}
	for ; at < len(out); at++ {
		out[at] = byte(acc)
		acc >>= 8
	}
}

// wideBits is the width of most primes. Four values of it are 15 bytes.
const wideBits = 30

// packWide fills out with values of 30 bits, by fours that have a byte behind them, and returns how many.
func packWide[T word](out []byte, values []T) (n int) {
	for ; len(values) >= 4 && len(out) >= 16; n, values, out = n+4, values[4:], out[15:] {
		v0, v1, v2, v3 := uint64(values[0]), uint64(values[1]), uint64(values[2]), uint64(values[3])
		binary.LittleEndian.PutUint64(out, v0|v1<<30|v2<<60)
		binary.LittleEndian.PutUint64(out[8:], v2>>4|v3<<26)
	}
	return n
}

// unpackWide is the inverse of packWide for values below q. It returns a word that is negative if one is not.
func unpackWide[T word](out []T, b []byte, q uint64) (n int, over uint64) {
	const mask = 1<<wideBits - 1
	for ; len(out) >= 4 && len(b) >= 15; n, out, b = n+4, out[4:], b[15:] {
		low, high := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[7:])
		v0, v1, v2, v3 := low&mask, low>>30&mask, high>>4&mask, high>>34&mask
		out[0], out[1], out[2], out[3] = T(v0), T(v1), T(v2), T(v3)
		over |= (q - 1 - v0) | (q - 1 - v1) | (q - 1 - v2) | (q - 1 - v3)
	}
	return n, over
}

// appendRows makes places for rows of residues modulo primes, which end fills.
func appendRows(w *writer, rows rns.Poly, primes []uint64) {
	for i, row := range rows {
		from, size := len(w.b), packedSize(len(row), primes[i])
		w.b = slices.Grow(w.b, size)[:from+size]
		w.late = append(w.late, func() { packRow(w.b[from:][:size], row, primes[i]) })
	}
}

// end returns the message.
func (w *writer) end(run region) []byte {
	run.all(w.late)
	return w.b
}

// packedSize is the length of n packed values modulo q.
func packedSize(n int, q uint64) int { return (n*bits.Len64(q-1) + 7) / 8 }

// reader takes a message apart. After the first fault every read returns zero.
type reader struct {
	p    *parameters
	kind Kind
	b    []byte
	err  error
	// late read rows of polynomials, and faults is what is wrong with them.
	late   []func()
	faults []string
}

func newReader(p *parameters, kind Kind, b []byte) *reader {
	r := &reader{p: p, kind: kind, b: b}
	switch r.u32() {
	case wireMagic:
	case wireFirst:
		r.fail("has the wire format CHE1, and here CHE2")
	default:
		r.fail("does not begin like a message")
	}
	if k := Kind(r.u8()); k != kind {
		r.fail(fmt.Sprintf("is %v", k))
	}
	if r.u64() != p.fingerprint {
		r.fail("was made for other lattice parameters")
	}
	return r
}

func (r *reader) fail(why string) {
	if r.err == nil {
		r.err = unsound(r.kind, why)
	}
}

// unsound is the error of a message that cannot be used.
func unsound(kind Kind, why string) error {
	return fault.Failed("message of "+kind.String(), why, "have the parties restart with the same version and parameters",
		nil)
}

func (r *reader) take(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.b)) {
		r.fail("is truncated")
	}
	if r.err != nil {
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// f64 reads a finite number.
func (r *reader) f64() float64 {
	x := math.Float64frombits(r.u64())
	if math.IsNaN(x) || math.IsInf(x, 0) {
		r.fail("has a number that is not finite")
		return 0
	}
	return x
}

// scale reads a number that can be the scale of a ciphertext.
func (r *reader) scale() float64 {
	x := r.f64()
	if r.err == nil && !(x >= 1 && x <= math.Exp2(100)) {
		r.fail(fmt.Sprintf("has a scale of %g", x))
		return 1
	}
	return x
}

// count reads a number that must be want.
func (r *reader) count(what string, want int) int {
	if n := int(r.u32()); r.err == nil && n != want {
		r.fail(fmt.Sprintf("has %d %s, want %d", n, what, want))
	}
	return want
}

func (r *reader) seed() (s [32]byte) {
	copy(s[:], r.take(32))
	return s
}

// unpack reads n values below q.
func (r *reader) unpack(n int, q uint64) []uint64 {
	packed := r.take(packedSize(n, q))
	if r.err != nil {
		return nil
	}
	out := make([]uint64, n)
	if f := unpackRow(out, packed, q); f != "" {
		r.fail(f)
		return nil
	}
	return out
}

// poly takes a polynomial's rows of residues modulo primes out of the message, which are read late.
func (r *reader) poly(primes []uint64) rns.Poly {
	out := make(rns.Poly, len(primes))
	for i, q := range primes {
		packed := r.take(packedSize(r.p.N(), q))
		if r.err != nil {
			return out
		}
		at := len(r.late)
		r.faults = append(r.faults, "")
		r.late = append(r.late, func() {
			out[i] = r.p.lattice.NewPoly(0)[0]
			r.faults[at] = unpackRow(out[i], packed, q)
		})
	}
	return out
}

// unpackRow is the inverse of [packRow]. It returns what is wrong with b.
func unpackRow[T word](out []T, b []byte, q uint64) (fault string) {
	width := bits.Len64(q - 1)
	mask := uint64(1)<<width - 1
	at, over := 0, uint64(0) // over is the sign of one of q-1-v
	if width == wideBits {
		var n int
		n, over = unpackWide(out, b, q)
		out, at = out[n:], n*wideBits
	}
	for i := range out {
		var word uint64 // has room for a value of at most 56 bits behind the up to 7 before it
		if rest := b[at/8:]; len(rest) >= 8 {
			word = binary.LittleEndian.Uint64(rest)
		} else {
			for j, x := range rest {
				word |= uint64(x) << (8 * j)
			}
		}
		v := word >> (at % 8) & mask
		out[i] = T(v)
		over |= q - 1 - v
		at += width
	}
	if over>>63 != 0 {
		return "has a coefficient that is not below its prime"
	}
	if at%8 != 0 && b[at/8]>>(at%8) != 0 {
		return "has padding that is not zero"
	}
	return ""
}

// end checks that nothing is left.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail(fmt.Sprintf("has %d bytes too many", len(r.b)))
	}
	return r.err
}

// check tells whether what has been read late is sound.
func (r *reader) check() error {
	for _, f := range r.faults {
		if f != "" {
			r.fail(f)
		}
	}
	return r.err
}

// finish reads all that is left for late, if nothing else is left.
func (r *reader) finish(run region) error {
	if err := r.end(); err != nil {
		return err
	}
	run.all(r.late)
	return r.check()
}
