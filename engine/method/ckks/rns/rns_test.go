package rns

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels/ntt"
)

const testLogN = 10

// testPrimes are the first primes 1 modulo 2^16 below powers of two.
func testPrimes(t testing.TB, logs ...int) []uint64 {
	t.Helper()
	by := map[int]*ring.NTTFriendlyPrimesGenerator{}
	var out []uint64
	for _, bits := range logs {
		if by[bits] == nil {
			g := ring.NewNTTFriendlyPrimesGenerator(uint64(bits), 1<<16)
			by[bits] = &g
		}
		q, err := by[bits].NextDownstreamPrime()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, q)
	}
	return out
}

// chains are those of the pairs protocol for product trees of depth 0, 2, 3 and 4.
var chains = []struct{ q, p []int }{
	{[]int{30, 30, 30, 30, 30, 30, 30, 30, 30}, []int{30, 30, 30}},
	{[]int{30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30}, []int{27, 27, 27, 27}},
	{[]int{30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30}, []int{26, 26, 26}},
	{[]int{30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30}, []int{24, 24}}, // seven digits
}

// fixture is a chain with Lattigo's parameters, secret and keys for it.
type fixture struct {
	*Chain
	params ckks.Parameters
	sk     *rlwe.SecretKey
	kgen   *rlwe.KeyGenerator
	rng    *rand.Rand
}

func fixtures(t *testing.T, f func(t *testing.T, x *fixture)) {
	for i, c := range chains {
		t.Run(fmt.Sprintf("chain %d", i), func(t *testing.T) {
			primes := testPrimes(t, append(append([]int(nil), c.q...), c.p...)...)
			params, err := ckks.NewParametersFromLiteral(ckks.ParametersLiteral{
				LogN: testLogN, Q: primes[:len(c.q)], P: primes[len(c.q):], LogDefaultScale: 28, RingType: ring.ConjugateInvariant,
			})
			if err != nil {
				t.Fatal(err)
			}
			chain, err := NewChain(ntt.ConjugateInvariant, testLogN, params.Q(), params.P())
			if err != nil {
				t.Fatal(err)
			}
			kgen := rlwe.NewKeyGenerator(params)
			f(t, &fixture{Chain: chain, params: params, sk: kgen.GenSecretKeyNew(), kgen: kgen,
				rng: rand.New(rand.NewPCG(uint64(i), 7))})
		})
	}
}

// random returns a polynomial of uniform residues, or of the largest ones.
func (x *fixture) random(level int, extreme bool) Poly {
	p := x.NewPoly(level)
	for j, row := range p {
		for i := range row {
			if row[i] = x.Q(j) - 1; !extreme {
				row[i] = x.rng.Uint32N(x.Q(j))
			}
		}
	}
	return p
}

func (x *fixture) wide(p Poly) ring.Poly { return ring.Poly{Coeffs: x.ToWide(p)} }

// same compares with Lattigo's residues.
func (x *fixture) same(t *testing.T, what string, got Poly, want ring.Poly) {
	t.Helper()
	for j, row := range got {
		for i := range row {
			if uint64(row[i]) != want.Coeffs[j][i] {
				t.Fatalf("%s: word %d modulo prime %d is %d, Lattigo's %d", what, i, j, row[i], want.Coeffs[j][i])
			}
		}
	}
}

// phase is c0 + c1 s in the coefficient domain.
func (x *fixture) phase(c0, c1 ring.Poly) ring.Poly {
	l := c0.Level()
	r := x.params.RingQ().AtLevel(l)
	m := r.NewPoly()
	m.CopyLvl(l, c0)
	r.MulCoeffsMontgomeryThenAdd(c1, ring.Poly{Coeffs: x.sk.Value.Q.Coeffs[:l+1]}, m)
	r.INTT(m, m)
	return m
}

