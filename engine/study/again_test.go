package study

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/engine/study/link"
	"github.com/cohort-engine/cohort/engine/study/sum"
)

// nobody is a bus at whose other end nobody takes anything.
type nobody struct{}

func (nobody) Publish(protocol.Role, []byte) error { return nil }

// A party that asks for the result of an old sum again and again, and takes nothing, has the coordinator wait for it no
// more than for others: it is sent each result once.
func TestOldResultsAreGivenOnce(t *testing.T) {
	j, err := journal.Open(filepath.Join(folder(t), JournalName))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	end, err := link.New(link.Config{Self: protocol.Server, Journal: j, Bus: nobody{}, Most: mostMessage,
		Keys: func(protocol.Role) (to, from [32]byte, err error) { return }})
	if err != nil {
		t.Fatal(err)
	}
	end.Start()
	defer end.Close()
	box := newPostbox(end, protocol.Server, time.Minute)
	log := slog.New(slog.DiscardHandler)
	h := newServerTransport(nil, box, sum.Config{Parties: 2, Threshold: 2}, time.Minute, log, nil, protocol.Role.String)
	h.results = [][]byte{make([]byte, 1<<20), make([]byte, 1<<20)}
	done := make(chan error, 1)
	go func() {
		for i := range 100 {
			if err := h.take(0, sum.VectorHead(uint32(i/50))); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	select {
	case err := <-done:
		if n := end.Waiting(0); err != nil || n != 2 {
			t.Errorf("%d results wait for a party that asked for two of them, %v", n, err)
		}
	case <-time.After(time.Minute):
		t.Error("the coordinator waits for a party that takes nothing")
		end.Fail(journal.ErrDamaged)
	}
}

// A party of whom nobody needs anything any more, and that is started again, waits for nobody: it has the same result
// while the coordinator is there, and is told at once that it has had it when the coordinator is gone.
func TestPartyAgainAfterTheEnd(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, newFixture(t, "sulloyd", 2, 60, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := n.coordinator(t)
	defer c.Close()
	all, errs := c.Invitations(), make([]error, 2)
	var parties sync.WaitGroup
	for p, v := range all {
		parties.Go(func() { _, errs[p] = Take(ctx, n.join(t, v)) })
	}
	_, err := c.Run(ctx)
	parties.Wait()
	if err != nil || errs[0] != nil || errs[1] != nil {
		t.Fatal(err, errs)
	}
	begun := time.Now()
	if res, err := Take(ctx, n.join(t, all[0])); err != nil || res == nil || time.Since(begun) > silence {
		t.Errorf("with a coordinator that is there: %v after %v, %v", res, time.Since(begun), err)
	}
	c.Close()
	begun = time.Now()
	const again = 10 * time.Second // how long others try
	if res, err := Take(ctx, n.join(t, all[1])); err != nil || res != nil || time.Since(begun) > again {
		t.Errorf("without a coordinator: %v after %v, %v", res, time.Since(begun), err)
	}
}
