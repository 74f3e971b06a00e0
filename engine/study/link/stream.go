package link

import (
	"fmt"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// run syncs the journal, sends and acknowledges, when there is something to.
func (e *End) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		e.mu.Lock()
		due := e.work(time.Now())
		e.alarm = due
		e.mu.Unlock()
		timer.Reset(max(0, time.Until(due)))
		select {
		case <-e.kick:
		case <-timer.C:
		case <-e.stop:
			return
		}
	}
}

// work does what is due and returns when more will be. Roles of which nothing was heard
// are looked at when the time of one has come.
func (e *End) work(now time.Time) (due time.Time) {
	if e.err != nil {
		return now.Add(time.Hour)
	}
	if e.sending || e.unsynced && !now.Before(e.syncBy) {
		if err := e.sync(); err != nil {
			e.fail(err)
			return now.Add(time.Hour)
		}
	}
	touched := e.touched
	e.touched, e.looked = e.looked[:0], touched
	for _, p := range touched {
		p.touched = false
		e.attend(p, now)
	}
	if !now.Before(e.due) {
		e.due = now.Add(time.Hour)
		for _, p := range e.peers {
			e.attend(p, now)
		}
	}
	if e.unsynced && e.syncBy.Before(e.due) {
		return e.syncBy
	}
	return e.due
}

// attend does what is due for one role.
func (e *End) attend(p *peer, now time.Time) {
	e.transmit(p, now)
	if p.owes {
		e.acknowledge(p)
	}
	if p.base < p.next && p.acked.message >= p.next && !now.Before(p.resend) {
		p.wait = min(2*p.wait, lastWait)
		p.resend = now.Add(p.wait)
		e.hello(p) // all has arrived, and the word that it is durable was lost
	}
	if p.base < p.next && p.resend.Before(e.due) {
		e.due = p.resend
	}
}

// touch has a role looked at when work is done next.
func (e *End) touch(p *peer) {
	if !p.touched {
		p.touched = true
		e.touched = append(e.touched, p)
	}
}

// sync makes all that was appended durable.
func (e *End) sync() error {
	if err := e.Journal.Sync(); err != nil {
		return err
	}
	for _, p := range e.appended {
		p.appended, p.ready = false, p.next
		if p.durable < p.want.message {
			p.durable, p.owes = p.want.message, true
		}
		if p.brief != "" {
			p.durable-- // it can be lost yet
		}
		e.touch(p)
	}
	e.appended = e.appended[:0]
	e.sending, e.unsynced = false, false
	return nil
}

// wrote notes that the journal has records of a role that are not durable.
func (e *End) wrote(p *peer) {
	if !p.appended {
		p.appended = true
		e.appended = append(e.appended, p)
	}
}

// transmit sends what the window lets through.
func (e *End) transmit(p *peer, now time.Time) {
	if !p.appended {
		p.ready = p.next // also what an earlier life had made durable
	}
	if p.acked.before(p.at) && !now.Before(p.resend) {
		p.at, p.wait = p.acked, min(2*p.wait, lastWait)
		p.resend = now.Add(p.wait)
	}
	if p.at.message < p.base {
		p.at = position{message: p.base}
	}
	for p.at.message < p.ready && p.under() < window {
		framed := p.out[p.at.message-p.base]
		size := len(framed) - room
		from := int(p.at.chunk) * chunkBytes
		if e.Bus.Publish(p.role, e.framed(p, framed, from, min(from+chunkBytes, size))) != nil {
			p.resend = now.Add(p.wait)
			return // the bus is away
		}
		p.owes, p.gap, p.unacked = false, false, 0
		if !p.acked.before(p.at) {
			p.resend = now.Add(p.wait)
		}
		if p.at.chunk++; p.at.chunk == chunks(size) {
			p.at = position{message: p.at.message + 1}
		}
	}
}

