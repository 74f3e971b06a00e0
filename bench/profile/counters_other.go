//go:build !linux

package profile

import (
	"runtime"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Counters read event counters; Linux only.
type Counters struct{}

// OpenCounters fails: there are no counters on this system.
func OpenCounters() (*Counters, error) {
	return nil, fault.Request("--perf", "performance counters are read on Linux only and this is "+runtime.GOOS,
		"run without --perf")
}

func (c *Counters) read(*[events]uint64) {}

// Hardware reports false: nothing is counted.
func (c *Counters) Hardware() bool { return false }

// Note is empty.
func (c *Counters) Note() string { return "" }

// Close does nothing.
func (c *Counters) Close() {}
