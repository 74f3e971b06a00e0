package ntt

import (
	"encoding/binary"
	"fmt"
)

// checkLengths panics unless all slices are as long as dst, a multiple of 16.
func checkLengths(what string, dst int, lengths ...int) {
	if dst%lanes != 0 {
		panic(fmt.Sprintf("ntt: %s: length %d is not a multiple of %d", what, dst, lanes))
	}
	for _, n := range lengths {
		if n != dst {
			panic(fmt.Sprintf("ntt: %s: length %d, want %d", what, n, dst))
		}
	}
}

// Uniform writes words below the prime to dst until that is full or random, which is public, is used up. Of eight bytes
// of random, the highest first, a word is the low bits, as many as the prime has; those that are not below it are left
// out. It returns how many it wrote and how many bytes it used. What dst has after these may be written over.
func (p *Prime) Uniform(dst []uint32, random []byte) (drawn, used int) {
	const size = 8
	for count := len(dst); drawn < count && used+size <= len(random); {
		n := min(count-drawn, (len(random)-used)/size) // all of them may be below
		from := random[used : used+size*n]
		if whole := n / lanes * lanes; whole > 0 {
			from = from[:size*whole]
			drawn += uniform(p, dst[drawn:drawn+whole], from)
		} else {
			drawn += uniformPortable(p, dst[drawn:drawn+n], from)
		}
		used += len(from)
	}
	return drawn, used
}

// Add sets dst = a + b, all canonical.
func (p *Prime) Add(dst, a, b []uint32) {
	checkLengths("Add", len(dst), len(a), len(b))
	addWords(p, dst, a, b)
}

// Sub sets dst = a - b, all canonical.
func (p *Prime) Sub(dst, a, b []uint32) {
	checkLengths("Sub", len(dst), len(a), len(b))
	subWords(p, dst, a, b)
}

// AddScalar sets dst = a + c, all canonical.
func (p *Prime) AddScalar(dst, a []uint32, c uint32) {
	checkLengths("AddScalar", len(dst), len(a))
	addScalar(p, dst, a, c)
}

// Scale sets dst = a c / R, canonical, for words a below 2^31 in magnitude and
// |c| <= q/2.
func (p *Prime) Scale(dst, a []uint32, c uint32) {
	checkLengths("Scale", len(dst), len(a))
	scaleWords(p, dst, a, c, true)
}

// ScaleAdd sets dst = dst + a c / R, canonical, for canonical dst and words a
// below 2^31 in magnitude and |c| <= q/2.
func (p *Prime) ScaleAdd(dst, a []uint32, c uint32) {
	checkLengths("ScaleAdd", len(dst), len(a))
	scaleAdd(p, dst, a, c)
}

// SubScale sets dst = (a - b) c / R, canonical, for canonical a, |c| <= q/2 and
// words b as ForwardLazy leaves them.
func (p *Prime) SubScale(dst, a, b []uint32, c uint32) {
	checkLengths("SubScale", len(dst), len(a), len(b))
	subScale(p, dst, a, b, c)
}

// Multiply sets dst = a b / R, canonical, for canonical or centred a and b.
func (p *Prime) Multiply(dst, a, b []uint32) {
	checkLengths("Multiply", len(dst), len(a), len(b))
	multiply(p, dst, a, b)
}

// MultiplyAdd sets dst = dst + a b / R, canonical, for canonical dst and canonical
// or centred a and b.
func (p *Prime) MultiplyAdd(dst, a, b []uint32) {
	checkLengths("MultiplyAdd", len(dst), len(a), len(b))
	multiplyAdd(p, dst, a, b)
}

// Product sets (c0, c1, c2) = times (a0 b0, a0 b1 + a1 b0, a1 b1)/R, canonical, for
// canonical a and b and times -2 to 2.
func (p *Prime) Product(c *[3][]uint32, a, b *[2][]uint32, times int) {
	checkProduct("Product", c, a, b, times)
	product(p, c, a, b, uint32(times))
}

// ProductAdd adds (a0 b0, a0 b1 + a1 b0, a1 b1)/R times -1 or 1 to (c0, c1, c2),
// all canonical.
func (p *Prime) ProductAdd(c *[3][]uint32, a, b *[2][]uint32, times int) {
	checkProduct("ProductAdd", c, a, b, 2*times)
	productAdd(p, c, a, b, uint32(times))
}

