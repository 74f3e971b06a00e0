package link

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/internal/vary"
)

// wire is a bus between ends that does harm: it loses, repeats, reorders, delays and
// corrupts frames.
type wire struct {
	mu   sync.Mutex
	rng  *rand.Rand
	ends map[protocol.Role]*End
	harm float64
	late []letter // held back
	// brief is Config.Brief of ends that begin
	brief func([]byte) int
	// lasting is Config.Lasting of ends that begin
	lasting func(protocol.Role, []byte) bool
	// quota and refused are Config.Quota and Config.Refused of ends that begin
	quota   func(from, to protocol.Role) int64
	refused func(protocol.Role, error)
}

type letter struct {
	from, to protocol.Role
	frame    []byte
}

type port struct {
	*wire
	self protocol.Role
}

func (w port) Publish(to protocol.Role, frame []byte) error {
	w.mu.Lock()
	out := []letter{{w.self, to, slices.Clone(frame)}}
	switch x := w.rng.Float64() / max(w.harm, 1e-9); {
	case x < 0.3:
		out = nil
	case x < 0.5:
		out = append(out, out[0])
	case x < 0.8:
		w.late = append(w.late, out...)
		out = nil
	case x < 1:
		out[0].frame[w.rng.IntN(len(frame))] ^= 1 << w.rng.IntN(8)
	default:
		out = append(out, w.late...)
		w.late = nil
	}
	ends := make([]*End, len(out))
	for i, l := range out {
		ends[i] = w.ends[l.to]
	}
	w.mu.Unlock()
	for i, l := range out {
		if ends[i] != nil {
			go ends[i].Deliver(l.from, l.frame)
		}
	}
	return nil
}

// begin makes an end of two.
func (w *wire) begin(t *testing.T, self protocol.Role, dir string) *End {
	t.Helper()
	j, err := journal.Open(filepath.Join(dir, fmt.Sprint("journal", int(self))))
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Self: self, Journal: j, Bus: port{w, self}, Most: 4 << 20, Brief: w.brief,
		Lasting: w.lasting, Quota: w.quota, Refused: w.refused, Secret: [32]byte{99, byte(self)},
		Keys: func(peer protocol.Role) (to, from [32]byte, err error) {
			return [32]byte{byte(self), byte(peer)}, [32]byte{byte(peer), byte(self)}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.ends[self] = e
	w.mu.Unlock()
	e.Start()
	return e
}

// die ends an end as kill -9 does: what was not synced may be gone, here all that the
// journal had not handed over.
func (w *wire) die(e *End) {
	w.mu.Lock()
	delete(w.ends, e.Self)
	w.mu.Unlock()
	e.Close()
	e.Journal.Abandon()
}

// body is the i-th message.
func body(i int) []byte {
	size := []int{0, 5, 300, chunkBytes - 16, chunkBytes, 700_000}[i%6]
	b := make([]byte, size+8)
	binary.LittleEndian.PutUint64(b, uint64(i))
	for j := 8; j < len(b); j += 97 {
		b[j] = byte(i + j)
	}
	return b
}

// Messages arrive once, whole and in order, whatever the bus does to frames and
// however often either end dies.
func TestHarmAndDeath(t *testing.T) {
	const messages = 24
	w := &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}, harm: 0.15}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, b := w.begin(t, 0, dir), w.begin(t, 1, dir)
	sent, got := 0, 0
	stops := rand.New(rand.NewPCG(3, 4)) // the wire's generator is its goroutines'
	for lives := 0; got < messages; lives++ {
		stop := 3*lives + stops.IntN(5)
		for sent < messages && sent < stop+3 {
			if err := a.Send(ctx, 1, body(sent)); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		for got < min(stop, messages) {
			ev, err := b.Next(ctx, time.Time{}, "")
			if err != nil {
				t.Fatal(err)
			}
			if ev.From != 0 || !slices.Equal(ev.Body, body(got)) {
				t.Fatalf("message %d is wrong: %d bytes", got, len(ev.Body))
			}
			got++
		}
		switch lives % 3 {
		case 0:
			w.die(a)
			a, sent = w.begin(t, 0, dir), 0
		case 1:
			w.die(b)
			b, got = w.begin(t, 1, dir), 0
		}
	}
	w.die(a)
	w.die(b)
}

