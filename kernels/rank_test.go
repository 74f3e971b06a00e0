package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// rankable prepares points and centroids for the ranking, whatever the rule says of their shape, by the lengths of the
// points or by the box that they are in. It reports whether the path in use has it.
func rankable(p *Panels, c *Centroids, rows []float32, box bool) bool {
	if p.prepareRank(inOrder); box {
		p.InBox()
	}
	if p.longest == 0 || !rankPays(p.D, 64) {
		return false
	}
	c.prepareRank(p)
	c.Set(rows)
	return true
}

// TestAssignRankedEqualsPortable attacks the bound of the ranking: points between centroids, on grids from coarse to
// fine, at all tails, and of lengths unlike those of the centroids.
func TestAssignRankedEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !rankPays(8, 64) {
			return // no ranking
		}
		rng := rand.New(rand.NewPCG(23, 7))
		seen, doubted, refused := int64(0), int64(0), 0
		one := func(n, d, k int, points, centroids []float32, what string, box bool) {
			t.Helper()
			p, c := packed(points, n, d), NewCentroids(k, d)
			want, got := make([]uint16, n), make([]uint16, n)
			if !rankable(p, c, centroids, box) {
				return // all points are zero
			}
			assignPortable(p, c, want, nil, nil)
			Assign(*p, c, got, nil)
			if !slices.Equal(want, got) {
				t.Fatalf("%s n=%d d=%d k=%d: labels\n%v, want\n%v", what, n, d, k, got, want)
			}
			seen, doubted = seen+c.rank.seen.Load(), doubted+c.rank.doubted.Load()
			from := n / 2 &^ (Lanes - 1)
			clear(got[from:])
			if Assign(p.Slice(from, n), c, got[from:], nil); !slices.Equal(want, got) {
				t.Fatalf("%s n=%d d=%d k=%d: labels of a part differ", what, n, d, k)
			}
			if c.rank.doubted.Load()*mostDoubted > c.rank.seen.Load() {
				refused++
			}
			if summable(points) {
				c.Set(centroids)
				rankedSums(t, p, c, want, fmt.Sprintf("%s n=%d d=%d k=%d", what, n, d, k))
			}
		}
		check := func(n, d, k int, points, centroids []float32, what string) {
			t.Helper()
			one(n, d, k, points, centroids, what, false)
			if magnitude(points) <= 1 {
				one(n, d, k, points, centroids, what+", in the box", true)
			}
		}
		for _, d := range []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 31, 64, 101, 256, 600} {
			for _, k := range []int{1, 2, 3, 4, 11, 12, 16, 19, 20, 31, 33, 64, 65, 128} {
				n := equalityNs[(d*131+k)%len(equalityNs)] + 200
				f := 4 + (d+k)%19
				points, centroids := closeRows(rng, n, d, k, f)
				check(n, d, k, points, centroids, fmt.Sprintf("close, f=%d", f))
				check(n, d, k, hardRows(rng, n, d), hardRows(rng, k, d), "hard")
				check(n, d, k, gridRows(rng, n, d, 22), gridRows(rng, k, d, 22), "grid")
			}
			for _, scale := range []float32{0x1p-30, 0x1p-12, 0x1p-3, 0x1p3, 0x1p12} {
				points, centroids := gridRows(rng, 300, d, 10), gridRows(rng, 40, d, 10)
				for i := range centroids {
					centroids[i] *= scale
				}
				check(300, d, 40, points, centroids, "longer or shorter centroids")
				for i := range points {
					points[i] *= scale
				}
				check(300, d, 40, points, centroids, "small or large numbers")
			}
		}
		if decided := seen - doubted; decided < seen/4 || doubted < seen/20 || refused < 20 {
			t.Errorf("of %d points the ranking has decided %d, and %d times too few", seen, decided, refused)
		}
	})
}

