package kernels

import (
	"fmt"
	"unsafe"
)

// Lanes is the number of points in a panel. It is the same on every CPU.
const Lanes = 16

// Panels holds N points of D coordinates in ceil(N/16) blocks of
// [D][16]float32: the coordinate j of point i is Data[(i/16*D+j)*16+i%16].
// Data starts on a 64-byte boundary. In panels made by [NewPanels] the lanes
// past N are zero; in a view made by [Panels.Slice] they may hold the points
// that follow, and no kernel lets them influence a result.
type Panels struct {
	N, D int
	Data []float32
	// Mapped says that Data lies in a file, whose memory the system may take back: there may be more than memory, so no
	// narrow form is made of it.
	Mapped bool
	// filter is the integer form of the points of which these are a part from
	// firstPanel on; see PrepareFilter.
	filter     *filterPoints
	firstPanel int
	narrow     *narrowPoints // likewise; see PrepareNarrow
	bounds     *narrowBounds // of the narrow form, or alone
	// longest is at least the length of each point, 0 where it is not known; see PrepareFilter.
	longest float64
	widest  float64 // the magnitude of coordinates, where longest is known
	// stream says that these are part of panels that no cache holds, so that packing
	// writes past the caches: they would push out each other, and reading lines before
	// they are overwritten costs a third of the traffic.
	stream bool
}

// streamBytes is the size of panels from which on packing writes past the caches.
const streamBytes = 24 << 20

// NewPanels allocates zeroed panels for n points of d coordinates in one block.
// It panics unless n >= 0 and d > 0.
func NewPanels(n, d int) *Panels {
	if n < 0 || d <= 0 {
		panic(fmt.Sprintf("kernels: NewPanels: n=%d, d=%d, want n >= 0 and d > 0", n, d))
	}
	size := panelCount(n) * d * Lanes
	return &Panels{N: n, D: d, Data: alignedFloat32(size), stream: 4*size >= streamBytes}
}

// PanelsIn returns panels for n points of d coordinates in memory that was that of others, which
// hold what is there until they are packed; nil if that is too little, or much more.
func PanelsIn(memory []float32, n, d int) *Panels {
	size := panelCount(n) * d * Lanes
	if size > len(memory) || 4*size < 3*len(memory) {
		return nil
	}
	return &Panels{N: n, D: d, Data: memory[:size], stream: 4*size >= streamBytes}
}

// panelCount returns the number of panels that hold n points.
func panelCount(n int) int { return (n + Lanes - 1) / Lanes }

// check panics unless the panel data has the length that N and D ask for and the
// alignment of a cache line.
func (p *Panels) check(what string) {
	if p.N < 0 || p.D <= 0 {
		panic(fmt.Sprintf("kernels: %s: panels of n=%d, d=%d, want n >= 0 and d > 0", what, p.N, p.D))
	}
	if want := panelCount(p.N) * p.D * Lanes; len(p.Data) < want {
		panic(fmt.Sprintf("kernels: %s: len(panels.Data)=%d, want %d", what, len(p.Data), want))
	}
	if rest := uintptr(unsafe.Pointer(unsafe.SliceData(p.Data))) % lineBytes; p.N > 0 && rest != 0 {
		panic(fmt.Sprintf("kernels: %s: panels.Data starts %d bytes past a multiple of %d bytes, "+
			"want 0: make panels with NewPanels", what, rest, lineBytes))
	}
}

// Slice returns a view of the points [lo, hi) that shares memory with p. It
// panics unless 0 <= lo <= hi <= N and lo is a multiple of 16.
func (p *Panels) Slice(lo, hi int) Panels {
	if lo < 0 || hi < lo || hi > p.N || lo%Lanes != 0 {
		panic(fmt.Sprintf("kernels: Panels.Slice: [%d:%d] of %d points, want 0 <= lo <= hi <= %d and lo a multiple of %d",
			lo, hi, p.N, p.N, Lanes))
	}
	end := lo*p.D + panelCount(hi-lo)*p.D*Lanes
	return Panels{N: hi - lo, D: p.D, Data: p.Data[lo*p.D : end : end], Mapped: p.Mapped, filter: p.filter,
		narrow: p.narrow, bounds: p.bounds, firstPanel: p.firstPanel + lo/Lanes, longest: p.longest, widest: p.widest,
		stream: p.stream}
}

// Point copies the coordinates of point i to dst, which is grown when it is
// shorter than D, and returns it.
func (p *Panels) Point(i int, dst []float32) []float32 {
	if i < 0 || i >= p.N {
		panic(fmt.Sprintf("kernels: Panels.Point: index %d of %d points", i, p.N))
	}
	if cap(dst) < p.D {
		dst = make([]float32, p.D)
	}
	dst = dst[:p.D]
	base := i/Lanes*p.D*Lanes + i%Lanes
	for j := range dst {
		dst[j] = p.Data[base+j*Lanes]
	}
	return dst
}

// Set writes the coordinates of point i. It panics unless len(row) = D.
func (p *Panels) Set(i int, row []float32) {
	if i < 0 || i >= p.N {
		panic(fmt.Sprintf("kernels: Panels.Set: index %d of %d points", i, p.N))
	}
	if len(row) != p.D {
		panic(fmt.Sprintf("kernels: Panels.Set: len(row)=%d, want %d", len(row), p.D))
	}
	p.filter, p.narrow, p.bounds, p.longest = nil, nil, nil, 0
	base := i/Lanes*p.D*Lanes + i%Lanes
	for j, x := range row {
		p.Data[base+j*Lanes] = x
	}
}

// Pack transposes row-major points (len(rows) = N*D) into dst and zeroes the
// lanes past N.
func Pack(dst *Panels, rows []float32) {
	dst.check("Pack")
	if len(rows) != dst.N*dst.D {
		panic(fmt.Sprintf("kernels: Pack: len(rows)=%d, want n*d=%d", len(rows), dst.N*dst.D))
	}
	dst.filter, dst.narrow, dst.bounds, dst.longest = nil, nil, nil, 0
	pack(dst, rows)
}

// packPortable is the reference form of [Pack].
func packPortable(dst *Panels, rows []float32) {
	d := dst.D
	for base := 0; base < dst.N; base += Lanes {
		panel := dst.Data[base*d : base*d+d*Lanes]
		count := min(Lanes, dst.N-base)
		block := rows[base*d : (base+count)*d]
		for lane := range count {
			row := block[lane*d : lane*d+d]
			for j, x := range row {
				panel[j*Lanes+lane] = x
			}
		}
		for lane := count; lane < Lanes; lane++ {
			for j := range d {
				panel[j*Lanes+lane] = 0
			}
		}
	}
}
