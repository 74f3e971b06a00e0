package pages

import "golang.org/x/sys/unix"

// Advise asks for huge pages for the whole ones of a block. A kernel without them refuses,
// which costs speed and nothing else.
func Advise(block []byte) {
	_ = unix.Madvise(block[:len(block)/Huge*Huge], unix.MADV_HUGEPAGE)
}
