package bus

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// front stands before the server of NATS and speaks TLS with its clients: what NATS writes of a message of 64 kB
// it would write in five records, each with a call of the operating system and what the other end does for it, and
// read in four. To NATS a client is a pipe, through which a message goes as a whole. Of short messages the way through
// the pipe costs more than that spares.
type front struct {
	listener net.Listener
	config   *tls.Config
	server   *server.Server
	log      *slog.Logger

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
	work   sync.WaitGroup
}

// newFront listens.
func newFront(address string, config *tls.Config, s *server.Server, log *slog.Logger) (*front, error) {
	// NATS asks who is silent by itself.
	l, err := (&net.ListenConfig{KeepAlive: -1}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	f := &front{listener: l, config: config, server: s, log: log, open: make(map[net.Conn]struct{})}
	f.work.Go(f.accept)
	return f, nil
}

// close ends all connections. What serves them has ended after work.
func (f *front) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.listener.Close()
	for c := range f.open {
		c.Close()
	}
}

// accept lets clients in.
func (f *front) accept() {
	pause := time.Millisecond
	for {
		c, err := f.listener.Accept()
		switch {
		case err == nil && f.enter(c):
			pause = time.Millisecond
			f.work.Go(func() {
				defer f.leave(c)
				f.serve(c)
			})
		case errors.Is(err, net.ErrClosed), err == nil:
			return
		default: // too many open files
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
		}
	}
}

// enter notes a connection, or closes it.
func (f *front) enter(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		c.Close()
		return false
	}
	f.open[c] = struct{}{}
	return true
}

func (f *front) leave(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.Close()
	delete(f.open, c)
}

// handshake is how long a client may take for it.
const handshake = 20 * time.Second

// serve passes on what a client and NATS say to each other, until either ends it.
func (f *front) serve(c net.Conn) {
	s := newSecure(c, f.config, tls.Server)
	ctx, cancel := context.WithTimeout(context.Background(), handshake)
	err := s.HandshakeContext(ctx)
	cancel()
	if err != nil {
		if !errors.Is(err, io.EOF) { // who looks whether somebody is here
			f.log.Warn("a connection was refused", "address", c.RemoteAddr().String(), "why", err.Error())
		}
		return
	}
	pipe, err := f.server.InProcessConn()
	if err != nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = outward(s, pipe)
		s.Close()
	}()
	if _, err := io.WriteString(pipe, proxied(c)); err == nil {
		_ = inward(pipe, s)
	}
	pipe.Close()
	<-ended
}

// proxied tells NATS where a client comes from (the PROXY protocol of HAProxy, version 1).
func proxied(c net.Conn) string {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	to, failed := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil || failed != nil {
		return "PROXY UNKNOWN\r\n"
	}
	a, b, family := from.Addr().WithZone("").Unmap(), to.Addr().WithZone("").Unmap(), "TCP4"
	if !a.Is4() || !b.Is4() {
		family = "TCP6"
	}
	return fmt.Sprintf("PROXY %s %v %v %d %d\r\n", family, a, b, from.Port(), to.Port())
}

// waiting is the room in which a connection waits for what comes. What fills it is gathered in more, which is
// there while it does: of a thousand clients few send at any time.
const waiting, gathering = 1 << 10, 1 << 16

var rooms = sync.Pool{New: func() any { return new([gathering]byte) }}

// inward passes on what comes from a client. Of many records those that are here go together.
func inward(pipe io.Writer, s *secure) error {
	small := make([]byte, waiting)
	for {
		n, err := s.Read(small)
		if n < waiting {
			if n > 0 {
				if _, err := pipe.Write(small[:n]); err != nil {
					return err
				}
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := more(pipe, s, small); err != nil {
			return err
		}
	}
}

// more passes on what is here behind begun.
func more(pipe io.Writer, s *secure, begun []byte) error {
	big := rooms.Get().(*[gathering]byte)
	defer rooms.Put(big)
	held := copy(big[:], begun)
	s.below.hasty = true
	var err error
	for err == nil && held < len(big) {
		var n int
		n, err = s.Read(big[held:])
		held += n
	}
	s.below.hasty = false
	if _, failed := pipe.Write(big[:held]); failed != nil {
		return failed
	}
	if errors.Is(err, errNothing) {
		err = nil
	}
	return err
}

// outward passes on what NATS has for a client, messages as a whole.
func outward(s *secure, pipe io.Reader) error {
	var f framing
	small := make([]byte, waiting)
	for {
		n, err := pipe.Read(small)
		if err != nil {
			return err
		}
		if f.whole(small[:n]) {
			if err := s.send(small[:n]); err != nil {
				return err
			}
			continue
		}
		big := rooms.Get().(*[gathering]byte)
		held := copy(big[:], small[:n])
		for whole := false; err == nil && !whole; {
			n, err = pipe.Read(big[held:])
			whole = f.whole(big[held : held+n])
			held += n
			if err == nil && (whole || held == len(big)) {
				err = s.send(big[:held])
				held = 0
			}
		}
		rooms.Put(big)
		if err != nil {
			return err
		}
	}
}

// framing follows what NATS says to a client.
type framing struct {
	left int    // bytes of the message under way
	line []byte // that has not ended
}

// payloads are the lines that a message follows, whose length is their last word.
var payloads = [][]byte{[]byte("MSG "), []byte("HMSG ")}

// whole reports whether what NATS has said, b at its end, ends with a line or a message.
func (f *framing) whole(b []byte) bool {
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, len(b))
			f.left, b = f.left-n, b[n:]
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			f.line = append(f.line, b...)
			return false
		}
		line := b[:end]
		if len(f.line) > 0 {
			f.line = append(f.line, line...)
			line = f.line
		}
		f.left, b = payload(line), b[end+1:]
		f.line = f.line[:0]
	}
	return f.left == 0 && len(f.line) == 0
}

// payload is how many bytes follow a line.
func payload(line []byte) int {
	if !bytes.HasPrefix(line, payloads[0]) && !bytes.HasPrefix(line, payloads[1]) {
		return 0
	}
	line = bytes.TrimRight(line, "\r")
	n, err := strconv.Atoi(string(line[bytes.LastIndexByte(line, ' ')+1:]))
	if err != nil || n < 0 {
		return 0
	}
	return n + len("\r\n")
}
