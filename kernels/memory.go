package kernels

import "unsafe"

const (
	lineBytes = 64      // cache line, and the widest vector
	hugeBytes = 2 << 20 // transparent huge page on amd64 and arm64 (4 KiB granule)
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
		boundary = hugeBytes
	}
	raw := make([]T, n+boundary/size)
	skip := 0
	if rest := int(uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % uintptr(boundary)); rest != 0 {
		skip = (boundary - rest) / size
	}
	data := raw[skip : skip+n : skip+n]
	if boundary == hugeBytes {
		adviseHuge(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), n*size))
	}
	return data
}

func alignedFloat32(n int) []float32 { return aligned[float32](n) }
