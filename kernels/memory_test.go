//go:build linux

package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded returns n zeroed elements that end right before an inaccessible page,
// or start right after one, so that any access outside them faults.
func guarded[T any](t testing.TB, n int, atEnd bool) []T {
	t.Helper()
	var zero T
	page := unix.Getpagesize()
	size := n * int(unsafe.Sizeof(zero))
	inner := (size + page - 1) / page * page
	block, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(block); err != nil {
			t.Error(err)
		}
	})
	for _, fence := range [][]byte{block[:page], block[page+inner:]} {
		if err := unix.Mprotect(fence, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	start := page
	if atEnd {
		start += inner - size
	}
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&block[start])), n)
}

// guardedPanels packs points into panels between guard pages.
func guardedPanels(t testing.TB, rng *rand.Rand, n, d int, atEnd bool) Panels {
	p := Panels{N: n, D: d, Data: guarded[float32](t, panelCount(n)*d*Lanes, atEnd)}
	rows := guarded[float32](t, n*d, atEnd)
	copy(rows, gridRows(rng, n, d, 16))
	Pack(&p, rows)
	return p
}

// TestKernelsStayInsideTheirSlices runs every kernel on data that touches guard
// pages, at both ends. An access outside ends the test binary with a fault.
func TestKernelsStayInsideTheirSlices(t *testing.T) {
	for _, path := range supportedPaths() {
		for _, atEnd := range []bool{false, true} {
			name := path.String() + "/start"
			if atEnd {
				name = path.String() + "/end"
			}
			t.Run(name, func(t *testing.T) {
				defer forcePath(path)()
				runGuarded(t, atEnd)
			})
		}
	}
}

func runGuarded(t *testing.T, atEnd bool) {
	rng := rand.New(rand.NewPCG(11, 3))
	for _, d := range []int{1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 33, 100} {
		for _, k := range []int{1, 3, 7, 13, 17} {
			for _, n := range []int{1, 16, 33, 64, 95} {
				guardedShape(t, rng, n, d, k, atEnd)
			}
		}
	}
	for n := range 70 {
		AddUint64(guarded[uint64](t, n, atEnd), guarded[uint64](t, n, atEnd))
		digests := guarded[[16]byte](t, n, atEnd)
		scratch := guarded[ArrivalScratch](t, 1, atEnd)
		key, registers := NewArrivalKey([16]byte{1}), guarded[float64](t, n+1, atEnd)
		Arrivals(key, digests, 1, 3, 3, registers, nil, &scratch[0])
		states := guarded[ArrivalState](t, n, atEnd)
		guardedShares(t, n, atEnd)
		labelCells(guarded[uint32](t, n, atEnd), guarded[uint16](t, n, atEnd), 3)
		CountCells([][]uint16{guarded[uint16](t, n, atEnd), guarded[uint16](t, n, atEnd)}, 3, guarded[int64](t, 9, atEnd))
		kept := Arrivals(key, digests, 1, 3, 9, registers, states, &scratch[0])
		Continue(key, states[:kept], 1, 5, registers, &scratch[0])
	}
}

func guardedShares(t *testing.T, n int, atEnd bool) {
	for length := 8; length <= MaxCells; length *= 2 {
		rows := guarded[int32](t, 1+n%3, atEnd)
		for i := range rows {
			rows[i] = int32(i * length)
		}
		cells := len(rows) * length
		ShareCounts(guarded[float64](t, cells, atEnd), guarded[float64](t, cells, atEnd), length, rows,
			guarded[uint64](t, n, atEnd), guarded[float64](t, n, atEnd), guarded[float64](t, n, atEnd))
	}
	SumMaxima(guarded[float64](t, n, atEnd), guarded[float64](t, n, atEnd))
}

// guardedRun is a set of points with what kernels read and write beside it, all of it in
// guarded memory.
type guardedRun struct {
	*testing.T
	rng          *rand.Rand
	atEnd        bool
	n, d, k      int
	p            Panels
	c            *Centroids
	labels       []uint16
	dist, second []float32
}

