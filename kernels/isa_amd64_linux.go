//go:build amd64 && !purego && linux

package kernels

import "golang.org/x/sys/unix"

// tilesGranted asks Linux for the registers of AMX, which a process has to do before it uses them: they are large, and
// the system saves them where it switches threads and delivers signals. It refuses where a thread's signal stack is too
// small for them. See Documentation/arch/x86/xstate.rst of Linux.
func tilesGranted() bool {
	const (
		requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData          = 18     // XFEATURE_XTILE_DATA
	)
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}