func checkProduct(what string, c *[3][]uint32, a, b *[2][]uint32, times int) {
	checkLengths(what, len(c[0]), len(c[1]), len(c[2]), len(a[0]), len(a[1]), len(b[0]), len(b[1]))
	if times < -2 || times > 2 {
		panic(fmt.Sprintf("ntt: %s: times is out of range", what))
	}
}

// MaxTerms is the largest number of residues that are converted at once, and of
// digits in an inner product: their sums fit 63 bits.
const MaxTerms = 5

// Convert sets dst = (sum_k src[k] c[k])/R, in (-q, q), for words |src[k]| < 3/4 2^30
// and constants |c[k]| <= q/2. It is exact up to a small multiple of the product of
// src's primes, or exact with what [Whole] says and that product's negative as a last
// term, which may be a sixth, as its words are at most 5 in magnitude.
func (p *Prime) Convert(dst []uint32, src [][]uint32, c []uint32) {
	checkTerms("Convert", MaxTerms+1, dst, src)
	if len(c) != len(src) {
		panic(fmt.Sprintf("ntt: Convert: %d constants, want %d", len(c), len(src)))
	}
	convert(p, dst, src, c)
}

func checkTerms(what string, most int, dst []uint32, src [][]uint32) {
	if len(src) < 1 || len(src) > most {
		panic(fmt.Sprintf("ntt: %s: %d terms, want 1 to %d", what, len(src), most))
	}
	for _, s := range src {
		checkLengths(what, len(dst), len(s))
	}
}

// Fraction returns 2^bits/q rounded, what [Whole] takes. It panics unless that is
// below 2^31 and bits is 33 to 60.
func (p *Prime) Fraction(bits int) uint32 {
	q := uint64(p.q)
	f := (1<<bits + q/2) / q
	if bits < 33 || bits > 60 || f >= 1<<31 {
		panic(fmt.Sprintf("ntt: Fraction: 2^%d/%d", bits, p.q))
	}
	return uint32(f)
}

// Whole sets dst to sum_k src[k]/q_k rounded to the nearest integer, for words
// |src[k]| < 3/4 q_k and the primes' fractions of the given bits. Near a half, by
// 2^31 of 2^bits, it may be the integer on the other side.
func Whole(dst []uint32, src [][]uint32, fractions []uint32, bits int) {
	checkTerms("Whole", MaxTerms, dst, src)
	if len(fractions) != len(src) || bits < 33 || bits > 60 {
		panic(fmt.Sprintf("ntt: Whole: %d fractions of %d bits, want %d of 33 to 60", len(fractions), bits, len(src)))
	}
	whole(dst, src, fractions, bits)
}

// Key is a matrix of constants for inner products: for each of digits polynomials
// two factors modulo one prime, in the order that the kernels read.
type Key struct {
	n, digits int
	// words has, for each 16 coefficients and digit, 16 words of each factor.
	words []uint32
}

// NewKey makes room for the constants of the given number of digits, 1 to 5, in
// degree n.
func NewKey(n, digits int) *Key {
	if n%lanes != 0 || digits < 1 || digits > MaxTerms {
		panic(fmt.Sprintf("ntt: NewKey: degree %d, %d digits", n, digits))
	}
	return &Key{n: n, digits: digits, words: make([]uint32, 2*n*digits)}
}

// Set stores the factors b and a of a digit, constants of magnitude up to q/2.
func (k *Key) Set(digit int, b, a []uint32) {
	checkLengths("Key.Set", k.n, len(b), len(a))
	for j := 0; j < k.n; j += lanes {
		at := k.words[(j*k.digits+digit*lanes)*2:]
		copy(at[:lanes], b[j:])
		copy(at[lanes:2*lanes], a[j:])
	}
}

// Inner sets k0 = (sum_d x[d] b_d + lift c0)/R and k1 = (sum_d x[d] a_d + lift c1)/R,
// canonical, for the first len(x) digits of key, words x[d] below 2^31 in
// magnitude, canonical c0 and c1, which may be k0 and k1, and |lift| <= q/2. Without
// c0 the last terms are left out.
func (p *Prime) Inner(k0, k1 []uint32, x [][]uint32, key *Key, c0, c1 []uint32, lift uint32) {
	checkTerms("Inner", MaxTerms, k0, x)
	checkLengths("Inner", key.n, len(k0), len(k1))
	if len(x) > key.digits {
		panic(fmt.Sprintf("ntt: Inner: %d digits, the key has %d", len(x), key.digits))
	}
	if c0 != nil {
		checkLengths("Inner", key.n, len(c0), len(c1))
	}
	inner(p, k0, k1, x, key, c0, c1, lift)
}

