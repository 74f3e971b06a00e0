package step

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/kernels"
)

// rounds goes through rounds of a history and beside it assigns all records anew:
// labels and sums have to be the same in every round. next sets the centroids of round t.
func rounds(t *testing.T, points *kernels.Panels, bits, k, count int,
	next func(t int, grid []float32, acc *kernels.Accumulator)) (carried, left int) {
	t.Helper()
	_, carried, left = history(t, points, bits, k, count, next)
	return carried, left
}

// history is rounds that returns the bounds, too.
func history(t *testing.T, points *kernels.Panels, bits, k, count int,
	next func(t int, grid []float32, acc *kernels.Accumulator)) (b *PointBounds, carried, left int) {
	t.Helper()
	d := points.D
	grid, centres := make([]float32, k*d), kernels.NewCentroids(k, d)
	acc, fresh := kernels.NewAccumulator(k, d, bits), kernels.NewAccumulator(k, d, bits)
	want := make([]uint16, points.N)
	next(0, grid, acc)
	centres.Set(grid)
	b = NewPointBounds(*points, centres, grid, DeltaShape{Records: points.N, Rounds: count, Workers: 1},
		func(n int, task func(i int)) {
			for i := range n {
				task(i)
			}
		})
	if b == nil {
		t.Fatal("there are no bounds")
	}
	for r := range count {
		if r > 0 {
			next(r, grid, acc)
			centres.Set(grid)
		}
		if b.Begin(); b.Carries() {
			carried++
			left += points.N - b.Reassign(0, 0, points.N, acc)
		} else {
			acc.Reset()
			kernels.AssignAccumulate(*points, centres, b.Labels(), acc)
		}
		b.End()
		fresh.Reset()
		kernels.AssignAccumulate(*points, centres, want, fresh)
		if !slices.Equal(want, b.Labels()) {
			t.Fatalf("round %d: labels differ", r+1)
		}
		if !slices.Equal(acc.Sums, fresh.Sums) || !slices.Equal(acc.Counts, fresh.Counts) {
			t.Fatalf("round %d: sums differ", r+1)
		}
	}
	return b, carried, left
}

// Centroids that jump about let no round leave records out; after many such rounds records have a narrow form, where
// the path in use has it.
func TestPointBoundsNarrow(t *testing.T) {
	const n, d, k, bits = 3000, 100, 10, 16
	rng := rand.New(rand.NewPCG(100, 1))
	points, row := kernels.NewPanels(n, d), make([]float32, d)
	for i := range n {
		for h := range row {
			row[h] = onGrid(rng.NormFloat64()/4, bits)
		}
		points.Set(i, row)
	}
	start := make([]float64, k*d)
	for i := range start {
		start[i] = rng.NormFloat64() / 4
	}
	b, carried, left := history(t, points, bits, k, 2*narrowAfter, func(_ int, grid []float32, _ *kernels.Accumulator) {
		for i := range grid {
			grid[i] = onGrid(start[i]+0.004*rng.NormFloat64(), bits)
		}
	})
	if carried < 3*narrowAfter/2 || left > 0 {
		t.Errorf("%d rounds go on from the one before, and leave %d records out", carried, left)
	}
	if isa := kernels.ISA(); b.points.Narrow() != (isa == "avx512vnni" || isa == "amx") {
		t.Errorf("on %s: a narrow form: %v", isa, b.points.Narrow())
	}
}

// onGrid truncates x to the grid of so many bits.
func onGrid(x float64, bits int) float32 {
	return float32(math.Ldexp(math.Trunc(math.Ldexp(min(max(x, -1), 1), bits)), -bits))
}