// framed is a chunk as the bus carries it, behind the ack that the role is owed.
func (e *End) framed(p *peer, message []byte, from, to int) []byte {
	e.head = e.head[:0]
	if p.owes {
		ack := p.ack()
		e.head = ack.append(e.head)
		e.head = tag(p.to, e.head, e.head)
	}
	data := frame{kind: frameData, message: p.at.message, chunk: p.at.chunk, size: uint32(len(message) - room)}
	e.head = data.append(e.head)
	if from > 0 { // other chunks stand before it
		e.frame = append(append(e.frame[:0], e.head...), message[room+from:room+to]...)
		return e.frame
	}
	begin := room - len(e.head)
	copy(message[begin:], e.head)
	return message[begin : room+to]
}

// under is about how many bytes are under way.
func (p *peer) under() int {
	bytes := 0
	for m := max(p.acked.message, p.base); m < p.at.message; m++ {
		bytes += len(p.out[m-p.base]) - room
	}
	bytes += int(p.at.chunk) * chunkBytes
	if p.acked.message >= p.base {
		bytes -= int(p.acked.chunk) * chunkBytes
	}
	return bytes
}

// acknowledge tells a role what has arrived from it.
func (e *End) acknowledge(p *peer) {
	e.tell(p, p.ack())
	p.owes, p.gap, p.unacked = false, false, 0
}

// ack says what has arrived from a role.
func (p *peer) ack() frame {
	return frame{kind: frameAck, durable: p.durable, message: p.want.message, chunk: p.want.chunk, gap: p.gap}
}

// Deliver takes what the bus carried, whose bytes are the end's from now on.
func (e *End) Deliver(from protocol.Role, b []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	p, err := e.peer(from)
	ack, rest := ahead(b)
	if err == nil && ack != nil {
		err = e.deliver(p, ack)
	}
	if err == nil {
		err = e.deliver(p, rest)
	}
	if err != nil && e.Refused != nil {
		e.Refused(from, err)
	}
	if len(e.touched) > 0 {
		e.attendNow()
	}
}

// deliver takes a frame.
func (e *End) deliver(p *peer, b []byte) error {
	f, err := parse(b, e.Most)
	switch {
	case err != nil:
		return err
	case f.kind == frameData:
		return e.take(p, &f)
	case !e.genuine(p.from, b):
		return errFrame
	case f.kind == frameAck:
		return e.acked(p, &f)
	case f.kind == frameAgain:
		return e.give(p, f.message)
	}
	return e.greeted(p, &f)
}

// take takes a chunk.
func (e *End) take(p *peer, f *frame) error {
	at := position{f.message, f.chunk}
	if ev := e.missing(); ev != nil && ev.from == p.role && at == (position{message: ev.number}) {
		return e.found(p, ev, f)
	}
	if p.brief != "" { // the next comes again when something was kept of this one
		p.owes = true
		e.touch(p)
		return nil
	}
	if at != p.want || f.chunk > 0 && int(f.chunk)*chunkBytes != len(p.partial) {
		p.owes, p.gap = true, p.want.before(at)
		e.touch(p)
		return nil
	}
	if charge(int(f.size)-sealBytes) > p.allowed-p.taken { // before a part of it is held
		return p.excess()
	}
	p.unacked += len(f.bytes)
	sealed := f.bytes
	if len(sealed) < int(f.size) {
		p.partial = append(p.partial, f.bytes...)
		sealed = p.partial
	}
	if len(sealed) < int(f.size) {
		p.want.chunk++
		if p.unacked >= window/4 {
			p.owes = true
			e.touch(p)
		}
		return nil
	}
	p.partial, p.want.chunk = nil, 0
	tag := sealTag(sealed[len(sealed)-sealBytes:])
	body, err := p.opener.Open(sealed[:0], e.nonce(f.message), sealed, nil)
	if err != nil {
		p.owes, p.gap = true, true
		e.touch(p)
		return fmt.Errorf("link: message %d cannot be opened", f.message+1)
	}
	if p.void && p.last != tag {
		return fmt.Errorf("link: message %d is not the one that came before", f.message+1)
	}
	ev, err := e.write(p, f.message, tag, body)
	if err != nil {
		return e.fail(err)
	}
	p.want.message++
	p.void = false
	p.taken += charge(len(body))
	e.wrote(p)
	e.events = append(e.events, ev)
	e.signal()
	if e.Moved != nil {
		e.Moved(p.role, false, len(body))
	}
	if !e.unsynced {
		e.unsynced, e.syncBy = true, time.Now().Add(ackDelay)
		if e.syncBy.Before(e.alarm) {
			e.wake()
		}
	}
	if p.unacked >= window/4 {
		p.owes = true
		e.touch(p)
	}
	return nil
}

