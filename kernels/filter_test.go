package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// filtered prepares points and centroids for the candidate filter, whatever the
// rule says of their shape.
func filtered(t testing.TB, group int, p *Panels, c *Centroids, rows []float32) {
	t.Helper()
	p.addFilter(group, inOrder)
	c.PrepareFilter(p)
	c.Set(rows)
}

// closeRows draws centroids and points that lie within the bound of several of
// them: copies that differ by steps of the finest grid.
func closeRows(rng *rand.Rand, n, d, k, fraction int) (points, centroids []float32) {
	centroids = gridRows(rng, k, d, fraction)
	for a := 1; a < k; a++ {
		if rng.IntN(3) > 0 {
			from := rng.IntN(a)
			copy(centroids[a*d:(a+1)*d], centroids[from*d:(from+1)*d])
			if j := a*d + rng.IntN(d); rng.IntN(2) == 0 {
				centroids[j] += float32(math.Ldexp(float64(rng.IntN(3)-1), -fraction))
			}
		}
	}
	points = gridRows(rng, n, d, fraction)
	for i := range n {
		x := points[i*d : (i+1)*d]
		switch a, b := rng.IntN(k), rng.IntN(k); rng.IntN(3) {
		case 0:
			copy(x, centroids[a*d:(a+1)*d])
		case 1: // midway
			for j := range x {
				x[j] = (centroids[a*d+j] + centroids[b*d+j]) / 2
			}
		}
	}
	return points, centroids
}

// TestAssignFilterWithoutGuesses labels so many points whose labels are wrong that the filter takes them as guesses no
// more, by one step of scores and by two.
func TestAssignFilterWithoutGuesses(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(19, 8))
		for _, k := range []int{130, 1100} {
			const n, d = 1009, 33
			points, centroids := closeRows(rng, n, d, k, 16)
			p := packed(points, n, d)
			for _, group := range filterGroups() {
				c := NewCentroids(k, d)
				filtered(t, group, p, c, centroids)
				want, got := make([]uint16, n), make([]uint16, n)
				assignPortable(p, c, want, nil, nil)
				for i := range got {
					got[i] = (want[i] + uint16(1+rng.IntN(k-1))) % uint16(k)
				}
				if c.filter.seen.Add(1 << 20); !c.filter.pays(k) { // whatever is left open
					t.Fatal("the filter gives way")
				}
				if Assign(*p, c, got, nil); !slices.Equal(want, got) {
					t.Errorf("k=%d, %d to a word: labels\n%v, want\n%v", k, group, got, want)
				}
				if c.filter.guesses() {
					t.Errorf("k=%d, %d to a word: wrong guesses go on", k, group)
				}
			}
		}
	})
}

// TestFilterShortProducts compares products with the short form of centroids with those of float64: they are within the
// bound.
func TestFilterShortProducts(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !shortPays(1<<15, 1<<15) {
			return
		}
		rng := rand.New(rand.NewPCG(19, 9))
		for _, d := range []int{32, 50, 79, 768} {
			const n, k = Lanes, 18
			points, centroids := gridRows(rng, n, d, 16), gridRows(rng, k, d, 16)
			p, c := packed(points, n, d), NewCentroids(k, d)
			filtered(t, filterGroups()[0], p, c, centroids)
			c.filter.short = make([]int16, k*d)
			c.Set(centroids)
			call, ok := p.filter.call(c)
			if !ok || c.filter.fine == 0 {
				t.Fatal("no filter")
			}
			s := &filterScratch{rows: alignedFloat32(rowsSize(d))}
			s.norms[0] = float64(p.filter.panels[0][0])
			for i := range n {
				for a := range k {
					exact := 0.0
					for j, y := range c.Row(a) {
						exact += float64(y) * (float64(y)/2 - float64(points[i*d+j]))
					}
					got := s.products(p, c, 0, []uint32{uint32(i<<16 | a)})[0]
					if off := math.Abs(float64(got) - exact); off > s.slack(&call, i) || off > 0.002*float64(d) {
						t.Errorf("d=%d: half less the product is off by %g", d, off)
					}
				}
			}
		}
	})
}

