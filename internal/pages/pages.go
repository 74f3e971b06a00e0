// Package pages asks the system for huge pages. A small page takes a microsecond when it is first touched, and
// ten in some virtual machines; a huge one takes no more than a few dozen of them and has the room of 512.
package pages

import (
	"runtime"
	"sync"
)

// Huge is the size in bytes of a transparent huge page on amd64 and arm64 (4 KiB granule).
const Huge = 2 << 20

// heapBytes is how much of the heap is to be of huge pages, in blocks of blockBytes. It is address space: the runtime
// clears no block but where some of it has been in use before.
const (
	heapBytes  = 256 << 20
	blockBytes = 4 << 20
)

// Heap asks for huge pages for what the heap has room for next, once in a process. The runtime does not ask by
// itself, but it takes the lowest free addresses: those of blocks that have come and gone.
var Heap = sync.OnceFunc(func() {
	var blocks [heapBytes / blockBytes][]byte
	for i := range blocks {
		blocks[i] = make([]byte, blockBytes)
		Advise(blocks[i])
	}
	runtime.KeepAlive(&blocks)
	runtime.GC()
})
