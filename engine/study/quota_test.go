package study

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// takeToFlood takes part, and sends to all others, until ctx is done, what nobody waits for.
func takeToFlood(ctx context.Context, j Join) error {
	p, end, err := intruder(ctx, j)
	if err != nil {
		return err
	}
	defer p.leave(end)
	flood := make([]byte, 1<<20)
	flood[0] = mailGroup
	for _, x := range []struct {
		to       protocol.Role
		messages int
	}{{protocol.Server, 120}, {0, 160}} { // Send waits when 64 MiB were not taken
		for range x.messages {
			if end.Send(ctx, x.to, flood) != nil {
				return nil
			}
		}
	}
	return nil
}

// A party that fills the coordinator's journal and another party's is refused before that, and missed as one that has
// vanished: the others have their result.
func TestAPartyFillsNobodysDisk(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "sulloyd", 4, 240, method.Settings{"noise": "split", "mechanism": "gaussian", "iterations": "2"})
	f.study.Threshold, f.study.Deadlines = 3, Deadlines{Step: 5, Message: 15}
	if err := f.study.Complete(); err != nil {
		t.Fatal(err)
	}
	n := newNetwork(t, f)
	var mu sync.Mutex
	var said bytes.Buffer
	n.log = slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return said.Write(b)
	}), nil))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := n.coordinator(t)
	defer c.Close()
	results, errs := make([]*engine.Result, 4), make([]error, 4)
	var roles sync.WaitGroup
	for p, v := range c.Invitations() {
		j := n.join(t, v)
		roles.Go(func() {
			if p < 3 {
				results[p], errs[p] = Take(ctx, j)
			} else {
				errs[p] = takeToFlood(ctx, j)
			}
		})
	}
	_, err := c.Run(ctx)
	cancel()
	roles.Wait()
	if err != nil || errs[3] != nil {
		t.Fatalf("the coordinator: %v, who floods: %v", err, errs[3])
	}
	for p := range 3 {
		if errs[p] != nil || !slices.EqualFunc(results[p].Centroids, results[0].Centroids, slices.Equal) {
			t.Errorf("party %d has another result: %v", p+1, errs[p])
		}
	}
	for _, at := range []int{0, 4} {
		info, err := os.Stat(filepath.Join(n.dirs[at], JournalName))
		if err != nil {
			t.Fatal(err)
		}
		if size := info.Size(); size > quotaSpare*5/4 {
			t.Errorf("journal %d has %d bytes: the quota is %d and what the plan says", at, size, quotaSpare)
		}
	}
	// A machine that is slow may not come to refuse what party 1 was sent.
	if lines := strings.Count(said.String(), "of party 4 are more than"); lines < 1 || lines > 2 {
		t.Errorf("%d lines say that party 4 sends too much: %s", lines, said.String())
	}
}

// writer is a function that writes.
type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// Every role may send what the plan says, several times, and ids where there are some; never without end.
func TestQuotaFollowsThePlan(t *testing.T) {
	for _, trial := range Trials() {
		s := newFixture(t, trial.Method, trial.Parties, 240, trial.Options).study
		o, err := s.Outline()
		if err != nil {
			t.Fatal(err)
		}
		quota, err := s.quota()
		if err != nil {
			t.Fatal(err)
		}
		s.IDColumn = "id"
		withIDs, err := s.quota()
		if err != nil {
			t.Fatal(err)
		}
		for p := range protocol.Role(len(s.Parties)) {
			to, from := quota(p, protocol.Server), quota(protocol.Server, p)
			least := int64(max(quotaSpare/len(s.roles()), quotaLeast))
			if o.Bytes != nil {
				least += quotaTimes * min(o.Bytes.BytesSent[p], o.Bytes.BytesReceived[p])
			}
			if min(to, from) < least || max(to, from) > 2*quotaSpare+quotaTimes<<25 {
				t.Errorf("%v: %v may send %d and be sent %d", trial, p, to, from)
			}
			more := int64(0)
			if s.ByColumns() {
				more = quotaIDs * digestBytes * 240
			}
			if got := withIDs(p, protocol.Server) - to; got != more {
				t.Errorf("%v: ids have %d bytes", trial, got)
			}
		}
	}
}

// Parties that break the protocol together take no more of the coordinator, beside what the plan says and the least
// that each may send, than one of them could.
func TestPartiesShareTheSpareQuota(t *testing.T) {
	const uncounted = 1 << 20 // of keys, signatures and what measures the result
	for _, parties := range []int{2, 7, 40, 150} {
		s := newFixture(t, "sulloyd", parties, 600, method.Settings{"noise": "split", "iterations": "2"}).study
		o, err := s.Outline()
		if err != nil {
			t.Fatal(err)
		}
		quota, err := s.quota()
		if err != nil {
			t.Fatal(err)
		}
		all, most := int64(0), int64(quotaSpare)
		for p := range protocol.Role(parties) {
			all += quota(p, protocol.Server)
			most += quotaTimes*(o.Bytes.BytesSent[p]+uncounted) + quotaLeast
		}
		if all > most {
			t.Errorf("%d parties may send %d bytes together, %d expected at most", parties, all, most)
		}
	}
}
