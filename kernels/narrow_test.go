package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// narrowed prepares points and centroids for the narrow form, whatever the rule says of their shape. It reports
// whether the points have one.
func narrowed(p *Panels, c *Centroids, rows []float32) bool {
	p.narrow, p.bounds, c.narrow = nil, nil, nil
	if p.addNarrow(inOrder); p.narrow == nil {
		return false
	}
	c.PrepareFilter(p)
	c.Set(rows)
	return true
}

// TestAssignNarrowEqualsPortable attacks the bound of the narrow form: points between centroids, on grids from coarse
// to fine, around an origin far from 0, at all tails, and in parts that begin at any panel.
func TestAssignNarrowEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !narrows() {
			return
		}
		rng := rand.New(rand.NewPCG(29, 1))
		seen, doubted, refused := int64(0), int64(0), 0
		check := func(n, d, k, f int, points, centroids []float32, what string) {
			t.Helper()
			p, c := packed(points, n, d), NewCentroids(k, d)
			if !narrowed(p, c, centroids) {
				if summable(points) {
					t.Fatalf("%s n=%d d=%d k=%d: no narrow form", what, n, d, k)
				}
				refused++
				return
			}
			want, got := make([]uint16, n), make([]uint16, n)
			assignPortable(p, c, want, nil, nil)
			if assignNarrow(p, c, got) && !slices.Equal(want, got) {
				t.Fatalf("%s n=%d d=%d k=%d: labels\n%v, want\n%v", what, n, d, k, got, want)
			}
			seen, doubted = seen+c.narrow.seen.Load(), doubted+c.narrow.doubted.Load()
			from := rng.IntN(panelCount(n)) * Lanes
			clear(got[from:])
			c.Set(centroids)
			if part := p.Slice(from, n); part.N > 0 && assignNarrow(&part, c, got[from:]) && !slices.Equal(want, got) {
				t.Fatalf("%s n=%d d=%d k=%d: labels of the part from %d differ", what, n, d, k, from)
			}
			narrowSums(t, rng, p, c, want, f)
		}
		for _, d := range []int{16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 257, 784} {
			for _, k := range []int{1, 2, 3, 5, 6, 9, 10, 11, 15, 16, 20, 64} {
				n := equalityNs[(d*131+k)%len(equalityNs)] + (d+k)%2*200
				f := 4 + (d+k)%19
				points, centroids := closeRows(rng, n, d, k, f)
				check(n, d, k, MaxFractionBits, points, centroids, fmt.Sprintf("close, f=%d", f))
				check(n, d, k, MaxFractionBits, hardRows(rng, n, d), hardRows(rng, k, d), "hard")
				check(n, d, k, 16, gridRows(rng, n, d, 16), gridRows(rng, k, d, 22), "grid")
				for i := range points {
					points[i] = float32(math.Trunc(float64(points[i]/8*narrowGrid))) / narrowGrid
					points[i] += 0.8125
				}
				for i := range centroids {
					centroids[i] = centroids[i]/8 + 0.8125
				}
				check(n, d, k, MaxFractionBits, points, centroids, "far from 0")
			}
		}
		if decided := seen - doubted; decided < seen/3 || doubted < seen/20 || refused < 10 {
			t.Errorf("of %d points the narrow form has decided %d; %d sets have none", seen, decided, refused)
		}
	})
}

// narrowSums compares what Reassign makes of random labels and their sums, which moves points by their narrow form,
// with the sums of all points.
func narrowSums(t *testing.T, rng *rand.Rand, p *Panels, c *Centroids, want []uint16, f int) {
	t.Helper()
	labels := slices.Clone(want)
	for range 1 + p.N/8 {
		labels[rng.IntN(p.N)] = uint16(rng.IntN(c.K + 1))
	}
	sums, got := NewAccumulator(c.K, c.D, f), NewAccumulator(c.K, c.D, f)
	Accumulate(*p, want, sums)
	Accumulate(*p, labels, got)
	Reassign(*p, c, float32(math.Inf(1)), labels, got, nil)
	if !slices.Equal(want, labels) || !slices.Equal(sums.Sums, got.Sums) || !slices.Equal(sums.Counts, got.Counts) {
		t.Fatalf("n=%d d=%d k=%d: Reassign gives other labels or sums", p.N, p.D, c.K)
	}
}

// TestNarrowFormIsRefused checks that points that the narrow form cannot give back have none.
func TestNarrowFormIsRefused(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !narrows() {
			return
		}
		for _, d := range []int{32, 40} {
			for _, x := range []float32{0x1p-23, 1 + 0x1p-22, -1 - 0x1p-22, 3, -1e30, float32(math.Inf(1)),
				float32(math.NaN())} {
				for _, j := range []int{0, 31, d - 1} {
					p := packed(gridRows(rand.New(rand.NewPCG(29, 2)), 33, d, 22), 33, d)
					row := p.Point(32, nil)
					row[j] = x
					p.Set(32, row)
					if p.addNarrow(inOrder); p.narrow != nil {
						t.Errorf("d=%d: points with the coordinate %g have a narrow form", d, x)
					}
				}
			}
		}
	})
}

