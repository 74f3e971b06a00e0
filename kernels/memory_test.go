//go:build linux

package kernels

import (
	"math"
	"math/rand/v2"
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
		Arrivals(key, digests, 1, 3, registers, &scratch[0])
		states := guarded[ArrivalState](t, n, atEnd)
		guardedShares(t, n, atEnd)
		labelCells(guarded[uint32](t, n, atEnd), guarded[uint16](t, n, atEnd), 3)
		CountCells([][]uint16{guarded[uint16](t, n, atEnd), guarded[uint16](t, n, atEnd)}, 3, guarded[int64](t, 9, atEnd))
		kept := ArrivalsKept(key, digests, 1, 3, 9, registers, states, &scratch[0])
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

func guardedShape(t *testing.T, rng *rand.Rand, n, d, k int, atEnd bool) {
	p := guardedPanels(t, rng, n, d, atEnd)
	c := NewCentroids(k, d)
	c.rows = guarded[float32](t, k*d, atEnd)
	c.half = guarded[float32](t, k, atEnd)
	c.wide = guarded[float64](t, d*wideStride(k), atEnd)
	if c.tiles != nil {
		c.tiles = guarded[float32](t, k*d, atEnd)
	}
	c.Set(gridRows(rng, k, d, 16))
	labels := guarded[uint16](t, n, atEnd)
	dist, second := guarded[float32](t, n, atEnd), guarded[float32](t, n, atEnd)
	Assign(p, c, labels, nil)
	Assign(p, c, labels, dist)
	Assign2(p, c, labels, dist, second)
	Distances(p, c, labels, dist)
	AssignRadius(p, c, float32(d)/2, labels, dist)
	if n > 1 {
		labels[n/2] = uint16(k) // no centroid: no row may be read for it
	}
	Distances(p, c, labels, dist)

	acc := NewAccumulator(k, d, 16)
	acc.Sums, acc.Counts = guarded[int64](t, k*d, atEnd), guarded[int64](t, k, atEnd)
	for _, s := range []*[]float32{&acc.scratch.lanes} {
		*s = guarded[float32](t, len(*s), atEnd)
	}
	for _, s := range []*[]int32{&acc.scratch.table, &acc.scratch.tally} {
		if *s != nil {
			*s = guarded[int32](t, len(*s), atEnd)
		}
	}
	if len(acc.scratch.lanes) == 0 {
		acc.scratch.lanes = nil
	}
	AssignAccumulate(p, c, labels, acc)
	AssignAccumulate(p, c, nil, acc)
	Accumulate(p, labels, acc)
	r2 := guarded[float32](t, k, atEnd)
	for i := range r2 {
		r2[i] = float32(math.Inf(1))
	}
	AccumulateRelative(p, c, r2, labels, acc)
	gridCells(guarded[uint32](t, panelCount(n)*Lanes, atEnd), p.Data, d, 3)
	if d < 8 {
		CountGrid(p, 3, guarded[int64](t, power(3, d), atEnd))
		WeighGrid(p, 3, guarded[uint32](t, n, atEnd), guarded[int64](t, power(3, d), atEnd))
	}
	lo := n / 3
	CostRows(p, lo, n, c, 16, guarded[int64](t, (n-lo)*k, atEnd))
	AssignAccumulateRadius(p, c, 0.5, labels, acc)
	AssignAccumulateRadius(p, c, 0.5, nil, acc)
	if d < TopTwoDims {
		rows := guarded[float32](t, k*d, atEnd)
		copy(rows, c.rows)
		TopTwo(p, rows, guarded[float32](t, k, atEnd), 1e-6, 1, guarded[uint16](t, n, atEnd), guarded[uint32](t, n, atEnd),
			guarded[float32](t, n, atEnd))
	}
	q := 1 + (n+d+k)%24 // tiles of every width
	m := NewMatrix(q, d, gridRows(rng, q, d, 16))
	LeastDot(guarded[float64](t, n*d, atEnd), n, n, guarded[float64](t, d, atEnd))
	m.tiles = guarded[float32](t, len(m.tiles), atEnd)
	Project(p, m, Panels{N: n, D: q, Data: guarded[float32](t, panelCount(n)*q*Lanes, atEnd)})
	u := NewUnitMap(make([]float64, d), ones(d), 16)
	for _, s := range []*[]float64{&u.lo, &u.hi, &u.width} {
		g := guarded[float64](t, len(*s), atEnd)
		copy(g, *s)
		*s = g
	}
	Quantise(guarded[float32](t, n*d, atEnd), guarded[float64](t, n*d, atEnd), u)
	Quantise(guarded[float32](t, n*d, atEnd), guarded[float32](t, n*d, atEnd), u)
	masks := guarded[uint32](t, (n+31)/32, atEnd)
	Stale(dist, guarded[uint16](t, n, atEnd), guarded[float32](t, k, atEnd), masks)
	StaleByDistance(dist, second, guarded[float32](t, n, atEnd), DistanceBound{1, 2, 3, 4}, masks)
	Extend(NewRanges[float32](d), guarded[float32](t, n*d, atEnd))
	Extend(NewRanges[float64](d), guarded[float64](t, n*d, atEnd))
	e := NewExchanges(k)
	e.Gains, e.table = guarded[float64](t, k, atEnd), guarded[float64](t, len(e.table), atEnd)
	Exchange(dist, dist, second, labels, nil, e)
	Exchange(dist, dist, second, labels, guarded[float64](t, n, atEnd), e)
	Contributions(dist, true, 1)
	Contributions(dist, false, 1)
	weighted, sums := weightedPoints(rng, &p), NewWeightedAccumulator(k, d)
	for _, s := range []*[]float64{&weighted.Weights, &weighted.rows, &sums.Sums, &sums.Weights, &sums.table} {
		g := guarded[float64](t, len(*s), atEnd)
		copy(g, *s)
		*s = g
	}
	AssignAccumulateWeighted(weighted, c, labels, dist, second, sums)
	WeightedCost(weighted.Weights, dist)
}
