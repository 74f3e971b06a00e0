// Package pages asks the system for huge pages. A small page takes a microsecond when it is first touched, and
// ten in some virtual machines; a huge one takes no more than a few dozen of them and has the room of 512.
package pages

import (
	"os"
	"runtime"
	"runtime/debug"
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

// Floor is how many bytes the heap grows to at least, after Late or Heap, before it is collected.
const Floor = 64 << 20

// floor is never touched. It counts as part of the heap, which is collected when it has doubled: that of a run of a
// fifth of a second, from nothing to 50 MB, was collected eight times, with all workers stopped each time.
var floor atomic.Pointer[[]byte]

// Late has the heap of a process that begins collected when it has Floor bytes for the first time, instead of 4 MB:
// many a command ends before, and the first collection alone may take longer than its work. Afterwards the heap is
// collected when it has grown by Floor bytes or doubled. It does nothing where the environment says how much the
// heap may grow.
func Late() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(percent * Floor / leastHeap)
	first := new([16]byte) // unreachable at once: the first collection finds it
	runtime.SetFinalizer(first, func(*[16]byte) { hold() })
}

// The runtime's share of growth before a collection, and the size of the heap that it collects first with it.
const (
	percent   = 100
	leastHeap = 4 << 20
)

// hold has the heap collected when it has doubled, and Floor bytes count as part of it.
var hold = sync.OnceFunc(func() {
	as := debug.SetGCPercent(-1)
	block := make([]byte, Floor)
	floor.Store(&block)
	if os.Getenv("GOGC") == "" {
		as = percent
	}
	debug.SetGCPercent(as)
})

// Heap asks for huge pages for what the heap has room for next, and has the heap collected after each Floor bytes at
// the earliest, once in a process. The runtime does not ask by itself, but it takes the lowest free addresses: those
// of blocks that have come and gone.
var Heap = sync.OnceFunc(func() {
	hold() // first: it has set the share of growth for good when it returns, whoever began it
	as := debug.SetGCPercent(-1)
	var blocks [heapBytes / blockBytes][]byte
	for i := range blocks {
		blocks[i] = make([]byte, blockBytes)
		Advise(blocks[i])
	}
	debug.SetGCPercent(as)
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
