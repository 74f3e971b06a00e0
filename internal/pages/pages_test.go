package pages

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
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

// A process that begins is not collected before it has the bytes of Floor; from then on the heap may double, and Floor
// counts as part of it. It takes a process of its own, because the heap of this one has been collected.
func TestLate(t *testing.T) {
	if os.Getenv(lateAlone) == "" {
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		alone := exec.Command(program, "-test.run=^TestLate$", "-test.v")
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "GOGC=") && !strings.HasPrefix(v, "GOCOVERDIR=") {
				alone.Env = append(alone.Env, v)
			}
		}
		alone.Env = append(alone.Env, lateAlone+"=1")
		if out, err := alone.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestLate")) {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	Late()
	for range 40 {
		sink = make([]byte, 1<<20)
	}
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.NumGC != 0 {
		t.Errorf("%d collections in 40 MB", m.NumGC)
	}
	for range 40 {
		sink = make([]byte, 1<<20)
	}
	if runtime.ReadMemStats(&m); m.NumGC == 0 {
		t.Error("no collection in 80 MB")
	}
	for range 100 { // the finalizer that the collection found has a goroutine of its own
		if floor.Load() != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if floor.Load() == nil {
		t.Error("the first collection gave the heap no floor")
	}
	Heap()
	if got := debug.SetGCPercent(percent); got != percent {
		t.Errorf("the heap may grow by %d %% after the first collection and Heap, want %d", got, percent)
	}
}

// lateAlone says in the environment that the process is the one that TestLate has started.
const lateAlone = "COHORT_TEST_LATE"

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