// distance is the standard deviation of the coefficients of a - b, centred.
func (x *fixture) distance(a, b ring.Poly) float64 {
	l := a.Level()
	r := x.params.RingQ().AtLevel(l)
	d := r.NewPoly()
	r.Sub(a, b, d)
	coefficients := make([]*big.Int, x.n)
	for i := range coefficients {
		coefficients[i] = new(big.Int)
	}
	r.PolyToBigintCentered(d, 1, coefficients)
	var s float64
	for _, c := range coefficients {
		f, _ := new(big.Float).SetInt(c).Float64()
		s += f * f
	}
	return math.Sqrt(s / float64(x.n))
}

// relinKey makes Lattigo's relinearisation key and ours from it.
func (x *fixture) relinKey() (*rlwe.RelinearizationKey, *Key) {
	rlk := x.kgen.GenRelinearizationKeyNew(x.sk)
	aux := len(x.params.P())
	return rlk, x.keyOf(x.NewGadget(aux, aux, aux, x.MaxLevel()), rlk.Value)
}

func (x *fixture) keyOf(g *Gadget, rows [][]rlwe.VectorQP) *Key {
	k := g.NewKey()
	for d := range rows {
		narrow := func(v ringqp.Poly) Poly {
			return x.FromWide(slices.Concat(v.Q.Coeffs[:g.MaxLevel()+1], v.P.Coeffs[:g.Auxiliary()]))
		}
		k.Set(d, narrow(rows[d][0][0]), narrow(rows[d][0][1]))
	}
	return k
}

func TestPointwiseEqualsLattigo(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		w := x.NewWorkspace()
		for l := 0; l <= x.MaxLevel(); l += 3 {
			for _, extreme := range []bool{false, true} {
				a, b, c := x.random(l, extreme), x.random(l, extreme), x.random(l, false)
				r := x.params.RingQ().AtLevel(l)
				want := r.NewPoly()
				got := x.NewPoly(l)
				x.Add(got, a, b)
				r.Add(x.wide(a), x.wide(b), want)
				x.same(t, "sum", got, want)
				x.Sub(got, a, b)
				r.Sub(x.wide(a), x.wide(b), want)
				x.same(t, "difference", got, want)
				f := x.NewPoly(l)
				Copy(f, b)
				x.Factor(f)
				x.Multiply(got, a, f)
				r.MulCoeffsBarrett(x.wide(a), x.wide(b), want)
				x.same(t, "product", got, want)
				Copy(got, c)
				x.MultiplyAdd(got, a, f)
				r.Add(want, x.wide(c), want)
				x.same(t, "sum of products", got, want)
				Copy(got, a)
				x.Inverse(got)
				r.INTT(x.wide(a), want)
				x.same(t, "inverse", got, want)
				x.Forward(got)
				x.same(t, "transform", got, x.wide(a))
				for _, f := range []float64{-1, 3, 1<<52 + 1, -math.Ldexp(1.25, 61)} {
					i, _ := new(big.Float).SetFloat64(f).Int(nil)
					x.Scale(got, a, f)
					r.MulScalarBigint(x.wide(a), i, want)
					x.same(t, "multiple", got, want)
					pair, of := [2]Poly{got, x.NewPoly(l)}, [2]Poly{a, b}
					w.Multiple(&pair, &of, f, false)
					x.same(t, "multiple of a pair", got, want)
					Copy(got, c)
					w.Multiple(&pair, &of, f, true)
					r.Add(want, x.wide(c), want)
					x.same(t, "sum of multiples", got, want)
					r.MulScalarBigint(x.wide(b), i.Add(i, i), want)
					x.same(t, "the other half", pair[1], want)
					i, _ = new(big.Float).SetFloat64(f).Int(nil)
					Copy(got, a)
					x.AddConstant(got, f)
					r.AddScalarBigint(x.wide(a), i, want)
					x.same(t, "constant", got, want)
				}
			}
		}
	})
}