// TestAssignFilterEqualsPortable attacks the bound of the candidate filter: points
// between centroids, on grids from coarse to fine, at all tails, of odd dimensions
// and of numbers of centroids around tiles and blocks.
func TestAssignFilterEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(19, 7))
		groups, used := filterGroups(), map[int]int{}
		if len(groups) == 0 {
			return // no filter
		}
		check := func(n, d, k int, points, centroids []float32, what string) {
			t.Helper()
			p, c := packed(points, n, d), NewCentroids(k, d)
			c.Set(centroids)
			want := make([]uint16, n)
			assignPortable(p, c, want, nil, nil)
			for _, group := range groups {
				c := NewCentroids(k, d)
				filtered(t, group, p, c, centroids)
				if c.filter != nil && (k+d)%2 == 0 && shortPays(1<<15, 1<<15) {
					c.filter.short = make([]int16, k*d)
					c.Set(centroids)
				}
				got := make([]uint16, n)
				for i := range got {
					got[i] = [3]uint16{uint16(rng.IntN(k)), uint16(rng.Uint32()), want[i]}[rng.IntN(3)] // a guess
				}
				for range 2 { // the second time all guesses are right
					if Assign(*p, c, got, nil); !slices.Equal(want, got) {
						t.Fatalf("%s n=%d d=%d k=%d, %d to a word: labels\n%v, want\n%v", what, n, d, k, group, got, want)
					}
				}
				if from := n / 2 &^ (Lanes - 1); from < n { // a part of the points
					Assign(p.Slice(from, n), c, got[from:], nil)
					if !slices.Equal(want, got) {
						t.Fatalf("%s n=%d d=%d k=%d, %d to a word: labels of a part differ", what, n, d, k, group)
					}
				}
				if p.filter != nil {
					if _, ok := p.filter.call(c); ok {
						used[group]++
					}
				}
			}
		}
		for _, d := range []int{16, 17, 23, 33, 64, 257} {
			for _, k := range []int{1, 7, 8, 9, 64, 130, 255, 256, 257, 300} {
				if testing.Short() && (d+k)%4 != 0 {
					continue
				}
				n := equalityNs[(d*131+k)%len(equalityNs)]
				f := 4 + (d+k)%19
				points, centroids := closeRows(rng, n, d, k, f)
				check(n, d, k, points, centroids, fmt.Sprintf("close, f=%d", f))
				check(n, d, k, hardRows(rng, n, d), hardRows(rng, k, d), "hard")
				check(n, d, k, gridRows(rng, n, d, 16), gridRows(rng, k, d, 16), "grid")
			}
		}
		points, centroids := closeRows(rng, 50, 784, 2100, 16)
		check(50, 784, 2100, points, centroids, "many")
		checkLengths(rng, check)
		// All centroids are one: more candidates than there is room for.
		clear(points)
		check(50, 784, 2100, points, make([]float32, 2100*784), "all equal")
		for _, group := range groups {
			if used[group] < 20 {
				t.Errorf("the filter with %d integers to a word was in use %d times, want at least 20", group, used[group])
			}
		}
	})
}

// checkLengths checks points midway between centroids of all lengths, and points and centroids of very different ones.
func checkLengths(rng *rand.Rand, check func(n, d, k int, points, centroids []float32, what string)) {
	for _, d := range []int{33, 64, 257} {
		centroids := gridRows(rng, 200, d, 16)
		for i := range centroids {
			centroids[i] *= float32(i/d%8+1) / 8
		}
		points := make([]float32, 300*d)
		for i := range 300 {
			a, b := rng.IntN(200), rng.IntN(200)
			for j := range d {
				points[i*d+j] = (centroids[a*d+j] + centroids[b*d+j]) / 2
			}
		}
		check(300, d, 200, points, centroids, "lengths")
	}
	for _, scale := range []float32{0x1p-20, 0x1p-8, 0x1p-3, 0x1p3, 0x1p10, 0x1p20} {
		points, centroids := gridRows(rng, 100, 40, 10), gridRows(rng, 90, 40, 10)
		for i := range centroids {
			centroids[i] *= scale
		}
		check(100, 40, 90, points, centroids, "scaled")
	}
}