func guardedShape(t *testing.T, rng *rand.Rand, n, d, k int, atEnd bool) {
	c := NewCentroids(k, d)
	c.rows = guarded[float32](t, k*d, atEnd)
	c.half = guarded[float32](t, k, atEnd)
	c.wide.data = guarded[float64](t, d*wideStride(k), atEnd)
	if c.tiles != nil {
		c.tiles = guarded[float32](t, k*d, atEnd)
	}
	if c.few != nil {
		c.few.data = guarded[float32](t, Lanes*d, atEnd)
	}
	g := &guardedRun{t, rng, atEnd, n, d, k, guardedPanels(t, rng, n, d, atEnd), c, guarded[uint16](t, n, atEnd),
		guarded[float32](t, n, atEnd), guarded[float32](t, n, atEnd)}
	c.Set(gridRows(rng, k, d, 16))
	g.assign()
	g.accumulate()
	g.count()
	g.change()
	g.bounds()
	g.weigh()
}

// singles and doubles are a number of values in guarded memory.
func (g *guardedRun) singles(n int) []float32 { return guarded[float32](g, n, g.atEnd) }
func (g *guardedRun) doubles(n int) []float64 { return guarded[float64](g, n, g.atEnd) }

// move moves values there.
func (g *guardedRun) move(s *[]float64) {
	to := g.doubles(len(*s))
	copy(to, *s)
	*s = to
}

// filter is Assign by way of the candidate filter, whose integer forms are in guarded memory.
func (g *guardedRun) filter() {
	bytes := func(s *[]byte) {
		to := guarded[byte](g, len(*s), g.atEnd)
		copy(to, *s)
		*s = to
	}
	for _, group := range filterGroups() {
		p, c := g.p, NewCentroids(g.k, g.d)
		p.addFilter(group, inOrder)
		if p.filter == nil {
			g.Fatalf("n=%d d=%d k=%d: no filter", g.n, g.d, g.k)
		}
		c.PrepareFilter(&p)
		bytes(&c.filter.data)
		bytes(&p.filter.data)
		c.Set(slices.Clone(g.c.rows))
		Assign(p, c, g.labels, nil)
	}
}

func (g *guardedRun) assign() {
	p, c, n, d := g.p, g.c, g.n, g.d
	g.filter()
	Assign(p, c, g.labels, nil)
	Assign(p, c, g.labels, g.dist)
	Assign2(p, c, g.labels, g.dist, g.second)
	Distances(p, c, g.labels, g.dist)
	AssignRadius(p, c, float32(d)/2, g.labels, g.dist)
	if n > 1 {
		g.labels[n/2] = uint16(g.k) // no centroid: no row may be read for it
	}
	Distances(p, c, g.labels, g.dist)
	lo := n / 3
	CostRows(p, lo, n, c, 16, guarded[int64](g, (n-lo)*g.k, g.atEnd))
	if d < TopTwoDims {
		rows := g.singles(g.k * d)
		copy(rows, c.rows)
		TopTwo(p, rows, g.singles(g.k), 1e-6, 1, guarded[uint16](g, n, g.atEnd), guarded[uint32](g, n, g.atEnd),
			g.singles(n))
	}
}

func (g *guardedRun) accumulate() {
	acc := NewAccumulator(g.k, g.d, 16)
	acc.Sums, acc.Counts = guarded[int64](g, g.k*g.d, g.atEnd), guarded[int64](g, g.k, g.atEnd)
	acc.scratch.lanes = g.singles(len(acc.scratch.lanes))
	for _, s := range []*[]int32{&acc.scratch.table, &acc.scratch.tally} {
		if *s != nil {
			*s = guarded[int32](g, len(*s), g.atEnd)
		}
	}
	if len(acc.scratch.lanes) == 0 {
		acc.scratch.lanes = nil
	}
	AssignAccumulate(g.p, g.c, g.labels, acc)
	AssignAccumulate(g.p, g.c, nil, acc)
	Accumulate(g.p, g.labels, acc)
	acc.scratch.offsets = g.singles(offsetPanels(acc) * Lanes * g.d)
	AccumulateOffsets(g.p, g.c, g.labels, g.singles(g.n), acc)
	AssignAccumulateRadius(g.p, g.c, 0.5, g.labels, acc)
	AssignAccumulateRadius(g.p, g.c, 0.5, nil, acc)
	if hasOneTile() && g.k <= Lanes && g.d >= Lanes {
		sink := newSink(acc)
		sink.slots = newSlots(acc)
		sink.slots.sums = guarded[int32](g, g.d*Lanes, g.atEnd)
		sink.add(&g.p, g.labels)
		sink.fold()
	}
}