// excess says, once, that a role sends more than it may. What follows is refused as what never came is missed.
func (p *peer) excess() error {
	if p.over {
		return nil
	}
	p.over = true
	return fault.Failed("messages", fmt.Sprintf("of %v are more than the %d bytes that the study has room for", p.role,
		p.allowed), "find out what runs there: it is waited for as one that is away, and the study can be ended", nil)
}

// write puts a message into the journal, or what the journal keeps of it.
func (e *End) write(p *peer, number uint64, tag sealTag, body []byte) (event, error) {
	about := e.record(p.role, number)
	brief := 0
	if e.Brief != nil && len(body) <= kept {
		brief = e.Brief(body)
	}
	ev := event{from: p.role, skip: len(about)}
	var err error
	if e.Lasting != nil && len(body) > 0 && len(body) <= kept && e.Lasting(p.role, body) {
		ev.body = slices.Clip(body)
		d := e.digestOf(p.role, number, body)
		_, err = e.Journal.Append(recordDigest, about, d[:])
		return ev, err
	}
	if brief > 0 {
		ev.body = slices.Clip(body)
		e.came(p, string(body[:brief]), tag)
		_, err = e.Journal.Append(recordBrief, about, tag[:], body[:brief])
		return ev, err
	}
	if len(body) <= kept {
		ev.body = slices.Clip(body)
		if ev.body == nil {
			ev.body = []byte{}
		}
	}
	ev.record, err = e.Journal.Append(recordReceived, about, body)
	return ev, err
}

// acked takes an acknowledgement.
func (e *End) acked(p *peer, f *frame) error {
	want := position{f.message, f.chunk}
	// A role that runs its program again may not have come to what it had sent.
	if f.durable < p.base {
		return nil // it is older than one that came before
	}
	if f.durable > p.base+uint64(len(p.out)) {
		if _, sent := p.tags[f.durable-1]; !sent {
			return fmt.Errorf("link: an acknowledgement of message %d, which was not sent", f.durable)
		}
	}
	if f.durable > p.base {
		for p.base < f.durable {
			if len(p.out) > 0 {
				p.bytes -= len(p.out[0]) - room
				e.reuse(p.out[0])
				p.out[0] = nil
				p.out = p.out[1:]
			}
			p.base++
		}
		if e.room != nil {
			close(e.room)
			e.room = nil
		}
	}
	switch at := want.message - p.base; {
	case at >= uint64(len(p.out)):
		want.chunk = 0 // how long a message of an earlier life is shows when it comes
	case want.chunk >= chunks(len(p.out[at])-room):
		return fmt.Errorf("link: an acknowledgement of chunk %d of message %d, which has fewer", want.chunk, want.message+1)
	}
	switch {
	case p.acked.before(want):
		p.acked, p.wait = want, firstWait
		p.resend = time.Now().Add(p.wait)
	case want.before(p.acked):
		p.acked, p.at = want, want // the receiver has lost a part of a message
	}
	if p.at.before(p.acked) {
		p.at = p.acked
	}
	if now := time.Now(); f.gap && now.Sub(p.jumped) > 20*time.Millisecond {
		p.at, p.jumped = p.acked, now
	}
	if most := p.base + uint64(len(p.out)); p.at.message > most {
		p.at = position{message: most}
	}
	e.touch(p)
	return nil
}

// greeted answers a role that has come back.
func (e *End) greeted(p *peer, f *frame) error {
	if f.first > p.want.message {
		e.fail(fault.Failed("journal", fmt.Sprintf("lacks messages of %v that it had acknowledged", p.role),
			"restore the journal from a copy, or leave this study", nil))
		return e.err
	}
	p.partial, p.want.chunk = nil, 0
	p.owes = true
	e.touch(p)
	return nil
}
