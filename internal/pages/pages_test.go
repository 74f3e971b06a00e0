package pages

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
)

// What the heap takes after Heap is of huge pages, where the system has them, and Heap itself takes
// none, also where some of the heap has been in use.
func TestHeapIsOfHugePages(t *testing.T) {
	enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || bytes.Contains(enabled, []byte("[never]")) {
		t.Skip("SKIPPED: the system has no transparent huge pages")
	}
	used := make([]byte, 20<<20)
	for i := range used {
		used[i] = 1
	}
	used = nil
	runtime.GC()
	resident := kilobytes(t, "Anonymous:")
	Heap()
	if now := kilobytes(t, "Anonymous:"); now > resident+128<<10 {
		t.Errorf("%d kB are in use, %d before", now, resident)
	}
	var kept [][]byte
	for range 1024 { // 64 MB in small blocks
		block := make([]byte, 64<<10)
		for i := 0; i < len(block); i += 4 << 10 {
			block[i] = 1
		}
		kept = append(kept, block)
	}
	if got := kilobytes(t, "AnonHugePages:"); got < 16<<10 {
		t.Errorf("%d kB of huge pages for 64 MB", got)
	}
	runtime.KeepAlive(kept)
}

// kilobytes is a field of what the system says of this process's memory.
func kilobytes(t *testing.T, field string) int {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	_, rest, ok := bytes.Cut(text, []byte(field))
	kb := 0
	if _, e := fmt.Sscan(string(rest), &kb); err != nil || !ok || e != nil {
		t.Skip("SKIPPED: the system does not tell what memory is in use")
	}
	return kb
}

// After Heap some 50 MB come and go without a collection.
func TestHeapIsCollectedLate(t *testing.T) {
	Heap()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 48 {
		sink = make([]byte, 1<<20)
	}
	runtime.ReadMemStats(&after)
	if after.NumGC != before.NumGC {
		t.Errorf("%d collections in 48 MB", after.NumGC-before.NumGC)
	}
}

var sink []byte // so that blocks are of the heap

// TestCollect: what was left is collected where it is more than the heap grows by anyway, and else not.
func TestCollect(t *testing.T) {
	cycles := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	for left, want := range map[int]uint32{Floor: 1, Floor - 1: 0} {
		before := cycles()
		Collect(left)
		if got := cycles() - before; got != want {
			t.Errorf("%d bytes are collected %d times, want %d", left, got, want)
		}
	}
}
