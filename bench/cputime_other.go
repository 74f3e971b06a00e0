//go:build !unix

package bench

import "time"

// processTime is the CPU time that the process has used, which this system does
// not tell.
func processTime() time.Duration { return 0 }