// A role that goes on from an older copy of its journal, which lacks what it had said to
// have, is refused.
func TestOlderJournal(t *testing.T) {
	w := &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	a, b := w.begin(t, 0, dir), w.begin(t, 1, dir)
	file := filepath.Join(dir, "journal1")
	var older []byte
	for i := range 4 {
		if err := a.Send(ctx, 1, body(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Next(ctx, time.Time{}, ""); err != nil {
			t.Fatal(err)
		}
		b.Acknowledge()
		for a.Waiting(1) > 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if i == 1 {
			var err error
			if older, err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.die(b)
	if err := os.WriteFile(file, older, 0o600); err != nil {
		t.Fatal(err)
	}
	b = w.begin(t, 1, dir)
	var err error
	for err == nil {
		a.Again() // what it greets with says what it still has
		_, err = b.Next(ctx, time.Now().Add(50*time.Millisecond), "late")
	}
	if !strings.Contains(err.Error(), "lacks messages of party 1 that it had acknowledged") {
		t.Error(err)
	}
	w.die(a)
	w.die(b)
}

// A message that differs from the one sent in its place in an earlier life is refused.
func TestNoTwoVersions(t *testing.T) {
	w := &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}}
	dir := t.TempDir()
	a := w.begin(t, 0, dir)
	if err := a.Send(context.Background(), 1, []byte("one")); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if err := a.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	a = w.begin(t, 0, dir)
	defer w.die(a)
	if err := a.Send(context.Background(), 1, []byte("two")); err == nil {
		t.Error("another message went in the place of the first")
	}
}

// Marks come in the same place in a later life.
func TestMarks(t *testing.T) {
	w := &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}}
	dir, ctx := t.TempDir(), context.Background()
	a, b := w.begin(t, 0, dir), w.begin(t, 1, dir)
	var first []string
	read := func(e *End, n int) (seen []string) {
		for range n {
			ev, err := e.Next(ctx, time.Now().Add(30*time.Millisecond), "late")
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, string(ev.Mark)+string(ev.Body))
		}
		return seen
	}
	for i := range 3 {
		if err := a.Send(ctx, 1, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		first = append(first, read(b, 2)...)
	}
	b.Close()
	if err := b.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	b = w.begin(t, 1, dir)
	if a.Replaying() || !b.Replaying() {
		t.Error("only the end that has begun again has events of an earlier life")
	}
	if again := read(b, 5); !slices.Equal(first[:5], again) || !slices.Contains(first, "late") || !b.Replaying() {
		t.Errorf("first %v, then %v", first, again)
	}
	if again := read(b, 1); again[0] != first[5] || b.Replaying() {
		t.Errorf("first %v, at last %v", first, again)
	}
	w.die(a)
	w.die(b)
}

// A deadline that passes while a message arrives leaves no mark behind it, neither here nor in the journal.
func TestNoMarkBehindAMessage(t *testing.T) {
	w := &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}}
	dir, ctx := t.TempDir(), context.Background()
	a, b := w.begin(t, 0, dir), w.begin(t, 1, dir)
	if err := a.Send(ctx, 1, []byte("one")); err != nil {
		t.Fatal(err)
	}
	<-b.arrived
	if err := b.leave("late"); err != nil {
		t.Fatal(err)
	}
	for life := range 2 {
		ev, err := b.Next(ctx, time.Time{}, "")
		if err != nil || string(ev.Body) != "one" || len(b.events) > b.first {
			t.Errorf("life %d: %q, %v, then %d events", life, ev.Body, err, len(b.events)-b.first)
		}
		w.die(b)
		b = w.begin(t, 1, dir)
	}
	w.die(a)
	w.die(b)
}

