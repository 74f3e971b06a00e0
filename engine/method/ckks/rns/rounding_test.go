package rns

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// words is a dither for tests.
type words struct{ *rand.Rand }

func (w words) Words(_ uint64, dst []uint32) {
	for i := range dst {
		dst[i] = w.Uint32()
	}
}

// centred returns the coefficients of a polynomial in the transform's domain, modulo the primes up to its level.
func (x *fixture) centred(p ring.Poly) []float64 {
	r := x.params.RingQ().AtLevel(p.Level())
	c := r.NewPoly()
	r.INTT(p, c)
	whole := make([]*big.Int, x.n)
	for i := range whole {
		whole[i] = new(big.Int)
	}
	r.PolyToBigintCentered(c, 1, whole)
	out := make([]float64, len(whole))
	for i, z := range whole {
		out[i], _ = new(big.Float).SetInt(z).Float64()
	}
	return out
}

// A division with a dither gives either of the two integers around the quotient, with the quotient as its mean:
// what it is off by does not depend on what is divided. To the nearest it does.
func TestDitheredDivisionHasTheQuotientAsItsMean(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		const trials = 60
		l := 2
		q := float64(x.Q(l))
		r := x.params.RingQ().AtLevel(l - 1)
		a := [2]Poly{x.random(l, false), x.random(l, false)}
		dst := [2]Poly{x.NewPoly(l - 1), x.NewPoly(l - 1)}
		squares := func(w *Workspace) float64 {
			mean := make([]float64, x.n)
			for range trials {
				w.Rescale(x.NewRescaling(l), &a, &dst)
				rest, times := r.NewPoly(), r.NewPoly()
				r.MulScalar(x.wide(dst[1]), uint64(q), times)
				r.Sub(times, ring.Poly{Coeffs: x.ToWide(a[1])[:l]}, rest)
				for i, z := range x.centred(rest) {
					if z = z / q; math.Abs(z) >= 1 {
						t.Fatalf("coefficient %d is off by %g", i, z)
					}
					mean[i] += z / trials
				}
			}
			var s float64
			for _, m := range mean {
				s += m * m
			}
			return s / float64(x.n)
		}
		w := x.NewWorkspace()
		nearest := squares(w)
		w.Round(words{x.rng})
		// A mean of trials roundings has 1/(6 trials) on average over uniform remainders, and deviates by a twentieth.
		if got := squares(w); got > 1.3/(6*trials) || nearest < 0.07 {
			t.Errorf("squares of mean errors: %g with a dither, want %g; %g to the nearest", got, 1.0/(6*trials), nearest)
		}
	})
}

// Random digits switch keys as the least ones do: what comes out is the same message, but for errors of the same size.
func TestDitheredDigitsSwitchKeys(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		_, key := x.relinKey()
		plain, random := x.NewWorkspace(), x.NewWorkspace()
		random.Round(words{x.rng})
		aux := len(x.params.P())
		for l := 1; l <= x.MaxLevel(); l += 2 {
			a, b := [2]Poly{x.random(l, false), x.random(l, false)}, [2]Poly{x.random(l, false), x.random(l, true)}
			var phases [2]ring.Poly
			for i, w := range []*Workspace{plain, random} {
				dst := [2]Poly{x.NewPoly(l), x.NewPoly(l)}
				w.Product(&a, &b, 1)
				w.relinearise(l, key, &dst)
				phases[i] = x.phase(x.wide(dst[0]), x.wide(dst[1]))
			}
			digit := x.logQ(min(aux-1, l)) - x.logP(aux)
			limit := 3*math.Sqrt(float64(x.n)) + 13*math.Sqrt(4.0/3*float64(x.n)*float64(l+1))*math.Exp2(digit)
			if d := x.distance(phases[0], phases[1]); d > limit || d == 0 {
				t.Errorf("level %d: the two differ by a deviation of %g, at most %g", l, d, limit)
			}
		}
	})
}

// What a relinearisation is off by has mean 0 with a dither, the digits' part in it too: digits of 60 bits over 48
// bits of auxiliary primes make it the most of it. A division by a level's prime hides that part: there it shows in
// the random words that are drawn.
func TestDitheredRelinearisationHasNoBias(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		if len(x.params.P()) != 2 {
			return
		}
		const trials, l = 40, 6
		_, key := x.relinKey()
		a := [2]Poly{x.random(l, false), x.random(l, false)}
		dst := [2]Poly{x.NewPoly(l), x.NewPoly(l)}
		r := x.params.RingQ().AtLevel(l)
		want := x.phase(x.wide(a[0]), x.wide(a[1]))
		r.NTT(want, want)
		r.MulCoeffsBarrett(want, want, want)
		r.INTT(want, want)
		w := x.NewWorkspace()
		// bias is the square of the mean error over the mean of its squares.
		bias := func() float64 {
			total, squares := r.NewPoly(), 0.0
			for range trials {
				w.Product(&a, &a, 1)
				w.relinearise(l, key, &dst)
				off := x.phase(x.wide(dst[0]), x.wide(dst[1]))
				r.Sub(off, want, off)
				r.Add(total, off, total)
				one := x.distance(off, r.NewPoly())
				squares += one * one / trials
			}
			mean := x.distance(total, r.NewPoly()) / trials
			return mean * mean / squares
		}
		if got := bias(); got < 0.99 {
			t.Errorf("without a dither the error's mean is %g of it", got)
		}
		drawn := &counted{words: words{x.rng}}
		w.Round(drawn)
		if got := bias(); got > 1.5/trials {
			t.Errorf("with a dither the error's mean has %g of its squares, want %g", got, 1.0/trials)
		}
		drawn.calls = 0
		w.Product(&a, &a, 1)
		w.Finish(l, key, &[2]Poly{dst[0][:l], dst[1][:l]})
		if want := key.g.Digits(l) + 2; drawn.calls != want {
			t.Errorf("a relinearisation with division draws %d polynomials of randomness, want %d", drawn.calls, want)
		}
	})
}

// counted counts the polynomials that words are drawn for.
type counted struct {
	words
	calls int
}

func (c *counted) Words(index uint64, dst []uint32) {
	c.calls++
	c.words.Words(index, dst)
}

// Workspaces number the polynomials of words that they draw from 0 on, whatever they drew before.
func TestWordsAreNumbered(t *testing.T) {
	fixtures(t, func(t *testing.T, x *fixture) {
		w, seen := x.NewWorkspace(), &numbers{}
		a, dst := [2]Poly{x.random(2, false), x.random(2, false)}, [2]Poly{x.NewPoly(1), x.NewPoly(1)}
		for range 2 {
			seen.all = nil
			w.Round(seen)
			w.Rescale(x.NewRescaling(2), &a, &dst)
			w.Rescale(x.NewRescaling(2), &a, &dst)
			if want := []uint64{0, 1, 2, 3}; !slices.Equal(seen.all, want) {
				t.Fatalf("words of polynomials %v are drawn, want %v", seen.all, want)
			}
		}
	})
}

// numbers lists the polynomials that words are drawn for.
type numbers struct{ all []uint64 }

func (n *numbers) Words(index uint64, dst []uint32) {
	n.all = append(n.all, index)
	clear(dst)
}
