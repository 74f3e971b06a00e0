package study

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
)

// A role that is killed once, at any sync of its journal and its ledger file, before, within or
// after it, or when it has its result, goes on when it is started again: the result has the bits
// of one process, and in a study with secrets of its own the same bits for all; and every party has paid once. The
// syncs are tried one by one, each in a study of its own, up to the first that the role's undisturbed life does not
// come to.
func TestKilledAtEverySync(t *testing.T) {
	if os.Getenv("COHORT_NETWORK") == "" {
		t.Skip("run make test-network: it kills processes for a minute")
	}
	t.Parallel()
	var kills atomic.Int32
	var chains sync.WaitGroup
	free := make(chan struct{}, 16) // studies at a time: they wait for each other more than they compute
	points := []string{"between write and sync", "delivered", "before sync", "after sync"}
	for _, c := range []struct {
		f      *fixture
		roles  []string // one of those that do the same
		points []string
	}{
		{newFixture(t, "fastlloyd", 3, 120, method.Settings{"noise": "split", "iterations": "2"}),
			[]string{"serve", "0", "1"}, points},
		{newFixture(t, "fastlloyd", 3, 120, method.Settings{"aggregator": "shares", "iterations": "2"}),
			[]string{"serve", "0", "-2"}, points},
		{longSums(t, 2), []string{"serve", "0"}, points},
		{ownSecrets(t, newFixture(t, "sketch", 2, 120, method.Settings{"sketches": "256", "return": "noised"})),
			[]string{"serve", "0"}, points[:2]},
	} {
		s := newStage(t, rounded(t, c.f))
		for _, role := range c.roles {
			for _, point := range c.points {
				chains.Go(func() {
					for i := 1; ; i++ {
						free <- struct{}{}
						killed, err := s.killOnce(role, fmt.Sprintf("%s:%d", point, i))
						<-free
						if err != nil {
							t.Errorf("%s %v, role %s, %s %d: %v", c.f.study.Method, c.f.study.Options, role, point, i, err)
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
	if kills.Load() < 270 {
		t.Errorf("%d kills: the test has not tested every sync", kills.Load())
	}
}

// ownSecrets is a study that is no simulation.
func ownSecrets(t testing.TB, f *fixture) *fixture {
	t.Helper()
	f.study.Seed = nil
	if err := f.study.Complete(); err != nil {
		t.Fatal(err)
	}
	return f
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

// A party that is killed when it has said that its program has ended, and whose machine is up again later than
// the others wait for last acknowledgements, ends by the same command; so it does when all others
// have gone for good.
func TestKilledAtItsEnd(t *testing.T) {
	if os.Getenv("COHORT_NETWORK") == "" {
		t.Skip("run make test-network: it waits for a machine that is down")
	}
	t.Parallel()
	n := newNetwork(t, newFixture(t, "sulloyd", 2, 60, nil))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := n.coordinator(t)
	all, ended := c.Invitations(), make(chan error, 2)
	go func() {
		_, err := c.Run(ctx)
		c.Close()
		ended <- err
	}()
	killed := make(chan struct{})
	second := n.join(t, all[1])
	second.Deliver = func(*Terms, *engine.Result) error { // meanwhile it acknowledges nothing at once
		<-killed
		return nil
	}
	go func() {
		_, err := Take(ctx, second)
		ended <- err
	}()
	living, kill := context.WithCancel(ctx)
	defer kill()
	go func() {
		for {
			c.mu.Lock()
			left := len(c.ended) > 0
			c.mu.Unlock()
			if left || pause(living, time.Millisecond) != nil {
				kill()
				return
			}
		}
	}()
	_, _ = Take(living, n.join(t, all[0]))
	close(killed)
	c.mu.Lock()
	done := c.done[0]
	c.mu.Unlock()
	if done {
		t.Fatal("the party was not killed before its end: the test has not tested anything")
	}
	if err := pause(ctx, settleTime+3*time.Second); err != nil {
		t.Fatal(err)
	}
	if res, err := Take(ctx, n.join(t, all[0])); err != nil || res == nil {
		t.Fatalf("the party's second life: %v, %v", res, err)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if res, err := Take(ctx, n.join(t, all[0])); err != nil || res != nil {
		t.Errorf("the party's third life: %v, %v", res, err)
	}
}