// A process that was stopped at a deadline, as by Ctrl-Z or with its machine, finds it passed when it goes on, before
// it can read what came in time. It waits for that once, however much comes that is something else.
func TestOversleptDeadline(t *testing.T) {
	w := &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}}
	dir, ctx := t.TempDir(), context.Background()
	a, b := w.begin(t, 0, dir), w.begin(t, 1, dir)
	defer w.die(a)
	defer w.die(b)
	b.grace = 700 * time.Millisecond
	deadline := time.Now().Add(-time.Minute)
	var moved [2]time.Time
	time.AfterFunc(50*time.Millisecond, func() {
		if err := a.Send(ctx, 1, []byte("in time")); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{"in time", "late"} {
		if ev, err := b.Next(ctx, deadline, "late"); err != nil || string(ev.Body)+string(ev.Mark) != want {
			t.Errorf("%q%q, %v, where %q comes", ev.Body, ev.Mark, err, want)
		}
		if want == "in time" {
			moved = b.moved
		}
	}
	if b.moved != moved && time.Since(moved[1]) < overslept {
		t.Errorf("the deadline was moved to %v and then to %v", moved[1], b.moved[1])
	}
}

// Nobody but a role itself can say what it has received: with another's tag, or that of the other
// direction, an acknowledgement does not make a message forgotten, and a greeting ends nothing.
func TestForgedFrames(t *testing.T) {
	w := &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}}
	a := w.begin(t, 0, t.TempDir())
	defer w.die(a)
	if err := a.Send(context.Background(), 1, []byte("one")); err != nil {
		t.Fatal(err)
	}
	tagged := func(f frame, key [32]byte) []byte {
		b := f.append(nil)
		return tag(hmac.New(sha256.New, key[:]), b, b)
	}
	acked, greeted := frame{kind: frameAck, durable: 1, message: 1}, frame{kind: frameHello, first: 9}
	asked := frame{kind: frameAgain}
	a.peers[1].note(lasting{parts: [2][]byte{1: []byte("another")}}) // whoever asks for it is noticed
	for _, key := range [][32]byte{{}, {0, 1}, {2, 0}} {
		a.Deliver(1, tagged(acked, key))
		a.Deliver(1, tagged(greeted, key))
		a.Deliver(1, tagged(asked, key))
		if a.Waiting(1) != 1 || a.err != nil {
			t.Errorf("a frame under the key %v was taken: %v", key[:2], a.err)
		}
	}
	if a.Deliver(1, tagged(acked, [32]byte{1, 0})); a.Waiting(1) != 0 {
		t.Error("a true acknowledgement was refused")
	}
	if a.Deliver(1, tagged(asked, [32]byte{1, 0})); a.err == nil {
		t.Error("who asked truly was not heard: the test has not tested anything")
	}
}

// FuzzDeliver gives an end frames of anybody: it must not fail, nor take a message.
func FuzzDeliver(f *testing.F) {
	data := frame{kind: frameData, size: 20, bytes: make([]byte, 20)}
	ack := frame{kind: frameAck, durable: 1, message: 1}
	f.Add(data.append(nil))
	for _, x := range []frame{ack, {kind: frameHello}, {kind: frameAgain, message: 1}} {
		b := append(x.append(nil), make([]byte, tagBytes)...)
		f.Add(b)
		f.Add(data.append(b))
	}
	j, err := journal.Open(filepath.Join(f.TempDir(), "journal"))
	if err != nil {
		f.Fatal(err)
	}
	e, err := New(Config{Self: 0, Journal: j,
		Bus: port{&wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}}, 0}, Most: 1 << 20,
		Keys: func(protocol.Role) (to, from [32]byte, err error) { return }})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		vary.Bytes(b, func(b []byte) {
			e.Deliver(1, b)
			if len(e.events) > 0 {
				t.Fatal("a message that nobody sealed was taken")
			}
			if p := e.peers[1]; p != nil && len(p.partial) > 1<<20 {
				t.Fatal("more is kept than a message may have")
			}
			if e.err != nil {
				t.Fatal(e.err)
			}
		})
	})
}

// checker is a bus that looks at what it is given: frames that can be read, of data that had been sent.
type checker struct {
	sent  [][]byte // sealed messages
	wrong string   // what the first wrong frame was
}

func (c *checker) Publish(_ protocol.Role, b []byte) error {
	_, b = ahead(b)
	x, err := parse(b, 1<<20)
	switch {
	case c.wrong != "":
	case err != nil:
		c.wrong = fmt.Sprintf("a frame that nobody can read: %v", err)
	case x.kind == frameData:
		at := room + int(x.chunk)*chunkBytes
		if int(x.message) >= len(c.sent) || !bytes.Equal(c.sent[x.message][at:at+len(x.bytes)], x.bytes) {
			c.wrong = fmt.Sprintf("message %d with other bytes", x.message)
		}
	}
	return nil
}

// Kinds of frames in an input of FuzzPeer: the rest are frames of data as they stand there.
const (
	tagged = iota // gets a true tag
	ahead1        // the same, before the next frame
	sealed        // a number and a body, which get a true seal
	kinds  = 4
)

