package kernels

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The tests of the distribution draw digests and keys from fixed seeds, so their outcome is
// determined. For fresh ones each fails with probability below 1e-7: thresholds are
// six standard errors, and 2.9 for Kolmogorov and Smirnov's sqrt(N) D.

// draws gives registers of n records under fresh keys and digests, complete.
type draws struct {
	rng     *rand.Rand
	scratch ArrivalScratch
}

func newDraws(seed uint64) *draws { return &draws{rng: rand.New(rand.NewPCG(seed, 77))} }

func (d *draws) block() (b [16]byte) {
	binary.LittleEndian.PutUint64(b[:8], d.rng.Uint64())
	binary.LittleEndian.PutUint64(b[8:], d.rng.Uint64())
	return b
}

// complete generates the arrivals of a set until every register has one.
func (d *draws) complete(key *ArrivalKey, digests [][16]byte, rate float64, registers []float64) {
	for i := range registers {
		registers[i] = math.Inf(1)
	}
	limit := 1 / (rate * float64(len(digests)))
	for Arrivals(key, digests, rate, limit, limit, registers, nil, &d.scratch); slices.Max(registers) > limit; {
		limit *= 2
		Arrivals(key, digests, rate, limit, limit, registers, nil, &d.scratch)
	}
}

// TestRegistersAreExponential: over keys, each register of n records is exponential
// with rate n, by Kolmogorov and Smirnov, and so are all registers together.
func TestRegistersAreExponential(t *testing.T) {
	for _, n := range []int{1, 2, 3, 100} {
		const m, keys = 8, 4000
		d := newDraws(uint64(n))
		reg := make([]float64, m)
		all, each := make([]float64, 0, m*keys), make([][]float64, m)
		digests := make([][16]byte, n)
		for range keys {
			for i := range digests {
				digests[i] = d.block()
			}
			d.complete(NewArrivalKey(d.block()), digests, 2.5, reg)
			for j, x := range reg {
				u := -math.Expm1(-x * 2.5 * float64(n))
				all, each[j] = append(all, u), append(each[j], u)
			}
		}
		for j, u := range append(each, all) {
			if k := kolmogorov(u); k > 2.9 {
				t.Errorf("n=%d, register %d (%d for all): sqrt(N) D is %.3f", n, j, m, k)
			}
		}
	}
	d := newDraws(5)
	const m = 4096
	reg, u, digests := make([]float64, m), []float64(nil), make([][16]byte, 1000)
	key := NewArrivalKey(d.block())
	for range 20 {
		for i := range digests {
			digests[i] = d.block()
		}
		d.complete(key, digests, 1, reg)
		for _, x := range reg {
			u = append(u, -math.Expm1(-x*1000))
		}
	}
	if k := kolmogorov(u); k > 2.9 {
		t.Errorf("n=1000, %d registers under one key: sqrt(N) D is %.3f", m, k)
	}
}

// kolmogorov returns sqrt(N) sup |F_N(u) - u|.
func kolmogorov(u []float64) float64 {
	slices.Sort(u)
	worst, n := 0.0, float64(len(u))
	for i, x := range u {
		worst = max(worst, math.Abs(x-float64(i)/n), math.Abs(x-float64(i+1)/n))
	}
	return worst * math.Sqrt(n)
}

// TestRegistersAreIndependent: pairs of registers have no covariance, and the
// quartiles of four registers fall into each of 256 cells alike.
func TestRegistersAreIndependent(t *testing.T) {
	for _, n := range []int{1, 2, 3, 100} {
		const m = 4
		trials := 100_000
		if n == 100 {
			trials = 20_000
		}
		d := newDraws(uint64(100 + n))
		reg, digests := make([]float64, m), make([][16]byte, n)
		var key *ArrivalKey
		var cells [256]float64
		var products [m][m]float64
		for trial := range trials {
			if trial%100 == 0 {
				key = NewArrivalKey(d.block())
			}
			for i := range digests {
				digests[i] = d.block()
			}
			d.complete(key, digests, 1, reg)
			cell := 0
			for i, x := range reg {
				cell = 4*cell + min(int(-4*math.Expm1(-x*float64(n))), 3)
				for j, y := range reg[:i] {
					products[i][j] += (x*float64(n) - 1) * (y*float64(n) - 1)
				}
			}
			cells[cell]++
		}
		chi, expected := 0.0, float64(trials)/256
		for _, c := range cells {
			chi += (c - expected) * (c - expected) / expected
		}
		if z := (chi - 255) / math.Sqrt(2*255); math.Abs(z) > 6.5 { // its right tail is heavier than the normal's
			t.Errorf("n=%d: chi-square of four registers is %.1f on 255 degrees", n, chi)
		}
		for i := range m {
			for j := range i {
				if z := products[i][j] / math.Sqrt(float64(trials)); math.Abs(z) > 6 {
					t.Errorf("n=%d: registers %d and %d have a covariance of %.1f standard errors", n, i, j, z)
				}
			}
		}
	}
}