func TestLiftEqualsLattigo(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		r := x.params.RingQ()
		values := make([]int64, x.n)
		want := r.NewPoly()
		for i := range values {
			values[i] = x.rng.Int64N(1<<56) - 1<<55
			if i < 4 {
				values[i] = []int64{0, -1, 1<<55 - 1, -1 << 55}[i]
			}
			for j, s := range r.SubRings {
				want.Coeffs[j][i] = new(big.Int).Mod(big.NewInt(values[i]), new(big.Int).SetUint64(s.Modulus)).Uint64()
			}
		}
		r.NTT(want, want)
		got := x.NewPoly(x.MaxLevel())
		x.NewWorkspace().Lift(got, values)
		x.same(t, "integers", got, want)
		x.same(t, "integers of a chain", x.Chain.Lift(values, x.MaxLevel()), want)

		a, s := x.random(x.MaxLevel(), false), x.random(x.MaxLevel(), true)
		r.MulCoeffsMontgomeryThenSub(x.wide(a), x.wide(s), want)
		for j, row := range got {
			x.Encrypt(j, row, values, a[j], s[j])
		}
		x.same(t, "integers minus a product", got, want)
	})
}

// TestRescaleEqualsLattigo: both round to the nearest integer.
func TestRescaleEqualsLattigo(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		w := x.NewWorkspace()
		for l := 1; l <= x.MaxLevel(); l++ {
			for _, extreme := range []bool{false, true} {
				a := [2]Poly{x.random(l, extreme), x.random(l, false)}
				dst := [2]Poly{x.NewPoly(l - 1), x.NewPoly(l - 1)}
				w.Rescale(x.NewRescaling(l), &a, &dst)
				for h := range a {
					want := ring.NewPoly(x.n, l-1)
					x.params.RingQ().AtLevel(l).DivRoundByLastModulusNTT(x.wide(a[h]), want)
					x.same(t, "rescaled", dst[h], want)
				}
			}
		}
	})
}

// TestFinishAgreesWithLattigo compares the product of two ciphertexts, relinearised
// and rescaled, with Lattigo's exact product under the secret: what is left is a
// rounding of c0 and of c1 times the secret.
func TestFinishAgreesWithLattigo(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		_, key := x.relinKey()
		w := x.NewWorkspace()
		rounding := math.Sqrt((1 + 4.0/3*float64(x.n)) / 12)
		for l := 1; l <= x.MaxLevel(); l++ {
			r := x.params.RingQ().AtLevel(l)
			for _, times := range []int{1, 2, -1} {
				a, b := [2]Poly{x.random(l, false), x.random(l, times == 2)}, [2]Poly{x.random(l, false), x.random(l, false)}
				w.Product(&a, &b, times)
				w.ProductAdd(&b, &b, 1)
				w.AddConstant(12345)
				w.AddScaled(&a, -777)
				dst := [2]Poly{x.NewPoly(l - 1), x.NewPoly(l - 1)}
				w.Finish(l, key, &dst)
				// The phase of the unfinished product is the same combination of phases.
				pa, pb := x.phase(x.wide(a[0]), x.wide(a[1])), x.phase(x.wide(b[0]), x.wide(b[1]))
				r.NTT(pa, pa)
				r.NTT(pb, pb)
				m, t2 := r.NewPoly(), r.NewPoly()
				r.MulCoeffsBarrett(pa, pb, m)
				r.MulScalarBigint(m, big.NewInt(int64(times)), m)
				r.MulCoeffsBarrett(pb, pb, t2)
				r.Add(m, t2, m)
				r.MulScalarBigint(pa, big.NewInt(-777), t2)
				r.Add(m, t2, m)
				r.AddScalar(m, 12345, m)
				want := ring.NewPoly(x.n, l-1)
				r.DivRoundByLastModulusNTT(m, want)
				x.params.RingQ().AtLevel(l-1).INTT(want, want)
				if d := x.distance(x.phase(x.wide(dst[0]), x.wide(dst[1])), want); d > 1.2*rounding {
					t.Errorf("level %d, times %d: error of deviation %.1f, rounding alone %.1f", l, times, d, rounding)
				}
				full := [2]Poly{x.NewPoly(l), x.NewPoly(l)}
				w.relinearise(l, key, &full)
				r.INTT(m, m)
				// Without the division by a level's prime the key's noise stays: 3.2 D/P for digits D.
				aux := len(x.params.P())
				digit := x.logQ(min(aux-1, l))
				noise := 3.2 * math.Sqrt(4.0/3*float64(x.n)*float64(l+1)) * math.Exp2(digit-x.logP(aux))
				if d := x.distance(x.phase(x.wide(full[0]), x.wide(full[1])), m); d > 1.5*rounding+noise {
					t.Errorf("level %d: relinearised with an error of deviation %.1f, at most %.1f", l, d, 1.5*rounding+noise)
				}
			}
		}
	})
}

