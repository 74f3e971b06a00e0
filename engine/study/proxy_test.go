package study

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/study/journal"
)

// badProxy stands between parties and their coordinator, and harms what it carries.
type badProxy struct {
	net.Listener
	to string

	mu   sync.Mutex
	rng  *rand.Rand
	on   bool
	done [kindsOfHarm]int
}

// The kinds of harm.
const (
	drop = iota
	duplicate
	reorder
	corrupt
	delay
	kindsOfHarm
	none = -1
)

// harms is how often each kind is done at most.
const harms = 2

func (x *badProxy) serve() {
	for {
		from, err := x.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", x.to)
		if err != nil {
			from.Close()
			continue
		}
		go x.carry(to, from)
		go x.carry(from, to)
	}
}

// next says what is done to the next bytes of a connection, of which some were read: a
// handshake that loses bytes ends only after ten seconds.
func (x *badProxy) next(reads int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	how := x.rng.IntN(12 * kindsOfHarm)
	if !x.on || reads < 8 || how >= kindsOfHarm || x.done[how] == harms {
		return none
	}
	x.done[how]++
	return how
}

// carry carries one direction of a connection.
func (x *badProxy) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 2048)
	var held []byte
	for reads := 0; ; reads++ {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		out := slices.Clone(b[:n])
		switch x.next(reads) {
		case drop:
			continue
		case duplicate:
			out = append(out, out...)
		case reorder:
			held = append(held, out...)
			continue
		case corrupt:
			out[n/2] ^= 16
		case delay:
			time.Sleep(30 * time.Millisecond)
		}
		out, held = append(out, held...), nil
		if _, err := to.Write(out); err != nil {
			return
		}
	}
}

// A study whose connections lose, repeat, reorder, corrupt and delay bytes has the bits of
// one process: TLS notices, roles connect again, and links send again what is missing.
func TestProxy(t *testing.T) {
	n := newNetwork(t, newFixture(t, "sulloyd", 3, 240, method.Settings{"noise": "split", "mechanism": "gaussian",
		"iterations": "10"}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	x := &badProxy{Listener: l, rng: rand.New(rand.NewPCG(1, 2))}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := NewCoordinator(Serve{Study: n.study, State: n.dirs[3], Listen: "127.0.0.1:0", Reach: l.Addr().String(),
		Log: n.log, Engine: newEngine(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x.to = c.address()
	go x.serve()
	results, errs := make([]*engine.Result, 4), make([]error, 4)
	var roles sync.WaitGroup
	for p, v := range c.Invitations() {
		j := n.join(t, v)
		j.Step = func(round int, _ string) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.on = round < 9 // nobody has ended
		}
		roles.Go(func() { results[p], errs[p] = Take(ctx, j) })
	}
	results[3], errs[3] = c.Run(ctx)
	roles.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(x.done[:], 0) {
		t.Errorf("the proxy has done %v", x.done)
	}
	sameCentroids(t, "by a bad proxy", n.alone(t), results)
}

// A coordinator that puts another key into the roster, after a party has agreed to it, is
// refused by that party, which sends nothing more.
func TestRosterChanged(t *testing.T) {
	n := newNetwork(t, newFixture(t, "sulloyd", 2, 60, method.Settings{"noise": "split", "mechanism": "gaussian"}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	living, leave := context.WithCancel(ctx)
	c := n.coordinator(t)
	all := c.Invitations()
	var roles sync.WaitGroup
	for _, v := range all {
		j := n.join(t, v)
		j.Step = func(int, string) { leave() }
		roles.Go(func() { _, _ = Take(living, j) })
	}
	if _, err := c.Run(living); err == nil {
		t.Fatal("nobody was interrupted")
	}
	roles.Wait()
	c.Close()
	leave()

	was := n.dirs[2]
	n.dirs[2] = folder(t)
	changeEntry(t, filepath.Join(n.dirs[2], JournalName), filepath.Join(was, JournalName), all[1])
	c = n.coordinator(t)
	defer c.Close()
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.Run(running)
	}()
	before, err := os.ReadFile(filepath.Join(n.dirs[0], JournalName))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Take(ctx, n.join(t, all[0]))
	if err == nil || !strings.Contains(err.Error(), "is not the one that this party agreed to") {
		t.Errorf("another roster: %v", err)
	}
	if after, err := os.ReadFile(filepath.Join(n.dirs[0], JournalName)); err != nil || len(after) != len(before) {
		t.Errorf("the party's journal has grown from %d bytes to %d, %v", len(before), len(after), err)
	}
	stop()
	<-ended
}

// changeEntry copies the head of a coordinator's journal, with fresh keys for the party of an
// invitation in place of those that it had.
func changeEntry(t *testing.T, to, from string, v Invitation) {
	t.Helper()
	id, err := newIdentity(v.Study, 1)
	if err != nil {
		t.Fatal(err)
	}
	k, err := id.keys()
	if err != nil {
		t.Fatal(err)
	}
	other, err := k.entry(v.Study)
	if err != nil {
		t.Fatal(err)
	}
	old, err := journal.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	changed, err := journal.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer changed.Close()
	entries := 0
	for _, r := range old.Records() {
		b, err := old.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		switch r.Kind {
		case recordStudy, recordSecrets, recordIdentity, recordCertificate:
		case recordEntry:
			if strings.Contains(string(b), `"party":1`) {
				b = encode(other)
				entries++
			}
		default:
			continue
		}
		if _, err := changed.Append(r.Kind, b); err != nil {
			t.Fatal(err)
		}
	}
	if entries != 1 {
		t.Fatalf("%d entries were changed", entries)
	}
}
