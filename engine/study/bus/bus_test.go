package bus

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/link"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/vary"
)

// A role has one name in subjects, and a name one role; others are of nobody.
func TestNames(t *testing.T) {
	roles := []protocol.Role{protocol.Server, protocol.ServerAt(1), protocol.ServerAt(2), 0, 1, 9, MostParties - 1}
	var names []string
	for _, r := range roles {
		got, ok := parseName(name(r))
		if !ok || got != r || slices.Contains(names, name(r)) {
			t.Errorf("%v is %q, which is %v", r, name(r), got)
		}
		names = append(names, name(r))
	}
	for _, s := range []string{"", "s0", "s1", "s4", "p", "p0", "p01", "p10001", "s02", "p-1", "q1", "s-1"} {
		if r, ok := parseName(s); ok {
			t.Errorf("%q is %v", s, r)
		}
	}
}

// Each role may publish under its own name alone, and the coordinator alone answers requests.
func TestSubjects(t *testing.T) {
	for _, r := range []protocol.Role{protocol.ServerAt(1), 0} {
		publish, subscribe := subjects("id", r)
		if !slices.Equal(publish, []string{"c.id." + name(r) + ".>"}) || slices.Contains(subscribe, "c.id.*.ctl") {
			t.Errorf("%v publishes %q and receives %q", r, publish, subscribe)
		}
	}
}

// logBuffer is a log that several goroutines write.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// certified is a new certificate and its pin.
func certified(t *testing.T) (tls.Certificate, [32]byte) {
	t.Helper()
	chain, key, err := NewCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(chain, key)
	if err != nil {
		t.Fatal(err)
	}
	pin, err := Pin(certificate)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, pin
}