// act is an input of FuzzPeer: each frame's kind, its length and what it is made of.
func act(frames ...any) (b []byte) {
	for i := 0; i < len(frames); i += 2 {
		body := frames[i+1].([]byte)
		b = append(append(b, byte(frames[i].(int)), byte(len(body))), body...)
	}
	return b
}

// FuzzPeer gives an end what a role can make that has the keys of its streams: frames with true tags, and messages with
// true seals, one after the other. The end sends nothing but what it had sent, byte for byte, takes no message out of
// its place, and of one that it had received no other; it ends for two reasons alone.
func FuzzPeer(f *testing.F) {
	coded := func(x frame) []byte { return x.append(nil) }
	all := coded(frame{kind: frameAck, durable: 3, message: 3})
	gap := coded(frame{kind: frameAck, durable: 1, message: 2, gap: true})
	part := coded(frame{kind: frameAck, durable: 1, message: 2, chunk: 1})
	again := coded(frame{kind: frameAgain})
	f.Add(act(tagged, all))
	for _, x := range []frame{{kind: frameAck, durable: 1, message: 1}, {kind: frameAck, durable: 1, message: 1, chunk: 7},
		{kind: frameAck, durable: 1, message: 9, chunk: 7, gap: true}, {kind: frameHello, first: 1},
		{kind: frameHello, first: 9}, {kind: frameAgain, message: 1}} {
		f.Add(act(tagged, coded(x), tagged, part, tagged, all, tagged, again))
	}
	letter := func(number uint64, text string) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, number), text...)
	}
	f.Add(act(sealed, letter(1, "right"), sealed, letter(2, "x"), sealed, letter(3, "y"), tagged, all))
	f.Add(act(sealed, letter(2, "x"), sealed, letter(1, "wrong")))
	f.Add(act(tagged, part, tagged, gap, tagged, coded(frame{kind: frameHello})))
	f.Add(act(ahead1, part, sealed, letter(2, ""), ahead1, gap, sealed, letter(4, "x"), ahead1, all, tagged, again))
	chunk := func(i int) []byte {
		data := frame{kind: frameData, message: 2, chunk: uint32(i), size: 2*chunkBytes + 20}
		return data.append(nil)
	}
	last := append(chunk(2), make([]byte, 20)...)
	f.Add(act(kinds-1, chunk(0), kinds-1, chunk(1), kinds-1, last, sealed, letter(2, "x")))
	f.Add(act(kinds-1, chunk(0), ahead1, gap, kinds-1, chunk(0), tagged, coded(frame{kind: frameHello}), kinds-1,
		chunk(1)))
	p := newPeerEnd(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		vary.Bytes(b, func(b []byte) {
			p.reset()
			for len(b) > 1 && p.end.err == nil {
				n := min(int(b[1]), len(b)-2)
				if frame := p.frame(b[0]%kinds, b[2:2+n]); frame != nil {
					p.end.Deliver(1, frame)
					p.check(t)
				}
				b = b[2+n:]
			}
		})
	})
}

// frame is the next frame, nil if it goes ahead of another.
func (p *peerEnd) frame(kind byte, b []byte) []byte {
	switch {
	case kind == tagged:
		b = tag(p.fromMac, slices.Clip(b), b)
	case kind == ahead1:
		p.ahead = tag(p.fromMac, append(p.ahead[:0], b...), b)
		return nil
	case kind == sealed && len(b) >= 8:
		number := binary.LittleEndian.Uint64(b)
		body := p.fromSealer.Seal(nil, p.end.nonce(number), b[8:], nil)
		x := frame{kind: frameData, message: number, size: uint32(len(body)), bytes: body}
		b = x.append(nil)
	case len(b) == dataHead && len(p.ahead) == 0: // a chunk is long
		copy(p.long, b)
		return p.long
	}
	b = append(slices.Clip(p.ahead), b...)
	p.ahead = p.ahead[:0]
	return b
}

// peerEnd is an end in the middle of its streams with role 1: of what it sends message 0 has arrived, and may be asked
// for again, 1 is short and 2 long; it had received 0 and 1, of which 1 is to be given again.
type peerEnd struct {
	end        *End
	bus        checker
	out        [2][]byte // of the end: messages 1 and 2, which it may write into
	long       []byte    // a frame of a whole chunk
	partial    []byte    // of a message
	ahead      []byte    // an ack before the next frame
	parts      [2][]byte
	fromMac    hash.Hash
	fromSealer cipher.AEAD
}

