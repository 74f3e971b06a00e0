//go:build !linux

package profile

import (
	"runtime"

	"github.com/cohort-engine/cohort/engine/fault"
)

// Counters read the CPU's event counters; Linux only.
type Counters struct{}

// OpenCounters fails: there are no counters on this system.
func OpenCounters() (*Counters, error) {
	return nil, fault.Request("--perf", "performance counters are read on Linux only and this is "+runtime.GOOS, "run without --perf")
}

func (c *Counters) read(*[events]uint64) {}

// Close does nothing.
func (c *Counters) Close() {}
