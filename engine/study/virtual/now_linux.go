package virtual

import (
	"time"

	"golang.org/x/sys/unix"
)

// now is the processor time of this process: the collector's, too, which works in threads of its own.
func now() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return time.Since(epoch)
	}
	return time.Duration(t.Nano())
}