// logP is log2 of the product of the first auxiliary primes.
func (x *fixture) logP(n int) (s float64) {
	for _, p := range x.params.P()[:n] {
		s += math.Log2(float64(p))
	}
	return s
}

// TestSwitchAgreesWithLattigo rotates with Lattigo's key and evaluator, and with
// ours.
func TestSwitchAgreesWithLattigo(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		element := x.params.GaloisElement(5)
		gk := x.kgen.GenGaloisKeyNew(element, x.sk)
		aux := len(x.params.P())
		key := x.keyOf(x.NewGadget(aux, aux, aux, x.MaxLevel()), gk.Value)
		eval := rlwe.NewEvaluator(x.params, rlwe.NewMemEvaluationKeySet(nil, gk))
		w := x.NewWorkspace()
		index, err := ring.AutomorphismNTTIndex(x.n, uint64(x.params.NthRoot()), element)
		if err != nil {
			t.Fatal(err)
		}
		turn := make([]uint32, x.n)
		for i := range turn {
			turn[i] = uint32(index[i])
		}
		for l := 0; l <= x.MaxLevel(); l += 2 {
			c0, c1 := x.random(l, false), x.random(l, false)
			in := rlwe.NewCiphertext(x.params, 1, l)
			in.IsNTT = true
			in.Value[0], in.Value[1] = x.wide(c0), x.wide(c1)
			out := rlwe.NewCiphertext(x.params, 1, l)
			out.IsNTT = true
			if err := eval.Automorphism(in, element, out); err != nil {
				t.Fatal(err)
			}
			turned := [2]Poly{x.NewPoly(l), x.NewPoly(l)}
			w.Rotate(l, key, &[2]Poly{c0, c1}, turn, &turned)
			got := x.phase(x.wide(turned[0]), x.wide(turned[1]))
			digit := x.logQ(min(aux-1, l))
			limit := 3*math.Sqrt(float64(x.n)) + 6.4*math.Sqrt(4.0/3*float64(x.n)*float64(l+1))*math.Exp2(digit-x.logP(aux))
			if d := x.distance(got, x.phase(out.Value[0], out.Value[1])); d > limit {
				t.Errorf("level %d: a distance of %.1f from Lattigo's rotation, at most %.1f", l, d, limit)
			}
		}
	})
}

// switched sets dst to the product of x with key, divided by P: a rotation of (0, x) by nothing.
func switched(w *Workspace, l int, key *Key, x Poly, dst *[2]Poly) {
	a, stay := [2]Poly{w.c.NewPoly(l), x}, make([]uint32, w.c.n)
	Clear(a[0])
	for i := range stay {
		stay[i] = uint32(i)
	}
	w.Rotate(l, key, &a, stay, dst)
}

// Relinearisation and switching for who needs coefficient 0 of the first half alone give what they give otherwise.
func TestHeadsAreCoefficientZero(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		_, key := x.relinKey()
		w := x.NewWorkspace()
		for l := 0; l <= min(x.MaxLevel(), key.g.maxLevel); l += 3 {
			a, whole := [2]Poly{x.random(l, l == 3), x.random(l, false)}, [2]Poly{x.NewPoly(l), x.NewPoly(l)}
			c1 := x.NewPoly(l)
			same := func(what string, got []uint32, coefficients bool) {
				t.Helper()
				x.Inverse(whole[0])
				if coefficients {
					x.Inverse(whole[1])
				}
				for j := range got {
					if got[j] != whole[0][j][0] {
						t.Errorf("%s, level %d: coefficient 0 modulo prime %d is %d, want %d", what, l, j, got[j], whole[0][j][0])
					}
				}
				if digest(c1) != digest(whole[1]) {
					t.Errorf("%s, level %d: the second half differs", what, l)
				}
			}
			w.Product(&a, &a, 1)
			w.relinearise(l, key, &whole)
			w.Product(&a, &a, 1)
			same("relinearisation", w.RelineariseHead(l, key, c1), false)
			Copy(c1, a[1])
			switched(w, l, key, a[1], &whole)
			same("switch", w.SwitchHead(l, key, c1, c1), true)
			want := x.Head(a[0])
			x.Inverse(a[0])
			for j := range want {
				if want[j] != a[0][j][0] {
					t.Errorf("level %d: the head modulo prime %d is %d, want %d", l, j, want[j], a[0][j][0])
				}
			}
		}
	})
}