// listen starts a server that lets two parties in, whose keys follow the coordinator's.
func listen(t *testing.T, public []string, long bool, log io.Writer) (*Server, [32]byte) {
	t.Helper()
	certificate, pin := certified(t)
	s, err := Listen("127.0.0.1:0", "id", certificate, public[0], long, func(l Login) error {
		if l.Party < 2 && l.Key == public[1+l.Party] {
			return nil
		}
		return errors.New("nobody invited it")
	}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return s, pin
}

// A party that speaks under another's name or the coordinator's, or listens to what is for
// others, is not heard and hears nothing; messages that are too long are not carried; a key
// that nobody invited is refused, and the log says so.
func TestForeignSubjects(t *testing.T) {
	for _, long := range []bool{false, true} {
		t.Run(fmt.Sprint("long ", long), func(t *testing.T) { foreignSubjects(t, long) })
	}
}

func foreignSubjects(t *testing.T, long bool) {
	var log logBuffer
	keys := make([]nkeys.KeyPair, 4) // the coordinator's, two parties', a stranger's
	public := make([]string, len(keys))
	for i := range keys {
		var err error
		if keys[i], err = nkeys.CreateUser(); err == nil {
			public[i], err = keys[i].PublicKey()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s, pin := listen(t, public, long, &log)
	defer s.Close()
	heard := make(chan string, 16)
	dial := func(self protocol.Role, key nkeys.KeyPair) (*Conn, error) {
		d := Dialer{Self: self, Study: "id", URL: "tls://" + s.Address(), Pin: pin, Key: key,
			Frames: func(from protocol.Role, b []byte) { heard <- fmt.Sprintf("%v hears %s of %v", self, b, from) }}
		if self == protocol.Server {
			d.Server = s
		}
		return Dial(t.Context(), d)
	}
	conns := make([]*Conn, 3)
	for i := range conns {
		var err error
		if conns[i], err = dial(protocol.Role(i-1), keys[i]); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	if _, err := dial(1, keys[3]); err == nil || !strings.Contains(log.String(), "a connection was refused") ||
		!strings.Contains(log.String(), "nobody invited it") {
		t.Errorf("a stranger's key: %v, and the log says %q", err, log.String())
	}
	one := conns[1].nc
	for _, subject := range []string{"c.id.p2.s", "c.id.s.p2", "c.id.s2.s", "c.other.p1.s", "c.id.in.p2.x", "$SYS.x"} {
		if err := one.Publish(subject, []byte("forged")); err != nil {
			t.Fatal(err)
		}
	}
	for _, subject := range []string{"c.id.*.p2", "c.id.*.s", "c.id.>", ">"} {
		if _, err := one.Subscribe(subject, func(m *nats.Msg) { heard <- "an eavesdropper hears " + m.Subject }); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.Publish("c.id.p1.s", make([]byte, link.FrameBytes+2000)); !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("a message that is too long: %v", err)
	}
	if err := one.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		from, to protocol.Role
		want     string
	}{{1, protocol.Server, "server hears true of party 2"}, {protocol.Server, 1, "party 2 hears true of server"},
		{0, protocol.Server, "server hears true of party 1"}} {
		if err := conns[x.from+1].Publish(x.to, []byte("true")); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-heard:
			if got != x.want {
				t.Errorf("%s, not %s", got, x.want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: nothing came", x.want)
		}
	}
}

// A connection whose server is gone ends at once: nothing that was published can leave.
func TestCloseWithoutServer(t *testing.T) {
	for _, long := range []bool{false, true} {
		t.Run(fmt.Sprint("long ", long), func(t *testing.T) { closeWithoutServer(t, long) })
	}
}

func closeWithoutServer(t *testing.T, long bool) {
	var log logBuffer
	own, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := own.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	s, pin := listen(t, []string{"", public}, long, &log)
	c, err := Dial(t.Context(), Dialer{Self: 0, Study: "id", URL: "tls://" + s.Address(), Pin: pin, Key: own})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	for c.nc.IsConnected() {
		time.Sleep(time.Millisecond)
	}
	begun := time.Now()
	if c.Close(); time.Since(begun) > 1500*time.Millisecond {
		t.Errorf("closing took %v", time.Since(begun))
	}
}

// Tokens of anybody name a role that there can be, or are refused: bytes as they are, and what they are in a token.
func FuzzPass(f *testing.F) {
	for _, text := range []string{`{"p":1,"t":"x"}`, `{"party":-1}`, `{"party":2,"proof":"y"}`, `{`, ``, `{"party":-2}`,
		`{"party":0}`, `{"party":10000,"proof":null}`, `{"party":10001}`, `{"party":9223372036854775808}`, `{"party":1e3}`,
		`{"party":1,"PARTY":-9}`, `{"party":[1]}`, `{"party":1,"proof":{"party":2}}`, `{"proof":"\u0000","party":1} x`} {
		f.Add([]byte(text))
	}
	own, err := json.Marshal(pass{Party: 3, Proof: "x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own)
	f.Add([]byte(base64.RawURLEncoding.EncodeToString(own)))
	f.Fuzz(func(t *testing.T, b []byte) {
		vary.Bytes(b, func(b []byte) {
			for _, token := range []string{string(b), base64.RawURLEncoding.EncodeToString(b)} {
				p, err := parsePass(token)
				if err != nil {
					continue
				}
				if !Known(protocol.Role(p.Party - 1)) {
					t.Fatalf("%q is of role %d", token, p.Party)
				}
				text, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				if again, err := parsePass(base64.RawURLEncoding.EncodeToString(text)); err != nil || *again != *p {
					t.Fatalf("%+v is read as %+v, %v", p, again, err)
				}
			}
		})
	})
}

// Nothing but TLS 1.3 is spoken: neither an older version nor plain text gets an answer.
func TestNoOlderTLS(t *testing.T) {
	for _, long := range []bool{false, true} {
		t.Run(fmt.Sprint("long ", long), func(t *testing.T) { noOlderTLS(t, long) })
	}
}

func noOlderTLS(t *testing.T, long bool) {
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	var log logBuffer
	s, pin := listen(t, []string{public, public, public}, long, &log)
	defer s.Close()
	for version, spoken := range map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true} {
		config := pinned(pin)
		config.MinVersion, config.MaxVersion = version, version
		c, err := tls.Dial("tcp", s.Address(), config)
		if (err == nil) != spoken {
			t.Errorf("TLS %x is spoken: %v", version, err)
		}
		if err == nil {
			c.Close()
		}
	}
	plain, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Write([]byte("CONNECT {\"verbose\":true}\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := plain.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(plain); bytes.Contains(said, []byte("INFO")) || bytes.Contains(said, []byte("PONG")) ||
		errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("plain text is answered by %q, %v", said, err)
	}
	refused := func() int { return strings.Count(log.String(), "a connection was refused") }
	for end := time.Now().Add(10 * time.Second); long && refused() < 2 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // a client knows of it before the log
	}
	if long && refused() != 2 {
		t.Errorf("the log says %q", log.String())
	}
	if older := pinned(pin); older.MinVersion != tls.VersionTLS13 {
		t.Error("a party would speak an older version")
	}
}

// Who is interrupted while nobody answers has been interrupted, and no address was wrong.
func TestInterruptedDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = Dial(ctx, Dialer{Study: "00", URL: "tls://" + l.Addr().String(), Key: key})
	if wrong := (*fault.Error)(nil); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &wrong) {
		t.Errorf("it is told %v", err)
	}
}

// An address that another program has is refused at once, with the reason.
func TestListenSaysWhyItCannot(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	certificate, _ := certified(t)
	for _, long := range []bool{false, true} {
		began := time.Now()
		s, err := Listen(taken.Addr().String(), "id", certificate, "", long, nil, slog.New(slog.DiscardHandler))
		if err == nil {
			s.Close()
			t.Fatal("an address that is taken is listened on")
		}
		if why := new(net.OpError); !errors.As(err, &why) || time.Since(began) > 10*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	}
}

// Of the connections of one role the last alone is carried for, whatever it listens to, and when its invitation has
// been used none with another key: each would be sent all that is for it.
func TestOneConnection(t *testing.T) {
	for _, long := range []bool{false, true} {
		t.Run(fmt.Sprint("long ", long), func(t *testing.T) { oneConnection(t, long) })
	}
}

func oneConnection(t *testing.T, long bool) {
	keys, public := make([]nkeys.KeyPair, 3), make([]string, 3)
	for i := range keys {
		keys[i], _ = nkeys.CreateUser()
		public[i], _ = keys[i].PublicKey()
	}
	certificate, pin := certified(t)
	s, err := Listen("127.0.0.1:0", "id", certificate, public[0], long, func(Login) error { return nil },
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dial := func(key int) *nats.Conn {
		c, err := nats.Connect("tls://"+s.Address(), append(overTLS(pinned(pin)), nats.NoReconnect(),
			nats.Nkey(public[key], keys[key].Sign), nats.CustomInboxPrefix("c.id.in.p1"),
			nats.Token(base64.RawURLEncoding.EncodeToString([]byte(`{"party":1}`))))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	open := func(all []*nats.Conn) (n int) {
		for _, c := range all {
			if c.IsConnected() && c.FlushTimeout(time.Second) == nil {
				n++
			}
		}
		return n
	}
	var all []*nats.Conn
	for range 5 {
		all = append(all, dial(1))
	}
	last := all[4]
	for i := range 2 * mostSubjects {
		if _, err := last.Subscribe(fmt.Sprintf("c.id.in.p1.%d", i), func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
	}
	if n := open(all); n != 1 || open(all[4:]) != 1 {
		t.Errorf("%d of 5 connections with one key are open", n)
	}
	if list, err := s.server.Connz(&server.ConnzOptions{}); err != nil || list.Conns[0].NumSubs > mostSubjects {
		t.Errorf("a connection listens to %d subjects, %v", list.Conns[0].NumSubs, err)
	}
	thief := dial(2)
	if open([]*nats.Conn{last, thief}) != 2 {
		t.Error("an invitation that was not used lets one key in")
	}
	s.Only(0, public[1])
	if open([]*nats.Conn{thief}) != 0 || open([]*nats.Conn{last}) != 1 {
		t.Error("after an invitation was used another key is connected, or its own is not")
	}
}
