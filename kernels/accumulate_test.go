package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAccumulateManyDimensions compares with the portable form at many dimensions, with a table for few clusters and
// for many, of which a call meets a part, and beyond any table.
func TestAccumulateManyDimensions(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(19, 5))
		shapes := [][2]int{{511, 10}, {513, 3}, {529, 10}, {767, 1}, {784, 17}, {1039, 10}, {768, 800}, {768, 6000},
			{512, 5}, {1024, 40}, {1020, 3}}
		for _, s := range shapes {
			d, k := s[0], s[1]
			for _, n := range []int{16, 83} {
				p := packed(gridRows(rng, n, d, 16), n, d)
				got, want := NewAccumulator(k, d, 16), NewAccumulator(k, d, 16)
				for range 2 { // the second time over what the first has left
					labels := make([]uint16, n)
					for i := range labels {
						labels[i] = uint16(rng.IntN(k + 1))
					}
					Accumulate(*p, labels, got)
					accumulatePortable(p, labels, want)
					if !slices.Equal(got.Sums, want.Sums) || !slices.Equal(got.Counts, want.Counts) {
						t.Fatalf("n=%d, d=%d, k=%d: other sums or counts", n, d, k)
					}
				}
			}
		}
	})
}

// TestRowsAreAddedAsPanels adds points that are by row, of which the last panel has fewer, over several folds.
func TestRowsAreAddedAsPanels(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 19))
		for _, d := range []int{16, 32, 48, 144} {
			if !sumsRows(d) {
				return
			}
			for _, k := range []int{1, 2, 70} {
				for _, f := range []int{16, 22} {
					const n = 60*Lanes - 5
					p := packed(gridHardRows(rng, n, d, f), n, d)
					labels, rows := make([]uint16, n), make([]float32, rowsSize(d))
					for i := range labels {
						labels[i] = uint16(rng.IntN(k + 1))
					}
					want, got := NewAccumulator(k, d, f), NewAccumulator(k, d, f)
					accumulatePortable(p, labels, want)
					sink := newSink(got)
					for lo := 0; lo < n; lo += Lanes {
						filterRows(p.Data[lo*d:(lo+Lanes)*d], d/Lanes, rows)
						sink.addRows(rows, labels[lo:min(lo+Lanes, n)])
					}
					sink.fold()
					if !slices.Equal(got.Sums, want.Sums) || !slices.Equal(got.Counts, want.Counts) {
						t.Fatalf("d=%d k=%d f=%d: sums\n%v\n%v", d, k, f, got.Sums, want.Sums)
					}
				}
			}
		}
	})
}