// TestMappedPointsStayAsTheyAre: points in a file may be more than memory.
func TestMappedPointsStayAsTheyAre(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		p := packed(gridRows(rand.New(rand.NewPCG(29, 3)), 33, 784, 22), 33, 784)
		view := *p
		view.Mapped = true
		view = view.Slice(0, 33)
		view.PrepareNarrow(10, nil)
		if p.PrepareNarrow(10, nil); view.Narrow() || p.Narrow() != narrows() {
			t.Errorf("a narrow form of points in a file: %v, in memory: %v", view.Narrow(), p.Narrow())
		}
	})
}

// TestNarrowRoutinesEqualReference compares the form that routines make, and the points that they read from it, with
// those in plain Go.
func TestNarrowRoutinesEqualReference(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !narrows() {
			return
		}
		rng := rand.New(rand.NewPCG(29, 3))
		for chunks := 1; chunks <= 5; chunks++ {
			for _, f := range []int{0, 7, 22} {
				d, stride := chunks*narrowDims, chunks+rng.IntN(2)
				p := packed(gridHardRows(rng, Lanes, d, f), Lanes, d)
				if f == 7 {
					p.Data[rng.IntN(len(p.Data))] = float32(math.Pi)
				}
				origin := make([]int32, d)
				for j := range origin {
					origin[j] = int32(rng.IntN(255)-127) << 15
				}
				var words, rest [2][]int32
				var sums [2][4 * Lanes]float32
				for i := range words {
					words[i], rest[i] = make([]int32, chunks*narrowChunk*Lanes), make([]int32, stride*narrowChunk/2*Lanes)
				}
				narrowPack(p.Data, chunks, origin, words[0], rest[0], stride, &sums[0])
				narrowPackPortable(p.Data, chunks, origin, words[1], rest[1], stride, &sums[1])
				bits := func(x [4 * Lanes]float32) (b [4 * Lanes]uint32) {
					for i := range x {
						b[i] = math.Float32bits(x[i])
					}
					return b
				}
				if !slices.Equal(words[0], words[1]) || !slices.Equal(rest[0], rest[1]) || bits(sums[0]) != bits(sums[1]) {
					t.Fatalf("%d chunks, f=%d: another form", chunks, f)
				}
				for l := range Lanes {
					got, want := make([]float32, d), make([]float32, d)
					narrowRow(words[0][l:], rest[0][l*stride*narrowChunk/2:], origin, chunks, got)
					narrowRowPortable(words[0][l:], rest[0][l*stride*narrowChunk/2:], origin, chunks, want)
					if p.Point(l, want); f != 7 && !slices.Equal(got, want) {
						t.Fatalf("%d chunks, f=%d: point %d is\n%v, want\n%v", chunks, f, l, got, want)
					}
				}
			}
		}
	})
}

// TestNarrowAssignEqualsReference compares labels and doubts with those in plain Go.
func TestNarrowAssignEqualsReference(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !narrows() {
			return
		}
		rng := rand.New(rand.NewPCG(29, 4))
		for chunks := 1; chunks <= 4; chunks++ {
			for k := 1; k <= 32; k++ {
				narrowAssignOnce(t, rng, chunks, k)
			}
		}
	})
}

func narrowAssignOnce(t *testing.T, rng *rand.Rand, chunks, k int) {
	t.Helper()
	tiles, last := narrowTiles(k)
	rows, size := tiles*narrowTile+last*narrowLast, 1+chunks*narrowChunk
	n := &narrowCentroids{points: &narrowBounds{chunks: chunks}, words: make([]int32, rows*size)}
	for i := range n.words {
		n.words[i] = int32(rng.Uint32())
	}
	for i := range rows {
		at, _ := n.place(i)
		n.words[at] = int32(math.Float32bits(float32(rng.IntN(5)) * 0x1p28))
	}
	x := make([]int32, 2*n.points.size())
	for i := range x {
		x[i] = int32(rng.Uint32()) & 0x00070007 // equal sums are frequent
		if rng.IntN(8) == 0 {
			x[i] = int32(rng.Uint32())
		}
	}
	stride := rng.IntN(2) * n.points.size()
	var labels [2 * Lanes]uint16
	var doubts [2]uint16
	band := float32(rng.IntN(2)) * 0x1p29
	narrowAssign(&x[0], 4*stride, chunks, n.words, tiles, last, band, make([]float32, 2*narrowTile*Lanes), &labels,
		&doubts)
	for i := range labels {
		least, second, label := float32(math.Inf(1)), float32(math.Inf(1)), 0
		for a := range rows {
			at, step := n.place(a)
			sum := math.Float32frombits(uint32(n.words[at]))
			for chunk := range chunks {
				part := int32(0)
				for w := chunk * narrowChunk; w < (chunk+1)*narrowChunk; w++ {
					u, v := x[i/Lanes*stride+w*Lanes+i%Lanes], n.words[at+(1+w)*step]
					part += int32(int16(u))*int32(int16(v)) + u>>16*(v>>16)
				}
				sum += float32(part)
			}
			if sum < least {
				label = a
			}
			least, second = min(least, sum), min(second, max(least, sum))
		}
		if int(labels[i]) != label {
			t.Fatalf("%d chunks, k=%d: point %d has the label %d, want %d", chunks, k, i, labels[i], label)
		}
		if got := doubts[i/Lanes]>>(i%Lanes)&1 == 1; got != (second-least <= band) {
			t.Fatalf("%d chunks, k=%d: point %d, %g and %g: doubtful is %v", chunks, k, i, least, second, got)
		}
	}
}

