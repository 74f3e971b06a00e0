package study

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// terms are those of a party with keys of its own.
func terms(t *testing.T, s *Study) *Terms {
	t.Helper()
	hash, err := s.Hash()
	if err != nil {
		t.Fatal(err)
	}
	var entries []Entry
	for r := protocol.Server; int(r) < len(s.Parties); r++ {
		id, err := newIdentity(hash, r)
		if err != nil {
			t.Fatal(err)
		}
		k, err := id.keys()
		if err != nil {
			t.Fatal(err)
		}
		e, err := k.entry(hash)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	roster, err := newRoster(hash, len(s.Parties), 0, entries)
	if err != nil {
		t.Fatal(err)
	}
	return &Terms{Study: s, Hash: hash, Roster: roster}
}

// What has paid for one study pays for no other, whatever the other calls itself, and not for the same study
// joined anew: a life that was refused and begins again is refused again.
func TestAPaymentIsForOneStudy(t *testing.T) {
	first := newFixture(t, "sulloyd", 3, 240, nil).study
	other := *first
	other.Title = "another"
	a, b := terms(t, first), terms(t, &other)
	if first.paidAs() != other.paidAs() {
		t.Fatal("the studies are called differently: the test shows nothing")
	}
	with := Payment{File: privacy.LedgerFile{Path: filepath.Join(t.TempDir(), "ledger")}, Columns: []string{"x"},
		Salt: "s"}
	others := with
	others.Columns = []string{"y"}
	for i, c := range []struct {
		who   string
		terms *Terms
		with  Payment
		again bool
		run   int
		err   error
	}{{"the study", a, with, true, 1, nil}, {"the study, again", a, with, true, 0, nil},
		{"the study, again, with other people", a, others, true, 0, privacy.ErrDataset},
		{"another of its id", b, with, false, 0, privacy.ErrBudget},
		{"another of its id, again", b, with, true, 0, privacy.ErrBudget},
		{"the study with new keys, again", terms(t, first), with, true, 0, privacy.ErrBudget}} {
		run, err := c.terms.Pay(c.with, c.again)
		if !errors.Is(err, c.err) || err == nil && run != c.run {
			t.Errorf("%d, %s: run %d, %v: not run %d, %v", i, c.who, run, err, c.run, c.err)
		}
	}
	outline, err := first.Outline()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		terms *Terms
		ended bool
	}{{b, false}, {a, true}} {
		if err := c.terms.Ended(with.File, outline.Ledger); err != nil {
			t.Fatal(err)
		}
		if state, err := with.File.State(); err != nil || state.Runs[0].Ended != c.ended {
			t.Errorf("the run has ended: %v, not %v (%v)", state.Runs[0].Ended, c.ended, err)
		}
	}
}

// A party pays before it says anything: who cannot pay has not signed the roster, and sends no message of the
// method; who can has signed nothing yet when it pays.
func TestPaysBeforeItSpeaks(t *testing.T) {
	for name, refusal := range map[string]error{"who can pay": nil, "who cannot": privacy.ErrBudget} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, newFixture(t, "sulloyd", 2, 60, method.Settings{"noise": "split", "mechanism": "gaussian"}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c := n.coordinator(t)
			defer c.Close()
			signed := func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.consents[0] != nil
			}
			var paid, spoken atomic.Int32
			errs := make([]error, 2)
			var roles sync.WaitGroup
			roles.Go(func() { _, _ = c.Run(ctx) })
			for p, v := range c.Invitations() {
				j := n.join(t, v)
				if p == 0 {
					j.Charge = func(*Terms, bool) error {
						paid.Add(1)
						if signed() {
							t.Error("it has signed before it pays")
						}
						return refusal
					}
					j.Step = func(int, string) { spoken.Add(1) }
				}
				roles.Go(func() {
					if _, errs[p] = Take(ctx, j); p == 0 && refusal != nil {
						cancel() // the others wait for it
					}
				})
			}
			roles.Wait()
			if paid.Load() != 1 || !errors.Is(errs[0], refusal) || signed() != (refusal == nil) ||
				(spoken.Load() > 0) != (refusal == nil) {
				t.Errorf("paid %d times, signed %v, %d sums begun: %v", paid.Load(), signed(), spoken.Load(), errs[0])
			}
		})
	}
}

