//go:build unix

package bus

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// attempt reads what is here.
type attempt struct {
	raw syscall.RawConn
	b   []byte
	n   int
	err error
	try func(fd uintptr) (done bool)
}

// readHere reads what the operating system has, and waits for nothing.
func (g *gathered) readHere(b []byte) (int, error) {
	a := &g.attempt
	if a.try == nil {
		c, is := g.Conn.(syscall.Conn)
		if !is {
			return 0, errNothing
		}
		raw, err := c.SyscallConn()
		if err != nil {
			return 0, err
		}
		a.raw, a.try = raw, func(fd uintptr) bool {
			for {
				if a.n, a.err = unix.Read(int(fd), a.b); a.err != unix.EINTR {
					return true
				}
			}
		}
	}
	a.b = b
	err := a.raw.Read(a.try)
	a.b = nil
	switch {
	case err != nil:
		return 0, err
	case a.err == unix.EAGAIN:
		return 0, errNothing
	case a.err != nil:
		return 0, a.err
	case a.n == 0:
		return 0, io.EOF
	}
	return a.n, nil
}