// TestNarrowBoundCoversScores takes scores in plain Go, checks that no chunk's sum leaves 32 bits, and compares them
// with the chains: the difference of two is off by at most the band. So it is with words of points as they are.
func TestNarrowBoundCoversScores(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !narrows() {
			return
		}
		rng := rand.New(rand.NewPCG(29, 5))
		for _, s := range [][3]int{{32, 9, 22}, {33, 12, 16}, {100, 7, 4}, {257, 20, 22}, {784, 10, 22}, {784, 10, 0}} {
			d, k, n := s[0], s[1], 64
			p, c := packed(gridRows(rng, n, d, s[2]), n, d), NewCentroids(k, d)
			rows := gridRows(rng, k, d, s[2])
			if !narrowed(p, c, rows) || !c.narrow.ready(p.bounds, c) {
				t.Fatalf("d=%d: no narrow form", d)
			}
			f := p.narrow
			narrowScores(t, p, c, func(i, j int) int16 {
				return int16(f.words[i/Lanes*f.size()+j/2*Lanes+i%Lanes] >> (j % 2 * 16))
			})
			if d%2 > 0 {
				continue
			}
			p.narrow, p.bounds, c = nil, nil, NewCentroids(k, d)
			p.addBounds(inOrder)
			c.PrepareFilter(p)
			if c.Set(rows); !c.narrow.ready(p.bounds, c) {
				t.Fatalf("d=%d: no bounds", d)
			}
			narrowScores(t, p, c, func(i, j int) int16 {
				return int16(math.Float32bits(p.Data[i/Lanes*Lanes*d+j*Lanes+i%Lanes] + p.bounds.shifts[j]))
			})
		}
	})
}

// narrowScores compares scores by the integers u of points and dimensions with the chains.
func narrowScores(t *testing.T, p *Panels, c *Centroids, u func(i, j int) int16) {
	t.Helper()
	r, d := c.narrow, c.D
	largest, row := 0.0, make([]float32, d)
	// ab is what the first centroid's base and the bound on it give.
	units := narrowScale(c)
	for i := range p.N {
		p.Point(i, row)
		var first, chain0 float64
		for a := range c.K {
			at, step := r.place(a)
			score, part := float64(math.Float32frombits(uint32(r.words[at]))), int64(0)
			for j := range d {
				part += int64(u(i, j)) * int64(int16(r.words[at+(1+j/2)*step]>>(j%2*16)))
				if j%narrowDims < narrowDims-1 && j < d-1 {
					continue
				}
				if part != int64(int32(part)) {
					t.Fatalf("d=%d: the sum %d of a chunk", d, part)
				}
				score, part = score+float64(part), 0
			}
			chain := chainOf(row, c, a)
			if a == 0 {
				first, chain0 = score, chain
				continue
			}
			off := math.Abs(score-first-(chain-chain0)*units) / float64(r.band)
			if largest = max(largest, off); off > 1 {
				t.Fatalf("d=%d: point %d, centroid %d: the score is off by %g of the band", d, i, a, off)
			}
		}
	}
	if largest < 0.005 {
		t.Errorf("d=%d: the largest error is %g of the bound: the bound says nothing", d, largest)
	}
}

// narrowScale is ab, by the rule that set has for b.
func narrowScale(c *Centroids) float64 {
	f, widest, reach := c.narrow.points, 0.0, 0.0
	for i := range c.K {
		part := 0.0
		for j, y := range c.Row(i) {
			if j%narrowDims == 0 {
				part = 0
			}
			z := float64(y) - float64(f.origin[j])/narrowGrid
			part += z * z
			widest, reach = max(widest, math.Abs(z)), max(reach, part)
		}
	}
	reach = math.Sqrt(reach) * filterUp
	return narrowUnits * min((1<<15-2)/widest, ((1<<31-1)/f.reach-math.Sqrt(narrowDims)/2)/reach) * (1 - 0x1p-20)
}

func BenchmarkReassignNarrow(b *testing.B) {
	for _, s := range [][3]int{{70000, 784, 10}, {100000, 128, 10}, {20000, 1024, 100}} {
		n, d, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("n=%d/d=%d/k=%d", n, d, k), func(b *testing.B) {
			p, c := lloydData(n, d, k, 22)
			rows, labels, acc := slices.Clone(c.rows), make([]uint16, n), NewAccumulator(k, d, 22)
			AssignAccumulate(*p, c, labels, acc)
			p.PrepareNarrow(k, nil)
			c.PrepareFilter(p)
			c.Set(rows)
			run(b, n, bound(n, d, k), 2*n*d, func() { Reassign(*p, c, float32(math.Inf(1)), labels, acc, nil) })
		})
	}
}