// TestFilterBoundCoversScores takes integer scores in plain Go and compares them
// with the chains: no difference may exceed half of the band.
func TestFilterBoundCoversScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 8))
	for _, s := range [][4]int{{16, 40, 22, 2}, {64, 40, 16, 2}, {301, 40, 4, 2}, {784, 33, 22, 2}, {16, 40, 22, 4},
		{64, 40, 16, 4}, {301, 40, 3, 4}, {785, 33, 22, 4}, {16, 40, 22, 8}, {301, 40, 3, 8}, {785, 33, 22, 8}} {
		d, k, n, group := s[0], s[1], 64, s[3]
		p, c := packed(gridRows(rng, n, d, s[2]), n, d), NewCentroids(k, d)
		filtered(t, group, p, c, gridRows(rng, k, d, s[2]))
		call, ok := p.filter.call(c)
		if !ok {
			t.Fatalf("d=%d: the filter is not in use", d)
		}
		largest := 0.0
		for i := range n {
			bounds := p.filter.panels[i/Lanes]
			half := call.band(float64(bounds[0]), float64(bounds[1])) / 2
			for a := range k {
				off := math.Abs(scoreError(p, c, &call, i, a))
				if off > half-call.raise(c, a) {
					t.Fatalf("d=%d: point %d, centroid %d: the score is off by %g, want at most %g", d, i, a, off, half)
				}
				largest = max(largest, off/half)
			}
		}
		if s[2] >= 16 && largest < 0.001 {
			t.Errorf("d=%d: the largest error is %g of the bound: the bound says nothing", d, largest)
		}
	}
}

// TestFilterRaisesScores makes the errors of points, and of centroids of many lengths, parallel to what they are
// multiplied with, so that scores are as far off as they can be: what they are raised by fills the rest of the width of
// the shortest points and no more.
func TestFilterRaisesScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 28))
	for _, group := range []int{2, 4, 8} {
		const n, d, k = 33, 64, 40
		points, centroids := make([]float32, n*d), make([]float32, k*d)
		scale := 0x1p12 // of integers of 16 bits, for points of lengths from 4 to 8
		if group > 2 {
			scale = float64(filterZero()-1) * (1 - 0x1p-20)
		}
		for i := range points {
			length, off := 0.7, 0.49
			if i/d >= Lanes { // panels whose width is less
				length, off = 0.3, 0.25
			}
			points[i] = float32((float64(rng.IntN(9)+int(length*scale)) + off) / scale)
		}
		draw := func(scale float64) {
			for a := range k {
				length := float64(a+1) / k
				for j := range d {
					centroids[a*d+j] = float32((math.Floor(length*0.8*scale) + 0.16*float64(a%4)) / scale)
				}
			}
			centroids[k*d-1] = 1
		}
		draw(scale)
		points[0] = 1 // the most, which bytes are scaled by
		p, c := packed(points, n, d), NewCentroids(k, d)
		filtered(t, group, p, c, centroids)
		if p.filter.runs { // the longest centroid alone says what the scale of all is
			longest := slices.Repeat([]float32{1}, d)
			copy(centroids[(k-1)*d:], longest)
			c.Set(centroids)
			p.filter.call(c)
			draw(c.filter.scale)
			copy(centroids[(k-1)*d:], longest)
			c.Set(centroids)
		}
		longer := packed(points[:Lanes*d], Lanes, d) // whose bounds are the same and whose scores are raised by more
		longer.addFilter(group, inOrder)
		longer.filter.call(c)
		call, ok := p.filter.call(c)
		if !ok {
			t.Fatal("the filter is not in use")
		}
		for a := range k {
			if p.filter.runs && a == k-1 {
				continue
			}
			most := 0.0
			for i := range n {
				bounds := p.filter.panels[i/Lanes]
				half := call.band(float64(bounds[0]), float64(bounds[1])) / 2
				most = max(most, (scoreError(p, c, &call, i, a)+call.raise(c, a))/half)
			}
			if most > 1 || most < 0.9 {
				t.Errorf("%d to a word: the score of centroid %d is raised to %g of the width, want .9 to 1", group, a, most)
			}
			want := math.RoundToEven(float64(float64(c.half[a])*call.units)+call.offset) + call.raise(c, a)
			if filterShifts(group) {
				want += float64(c.filter.shift[a])
			}
			if call.base[a] != int32(want) {
				t.Errorf("%d to a word: the products with centroid %d are added to %d, want %g", group, a, call.base[a], want)
			}
		}
	}
}

