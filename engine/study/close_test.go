package study

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine/study/journal"
)

// A coordinator that is ended while it notes what a party has asked for leaves a journal that it can go on from.
func TestCoordinatorEndsWhileItNotes(t *testing.T) {
	for range 50 {
		path := filepath.Join(t.TempDir(), JournalName)
		j, err := journal.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		o := &Coordinator{journal: j}
		var answers sync.WaitGroup
		begun := make(chan struct{})
		answers.Go(func() {
			for i := 0; ; i++ {
				o.mu.Lock()
				err := o.note(recordEntry, make([]byte, 3000))
				o.mu.Unlock()
				if err != nil {
					return
				}
				if i == 3 {
					close(begun)
				}
			}
		})
		<-begun
		o.Close()
		answers.Wait()
		if j, err = journal.Open(path); err != nil {
			t.Fatal(err)
		}
		j.Close()
	}
}

// A party whose coordinator is gone for longer than messages are waited for ends, and says how to go on.
func TestCoordinatorGone(t *testing.T) {
	f := newFixture(t, "sulloyd", 2, 40, nil)
	f.study.Deadlines.Message = 2
	n := newNetwork(t, f)
	n.watch = NewWatch(n.study)
	c := n.coordinator(t)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	wait := enrolled(ctx, t, c, n.join(t, c.Invitations()[0]))
	c.Close()
	if err := wait(); err == nil || !strings.Contains(err.Error(), "has not answered for 2s") {
		t.Errorf("the party ended with %v", err)
	}
}
