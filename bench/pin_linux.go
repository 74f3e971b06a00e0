package bench

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// pin binds the calling goroutine to its thread and the thread to the core that
// it runs on, as far as the system allows; the function it returns undoes both.
func pin() func() {
	runtime.LockOSThread()
	var before unix.CPUSet
	if unix.SchedGetaffinity(0, &before) != nil {
		return runtime.UnlockOSThread
	}
	for core := range runtime.NumCPU() * 8 {
		if before.IsSet(core) {
			var one unix.CPUSet
			one.Set(core)
			if unix.SchedSetaffinity(0, &one) != nil {
				return runtime.UnlockOSThread
			}
			break
		}
	}
	return func() {
		// A thread that cannot be set free again must not serve other goroutines:
		// without the unlock the runtime ends it with its goroutine.
		if unix.SchedSetaffinity(0, &before) == nil {
			runtime.UnlockOSThread()
		}
	}
}

// canPin reports whether threads can be pinned here.
func canPin() bool {
	var set unix.CPUSet
	return unix.SchedGetaffinity(0, &set) == nil && unix.SchedSetaffinity(0, &set) == nil
}