func (g *guardedRun) count() {
	n, d := g.n, g.d
	gridCells(guarded[uint32](g, panelCount(n)*Lanes, g.atEnd), g.p.Data, d, 3)
	if d < 8 {
		CountGrid(g.p, 3, guarded[int64](g, power(3, d), g.atEnd))
		WeighGrid(g.p, 3, guarded[uint32](g, n, g.atEnd), guarded[int64](g, power(3, d), g.atEnd))
	}
}

// change has the kernels that make other coordinates.
func (g *guardedRun) change() {
	n, d := g.n, g.d
	q := 1 + (n+d+g.k)%24 // tiles of every width
	m := NewMatrix(q, d, gridRows(g.rng, q, d, 16))
	LeastDot(g.doubles(n*d), n, n, g.doubles(d))
	m.tiles = g.singles(len(m.tiles))
	Project(g.p, m, Panels{N: n, D: q, Data: g.singles(panelCount(n) * q * Lanes)})
	u := NewUnitMap(make([]float64, d), ones(d), 16)
	for _, s := range []*[]float64{&u.lo, &u.hi, &u.width} {
		g.move(s)
	}
	Quantise(g.singles(n*d), g.doubles(n*d), u)
	Quantise(g.singles(n*d), g.singles(n*d), u)
	Extend(NewRanges[float32](d), g.singles(n*d))
	Extend(NewRanges[float64](d), g.doubles(n*d))
}

// bounds has the kernels that keep a search from measuring distances.
func (g *guardedRun) bounds() {
	n, k := g.n, g.k
	masks := guarded[uint32](g, (n+31)/32, g.atEnd)
	Stale(g.dist, guarded[uint16](g, n, g.atEnd), g.singles(k), masks)
	StaleByDistance(g.dist, g.second, g.singles(n), DistanceBound{1, 2, 3, 4}, masks)
	BoundKeys(g.dist, g.second, guarded[uint16](g, n, g.atEnd), g.doubles(k), KeyBound{1, 2, 3}, g.singles(n),
		g.singles(n))
	e := NewExchanges(k)
	e.Gains, e.table = g.doubles(k), g.doubles(len(e.table))
	Exchange(g.dist, g.dist, g.second, g.labels, nil, e)
	Exchange(g.dist, g.dist, g.second, g.labels, g.doubles(n), e)
	PointLosses(g.dist, true, 1)
	PointLosses(g.dist, false, 1)
}

func (g *guardedRun) weigh() {
	weighted, sums := weightedPoints(g.rng, &g.p), NewWeightedAccumulator(g.k, g.d)
	for _, s := range []*[]float64{&weighted.Weights, &weighted.rows, &sums.Sums, &sums.Weights, &sums.table} {
		g.move(s)
	}
	AssignAccumulateWeighted(weighted, g.c, g.labels, g.dist, g.second, sums)
	WeightedCost(weighted.Weights, g.dist)
	which := guarded[int32](g, g.n, g.atEnd)
	for i := range which {
		which[i] = int32(g.n - 1 - i)
	}
	AddMembers(weighted, which, g.labels, g.doubles(g.k*weighted.Width()))
}

// TestRankLongStaysInsideItsSlices runs the ranking of many dimensions on slices that touch guard pages: the words of
// the last tile, room for the integers of a group, and labels and doubts of whole groups.
func TestRankLongStaysInsideItsSlices(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !rankPays(100, 64) {
			return
		}
		for _, atEnd := range []bool{false, true} {
			for _, d := range []int{1, 2, 17, 33, 64} {
				for _, k := range []int{1, 4, 5, 6, 7, 10, 11, 12, 13, 16, 17, 18, 19, 22, 23, 24, 25} {
					n := 2 * rankGroup() * Lanes
					p := guardedPanels(t, rand.New(rand.NewPCG(23, 11)), n, d, atEnd)
					rows, size := rankRows(k, d), 1+(d+1)/2
					words := guarded[int32](t, rows*size, atEnd)
					for j := range rows {
						words[rankLongWord(k, d, j, 0)] = int32(rows-j) << 16
					}
					room := guarded[int32](t, rankLongRoom(k, d), atEnd)
					labels, doubts := guarded[uint16](t, n, atEnd), guarded[uint16](t, n/Lanes, atEnd)
					rankLong(&p.Data[0], 2, d, &words[0], k, 1, 0, &room[0], &labels[0], &doubts[0])
					if int(labels[n-1]) != rows-1 || doubts[n/Lanes-1] != 0 {
						t.Fatalf("d=%d, k=%d: label %d and doubts %x, want the last centroid", d, k, labels[n-1], doubts[n/Lanes-1])
					}
				}
			}
		}
	})
}

