//go:build !linux

package virtual

import "time"

// now is wall time: the process has no clock that is known here.
func now() time.Duration { return time.Since(epoch) }
