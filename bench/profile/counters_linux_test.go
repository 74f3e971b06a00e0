package profile

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cohort-engine/cohort/internal/fault"
)

// The kernel's events are counted for real wherever it lets a process see its
// own, the CPU's where the machine has counters; where not, a line says why.
func TestCounters(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := OpenCounters()
	if err != nil {
		if fault.IsRequest(err) || !strings.HasPrefix(err.Error(), "--perf: ") ||
			!strings.Contains(err.Error(), "without --perf") {
			t.Errorf("error is %v", err)
		}
		t.Skipf("no counters here: %v", err)
	}
	defer c.Close()
	if c.Hardware() == strings.Contains(c.Note(), "no cycles") {
		t.Errorf("hardware %t, note %q", c.Hardware(), c.Note())
	}
	const pages = 500
	size := pages * unix.Getpagesize()
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	if err := unix.Madvise(memory, unix.MADV_NOHUGEPAGE); err != nil {
		t.Logf("huge pages cannot be turned off: %v", err)
	}
	var before, after [events]uint64
	c.read(&before)
	for i := 0; i < size; i += unix.Getpagesize() {
		memory[i] = 1
	}
	x := 1.0
	for range 2000000 {
		x = math.Sqrt(x + 1)
	}
	time.Sleep(time.Millisecond) // gives the core away
	c.read(&after)
	if x == 0 {
		t.Fatal("impossible")
	}
	if n := after[pageFaults] - before[pageFaults]; n < pages {
		t.Errorf("%d page faults in %d new pages", n, pages)
	}
	// Two million dependent square roots take at least 2 ms on any machine.
	if ran := time.Duration(after[taskClock] - before[taskClock]); ran < 2*time.Millisecond || ran > time.Minute {
		t.Errorf("the threads ran for %v", ran)
	}
	if !c.userOnly && after[contextSwitches] == before[contextSwitches] {
		t.Error("a sleep without a context switch")
	}
	if c.Hardware() && (after[instructions]-before[instructions] < 2000000 || after[cycles] <= before[cycles]) {
		t.Errorf("counted from %v to %v", before, after)
	}
}