// matches counts the equal registers of two sets of 300 records, 100 in common.
func matches(d *draws, trials, m int, registers func(digests [][16]byte, dst []float64)) (mean, variance float64) {
	a, b, digests := make([]float64, m), make([]float64, m), make([][16]byte, 500)
	sum, squares := 0.0, 0.0
	for range trials {
		for i := range digests {
			digests[i] = d.block()
		}
		registers(digests[:300], a)
		registers(digests[200:], b)
		equal := 0.0
		for j := range a {
			if a[j] == b[j] {
				equal++
			}
		}
		sum, squares = sum+equal, squares+equal*equal
	}
	mean = sum / float64(trials)
	return mean, squares/float64(trials) - mean*mean
}

// TestMatchesAreBinomial: the number of registers on which two sets agree is
// binomial with their Jaccard index, as it is with one hash for each record and
// register, from which the construction comes.
func TestMatchesAreBinomial(t *testing.T) {
	const m, trials, p = 256, 3000, 100.0 / 500
	check := func(name string, trials int, mean, variance float64) {
		n := float64(trials)
		if z := (mean - m*p) / math.Sqrt(m*p*(1-p)/n); math.Abs(z) > 6 {
			t.Errorf("%s: mean of matches %v, want %v", name, mean, m*p)
		}
		if z := (variance/(m*p*(1-p)) - 1) / math.Sqrt(2/n); math.Abs(z) > 6 {
			t.Errorf("%s: variance of matches %v, want %v", name, variance, m*p*(1-p))
		}
	}
	d := newDraws(9)
	key := NewArrivalKey(d.block())
	mean, variance := matches(d, trials, m, func(digests [][16]byte, dst []float64) { d.complete(key, digests, 1, dst) })
	check("arrivals", trials, mean, variance)

	const few = 40 // of the form that needs a hash for each register
	keys := make([]*ArrivalKey, m)
	for j := range keys {
		keys[j] = NewArrivalKey(d.block())
	}
	mean, variance = matches(d, few, m, func(digests [][16]byte, dst []float64) {
		for j, key := range keys {
			dst[j] = math.Inf(1)
			for _, x := range digests {
				hash, _ := encryptBlock(aesTable(), &key.schedule, binary.LittleEndian.Uint64(x[:8]),
					binary.LittleEndian.Uint64(x[8:]))
				dst[j] = min(dst[j], -logUniform(hash))
			}
		}
	})
	check("one hash for each register", few, mean, variance)
}

// TestArrivalsDependOnEveryBit: one bit of the key, or of a digest but the last 4
// bytes, changes all registers; so does one of those 4, which shift the count.
func TestArrivalsDependOnEveryBit(t *testing.T) {
	const m = 50
	d := newDraws(13)
	key, digest := d.block(), d.block()
	want, got := make([]float64, m), make([]float64, m)
	d.complete(NewArrivalKey(key), [][16]byte{digest}, 1, want)
	for bit := range 256 {
		k, x := key, digest
		if bit < 128 {
			k[bit/8] ^= 1 << (bit % 8)
		} else {
			x[bit/8-16] ^= 1 << (bit % 8)
		}
		d.complete(NewArrivalKey(k), [][16]byte{x}, 1, got)
		for j := range got {
			if got[j] == want[j] {
				t.Fatalf("bit %d of key and digest leaves register %d", bit, j)
			}
		}
	}
}
