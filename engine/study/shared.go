package study

import (
	"context"
	"fmt"
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
	pace    *pace         // of a party
	watch   *Watch
	log     *slog.Logger
	name    func(protocol.Role) string // as people call it

	sum   int  // under way, from 0
	open  bool // it has begun
	begun time.Time
}

// overMail is a role's transport of messages, which follows its sums where they are shared
// among servers.
func (s *Study) overMail(box *postbox, r protocol.Role, core *protocol.Plan, own *pace, w *Watch,
	log *slog.Logger) protocol.Transport {
	t := protocol.OverMail(mail{box}, r, core.Parties, core.Capacity.Ring)
	if core.Servers == 0 {
		return t
	}
	return &shared{Transport: t, own: r, servers: core.Servers, step: s.Deadlines.step(), pace: own, watch: w,
		log: log, name: s.Name}
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
		t.watch.told(stepVectors, len(message))
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
		t.log.Warn("a role is late", "role", t.name(from), "sum", t.sum+1, "step", t.waits())
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
	t.watch.answered(from, t.waits(), time.Since(t.begun), len(b))
	if from == protocol.ServerAt(t.servers-1) {
		t.end()
	}
	return b, nil
}

// pace lets the sums of a party begin at multiples of a public time alone, so that how long it computed is not seen in
// when it sends. nil lets them begin at once. A sum that is not ready in its time begins at a later multiple.
type pace struct {
	apart  time.Duration
	begun  time.Time
	sums   int // that have begun
	slot   int // of the last one
	missed int // sums that were not ready in the slot after the last one's
	log    *slog.Logger
}

// newPace begins the time of a party's sums.
func (s *Study) newPace(log *slog.Logger) *pace {
	if s.PadRounds == 0 {
		return nil
	}
	return &pace{apart: time.Duration(s.PadRounds) * time.Millisecond, begun: time.Now(), log: log}
}

// wait waits until the next sum may begin.
func (p *pace) wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.sums++
	p.slot++
	if took := time.Since(p.begun); took > time.Duration(p.slot)*p.apart {
		p.slot = int((took + p.apart - 1) / p.apart)
		p.missed++
		p.log.Warn("a sum was not ready in its time: that this party was late is seen", "sum", p.sums,
			"pad rounds", p.apart)
	}
	return pause(ctx, time.Until(p.begun.Add(time.Duration(p.slot)*p.apart)))
}

// notes say in a result how many sums were late.
func (p *pace) notes() []string {
	if p == nil || p.missed == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d sums were not ready within --pad-rounds %v and began rounds later: that they "+
		"took longer was seen; a longer time hides it", p.missed, p.sums, p.apart)}
}
