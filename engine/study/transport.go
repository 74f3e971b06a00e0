package study

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/link"
	"github.com/cohort-engine/cohort/engine/study/sum"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// partyTransport is a party's end: messages of the method over its links, sums with
// the coordinator.
type partyTransport struct {
	protocol.Transport // over mail: all but sums and parting
	box                *postbox
	parties            int
	member             *sum.Member
	sent, received     int64
	pace               *pace
	rounds             int
	wire               []byte                       // the vector of the last sum
	step               func(round int, step string) // may be nil
	watch              *Watch
}

// Sum implements protocol.Transport.
func (t *partyTransport) Sum(ctx context.Context, round int, own *secagg.Masked) error {
	if err := t.pace.wait(ctx); err != nil {
		return err
	}
	number := own.Round()
	t.wire = own.AppendWire(t.wire[:0])
	vector := t.wire
	client, first, err := t.member.Begin(uint32(number), vector)
	if err != nil {
		return err
	}
	t.watch.step(number, "sum")
	if t.step != nil {
		t.step(round, "sum")
	}
	if err := t.box.send(ctx, protocol.Server, mailSum, first); err != nil {
		return err
	}
	t.sent += int64(len(vector))
	for {
		b, err := t.box.receive(ctx, protocol.Server, mailSum)
		if err != nil {
			return fmt.Errorf("sum %d: %w", number+1, err)
		}
		if n, err := sum.Number(b); err == nil && n < uint32(number) {
			continue // of a sum that this party had the result of
		}
		answer, result, err := client.Take(b)
		if err != nil {
			return fmt.Errorf("sum %d: %w", number+1, err)
		}
		if answer != nil {
			if err := t.box.send(ctx, protocol.Server, mailSum, answer); err != nil {
				return err
			}
		}
		if result != nil {
			t.received += int64(len(result.Vector))
			t.rounds++
			t.watch.summed(number + 1)
			return own.ReadSum(wireSum(t.parties, result.Set, result.Vector), number)
		}
	}
}

// wireSum is a sum as secagg encodes it: with the set only where somebody is missing.
func wireSum(parties int, set sum.Set, vector []byte) []byte {
	if set.Count() == parties {
		return vector
	}
	return append(vector[:len(vector):len(vector)], set...)
}

// Leave implements protocol.Transport. It says nothing: a role that was interrupted has
// not left, and one that has ended says so by Party.part.
func (t *partyTransport) Leave() {}

// Traffic implements protocol.Transport.
func (t *partyTransport) Traffic() (sent, received int64) {
	sent, received = t.Transport.Traffic()
	return sent + t.sent, received + t.received
}

// serverTransport is the coordinator's end of all sums.
type serverTransport struct {
	protocol.Transport // over mail: all but sums
	box                *postbox
	config             sum.Config
	step               time.Duration
	log                *slog.Logger
	watch              *Watch
	name               func(protocol.Role) string // as people call it

	absent  []bool // missed a deadline, and have not been heard since
	current *sum.Server
	results [][]byte  // by number
	given   []int     // how many of them a party was sent, or did without
	early   [][]byte  // first messages of the next sum, by party
	joined  []bool    // in the sum under way
	begun   time.Time // the step
	ended   string    // the last step that has
	mark    string    // that is left when the step ends before all have answered
}

func newServerTransport(t protocol.Transport, box *postbox, c sum.Config, step time.Duration, log *slog.Logger,
	w *Watch, name func(protocol.Role) string) *serverTransport {
	h := &serverTransport{Transport: t, box: box, config: c, step: step, log: log, watch: w, name: name,
		absent: make([]bool, c.Parties), joined: make([]bool, c.Parties), early: make([][]byte, c.Parties),
		given: make([]int, c.Parties)}
	box.sums = h.take
	return h
}

// take takes a message of a sum, or nil when a party has left.
func (h *serverTransport) take(from protocol.Role, body []byte) error {
	p := int(from)
	if p < 0 || p >= h.config.Parties {
		return nil
	}
	if body == nil {
		if h.current != nil {
			h.current.Expect(p, false)
		}
		return nil
	}
	number, err := sum.Number(body)
	switch {
	case err != nil:
		h.refuse(from, err)
		return nil
	case int(number) < len(h.results):
		return h.again(p, number)
	case h.current == nil && int(number) == len(h.results) && h.early[p] == nil:
		h.early[p] = body // the coordinator does something else first
		return nil
	case h.current == nil || number != h.current.Number:
		h.refuse(from, fmt.Errorf("it is of sum %d, which has not begun", number+1))
		return nil
	}
	late, err := h.current.Take(p, body)
	switch {
	case err != nil:
		h.refuse(from, err)
	case late:
		h.log.Warn("a message came too late", "party", h.name(from), "sum", number+1, "step", h.current.Phase().String())
		h.joined[p] = true // it gets the result with the others
	default:
		if h.absent[p] {
			h.log.Info("a party is back", "party", h.name(from), "sum", number+1)
		}
		h.absent[p], h.joined[p] = false, true
		h.watch.answered(from, h.current.Phase().String(), time.Since(h.begun), len(body))
	}
	return nil
}

// again gives a party the result of a sum that it missed, once: a link loses nothing, and who asks again and again
// and takes nothing would fill it, and have all wait.
func (h *serverTransport) again(p int, number uint32) error {
	if int(number) < h.given[p] {
		return nil
	}
	h.given[p] = int(number) + 1
	return h.give(context.Background(), []link.Letter{{To: protocol.Role(p)}}, h.results[number])
}