// TestReassignRankedEqualsPortable takes labels and sums from some centroids to others by way of the ranking, over
// chunks beyond which points wait for the chain, and from labels of which some are none.
func TestReassignRankedEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !rankPays(16, 64) {
			return
		}
		const f = 16
		rng := rand.New(rand.NewPCG(23, 13))
		seen, doubted, refused := int64(0), int64(0), 0
		for _, s := range [][2]int{{8, 20}, {15, 33}, {16, 64}, {17, 24}, {100, 20}} {
			d, k := s[0], s[1]
			for _, n := range []int{40, chunkPoints, 3*chunkPoints + 77} {
				points := gridRows(rng, n, d, f)
				centres := func() []float32 { return gridRows(rng, k, d, f) }
				near, between := closeRows(rng, n, d, k, f)
				copy(points[len(points)-len(points)/20/d*d:], near) // a twentieth is between two centroids
				p, c := packed(points, n, d), NewCentroids(k, d)
				if !rankable(p, c, between, false) {
					t.Fatalf("d=%d: no ranking", d)
				}
				want, got := NewAccumulator(k, d, f), NewAccumulator(k, d, f)
				before := make([]uint16, n)
				for i := range before {
					before[i] = uint16(rng.IntN(k + 1))
				}
				Accumulate(*p, before, want)
				Accumulate(*p, before, got)
				after := slices.Clone(before)
				for range 3 {
					ch0 := reassignPortable(p, c, float32(math.Inf(1)), before, want)
					ch1 := Reassign(*p, c, float32(math.Inf(1)), after, got, nil)
					if ch0 != ch1 || !slices.Equal(before, after) || !slices.Equal(want.Sums, got.Sums) ||
						!slices.Equal(want.Counts, got.Counts) {
						t.Fatalf("n=%d d=%d k=%d: %+v, want %+v:\n%v\n%v", n, d, k, ch1, ch0, got.Counts, want.Counts)
					}
					seen, doubted = seen+c.rank.seen.Load(), doubted+c.rank.doubted.Load()
					if c.rank.doubted.Load()*mostDoubted > c.rank.seen.Load() {
						refused++
					}
					c.Set(centres())
				}
			}
		}
		if doubted < seen/100 || doubted > seen/4 {
			t.Errorf("of %d points %d were in doubt, and %d times too many", seen, doubted, refused)
		}
	})
}

// summable says whether rows are coordinates that sums are exact for.
func summable(rows []float32) bool {
	return !slices.ContainsFunc(rows, func(x float32) bool {
		units := float64(x) * (1 << MaxFractionBits)
		return math.Abs(units) > 1<<MaxFractionBits || units != math.Trunc(units)
	})
}

// rankedSums compares labels and sums of points, some of which wait for the chain beyond their chunk.
func rankedSums(t *testing.T, p *Panels, c *Centroids, want []uint16, what string) {
	t.Helper()
	sums, got := NewAccumulator(c.K, c.D, MaxFractionBits), NewAccumulator(c.K, c.D, MaxFractionBits)
	accumulatePortable(p, want, sums)
	for _, labels := range [][]uint16{nil, make([]uint16, p.N)} {
		got.Reset()
		AssignAccumulate(*p, c, labels, got)
		if labels != nil && !slices.Equal(want, labels) {
			t.Fatalf("%s: labels with sums\n%v, want\n%v", what, labels, want)
		}
		if !slices.Equal(sums.Sums, got.Sums) || !slices.Equal(sums.Counts, got.Counts) {
			t.Fatalf("%s: other sums", what)
		}
	}
}

