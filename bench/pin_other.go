//go:build !linux

package bench

import "runtime"

// pin binds the calling goroutine to its thread.
func pin() func() {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

func canPin() bool { return false }
