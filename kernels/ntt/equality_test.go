package ntt

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/kernels"
)

// onEveryPath runs f on each path of this CPU, the portable one first.
func onEveryPath(t testing.TB, f func(p path)) {
	t.Helper()
	old := current
	defer func() { current = old }()
	var done []path
	for _, name := range kernels.Supported() {
		if current = pathOf(name); !slices.Contains(done, current) {
			done = append(done, current)
			f(current)
		}
	}
}

// testPrimes are the largest below 2^30, below the limit of lazy layers and below
// 2^29, and the smallest above 2^27, all 1 modulo 2^18.
var testPrimes = []uint32{primeFrom(1<<30, -1), primeFrom(lazyLimit, -1), primeFrom(1<<29, -1), primeFrom(1<<27, 1)}

// primeFrom is the first prime 1 modulo 2^18 on the way up or down.
func primeFrom(x, sign int) uint32 {
	const step = 1 << (MaxLogN + 2)
	for x = x/step*step + 1; !big.NewInt(int64(x)).ProbablyPrime(0) || x >= 1<<30; x += sign * step {
	}
	return uint32(x)
}

func testRings(t testing.TB, logN int) []*Ring {
	t.Helper()
	var rs []*Ring
	for _, kind := range []Kind{Standard, ConjugateInvariant} {
		for _, q := range testPrimes {
			r, err := NewRing(kind, logN, q)
			if err != nil {
				t.Fatal(err)
			}
			rs = append(rs, r)
		}
	}
	return rs
}

// words draws n words in [low, high), with the extremes among them.
func words(rng *rand.Rand, n int, low, high int64) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		switch rng.IntN(16) {
		case 0:
			w[i] = uint32(low)
		case 1:
			w[i] = uint32(high - 1)
		default:
			w[i] = uint32(low + rng.Int64N(high-low))
		}
	}
	return w
}

// sameOnEveryPath runs f on every path and compares its outputs with the portable
// ones, word by word.
func sameOnEveryPath(t *testing.T, what string, f func() [][]uint32) {
	t.Helper()
	var want [][]uint32
	onEveryPath(t, func(p path) {
		got := f()
		if p == generic {
			want = got
			return
		}
		for i := range want {
			for j := range want[i] {
				if got[i][j] != want[i][j] {
					t.Fatalf("%s on %s: word %d of output %d is %d, portable %d", what, p, j, i, int32(got[i][j]), int32(want[i][j]))
				}
			}
		}
	})
}

func TestTransformsEqualPortable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	top := 12
	if !testing.Short() {
		top = MaxLogN
	}
	for logN := MinLogN; logN <= top; logN++ {
		for _, r := range testRings(t, logN) {
			q := int64(r.q)
			in, canonical := words(rng, r.n, 1-q, q), words(rng, r.n, 0, q)
			factor := r.Constant(rng.Uint64())
			what := fmt.Sprintf("kind %d, degree 2^%d, prime %d", r.kind, logN, q)
			sameOnEveryPath(t, what, func() [][]uint32 {
				out := make([][]uint32, 6)
				for i := range out {
					out[i] = make([]uint32, r.n)
				}
				r.Forward(out[0], in)
				r.ForwardLazy(out[1], in)
				copy(out[2], in)
				r.Forward(out[2], out[2])
				r.Inverse(out[3], canonical, factor)
				r.InverseLazy(out[4], canonical, factor)
				copy(out[5], canonical)
				r.Inverse(out[5], out[5], factor)
				bound := 7 * q / 2
				if !r.lazy {
					bound = 7 * q / 4
				}
				for j := range r.n {
					if out[0][j] >= r.q || out[3][j] >= r.q || out[2][j] != out[0][j] || out[5][j] != out[3][j] {
						t.Fatalf("%s: word %d is not canonical, or differs in place", what, j)
					}
					if x := int64(int32(out[1][j])); max(x, -x) >= bound || (x-int64(out[0][j]))%q != 0 {
						t.Fatalf("%s: lazy word %d is %d", what, j, x)
					}
					if x := int64(int32(out[4][j])); 4*max(x, -x) >= 3*q || (x-int64(out[3][j]))%q != 0 {
						t.Fatalf("%s: lazy inverse word %d is %d", what, j, x)
					}
				}
				return out
			})
		}
	}
}

// TestTransformsInvert checks the way there and back, and factors.
func TestTransformsInvert(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for _, r := range testRings(t, 10) {
		x := words(rng, r.n, 0, int64(r.q))
		y, z := make([]uint32, r.n), make([]uint32, r.n)
		r.Forward(y, x)
		r.Inverse(z, y, r.Constant(7))
		for j := range x {
			if uint64(z[j]) != 7*uint64(x[j])%uint64(r.q) {
				t.Fatalf("prime %d: coefficient %d is %d, want 7 times %d", r.q, j, z[j], x[j])
			}
		}
	}
}