// TestRankBoundCoversScores takes words in plain Go and compares them with the chains: the difference of two is off by
// at most the band.
func TestRankBoundCoversScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 8))
	for _, s := range [][3]int{{5, 19, 22}, {10, 12, 22}, {16, 15, 22}, {5, 20, 22}, {11, 64, 16}, {15, 128, 4},
		{16, 64, 22}, {17, 64, 22}, {100, 64, 16}, {256, 13, 22}} {
		d, k, n := s[0], s[1], 64
		p, c := packed(gridRows(rng, n, d, s[2]), n, d), NewCentroids(k, d)
		p.prepareRank(inOrder)
		c.prepareRank(p)
		c.Set(gridRows(rng, k, d, s[2]))
		r, far := c.rank, 0.0
		for j := range k {
			far = max(far, length(c.Row(j))*filterUp)
		}
		a, b := r.scales(far, magnitude(c.rows))
		if float32(a) != r.scale {
			t.Fatalf("d=%d: the scale is %g, want %g", d, r.scale, a)
		}
		band := float64(r.band) * (1 << 16)
		largest, row := 0.0, make([]float32, d)
		for i := range n {
			p.Point(i, row)
			var first, chain0 float64
			for j := range k {
				word := int64(r.words[rankWord(k, d, j, 0)] + r.crossed(c, j))
				var integers [257]int64
				for h, y := range row {
					u := math.RoundToEven(float64(y * r.scale))
					v := int16(uint32(r.words[rankWord(k, d, j, 1+h/2)]) >> (h % 2 * 16))
					if math.Abs(u) > math.MaxInt16 {
						t.Fatalf("d=%d: the integer %g has more than 16 bits", d, u)
					}
					integers[h] = int64(u)
					word += int64(u) * int64(v)
					other := rankPartner(h/2, d, k)
					if sum := u + float64(v); math.Abs(sum) > math.MaxInt16 && other != h/2 {
						t.Fatalf("d=%d: the sum %g has more than 16 bits", d, sum)
					}
					if other < h/2 {
						word += integers[h] * integers[h-2]
					}
				}
				if word != int64(int32(word)) {
					t.Fatalf("d=%d: the word of centroid %d is %d", d, j, word)
				}
				chain := chainOf(row, c, j)
				if j == 0 {
					first, chain0 = float64(word), chain
					continue
				}
				off := math.Abs(float64(word)-first-(chain-chain0)*a*b) / band
				if largest = max(largest, off); off > 1 {
					t.Fatalf("d=%d: point %d, centroid %d: the word is off by %g of the band", d, i, j, off)
				}
			}
		}
		if largest < 0.01 {
			t.Errorf("d=%d: the largest error is %g of the bound: the bound says nothing", d, largest)
		}
	}
}

// chainOf is what [Assign] compares of a point and centroid j: half the squared distance, but for what all have in
// common.
func chainOf(x []float32, c *Centroids, j int) float64 {
	near, sum := c.half[j], float32(0)
	for h, y := range c.Row(j) {
		e := x[h] - y
		sum, near = fma32(e, e, sum), fma32(-x[h], y, near)
	}
	if c.D < exactDims {
		return float64(sum) / 2
	}
	return float64(near)
}

// TestRankEqualsReference compares the routine for few dimensions with plain Go.
func TestRankEqualsReference(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !rankPays(8, 64) || ranksLong(8) {
			return
		}
		rng := rand.New(rand.NewPCG(23, 9))
		for d := 5; d <= 16; d++ {
			for k := 1; k <= 128; k += 1 + k/16*rng.IntN(8) {
				rankPairsOnce(t, rng, 1+rng.IntN(3), d, k)
			}
			rankPairsOnce(t, rng, 1, d, 128)
		}
		for k := 2; k <= 128; k++ { // all centroids are near: as many rows and columns as there are
			p, words := packed(gridRows(rng, 2*Lanes, 16, 22), 2*Lanes, 16), make([]int32, 9*k)
			labels, doubts := make([]uint16, 2*Lanes), make([]uint16, 2)
			rankPairs(&p.Data[0], 1, 16, &words[0], k, 1, 0, &labels[0], &doubts[0])
			if doubts[0] != math.MaxUint16 || doubts[1] != math.MaxUint16 {
				t.Fatalf("k=%d: the doubts of equal centroids are %x", k, doubts)
			}
		}
	})
}

// rankPairsOnce compares labels and doubts of pairs of panels by the routine with those in plain Go.
func rankPairsOnce(t *testing.T, rng *rand.Rand, pairs, d, k int) {
	t.Helper()
	n, scale, size := pairs*2*Lanes, float32(1<<12), 1+(d+1)/2
	p, words := packed(gridRows(rng, n, d, 22), n, d), rankTestWords(rng, k, d, func(j, w int) int { return j*size + w })
	band := rng.Int32N(8)
	labels, doubts := make([]uint16, n), make([]uint16, n/Lanes)
	rankPairs(&p.Data[0], pairs, d, &words[0], k, scale, band, &labels[0], &doubts[0])
	compareRanks(t, p, words, k, k, func(j, w int) int { return j*size + w }, scale, band, labels, doubts)
}

