package synopsis

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels"
)

const testBits = 8

// gridRows returns n random points of [-1,1]^d on the grid 2^-testBits, corners
// and midpoints among them.
func gridRows(rng *rand.Rand, n, d int) []float32 {
	rows := make([]float32, n*d)
	for i := range rows {
		switch rng.IntN(8) {
		case 0:
			rows[i] = float32(rng.IntN(3) - 1)
		default:
			rows[i] = float32(rng.IntN(2<<testBits+1)-1<<testBits) / (1 << testBits)
		}
	}
	return rows
}

func packed(rows []float32, d int) *kernels.Panels {
	p := kernels.NewPanels(len(rows)/d, d)
	kernels.Pack(p, rows)
	return p
}

// TestMidpointPaths compares the bits of a path with the halving of a box.
func TestMidpointPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ d, bits, levels int }{{1, 1, 9}, {2, 2, 8}, {3, 3, 5}, {5, 3, 4}, {20, 3, 3}} {
		rows := gridRows(rng, 100, c.d)
		paths, err := MidpointPaths(context.Background(), nil, packed(rows, c.d), testBits, c.bits, c.levels)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			lo, hi := make([]float64, c.d), make([]float64, c.d)
			for h := range lo {
				lo[h], hi[h] = -1, 1
			}
			for l := range c.levels {
				digit := 0
				for b := range c.bits {
					h := (l*c.bits + b) % c.d
					middle := (lo[h] + hi[h]) / 2
					digit *= 2
					if float64(rows[i*c.d+h]) >= middle {
						lo[h] = middle
						digit++
					} else {
						hi[h] = middle
					}
				}
				if got := paths.digit(i, l); got != digit {
					t.Fatalf("d=%d: point %d has digit %d at level %d, want %d", c.d, i, got, l, digit)
				}
			}
		}
	}
}

// grow walks points down a midpoint trie with noise-free counts perturbed by
// jitter and returns the trie and the walker.
func grow(t *testing.T, r Runner, p *kernels.Panels, bits, levels int, jitter func(c int) int64) (*Trie,
	*Walker, [][]int64) {
	t.Helper()
	ctx := context.Background()
	paths, err := MidpointPaths(ctx, r, p, testBits, bits, levels)
	if err != nil {
		t.Fatal(err)
	}
	walker := NewWalker(paths)
	var exact [][]int64
	trie, err := Growing{Bits: bits, Levels: levels, Threshold: func(float64) float64 { return 0 },
		Count: func(_, cells int) ([]float64, float64, error) {
			counts := make([]int64, cells)
			if err := walker.Count(ctx, r, counts); err != nil {
				return nil, 0, err
			}
			exact = append(exact, counts)
			noisy := make([]float64, cells)
			for c := range counts {
				noisy[c] = float64(counts[c] + jitter(c))
			}
			return noisy, 4, nil
		}}.Grow(nil, walker)
	if err != nil {
		t.Fatal(err)
	}
	return trie, walker, exact
}

// TestTrie checks the counts against the leaves that records end in, the boxes
// against the records in them, and the consistency of the estimate.
func TestTrie(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	pool := engine.NewPool(2)
	defer pool.Close()
	for _, d := range []int{1, 2, 3, 5, 17} {
		n, bits := 40000, min(d, 3)
		rows := gridRows(rng, n, d)
		for i := range rows { // clustered, so that some cells stay closed
			if rng.IntN(4) > 0 {
				rows[i] = float32(int(rows[i]*16)) / 256
			}
		}
		p := packed(rows, d)
		noise := rand.New(rand.NewPCG(5, 6))
		trie, walker, exact := grow(t, pool, p, bits, 4, func(int) int64 { return int64(noise.IntN(9) - 4) })
		noise = rand.New(rand.NewPCG(5, 6))
		_, _, again := grow(t, nil, p, bits, 4, func(int) int64 { return int64(noise.IntN(9) - 4) })
		for l := range exact {
			for c := range exact[l] {
				if exact[l][c] != again[l][c] {
					t.Fatalf("d=%d: counts differ between one and two workers", d)
				}
			}
		}
		leaf := make([]int32, n)
		walker.leaves(leaf)
		for i, l := range leaf {
			if l < 0 || int(l) >= trie.Leaves() {
				t.Fatalf("record %d is in leaf %d of %d", i, l, trie.Leaves())
			}
		}
		trie.Estimate(float64(n))
		total := 0.0
		for _, w := range trie.leafCounts() {
			if w < 0 {
				t.Fatalf("leaf of weight %v", w)
			}
			total += w
		}
		if math.Abs(total-float64(n)) > 1e-6*float64(n) {
			t.Errorf("d=%d: leaves weigh %v, want %d", d, total, n)
		}
		for l := range trie.levels[1:] {
			child := trie.levels[l+1]
			for node, parent := range child.parent {
				sum := 0.0
				for c := node << bits; c < (node+1)<<bits; c++ {
					sum += child.estimate[c]
				}
				if want := trie.levels[l].estimate[parent]; math.Abs(sum-want) > 1e-6*(want+1) {
					t.Errorf("d=%d: children weigh %v, their parent %v", d, sum, want)
				}
			}
		}
	}
}

