package link

import (
	"bytes"
	"context"
	"crypto/aes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
)

// result is the i-th lasting message.
func result(i int) string { return fmt.Sprintf("r%c a lasting result %d", 'a'+i, i) }

// lastingWire has ends whose journals have digests of messages that begin with r.
func lastingWire(harm float64) *wire {
	return &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}, harm: harm,
		lasting: func(_ protocol.Role, b []byte) bool { return b[0] == 'r' }}
}

// giveResults sends the results and waits for an answer to each. It stops after so many steps, as one that is killed.
func giveResults(ctx context.Context, e *End, results, steps int) (done bool, err error) {
	for i := range results {
		body := []byte(result(i))
		err := e.SendAll(ctx, []Letter{{To: 1, Parts: [2][]byte{body[:1], body[1:]}, Lasting: true}})
		if err != nil {
			return false, err
		}
		if steps--; steps == 0 {
			return false, nil
		}
		switch ev, err := e.Next(ctx, time.Time{}, ""); {
		case err != nil:
			return false, err
		case string(ev.Body) != "answer "+result(i):
			return false, fmt.Errorf("answer %d is %q", i, ev.Body)
		}
		if steps--; steps == 0 {
			return false, nil
		}
	}
	return true, nil
}

// takeResults takes the results and answers each.
func takeResults(ctx context.Context, e *End, results, steps int) (done bool, err error) {
	for i := range results {
		switch ev, err := e.Next(ctx, time.Time{}, ""); {
		case err != nil:
			return false, err
		case string(ev.Body) != result(i):
			return false, fmt.Errorf("result %d is %q", i, ev.Body)
		}
		if steps--; steps == 0 {
			return false, nil
		}
		if err := e.Send(ctx, 0, []byte("answer "+result(i))); err != nil {
			return false, err
		}
		if steps--; steps == 0 {
			return false, nil
		}
	}
	return true, nil
}

// Both ends of lasting messages die again and again, whatever the bus does to frames: each life of the receiver gets
// every message that an earlier one had, though its journal has no body, from each life of the
// sender, which has them as soon as its program has come to them.
func TestLasting(t *testing.T) {
	const results, lives = 4, 4
	for _, harm := range []float64{0, 0.15} {
		w := lastingWire(harm)
		dir := t.TempDir()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		ended := make(chan error, 2)
		deaths := make([]int, 2)
		for role, program := range []func(context.Context, *End, int, int) (bool, error){giveResults, takeResults} {
			chance := rand.New(rand.NewPCG(5, uint64(role)))
			e := w.begin(t, protocol.Role(role), dir)
			go func() {
				for {
					steps := 1 + chance.IntN(2*results)
					if deaths[role] == lives {
						steps = 0 // to the end
					}
					done, err := program(ctx, e, results, steps)
					if done || err != nil {
						ended <- err
						return
					}
					w.die(e)
					deaths[role]++
					e = w.begin(t, protocol.Role(role), dir)
				}
			}()
		}
		for range 2 {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		w.die(w.ends[0])
		w.die(w.ends[1])
		text, err := os.ReadFile(filepath.Join(dir, "journal1"))
		if err != nil || bytes.Contains(text, []byte("lasting")) {
			t.Errorf("the receiver's journal has a body, %v", err)
		}
		cancel()
	}
}

// times multiplies in the field of GHASH.
func times(x, y [16]byte) (z [16]byte) {
	for i := range 128 {
		if x[i/8]>>(7-i%8)&1 == 1 {
			for j := range z {
				z[j] ^= y[j]
			}
		}
		carry := y[15] & 1
		for j := 15; j > 0; j-- {
			y[j] = y[j]>>1 | y[j-1]<<7
		}
		y[0] = y[0]>>1 ^ 0xe1*carry
	}
	return z
}

// A sender that has the key of a stream, as both ends do, makes another message with the same number and the same
// seal's tag, and gives it to a receiver that has lost the first: it is refused, and nothing follows from it.
func TestLastingOther(t *testing.T) {
	w := lastingWire(0)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	a, b := w.begin(t, 0, dir), w.begin(t, 1, dir)
	first := []byte("r a message that is two blocks. ")
	send := func(body []byte) {
		t.Helper()
		if err := a.SendAll(ctx, []Letter{{To: 1, Parts: [2][]byte{1: body}, Lasting: true}}); err != nil {
			t.Fatal(err)
		}
	}
	send(first)
	if _, err := b.Next(ctx, time.Time{}, ""); err != nil {
		t.Fatal(err)
	}
	b.Acknowledge()
	for a.Waiting(1) > 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	w.die(b)
	w.die(a)

	key := [32]byte{0, 1} // of what role 0 sends to role 1
	block, err := aes.NewCipher(key[:])
	if err != nil {
		t.Fatal(err)
	}
	var h, change [16]byte
	block.Encrypt(h[:], h[:])
	change[5] = 1
	other := bytes.Clone(first)
	for i, x := range times(change, h) {
		other[i] ^= change[i]
		other[16+i] ^= x
	}
	a = w.begin(t, 0, dir) // its journal takes the other for the first
	defer w.die(a)
	send(other)
	if len(a.peers[1].lasts) != 1 || bytes.Equal(other, first) {
		t.Fatal("there is no other message with that seal: the test has not tested anything")
	}
	b = w.begin(t, 1, dir)
	defer w.die(b)
	if ev, err := b.Next(ctx, time.Time{}, ""); err == nil ||
		!strings.Contains(err.Error(), "is not the one that came before") {
		t.Errorf("%q, %v", ev.Body, err)
	}
}

// A life whose sender does not give a lasting message again says so when its deadline has passed, and leaves no mark of
// it: the next one gets the message. A sender whose parts have changed gives nothing.
func TestLastingNotGiven(t *testing.T) {
	w := lastingWire(0)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	a, b := w.begin(t, 0, dir), w.begin(t, 1, dir)
	body := []byte(result(0))
	if err := a.SendAll(ctx, []Letter{{To: 1, Parts: [2][]byte{1: body}, Lasting: true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Next(ctx, time.Time{}, ""); err != nil {
		t.Fatal(err)
	}
	b.Acknowledge()
	for a.Waiting(1) > 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	w.mu.Lock()
	delete(w.ends, 0) // it cannot be reached
	w.mu.Unlock()
	w.die(b)
	b = w.begin(t, 1, dir)
	if _, err := b.Next(ctx, time.Now().Add(10*time.Millisecond), "late"); err == nil ||
		!strings.Contains(err.Error(), "is not given again") {
		t.Errorf("%v", err)
	}
	w.mu.Lock()
	w.ends[0] = a
	w.mu.Unlock()
	w.die(b)
	b = w.begin(t, 1, dir)
	if ev, err := b.Next(ctx, time.Now().Add(10*time.Second), "late"); err != nil || string(ev.Body) != result(0) {
		t.Errorf("%q%q, %v", ev.Body, ev.Mark, err)
	}
	w.die(b)
	body[3] ^= 1
	b = w.begin(t, 1, dir)
	defer w.die(b)
	if ev, err := b.Next(ctx, time.Now().Add(2*time.Second), "late"); err == nil {
		t.Errorf("a message that has changed was given: %q", ev.Body)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil || !strings.Contains(a.err.Error(), "has changed") {
		t.Errorf("the sender of a message that has changed goes on: %v", a.err)
	}
	a.Journal.Abandon()
}
