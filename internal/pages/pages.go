// Package pages asks the system for huge pages. A small page takes a microsecond when it is first touched, and
// ten in some virtual machines; a huge one takes no more than a few dozen of them and has the room of 512.
package pages

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Huge is the size in bytes of a transparent huge page on amd64 and arm64 (4 KiB granule).
const Huge = 2 << 20

// heapBytes is how much of the heap is to be of huge pages, in blocks of blockBytes. It is address space: the runtime
// clears no block but where some of it has been in use before.
const (
	heapBytes  = 256 << 20
	blockBytes = 4 << 20
)

// Floor is how many bytes the heap grows by at least, after Heap, before it is collected.
const Floor = 64 << 20

// floor is never touched. It counts as part of the heap, which is collected when it has doubled: that of a run of a
// fifth of a second, from nothing to 50 MB, was collected eight times, with all workers stopped each time.
var floor atomic.Pointer[[]byte]

// Heap asks for huge pages for what the heap has room for next, and has the heap collected after each 64 MB at the
// earliest, once in a process. The runtime does not ask by itself, but it takes the lowest free addresses: those of
// blocks that have come and gone.
var Heap = sync.OnceFunc(func() {
	var blocks [heapBytes / blockBytes][]byte
	for i := range blocks {
		blocks[i] = make([]byte, blockBytes)
		Advise(blocks[i])
	}
	block := make([]byte, Floor)
	floor.Store(&block)
	runtime.KeepAlive(&blocks)
	runtime.GC()
})

// Collect collects the heap after so many bytes of it were left, where they are more than what it may grow by anyway:
// as much again would pile up on them before the runtime does.
func Collect(left int) {
	if left >= Floor {
		runtime.GC()
	}
}
