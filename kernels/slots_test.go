package kernels

import (
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
