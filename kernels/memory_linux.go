package kernels

import "golang.org/x/sys/unix"

// adviseHuge asks for transparent huge pages. A kernel without them refuses,
// which costs speed and nothing else.
func adviseHuge(block []byte) {
	_ = unix.Madvise(block[:len(block)/hugeBytes*hugeBytes], unix.MADV_HUGEPAGE)
}