// TestRankPairsStayInsideTheirSlices runs the ranking of few dimensions on slices that touch guard pages: what it
// fetches beyond the points, and the dimension that odd ones lack, it does not read.
func TestRankPairsStayInsideTheirSlices(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !rankPays(8, 64) || ranksLong(8) {
			return
		}
		for _, atEnd := range []bool{false, true} {
			for d := 5; d <= 2*rankWords; d++ {
				for _, k := range []int{1, 2, 3, 4, 5, 7, 31, 64, 127, 128} {
					n := 4 * Lanes
					p := guardedPanels(t, rand.New(rand.NewPCG(23, 12)), n, d, atEnd)
					words := guarded[int32](t, k*(1+(d+1)/2), atEnd)
					for j := range k {
						words[j*(1+(d+1)/2)] = int32(k-j) << 16
					}
					labels, doubts := guarded[uint16](t, n, atEnd), guarded[uint16](t, n/Lanes, atEnd)
					rankPairs(&p.Data[0], 2, d, &words[0], k, 1, 0, &labels[0], &doubts[0])
					if int(labels[n-1]) != k-1 || doubts[n/Lanes-1] != 0 {
						t.Fatalf("d=%d, k=%d: label %d and doubts %x, want the last centroid", d, k, labels[n-1], doubts[n/Lanes-1])
					}
				}
			}
		}
	})
}

// TestNarrowStaysInsideItsSlices makes, reads and ranks narrow points on slices that touch guard pages; what ranking
// fetches beyond them, it does not read.
func TestNarrowStaysInsideItsSlices(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !narrows() {
			return
		}
		for _, atEnd := range []bool{false, true} {
			for _, chunks := range []int{1, 2, 5} {
				d := chunks * narrowDims
				p := guardedPanels(t, rand.New(rand.NewPCG(29, 6)), 2*Lanes, d, atEnd)
				origin, size := guarded[int32](t, d, atEnd), chunks*narrowChunk*Lanes
				words, rest := guarded[int32](t, 2*size, atEnd), guarded[int32](t, size, atEnd)
				sums, row := guarded[[4 * Lanes]float32](t, 1, atEnd), guarded[float32](t, d, atEnd)
				for panel := range 2 {
					narrowPack(p.Data[panel*Lanes*d:], chunks, origin, words[panel*size:], rest[panel*size/2:], chunks, &sums[0])
				}
				narrowRow(words[2*size-(chunks*narrowChunk-1)*Lanes-1:], rest[size-chunks*narrowChunk/2:], origin, chunks, row)
				if want := p.Point(2*Lanes-1, nil); !slices.Equal(row, want) {
					t.Fatalf("%d chunks: the last point is\n%v, want\n%v", chunks, row, want)
				}
				from, to := guarded[int64](t, d, atEnd), guarded[int64](t, d, atEnd)
				narrowMove(row, 1<<16, from, to)
				for j, x := range row {
					if want := int64(int32(x * (1 << 16))); from[j] != -want || to[j] != want {
						t.Fatalf("%d chunks: coordinate %d moves %d and %d, want %d", chunks, j, from[j], to[j], want)
					}
				}
				for k := 1; k <= 11; k++ {
					tiles, last := narrowTiles(k)
					c := guarded[int32](t, (tiles*narrowTile+last*narrowLast)*(1+chunks*narrowChunk), atEnd)
					labels, doubts := guarded[[2 * Lanes]uint16](t, 1, atEnd), guarded[[2]uint16](t, 1, atEnd)
					room := guarded[float32](t, 2*narrowTile*Lanes, atEnd)
					narrowAssign(&words[0], 4*size, chunks, c, tiles, last, 0, room, &labels[0], &doubts[0])
					narrowAssign(&words[size], 0, chunks, c, tiles, last, 0, room, &labels[0], &doubts[0])
					if labels[0] != [2 * Lanes]uint16{} || doubts[0] != [2]uint16{math.MaxUint16, math.MaxUint16} {
						t.Fatalf("%d chunks, k=%d: labels %d and doubts %x of equal centroids", chunks, k, labels[0], doubts[0])
					}
				}
			}
		}
	})
}