// rankTestWords draws centroids whose equal upper halves and largest and least words are frequent.
func rankTestWords(rng *rand.Rand, rows, d int, place func(j, w int) int) []int32 {
	size := 1 + (d+1)/2
	words := make([]int32, rows*size)
	for i := range words {
		words[i] = int32(uint32(uint16(rng.IntN(64)-32)) | uint32(rng.IntN(64)-32)<<16)
	}
	for j := range rows {
		words[place(j, 0)] = []int32{rng.Int32N(1 << 20), rng.Int32N(1 << 20), math.MaxInt32, math.MinInt32,
			int32(rng.Uint32())}[rng.IntN(5)]
		if at := place(j, size-1); d%2 == 1 { // there is no second integer
			words[at] = int32(uint16(words[at]))
		}
	}
	return words
}

// compareRanks compares labels that are not in doubt, and doubts, with those in plain Go.
func compareRanks(t *testing.T, p *Panels, words []int32, k, rows int, place func(j, w int) int, scale float32,
	band int32, labels, doubts []uint16) {
	t.Helper()
	row := make([]float32, (p.D+1)/2*2)
	for i := range p.N {
		p.Point(i, row[:p.D])
		least, second, label := int32(math.MaxInt16), int32(math.MaxInt16), 0
		for j := range rows {
			word := words[place(j, 0)]
			for h := range row {
				w := h / 2
				v := func(w int) int32 { return int32(int16(uint32(words[place(j, 1+w)]) >> (h % 2 * 16))) }
				u := func(h int) int32 { return int32(math.RoundToEven(float64(row[h] * scale))) }
				switch other := rankPartner(w, p.D, k); {
				case other == w:
					word += u(h) * v(w)
				case other < w: // with the word before, which the same dimensions stand in
					word += (u(h-2) + v(w)) * (u(h) + v(w-1))
				}
			}
			if word >>= 16; word < least {
				label = j
			}
			least, second = min(least, word), min(second, max(least, word))
		}
		got := doubts[i/Lanes]>>(i%Lanes)&1 == 1
		if got != (second-least <= band) {
			t.Fatalf("d=%d, k=%d, n=%d: point %d, %d and %d, band %d: doubtful is %v", p.D, rows, p.N, i, least, second, band,
				got)
		}
		if !got && int(labels[i]) != label {
			t.Fatalf("d=%d, k=%d, n=%d: point %d has the label %d, want %d", p.D, rows, p.N, i, labels[i], label)
		}
	}
}

// TestRankLongEqualsReference compares the routine for many dimensions with plain Go.
func TestRankLongEqualsReference(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !rankPays(100, 64) {
			return
		}
		rng := rand.New(rand.NewPCG(23, 10))
		for _, d := range []int{1, 2, 3, 15, 16, 17, 30, 31, 100, 257} {
			for k := 1; k < 42; k += 1 + rng.IntN(3) {
				rankLongOnce(t, rng, 1+rng.IntN(3), d, k)
			}
		}
	})
}

// rankLongOnce compares labels and doubts of groups by the routine with those in plain Go.
func rankLongOnce(t *testing.T, rng *rand.Rand, groups, d, k int) {
	t.Helper()
	n, scale := groups*rankGroup()*Lanes, float32(1<<12)
	p, rows := packed(gridRows(rng, n, d, 22), n, d), rankRows(k, d)
	place := func(j, w int) int { return rankLongWord(k, d, j, w) }
	words := rankTestWords(rng, rows, d, place)
	band, room := rng.Int32N(8), aligned[int32](rankLongRoom(k, d))
	labels, doubts := make([]uint16, n), make([]uint16, n/Lanes)
	rankLong(&p.Data[0], groups, d, &words[0], k, scale, band, &room[0], &labels[0], &doubts[0])
	compareRanks(t, p, words, k, rows, place, scale, band, labels, doubts)
}

func BenchmarkAssignRanked(b *testing.B) {
	for _, s := range [][3]int{{100000, 10, 20}, {100000, 5, 8}, {100000, 16, 64}, {100000, 100, 64}} {
		n, d, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("n=%d/d=%d/k=%d", n, d, k), func(b *testing.B) {
			p, c := lloydData(n, d, k, 22)
			p.PrepareFilter(k, nil)
			c.PrepareFilter(p)
			c.Set(slices.Clone(c.rows))
			labels := make([]uint16, n)
			run(b, n, bound(n, d, k), 4*n*d, func() { Assign(*p, c, labels, nil) })
		})
	}
}