// TestBoxes checks with noise-free counts that every box holds exactly as many
// records as it weighs.
func TestBoxes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, d := range []int{1, 2, 3, 4} {
		n := 3000
		rows := gridRows(rng, n, d)
		trie, _, _ := grow(t, nil, packed(rows, d), min(d, 3), 3, func(int) int64 { return 0 })
		total := 0.0
		for _, b := range trie.Boxes(d) {
			inside := 0
			for i := range n {
				ok := true
				for h := range d {
					x := float64(rows[i*d+h])
					ok = ok && x >= b.Lo[h] && (x < b.Hi[h] || x == 1 && b.Hi[h] == 1)
				}
				if ok {
					inside++
				}
			}
			if float64(inside) != b.Weight {
				t.Fatalf("d=%d: box %v..%v holds %d records and weighs %v", d, b.Lo, b.Hi, inside, b.Weight)
			}
			total += b.Weight
		}
		if total != float64(n) {
			t.Errorf("d=%d: boxes weigh %v, want %d", d, total, n)
		}
	}
}

// TestCountSensitivity adds one record and compares the exact counts of every
// level: at most one cell changes, by 1.
func TestCountSensitivity(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for trial := range 20 {
		d := 1 + trial%4
		rows := gridRows(rng, 500, d)
		open := func(int) int64 { return 1 } // every cell stays open: the same trie for both
		_, _, before := grow(t, nil, packed(rows, d), min(d, 3), 3, open)
		extreme := make([]float32, d)
		for h := range extreme {
			extreme[h] = float32(2*rng.IntN(2) - 1)
		}
		_, _, after := grow(t, nil, packed(append(rows, extreme...), d), min(d, 3), 3, open)
		for l := range before {
			change := int64(0)
			for c := range before[l] {
				change += max(after[l][c]-before[l][c], before[l][c]-after[l][c])
			}
			if change != 1 {
				t.Errorf("level %d: one record changes the counts by %d in all, want 1", l, change)
			}
		}
	}
}

// TestProjectSimplex checks the optimality conditions: h = max(0, x + lambda v)
// for one lambda, and sum h = total.
func TestProjectSimplex(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 2000 {
		n := 1 + rng.IntN(8)
		x, v := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], v[i] = rng.NormFloat64()*10, 0.1+rng.Float64()
		}
		total := rng.Float64() * 20
		h := append([]float64(nil), x...)
		ProjectSimplex(h, v, total)
		sum, lambda := 0.0, math.NaN()
		for i := range h {
			sum += h[i]
			if h[i] > 0 {
				lambda = (h[i] - x[i]) / v[i]
			}
		}
		if math.Abs(sum-total) > 1e-9 {
			t.Fatalf("sum is %v, want %v", sum, total)
		}
		for i := range h {
			if want := max(0, x[i]+lambda*v[i]); math.Abs(h[i]-want) > 1e-9 {
				t.Fatalf("h[%d] = %v, want %v", i, h[i], want)
			}
		}
	}
	h := []float64{3, 4}
	if ProjectSimplex(h, []float64{1, 1}, -2); h[0] != 0 || h[1] != 0 {
		t.Errorf("projection on a negative total is %v, want zeros", h)
	}
}

func TestGrid(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for d := 1; d <= 4; d++ {
		rows := gridRows(rng, 2000, d)
		g := NewGrid(d, 200, 2, 32)
		if c := g.Cells(); c > 200 || g.Side < 32 && math.Pow(float64(g.Side+1), float64(d)) <= 200 {
			t.Errorf("d=%d: side %d for 200 cells", d, g.Side)
		}
		counts := make([]int64, g.Cells())
		if err := g.Count(context.Background(), nil, packed(rows, d), nil, counts); err != nil {
			t.Fatal(err)
		}
		for c, n := range counts {
			inside := int64(0)
			for i := range 2000 {
				ok, rest := true, c
				for h := d - 1; h >= 0; h-- {
					at, x := rest%g.Side, float64(rows[i*d+h])
					rest /= g.Side
					lo, hi := float64(2*at)/float64(g.Side)-1, float64(2*(at+1))/float64(g.Side)-1
					ok = ok && x >= lo && (x < hi || x == 1 && hi == 1)
				}
				if ok {
					inside++
				}
			}
			// A boundary that is no multiple of 2^-52 may be rounded to either side.
			if g.Side&(g.Side-1) == 0 && n != inside {
				t.Fatalf("d=%d: cell %d counts %d, holds %d", d, c, n, inside)
			}
		}
		sum := int64(0)
		for _, n := range counts {
			sum += n
		}
		if sum != 2000 {
			t.Errorf("d=%d: counts sum to %d, want 2000", d, sum)
		}
	}
}

func TestHyperplanePaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, d := range []int{2, 7, 100} {
		rows := gridRows(rng, 300, d)
		planes := NewHyperplanes(d, 20, rng)
		paths, err := HyperplanePaths(context.Background(), nil, packed(rows, d), planes)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			for l := range 20 {
				dot := 0.0
				for h := range d {
					dot += float64(planes.Normals[l*d+h]) * float64(rows[i*d+h])
				}
				if got := paths.digit(i, l) == 1; math.Abs(dot) > 1e-4 && got != (dot >= 0) {
					t.Fatalf("d=%d: bit %d of point %d is %v, product %v", d, l, i, got, dot)
				}
			}
		}
	}
}

func TestSpread(t *testing.T) {
	boxes := []Box{{Lo: []float64{-1, 0}, Hi: []float64{-0.5, 1}, Weight: 3},
		{Lo: []float64{0, 0}, Hi: []float64{1, 1}, Weight: 5}}
	w := Spread(boxes, 2, 3000)
	if w.Len() != 64 || math.Abs(w.Total()-8) > 1e-9 {
		t.Fatalf("%d points of weight %v, want 64 of 8", w.Len(), w.Total())
	}
	for b, box := range boxes {
		for h := range 2 {
			mean := 0.0
			for i := b * 32; i < (b+1)*32; i++ {
				x := w.Points[i*2+h]
				if x < box.Lo[h] || x > box.Hi[h] {
					t.Fatalf("point %v outside %v..%v", x, box.Lo[h], box.Hi[h])
				}
				mean += x / 32
			}
			if middle := (box.Lo[h] + box.Hi[h]) / 2; math.Abs(mean-middle) > 0.02*(box.Hi[h]-box.Lo[h]) {
				t.Errorf("mean %v, want the middle %v", mean, middle)
			}
		}
	}
}

func TestCubePaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	for _, d := range []int{1, 2, 5} {
		rows := gridRows(rng, 400, d)
		lo, side, levels := make([]float64, d), 1.5, 4
		for h := range lo {
			lo[h] = -1 + 0.5*rng.Float64()
		}
		paths, err := CubePaths(context.Background(), nil, packed(rows, d), lo, side, levels)
		if err != nil {
			t.Fatal(err)
		}
		counts := make([]int64, 1<<d)
		if err := NewWalker(paths).Count(context.Background(), nil, counts); err != nil {
			t.Fatal(err)
		}
		want := make([]int64, 1<<d)
		for i := range 400 {
			a, inside := append([]float64(nil), lo...), true
			for h := range d {
				x := float64(rows[i*d+h])
				inside = inside && x >= lo[h] && x < lo[h]+side
			}
			for l, s := 0, side; inside && l < levels; l++ {
				s /= 2
				digit := 0
				for h := range d {
					digit *= 2
					if float64(rows[i*d+h]) >= a[h]+s {
						a[h] += s
						digit++
					}
				}
				if got := paths.digit(i, l); got != digit {
					t.Fatalf("d=%d: point %d has digit %d at level %d, want %d", d, i, got, l, digit)
				}
				if l == 0 {
					want[digit]++
				}
			}
		}
		for c := range want {
			if counts[c] != want[c] {
				t.Errorf("d=%d: cell %d counts %d, want %d", d, c, counts[c], want[c])
			}
		}
	}
}

// TestSignificant keeps what stands above the noise, and everything where a
// cluster does not.
func TestSignificant(t *testing.T) {
	boxes := []Box{{Weight: 3}, {Weight: 30}, {Weight: 9.9}, {Weight: 10}}
	if kept := Significant(boxes, 10, 100); len(kept) != 2 || kept[0].Weight != 30 || kept[1].Weight != 10 {
		t.Errorf("kept %v", kept)
	}
	if boxes[0].Weight != 3 {
		t.Error("the leaves themselves were changed")
	}
	if kept := Significant(boxes, 10, 49); len(kept) != 4 {
		t.Errorf("%d leaves kept at a weak signal, want all", len(kept))
	}
	if kept := Significant(boxes, 40, 1000); len(kept) != 4 {
		t.Errorf("%d leaves kept where none is above the noise, want all", len(kept))
	}
}

// TestGathered: light cells are gathered in the smallest node where they are heavy together, or in the whole box.
func TestGathered(t *testing.T) {
	trie := NewTrie(2)
	trie.Add([]float64{100, 8, 2, 0}, 16, 0)
	trie.Add([]float64{96, 2, 2, 0, 2, 2, 2, 2, 1, 1, 0, 0}, 16, math.Inf(1))
	trie.Estimate(110)
	got, want := trie.GatheredAlong(2, InTurn(2, 4)), []Box{
		{Lo: []float64{-1, -1}, Hi: []float64{0, 0}, Weight: 4},
		{Lo: []float64{-1, 0}, Hi: []float64{0, 1}, Weight: 8},
		{Lo: []float64{-1, -1}, Hi: []float64{-0.5, -0.5}, Weight: 96},
		{Lo: []float64{-1, -1}, Hi: []float64{1, 1}, Weight: 2},
	}
	same := func(a, b Box) bool {
		return slices.Equal(a.Lo, b.Lo) && slices.Equal(a.Hi, b.Hi) && math.Abs(a.Weight-b.Weight) < 1e-9
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("%v, want %v", got, want)
	}
}
