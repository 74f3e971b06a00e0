package study

import (
	"log/slog"
	"path/filepath"
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
	h := newServerTransport(nil, box, sum.Config{Parties: 2, Threshold: 2}, time.Minute, log, nil)
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
