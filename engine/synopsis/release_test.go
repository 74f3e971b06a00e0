package synopsis

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/cohort-engine/cohort/engine"
)

// forestOf releases a forest without noise.
func forestOf(t *testing.T, r Runner, rows []float32, d, levels int, threshold float64) *Weighted {
	t.Helper()
	ctx, p := context.Background(), packed(rows, d)
	paths, err := HyperplanePaths(ctx, r, p, NewHyperplanes(d, levels, rand.New(rand.NewPCG(5, 5))))
	if err != nil {
		t.Fatal(err)
	}
	points, err := Forest{
		Threshold: threshold,
		Counts: func(_, cells int, w *Walker) ([]float64, float64, error) {
			counts := make([]int64, cells)
			err := w.Count(ctx, r, counts)
			return asFloats(counts, 1), 1, err
		},
		Sums: func(leaves int, w *Walker) ([]float64, error) {
			sums := make([]int64, leaves*d)
			err := w.LeafSums(ctx, r, p, testBits, 0, sums)
			return asFloats(sums, 1<<testBits), err
		},
	}.Release(paths, d)
	if err != nil {
		t.Fatal(err)
	}
	return points
}

func asFloats(x []int64, unit float64) []float64 {
	f := make([]float64, len(x))
	for i, v := range x {
		f[i] = float64(v) / unit
	}
	return f
}

// TestForest compares a forest without noise with the direct form: a record goes
// down while the records that share its signs so far are more than the threshold.
func TestForest(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	pool := engine.NewPool(3)
	defer pool.Close()
	for _, d := range []int{1, 4, 9} {
		const n, levels, threshold = 3000, 7, 100
		rows := gridRows(rng, n, d)
		paths, err := HyperplanePaths(context.Background(), nil, packed(rows, d),
			NewHyperplanes(d, levels, rand.New(rand.NewPCG(5, 5))))
		if err != nil {
			t.Fatal(err)
		}
		prefix := func(i, length int) [levels]int {
			key := [levels]int{}
			for l := range key {
				key[l] = -1
				if l < length {
					key[l] = paths.digit(i, l)
				}
			}
			return key
		}
		shared := map[[levels]int]int{}
		for i := range n {
			for length := range levels + 1 {
				shared[prefix(i, length)]++
			}
		}
		type leaf struct {
			count float64
			sum   [9]float64
		}
		leaves := map[[levels]int]*leaf{}
		for i := range n {
			length := 1
			for length < levels && shared[prefix(i, length)] > threshold {
				length++
			}
			key := prefix(i, length)
			if leaves[key] == nil {
				leaves[key] = &leaf{}
			}
			leaves[key].count++
			for h := range d {
				leaves[key].sum[h] += float64(rows[i*d+h])
			}
		}
		got := forestOf(t, pool, rows, d, levels, threshold)
		if got.Len() != len(leaves) {
			t.Fatalf("d=%d: %d leaves, directly %d", d, got.Len(), len(leaves))
		}
		for i, w := range got.Weights {
			found := false
			for _, l := range leaves {
				same := l.count == w
				for h := range d {
					same = same && math.Abs(l.sum[h]/l.count-got.Points[i*d+h]) < 1e-12
				}
				found = found || same
			}
			if !found {
				t.Errorf("d=%d: no leaf has %v records and the mean %v", d, w, got.Points[i*d:(i+1)*d])
			}
		}
	}
}

// TestLeafSumSensitivity adds one record to leaves that stay what they are: one
// leaf's sum changes, by the record.
func TestLeafSumSensitivity(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for trial := range 20 {
		const levels = 4
		d := 1 + trial%6
		rows := gridRows(rng, 300, d)
		extreme := make([]float32, d)
		for h := range extreme {
			extreme[h] = float32(2*rng.IntN(2) - 1)
		}
		planes := NewHyperplanes(d, levels, rng)
		sums := func(rows []float32) []int64 {
			ctx, p := context.Background(), packed(rows, d)
			paths, err := HyperplanePaths(ctx, nil, p, planes)
			if err != nil {
				t.Fatal(err)
			}
			w := NewWalker(paths)
			// All cells open, whatever the counts.
			trie, err := Growing{Bits: 1, Levels: levels, Threshold: func(float64) float64 { return -1 },
				Count: func(_, cells int) ([]float64, float64, error) {
					err := w.Count(ctx, nil, make([]int64, cells))
					return make([]float64, cells), 1, err
				}}.Grow(nil, w)
			if err != nil {
				t.Fatal(err)
			}
			sums := make([]int64, trie.Leaves()*d)
			if err := w.LeafSums(ctx, nil, p, testBits, 0, sums); err != nil {
				t.Fatal(err)
			}
			return sums
		}
		before, after := sums(rows), sums(append(rows, extreme...))
		changed := 0
		for leaf := range len(before) / d {
			square := 0.0
			for h := range d {
				x := float64(after[leaf*d+h]-before[leaf*d+h]) / (1 << testBits)
				if x != 0 && x != float64(extreme[h]) {
					t.Errorf("a coordinate of leaf %d changes by %v, the record has %v", leaf, x, extreme[h])
				}
				square += x * x
			}
			if square > 0 {
				changed++
				if square != float64(d) {
					t.Errorf("a leaf changes by the length %v, want the root of %d", math.Sqrt(square), d)
				}
			}
		}
		if changed != 1 {
			t.Errorf("one record changes the sums of %d leaves", changed)
		}
	}
}

