package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNarrowSumEqualsPortable attacks the bound of points that are ranked as they are: those between centroids, on
// grids from coarse to fine, around an origin far from 0, at all tails, and so many in doubt that the rest go without.
func TestNarrowSumEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !narrows() {
			return
		}
		defer forceUnits(false)()
		rng := rand.New(rand.NewPCG(31, 1))
		seen, doubted, given := int64(0), int64(0), 0
		check := func(n, d, k, f int, points, centroids []float32, what string) {
			t.Helper()
			p, c := packed(points, n, d), NewCentroids(k, d)
			if p.PrepareFilter(k, nil); p.bounds == nil {
				t.Fatalf("%s n=%d d=%d k=%d: no bounds", what, n, d, k)
			}
			c.PrepareFilter(p)
			c.Set(centroids)
			want := make([]uint16, n)
			sums, again := NewAccumulator(k, d, f), NewAccumulator(k, d, f)
			assignAccumulatePortable(p, c, want, sums)
			for _, labels := range [][]uint16{make([]uint16, n), nil} {
				again.Reset()
				AssignAccumulate(*p, c, labels, again)
				if labels != nil && !slices.Equal(want, labels) ||
					!slices.Equal(sums.Sums, again.Sums) || !slices.Equal(sums.Counts, again.Counts) {
					t.Fatalf("%s n=%d d=%d k=%d f=%d: other labels or sums", what, n, d, k, f)
				}
				if slices.Max(again.scratch.tally) != 0 || slices.Max(again.scratch.table) != 0 {
					t.Fatalf("%s n=%d d=%d k=%d f=%d: something is left", what, n, d, k, f)
				}
			}
			seen, doubted = seen+c.narrow.seen.Load(), doubted+c.narrow.doubted.Load()
			if c.narrow.seen.Load() > 0 && c.narrow.seen.Load() < int64(n-slotPoints) {
				given++
			}
		}
		for i, d := range []int{256, 258, 286, 288, 300, 784} {
			for k := narrowLast + 1; k <= oneTile; k++ {
				n := leastSlotted + equalityNs[(d*131+k)%len(equalityNs)] + (d+k)%2*1500
				f := 4 + (5*i+3*k)%17
				points, centroids := closeRows(rng, n, d, k, f)
				check(n, d, k, f+1, points, centroids, "close")
				for from := range min(n, leastSlotted+64) { // the first ones are decided
					copy(points[from*d:(from+1)*d], gridRows(rng, 1, d, f))
				}
				check(n, d, k, f+1, points, gridRows(rng, k, d, f), "close at the end")
				check(n, d, k, f, gridHardRows(rng, n, d, f), gridRows(rng, k, d, MaxFractionBits), "grid")
				for i := range points {
					points[i] = float32(math.Trunc(float64(points[i]/8*narrowGrid)))/narrowGrid + 0.8125
				}
				for i := range centroids {
					centroids[i] = centroids[i]/8 + 0.8125
				}
				check(n, d, k, MaxFractionBits, points, centroids, "far from 0")
			}
		}
		if decided := seen - doubted; decided < seen/3 || doubted < seen/50 || given < 5 {
			t.Errorf("of %d points %d were decided; %d sets were given up", seen, decided, given)
		}
	})
}

// forceUnits says how wide units are and returns the function that restores what was said before.
func forceUnits(wide bool) func() {
	previous := wideUnits
	wideUnits = wide
	return func() { wideUnits = previous }
}

// TestWideUnitsTakeCoordinates checks that points are ranked as they are by multiply-adds where units are as wide as
// vectors, with the same labels and sums, and by u elsewhere.
func TestWideUnitsTakeCoordinates(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !narrows() {
			return
		}
		const n, d, k, f = leastSlotted + 49, 256, oneTile, 16
		points, centroids := closeRows(rand.New(rand.NewPCG(31, 4)), n, d, k, f)
		for _, wide := range []bool{false, true} {
			restore := forceUnits(wide)
			p, c := packed(points, n, d), NewCentroids(k, d)
			p.PrepareFilter(k, nil)
			c.PrepareFilter(p)
			c.Set(centroids)
			if products := p.FilterProducts(k); (p.bounds == nil) != wide || (products == "") != wide {
				t.Errorf("wide units %v: bounds %v, products %q", wide, p.bounds != nil, products)
			}
			want, got := make([]uint16, n), make([]uint16, n)
			sums, again := NewAccumulator(k, d, f+1), NewAccumulator(k, d, f+1)
			assignAccumulatePortable(p, c, want, sums)
			AssignAccumulate(*p, c, got, again)
			if !slices.Equal(want, got) || !slices.Equal(sums.Sums, again.Sums) ||
				!slices.Equal(sums.Counts, again.Counts) {
				t.Errorf("wide units %v: other labels or sums", wide)
			}
			restore()
		}
	})
}

// narrowLengthsPortable is the reference form of narrowLengths.
func narrowLengthsPortable(panel, shifts []float32, sums *[4 * Lanes]float32) {
	for l := range Lanes {
		var squares, largest, rough, part, most float32
		for j, shift := range shifts {
			x := panel[j*Lanes+l]
			y := x + (shift - narrowShift)
			e := y - (x + shift - narrowShift)
			part, rough, most = fma32(y, y, part), fma32(e, e, rough), max(most, float32(math.Abs(float64(y))))
			if j%narrowDims == narrowDims-1 || j == len(shifts)-1 {
				squares, largest, part = squares+part, max(largest, part), 0
			}
		}
		sums[l], sums[Lanes+l], sums[2*Lanes+l], sums[3*Lanes+l] = squares, largest, rough, most
	}
}

