package bus

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// The end of a line or a message is known wherever what NATS says is cut, and whatever is in messages.
func TestFraming(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var said []byte
		ends := map[int]bool{0: true}
		for range 1 + rng.IntN(8) {
			body := bytes.Repeat([]byte("\r\nMSG a 1 9\r\nPING\r\n"), rng.IntN(4))
			body = append(body, make([]byte, rng.IntN(3))...)
			switch rng.IntN(5) {
			case 0:
				said = append(said, "PING\r\n"...)
			case 1:
				said = append(said, `INFO {"nonce":"MSG a 1 70"}`+"\r\n"...)
			case 2:
				said = fmt.Appendf(said, "HMSG c.id.s.p1 2 c.id.in.p1.x 12 %d\r\n%s\r\n", len(body), body)
			default:
				said = fmt.Appendf(said, "MSG c.id.s.p1 2 %d\r\n%s\r\n", len(body), body)
			}
			ends[len(said)] = true
		}
		var f framing
		for at := 0; at < len(said); {
			n := min(len(said)-at, 1+rng.IntN(30))
			at += n
			if whole := f.whole(said[at-n : at]); whole != ends[at] {
				t.Fatalf("cut at %d of %q: whole is %v", at, said, whole)
			}
		}
	}
	for line, n := range map[string]int{"MSG": 0, "MSG \r": 0, "MSG a 1 -5\r": 0, "MSG a 1 x\r": 0, "PUB a 5\r": 0,
		"MSG a 1 0\r": 2} {
		if got := payload([]byte(line)); got != n {
			t.Errorf("%d bytes follow %q, not %d", got, line, n)
		}
	}
}

// pieces keeps what it is given, piece by piece.
type pieces struct {
	all   [][]byte
	bytes atomic.Int64
}

func (p *pieces) Write(b []byte) (int, error) {
	p.all = append(p.all, bytes.Clone(b))
	p.bytes.Add(int64(len(b)))
	return len(b), nil
}

// talk is two ends of a TLS connection, whose second counts its calls.
func talk(t *testing.T) (client *secure, far *secure, calls *counted) {
	t.Helper()
	certificate, pin := certified(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	calls = &counted{Conn: c}
	client = newSecure(near, pinned(pin), tls.Client)
	own := &tls.Config{Certificates: []tls.Certificate{certificate}, DynamicRecordSizingDisabled: true}
	far = newSecure(c, own, tls.Server)
	far.below.Conn = calls
	done := make(chan error, 1)
	go func() { done <- far.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); c.Close() })
	return client, far, calls
}

// What NATS says in pieces leaves in one write a message, whole, and long ones in few.
func TestMessagesLeaveWhole(t *testing.T) {
	client, far, calls := talk(t)
	pipe, nats := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- outward(far, pipe) }()
	for _, size := range []int{0, 1, waiting - 60, waiting, 5000, 62_900, gathering, 3*gathering + 7} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(i * i >> 7)
		}
		said := fmt.Appendf(nil, "MSG c.id.s.p1 2 %d\r\n%s\r\n", size, body)
		before := calls.writes.Load()
		go func() {
			for rest, n := said, 512; len(rest) > 0; n = 1 << 16 {
				n = min(n, len(rest))
				if _, err := nats.Write(rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
		}()
		got := make([]byte, len(said))
		if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, said) {
			t.Fatalf("a message of %d bytes arrives as another: %v", size, err)
		}
		if n, most := int(calls.writes.Load()-before), 1+len(said)/gathering; n > most {
			t.Errorf("a message of %d bytes was %d writes, not %d", size, n, most)
		}
	}
	nats.Close()
	if err := <-ended; err != io.EOF {
		t.Errorf("it ends with %v", err)
	}
}

// What has come from a client of one message reaches NATS together; of what has not come nothing is waited
// for, and an idle client holds no room.
func TestMessagesComeWhole(t *testing.T) {
	client, far, calls := talk(t)
	far.below.Conn = calls.Conn // which says what is here
	var p pieces
	ended := make(chan error, 1)
	said := make([]byte, 62_900)
	for i := range said {
		said[i] = byte(i * i >> 7)
	}
	const rounds = 20
	go func() { ended <- inward(&p, far) }()
	for i := range rounds {
		if _, err := client.Write(said); err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); p.bytes.Load() < int64((i+1)*len(said)); time.Sleep(time.Millisecond) {
			if time.Since(begun) > 10*time.Second {
				t.Fatalf("%d bytes of %d have been passed on", p.bytes.Load(), (i+1)*len(said))
			}
		}
	}
	if _, err := client.Write(said[:100]); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if err := <-ended; err != io.EOF {
		t.Errorf("it ends with %v", err)
	}
	if all := bytes.Join(p.all, nil); !bytes.Equal(all, append(bytes.Repeat(said, rounds), said[:100]...)) {
		t.Fatalf("%d bytes arrived of %d", len(all), rounds*len(said)+100)
	}
	if len(p.all) > 3*rounds {
		t.Errorf("%d messages were %d pieces", rounds+1, len(p.all))
	}
}
