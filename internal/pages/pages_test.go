package pages

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
)

// What the heap takes after Heap is of huge pages, where the system has them.
func TestHeapIsOfHugePages(t *testing.T) {
	enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || bytes.Contains(enabled, []byte("[never]")) {
		t.Skip("SKIPPED: the system has no transparent huge pages")
	}
	before := huge(t)
	Heap()
	var kept [][]byte
	for range 512 { // 32 MB in small blocks
		block := make([]byte, 64<<10)
		for i := 0; i < len(block); i += 4 << 10 {
			block[i] = 1
		}
		kept = append(kept, block)
	}
	if got := huge(t) - before; got < 16<<10 {
		t.Errorf("%d kB of huge pages for 32 MB", got)
	}
	runtime.KeepAlive(kept)
}

// huge is how many kB of this process are huge pages.
func huge(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	_, rest, ok := bytes.Cut(text, []byte("AnonHugePages:"))
	kb := 0
	if _, e := fmt.Sscan(string(rest), &kb); err != nil || !ok || e != nil {
		t.Skip("SKIPPED: the system does not tell how much is huge pages")
	}
	return kb
}
