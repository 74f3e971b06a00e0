package privacy

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// The discrete samplers return exactly the distributions of Canonne, Kamath and Steinke ("The discrete
// Gaussian for differential privacy", 2020), without their loop of Bernoulli trials:
//
//   - Below a scale of 32 the values themselves, with their signs, are drawn from an alias table of
//     integer weights that add up to 2^63: one random word a sample, and a branch that is all but
//     never taken.
//   - From there on the magnitude is split into cells [k w, (k+1) w) with w a power of two near
//     scale/16. A cell is drawn from the table, the place inside it uniformly, and the point is kept
//     with the exact ratio of its probability to that of the cell's first point.
//   - A weight is an integer at or above the true one. The last units of each cell's weight stand
//     for the difference; a draw that lands there (about once in 2^42) is decided by comparing lazily
//     extended random bits with exp of a rational number, computed to as many bits as it takes.
//   - The keep test compares random bits with a bound of the cell first, then with the first terms
//     of exp's series, then with exp in 63-bit fixed point with its error bound, then in the same
//     unlimited precision.
//
// Scales are float64, that is rationals, and are used as such. All decisions are made on integers.
// A sampler is immutable after construction: any number of goroutines may draw from it, each from
// its own Stream. Drawing allocates nothing except in the unlimited-precision comparisons.

// MaxScale bounds the scale of the discrete samplers, so that values stay far inside int64.
const MaxScale = 1 << 48

const (
	one63 = 1 << 63 // 1 in 63-bit fixed point
	// guard is more than twice the error, in units of 2^-63, of any weight or exp computed here: exp
	// is within 8 units, its argument adds 2, products of several at most 308 (see anchors), and the multiplier
	// A at most doubles all of it.
	guard = 2048
)

// cellTable is the part that the discrete samplers share.
type cellTable struct {
	shift  uint     // the width of a cell is 1 << shift; 0: the table has points instead
	cells  uint64   // cells 0..cells-1 are in the table; points: magnitudes 0..cells-1
	mBits  uint     // log2 of the number of buckets
	alias  []bucket // 1 << mBits
	weight []uint64 // per item: units that surely belong to it, out of 2^63
	sure   []uint32 // per cell (Laplace: one for all): keep when the top 32 bits are below
	scale  *big.Int // the multiplier A of the true weights
	power  uint     // the exponent of magnitude y is y^power * num/den: 1 Laplace, 2 Gaussian
	num    *big.Int
	den    *big.Int
	inv    uint64 // num/den ~ inv / 2^invBit, relative error below 2^-62
	invBit int
}

// bucket is one column of the alias table: fractions below cut mean item its own index.
type bucket struct {
	cut   uint64
	other uint32
}

// rational returns x > 0 as num/den exactly.
func rational(x float64) (num, den *big.Int) {
	r := new(big.Rat).SetFloat64(x)
	return r.Num(), r.Denom()
}

func checkScale(name string, x float64) error {
	if !(x >= 1.0/1024 && x <= MaxScale) {
		return fmt.Errorf("%s is %v: %w: must be in [2^-10, 2^48] grid units", name, x, ErrRange)
	}
	return nil
}

// setExponent stores the exponent y^power * num/den, also as inv/2^invBit.
func (t *cellTable) setExponent(power uint, num, den *big.Int) {
	t.power, t.num, t.den = power, num, den
	// inv = floor(2^invBit num/den) with exactly 64 bits
	s := 64 + den.BitLen() - num.BitLen()
	q := new(big.Int)
	for {
		if s >= 0 {
			q.Div(q.Lsh(num, uint(s)), den)
		} else {
			q.Div(num, new(big.Int).Lsh(den, uint(-s)))
		}
		if q.BitLen() <= 64 {
			break
		}
		s--
	}
	t.inv, t.invBit = q.Uint64(), s
}

// exponent returns y*num/den as 64.64 fixed point, saturated, where y = yh:yl; the relative error is
// below 2^-61.
func (t *cellTable) exponent(yh, yl uint64) (hi, lo uint64) {
	down := uint(0)
	if yh != 0 { // keep the top 64 bits
		down = uint(bits.Len64(yh))
		yl = yh<<(64-down) | yl>>down
	}
	ph, pl := bits.Mul64(yl, t.inv)
	// value = (ph:pl) * 2^(down - invBit); wanted times 2^64
	s := int(down) - t.invBit + 64
	size := bits.Len64(pl)
	if ph != 0 {
		size = 64 + bits.Len64(ph)
	}
	switch {
	case size == 0:
		return 0, 0
	case size+s > 128:
		return math.MaxUint64, 0
	case s >= 64:
		return pl << (s - 64), 0
	case s > 0:
		return ph<<s | pl>>(64-s), pl << s
	case s > -64:
		return ph >> -s, pl>>-s | ph<<(64+s)
	case s > -128:
		return 0, ph >> (-s - 64)
	}
	return 0, 0
}