func newPeerEnd(f *testing.F) *peerEnd {
	j, err := journal.Open(filepath.Join(f.TempDir(), "journal"))
	if err != nil {
		f.Fatal(err)
	}
	p := &peerEnd{parts: [2][]byte{1: []byte("a lasting result")}, long: make([]byte, dataHead+chunkBytes),
		partial: make([]byte, 1<<20)}
	from := [32]byte{2}
	p.end, err = New(Config{Self: 0, Journal: j, Bus: &p.bus, Most: 1 << 20, Secret: [32]byte{3},
		Lasting: func(protocol.Role, []byte) bool { return true },
		Keys:    func(protocol.Role) (to, _ [32]byte, err error) { return [32]byte{1}, from, nil }})
	if err != nil {
		f.Fatal(err)
	}
	p.fromMac = hmac.New(sha256.New, from[:])
	if p.fromSealer, err = gcm(from); err != nil {
		f.Fatal(err)
	}
	at1, _ := p.end.peer(1)
	for number, parts := range [][2][]byte{p.parts, {1: []byte("short")}, {1: make([]byte, chunkBytes+9)}} {
		p.bus.sent = append(p.bus.sent, p.end.seal(at1, uint64(number), parts))
	}
	for i := range p.out {
		p.out[i] = slices.Clone(p.bus.sent[1+i])
	}
	return p
}

// reset makes the streams those of the beginning.
func (p *peerEnd) reset() {
	e := p.end
	e.err, e.failed, e.touched, e.looked, e.spare, e.spared = nil, make(chan struct{}), nil, nil, nil, 0
	sent := p.bus.sent
	for i, b := range p.out {
		copy(b[:room], sent[1+i]) // the heads of frames
	}
	q := e.peers[1]
	q.out = [][]byte{p.out[0], p.out[1]}
	p.ahead = p.ahead[:0]
	q.touched, q.appended, q.owes, q.gap, q.unacked, q.jumped = false, false, false, false, 0, time.Time{}
	q.next, q.ready, q.base, q.acked, q.at = 3, 3, 1, position{message: 1}, position{message: 3}
	q.bytes, q.given, q.gave = len(sent[1])+len(sent[2])-2*room, 0, time.Time{}
	q.lasts = append(q.lasts[:0], lasting{0, p.parts, sealTag(sent[0][len(sent[0])-sealBytes:])})
	q.want, q.partial, q.durable = position{message: 2}, p.partial[:0], 2
	e.events, e.first = []event{{from: 1, missing: true, number: 1, digest: e.digestOf(1, 1, []byte("right"))}}, 0
}

// check fails the test if a frame had done what it must not do. Without t.Helper, which takes longer.
func (p *peerEnd) check(t *testing.T) {
	e := p.end
	if e.err != nil && !strings.Contains(e.err.Error(), "lacks messages") &&
		!strings.Contains(e.err.Error(), "is not the one that came before") {
		t.Fatal(e.err)
	}
	if first := e.events[0]; !first.missing && string(first.body) != "right" {
		t.Fatalf("%q was taken for what had been received", first.body)
	}
	if q := e.peers[1]; uint64(len(e.events)) != q.want.message-1 || len(q.partial) > 1<<20 {
		t.Fatalf("%d events, %d bytes of a message, and the next is %v", len(e.events), len(q.partial), q.want)
	}
	if p.bus.wrong != "" {
		t.Fatalf("the end has sent %s", p.bus.wrong)
	}
}

// An end that is closed writes nothing more: the journal is no longer its own.
func TestClosedEndWritesNothing(t *testing.T) {
	w := &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}}
	dir, ctx := t.TempDir(), context.Background()
	e := w.begin(t, 0, dir)
	e.Close()
	for what, err := range map[string]error{"send": e.Send(ctx, 1, []byte("one")), "keep": e.Keep([]byte("head"), nil),
		"deadline": e.leave("late"), "mark": e.Mark([]byte("mark")), "note": e.Note(1, nil)} {
		if !errors.Is(err, errClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := e.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(filepath.Join(dir, "journal0"))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if n := len(j.Records()); n > 0 {
		t.Errorf("%d records are written", n)
	}
}