// TestNarrowSumStaysInsideItsSlices measures points and ranks them as they are on slices that touch guard pages; what
// ranking fetches beyond them, it does not read.
func TestNarrowSumStaysInsideItsSlices(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !narrows() {
			return
		}
		for _, atEnd := range []bool{false, true} {
			for _, d := range []int{2, 30, 32, 66} {
				p := guardedPanels(t, rand.New(rand.NewPCG(31, 6)), slotPoints, d, atEnd)
				before := guardedPanels(t, rand.New(rand.NewPCG(31, 7)), slotPoints, d, atEnd)
				shifts, sums := guarded[float32](t, d, atEnd), guarded[[4 * Lanes]float32](t, 1, atEnd)
				for j := range shifts {
					shifts[j] = narrowShift
				}
				narrowLengths(p.Data[Lanes*d:], shifts, &sums[0])
				c, slots := guarded[int32](t, narrowTile*(1+d/2), atEnd), guarded[int32](t, d*Lanes, atEnd)
				labels, doubts := guarded[[slotPoints]uint16](t, 1, atEnd), guarded[[2]uint16](t, 1, atEnd)
				room, pair := guarded[float32](t, 2*narrowTile*Lanes, atEnd), guarded[slotPair](t, 1, atEnd)
				for passes := range mostPasses + 1 {
					pair[0].x, pair[0].passes = &before.Data[0], passes
					narrowSum(&p.Data[0], shifts, c, 0, room, &labels[0], &doubts[0], &pair[0], 1.5, slots)
				}
				if labels[0] != [slotPoints]uint16{} || doubts[0] != [2]uint16{math.MaxUint16, math.MaxUint16} {
					t.Fatalf("d=%d: labels %d and doubts %x of equal centroids", d, labels[0], doubts[0])
				}
			}
		}
	})
}

// TestDotSumStaysInsideItsSlices assigns a pair of panels while another goes to slots, on slices that touch guard
// pages; what it fetches beyond them, it does not read.
func TestDotSumStaysInsideItsSlices(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !hasOneTile() {
			return
		}
		for _, atEnd := range []bool{false, true} {
			for _, d := range []int{1, 16, 67} {
				p := guardedPanels(t, rand.New(rand.NewPCG(31, 8)), slotPoints, d, atEnd)
				before := guardedPanels(t, rand.New(rand.NewPCG(31, 9)), slotPoints, d, atEnd)
				c := &Centroids{K: oneTile, D: d, tiles: guarded[float32](t, oneTile*d, atEnd),
					half: guarded[float32](t, oneTile, atEnd)}
				slots, labels := guarded[int32](t, d*Lanes, atEnd), guarded[[slotPoints]uint16](t, 1, atEnd)
				pair := guarded[slotPair](t, 1, atEnd)
				for passes := range mostPasses + 1 {
					pair[0].x, pair[0].passes = &before.Data[0], passes
					assignDotSum(&p.Data[0], c, &labels[0], &pair[0], 1.5, slots)
				}
				if labels[0] != [slotPoints]uint16{} {
					t.Fatalf("d=%d: labels %d of equal centroids", d, labels[0])
				}
			}
		}
	})
}

// TestScatterByRowStaysInsideItsSlices adds points by row on slices that touch guard pages; what it fetches beyond the
// table, it does not read.
func TestScatterByRowStaysInsideItsSlices(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		if !sumsRows(Lanes) {
			return
		}
		for _, atEnd := range []bool{false, true} {
			for _, d := range []int{Lanes, 3 * Lanes} {
				const k = 3
				acc := NewAccumulator(k, d, 16)
				acc.scratch.table, acc.scratch.tally = guarded[int32](t, (k+1)*d, atEnd), guarded[int32](t, k+1, atEnd)
				rows := guarded[float32](t, rowsSize(d)-Lanes, atEnd) // but for what is beside the last block
				labels := guarded[[Lanes]uint16](t, 1, atEnd)
				for i := range labels[0] {
					labels[0][i] = uint16(i % (k + 1))
				}
				rows[len(rows)-1] = 1 // of the last point, which has no cluster
				scatterByRow(rows, &labels[0], acc, 1.5)
				if got, want := acc.scratch.table[(k+1)*d-1], acc.scratch.table[0]; acc.scratch.tally[k] != 4 || got <= want {
					t.Fatalf("d=%d: %d points have no cluster, and their last sum is %d, want 4 and more than %d",
						d, acc.scratch.tally[k], got, want)
				}
			}
		}
	})
}