// give sends a result.
func (h *serverTransport) give(ctx context.Context, letters []link.Letter, result []byte) error {
	for i := range letters {
		letters[i].Parts[1], letters[i].Lasting = result, true // results has it
	}
	return h.box.sendAll(ctx, mailSum, letters)
}

// longResult is the shortest result that a party's journal has a digest of: a later life asks for it again, which
// takes as long as a message there and back.
const longResult = 1 << 10

// lasting is link.Config.Lasting of a party.
func lasting(from protocol.Role, body []byte) bool {
	return from == protocol.Server && len(body) >= longResult && body[0] == mailSum && sum.IsResult(body[1:])
}

func (h *serverTransport) refuse(from protocol.Role, err error) {
	h.log.Warn("a message was refused", "party", h.name(from), "why", err.Error())
	h.watch.refused()
}

// Collect implements protocol.Transport.
func (h *serverTransport) Collect(ctx context.Context, round int) (*secagg.Masked, error) {
	expected := make([]bool, h.config.Parties)
	for p := range expected {
		expected[p] = !h.box.left[protocol.Role(p)] && !h.absent[p]
	}
	h.current = h.config.NewServer(uint32(round), expected)
	if state := h.box.end.Kept(vectorHead(round)); state != nil {
		if err := h.current.Restore(state); err != nil {
			return nil, err
		}
	}
	clear(h.joined)
	h.enter(round)
	for p, body := range h.early {
		if h.early[p] = nil; body != nil {
			if err := h.take(protocol.Role(p), body); err != nil {
				return nil, err
			}
		}
	}
	for h.current.Phase() != sum.Done {
		switch done, err := h.advance(ctx, round); {
		case err != nil:
			return nil, err
		case done:
			return nil, nil
		}
	}
	vector := h.current.Total()
	total := secagg.NewMasked(h.config.Ring, h.config.Parties, len(vector)/h.config.Ring.Bytes())
	return total, total.ReadSum(wireSum(h.config.Parties, h.current.Set(), vector), round)
}

// enter begins a step.
func (h *serverTransport) enter(round int) {
	h.begun = time.Now()
	h.mark = fmt.Sprintf("sum %d %v", round, h.current.Phase())
	h.watch.step(round, h.current.Phase().String())
}

// advance waits for one thing to happen. done says that no party is left.
func (h *serverTransport) advance(ctx context.Context, round int) (done bool, err error) {
	s := h.current
	if s.Ready() && s.Answered() > 0 {
		return false, h.close(ctx, round)
	}
	if s.Answered() == 0 && s.Ready() && len(h.box.left) > 0 {
		h.current = nil
		return true, nil // all that are here have ended
	}
	got, err := h.box.next(ctx, h.begun.Add(h.step), h.mark)
	if err != nil || got != h.mark {
		return false, err
	}
	if s.Answered() == 0 && len(h.box.left) > 0 {
		h.current = nil
		return true, nil // who is left has not been heard of
	}
	for _, p := range s.Missing() {
		h.absent[p] = true
		h.log.Warn("a party is late", "party", h.name(protocol.Role(p)), "sum", round+1, "step", s.Phase().String())
		h.watch.late(protocol.Role(p))
	}
	return false, h.close(ctx, round)
}

// brief is link.Config.Brief of a coordinator, whose transport keeps the sum of the vectors of a
// step: the journal has that, and no vector.
func brief(body []byte) int {
	if len(body) > 0 && body[0] == mailSum {
		if head, is := sum.IsVector(body[1:]); is {
			return 1 + head
		}
	}
	return 0
}

// vectorHead is how messages with the vectors of a sum begin.
func vectorHead(round int) []byte { return append([]byte{mailSum}, sum.VectorHead(uint32(round))...) }

// close ends a step and tells the parties.
func (h *serverTransport) close(ctx context.Context, round int) error {
	if h.current.Phase() == sum.Vectors {
		if err := h.box.end.Keep(vectorHead(round), h.current.State()); err != nil {
			return err
		}
	}
	h.ended = h.current.Phase().String()
	outs, err := h.current.Close()
	if err != nil {
		return err
	}
	letters, bytes := make([]link.Letter, len(outs)), 0
	for i, o := range outs {
		letters[i] = link.Letter{To: protocol.Role(o.To), Parts: [2][]byte{1: o.Body}}
		bytes += len(o.Body)
	}
	h.watch.told(h.ended, bytes)
	if err := h.box.sendAll(ctx, mailSum, letters); err != nil {
		return err
	}
	h.enter(round)
	return nil
}

// Return implements protocol.Transport.
func (h *serverTransport) Return(ctx context.Context, total *secagg.Masked) error {
	if h.current == nil || int(h.current.Number) != len(h.results) {
		return errors.New("study: a sum was returned out of its turn")
	}
	result := h.current.Result(total.AppendWire(nil))
	h.results = append(h.results, result)
	var letters []link.Letter
	for p, in := range h.joined {
		if in {
			h.given[p] = len(h.results)
			letters = append(letters, link.Letter{To: protocol.Role(p)})
		}
	}
	if err := h.give(ctx, letters, result); err != nil {
		return err
	}
	h.watch.told(h.ended, len(letters)*len(result))
	h.watch.summed(len(h.results))
	h.current = nil
	return nil
}

// Leave implements protocol.Transport. The coordinator ends the study itself.
func (h *serverTransport) Leave() {}

// linger serves those who come late, until so many roles have left or the deadline passes.
func (h *serverTransport) linger(ctx context.Context, roles int, deadline time.Time) error {
	for len(h.box.left) < roles {
		mark, err := h.box.next(ctx, deadline, "linger")
		if err != nil {
			return err
		}
		if mark == "linger" {
			return nil
		}
	}
	return nil
}
