package seeding

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cohort-engine/cohort/kernels"
)

// blobs draws n points around k centres of d coordinates on the grid 2^-16.
func blobs(rng *rand.Rand, n, d, k int, spread float64) kernels.Panels {
	centres := make([]float64, k*d)
	for i := range centres {
		centres[i] = rng.Float64()*1.6 - 0.8
	}
	rows := make([]float32, n*d)
	for i := range n {
		c := rng.IntN(k) * d
		for j := range d {
			x := min(max(centres[c+j]+spread*rng.NormFloat64(), -1), 1)
			rows[i*d+j] = float32(math.Trunc(x*(1<<16))) / (1 << 16)
		}
	}
	p := kernels.NewPanels(n, d)
	kernels.Pack(p, rows)
	return *p
}

func together(n int, task func(i int)) {
	var g sync.WaitGroup
	for i := range n {
		g.Go(func() { task(n - 1 - i) })
	}
	g.Wait()
}

// squared is the squared distance of two rows in float64.
func squared(a, b []float32) float64 {
	sum := 0.0
	for j := range a {
		t := float64(a[j]) - float64(b[j])
		sum += float64(t * t)
	}
	return sum
}

// TestPotentialsAreThoseOfTheCentres compares with plain sums, in both forms of
// distances, over chunks and tails.
func TestPotentialsAreThoseOfTheCentres(t *testing.T) {
	for _, d := range []int{1, 3, 15, 16, 40} {
		rng := rand.New(rand.NewPCG(1, uint64(d)))
		points := blobs(rng, 5003, d, 7, 0.05)
		p := NewPart(points, 5, nil)
		nearest := make([]float64, points.N)
		for i := range nearest {
			nearest[i] = math.Inf(1)
		}
		for range 6 {
			var rows []float32
			for range 5 {
				rows = append(rows, p.recordAt(rng.IntN(points.N), nil)...)
			}
			sums := p.Try(rows)
			for a := range 5 {
				want := 0.0
				for i := range nearest {
					want += min(nearest[i], squared(p.recordAt(i, nil), rows[a*d:(a+1)*d]))
				}
				if math.Abs(sums[a]-want) > 1e-5*want+1e-3 {
					t.Fatalf("d=%d: candidate %d gives %g, want %g", d, a, sums[a], want)
				}
			}
			p.Add(2)
			if p.Potential() != sums[2] {
				t.Fatalf("d=%d: the potential is %g, the candidate's was %g", d, p.Potential(), sums[2])
			}
			for i := range nearest {
				nearest[i] = min(nearest[i], squared(p.recordAt(i, nil), rows[2*d:3*d]))
			}
		}
	}
}

// TestFindDrawsBySquaredDistance checks every record: numbers on both sides of its
// share of the running sum find it.
func TestFindDrawsBySquaredDistance(t *testing.T) {
	points := blobs(rand.New(rand.NewPCG(2, 2)), 4500, 2, 5, 0.1)
	p := NewPart(points, 1, nil)
	p.Try(p.recordAt(17, nil))
	p.Add(0)
	sum := 0.0
	for c, more := range p.potential {
		lo, hi := p.chunk(c)
		at := sum
		for r := lo; r < hi; r++ {
			x := float64(p.nearest[r])
			if x > 1e-6 && at+x < sum+more {
				if got := p.find(at + x/2); got != r {
					t.Fatalf("%g of %g finds record %d, want %d", at+x/2, p.Potential(), got, r)
				}
			}
			at += x
		}
		sum += more
	}
	if r := p.find(p.Potential() * (1 - 1e-16)); r < 4400 {
		t.Errorf("the end of the sum finds record %d of 4500", r)
	}
}

// TestPlusPlusDependsOnSeedAlone runs tasks in order and all at once.
func TestPlusPlusDependsOnSeedAlone(t *testing.T) {
	for _, d := range []int{2, 24} {
		points := blobs(rand.New(rand.NewPCG(3, 1)), 6000, d, 9, 0.05)
		var first []float32
		for i, each := range []each{nil, together} {
			parts := []*Part{NewPart(points.Slice(0, 2608), 4, each), NewPart(points.Slice(2608, 6000), 4, each)}
			centres := PlusPlus(parts, 9, 4, rand.New(rand.NewPCG(5, 5)).Float64)
			if i == 0 {
				first = centres
			} else if !slices.Equal(first, centres) {
				t.Errorf("d=%d: the centres depend on how tasks run", d)
			}
		}
	}
}

// TestGreedyFindsEveryBlob: the blobs are so far apart that a start without one of
// them has a potential many times that of a start with all; with nine trials a step
// misses a blob that holds a share of the potential of at least 1/k, k <= 12, with
// probability (11/12)^9 < 1/2 at the last step alone, where that blob holds nearly
// all of it. At spread 2^-9 what the found blobs hold is below 1e-4 of a missing
// one's, so all trials miss it with probability below 1e-36.
func TestGreedyFindsEveryBlob(t *testing.T) {
	const n, k = 3000, 12
	for _, d := range []int{3, 32} {
		for seed := range uint64(5) {
			points := blobs(rand.New(rand.NewPCG(4, seed)), n, d, k, 0x1p-9)
			p := NewPart(points, 9, nil)
			centres := PlusPlus([]*Part{p}, k, 9, rand.New(rand.NewPCG(6, seed)).Float64)
			if len(centres) != k*d {
				t.Fatalf("%d numbers, want %d", len(centres), k*d)
			}
			if mean := p.Potential() / n; mean > 8*float64(d)*0x1p-18 {
				t.Errorf("d=%d seed %d: the mean squared distance is %g, that of the blobs %g", d, seed, mean,
					float64(d)*0x1p-18)
			}
		}
	}
}

func TestFewerRecordsThanCentres(t *testing.T) {
	for _, d := range []int{2, 20} {
		rows := make([]float32, 10*d)
		for i := range rows {
			rows[i] = float32(i/d%2) / 2
		}
		points := kernels.NewPanels(10, d)
		kernels.Pack(points, rows)
		centres := PlusPlus([]*Part{NewPart(*points, 3, nil)}, 5, 3, rand.New(rand.NewPCG(7, 7)).Float64)
		both := [2]bool{}
		for a := range 5 {
			both[int(centres[a*d]*2)] = true
		}
		if !both[0] || !both[1] {
			t.Errorf("d=%d: the centres %v leave out one of two places", d, centres)
		}
	}
}

func BenchmarkPlusPlus(b *testing.B) {
	const n, d, k = 20000, 64, 200
	points := blobs(rand.New(rand.NewPCG(1, 1)), n, d, k, 0.1)
	for b.Loop() {
		PlusPlus([]*Part{NewPart(points, Trials(k), nil)}, k, Trials(k), rand.New(rand.NewPCG(1, 2)).Float64)
	}
}
