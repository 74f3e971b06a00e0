package study

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Steps that come again to a role that was restarted, in no time, have no times: the mean is that of the
// others, while the bytes are of all.
func TestTimesAfterARestart(t *testing.T) {
	w := NewWatch(newFixture(t, "sulloyd", 2, 60, nil).study)
	replaying := true
	w.restarted(func() bool { return replaying })
	w.step(0, stepVectors)
	w.answered(0, stepVectors, 3*time.Microsecond, 10)
	replaying = false // while the step that the earlier life died in goes on
	w.answered(1, stepVectors, 900*time.Millisecond, 10)
	w.step(1, stepVectors)
	w.answered(0, stepVectors, 20*time.Millisecond, 10)
	w.answered(1, stepVectors, 40*time.Millisecond, 10)
	status, _ := w.Status()
	if want := (StepStatus{stepVectors, 2, 30, 40, 40}); len(status.Steps) != 1 || status.Steps[0] != want {
		t.Errorf("%+v", status.Steps)
	}
}

// On a party's side bytes are its own and those of the role at the other end, which the page may not have: the
// coordinator is there among several servers alone.
func TestMovedBytes(t *testing.T) {
	for _, set := range []method.Settings{nil, {"aggregator": "shares"}} {
		s := newFixture(t, "sulloyd", 2, 60, set).study
		w := NewPartyWatch()
		w.side(s, 0)
		w.moved(protocol.Server, true, 30)
		w.moved(1, false, 5)
		status, _ := w.Status()
		for i, p := range status.Parties {
			sent, received := int64(0), int64(0)
			switch {
			case i == 0:
				sent, received = 30, 5
			case i == 1:
				sent = 5
			case p.Name == "coordinator":
				received = 30
			}
			if p.Sent != sent || p.Received != received {
				t.Errorf("%v: %s has sent %d and received %d bytes, not %d and %d", set, p.Name, p.Sent, p.Received, sent, received)
			}
		}
	}
}

// slowMail takes a while to bring what a role sends.
type slowMail struct {
	protocol.Transport
	slow  protocol.Role
	takes time.Duration
	sends []time.Time
}

func (m *slowMail) Send(context.Context, protocol.Role, []byte) error {
	m.sends = append(m.sends, time.Now())
	return nil
}

func (m *slowMail) Receive(_ context.Context, from protocol.Role) ([]byte, error) {
	if from == m.slow {
		time.Sleep(m.takes)
	}
	return nil, nil
}

// Those who look at a study whose sums are shared among servers see, at a server and at a party, which
// sum is under way, who has answered, and who is late until it answers; a party's sums
// are as far apart as the study says.
func TestSharedSumsAreShown(t *testing.T) {
	f := newFixture(t, "sulloyd", 2, 60, method.Settings{"aggregator": "shares"})
	f.study.PadRounds = 60
	runner, err := f.study.runner(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []protocol.Role{protocol.Server, 0} {
		w := NewWatch(f.study)
		others, slow := []protocol.Role{0, 1}, protocol.Role(1)
		if own == 0 {
			w = NewPartyWatch()
			w.side(f.study, own)
			others, slow = []protocol.Role{protocol.Server, protocol.ServerAt(1)}, protocol.ServerAt(1)
		}
		m := &slowMail{slow: slow, takes: 300 * time.Millisecond}
		log := slog.New(slog.DiscardHandler)
		begun := time.Now()
		s, is := f.study.overMail(nil, own, runner.Core(), f.study.newPace(log), w, log).(*shared)
		if !is {
			t.Fatal("a sum among servers is not followed")
		}
		s.Transport, s.step = m, 150*time.Millisecond // a busy machine takes less
		turn := func() {                              // each sends to all and hears all, the server the other way round
			hear := func() {
				for _, r := range others {
					if _, err := s.Receive(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
			}
			if own.Serves() {
				hear()
			}
			for _, r := range others {
				if err := s.Send(t.Context(), r, nil); err != nil {
					t.Fatal(err)
				}
			}
			if !own.Serves() {
				hear()
			}
		}
		turn()
		turn()
		status, _ := w.Status()
		late := status.Parties[w.index(slow)]
		if status.Sums != 2 || status.Sum != 2 || len(status.Steps) != 1 || status.Steps[0].Answers != 4 ||
			status.Steps[0].Step != s.waits() {
			t.Errorf("%v shows %+v", own, status)
		}
		if late.Late || late.LateSteps != 2 || late.Steps[s.waits()] < 300 {
			t.Errorf("%v shows of who was late %+v", own, late)
		}
		if first := status.Parties[w.index(others[0])]; first.LateSteps != 0 || len(first.Steps) != 1 {
			t.Errorf("%v shows of who was not late %+v", own, first)
		}
		if second := m.sends[2].Sub(begun); !own.Serves() && second < 120*time.Millisecond {
			t.Errorf("a party begins its second sum after %v", second)
		}
	}
}

// Sums begin at multiples of the public time, the first one too, and one that is not ready in its time waits for a
// later one and is reported.
func TestSumsBeginInTheirTime(t *testing.T) {
	f := newFixture(t, "sulloyd", 2, 60, nil)
	f.study.PadRounds = 40
	const apart = 40 * time.Millisecond
	var said strings.Builder
	p := f.study.newPace(slog.New(slog.NewTextHandler(&said, nil)))
	began := func() time.Duration {
		if err := p.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return time.Since(p.begun)
	}
	if at := began(); at < apart {
		t.Errorf("the first sum begins after %v", at)
	}
	missed := p.missed // of a machine that is busy
	time.Sleep(time.Duration(p.slot+1)*apart - time.Since(p.begun) + apart/4)
	if at := began(); at < 3*apart || p.missed != missed+1 {
		t.Errorf("a sum that was late begins after %v, %d were late", at, p.missed-missed)
	}
	if notes := p.notes(); len(notes) != 1 || !strings.Contains(notes[0], "of 2 sums") ||
		!strings.Contains(said.String(), "not ready in its time") {
		t.Errorf("the late sum is not reported: %q, %q", notes, said.String())
	}
	if err := (*pace)(nil).wait(t.Context()); err != nil || f.study.newPace(nil) == nil {
		t.Error(err)
	}
}