// Rounds of Lloyd's algorithm on blobs leave most records out, and jumps of centroids
// bring them back.
func TestPointBoundsOnBlobs(t *testing.T) {
	for _, c := range []struct{ n, d, k int }{{4000, 16, 40}, {3001, 40, 30}, {1500, 200, 50}} {
		rng := rand.New(rand.NewPCG(uint64(c.d), 1))
		centres := make([]float64, c.k*c.d)
		for i := range centres {
			centres[i] = rng.Float64() - 0.5
		}
		points := kernels.NewPanels(c.n, c.d)
		row := make([]float32, c.d)
		for i := range c.n {
			for h := range row {
				row[h] = onGrid(centres[i%c.k*c.d+h]+0.15*rng.NormFloat64(), 16)
			}
			points.Set(i, row)
		}
		carried, left := rounds(t, points, 16, c.k, 40, func(r int, grid []float32, acc *kernels.Accumulator) {
			for j := range c.k {
				for h := range c.d {
					switch {
					case r == 0:
						grid[j*c.d+h] = points.Data[j*29/16*16*c.d+h*16+j*29%16]
					case r == 20 && j == 1: // a jump
						grid[j*c.d+h] = onGrid(2*rng.NormFloat64(), 16)
					case acc.Counts[j] > 0:
						grid[j*c.d+h] = onGrid(float64(acc.Sums[j*c.d+h])/float64(acc.Counts[j])/(1<<16), 16)
					}
				}
			}
		})
		if carried < 10 || left < 5*c.n {
			t.Errorf("%+v: %d rounds go on from the one before and leave out %d records", c, carried, left)
		}
	}
}

// Records half-way between two centroids that creep by single steps of the grid: the
// scores of the two differ by less than rounding, so that a bound without the error of
// the scores, or one that forgets a move, would keep labels that the kernel changes.
func TestPointBoundsBetweenCentroids(t *testing.T) {
	const n, d, k = 2048, 48, 64
	rng := rand.New(rand.NewPCG(5, 5))
	start := make([]float32, k*d)
	for i := range start {
		start[i] = onGrid(2*rng.Float64()-1, 22)
	}
	points, row := kernels.NewPanels(n, d), make([]float32, d)
	for i := range n {
		a, b := i%k, (i+1+i/k%(k-1))%k
		share := 0.5
		if i >= n/4 { // about a centroid, at distances that the bounds leave out
			share = 0.02 * rng.Float64()
		} else if i%3 == 0 { // in reach of the creeping
			share += 1e-6 * rng.NormFloat64()
		}
		for h := range row {
			row[h] = onGrid((1-share)*float64(start[a*d+h])+share*float64(start[b*d+h]), 22)
		}
		points.Set(i, row)
	}
	carried, left := rounds(t, points, 22, k, 60, func(r int, grid []float32, _ *kernels.Accumulator) {
		if r == 0 {
			copy(grid, start)
			return
		}
		for j := range k {
			if h := j*d + rng.IntN(d); math.Abs(float64(grid[h])) < 0.99 {
				grid[h] += float32(rng.IntN(3)-1) / (1 << 22)
			}
		}
	})
	if carried < 20 || left < n {
		t.Errorf("%d rounds go on from the one before and leave out %d records", carried, left)
	}
}

// Two centroids wander from blob to blob while the others creep: the records of a blob
// change to a wanderer that comes near and back as it goes, and the rest are left out.
func TestPointBoundsWithRestlessCentroids(t *testing.T) {
	const n, d, k = 4000, 24, 40
	rng := rand.New(rand.NewPCG(7, 2))
	start := make([]float32, k*d)
	for i := range start {
		start[i] = onGrid(1.2*rng.Float64()-0.6, 16)
	}
	points, row := kernels.NewPanels(n, d), make([]float32, d)
	for i := range n {
		for h := range row {
			row[h] = onGrid(float64(start[i%k*d+h])+0.08*rng.NormFloat64(), 16)
		}
		points.Set(i, row)
	}
	changed, before := 0, make([]int64, k)
	carried, left := rounds(t, points, 16, k, 80, func(r int, grid []float32, acc *kernels.Accumulator) {
		if r == 0 {
			copy(grid, start)
			return
		}
		if !slices.Equal(acc.Counts, before) {
			changed++
		}
		copy(before, acc.Counts)
		for j := range k {
			way := float64(r%10) / 10 // of a wanderer, from one blob to the next
			from, to := (r/10*3+j)%k*d, ((r/10+1)*3+j)%k*d
			for h := range d {
				switch {
				case j < 2:
					grid[j*d+h] = onGrid((1-way)*float64(start[from+h])+way*float64(start[to+h]), 16)
				case h == r%d:
					grid[j*d+h] += float32(rng.IntN(3)-1) / (1 << 16)
				}
			}
		}
	})
	if carried < 60 || left < 50*n || changed < 20 {
		t.Errorf("%d rounds go on from the one before and leave out %d records; %d change sizes", carried, left, changed)
	}
}