// The coefficient 0 that is divided alone is rounded at random, with the quotient as its mean.
func TestHeadsAreRoundedAtRandom(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		const l, trials = 1, 400
		_, key := x.relinKey()
		w := x.NewWorkspace()
		a, c1 := [2]Poly{x.random(l, false), x.random(l, false)}, x.NewPoly(l)
		v := key.g.levels[l].out
		w.Product(&a, &a, 1)
		w.RelineariseHead(l, key, c1) // leaves the key's product
		nearest := w.headQuotient(v)
		w.Round(words{x.rng})
		var up, down float64
		for range trials {
			got := w.headQuotient(v)
			for j := range got {
				switch q := x.Q(j); (got[j] + q - nearest[j]) % q {
				case 0:
				case 1:
					up += 1.0 / trials / (l + 1)
				case q - 1:
					down += 1.0 / trials / (l + 1)
				default:
					t.Fatalf("modulo prime %d: %d beside %d", j, got[j], nearest[j])
				}
			}
		}
		// P times the quotient's distance from the nearest integer is the remainder.
		rest := new(big.Int)
		product := big.NewInt(1)
		for _, m := range x.params.P() {
			product.Mul(product, new(big.Int).SetUint64(m))
		}
		for i, m := range x.params.P() {
			part := new(big.Int).Div(product, new(big.Int).SetUint64(m))
			inverse := new(big.Int).ModInverse(part, new(big.Int).SetUint64(m))
			at := x.auxiliary(i)
			part.Mul(part, inverse).Mul(part, big.NewInt(int64(head(x.rings[at], w.k[0][at]))))
			rest.Add(rest, part)
		}
		rest.Mod(rest, product)
		if new(big.Int).Lsh(rest, 1).Cmp(product) > 0 {
			rest.Sub(rest, product)
		}
		ratio, _ := new(big.Rat).SetFrac(rest, product).Float64()
		if mean := up - down; math.Abs(mean-ratio) > 5*0.5/math.Sqrt(trials) || up*down > 0 {
			t.Errorf("up in %g, down in %g of roundings, want a mean of %g", up, down, ratio)
		}
	})
}

// TestDivisionRoundsToNearest divides by P and a level's prime, and by P alone,
// beside exact integers.
func TestDivisionRoundsToNearest(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		w := x.NewWorkspace()
		l := x.MaxLevel()
		var by []int
		for i := range x.params.P() {
			by = append(by, x.auxiliary(i))
		}
		for _, by := range [][]int{by, append(append([]int(nil), by...), l)} {
			d := x.newDivision(by, l)
			m, q := big.NewInt(1), big.NewInt(1)
			for _, i := range by {
				m.Mul(m, big.NewInt(int64(x.rings[i].Q())))
			}
			for j := range l {
				q.Mul(q, big.NewInt(int64(x.Q(j))))
			}
			rows := x.NewPoly(len(x.rings) - 1)
			quotients := make([]*big.Int, x.n)
			half := new(big.Int).Rsh(m, 1)
			for i := range x.n {
				quotients[i] = below(x.rng, q)
				remainder := below(x.rng, m)
				remainder.Sub(remainder, half)
				if i < 2 { // a 2^-20 of M from the largest remainders
					remainder.Sub(half, new(big.Int).Rsh(m, 20))
				}
				if i == 1 {
					remainder.Neg(remainder)
				}
				v := new(big.Int).Add(new(big.Int).Mul(quotients[i], m), remainder)
				for j, r := range x.rings {
					rows[j][i] = uint32(new(big.Int).Mod(v, big.NewInt(int64(r.Q()))).Uint64())
				}
			}
			for j, r := range x.rings {
				r.Forward(rows[j], rows[j])
			}
			got := x.NewPoly(l - 1)
			w.divide(d, &[2]Poly{rows, rows}, &[2]Poly{x.NewPoly(l - 1), got})
			x.Inverse(got)
			for j, row := range got {
				for i, v := range row {
					if want := new(big.Int).Mod(quotients[i], big.NewInt(int64(x.Q(j)))).Uint64(); uint64(v) != want {
						t.Fatalf("coefficient %d modulo prime %d is %d, want %d", i, j, v, want)
					}
				}
			}
		}
	})
}

