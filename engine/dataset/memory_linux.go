package dataset

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages, of which a piece of panels is a handful; it may be refused.
func adviseHuge(memory []byte) { _ = unix.Madvise(memory, unix.MADV_HUGEPAGE) }
