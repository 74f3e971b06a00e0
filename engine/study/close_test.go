package study

import (
	"path/filepath"
	"sync"
	"testing"

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