// below draws an integer below m, but for a bias of 2^-64.
func below(rng *rand.Rand, m *big.Int) *big.Int {
	v := new(big.Int)
	for range m.BitLen()/64 + 2 {
		v.Add(v.Lsh(v, 64), new(big.Int).SetUint64(rng.Uint64()))
	}
	return v.Mod(v, m)
}

// TestWideWorkspaceGivesTheSameBits: prime by prime on a pool or on one worker.
func TestWideWorkspaceGivesTheSameBits(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		pool := engine.NewPool(3)
		defer pool.Close()
		_, key := x.relinKey()
		l := x.MaxLevel()
		a := [2]Poly{x.random(l, false), x.random(l, false)}
		integers := make([]int64, x.n)
		for i := range integers {
			integers[i] = x.rng.Int64N(1 << 40)
		}
		turn := make([]uint32, x.n)
		for i := range turn {
			turn[i] = uint32(i) ^ 5
		}
		var digests [2][32]byte
		memory := []*Workspace{x.NewWorkspace(), x.NewWorkspace(), x.NewWorkspace()}
		wide := NewWideWorkspace(context.Background(), pool, memory)
		for i, w := range []*Workspace{x.NewWorkspace(), wide} {
			w.Round(numbered{})
			w.Product(&a, &a, 2)
			dst, c1, lifted := [2]Poly{x.NewPoly(l - 1), x.NewPoly(l - 1)}, x.NewPoly(l), x.NewPoly(l)
			w.Finish(l, key, &dst)
			w.Multiple(&dst, &a, 12345, true)
			w.Product(&a, &a, 1)
			head := w.RelineariseHead(l, key, c1)
			w.Lift(lifted, integers)
			turned := [2]Poly{x.NewPoly(l), x.NewPoly(l)}
			w.Rotate(l, key, &a, turn, &turned)
			digests[i] = digest(dst[0], dst[1], c1, lifted, Poly{head}, turned[0], turned[1])
		}
		if digests[0] != digests[1] {
			t.Error("a workspace on three workers gives other bits than one on one")
		}
	})
}

// TestBothProductsAreThoseOfEach: two products that are finished at once have the bits of each on one worker.
func TestBothProductsAreThoseOfEach(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		_, key := x.relinKey()
		l := x.MaxLevel()
		a, b := [2]Poly{x.random(l, false), x.random(l, false)}, [2]Poly{x.random(l, false), x.random(l, false)}
		room := func() *[2]Poly { return &[2]Poly{x.NewPoly(l - 1), x.NewPoly(l - 1)} }
		begin := func(w, v *Workspace) {
			w.Product(&a, &b, 2)
			w.AddScaled(&b, 12345)
			v.Product(&b, &b, 1)
			v.AddConstant(1 << 40)
		}
		w, v, first, second := x.NewWorkspace(), x.NewWorkspace(), room(), room()
		w.Round(numbered{})
		w.Stage(7)
		v.Like(w, 8)
		begin(w, v)
		w.Finish(l, key, first)
		v.Finish(l, key, second)
		want := [2][32]byte{digest(first[0], first[1]), digest(second[0], second[1])}
		for _, workers := range []int{2, 3, 4} {
			pool := engine.NewPool(workers)
			defer pool.Close()
			var memory []*Workspace
			for range workers {
				memory = append(memory, x.NewWorkspace())
			}
			w := NewWideWorkspace(context.Background(), pool, memory)
			v := w.Twin(memory[1])
			w.Round(numbered{})
			for range 2 { // the second time in memory that has been used
				w.Stage(7)
				v.Like(w, 8)
				begin(w, v)
				first, second := room(), room()
				w.FinishBoth(l, key, first, v, second)
				if got := [2][32]byte{digest(first[0], first[1]), digest(second[0], second[1])}; got != want {
					t.Errorf("%d workers give other bits", workers)
				}
			}
		}
	})
}