// expNeg returns exp(-(hi + lo/2^64)) in units of 2^-63, with an error below 8 units.
func expNeg(hi, lo uint64) uint64 {
	if hi > 63 {
		return 0
	}
	// x = n ln 2 + r with 0 <= r < ln 2 up to the rounding of n, corrected below
	const (
		log2e = 0xb8aa3b295c17f0bc // log2(e)-ish: log2(e) * 2^63
		ln2h  = 0xb17217f7d1cf79ab // ln 2 * 2^64
	)
	top := hi<<57 | lo>>7 // x * 2^57
	n, _ := bits.Mul64(top, log2e)
	n >>= 56 // x*2^57 * log2e*2^63 / 2^64 = x log2e 2^56
	mh, ml := bits.Mul64(n, ln2h)
	rl, borrow := bits.Sub64(lo, ml, 0)
	rh, _ := bits.Sub64(hi, mh, borrow)
	for int64(rh) < 0 {
		n--
		rl, borrow = bits.Add64(rl, ln2h, 0)
		rh += borrow
	}
	for rh > 0 || rl >= ln2h {
		n++
		rl, borrow = bits.Sub64(rl, ln2h, 0)
		rh -= borrow
	}
	if n > 63 {
		return 0
	}
	return expSeries(rl) >> n
}

// expSeries is exp(-r/2^64) in units of 2^-63, for r below ln 2 * 2^64: that of its leading bits, from a table,
// times 1 - s(1 - s/2(1 - s/3(...))) for the others, s < 1/64. The first term left out is below 2^-72, each step is
// rounded down by a unit or two of which the next keeps a 64th, and the table and the product add less than two.
// Written out, its divisions are by constants, which compilers make products of.
func expSeries(r uint64) uint64 {
	s := r & (1<<expBits - 1)
	h, _ := bits.Mul64(s, one63)
	p := one63 - h/8
	h, _ = bits.Mul64(s, p)
	p = one63 - h/7
	h, _ = bits.Mul64(s, p)
	p = one63 - h/6
	h, _ = bits.Mul64(s, p)
	p = one63 - h/5
	h, _ = bits.Mul64(s, p)
	p = one63 - h/4
	h, _ = bits.Mul64(s, p)
	p = one63 - h/3
	h, _ = bits.Mul64(s, p)
	p = one63 - h/2
	h, _ = bits.Mul64(s, p)
	return product63(expTable[r>>expBits], one63-h)
}

// product63 is a product of fractions of 2^63, rounded down.
func product63(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<1 | lo>>63
}

// expBits is the number of bits of an argument of expSeries that its series serves.
const expBits = 58

// expTable has exp(-i/64) in units of 2^-63, to the nearest, for all i/64 below ln 2.
var expTable = [45]uint64{
	0x8000000000000000, 0x7e03faaffbbe924a, 0x7c0fd5aa22d75e45, 0x7a2371abfb3efec7,
	0x783eafef1c0a8f39, 0x7661722741068c62, 0x748b9a8065f00acd, 0x72bd0b9ce931f64a,
	0x70f5a893b608861e, 0x6f3554ee75ed8806, 0x6d7bf4a7c930989f, 0x6bc96c29869ed299,
	0x6a1da04b021def01, 0x6878764f5a1f403c, 0x66d9d3e3cbcf5eae, 0x65419f1e0de7c9f5,
	0x63afbe7ab2082ba2, 0x622418db8c7d50ed, 0x609e9586225c57a5, 0x5f1f1c221dd8eff8,
	0x5da594b7c8bdf84d, 0x5c31e7ae8cf01aa7, 0x5ac3fdcb7ae27389, 0x595bc02fd5e5a994,
	0x57f91857a63a3aaa, 0x569bf01850cf1fa3, 0x5544319f34964256, 0x53f1c7704d589b2c,
	0x52a49c64dbf42359, 0x515c9baa13ee1f7b, 0x5019b0bfce449bb9, 0x4edbc777416a4646,
	0x4da2cbf1be5827fa, 0x4c6eaa9f72a10bff, 0x4b3f503e2f72b7ab, 0x4a14a9d835716282,
	0x48eea4c3055a2bff, 0x47cd2e9e3559992f, 0x46b035524b036f6f, 0x4597a70f99d98bb3,
	0x4483724d264f9ead, 0x437385c78d39fdec, 0x4267d07fef9600df, 0x416041bae29aa613,
	0x405cc8ff640081b1,
}

