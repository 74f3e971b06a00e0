package kernels

import (
	"crypto/aes"
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// gridValue draws a multiple of 2^-f in [-1, 1].
func gridValue(rng *rand.Rand, f int) float32 {
	n := int64(1) << f
	return float32(math.Ldexp(float64(rng.Int64N(2*n+1)-n), -f))
}

// gridRows draws n*d grid values.
func gridRows(rng *rand.Rand, n, d, f int) []float32 {
	rows := make([]float32, n*d)
	for i := range rows {
		rows[i] = gridValue(rng, f)
	}
	return rows
}

// packed packs rows into fresh panels.
func packed(rows []float32, n, d int) *Panels {
	p := NewPanels(n, d)
	Pack(p, rows)
	return p
}

func TestPanelsKeepPoints(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 15, 16, 17, 40} {
		for _, d := range []int{1, 2, 7, 16, 33} {
			rows := gridRows(rng, n, d, 16)
			p := packed(rows, n, d)
			for i := range n {
				if got := p.Point(i, nil); !slices.Equal(got, rows[i*d:(i+1)*d]) {
					t.Fatalf("n=%d d=%d: point %d is %v, want %v", n, d, i, got, rows[i*d:(i+1)*d])
				}
			}
			other := NewPanels(n, d)
			for i := range n {
				other.Set(i, rows[i*d:(i+1)*d])
			}
			if !slices.Equal(other.Data, p.Data) {
				t.Fatalf("n=%d d=%d: Set and Pack differ", n, d)
			}
		}
	}
	rows := gridRows(rng, 50, 3, 16)
	view := packed(rows, 50, 3).Slice(16, 45)
	if got := view.Point(28, nil); !slices.Equal(got, rows[44*3:45*3]) {
		t.Errorf("point 28 of the view [16:45] is %v, want %v", got, rows[44*3:45*3])
	}
}

// TestAssignNearest compares with float64 brute force: the winner may differ
// only where the distances agree within the rounding of the float32 forms.
func TestAssignNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, d := range []int{1, 2, 3, 5, 8, 15, 16, 17, 40, 130} {
		for _, k := range []int{1, 2, 3, 12, 13, 31} {
			n := 37
			rows, centres := gridRows(rng, n, d, 16), gridRows(rng, k, d, 16)
			c := NewCentroids(k, d)
			c.Set(centres)
			labels := make([]uint16, n)
			dist, second := make([]float32, n), make([]float32, n)
			Assign2(*packed(rows, n, d), c, labels, dist, second)
			for i := range n {
				all := make([]float64, k)
				var size float64
				for a := range k {
					for j := range d {
						e := float64(rows[i*d+j]) - float64(centres[a*d+j])
						all[a] += e * e
					}
				}
				for j := range d {
					size += float64(rows[i*d+j]) * float64(rows[i*d+j])
				}
				sorted := slices.Clone(all)
				slices.Sort(sorted)
				tolerance := float64(d+2) * 0x1p-23 * (2*size + sorted[0] + 1)
				if all[labels[i]] > sorted[0]+tolerance {
					t.Fatalf("d=%d k=%d: point %d has label %d at distance %g, the nearest is at %g", d, k, i, labels[i],
						all[labels[i]], sorted[0])
				}
				if math.Abs(float64(dist[i])-sorted[0]) > tolerance {
					t.Fatalf("d=%d k=%d: point %d: distance %g, want %g", d, k, i, dist[i], sorted[0])
				}
				if k > 1 && math.Abs(float64(second[i])-sorted[1]) > tolerance {
					t.Fatalf("d=%d k=%d: point %d: second distance %g, want %g", d, k, i, second[i], sorted[1])
				}
				if k == 1 && !math.IsInf(float64(second[i]), 1) {
					t.Fatalf("d=%d k=1: second distance %g, want +Inf", d, second[i])
				}
			}
		}
	}
}

func TestTiesGoToTheSmallerIndex(t *testing.T) {
	for _, d := range []int{1, 2, 15, 16, 17} {
		rows := make([]float32, 20*d)
		centres := make([]float32, 30*d) // all equal to all points
		c := NewCentroids(30, d)
		c.Set(centres)
		labels := make([]uint16, 20)
		dist, second := make([]float32, 20), make([]float32, 20)
		Assign2(*packed(rows, 20, d), c, labels, dist, second)
		for i, l := range labels {
			if l != 0 || dist[i] != 0 || second[i] != 0 {
				t.Fatalf("d=%d: point %d has label %d, distances %g and %g, want zeros", d, i, l, dist[i], second[i])
			}
		}
	}
}

func TestAssignRadiusCuts(t *testing.T) {
	rows := []float32{0, 0.25, 0.5, 1}
	c := NewCentroids(1, 1)
	c.Set([]float32{0})
	labels, dist := make([]uint16, 4), make([]float32, 4)
	AssignRadius(*packed(rows, 4, 1), c, 0.25, labels, dist)
	if want := []uint16{0, 0, 0, 1}; !slices.Equal(labels, want) {
		t.Errorf("labels %v, want %v", labels, want)
	}
	if want := []float32{0, 0.0625, 0.25, 1}; !slices.Equal(dist, want) {
		t.Errorf("distances %v, want %v", dist, want)
	}
}

func TestAccumulateIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	for _, f := range []int{0, 8, 16, 22} {
		n, d, k := 3000, 3, 7
		rows := gridRows(rng, n, d, f)
		if f == 22 { // the largest sums
			for i := range rows {
				rows[i] = 1
			}
		}
		labels := make([]uint16, n)
		sums, counts := make([]int64, k*d), make([]int64, k)
		for i := range labels {
			labels[i] = uint16(rng.IntN(k + 1))
			if labels[i] == uint16(k) {
				continue
			}
			counts[labels[i]]++
			for j := range d {
				sums[int(labels[i])*d+j] += int64(math.Ldexp(float64(rows[i*d+j]), f))
			}
		}
		acc := NewAccumulator(k, d, f)
		Accumulate(*packed(rows, n, d), labels, acc)
		if !slices.Equal(acc.Sums, sums) || !slices.Equal(acc.Counts, counts) {
			t.Fatalf("f=%d: sums %v counts %v, want %v %v", f, acc.Sums, acc.Counts, sums, counts)
		}
		twice := NewAccumulator(k, d, f)
		twice.Merge(acc)
		twice.Merge(acc)
		for i := range sums {
			if twice.Sums[i] != 2*sums[i] {
				t.Fatalf("f=%d: merged sum %d is %d, want %d", f, i, twice.Sums[i], 2*sums[i])
			}
		}
		twice.Reset()
		if slices.Max(twice.Counts) != 0 {
			t.Fatal("Reset left counts")
		}
	}
}

func TestAssignAccumulateWeighted(t *testing.T) {
	p := packed([]float32{1, 0.5, -1, 0.25}, 4, 1)
	w := NewWeightedPoints(*p, []float64{2, 4, 0.5, 100})
	acc := NewWeightedAccumulator(2, 1)
	c := NewCentroids(2, 1)
	c.Set([]float32{0.75, -0.5})
	AssignAccumulateWeighted(w, c, nil, nil, nil, acc)
	if acc.Sums[0] != 29 || acc.Sums[1] != -0.5 || acc.Weights[0] != 106 || acc.Weights[1] != 0.5 ||
		acc.Cost != 2*0.0625+4*0.0625+0.5*0.25+100*0.25 {
		t.Errorf("sums %v weights %v cost %v", acc.Sums, acc.Weights, acc.Cost)
	}
}

func TestCostRowsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for _, shape := range [][3]int{{1, 1, 16}, {2, 15, 16}, {7, 9, 22}, {784, 3, 22}} {
		d, k, f := shape[0], shape[1], shape[2]
		n := 21
		rows, centres := gridRows(rng, n, d, f), gridRows(rng, k, d, f)
		for j := range d { // the largest cost there is
			rows[5*d+j], centres[j] = 1, -1
		}
		c := NewCentroids(k, d)
		c.Set(centres)
		dst := make([]int64, 13*k)
		CostRows(*packed(rows, n, d), 3, 16, c, f, dst)
		for i := 3; i < 16; i++ {
			for a := range k {
				want := new(big.Int)
				for j := range d {
					e := big.NewInt(int64(math.Ldexp(float64(rows[i*d+j])-float64(centres[a*d+j]), f)))
					want.Add(want, e.Mul(e, e))
				}
				if got := dst[(i-3)*k+a]; !want.IsInt64() || got != want.Int64() {
					t.Fatalf("d=%d k=%d f=%d: cost of point %d and centroid %d is %d, want %s", d, k, f, i, a, got, want)
				}
			}
		}
	}
}

// TestArrivalsAreAES generates the arrivals with the standard library's AES and
// logarithm, exhaustively up to a late time, and finds the same first ones.
func TestArrivalsAreAES(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	digests := randomBlocks(rng, 20)
	for i, key := range randomBlocks(rng, 3) {
		m := []int{1, 37, 300}[i]
		block, err := aes.NewCipher(key[:])
		if err != nil {
			t.Fatal(err)
		}
		want := registers(m)
		for _, digest := range digests {
			last := binary.LittleEndian.Uint32(digest[12:])
			for time, step := 0.0, uint32(0); time < 20; step++ {
				var out [16]byte
				binary.LittleEndian.PutUint32(digest[12:], last+step)
				block.Encrypt(out[:], digest[:])
				x, y := binary.LittleEndian.Uint64(out[:8]), binary.LittleEndian.Uint64(out[8:])
				time -= math.Log(float64(2*(x>>12)+1)*0x1p-53) / float64(m) / 2.5
				j, _ := bits.Mul64(y, uint64(m))
				want[j] = min(want[j], time)
			}
		}
		got := registers(m)
		Arrivals(NewArrivalKey(key), digests, 2.5, 5, 5, got, nil, new(ArrivalScratch))
		for j := range got {
			if math.Abs(got[j]-want[j]) > 1e-12*want[j] {
				t.Fatalf("%d registers: register %d is %v, want %v", m, j, got[j], want[j])
			}
		}
	}
}

// TestLogUniform compares with the standard library over all scales.
func TestLogUniform(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	worst := 0.0
	for i := range 300_000 {
		x := rng.Uint64() >> (i % 64)
		if i&1 == 1 {
			x = ^x
		}
		u := float64(2*(x>>12)+1) * 0x1p-53
		want := math.Log1p(u - 1)
		if u < 0.5 {
			want = math.Log(u)
		}
		worst = max(worst, math.Abs(logUniform(x)/want-1))
	}
	if worst > 0x1p-51 {
		t.Errorf("relative error %g, want at most 2^-51", worst)
	}
}

func TestAddUint64Wraps(t *testing.T) {
	a := []uint64{math.MaxUint64, 5}
	AddUint64(a, []uint64{2, 7})
	if a[0] != 1 || a[1] != 12 {
		t.Errorf("AddUint64: %v", a)
	}
}
