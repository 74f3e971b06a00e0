package profile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Counters read the event counters of all threads of the process.
type Counters struct {
	groups []group
	others []int
	buf    [8 * (1 + events)]byte
	// hardware says why the CPU's events are not counted, nil if they are; nor are
	// what the kernel does for the process if userOnly.
	hardware error
	userOnly bool
}

// group is the counters of one thread that are read at once.
type group struct {
	leader       int // file descriptor
	first, count int // positions of its events
}

// eventConfigs are the kernel's numbers of the events.
var eventConfigs = [events]uint64{unix.PERF_COUNT_HW_CPU_CYCLES, unix.PERF_COUNT_HW_INSTRUCTIONS,
	unix.PERF_COUNT_HW_CACHE_MISSES,
	unix.PERF_COUNT_SW_TASK_CLOCK, unix.PERF_COUNT_SW_PAGE_FAULTS, unix.PERF_COUNT_SW_CONTEXT_SWITCHES,
	unix.PERF_COUNT_SW_CPU_MIGRATIONS}

// OpenCounters starts counting in the threads that exist now: the CPU's events in
// user space where the machine has them, and the kernel's events, which need no
// counters of the CPU. It fails with a clear line where the kernel allows neither.
func OpenCounters() (*Counters, error) {
	listed, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, fault.Failed("--perf", err.Error(), "run without --perf", err)
	}
	var threads []int
	for _, t := range listed {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			threads = append(threads, tid)
		}
	}
	c := new(Counters)
	c.hardware = c.open(threads, unix.PERF_TYPE_HARDWARE, 0, hardwareEvents, true)
	err = c.openKernel(threads, false)
	if err != nil {
		c.userOnly = true
		err = c.openKernel(threads, true)
	}
	if err != nil && c.hardware != nil {
		return nil, explain(c.hardware)
	}
	return c, nil
}

// openKernel starts the kernel's events. The clock is a group of its own: it is
// another driver of the kernel, and Linux 6.18 loses counts of a group of two.
func (c *Counters) openKernel(threads []int, user bool) error {
	part := new(Counters)
	err := part.open(threads, unix.PERF_TYPE_SOFTWARE, taskClock, 1, user)
	if err == nil {
		err = part.open(threads, unix.PERF_TYPE_SOFTWARE, taskClock+1, events-taskClock-1, user)
	}
	if err != nil {
		part.Close()
		return err
	}
	c.groups, c.others = append(c.groups, part.groups...), append(c.others, part.others...)
	return nil
}

// open starts a group of events in each thread, or none and says why not.
func (c *Counters) open(threads []int, kind uint32, first, count int, user bool) error {
	part := new(Counters)
	for _, tid := range threads {
		leader := -1
		for e := first; e < first+count; e++ {
			attr := unix.PerfEventAttr{Type: kind, Config: eventConfigs[e], Read_format: unix.PERF_FORMAT_GROUP,
				Bits: unix.PerfBitExcludeHv}
			if user {
				attr.Bits |= unix.PerfBitExcludeKernel
			}
			attr.Size = uint32(unsafe.Sizeof(attr))
			fd, err := unix.PerfEventOpen(&attr, tid, -1, leader, unix.PERF_FLAG_FD_CLOEXEC)
			if errors.Is(err, unix.ESRCH) {
				break // the thread has ended
			}
			if err != nil {
				part.Close()
				return err
			}
			if leader < 0 {
				leader = fd
				part.groups = append(part.groups, group{fd, first, count})
			} else {
				part.others = append(part.others, fd)
			}
		}
	}
	c.groups, c.others = append(c.groups, part.groups...), append(c.others, part.others...)
	return nil
}

// Hardware reports whether the CPU's events are counted.
func (c *Counters) Hardware() bool { return c.hardware == nil }

// Note says which events are missing and why, "" if none is.
func (c *Counters) Note() string {
	var parts []string
	if c.hardware != nil {
		why, _ := reason(c.hardware)
		parts = append(parts, "no cycles, instructions and cache misses: "+why)
	}
	if c.userOnly {
		parts = append(parts, "without what the kernel does for the process, such as context switches: "+
			"kernel.perf_event_paranoid is above 1")
	}
	return strings.Join(parts, "; ")
}

func explain(err error) error {
	why, do := reason(err)
	return fault.Failed("--perf", why, do, err)
}

// reason puts a refusal of the kernel into words.
func reason(err error) (why, do string) {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		level := "unknown"
		if b, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); err == nil {
			level = strings.TrimSpace(string(b))
		}
		return "the kernel forbids performance counters (perf_event_paranoid is " + level + ")",
			"run without --perf, or lower kernel.perf_event_paranoid to 2"
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP),
		errors.Is(err, unix.ENOSYS):
		return fmt.Sprintf("this machine offers no hardware counters to this process (%v), as many virtual "+
			"machines do", err), "run without --perf"
	}
	return err.Error(), "run without --perf"
}

// read adds up the counters of all threads.
func (c *Counters) read(sum *[events]uint64) {
	*sum = [events]uint64{}
	for _, g := range c.groups {
		// The number of events, then one value for each.
		b := c.buf[:8*(1+g.count)]
		n, err := unix.Read(g.leader, b)
		if err != nil || n != len(b) || binary.NativeEndian.Uint64(b) != uint64(g.count) {
			continue // the thread has ended; what it counted is lost
		}
		for e := range g.count {
			sum[g.first+e] += binary.NativeEndian.Uint64(b[8*(1+e):])
		}
	}
}

// Close stops counting.
func (c *Counters) Close() {
	for _, fd := range c.others {
		unix.Close(fd)
	}
	for _, g := range c.groups {
		unix.Close(g.leader)
	}
	c.groups, c.others = nil, nil
}