// integerProduct takes the product of the integers of a point and of the opposite ones of a centroid in plain Go.
func integerProduct(p *Panels, c *Centroids, i, a int) (sum int64) {
	group, word := p.filter.group, wordBytes(p.filter.group)
	for j := range p.D {
		u := p.filter.data[(i/Lanes*p.filter.words+j/group)*word*Lanes+i%Lanes*word:]
		v := c.filter.data[c.filter.word(a, j/group)*word:]
		if group >= 4 {
			sum += (int64(u[j%group]) - int64(p.filter.zero)) * int64(int8(v[j%group]))
		} else {
			sum += int64(int16(binary.LittleEndian.Uint16(u[j%2*2:]))) * int64(int16(binary.LittleEndian.Uint16(v[j%2*2:])))
		}
	}
	return sum
}

// scoreError takes the integer score of a point and a centroid in plain Go and returns what it is beyond the chain.
func scoreError(p *Panels, c *Centroids, call *filterCall, i, a int) float64 {
	d := p.D
	sum := int64(math.RoundToEven(float64(c.half[a])*call.units)) + integerProduct(p, c, i, a)
	chain := c.half[a]
	for j, y := range c.Row(a) {
		chain = fma32(-p.Data[(i/Lanes*d+j)*Lanes+i%Lanes], y, chain)
	}
	return float64(sum) - float64(chain)*call.units
}

// extremeRows are rows whose integers are as large as they can be, in signs that make sums of neighbouring products and
// of lanes as large as they can be, too.
func extremeRows(rng *rand.Rand, n, d int) []float32 {
	rows := make([]float32, n*d)
	for i := range n {
		pattern := rng.Uint64()
		for j := range d {
			x := float32(1)
			switch i % 6 {
			case 0: // all the same
			case 1: // the signs of a lane
				x = float32(1 - int(pattern>>(j/2%16)&1)*2)
			case 2: // any signs
				x = float32(1 - rng.IntN(2)*2)
			case 3: // one lane of two
				x = float32(j / 2 % 2)
			case 4: // one run of several
				x = float32(1-int(pattern&1)*2) * float32(min(1, j/32%3))
			case 5:
				x = rng.Float32()*2 - 1
			}
			if pattern>>63 > 0 {
				x = -x
			}
			rows[i*d+j] = x
		}
	}
	return rows
}

// TestFilterScores compares the scores of each path with sums of products in plain Go, where sums of 16 bits are as
// large as they can be, in runs of all lengths.
func TestFilterScores(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(19, 29))
		lengths := map[int]bool{}
		for _, group := range filterGroups() {
			for _, d := range []int{1, 3, 4, 5, 16, 30, 31, 32, 33, 36, 63, 64, 65, 100, 257, 784} {
				for _, length := range []float32{1, 1.0 / 3, 3} {
					const n, k = 48, 45
					points, centroids := extremeRows(rng, n, d), extremeRows(rng, k, d)
					if d%3 > 0 { // not so extreme
						for _, rows := range [][]float32{points, centroids} {
							for i := range rows {
								rows[i] = float32(min(max(rng.NormFloat64()/4, -1), 1))
							}
						}
					}
					for i := range centroids {
						centroids[i] *= length
					}
					copy(centroids, points[:k/2*d]) // so that some are parallel, of the lengths of the others or not
					p, c := packed(points, n, d), NewCentroids(k, d)
					filtered(t, group, p, c, centroids)
					call, ok := p.filter.call(c)
					if !ok {
						if group == 4 {
							t.Errorf("d=%d, lengths %g: no filter", d, length)
						}
						continue
					}
					checkScores(t, p, c, &call)
					lengths[c.filter.run] = true
				}
			}
		}
		if filterRuns(4) && len(lengths) < runLengths {
			t.Errorf("lengths of runs are %v, want all", lengths)
		}
	})
}

