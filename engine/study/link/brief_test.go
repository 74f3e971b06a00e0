package link

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
)

// vector is the i-th brief message, whose head is two bytes.
func vector(i int) string { return fmt.Sprintf("v%c a secret vector %d", 'a'+i, i) }

// briefWire has ends that keep two bytes of messages that begin with v.
func briefWire(harm float64) *wire {
	return &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}, harm: harm,
		brief: func(b []byte) int {
			if len(b) > 1 && b[0] == 'v' {
				return 2
			}
			return 0
		}}
}

// A receiver that keeps what follows from a brief message, and no body, dies again and again: before that is
// kept it gets the body anew, and deadlines that had passed are waited for anew; afterwards
// it gets the head and what it kept. Its journal has no body.
func TestBrief(t *testing.T) {
	const messages = 5
	for _, harm := range []float64{0, 0.15} {
		w := briefWire(harm)
		dir := t.TempDir()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		a, b := w.begin(t, 0, dir), w.begin(t, 1, dir)
		chance := rand.New(rand.NewPCG(5, 6))
		go func() {
			for i := range messages {
				if a.Send(ctx, 1, []byte(vector(i))) != nil {
					return
				}
			}
		}()
		bodies := make([]int, messages) // how often a body came
		for lives := 0; ; lives++ {
			kept, err := gather(ctx, b, bodies, messages, chance.IntN(2*messages))
			if err != nil {
				t.Fatal(err)
			}
			if kept == messages {
				break
			}
			w.die(b)
			b = w.begin(t, 1, dir)
			if lives > 200 {
				t.Fatal("no end of lives")
			}
		}
		again := 0
		for _, n := range bodies {
			again += n - 1
		}
		if again < 2 {
			t.Errorf("bodies came %v times: the test has not tested anything", bodies)
		}
		for a.Waiting(1) > 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		w.die(a)
		w.die(b)
		if text, err := os.ReadFile(filepath.Join(dir, "journal1")); err != nil || bytes.Contains(text, []byte("secret")) {
			t.Errorf("the receiver's journal has a body, %v", err)
		}
		cancel()
	}
}

// gather is the receiver's program: it keeps each vector's text, and answers. It stops after so many
// steps, as one that is killed, and returns how many vectors it has kept.
func gather(ctx context.Context, e *End, bodies []int, messages, steps int) (int, error) {
	for i := range messages {
		head := vector(i)[:2]
		var got string
		for got == "" {
			ev, err := e.Next(ctx, time.Now().Add(15*time.Millisecond), "late "+head)
			if err != nil {
				return 0, err
			}
			if ev.Mark == nil {
				got = string(ev.Body)
			} else if mark := string(ev.Mark); mark != "late "+head {
				return 0, fmt.Errorf("%s while %s is waited for", mark, head)
			}
		}
		state := e.Kept([]byte(head))
		switch {
		case state != nil && (got != head || string(state) != fmt.Sprint("kept ", i)):
			return 0, fmt.Errorf("a later life has %q and %q", got, state)
		case state == nil && got != vector(i):
			return 0, fmt.Errorf("message %d is %q", i, got)
		case state == nil:
			bodies[i]++
		}
		if steps--; steps == 0 {
			return i, nil
		}
		if err := e.Keep([]byte(head), fmt.Append(nil, "kept ", i)); err != nil {
			return 0, err
		}
		if err := e.Send(ctx, 0, []byte("answer "+head)); err != nil {
			return 0, err
		}
		if steps--; steps == 0 {
			return i, nil
		}
	}
	return messages, nil
}

// Of a brief message that an earlier life had received nothing was kept: it comes again, deadlines after it do
// not, orders do; and it is not taken in another version.
func TestBriefAgain(t *testing.T) {
	w := briefWire(0)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	a, b := w.begin(t, 0, dir), w.begin(t, 1, dir)
	if err := a.Send(ctx, 1, []byte("va one")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Next(ctx, time.Time{}, ""); err != nil {
		t.Fatal(err)
	}
	if ev, err := b.Next(ctx, time.Now().Add(time.Millisecond), "late"); err != nil || string(ev.Mark) != "late" {
		t.Fatalf("%q, %v", ev.Mark, err)
	}
	if err := b.Mark([]byte("an order")); err != nil {
		t.Fatal(err)
	}
	b.Acknowledge()
	time.Sleep(20 * time.Millisecond)
	if a.Waiting(1) != 1 {
		t.Error("a message of which nothing was kept was acknowledged as durable")
	}
	w.die(b)
	b = w.begin(t, 1, dir)
	for _, want := range []string{"an order", "va one"} { // the deadline is waited for anew
		if ev, err := b.Next(ctx, time.Time{}, ""); err != nil || string(ev.Mark)+string(ev.Body) != want {
			t.Errorf("%q%q comes where %q does, %v", ev.Mark, ev.Body, want, err)
		}
	}
	w.die(b)
	w.die(a)
	if err := os.Remove(filepath.Join(dir, "journal0")); err != nil {
		t.Fatal(err)
	}
	a = w.begin(t, 0, dir)
	defer w.die(a)
	refused := make(chan error, 100)
	b = w.begin(t, 1, dir)
	defer w.die(b)
	b.Refused = func(_ protocol.Role, err error) { refused <- err }
	if err := a.Send(ctx, 1, []byte("va two")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-refused:
		if !strings.Contains(err.Error(), "is not the one that came before") {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("another version of a message was taken")
	}
}