// A party that begins again after it has agreed pays from a ledger that it has got since, and takes part with the
// records that it has agreed with or not at all.
func TestWhoBeginsAgainPays(t *testing.T) {
	n := newNetwork(t, newFixture(t, "sulloyd", 2, 60, method.Settings{"noise": "split", "mechanism": "gaussian"}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := n.coordinator(t)
	defer c.Close()
	var roles sync.WaitGroup
	defer roles.Wait()
	roles.Go(func() { _, _ = c.Run(ctx) })
	join := make([]Join, 2)
	for p, v := range c.Invitations() {
		join[p] = n.join(t, v)
	}
	agreed := make(chan struct{})
	join[1].Agree = func(ctx context.Context, _ *Terms) error {
		select {
		case <-agreed:
		case <-ctx.Done():
		}
		return nil
	}
	roles.Go(func() {
		if _, err := Take(ctx, join[1]); err != nil {
			t.Error(err)
		}
	})
	first, interrupt := context.WithCancel(ctx)
	go func() {
		defer interrupt()
		for signed := false; !signed && pause(ctx, time.Millisecond) == nil; {
			c.mu.Lock()
			signed = c.consents[0] != nil
			c.mu.Unlock()
		}
	}()
	if _, err := Take(first, join[0]); !errors.Is(err, context.Canceled) {
		t.Fatalf("the first life ended with %v", err)
	}
	paid := 0
	again := join[0]
	again.Charge = func(*Terms, bool) error {
		paid++
		return nil
	}
	other := again
	other.Load = func(context.Context, *Study, int) (dataset.Part, []string, error) { return n.parts[1], nil, nil }
	_, err := Take(ctx, other)
	if !fault.IsRequest(err) || !strings.Contains(err.Error(), "has other records") || paid > 0 {
		t.Errorf("other records: paid %d times, %v", paid, err)
	}
	close(agreed)
	if _, err := Take(ctx, again); err != nil || paid != 1 {
		t.Errorf("paid %d times, %v", paid, err)
	}
}

// The ledger of a study says what others see of a party besides what its method sends, and a time that pads nothing
// is refused.
func TestALedgerSaysWhatOthersSee(t *testing.T) {
	says := func(s *Study, what string) bool {
		outline, err := s.Outline()
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(outline.Ledger.Entries(), func(e privacy.Entry) bool {
			return e.Kind == privacy.Note && strings.HasPrefix(e.What, what)
		})
	}
	rows := newFixture(t, "sulloyd", 3, 240, nil).study
	if !says(rows, "times: others see when a party sends") {
		t.Error("sums: nothing of times")
	}
	rows.PadRounds = 500
	if says(rows, "times: others see when") ||
		!says(rows, "times: others see which of a party's sums were not ready within --pad-rounds 500ms") {
		t.Error("padded sums: not what is seen of times")
	}
	columns := newFixture(t, "ind-lap", 2, 240, method.Settings{}).study
	if says(columns, "matching") || !says(columns, "times: others see when a party sends") {
		t.Error("columns in their order: not what is seen")
	}
	columns.IDColumn = "id"
	if !says(columns, "matching: every party sees which of its ids") {
		t.Error("matched columns: nothing of matching")
	}
	columns.PadRounds = 500
	if err := columns.check(); !fault.IsRequest(err) {
		t.Errorf("a study without sums is to pad them: %v", err)
	}
	if says(newFixture(t, "lloyd", 3, 240, method.Settings{"init": "sphere"}).study, "times") {
		t.Error("a study without a budget says what it does not cover")
	}
}