// TestRowsStayWithTheirWorker: of any number of rows a worker's run in a pool's region has those of its remainder.
func TestRowsStayWithTheirWorker(t *testing.T) {
	for workers := 1; workers <= 4; workers++ {
		for n := 1; n <= 20; n++ {
			i := 0
			for w := range workers {
				want := n - 1 - ((n-1-w)%workers+workers)%workers // the last one
				for run := (n - w + workers - 1) / workers; run > 0; run, i, want = run-1, i+1, want-workers {
					if got := place(i, n, workers); got != want {
						t.Fatalf("number %d of %d rows on %d workers is row %d, want %d", i, n, workers, got, want)
					}
				}
			}
		}
	}
}

// numbered is a dither whose words follow from their number alone, as those of a party's randomness do.
type numbered struct{}

func (numbered) Words(index uint64, dst []uint32) {
	words{rand.New(rand.NewPCG(index, 1))}.Words(index, dst)
}

func digest(ps ...Poly) [32]byte {
	h := sha256.New()
	for _, p := range ps {
		for _, row := range p {
			binary.Write(h, binary.LittleEndian, row)
		}
	}
	return [32]byte(h.Sum(nil))
}

// TestGolden: every processor and instruction set gives these words.
func TestGolden(t *testing.T) {
	primes := testPrimes(t, 30, 30, 29, 29, 29, 29, 30, 30)
	c, err := NewChain(ntt.ConjugateInvariant, 11, primes[:6], primes[6:])
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(11, 12))
	rows := func(n, from int) [][]uint64 {
		out := make([][]uint64, n)
		for j := range out {
			out[j] = make([]uint64, c.n)
			for i := range out[j] {
				out[j][i] = rng.Uint64N(primes[from+j])
			}
		}
		return out
	}
	g := c.NewGadget(1, 2, 2, 5)
	key := g.NewKey()
	for d := range g.Digits(5) {
		b := c.FromWide(slices.Concat(rows(6, 0), rows(2, 6)))
		key.Set(d, b, c.FromWide(slices.Concat(rows(6, 0), rows(2, 6))))
	}
	w := c.NewWorkspace()
	a, b := [2]Poly{c.FromWide(rows(6, 0)), c.FromWide(rows(6, 0))}, [2]Poly{c.NewPoly(4), c.NewPoly(4)}
	w.Product(&a, &a, -1)
	w.AddScaled(&a, 1e15)
	w.Finish(5, key, &b)
	d := [2]Poly{c.NewPoly(3), c.NewPoly(3)}
	w.Rescale(c.NewRescaling(4), &b, &d)
	e := [2]Poly{c.NewPoly(3), c.NewPoly(3)}
	switched(w, 3, key, d[1], &e)
	c.Inverse(e[0])
	const want = "397a6a409ab3f45dec8b5eaee59ece63dcf8c8fe87087c3336482229f9d68f97"
	if got := fmt.Sprintf("%x", digest(b[0], b[1], e[0], e[1])); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// logQ is log2 of the product of the first primes up to a level.
func (c *Chain) logQ(level int) float64 {
	var s float64
	for _, r := range c.rings[:level+1] {
		s += math.Log2(float64(r.Q()))
	}
	return s
}

// relinearise is Finish without the division by the level's prime; dst is of level
// l.
func (w *Workspace) relinearise(l int, key *Key, dst *[2]Poly) {
	d := key.g.levels[l].out
	w.inner(l, key, d, 0, w.C[2], w.C[0], w.C[1], w.row)
	w.quotients(d, 0, func(_, h, j int, rest []uint32) { w.quotient(d, j, dst[h][j], w.k[h][j], rest) })
}