// checkScores compares scores with those of plain Go.
func checkScores(t *testing.T, p *Panels, c *Centroids, call *filterCall) {
	t.Helper()
	f, s := p.filter, new(filterScratch)
	panels := filterGroupPanels(f.chunk)
	for first := 0; first+panels <= panelCount(p.N); first += panels {
		for i := range s.best {
			s.best[i] = math.MaxInt32
		}
		filterScores(call, panels, &f.data[first*f.size()*Lanes], 0, 0, call.c.tiles, 0, 0, s)
		for i := range panels * Lanes {
			least := int32(math.MaxInt32)
			for a := range call.c.tiles * filterTile {
				want := call.base[a]
				if a < c.K {
					want += int32(integerProduct(p, c, first*Lanes+i, a))
					if filterShifts(f.group) {
						want -= c.filter.shift[a]
					}
				}
				least = min(least, want)
				if got := s.scores[a*panels*Lanes+i]; got != want {
					t.Fatalf("d=%d, %d to a word: the score of point %d and centroid %d is %d, want %d", p.D, f.group,
						first*Lanes+i, a, got, want)
				}
			}
			if s.best[i] != least {
				t.Fatalf("d=%d: the least score of point %d is %d, want %d", p.D, first*Lanes+i, s.best[i], least)
			}
		}
		s.checkNearest(t, call.c.tiles, panels)
	}
}

// checkNearest finds the centroids of least scores, but for a point that has none of these.
func (s *filterScratch) checkNearest(t *testing.T, tiles, panels int) {
	t.Helper()
	const first, none = 100, -1
	for panel := range panels {
		missed := panel*Lanes + panel
		s.best[missed]--
		for i := range s.labels {
			s.labels[i] = none
		}
		if !s.nearest(tiles, panels, panel, first) {
			return
		}
		for i, label := range s.labels[:panels*Lanes] {
			if i/Lanes != panel || i == missed {
				if label != none {
					t.Fatalf("panel %d of %d: the label of point %d is %d, want %d", panel, panels, i, label, none)
				}
				continue
			}
			a := int(label) - first
			if a < 0 || a >= tiles*filterTile || s.scores[a*panels*Lanes+i] != s.best[i] {
				t.Fatalf("panel %d of %d: point %d has the label %d, which has not its least score", panel, panels, i, label)
			}
		}
	}
}

func BenchmarkAssignFilter(b *testing.B) {
	for _, s := range [][3]int{{9600, 64, 1000}, {4800, 128, 4096}, {2400, 768, 1000}, {9600, 100, 64}} {
		n, d, k := s[0], s[1], s[2]
		for _, group := range slices.Concat([]int{0}, filterGroups()) {
			b.Run(fmt.Sprintf("d=%d/k=%d/integers=%d", d, k, group), func(b *testing.B) {
				p, c := lloydData(n, d, k, 16)
				if group > 0 {
					p.addFilter(group, inOrder)
					c.PrepareFilter(p)
					c.Set(slices.Clone(c.rows))
				}
				labels := make([]uint16, n)
				run(b, n, bound(n, d, k), 0, func() { Assign(*p, c, labels, nil) })
			})
		}
	}
}

// TestFilterIntegersOfCentroids compares the integers of centroids with those of a path that makes them in Go.
func TestFilterIntegersOfCentroids(t *testing.T) {
	if !slices.Contains(supportedPaths(), avx512vnni) {
		t.Skip("SKIPPED: this CPU has no AVX-512 VNNI, for which alone there is a routine")
	}
	defer forcePath(avx512vnni)()
	rng := rand.New(rand.NewPCG(19, 27))
	for _, d := range []int{15, 16, 33, 64, 100, 768} {
		const n, k = 40, 19
		p, c := NewPanels(n, d), NewCentroids(k, d)
		Pack(p, gridRows(rng, n, d, 16))
		rows := gridRows(rng, k, d, 16)
		filtered(t, 4, p, c, rows)
		f := c.filter
		f.set(c)
		data, shift, rough := slices.Clone(f.data), slices.Clone(f.shift), f.rough
		clear(f.data)
		restore := forcePath(avx512)
		f.set(c)
		restore()
		if !slices.Equal(f.data, data) || !slices.Equal(f.shift, shift) {
			t.Errorf("d=%d: integers are not those of Go", d)
		}
		if math.Abs(rough/f.rough-1) > 1e-9 {
			t.Errorf("d=%d: errors are %g, want %g", d, rough, f.rough)
		}
	}
}
