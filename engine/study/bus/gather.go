package bus

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// dialTime is how long one try to connect may take, and a handshake.
const dialTime = 10 * time.Second

// overTLS are the options of a connection over TLS from its first byte.
func overTLS(config *tls.Config) []nats.Option {
	return []nats.Option{nats.Secure(config), nats.TLSHandshakeFirst(), nats.SetCustomDialer(dialer{config})}
}

// dialer connects for nats.go: over TLS, whose records leave together. Of a message of 64 kB
// there are four, and a call of the operating system for each, with what the other end does for it,
// costs more than their seals.
type dialer struct{ config *tls.Config }

// Dial implements nats.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.DialTimeout(network, address, dialTime)
	if err != nil {
		return nil, err
	}
	s := newSecure(c, d.config, tls.Client)
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	if err := s.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return s, nil
}

// SkipTLSHandshake tells nats.go that Dial has performed it.
func (dialer) SkipTLSHandshake() bool { return true }

// secure is a TLS connection that writes once what one Write is given.
type secure struct {
	*tls.Conn
	below *gathered
	until time.Time // when writes are given up
}

// newSecure is one end of a connection: tls.Client or tls.Server.
func newSecure(c net.Conn, config *tls.Config, end func(net.Conn, *tls.Config) *tls.Conn) *secure {
	below := &gathered{Conn: c}
	return &secure{Conn: end(below, config), below: below}
}

// send writes within the time that writes have.
func (s *secure) send(b []byte) error {
	if err := s.SetWriteDeadline(time.Now().Add(writing)); err != nil {
		return err
	}
	_, err := s.Write(b)
	return err
}

// writing is how long a write may take.
const writing = 30 * time.Second

// deadlines is how much later than it was asked for a write may be given up.
const deadlines = 30 * time.Second

// SetWriteDeadline implements net.Conn, for one goroutine at a time. nats.go sets a deadline before each write and
// none after it, and each change costs as much as a seal: one that is set is moved when it comes near.
func (s *secure) SetWriteDeadline(t time.Time) error {
	if t.IsZero() || t.Before(s.until) {
		return nil
	}
	s.until = t.Add(deadlines)
	return s.Conn.SetWriteDeadline(s.until)
}

// Write implements net.Conn.
func (s *secure) Write(b []byte) (int, error) {
	s.below.hold()
	n, err := s.Conn.Write(b)
	if lost := s.below.release(); lost != nil {
		return 0, lost
	}
	return n, err
}

// SetDeadline implements net.Conn.
func (s *secure) SetDeadline(t time.Time) error {
	s.until = time.Time{}
	return s.Conn.SetDeadline(t)
}

// room has buffers in which connections hold what they write. A write is over before the next begins on the same
// core, so that its bytes are in the cache yet.
var room = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// gathered is a connection below TLS, which writes by itself, too: handshakes and alerts.
type gathered struct {
	net.Conn
	mu   sync.Mutex
	held *bytes.Buffer // what is written, while it is held
	err  error         // of release: TLS has counted as sent what was not
	// hasty has Read fail with errNothing where it would wait. The reader alone sets it.
	hasty bool
	attempt
}

// errNothing says that nothing more is here yet. TLS goes on after it.
var errNothing net.Error = nothing{}

type nothing struct{}

func (nothing) Error() string   { return "bus: nothing is here yet" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }

// Read implements net.Conn.
func (g *gathered) Read(b []byte) (int, error) {
	if g.hasty {
		return g.readHere(b)
	}
	return g.Conn.Read(b)
}

// Write implements net.Conn.
func (g *gathered) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.err != nil:
		return 0, g.err
	case g.held != nil:
		return g.held.Write(b)
	}
	return g.Conn.Write(b)
}

// hold begins to hold what is written.
func (g *gathered) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = room.Get().(*bytes.Buffer)
}

// release writes what was held. If that fails it closes the connection, whose reader then ends.
func (g *gathered) release() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held.Len() > 0 && g.err == nil {
		if _, g.err = g.Conn.Write(g.held.Bytes()); g.err != nil {
			g.Conn.Close()
		}
	}
	g.held.Reset()
	room.Put(g.held)
	g.held = nil
	return g.err
}
