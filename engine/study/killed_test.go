package study

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine/method"
)

// A role that is killed once, at any sync of its journal and its ledger file, before, within or
// after it, or when it has its result, goes on when it is started again: the result has the bits
// of one process, and every party has paid once. The syncs are tried one by one, each in a study
// of its own, up to the first that the role's undisturbed life does not come to.
func TestKilledAtEverySync(t *testing.T) {
	if os.Getenv("COHORT_NETWORK") == "" {
		t.Skip("run make test-network: it kills processes for a minute")
	}
	t.Parallel()
	var kills atomic.Int32
	var chains sync.WaitGroup
	free := make(chan struct{}, 16) // studies at a time: they wait for each other more than they compute
	for _, c := range []struct {
		set   method.Settings
		roles []string // one of those that do the same
	}{
		{method.Settings{"noise": "split", "iterations": "2"}, []string{"serve", "0", "1"}},
		{method.Settings{"aggregator": "shares", "iterations": "2"}, []string{"serve", "0", "-2"}},
	} {
		s := newStage(t, rounded(t, newFixture(t, "fastlloyd", 3, 120, c.set)))
		for _, role := range c.roles {
			for _, point := range []string{"before sync", "between write and sync", "after sync", "delivered"} {
				chains.Go(func() {
					for i := 1; ; i++ {
						free <- struct{}{}
						killed, err := s.killOnce(role, fmt.Sprintf("%s:%d", point, i))
						<-free
						if err != nil {
							t.Errorf("%v, role %s, %s %d: %v", c.set, role, point, i, err)
						}
						if err != nil || !killed {
							return
						}
						kills.Add(1)
					}
				})
			}
		}
	}
	chains.Wait()
	t.Logf("%d kills, each in a study of its own", kills.Load())
	if kills.Load() < 250 {
		t.Errorf("%d kills: the test has not tested every sync", kills.Load())
	}
}

// killOnce runs a study in which one life of a role is killed at a point, if it comes there.
func (s *stage) killOnce(role, point string) (killed bool, err error) {
	dir, err := os.MkdirTemp(s.place, "run")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	port, err := anyPort()
	if err != nil {
		return false, err
	}
	one, err := s.again(dir, "127.0.0.1:"+port)
	if err != nil {
		return false, err
	}
	begun := time.Now()
	err = one.play(func(r string, _ int) string {
		if r == role && one.killed.Load() == 0 {
			return point
		}
		return ""
	})
	if took := time.Since(begun); err == nil && took > time.Minute {
		err = fmt.Errorf("somebody waited for %v for what had been lost", took)
	}
	return one.killed.Load() > 0, err
}