// TestEstimateIsLeastSquares compares Estimate, where no leaf reaches 0, with the
// weighted least squares of all noisy counts of the tree under the total, solved
// directly.
func TestEstimateIsLeastSquares(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 26))
	for _, bits := range []int{1, 2, 3} {
		const levels, n = 3, 100000
		fan := 1 << bits
		leaves := fan * fan * fan
		variances := []float64{9, 25, 4}
		var noisy [][]float64
		trie, err := Growing{Bits: bits, Levels: levels, Threshold: func(float64) float64 { return 0 },
			Count: func(level, cells int) ([]float64, float64, error) {
				counts := make([]float64, cells)
				for c := range counts {
					counts[c] = float64(n/cells) + 5*rng.NormFloat64()
				}
				noisy = append(noisy, counts)
				return counts, variances[level], nil
			}}.Grow(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		// Minimise the squares under one linear constraint: the KKT system.
		a, b := mat.NewDense(leaves+1, leaves+1, nil), mat.NewVecDense(leaves+1, nil)
		for level, counts := range noisy {
			under := leaves / len(counts)
			for c, x := range counts {
				for i := c * under; i < (c+1)*under; i++ {
					b.SetVec(i, b.AtVec(i)+x/variances[level])
					for j := c * under; j < (c+1)*under; j++ {
						a.Set(i, j, a.At(i, j)+1/variances[level])
					}
				}
			}
		}
		for i := range leaves {
			a.Set(i, leaves, 1)
			a.Set(leaves, i, 1)
		}
		b.SetVec(leaves, n)
		var want mat.VecDense
		if err := want.SolveVec(a, b); err != nil {
			t.Fatal(err)
		}
		trie.Estimate(n)
		for i, got := range trie.leafCounts() {
			if math.Abs(got-want.AtVec(i)) > 1e-6*math.Abs(got) {
				t.Fatalf("bits %d: leaf %d is %v, least squares give %v", bits, i, got, want.AtVec(i))
			}
		}
	}
}

// digit returns the digit of record i at level l.
func (p *Paths) digit(i, l int) int {
	return int(p.code(i)>>(p.Bits*(p.Levels-1-l))) & (1<<p.Bits - 1)
}

// TestLeafSumsOfWeights: a leaf's sum has each record times its units, each coordinate truncated toward zero, so
// that no record moves it by more than its share of its own coordinates.
func TestLeafSumsOfWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	const d, n, unitBits = 3, 300, 16
	rows, units := make([]float32, n*d), make([]uint32, n)
	for i := range rows {
		rows[i] = float32(rng.IntN(2<<testBits+1)-1<<testBits) / (1 << testBits)
	}
	for i := range units {
		units[i] = uint32(rng.IntN(1<<unitBits + 1))
	}
	p := packed(rows, d)
	paths, err := HyperplanePaths(context.Background(), nil, p, NewHyperplanes(d, 1, rng))
	if err != nil {
		t.Fatal(err)
	}
	w := NewWalker(paths).Weigh(units)
	if err := w.Count(context.Background(), nil, make([]int64, 2)); err != nil {
		t.Fatal(err)
	}
	w.Descend([]int32{^0, ^1})
	got, want := make([]int64, 2*d), make([]int64, 2*d)
	if err := w.LeafSums(context.Background(), nil, p, testBits, unitBits, got); err != nil {
		t.Fatal(err)
	}
	leaf := make([]int32, n)
	w.leaves(leaf)
	for i, l := range leaf {
		for h, x := range rows[i*d : (i+1)*d] {
			exact := float64(x) * (1 << testBits) * float64(units[i]) / (1 << unitBits)
			want[int(l)*d+h] += int64(exact)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("sums %v, want %v", got, want)
	}
}
