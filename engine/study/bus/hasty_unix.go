//go:build unix

package bus

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// attempt reads what is here, and waits only where the connection is not hasty.
type attempt struct {
	raw syscall.RawConn
	b   []byte
	n   int
	err error
	try func(fd uintptr) (done bool)
}

// read reads from the operating system.
func (g *gathered) read(b []byte) (int, error) {
	a := &g.attempt
	if a.try == nil {
		c, is := g.Conn.(syscall.Conn)
		if !is {
			return g.readLater(b)
		}
		raw, err := c.SyscallConn()
		if err != nil {
			return 0, err
		}
		a.raw, a.try = raw, func(fd uintptr) bool {
			for {
				a.n, a.err = unix.Read(int(fd), a.b)
				switch {
				case a.err == unix.EINTR:
				case a.err != unix.EAGAIN:
					return true
				case g.hasty:
					a.err = errNothing
					return true
				default:
					return false
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
	case a.err != nil:
		return 0, a.err
	case a.n == 0:
		return 0, io.EOF
	}
	return a.n, nil
}
