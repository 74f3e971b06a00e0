package kernels

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// slottedLabels are labels of which some are more frequent than others: by chance, most of them one, in runs, and the
// label of none among them.
func slottedLabels(rng *rand.Rand, n, k int) [][]uint16 {
	all := make([][]uint16, 4)
	for kind := range all {
		all[kind] = make([]uint16, n)
		for i := range all[kind] {
			l := rng.IntN(k + 1)
			switch {
			case kind == 1 && rng.IntN(10) > 0:
				l = k - 1
			case kind == 2:
				l = i * k / n
			case kind == 3:
				l = i / 700 * 3 % k
			}
			all[kind][i] = uint16(l)
		}
	}
	return all
}

// TestSlotsAddAsRowsDo compares sums by way of slots with the portable form, over several folds, and what is left of
// slots after a call.
func TestSlotsAddAsRowsDo(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !hasOneTile() {
			return
		}
		rng := rand.New(rand.NewPCG(8, 30))
		for _, d := range []int{16, 17, 40, oneTileDims + 9} {
			for _, k := range []int{1, 2, 7, oneTile, Lanes} {
				for _, f := range []int{16, 22} {
					n := 3000 - d%3*5
					p := packed(gridHardRows(rng, n, d, f), n, d)
					for kind, labels := range slottedLabels(rng, n, k) {
						want, got := NewAccumulator(k, d, f), NewAccumulator(k, d, f)
						accumulatePortable(p, labels, want)
						sink := newSink(got)
						sink.slots = newSlots(got)
						for lo := 0; lo < n; lo += 4 * Lanes {
							part := p.Slice(lo, min(lo+4*Lanes, n))
							sink.add(&part, labels[lo:lo+part.N])
						}
						sink.fold()
						if !slices.Equal(got.Sums, want.Sums) || !slices.Equal(got.Counts, want.Counts) {
							t.Fatalf("d=%d k=%d f=%d, labels %d: other sums", d, k, f, kind)
						}
						if slices.Max(sink.slots.sums) != 0 || slices.Min(sink.slots.sums) != 0 ||
							slices.Max(got.scratch.tally) != 0 || slices.Max(got.scratch.table) != 0 {
							t.Fatalf("d=%d k=%d f=%d, labels %d: something is left", d, k, f, kind)
						}
					}
				}
			}
		}
	})
}

// Labels that change what slots take the most of do not keep points from slots for long.
func TestSlotsFollowLabels(t *testing.T) {
	if !hasOneTile() {
		t.Skip("SKIPPED: this CPU has no AVX-512, for which alone there is a routine")
	}
	const n, d, k = 1 << 14, 16, 10
	p := packed(gridRows(rand.New(rand.NewPCG(1, 2)), n, d, 16), n, d)
	labels := make([]uint16, n)
	for i := range labels {
		labels[i] = uint16(i * 4 / n)
	}
	acc := NewAccumulator(k, d, 16)
	sink := newSink(acc)
	sink.slots = newSlots(acc)
	byRow := 0
	for lo := 0; lo < n; lo += slotPoints {
		part := p.Slice(lo, lo+slotPoints)
		if sink.add(&part, labels[lo:lo+slotPoints]); sink.slots.missed > 0 {
			byRow++
		}
	}
	sink.fold()
	if byRow > 3*mostMissed {
		t.Errorf("%d of %d pairs were added by row", byRow, n/slotPoints)
	}
}

// TestDotSumEqualsReference compares labels and slots with those of the routines that do one of the two.
func TestDotSumEqualsReference(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !hasOneTile() {
			return
		}
		rng := rand.New(rand.NewPCG(11, 3))
		for _, d := range []int{1, 16, 31, 200, oneTileDims, 1500} {
			for k := maxTileWidth + 1; k <= oneTile; k++ {
				c := NewCentroids(k, max(d, oneTileDims))
				c.D, c.tiles = d, c.tiles[:oneTile*d]
				c.Set(gridHardRows(rng, k, d, 16))
				c.tile()
				p := packed(gridHardRows(rng, 2*slotPoints, d, 16), 2*slotPoints, d)
				for passes := range mostPasses + 1 {
					before := slotPair{x: &p.Data[slotPoints*d], passes: passes, order: noOrder}
					for i := range passes * Lanes {
						before.order[i] = int8(rng.IntN(2*slotPoints) - slotPoints)
					}
					const bias = 3 << 6
					got, want := make([]int32, d*Lanes), make([]int32, d*Lanes)
					if passes > 0 {
						sumSlots(before.x, d, &before.order, passes, bias, want)
					}
					var labels, other [slotPoints]uint16
					assignDotSum(&p.Data[0], c, &labels, &before, bias, got)
					assignDot(&p.Data[0], slotPoints/Lanes, c, &other[0], nil, nil)
					if labels != other || !slices.Equal(got, want) {
						t.Fatalf("d=%d k=%d, %d passes: labels\n%d, want\n%d; slots are equal: %t", d, k, passes, labels, other,
							slices.Equal(got, want))
					}
				}
			}
		}
	})
}

// TestAssignAccumulateBySlots compares labels and sums of whole calls with the portable form: with labels and without,
// points of few clusters and of one, and a last panel that is part empty.
func TestAssignAccumulateBySlots(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !hasOneTile() {
			return
		}
		rng := rand.New(rand.NewPCG(11, 4))
		for _, d := range []int{oneTileDims, oneTileDims + 13} {
			for k := maxTileWidth + 1; k <= oneTile; k++ {
				for _, f := range []int{16, 22} {
					n := leastSlotted + rng.IntN(100)
					rows := gridHardRows(rng, n, d, f)
					p, c := packed(rows, n, d), NewCentroids(k, d)
					c.Set(rows[:k*d])
					labels, want := make([]uint16, n), make([]uint16, n)
					first, second, sums := NewAccumulator(k, d, f), NewAccumulator(k, d, f), NewAccumulator(k, d, f)
					assignAccumulatePortable(p, c, want, sums)
					if !assignAccumulateSlots(p, c, labels, first) || !assignAccumulateSlots(p, c, nil, second) {
						t.Fatalf("d=%d k=%d: not by slots", d, k)
					}
					for _, got := range []*Accumulator{first, second} {
						if !slices.Equal(labels, want) || !slices.Equal(got.Sums, sums.Sums) ||
							!slices.Equal(got.Counts, sums.Counts) {
							t.Fatalf("n=%d d=%d k=%d f=%d: other labels or sums", n, d, k, f)
						}
					}
				}
			}
		}
	})
}

func BenchmarkAssignAccumulateSlots(b *testing.B) {
	for _, s := range [][3]int{{70000, 784, 10}, {100000, 256, 8}} {
		n, d, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("n=%d/d=%d/k=%d", n, d, k), func(b *testing.B) {
			p, c := lloydData(n, d, k, 16)
			labels, acc := make([]uint16, n), NewAccumulator(k, d, 16)
			run(b, n, bound(n, d, k), 4*n*d, func() { AssignAccumulate(*p, c, labels, acc) })
		})
	}
}
