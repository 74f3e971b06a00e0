package study

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/engine/study/link"
)

// intruder makes a party that has enrolled, with the end of its link, for a test that goes on as no party would.
func intruder(ctx context.Context, j Join) (p *Party, end *link.End, err error) {
	p = &Party{Join: j, self: protocol.Role(j.Invitation.Party)}
	if p.journal, err = journal.Open(filepath.Join(j.State, JournalName)); err != nil {
		return nil, nil, err
	}
	if err = p.recall(); err == nil {
		err = p.connect(ctx)
	}
	if err == nil {
		p.study, err = p.fetchStudy(ctx)
	}
	if err == nil {
		err = p.enrol(ctx, 0)
	}
	if err == nil {
		end, err = link.New(link.Config{Self: p.self, Keys: p.keys.links(p.roster), Journal: p.journal, Bus: p.conn,
			Most: mostMessage})
	}
	if err != nil {
		p.leave(nil)
		return nil, nil, err
	}
	p.mu.Lock()
	p.end = end
	p.mu.Unlock()
	end.Start()
	return p, end, nil
}

// leave closes what intruder has opened.
func (p *Party) leave(end *link.End) {
	if end != nil {
		end.Close()
	}
	if p.conn != nil {
		p.conn.Close()
	}
	p.journal.Close()
}

// takeTwoFaced takes part as party 1, and gives party 2 another secret of the group than the rest.
func takeTwoFaced(ctx context.Context, j Join) error {
	p, end, err := intruder(ctx, j)
	if err != nil {
		return err
	}
	defer p.leave(end)
	box := newPostbox(end, p.self, p.study.Deadlines.message())
	if err := box.send(ctx, 1, mailGroup, bytes.Repeat([]byte{7}, 32)); err != nil {
		return err
	}
	part, _, err := j.Load(ctx, p.study, 0)
	if err == nil {
		_, err = p.play(ctx, box, part, nil)
	}
	return err
}

// Who has another secret of the group reads another result out of the same sum, by which its noise may be less than
// others count on: parties sum with those alone who have the same.
func TestPartiesHaveOneSecret(t *testing.T) {
	f := newFixture(t, "hybrid", 3, 240, method.Settings{"public-n": "240"})
	f.study.Threshold = 3
	f.study.Deadlines = Deadlines{Step: 20, Message: 20}
	n := newNetwork(t, ownSecrets(t, f))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := n.coordinator(t)
	defer c.Close()
	errs := make([]error, 3)
	var roles sync.WaitGroup
	for p, v := range c.Invitations() {
		roles.Go(func() {
			if j := n.join(t, v); p == 0 {
				errs[p] = takeTwoFaced(ctx, j)
			} else {
				_, errs[p] = Take(ctx, j)
			}
			if errs[p] != nil {
				cancel()
			}
		})
	}
	_, _ = c.Run(ctx)
	roles.Wait()
	refused := 0
	for _, err := range errs[1:] {
		if err != nil && strings.Contains(err.Error(), "another secret") {
			refused++
		}
	}
	if refused == 0 {
		t.Errorf("parties with another secret of the group summed: %v", errs)
	}
}