func TestVectorsEqualPortable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, q := range testPrimes {
		p, err := NewPrime(q)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{16, 48, 512} {
			m := int64(q)
			a, b, c := words(rng, n, 0, m), words(rng, n, 0, m), words(rng, n, 0, m)
			d, e, f := words(rng, n, 0, m), words(rng, n, 0, m), words(rng, n, 0, m)
			lazyBound := 7*m/4 - 1
			if p.lazy {
				lazyBound = 7*m/2 - 1
			}
			wide := words(rng, n, max(-lazyBound, -1<<31+1), min(lazyBound, 1<<31-1))
			k := words(rng, 1, -m/2, m/2+1)[0]
			sameOnEveryPath(t, fmt.Sprintf("%d words modulo %d", n, q), func() [][]uint32 {
				var out [][]uint32
				run := func(start []uint32, op func(dst []uint32)) {
					dst := slices.Clone(start)
					op(dst)
					out = append(out, dst)
				}
				run(c, func(dst []uint32) { p.Add(dst, a, b) })
				run(c, func(dst []uint32) { p.Sub(dst, a, b) })
				run(c, func(dst []uint32) { p.AddScalar(dst, a, b[0]) })
				run(c, func(dst []uint32) { p.Scale(dst, wide, k) })
				run(c, func(dst []uint32) { p.ScaleAdd(dst, wide, k) })
				run(c, func(dst []uint32) { p.SubScale(dst, a, wide, k) })
				run(c, func(dst []uint32) { p.Multiply(dst, a, b) })
				run(c, func(dst []uint32) { p.MultiplyAdd(dst, a, b) })
				for times := -2; times <= 2; times++ {
					x := [3][]uint32{slices.Clone(a), slices.Clone(b), slices.Clone(c)}
					p.Product(&x, &[2][]uint32{a, b}, &[2][]uint32{d, e}, times)
					out = append(out, x[:]...)
				}
				for times := -1; times <= 1; times += 2 {
					x := [3][]uint32{slices.Clone(a), slices.Clone(b), slices.Clone(f)}
					p.ProductAdd(&x, &[2][]uint32{c, d}, &[2][]uint32{e, f}, times)
					out = append(out, x[:]...)
				}
				for _, o := range out {
					for j, x := range o {
						if x >= q {
							t.Fatalf("modulo %d: word %d is %d", q, j, x)
						}
					}
				}
				return out
			})
		}
	}
}

// TestUniformEqualsPortable draws from all lengths of random words, and from some of which none is below the prime, and
// compares with a plain choice, too.
func TestUniformEqualsPortable(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	for _, q := range append([]uint32{3, 786433}, testPrimes...) {
		p, err := NewPrime(q)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 15, 16, 17, 64, 500} {
			for _, groups := range []int{0, 1, 16, 40, 700} {
				random := make([]byte, 8*groups+3)
				for i := range random {
					random[i] = byte(rng.Uint32())
				}
				if groups == 40 {
					for i := range random {
						random[i] |= 255 // all bits of a mask are none of a prime's words
					}
				}
				var want []uint32
				used := 0
				for ; used+8 <= len(random) && len(want) < n; used += 8 {
					word := binary.BigEndian.Uint64(random[used:]) & (1<<bits.Len32(q) - 1)
					if word < uint64(q) {
						want = append(want, uint32(word))
					}
				}
				sameOnEveryPath(t, fmt.Sprintf("%d of %d words below %d", n, groups, q), func() [][]uint32 {
					dst := make([]uint32, n)
					drawn, took := p.Uniform(dst, random)
					if took != used || !slices.Equal(dst[:drawn], want) {
						t.Fatalf("%d of %d words below %d: %d words of %d bytes, want %d of %d, or others", n, groups, q,
							drawn, took, len(want), used)
					}
					return [][]uint32{dst[:drawn]}
				})
			}
		}
	}
}

func TestConversionsEqualPortable(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	for _, q := range testPrimes {
		p, err := NewPrime(q)
		if err != nil {
			t.Fatal(err)
		}
		m := int64(q)
		for _, n := range []int{16, 48, 512} {
			for terms := 1; terms <= MaxTerms; terms++ {
				src, digits := make([][]uint32, terms), make([][]uint32, terms)
				fractions := make([]uint32, terms)
				key := NewKey(n, MaxTerms)
				for k := range src {
					src[k] = words(rng, n, -(3<<28)+1, 3<<28)
					digits[k] = words(rng, n, -(1<<31)+1, 1<<31)
					fractions[k] = words(rng, 1, 1<<27, 1<<30)[0]
					key.Set(k, words(rng, n, -m/2, m/2+1), words(rng, n, -m/2, m/2+1))
				}
				c := words(rng, terms+1, -m/2, m/2+1)
				rounds := words(rng, n, -4, 5)
				c0, c1 := words(rng, n, 0, m), words(rng, n, 0, m)
				sameOnEveryPath(t, fmt.Sprintf("%d terms of %d words modulo %d", terms, n, q), func() [][]uint32 {
					out := make([][]uint32, 9)
					for i := range out {
						out[i] = make([]uint32, n)
					}
					p.Convert(out[0], src, c[:terms])
					p.Convert(out[1], append(src[:terms:terms], rounds), c)
					Whole(out[2], src, fractions, 57)
					p.Inner(out[3], out[4], digits, key, nil, nil, 0)
					p.Inner(out[5], out[6], digits, key, c0, c1, c[0])
					copy(out[7], c0)
					copy(out[8], c1)
					p.Inner(out[7], out[8], digits, key, out[7], out[8], c[0])
					if !slices.Equal(out[7], out[5]) || !slices.Equal(out[8], out[6]) {
						t.Fatalf("%d terms of %d words modulo %d: other sums in place", terms, n, q)
					}
					return out
				})
			}
		}
	}
}