// TestNarrowLengthsEqualReference compares the lengths of points with those in plain Go, and checks that points whose u
// would not fit have no bounds.
func TestNarrowLengthsEqualReference(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !narrows() {
			return
		}
		rng := rand.New(rand.NewPCG(31, 2))
		for d := 2; d < 100; d += 2 {
			p := packed(gridHardRows(rng, Lanes, d, 22), Lanes, d)
			shifts := make([]float32, d)
			for j := range shifts {
				shifts[j] = narrowShift - float32(rng.IntN(255)-127)/128
			}
			var got, want [4 * Lanes]float32
			narrowLengths(p.Data, shifts, &got)
			if narrowLengthsPortable(p.Data, shifts, &want); got != want {
				t.Fatalf("d=%d: lengths\n%v, want\n%v", d, got, want)
			}
			for _, x := range []float32{3, -1e30, float32(math.Inf(1)), float32(math.NaN()), 0.5} {
				p.Data[rng.IntN(len(p.Data))] = x
				if p.addBounds(inOrder); (p.bounds != nil) != (x == 0.5) {
					t.Errorf("d=%d: bounds with the coordinate %g: %v", d, x, p.bounds != nil)
				}
				p = packed(gridHardRows(rng, Lanes, d, 22), Lanes, d)
			}
		}
	})
}

// TestNarrowSumEqualsReference compares labels, doubts and slots with those in plain Go.
func TestNarrowSumEqualsReference(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !narrows() {
			return
		}
		rng := rand.New(rand.NewPCG(31, 3))
		for d := 2; d < 150; d += 2 {
			for passes := range mostPasses + 1 {
				narrowSumOnce(t, rng, d, passes)
			}
		}
	})
}

func narrowSumOnce(t *testing.T, rng *rand.Rand, d, passes int) {
	t.Helper()
	words, shifts := d/2, make([]float32, d)
	for j := range shifts {
		shifts[j] = narrowShift - float32(rng.IntN(255)-127)/128
	}
	c := make([]int32, narrowTile*(1+words))
	for i := range c {
		if c[i] = int32(rng.Uint32()); i < narrowTile {
			c[i] = int32(math.Float32bits(float32(rng.IntN(5)) * 0x1p28))
		}
	}
	p := packed(gridHardRows(rng, 2*slotPoints, d, 7+rng.IntN(2)*15), 2*slotPoints, d)
	before := slotPair{x: &p.Data[slotPoints*d], passes: passes, order: noOrder}
	for i := range passes * Lanes {
		before.order[i] = int8(rng.IntN(2*slotPoints) - slotPoints)
	}
	const bias = 3 << 6 // of a grid of 2^-16
	got, want := make([]int32, d*Lanes), make([]int32, d*Lanes)
	if passes > 0 {
		sumSlots(before.x, d, &before.order, passes, bias, want)
	}
	var labels [slotPoints]uint16
	var doubts [2]uint16
	band := float32(rng.IntN(2)) * 0x1p29
	narrowSum(&p.Data[0], shifts, c, band, make([]float32, 2*narrowTile*Lanes), &labels, &doubts, &before, bias, got)
	if !slices.Equal(got, want) {
		t.Fatalf("d=%d: other slots after %d passes", d, passes)
	}
	for i := range labels {
		least, second, label := float32(math.Inf(1)), float32(math.Inf(1)), 0
		for a := range narrowTile {
			sum, part := math.Float32frombits(uint32(c[a])), int32(0)
			for j := range d {
				u := int32(math.RoundToEven(float64(p.Data[i/Lanes*Lanes*d+j*Lanes+i%Lanes]+(shifts[j]-narrowShift)) * narrowUnits))
				part += u * int32(int16(uint32(c[narrowTile*(1+j/2)+a])>>(j%2*16)))
				if j%narrowDims == narrowDims-1 || j == d-1 {
					sum, part = sum+float32(part), 0
				}
			}
			if sum < least {
				label = a
			}
			least, second = min(least, sum), min(second, max(least, sum))
		}
		if int(labels[i]) != label {
			t.Fatalf("d=%d: point %d has the label %d, want %d", d, i, labels[i], label)
		}
		if got := doubts[i/Lanes]>>(i%Lanes)&1 == 1; got != (second-least <= band) {
			t.Fatalf("d=%d: point %d, %g and %g: doubtful is %v", d, i, least, second, got)
		}
	}
}

func BenchmarkAssignAccumulateNarrow(b *testing.B) {
	for _, s := range [][3]int{{70000, 784, 10}, {100000, 256, 8}} {
		n, d, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("n=%d/d=%d/k=%d", n, d, k), func(b *testing.B) {
			p, c := lloydData(n, d, k, 16)
			rows, labels, acc := slices.Clone(c.rows), make([]uint16, n), NewAccumulator(k, d, 16)
			p.PrepareFilter(k, nil)
			c.PrepareFilter(p)
			c.Set(rows)
			run(b, n, bound(n, d, k), 4*n*d, func() { AssignAccumulate(*p, c, labels, acc) })
		})
	}
}
