package link

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// lasting is a message that was sent, and may be asked for again.
type lasting struct {
	number uint64
	parts  [2][]byte
	tag    sealTag
}

// note notes a lasting message.
func (p *peer) note(l lasting) {
	if len(l.parts[0])+len(l.parts[1]) <= kept { // longer ones are in the receiver's journal
		p.lasts = append(p.lasts, l)
	}
}

// asking is what an end asks for, and when it does again.
type asking struct {
	from   protocol.Role
	number uint64
	due    time.Time
	wait   time.Duration
}

// digest tells a message from all others that its sender can make. A seal does not: both ends have its key, and who
// has that makes two messages with the same tag.
type digest [16]byte

// digestOf is GMAC under the end's own secret, with the message's place as the nonce. A sender that puts two messages
// into one place sees the digest of neither.
func (e *End) digestOf(from protocol.Role, number uint64, body []byte) digest {
	var nonce [12]byte
	binary.BigEndian.PutUint32(nonce[:], uint32(int32(from)))
	binary.BigEndian.PutUint64(nonce[4:], number)
	return digest(e.digester.Seal(e.head[:0], nonce[:], nil, body))
}

// missing is the first event, if it has to be given again, else nil.
func (e *End) missing() *event {
	if e.first < len(e.events) && e.events[e.first].missing {
		return &e.events[e.first]
	}
	return nil
}

// ask asks for a missing message, unless it did just now, and returns when to do so again.
func (e *End) ask(missing *event) time.Duration {
	now, a := time.Now(), &e.asking
	if a.wait == 0 || a.from != missing.from || a.number != missing.number {
		*a = asking{from: missing.from, number: missing.number, wait: firstWait / 2}
	}
	if !now.Before(a.due) {
		a.wait = min(2*a.wait, lastWait)
		a.due = now.Add(a.wait)
		e.tell(e.peers[missing.from], frame{kind: frameAgain, message: missing.number})
	}
	return a.due.Sub(now)
}

// found takes a message that was missing.
func (e *End) found(p *peer, missing *event, f *frame) error {
	if len(f.bytes) < int(f.size) {
		return fmt.Errorf("link: message %d comes again in parts", f.message+1)
	}
	body, err := p.opener.Open(f.bytes[:0], e.nonce(f.message), f.bytes, nil)
	if err != nil {
		return fmt.Errorf("link: message %d cannot be opened", f.message+1)
	}
	if d := e.digestOf(p.role, f.message, body); subtle.ConstantTimeCompare(d[:], missing.digest[:]) == 0 {
		return e.fail(fault.Failed("message",
			fmt.Sprintf("number %d of %v is not the one that came before", f.message+1, p.role),
			"do not go on before you know what happened there", nil))
	}
	missing.body, missing.missing = slices.Clip(body), false
	e.signal()
	return nil
}

// givePause is how soon a role may ask for the same message again.
const givePause = 20 * time.Millisecond

// give sends a lasting message again, byte for byte. A life that has begun again may not have come to it: then it is
// asked once more.
func (e *End) give(p *peer, number uint64) error {
	now := time.Now()
	if number <= p.given && now.Sub(p.gave) < givePause {
		return nil
	}
	at, is := slices.BinarySearchFunc(p.lasts, number, func(l lasting, n uint64) int {
		switch {
		case l.number < n:
			return -1
		case l.number > n:
			return 1
		}
		return 0
	})
	if !is {
		return nil
	}
	p.given, p.gave = number, now
	sealed := e.seal(p, number, p.lasts[at].parts)
	if sealTag(sealed[len(sealed)-sealBytes:]) != p.lasts[at].tag {
		return e.fail(fmt.Errorf("link: message %d to %v has changed since it was sent", number+1, p.role))
	}
	data := frame{kind: frameData, message: number, size: uint32(len(sealed) - room)}
	e.head = data.append(e.head[:0])
	begin := room - len(e.head)
	copy(sealed[begin:], e.head)
	_ = e.Bus.Publish(p.role, sealed[begin:]) // it is asked again
	e.reuse(sealed)
	return nil
}
