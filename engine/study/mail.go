package study

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/link"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Kinds of messages on a link, the first byte of each.
const (
	mailProgram byte = 'm' // of the method's program
	mailSum     byte = 's' // of a sum
	mailLeave   byte = 'l' // its sender's program has ended
	mailGroup   byte = 'g' // the group's secret, from party 1 to another
	mailIDs     byte = 'd' // keyed digests of a party's ids, or which rows match
	mailEnd     byte = 'x' // the study was ended, and why
)

// markEnd begins a mark that ends the study.
const markEnd = "end: "

// postbox sorts what arrives at a role: the one reader of its link.
type postbox struct {
	end   *link.End
	self  protocol.Role
	boxes map[box][][]byte
	left  map[protocol.Role]bool // whose programs have ended
	// parted, if not nil, hears of each role that has left.
	parted func(protocol.Role)
	wait   time.Duration  // for a message
	marks  map[box]string // of messages that do not come in time
	// sums, if not nil, takes messages of sums as they come, and their deadlines.
	sums func(from protocol.Role, body []byte) error
}

type box struct {
	from protocol.Role
	kind byte
}

func newPostbox(end *link.End, self protocol.Role, wait time.Duration) *postbox {
	return &postbox{end: end, self: self, boxes: make(map[box][][]byte), left: make(map[protocol.Role]bool), wait: wait,
		marks: make(map[box]string)}
}

// send sends a message of a kind.
func (b *postbox) send(ctx context.Context, to protocol.Role, kind byte, body []byte) error {
	return b.sendAll(ctx, kind, []link.Letter{{To: to, Parts: [2][]byte{nil, body}}})
}

// sendAll sends messages of a kind, whose bodies are the second parts.
func (b *postbox) sendAll(ctx context.Context, kind byte, letters []link.Letter) error {
	first := []byte{kind}
	for i := range letters {
		letters[i].Parts[0] = first
	}
	return b.end.SendAll(ctx, letters)
}

// next takes one event off the link: into a box, or to the sum under way. mark is left
// in the journal at deadline; it is returned when it comes.
func (b *postbox) next(ctx context.Context, deadline time.Time, mark string) (string, error) {
	ev, err := b.end.Next(ctx, deadline, mark)
	if err != nil {
		return "", err
	}
	if ev.Mark != nil {
		m := string(ev.Mark)
		if len(m) >= len(markEnd) && m[:len(markEnd)] == markEnd {
			return "", &ended{m[len(markEnd):]}
		}
		return m, nil
	}
	if len(ev.Body) == 0 {
		return "", nil // no message of ours
	}
	kind, body := ev.Body[0], ev.Body[1:]
	switch {
	case kind == mailEnd && ev.From == protocol.Server:
		b.end.Acknowledge() // the coordinator waits for that
		b.settle(ctx, func() bool { return false }, lastWord)
		return "", &ended{string(body[:min(len(body), 300)])}
	case kind == mailLeave:
		b.leave(ev.From)
		b.end.Acknowledge() // its sender waits for nothing else
		if b.sums != nil {
			return "", b.sums(ev.From, nil)
		}
	case kind == mailSum && b.sums != nil:
		return "", b.sums(ev.From, body)
	case kind == mailSum || kind == mailProgram || kind == mailGroup || kind == mailIDs:
		at := box{ev.From, kind}
		b.boxes[at] = append(b.boxes[at], body)
	}
	return "", nil
}

// lastWord is how long a role that was told that the study has ended tries to acknowledge it.
const lastWord = time.Second

// leave notes that a role's program has ended.
func (b *postbox) leave(r protocol.Role) {
	b.left[r] = true
	if b.parted != nil {
		b.parted(r)
	}
}

// receive waits for the next message of a kind from a role.
func (b *postbox) receive(ctx context.Context, from protocol.Role, kind byte) ([]byte, error) {
	at := box{from, kind}
	late, deadline := "", time.Time{}
	for len(b.boxes[at]) == 0 {
		if late == "" {
			if late = b.marks[at]; late == "" {
				late = fmt.Sprintf("late %d %c", int(from), kind)
				b.marks[at] = late
			}
			deadline = time.Now().Add(b.wait)
		}
		if b.left[from] {
			return nil, protocol.ErrLeft
		}
		mark, err := b.next(ctx, deadline, late)
		if err != nil {
			return nil, err
		}
		if mark == late {
			return nil, fault.Failed("study", fmt.Sprintf("%v has sent nothing for %v", from, b.wait),
				"find out what happened there, and begin a new study with those who can stay", nil)
		}
	}
	first := b.boxes[at][0]
	b.boxes[at] = b.boxes[at][1:]
	return first, nil
}

// settle waits until everybody who is there has all that was sent, at most until the
// limit. alone says that nobody is there any more.
func (b *postbox) settle(ctx context.Context, alone func() bool, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for !b.end.Settled(func(r protocol.Role) bool { return b.left[r] }) {
		if ctx.Err() != nil || time.Now().After(deadline) || alone() {
			return false
		}
		soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		_, err := b.next(soon, time.Time{}, "")
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return false
		}
	}
	return true
}

// ended says that the study was ended by its coordinator.
type ended struct{ why string }

func (e *ended) Error() string {
	return fault.Failed("study", "was ended: "+e.why, "nothing is released any more", nil).Error()
}

// Mail is implemented for methods: their messages and partings.
type mail struct{ *postbox }

// Send implements protocol.Mail.
func (m mail) Send(ctx context.Context, to protocol.Role, message []byte) error {
	return m.send(ctx, to, mailProgram, message)
}

// Receive implements protocol.Mail.
func (m mail) Receive(ctx context.Context, from protocol.Role) ([]byte, error) {
	return m.receive(ctx, from, mailProgram)
}

// Leave implements protocol.Mail; see Party.part.
func (m mail) Leave() {}
