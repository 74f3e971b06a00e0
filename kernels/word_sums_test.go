package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWordSumsEqualPortable compares labels, sums and counts of points that go to words with the portable kernel's: on
// grids from coarse to fine, at all tails, with carries of either sign from dimension to dimension, and with so many
// points in doubt that the rest go without.
func TestWordSumsEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !wordSumsPay(8, 64) {
			return
		}
		rng := rand.New(rand.NewPCG(41, 1))
		worded, given := 0, 0
		check := func(n, d, k, f int, points, centroids []float32, what string) {
			t.Helper()
			p, c := packed(points, n, d), NewCentroids(k, d)
			p.PrepareFilter(k, nil)
			c.PrepareFilter(p)
			c.Set(centroids)
			want := make([]uint16, n)
			sums, again := NewAccumulator(k, d, f), NewAccumulator(k, d, f)
			assignAccumulatePortable(p, c, want, sums)
			for _, labels := range [][]uint16{make([]uint16, n), nil} {
				again.Reset()
				if !assignAccumulateRanked(p, c, labels, again) {
					AssignAccumulate(*p, c, labels, again)
					given++
				}
				if labels != nil && !slices.Equal(want, labels) ||
					!slices.Equal(sums.Sums, again.Sums) || !slices.Equal(sums.Counts, again.Counts) {
					t.Fatalf("%s n=%d d=%d k=%d f=%d: other labels or sums", what, n, d, k, f)
				}
				if w := again.scratch.words; w != nil {
					worded++
					if slices.ContainsFunc(w.words, func(x int64) bool { return x != 0 }) || slices.Max(w.counts) != 0 {
						t.Fatalf("%s n=%d d=%d k=%d f=%d: something is left", what, n, d, k, f)
					}
				}
			}
		}
		for d := 5; d <= Lanes; d++ {
			for _, k := range []int{4, 7, 40, 64, 65, 128} {
				n := leastWorded*k + equalityNs[(d*131+k)%len(equalityNs)]
				f := 4 + (5*d+3*k)%17
				points, centroids := closeRows(rng, n, d, k, f)
				check(n, d, k, f+1, points, centroids, "close")
				check(n, d, k, f, gridHardRows(rng, n, d, f), gridRows(rng, k, d, MaxFractionBits), "grid")
				for i := range points {
					points[i] = float32(math.Copysign(1, rng.NormFloat64()+0.5*float64(i%3-1)))
				}
				check(n, d, k, MaxFractionBits, points, gridRows(rng, k, d, MaxFractionBits), "corners")
			}
		}
		if worded < 100 || given == 0 {
			t.Errorf("%d sums by words, and %d sets without", worded, given)
		}
	})
}

// TestRankSumEqualsReference compares the words and counts of pairs of panels with those in plain Go.
func TestRankSumEqualsReference(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !wordSumsPay(8, 64) {
			return
		}
		rng := rand.New(rand.NewPCG(41, 2))
		for d := 5; d <= Lanes; d++ {
			for _, k := range []int{1, 3, 4, 6, 31, 62, 64, 70, 127, 128} {
				pairs, size, scale, bias := 1+rng.IntN(4), 1+(d+1)/2, float32(1<<12), float32(1.5*2)
				n := 2 * Lanes * pairs
				p := packed(gridHardRows(rng, n, d, 22), n, d)
				words := rankTestWords(rng, k, d, func(j, w int) int { return j*size + w })
				got := &wordSums{words: make([]int64, (k+1)*Lanes), counts: make([]int32, k+1)}
				want := &wordSums{words: make([]int64, (k+1)*Lanes), counts: make([]int32, k+1)}
				labels, doubts := make([]uint16, n), make([]uint16, n/Lanes)
				rankSum(&p.Data[0], pairs, d, &words[0], k, scale, 2, &labels[0], &doubts[0], got, bias)
				compareRanks(t, p, words, k, k, func(j, w int) int { return j*size + w }, scale, 2, labels, doubts)
				for i, label := range labels {
					if doubts[i/Lanes]>>(i%Lanes)&1 == 1 && int(label) != k {
						t.Fatalf("d=%d k=%d: point %d is in doubt and has the label %d", d, k, i, label)
					}
					want.counts[label]++
					row := want.words[(i/Lanes%2*(k+1)+int(label))*Lanes/2:]
					for j, x := range p.Point(i, make([]float32, d)) {
						row[j/2] += int64(math.Float32bits(x+bias)) << (j % 2 * 32)
					}
				}
				for i := range got.words {
					if d%2 == 1 && i%(Lanes/2) == d/2 {
						got.words[i], want.words[i] = int64(int32(got.words[i])), int64(int32(want.words[i]))
					}
				}
				if !slices.Equal(got.words, want.words) || !slices.Equal(got.counts, want.counts) {
					t.Fatalf("d=%d k=%d pairs=%d: other words or counts", d, k, pairs)
				}
			}
		}
	})
}

// TestRankSumStaysInsideItsSlices adds points on slices that touch guard pages.
func TestRankSumStaysInsideItsSlices(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !wordSumsPay(8, 64) {
			return
		}
		for _, atEnd := range []bool{false, true} {
			for d := 5; d <= Lanes; d++ {
				for _, k := range []int{1, 5, 64, 67, 128} {
					n := 4 * Lanes
					p := guardedPanels(t, rand.New(rand.NewPCG(41, 3)), n, d, atEnd)
					words := guarded[int32](t, k*(1+(d+1)/2), atEnd)
					for j := range k {
						words[j*(1+(d+1)/2)] = int32(k-j) << 16
					}
					sums := &wordSums{words: guarded[int64](t, (k+1)*Lanes, atEnd), counts: guarded[int32](t, k+1, atEnd)}
					labels, doubts := guarded[uint16](t, n, atEnd), guarded[uint16](t, n/Lanes, atEnd)
					rankSum(&p.Data[0], 2, d, &words[0], k, 1, 0, &labels[0], &doubts[0], sums, 3)
					if sums.counts[k-1] != int32(n) {
						t.Fatalf("d=%d, k=%d: %d points in the last cluster, want %d", d, k, sums.counts[k-1], n)
					}
				}
			}
		}
	})
}

func BenchmarkAssignAccumulateRanked(b *testing.B) {
	for _, s := range [][3]int{{100000, 5, 20}, {100000, 10, 20}, {100000, 16, 64}, {100000, 16, 128}} {
		n, d, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("n=%d/d=%d/k=%d", n, d, k), func(b *testing.B) {
			p, c := lloydData(n, d, k, 22)
			p.PrepareFilter(k, nil)
			c.PrepareFilter(p)
			c.Set(slices.Clone(c.rows))
			acc := NewAccumulator(k, d, 22)
			run(b, n, bound(n, d, k), 4*n*d, func() { AssignAccumulate(*p, c, nil, acc) })
		})
	}
}