// Permute sets dst[i] = src[index[i]]; dst is not src.
func Permute(dst, src, index []uint32) {
	checkLengths("Permute", len(dst), len(src), len(index))
	for i, j := range index {
		dst[i] = src[j]
	}
}

// The portable forms.

func addWordsPortable(p *Prime, dst, a, b []uint32) {
	for i, x := range a {
		y := x + b[i]
		dst[i] = min(y, y-p.q)
	}
}

func subWordsPortable(p *Prime, dst, a, b []uint32) {
	for i, x := range a {
		y := x - b[i]
		dst[i] = min(y, y+p.q)
	}
}

func addScalarPortable(p *Prime, dst, a []uint32, c uint32) {
	for i, x := range a {
		y := x + c
		dst[i] = min(y, y-p.q)
	}
}

func scaleAddPortable(p *Prime, dst, a []uint32, c uint32) {
	for i, x := range a {
		dst[i] = p.canonical(dst[i] + p.mont(x, c))
	}
}

func subScalePortable(p *Prime, dst, a, b []uint32, c uint32) {
	for i, x := range a {
		dst[i] = p.canonical(p.mont(x-reduce(b[i], p.reduction()), c))
	}
}

func multiplyPortable(p *Prime, dst, a, b []uint32) {
	for i, x := range a {
		dst[i] = p.canonical(p.mont(x, b[i]))
	}
}

func multiplyAddPortable(p *Prime, dst, a, b []uint32) {
	for i, x := range a {
		dst[i] = p.canonical(dst[i] + p.mont(x, b[i]))
	}
}

// cross returns (a0 b0, a0 b1 + a1 b0, a1 b1)/R at i; the sum is reduced once.
func (p *Prime) cross(a, b *[2][]uint32, i int) (c0, c1, c2 uint32) {
	a0, a1, b0, b1 := int64(a[0][i]), int64(a[1][i]), int64(b[0][i]), int64(b[1][i])
	return p.divide(a0 * b0), p.divide(a0*b1 + a1*b0), p.divide(a1 * b1)
}

func productPortable(p *Prime, c *[3][]uint32, a, b *[2][]uint32, times uint32) {
	for i := range c[0] {
		c0, c1, c2 := p.cross(a, b, i)
		c[0][i], c[1][i], c[2][i] = p.canonical(times*c0), p.canonical(times*c1), p.canonical(times*c2)
	}
}

func productAddPortable(p *Prime, c *[3][]uint32, a, b *[2][]uint32, times uint32) {
	for i := range c[0] {
		c0, c1, c2 := p.cross(a, b, i)
		c[0][i], c[1][i], c[2][i] = p.canonical(c[0][i]+times*c0), p.canonical(c[1][i]+times*c1),
			p.canonical(c[2][i]+times*c2)
	}
}

func convertPortable(p *Prime, dst []uint32, src [][]uint32, c []uint32) {
	for i := range dst {
		var t int64
		for k, s := range src {
			t += int64(int32(s[i])) * int64(int32(c[k]))
		}
		dst[i] = p.divide(t)
	}
}

func wholePortable(dst []uint32, src [][]uint32, fractions []uint32, bits int) {
	for i := range dst {
		t := int64(1) << (bits - 1)
		for k, s := range src {
			t += int64(int32(s[i])) * int64(fractions[k])
		}
		dst[i] = uint32(int32(t>>32) >> (bits - 32))
	}
}

func innerPortable(p *Prime, k0, k1 []uint32, x [][]uint32, key *Key, c0, c1 []uint32, lift uint32) {
	for i := range k0 {
		var t0, t1 int64
		if c0 != nil {
			t0, t1 = int64(c0[i])*int64(int32(lift)), int64(c1[i])*int64(int32(lift))
		}
		at := key.words[(i/lanes*key.digits*lanes)*2+i%lanes:]
		for d, digit := range x {
			y := int64(int32(digit[i]))
			t0 += y * int64(int32(at[2*d*lanes]))
			t1 += y * int64(int32(at[2*d*lanes+lanes]))
		}
		k0[i], k1[i] = p.canonical(p.divide(t0)), p.canonical(p.divide(t1))
	}
}

func uniformPortable(p *Prime, dst []uint32, random []byte) (drawn int) {
	mask := p.words[wordMask]
	for ; len(random) >= 8; random = random[8:] {
		x := binary.BigEndian.Uint32(random[4:]) & mask
		dst[drawn] = x
		drawn += int((x - p.q) >> 31) // the next one takes its place
	}
	return drawn
}