// finish builds the alias table of the items' weights: certain[i] units surely belong to item i, the
// next guard units of it only in part. What is left of 2^63, which must be at least guard units for each
// item, goes to further items that mean "start again".
//
// Every bucket begins with at least guard units of its own item: its weight is no less to begin with,
// and an item that fills up another's bucket keeps at least what that one has.
func (t *cellTable) finish(certain []uint64) {
	items := len(certain) + 1
	t.mBits = uint(bits.Len(uint(items - 1)))
	n := 1 << t.mBits
	capacity := uint64(one63) >> t.mBits
	var room [1024]uint64 // of most tables
	left := room[:]
	if n > len(left) {
		left = make([]uint64, n)
	}
	left = left[:n]
	rest := uint64(one63)
	for i, c := range certain {
		left[i] = c + guard
		rest -= left[i]
	}
	for i := items; i < n; i++ { // padding to a power of two
		left[i] = guard
		rest -= guard
	}
	left[len(certain)] = rest
	t.weight = certain
	t.alias = make([]bucket, n)
	// Two stacks of items grow toward each other: those below the capacity, and the others.
	var both [len(room)]int32
	stacks := both[:]
	if n > len(stacks) {
		stacks = make([]int32, n)
	}
	small, large := 0, n // the first free place, and the top
	for i, w := range left {
		if w < capacity {
			stacks[small] = int32(i)
			small++
		} else {
			large--
			stacks[large] = int32(i)
		}
	}
	for small > 0 && large < n {
		small--
		s, l := stacks[small], stacks[large]
		t.alias[s] = bucket{left[s], uint32(l)}
		left[l] -= capacity - left[s]
		if left[l] < capacity {
			large++
			stacks[small] = l
			small++
		}
	}
	// integer weights of an exact total: what remains is full
	for _, i := range stacks[:small] {
		t.alias[i] = bucket{capacity, uint32(i)}
	}
	for _, i := range stacks[large:n] {
		t.alias[i] = bucket{capacity, uint32(i)}
	}
}

// draw returns the item of 63 random bits and whether it landed in the guard units of the item's weight.
func (t *cellTable) draw(v uint64) (item uint32, edge bool) {
	b := v >> (63 - t.mBits)
	f := v & (uint64(one63)>>t.mBits - 1)
	bk := &t.alias[b]
	item = bk.other
	if f < bk.cut {
		item = uint32(b)
	}
	return item, f < guard // of the bucket's own item, see finish
}

// points is the number of points of a table of them: item i is the value i - (cells-1).
func (t *cellTable) points() uint64 { return 2*t.cells - 1 }

// magnitude is that of a point.
func (t *cellTable) magnitude(item uint64) uint64 {
	z := int64(item) - int64(t.cells-1)
	return uint64(max(z, -z))
}

// fillPoints draws values from a table of points until dst is full, and leaves to rare what is not
// plainly a point: it returns the value, or false to start again. Words are used one a sample and as
// Sample would.
func (t *cellTable) fillPoints(st *Stream, dst []int64, rare func(st *Stream, item uint64, edge bool) (int64, bool)) {
	points, low := uint32(t.points()), int64(t.cells-1)
	for i := 0; i < len(dst); {
		item, edge := t.draw(st.src.Uint64() >> 1)
		if !edge && item < points {
			dst[i] = int64(item) - low
			i++
		} else if z, ok := rare(st, uint64(item), edge); ok {
			dst[i] = z
			i++
		}
	}
}

// lazy is a uniform variable in [0,1) of which some leading bits are known.
type lazy struct {
	bits *big.Int
	n    uint
}

func (u *lazy) extend(st *Stream) {
	u.bits.Lsh(u.bits, 64)
	u.bits.Or(u.bits, new(big.Int).SetUint64(st.Uint64()))
	u.n += 64
}

