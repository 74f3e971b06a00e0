package kernels

import (
	"unsafe"

	"github.com/cohort-engine/cohort/internal/pages"
)

const (
	lineBytes = 64      // cache line, and the widest vector
	hugeFrom  = 4 << 20 // blocks of at least this size ask for huge pages
)

// aligned allocates n zeroed elements that start on a cache line; large blocks
// start on a huge page and ask the system for huge pages, because a panel scan
// touches a new 4 KiB page every few hundred nanoseconds.
func aligned[T any](n int) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	boundary := lineBytes
	if n*size >= hugeFrom {
		boundary = pages.Huge
	}
	raw := make([]T, n+boundary/size)
	skip := 0
	if rest := int(uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % uintptr(boundary)); rest != 0 {
		skip = (boundary - rest) / size
	}
	data := raw[skip : skip+n : skip+n]
	if boundary == pages.Huge {
		pages.Advise(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), n*size))
	}
	return data
}

func alignedFloat32(n int) []float32 { return aligned[float32](n) }

// owned is memory that one worker writes to, on pages that hold nothing else.
// Where the tables of two workers lie in one page, the prefetcher of a core that
// writes its own through again and again takes the lines behind them from the
// other core: two workers were then no faster than one.
type owned struct {
	words []int64
}

// pageBytes is the smallest page, which prefetchers do not leave.
const pageBytes = 4096

// newOwned allocates room for parts of the given sizes in bytes, from a boundary on.
//
//go:noinline
func newOwned(boundary int, sizes ...int) owned {
	words := roomFor(boundary, sizes...) / 8
	raw := make([]int64, words+boundary/8)
	skip := 0
	if rest := int(uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % uintptr(boundary)); rest != 0 {
		skip = (boundary - rest) / 8
	}
	return owned{raw[skip : skip+words]}
}

// roomFor is the bytes of parts of the given sizes, up to a boundary.
func roomFor(boundary int, sizes ...int) int {
	bytes := 0
	for _, s := range sizes {
		bytes += (s + lineBytes - 1) &^ (lineBytes - 1)
	}
	return (bytes + boundary - 1) &^ (boundary - 1)
}

// part takes n elements from o, aligned to a cache line.
//
//go:noinline
func part[T int64 | int32 | float64 | float32](o *owned, n int) []T {
	if n == 0 {
		return nil
	}
	var zero T
	words := (n*int(unsafe.Sizeof(zero)) + lineBytes - 1) &^ (lineBytes - 1) / 8
	p := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(o.words[:words]))), n)
	o.words = o.words[words:]
	return p
}
