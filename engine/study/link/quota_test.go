package link

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
)

// What a role sends beyond its quota is neither held, not even in part, nor written to the journal, in this life or the
// next; one that keeps to it is heard.
func TestQuota(t *testing.T) {
	const quota = 1 << 20
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{}}
	dir := t.TempDir()
	greedy, modest := w.begin(t, 0, dir), w.begin(t, 1, dir)
	defer w.die(greedy)
	defer w.die(modest)
	refused := make(chan error, 100)
	w.refused = func(from protocol.Role, err error) {
		if from == 0 {
			refused <- err
		}
	}
	w.quota = func(from, _ protocol.Role) int64 {
		if from == 0 {
			return quota
		}
		return math.MaxInt64
	}
	taker := w.begin(t, 2, dir)
	next := func(from protocol.Role, size int) {
		t.Helper()
		if ev, err := taker.Next(ctx, time.Time{}, ""); err != nil || ev.From != from || len(ev.Body) != size {
			t.Fatalf("%d bytes of %v came, not %d of %v: %v", len(ev.Body), ev.From, size, from, err)
		}
	}
	for range 3 {
		if err := greedy.Send(ctx, 2, make([]byte, 300_000)); err != nil {
			t.Fatal(err)
		}
		next(0, 300_000)
	}
	if err := greedy.Send(ctx, 2, make([]byte, 700_000)); err != nil {
		t.Fatal(err)
	}
	for life := range 2 {
		select {
		case err := <-refused:
			if !strings.Contains(err.Error(), "party 1 are more than the 1048576 bytes") {
				t.Errorf("the refusal says %v", err)
			}
		case <-ctx.Done():
			t.Fatalf("life %d takes more than the quota", life+1)
		}
		if err := modest.Send(ctx, 2, []byte{byte(life)}); err != nil {
			t.Fatal(err)
		}
		for range 3 * life {
			next(0, 300_000) // again, from the journal
		}
		for range life {
			next(1, 1)
		}
		next(1, 1)
		taker.mu.Lock()
		p := taker.peers[0]
		if p.taken > quota || p.want != (position{message: 3}) || len(p.partial) > 0 {
			t.Errorf("%d bytes were taken, %d are held, %+v is next", p.taken, len(p.partial), p.want)
		}
		taker.mu.Unlock()
		if life == 0 {
			w.die(taker)
			taker = w.begin(t, 2, dir)
		}
	}
	w.die(taker)
}

// Messages without bytes have their price, and a role that knows its quota says that it is used up.
func TestQuotaOfSender(t *testing.T) {
	w := &wire{rng: rand.New(rand.NewPCG(1, 2)), ends: map[protocol.Role]*End{},
		quota: func(_, _ protocol.Role) int64 { return 10*charge(0) + 1 }}
	e := w.begin(t, 0, t.TempDir())
	defer w.die(e)
	for i := range 11 {
		err := e.Send(t.Context(), 1, nil)
		if i < 10 && err != nil {
			t.Fatal(err)
		}
		if i == 10 && (err == nil || !strings.Contains(err.Error(), "to party 2 would be more than")) {
			t.Errorf("the message beyond the quota: %v", err)
		}
	}
}
