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

	"github.com/cohort-engine/cohort/engine/fault"
)

// Counters read the CPU's event counters of all threads of the process.
type Counters struct {
	groups []int // one group leader per thread
	others []int
	buf    [8 * (1 + events)]byte
}

// OpenCounters starts counting cycles, instructions and cache misses in the
// threads that exist now, in user space. It fails with a clear line where the
// kernel or the (virtual) machine does not allow it.
func OpenCounters() (*Counters, error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, fault.Failed("--perf", err.Error(), "run without --perf", err)
	}
	c := new(Counters)
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		leader := -1
		for e := range events {
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: eventConfigs[e], Read_format: unix.PERF_FORMAT_GROUP,
				Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
			attr.Size = uint32(unsafe.Sizeof(attr))
			fd, err := unix.PerfEventOpen(&attr, tid, -1, leader, unix.PERF_FLAG_FD_CLOEXEC)
			if errors.Is(err, unix.ESRCH) {
				break // the thread has ended
			}
			if err != nil {
				c.Close()
				return nil, explain(err)
			}
			if leader < 0 {
				leader = fd
				c.groups = append(c.groups, fd)
			} else {
				c.others = append(c.others, fd)
			}
		}
	}
	return c, nil
}

var eventConfigs = [events]uint64{unix.PERF_COUNT_HW_CPU_CYCLES, unix.PERF_COUNT_HW_INSTRUCTIONS, unix.PERF_COUNT_HW_CACHE_MISSES}

func explain(err error) error {
	why := err.Error()
	do := "run without --perf"
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		level := "unknown"
		if b, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); err == nil {
			level = strings.TrimSpace(string(b))
		}
		why = "the kernel forbids performance counters (perf_event_paranoid is " + level + ")"
		do = "run without --perf, or lower kernel.perf_event_paranoid to 2"
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		why = fmt.Sprintf("this machine offers no hardware counters to this process (%v), as many virtual machines do", err)
	}
	return fault.Failed("--perf", why, do, err)
}

// read adds up the counters of all threads.
func (c *Counters) read(sum *[events]uint64) {
	*sum = [events]uint64{}
	for _, fd := range c.groups {
		n, err := unix.Read(fd, c.buf[:])
		if err != nil || n != len(c.buf) {
			continue // the thread has ended; what it counted is lost
		}
		for e := range sum {
			sum[e] += binary.NativeEndian.Uint64(c.buf[8*(1+e):])
		}
	}
}

// Close stops counting.
func (c *Counters) Close() {
	for _, fd := range append(c.others, c.groups...) {
		unix.Close(fd)
	}
	c.groups, c.others = nil, nil
}
