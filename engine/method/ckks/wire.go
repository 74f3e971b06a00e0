package ckks

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"

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
	p   *parameters
	b   []byte
	run region // for the rows of polynomials
}

func newWriter(p *parameters, kind Kind) *writer {
	w := &writer{p: p, run: alone}
	w.u32(wireMagic)
	w.b = append(w.b, byte(kind))
	w.u64(p.fingerprint)
	return w
}

func (w *writer) u32(x uint32)  { w.b = binary.LittleEndian.AppendUint32(w.b, x) }
func (w *writer) u64(x uint64)  { w.b = binary.LittleEndian.AppendUint64(w.b, x) }
func (w *writer) f64(x float64) { w.u64(math.Float64bits(x)) }

// pack appends values of q's width.
func (w *writer) pack(values []uint64, q uint64) {
	from, size := len(w.b), packedSize(len(values), q)
	w.b = slices.Grow(w.b, size)[:from+size]
	packRow(w.b[from:], values, q)
}

// packRow fills out with values of q's width.
func packRow(out []byte, values []uint64, q uint64) {
	width, at := bits.Len64(q-1), 0
	if width == wideBits {
		n := packWide(out, values)
		out, values = out[n*wideBits/8:], values[n:]
	}
	var acc uint64
	var fill int
	for _, v := range values {
		acc |= v << fill
		if fill += width; fill >= 64 {
			binary.LittleEndian.PutUint64(out[at:], acc)
			at += 8
			fill -= 64
			acc = v >> (width - fill)
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
func packWide(out []byte, values []uint64) (n int) {
	for ; len(values) >= 4 && len(out) >= 16; n, values, out = n+4, values[4:], out[15:] {
		binary.LittleEndian.PutUint64(out, values[0]|values[1]<<30|values[2]<<60)
		binary.LittleEndian.PutUint64(out[8:], values[2]>>4|values[3]<<26)
	}
	return n
}

// unpackWide is the inverse of packWide for values below q. It returns a word that is negative if one is not.
func unpackWide(out []uint64, b []byte, q uint64) (n int, over uint64) {
	const mask = 1<<wideBits - 1
	for ; len(out) >= 4 && len(b) >= 15; n, out, b = n+4, out[4:], b[15:] {
		low, high := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[7:])
		v0, v1, v2, v3 := low&mask, low>>30&mask, high>>4&mask, high>>34&mask
		out[0], out[1], out[2], out[3] = v0, v1, v2, v3
		over |= (q - 1 - v0) | (q - 1 - v1) | (q - 1 - v2) | (q - 1 - v3)
	}
	return n, over
}

func (w *writer) poly(p ring.Poly, r *ring.Ring) {
	at := []int{len(w.b)} // of rows
	for i, row := range p.Coeffs {
		at = append(at, at[i]+packedSize(len(row), r.SubRings[i].Modulus))
	}
	end := at[len(p.Coeffs)]
	w.b = slices.Grow(w.b, end-at[0])[:end]
	w.run(len(p.Coeffs), func(i int) { packRow(w.b[at[i]:at[i+1]], p.Coeffs[i], r.SubRings[i].Modulus) })
}

func (w *writer) polyQP(p ringqp.Poly) {
	w.poly(p.Q, w.p.rings.RingQ)
	if len(p.P.Coeffs) > 0 {
		w.poly(p.P, w.p.rings.RingP)
	}
}

// packedSize is the length of n packed values modulo q.
func packedSize(n int, q uint64) int { return (n*bits.Len64(q-1) + 7) / 8 }

// reader takes a message apart. After the first fault every read returns zero.
type reader struct {
	p    *parameters
	kind Kind
	b    []byte
	err  error
	run  region // for the rows of polynomials
}

func newReader(p *parameters, kind Kind, b []byte) *reader {
	r := &reader{p: p, kind: kind, b: b, run: alone}
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
		r.err = fault.Failed("message of "+r.kind.String(), why,
			"have the parties restart with the same version and parameters", nil)
	}
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
	return r.rows(n, []uint64{q})[0]
}

// rows reads as many rows of n values as there are primes.
func (r *reader) rows(n int, primes []uint64) [][]uint64 {
	out, packed, faults := make([][]uint64, len(primes)), make([][]byte, len(primes)), make([]string, len(primes))
	for i, q := range primes {
		packed[i] = r.take(packedSize(n, q))
	}
	if r.err != nil {
		return out
	}
	r.run(len(primes), func(i int) {
		out[i] = make([]uint64, n)
		faults[i] = unpackRow(out[i], packed[i], primes[i])
	})
	for i, f := range faults {
		if f != "" {
			r.fail(f)
			out[i] = nil
		}
	}
	return out
}

// unpackRow is the inverse of [packRow]. It returns what is wrong with b.
func unpackRow(out []uint64, b []byte, q uint64) (fault string) {
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
		out[i] = v
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

func (r *reader) poly(level int, rg *ring.Ring) ring.Poly {
	var primes []uint64
	for _, s := range rg.SubRings[:level+1] {
		primes = append(primes, s.Modulus)
	}
	return ring.Poly{Coeffs: r.rows(r.p.N(), primes)}
}

func (r *reader) polyQP(levelQ, levelP int) ringqp.Poly {
	p := ringqp.Poly{Q: r.poly(levelQ, r.p.rings.RingQ)}
	if levelP >= 0 {
		p.P = r.poly(levelP, r.p.rings.RingP)
	}
	return p
}

// end checks that nothing is left.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail(fmt.Sprintf("has %d bytes too many", len(r.b)))
	}
	return r.err
}
