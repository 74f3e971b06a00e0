package bus

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// counted counts what is written to a connection, and fails when it is told to.
type counted struct {
	net.Conn
	writes, closed atomic.Int32
	fails          atomic.Bool
}

var errLost = errors.New("lost")

func (c *counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	if c.fails.Load() {
		return 0, errLost
	}
	return c.Conn.Write(b)
}

func (c *counted) Close() error {
	c.closed.Add(1)
	return c.Conn.Close()
}

// A message of many records is one write, and arrives as it was. After a write that failed, which TLS
// does not hear of, the connection is closed and nothing more is written: records would be missing.
func TestRecordsLeaveTogether(t *testing.T) {
	certificate, pin := certified(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	message := make([]byte, 100_000)
	for i := range message {
		message[i] = byte(i * i >> 8)
	}
	got := make(chan []byte, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- nil
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c)
		got <- all
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	below := &counted{Conn: c}
	s := newSecure(below, pinned(pin), tls.Client)
	defer s.Close()
	if err := s.Handshake(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		before := below.writes.Load()
		if n, err := s.Write(message); n != len(message) || err != nil {
			t.Fatalf("%d bytes written: %v", n, err)
		}
		if n := below.writes.Load() - before; n != 1 {
			t.Errorf("a message was %d writes", n)
		}
	}
	below.fails.Store(true)
	if n, err := s.Write(message); n != 0 || !errors.Is(err, errLost) || below.closed.Load() == 0 {
		t.Errorf("a write that fails: %d bytes, %v, closed %d times", n, err, below.closed.Load())
	}
	below.fails.Store(false)
	before := below.writes.Load()
	if _, err := s.Write(message); !errors.Is(err, errLost) || below.writes.Load() != before {
		t.Errorf("after a write that failed: %v, and %d writes", err, below.writes.Load()-before)
	}
	if all := <-got; !bytes.Equal(all, append(message, message...)) {
		t.Errorf("%d bytes arrived of two messages of %d", len(all), len(message))
	}
}

// deadlined remembers the deadline of a connection's writes.
type deadlined struct {
	net.Conn
	moved int
	at    time.Time
}

func (d *deadlined) SetWriteDeadline(t time.Time) error {
	d.moved++
	d.at = t
	return nil
}

func (d *deadlined) SetDeadline(t time.Time) error { return d.SetWriteDeadline(t) }

// A write has the deadline that was asked for or one up to 30 s later, also after others took it
// away, and most writes do not move it.
func TestDeadlineOfWrites(t *testing.T) {
	below := new(deadlined)
	s := newSecure(below, new(tls.Config), tls.Client)
	begun := time.Unix(1000, 0)
	ask := func(after time.Duration) {
		t.Helper()
		asked := begun.Add(after)
		if err := s.SetWriteDeadline(asked); err != nil {
			t.Fatal(err)
		}
		if late := below.at.Sub(asked); late < 0 || late > 30*time.Second {
			t.Errorf("a write that may take until %v has %v more", after, late)
		}
		if err := s.SetWriteDeadline(time.Time{}); err != nil { // when it has been written
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		ask(time.Duration(i) * time.Second / 10)
	}
	if below.moved != 4 {
		t.Errorf("the deadline was moved %d times in 100 s", below.moved)
	}
	if err := s.SetDeadline(time.Time{}); err != nil { // as at the end of a handshake
		t.Fatal(err)
	}
	ask(101 * time.Second)
}
