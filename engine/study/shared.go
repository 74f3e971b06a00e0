package study

import (
	"context"
	"log/slog"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
)

// The steps of a sum that is shared among servers: what a server waits for, and a party.
const (
	stepVectors = "shares of vectors"
	stepTotals  = "shares of the sum"
)

// shared is a role's transport, over mail, of a study whose sums are shared among servers. It
// follows them for those who look at the study, and keeps a party's sums apart. A sum has
// one step at each role: from the first message until all whom it waits for have answered.
type shared struct {
	protocol.Transport
	own     protocol.Role
	servers int           // with the coordinator
	step    time.Duration // after which a role is late
	pace    pace          // of a party
	watch   *Watch
	log     *slog.Logger

	sum   int  // under way, from 0
	open  bool // it has begun
	begun time.Time
}

// overMail is a role's transport of messages, which follows its sums where they are shared
// among servers.
func (s *Study) overMail(box *postbox, r protocol.Role, core *protocol.Plan, w *Watch,
	log *slog.Logger) protocol.Transport {
	t := protocol.OverMail(mail{box}, r, core.Parties, core.Capacity.Ring)
	if core.Servers == 0 {
		return t
	}
	return &shared{Transport: t, own: r, servers: core.Servers, step: s.Deadlines.step(), pace: s.pace(), watch: w,
		log: log}
}

// waits is the step in which this role waits for others.
func (t *shared) waits() string {
	if t.own.Serves() {
		return stepVectors
	}
	return stepTotals
}

// begin begins a sum, if it has not.
func (t *shared) begin() {
	if !t.open {
		t.open, t.begun = true, time.Now()
		t.watch.step(t.sum, t.waits())
	}
}

// end ends the sum under way, if there is one.
func (t *shared) end() {
	if t.open {
		t.open = false
		t.sum++
		t.watch.summed(t.sum)
	}
}

// Send implements protocol.Transport: a party's first share begins a sum, a server's ends it.
func (t *shared) Send(ctx context.Context, to protocol.Role, message []byte) error {
	switch {
	case t.own.Serves():
		t.end()
	case !t.open:
		if err := t.pace.wait(ctx); err != nil {
			return err
		}
		t.begin()
	}
	return t.Transport.Send(ctx, to, message)
}

// Receive implements protocol.Transport.
func (t *shared) Receive(ctx context.Context, from protocol.Role) ([]byte, error) {
	if t.own.Serves() {
		t.begin()
	}
	told := make(chan struct{})
	late := time.AfterFunc(time.Until(t.begun.Add(t.step)), func() {
		t.log.Warn("a role is late", "role", from.String(), "sum", t.sum+1, "step", t.waits())
		t.watch.late(from)
		close(told)
	})
	b, err := t.Transport.Receive(ctx, from)
	if !late.Stop() {
		<-told
	}
	if err != nil {
		return nil, err
	}
	t.watch.answered(from, t.waits(), time.Since(t.begun))
	if from == protocol.ServerAt(t.servers-1) {
		t.end()
	}
	return b, nil
}

// pace is that of a party's sums.
func (s *Study) pace() pace { return pace{apart: time.Duration(s.PadRounds) * time.Millisecond} }

// pace keeps the sums of a party at least so far apart that how long it computed is not
// seen in when it sends.
type pace struct {
	apart time.Duration
	last  time.Time
}

// wait waits until the next sum may begin.
func (p *pace) wait(ctx context.Context) error {
	if p.apart == 0 {
		return nil
	}
	now := time.Now()
	if p.last.IsZero() {
		p.last = now
	}
	p.last = p.last.Add(p.apart)
	if wait := p.last.Sub(now); wait > 0 {
		return pause(ctx, wait)
	}
	p.last = now
	return nil
}