// term is sign * exp(-num/den).
type term struct {
	sign     int
	num, den *big.Int
}

// bounds returns integers lo, hi with lo <= 2^prec exp(-num/den) <= hi.
func (x term) bounds(prec uint) (lo, hi *big.Int) {
	// exp(-x) = exp(-x/2^m)^(2^m), with x/2^m < 1/2; every step is rounded outward
	m := uint(max(0, x.num.BitLen()-x.den.BitLen()+2))
	work := prec + 2*m + 16
	den := new(big.Int).Lsh(x.den, m)
	yl := new(big.Int).Lsh(x.num, work)
	yl.Div(yl, den)
	yh := new(big.Int).Add(yl, big.NewInt(1))
	// the alternating series of exp(-y), y < 1/2, cut after an even (upper) or odd (lower) term
	one := new(big.Int).Lsh(big.NewInt(1), work)
	series := func(y *big.Int) *big.Int {
		sum, tm := new(big.Int).Set(one), new(big.Int).Set(one)
		for i := int64(1); tm.Sign() > 0; i++ {
			tm.Mul(tm, y)
			tm.Rsh(tm, work)
			tm.Div(tm, big.NewInt(i))
			if i%2 == 1 {
				sum.Sub(sum, tm)
			} else {
				sum.Add(sum, tm)
			}
		}
		return sum
	}
	// truncation of the at most work terms costs less than 2 units each
	slack := big.NewInt(2*int64(work) + 4)
	lo = series(yh)
	lo.Sub(lo, slack)
	hi = series(yl)
	hi.Add(hi, slack)
	if lo.Sign() < 0 {
		lo.SetInt64(0)
	}
	for range m {
		lo.Mul(lo, lo)
		lo.Rsh(lo, work)
		hi.Mul(hi, hi)
		hi.Rsh(hi, work)
		hi.Add(hi, big.NewInt(1))
	}
	lo.Rsh(lo, work-prec)
	hi.Rsh(hi, work-prec)
	hi.Add(hi, big.NewInt(1))
	return lo, hi
}

// below decides exactly whether base + u*span < mul * sum of terms, extending u as needed. The sum is
// irrational (Lindemann-Weierstrass) unless its exponents are 0, so it ends with probability 1.
func (u *lazy) below(st *Stream, base, span, mul *big.Int, terms ...term) bool {
	for {
		u.extend(st)
		prec := u.n + 32
		lo, hi := new(big.Int), new(big.Int)
		for _, x := range terms {
			l, h := x.bounds(prec)
			if x.sign < 0 {
				l, h = h.Neg(h), l.Neg(l)
			}
			lo.Add(lo, l)
			hi.Add(hi, h)
		}
		lo.Mul(lo, mul)
		hi.Mul(hi, mul)
		// u in [bits, bits+1) / 2^n, everything times 2^prec
		left := new(big.Int).Mul(u.bits, span)
		left.Lsh(left, prec-u.n)
		right := new(big.Int).Lsh(span, prec-u.n)
		b := new(big.Int).Lsh(base, prec)
		left.Add(left, b)
		right.Add(right, left)
		if right.Cmp(lo) <= 0 {
			return true
		}
		if left.Cmp(hi) >= 0 {
			return false
		}
	}
}

// at is exp of minus the exponent of magnitude y.
func (t *cellTable) at(sign int, y *big.Int) term {
	n := new(big.Int).Set(y)
	if t.power == 2 {
		n.Mul(n, y)
	}
	return term{sign, n.Mul(n, t.num), t.den}
}

// keepSlow finishes the keep test of a point whose exponent exceeds its cell's by e = eh + el/2^64
// (approximately) and by exact: u holds 64 random bits.
func keepSlow(st *Stream, u, eh, el uint64, exact func() term) bool {
	a := u >> 1
	if eh == 0 {
		// 1 - e <= exp(-e) <= 1 - e + e^2/2 settles nearly all, as cells are narrow
		square, _ := bits.Mul64(el, el)
		low := one63 - el>>1
		switch {
		case a+guard < low:
			return true
		case a > low+square>>2+guard:
			return false
		}
	}
	g := expNeg(eh, el)
	switch {
	case a+guard < g:
		return true
	case a > g+guard:
		return false
	}
	lz := lazy{new(big.Int).SetUint64(u), 64}
	one := big.NewInt(1)
	return lz.below(st, new(big.Int), one, one, exact())
}
