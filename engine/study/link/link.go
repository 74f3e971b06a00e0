// Package link carries messages between the roles of a study, each on a machine of
// its own, over a bus that may lose, repeat and reorder frames, and over the death
// of either end.
//
// Every pair of roles has a stream in each direction. Its messages are numbered,
// sealed with AES-256-GCM under a key of that direction (the number is the nonce),
// and cut into chunks; at most a window of bytes is under way. A message is written
// to the receiver's journal before it is acknowledged as durable, and the sender
// keeps it until then.
//
// Of messages that are [Config.Brief] the journal has heads alone, and their program what
// follows from them ([End.Keep]); until then their senders keep them. Of those that are
// [Config.Lasting] it has a digest: a later life asks for them again, and takes no other.
//
// A role's program is a function of its records, its root and what it receives. So a
// role that was killed runs its program again from the beginning: what it had
// received comes from its journal, in the old order, and what it sends is compared
// with what its journal has of it, the tag of its seal. A message that would differ is
// refused, not sent: no message has two versions, and no noise is drawn twice.
package link

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Bus carries frames to other roles.
type Bus interface {
	// Publish sends a frame, of which it keeps nothing.
	Publish(to protocol.Role, frame []byte) error
}

// Kinds of journal records that belong to an end.
const (
	recordReceived byte = 'r'
	recordSent     byte = 's'
	recordMark     byte = 'm' // a deadline has passed
	recordOrder    byte = 'o' // a mark of somebody else
	recordBrief    byte = 'b' // a message whose body is not here: its tag, its head
	recordKept     byte = 'k' // what follows from brief messages with a head: its length, the head, the state
	recordVoid     byte = 'w' // brief messages of which nothing was kept so far have not been received
	recordDigest   byte = 'h' // a message whose body is not here: its digest
)

const (
	// window is how many bytes of a stream may be under way.
	window = 4 << 20
	// queued is how many bytes of a stream wait at most before Send waits.
	queued = 64 << 20
	// kept is the longest message that is kept in memory until it is read.
	kept = 64 << 10
	// ackDelay is how long a message may wait for the disk and its acknowledgement, which
	// goes with the next message the other way if there is one before.
	ackDelay = 250 * time.Millisecond
	// firstWait is when what was not acknowledged is sent again; it doubles up to lastWait.
	firstWait, lastWait = 600 * time.Millisecond, 5 * time.Second
	// MessageBytes is what a message takes besides its bytes, in the journal or in memory.
	MessageBytes = 256
	// overslept is how late a deadline is noticed by a process that was stopped or had no processor, and grace what
	// it then waits for what others may have sent in time: they may have to connect again first.
	overslept, grace = time.Second, 20 * time.Second
)

// Config is what an end is made from.
type Config struct {
	Self protocol.Role
	// Keys returns the keys of the streams to and from another role.
	Keys    func(peer protocol.Role) (to, from [32]byte, err error)
	Journal *journal.File
	Bus     Bus
	// Most is the longest message.
	Most int
	// Quota, if not nil, is how much a role may send another in all, each message with MessageBytes more: what is
	// beyond it is neither sent, nor taken into memory or the journal.
	Quota func(from, to protocol.Role) int64
	// Brief, if not nil, returns how many bytes a message begins with that tell what it is
	// for, if the program calls Keep for that head before it sends what follows from the
	// message; 0 has the journal keep all of it. What its sender sends before that waits.
	Brief func(body []byte) (head int)
	// Lasting, if not nil, reports whether a role has sent a message that it gives again (Letter.Lasting): the
	// journal has its digest, under Secret, which is this role's alone.
	Lasting func(from protocol.Role, body []byte) bool
	Secret  [32]byte
	// Refused, if not nil, hears of frames that were not accepted, and why.
	Refused func(from protocol.Role, err error)
	// Moved, if not nil, hears of the bytes of each message that was sent or received.
	Moved func(peer protocol.Role, sent bool, bytes int)
}

// Event is what Next returns: a message, or a mark that Next left.
type Event struct {
	From protocol.Role
	Body []byte
	Mark []byte // nil for a message
}

// event is an Event that may still be on disk.
type event struct {
	from   protocol.Role
	record journal.Record
	skip   int // bytes of the record before the body
	body   []byte
	mark   []byte
	late   bool // the mark is of a deadline
	// brief says that an earlier life received a message of which body is the head.
	brief bool
	// missing says that an earlier life received a message that has not been given again.
	missing bool
	digest  digest
	number  uint64 // of a brief message, or of one that was missing
}

// End is one role's end of all its streams.
type End struct {
	Config
	mu       sync.Mutex
	peers    map[protocol.Role]*peer
	events   []event
	first    int           // of events that was not returned
	earlier  int           // events of an earlier life that were not returned
	arrived  chan struct{} // capacity 1
	kick     chan struct{} // capacity 1
	room     chan struct{} // closed when streams get shorter; nil while nobody waits
	unsynced bool          // received messages wait for the disk
	syncBy   time.Time
	touched  []*peer   // to be looked at
	looked   []*peer   // were, last time
	appended []*peer   // with records that are not durable
	due      time.Time // when all are to be looked at
	alarm    time.Time // when run looks next by itself
	frame    []byte    // scratch, as are those that follow
	head     []byte
	key      [44]byte
	number   [12]byte
	late     *time.Timer
	grace    time.Duration     // see there
	moved    [2]time.Time      // a deadline that was overslept, and the one in its place
	spare    [][]byte          // buffers of messages that have arrived
	spared   int               // bytes of spare
	states   map[string][]byte // what was kept, by head
	sending  bool              // messages wait for the disk before they may leave
	asking   asking            // for the first event, while it is missing
	digester cipher.AEAD
	err      error
	failed   chan struct{}
	stop     chan struct{}
	stopped  sync.WaitGroup
}

// peer is the state of the streams to and from one role.
type peer struct {
	role              protocol.Role
	sealer, opener    cipher.AEAD
	to, from          hash.Hash // of tags
	touched, appended bool
	// What is sent.
	tags   map[uint64]sealTag // of messages sent before a restart
	next   uint64             // number of the next message
	ready  uint64             // messages before this one are in the journal, on disk
	base   uint64             // the first message that is kept
	out    [][]byte           // sealed, from base on, behind room for the head of a frame
	bytes  int                // sealed, of out
	at     position           // what is sent next
	acked  position           // what the receiver wants next
	resend time.Time
	wait   time.Duration
	jumped time.Time // when a gap was last answered
	lasts  []lasting // of what was sent, in order
	spent  int64     // of the quota
	quota  int64
	given  uint64 // the last of them that was asked for, and when
	gave   time.Time
	// What is received.
	want    position
	partial []byte
	durable uint64
	brief   string  // head of the last message, if it is brief and nothing was kept of it
	void    bool    // an earlier life had the next message, but nothing was kept of it
	last    sealTag // of the last brief message
	owes    bool    // an ack
	gap     bool
	unacked int // bytes since the last ack
	// Of the quota of what is received, taken is used up; over says that something was beyond it.
	taken, allowed int64
	over           bool
}

// sealTag ends a sealed message: it follows from its key, its number and all its bytes.
type sealTag [sealBytes]byte

// position is a chunk of a message.
type position struct {
	message uint64
	chunk   uint32
}

func (p position) before(q position) bool {
	return p.message < q.message || p.message == q.message && p.chunk < q.chunk
}

// New returns an end that goes on from its journal. Start makes it work.
func New(c Config) (*End, error) {
	e := &End{Config: c, peers: make(map[protocol.Role]*peer), arrived: make(chan struct{}, 1),
		kick: make(chan struct{}, 1), failed: make(chan struct{}), stop: make(chan struct{}), states: make(map[string][]byte),
		grace: grace}
	var err error
	if e.digester, err = gcm(c.Secret); err != nil {
		return nil, err
	}
	for _, r := range c.Journal.Records() {
		if err := e.recall(r); err != nil {
			return nil, err
		}
	}
	if e.lapse() {
		if _, err := c.Journal.Append(recordVoid); err != nil {
			return nil, err
		}
	}
	e.earlier = len(e.events)
	for _, p := range e.peers {
		p.durable = p.want.message
	}
	return e, nil
}

// lapse forgets brief messages of which nothing was kept when a life ended, and the deadlines
// that passed after the first of them: their senders have them, and nothing has left
// that follows from either. It reports whether there were any.
func (e *End) lapse() bool {
	lapsed := false
	e.events = slices.DeleteFunc(e.events, func(ev event) bool {
		if ev.late && lapsed {
			return true
		}
		p := e.peers[ev.from]
		if !ev.brief || p.brief != string(ev.body) || ev.number+1 != p.want.message {
			return false
		}
		lapsed = true
		return true
	})
	for _, p := range e.peers {
		if p.brief != "" {
			p.brief, p.void = "", true
			p.want.message--
		}
	}
	return lapsed
}

// recall takes a record of an earlier life.
func (e *End) recall(r journal.Record) error {
	head := 12
	switch r.Kind {
	case recordSent:
		head += sealBytes
	case recordReceived:
	case recordBrief:
		head += sealBytes
	case recordDigest:
		head += len(digest{})
	case recordMark, recordOrder:
		b, err := e.Journal.Read(r)
		if err == nil {
			e.events = append(e.events, event{mark: b, late: r.Kind == recordMark})
		}
		return err
	case recordKept:
		b, err := e.Journal.Read(r)
		if err == nil && (len(b) < 1 || len(b) < 1+int(b[0])) {
			err = journal.ErrDamaged
		}
		if err == nil {
			e.keep(string(b[1:1+b[0]]), b[1+b[0]:])
		}
		return err
	case recordVoid:
		e.lapse()
		return nil
	default:
		return nil
	}
	if r.Length < head {
		return journal.ErrDamaged
	}
	length := head
	if r.Kind == recordBrief {
		length = r.Length
	}
	b, err := e.Journal.Read(journal.Record{Offset: r.Offset, Length: length})
	if err != nil {
		return err
	}
	p, err := e.peer(protocol.Role(int32(binary.LittleEndian.Uint32(b))))
	if err != nil {
		return err
	}
	number := binary.LittleEndian.Uint64(b[4:])
	if r.Kind == recordSent {
		p.tags[number] = sealTag(b[12:])
		return nil
	}
	p.taken += charge(r.Length - head)
	if number != p.want.message {
		return journal.ErrDamaged
	}
	p.want.message++
	ev := event{from: p.role, record: r, skip: head}
	if r.Kind == recordBrief {
		ev.body, ev.brief, ev.number = b[head:], true, number
		e.came(p, string(ev.body), sealTag(b[12:]))
	}
	if r.Kind == recordDigest {
		ev.missing, ev.digest, ev.number = true, digest(b[12:]), number
	}
	p.void = false
	e.events = append(e.events, ev)
	return nil
}

// came notes that a brief message has come.
func (e *End) came(p *peer, head string, tag sealTag) {
	p.last = tag
	if _, over := e.states[head]; !over {
		p.brief = head
	}
}

// keep notes what follows from the brief messages with a head.
func (e *End) keep(head string, state []byte) {
	e.states[head] = state
	for _, p := range e.peers {
		if p.brief == head {
			p.brief = ""
		}
	}
}

// Keep makes what follows from the brief messages with a head durable with what is sent next:
// their bodies are not needed again. A later life has state from Kept, and of the messages
// their heads alone.
func (e *End) Keep(head, state []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, again := e.states[string(head)]; again || e.err != nil {
		return e.err
	}
	if _, err := e.Journal.Append(recordKept, []byte{byte(len(head))}, head, state); err != nil {
		return e.fail(err)
	}
	for _, p := range e.peers {
		if p.brief == string(head) {
			e.wrote(p)
		}
	}
	e.keep(string(head), nil) // nobody asks for it in this life
	return nil
}

// Kept is the state that an earlier life kept for a head, nil if none did.
func (e *End) Kept(head []byte) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.states[string(head)]
}

// peer is the state of another role's streams.
func (e *End) peer(r protocol.Role) (*peer, error) {
	if p := e.peers[r]; p != nil {
		return p, nil
	}
	to, from, err := e.Keys(r)
	if err != nil {
		return nil, err
	}
	p := &peer{role: r, to: hmac.New(sha256.New, to[:]), from: hmac.New(sha256.New, from[:]),
		tags: make(map[uint64]sealTag), wait: firstWait, quota: math.MaxInt64, allowed: math.MaxInt64}
	if e.Quota != nil {
		p.quota, p.allowed = e.Quota(e.Self, r), e.Quota(r, e.Self)
	}
	if p.sealer, err = gcm(to); err != nil {
		return nil, err
	}
	if p.opener, err = gcm(from); err != nil {
		return nil, err
	}
	e.peers[r] = p
	return p, nil
}

// charge is what a message of so many bytes takes of a quota.
func charge(size int) int64 { return int64(size) + sealBytes + MessageBytes }

// gcm is AES-256-GCM under a key.
func gcm(key [32]byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Start lets frames move, until Close.
func (e *End) Start() {
	e.stopped.Go(e.run)
	e.Again()
}

// Close ends the streams. What was not acknowledged is kept by the journals. Frames that are
// delivered later are left: the journal is no longer the end's.
func (e *End) Close() {
	close(e.stop)
	e.stopped.Wait()
	e.Fail(errClosed)
}

var errClosed = errors.New("link: the end is closed")

// nonce is that of a message, valid until the next call.
func (e *End) nonce(number uint64) []byte {
	binary.BigEndian.PutUint64(e.number[4:], number)
	return e.number[:]
}

// record is the head of a message's record in the journal, valid until the next call.
func (e *End) record(peer protocol.Role, number uint64) []byte {
	b := binary.LittleEndian.AppendUint32(e.key[:0], uint32(int32(peer)))
	return binary.LittleEndian.AppendUint64(b, number)
}

// Letter is a message to a role: its parts, one after the other.
type Letter struct {
	To    protocol.Role
	Parts [2][]byte
	// Lasting says that the parts stay as they are until the end is closed: their receiver may ask for the
	// message again, if its Config.Lasting says so.
	Lasting bool
}

// Send queues a message. It waits while the stream is full. A message that is not
// the one that was sent in its place before a restart is refused.
func (e *End) Send(ctx context.Context, to protocol.Role, body []byte) error {
	return e.SendAll(ctx, []Letter{{To: to, Parts: [2][]byte{body}}})
}

// SendAll queues messages. They are on the disk together, and leave together.
func (e *End) SendAll(ctx context.Context, letters []Letter) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var joined []byte
	for i, l := range letters {
		if i == 0 || !same(&letters[i-1], &l) {
			joined = nil
		}
		if joined == nil && i+1 < len(letters) && same(&l, &letters[i+1]) {
			joined = slices.Concat(l.Parts[0], l.Parts[1]) // what goes to many is put together once
		}
		parts := l.Parts
		if joined != nil {
			l.Parts = [2][]byte{1: joined}
		}
		number, tag, err := e.queue(ctx, &l)
		if err != nil {
			return err
		}
		if l.Lasting {
			e.peers[l.To].note(lasting{number, parts, tag})
		}
	}
	e.attendNow()
	return e.err
}

// attendNow does what is due without waking the goroutine that does it by itself.
func (e *End) attendNow() {
	if due := e.work(time.Now()); due.Before(e.alarm) {
		e.wake()
	}
}

// same reports whether two letters have the same parts in memory.
func same(a, b *Letter) bool {
	for i := range a.Parts {
		x, y := a.Parts[i], b.Parts[i]
		if len(x) != len(y) || len(x) > 0 && &x[0] != &y[0] {
			return false
		}
	}
	return true
}

// queue seals a message and puts it into its stream: its number there, and how its seal ends.
func (e *End) queue(ctx context.Context, l *Letter) (number uint64, tag sealTag, err error) {
	size := len(l.Parts[0]) + len(l.Parts[1])
	if size+sealBytes > e.Most {
		return 0, tag, fault.Range("message", size, fmt.Sprintf("at most %d bytes", e.Most-sealBytes))
	}
	p, err := e.peer(l.To)
	if err != nil {
		return 0, tag, err
	}
	if charge(size) > p.quota-p.spent {
		return 0, tag, fault.Failed("messages",
			fmt.Sprintf("to %v would be more than the %d bytes that the study has room for", l.To, p.quota),
			"send fewer ids, or make the study for more records", nil)
	}
	if err := e.wait(ctx, p, size); err != nil {
		return 0, tag, err
	}
	number = p.next
	sealed := e.seal(p, number, l.Parts)
	tag = sealTag(sealed[len(sealed)-sealBytes:])
	if was, again := p.tags[number]; !again {
		if _, err := e.Journal.Append(recordSent, e.record(l.To, number), tag[:]); err != nil {
			return 0, tag, e.fail(err)
		}
		e.sending = true
		e.wrote(p)
	} else if was != tag {
		return 0, tag, e.fail(fault.Failed("message",
			fmt.Sprintf("number %d to %v is not the one that was sent before", number+1, l.To),
			"start with the data, the options and the program that the study was begun with", nil))
	}
	p.spent += charge(size)
	p.next++
	if number < p.base { // it has arrived in an earlier life
		e.reuse(sealed)
		return number, tag, nil
	}
	p.out = append(p.out, sealed)
	p.bytes += size + sealBytes
	if e.Moved != nil {
		e.Moved(l.To, true, size)
	}
	e.touch(p)
	return number, tag, nil
}

// seal seals a message of a stream, behind room for the head of a frame.
func (e *End) seal(p *peer, number uint64, parts [2][]byte) []byte {
	first, second := parts[0], parts[1]
	framed := e.buffer(room + len(first) + len(second) + sealBytes)[:room]
	if len(first) == 0 {
		return p.sealer.Seal(framed, e.nonce(number), second, nil)
	}
	body := append(append(framed, first...), second...)[room:]
	return framed[:room+len(p.sealer.Seal(body[:0], e.nonce(number), body, nil))]
}

// buffer is room for a message: that of one that has arrived, if it is long enough.
func (e *End) buffer(size int) []byte {
	if last := len(e.spare) - 1; last >= 0 {
		b := e.spare[last]
		e.spare[last] = nil
		e.spare, e.spared = e.spare[:last], e.spared-cap(b)
		if cap(b) >= size {
			return b[:size]
		}
	}
	return make([]byte, size)
}

// mostSpare is how many bytes of buffers are kept for messages to come: a coordinator sends its
// next result to a thousand parties in those of the last.
const mostSpare = 64 << 20

// reuse keeps the buffer of a message that has arrived.
func (e *End) reuse(b []byte) {
	if cap(b) <= 2*kept && e.spared+cap(b) <= mostSpare {
		e.spare, e.spared = append(e.spare, b), e.spared+cap(b)
	}
}

// wait waits until a stream has room.
func (e *End) wait(ctx context.Context, p *peer, size int) error {
	for e.err == nil && p.bytes > 0 && p.bytes+size > queued {
		e.attendNow()
		if e.room == nil {
			e.room = make(chan struct{})
		}
		room := e.room
		e.mu.Unlock()
		select {
		case <-room:
		case <-e.failed:
		case <-ctx.Done():
			e.mu.Lock()
			return ctx.Err()
		}
		e.mu.Lock()
	}
	return e.err
}

func (e *End) wake() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// fail ends the streams with an error, the first that happened.
func (e *End) fail(err error) error {
	if e.err == nil {
		e.err = err
		close(e.failed)
	}
	return e.err
}

// Fail ends the streams with an error, which Send and Next return from now on.
func (e *End) Fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail(err)
}

// Next returns the next event, in the order of the journal. If none comes before
// deadline (the zero time waits for ever) it leaves mark in the journal, which is
// then among the events: a later life finds it in the same place. A deadline that this process overslept is moved, once
// for all calls that have it. It waits for what an earlier life
// had received and has to be given again. One goroutine may call it.
func (e *End) Next(ctx context.Context, deadline time.Time, mark string) (Event, error) {
	var late <-chan time.Time
	for first := true; ; first = false {
		e.mu.Lock()
		here, missing := e.first < len(e.events), e.missing()
		switch {
		case here && missing == nil:
			defer e.mu.Unlock()
			return e.pop()
		case e.err != nil:
			defer e.mu.Unlock()
			return Event{}, e.err
		}
		var again <-chan time.Time
		if missing != nil {
			again = time.After(e.ask(missing))
		}
		e.mu.Unlock()
		if first && !deadline.IsZero() {
			if e.late == nil {
				e.late = time.NewTimer(0)
			}
			e.late.Reset(time.Until(e.until(deadline)))
			defer e.late.Stop()
			late = e.late.C
		}
		select {
		case <-e.arrived:
		case <-e.failed:
		case <-again:
		case <-late:
			if e.oversleeps(deadline) {
				e.late.Reset(e.grace)
				continue
			}
			late = nil
			if err := e.leave(mark); err != nil {
				return Event{}, err
			}
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// until is when a deadline passes.
func (e *End) until(deadline time.Time) time.Time {
	if deadline.Equal(e.moved[0]) {
		return e.moved[1]
	}
	return deadline
}

// oversleeps reports whether a deadline passed long ago, and moves it then.
func (e *End) oversleeps(deadline time.Time) bool {
	now := time.Now()
	if now.Sub(e.until(deadline)) < overslept {
		return false
	}
	e.moved = [2]time.Time{deadline, now.Add(e.grace)}
	return true
}

// leave leaves the mark of a deadline, unless something has come meanwhile: behind that it would meet
// who waits for what follows.
func (e *End) leave(mark string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if missing := e.missing(); missing != nil {
		return fault.Failed("message", fmt.Sprintf("number %d of %v was received, and is not given again",
			missing.number+1, missing.from), "start the same command again when it can be reached", nil)
	}
	if e.err != nil || e.first < len(e.events) {
		return e.err
	}
	if _, err := e.Journal.Append(recordMark, []byte(mark)); err != nil {
		return e.fail(err)
	}
	e.events = append(e.events, event{mark: []byte(mark)})
	return nil
}

// Replaying reports whether Next has events yet that an earlier life had.
func (e *End) Replaying() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.earlier > 0
}

// Mark leaves a mark for Next to return after what has arrived so far. It is durable when Mark returns.
func (e *End) Mark(mark []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.note(recordOrder, mark); err != nil {
		return err
	}
	e.events = append(e.events, event{mark: mark})
	e.signal()
	return nil
}

// Note makes a record of the role's own durable, of a kind that the end has not.
func (e *End) Note(kind byte, body []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.note(kind, body)
}

func (e *End) note(kind byte, body []byte) error {
	if e.err != nil {
		return e.err
	}
	_, err := e.Journal.Append(kind, body)
	if err == nil {
		err = e.Journal.Sync()
	}
	if err != nil {
		return e.fail(err)
	}
	return nil
}

func (e *End) signal() {
	select {
	case e.arrived <- struct{}{}:
	default:
	}
}

// pop takes the first event.
func (e *End) pop() (Event, error) {
	first := e.events[e.first]
	e.events[e.first] = event{}
	e.first++
	e.earlier = max(0, e.earlier-1)
	if e.first < len(e.events) {
		e.signal()
	}
	if e.first >= len(e.events)-e.first { // what is left moves to the front, each at most once on average
		n := copy(e.events, e.events[e.first:])
		clear(e.events[n:])
		e.events, e.first = e.events[:n], 0
	}
	if first.body == nil && first.mark == nil {
		if err := e.Journal.Flush(); err != nil {
			return Event{}, e.fail(err)
		}
		b, err := e.Journal.Read(first.record)
		if err != nil {
			return Event{}, e.fail(err)
		}
		first.body = b[first.skip:]
	}
	return Event{From: first.from, Body: first.body, Mark: first.mark}, nil
}

// Again says that the bus was interrupted: what is not acknowledged is sent again.
func (e *End) Again() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.peers {
		p.at, p.owes = p.acked, true
		e.hello(p)
		e.touch(p)
	}
	if e.missing() != nil {
		e.asking = asking{}
		e.signal()
	}
	e.wake()
}

// Acknowledge makes all that has come durable and says so, at once.
func (e *End) Acknowledge() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unsynced {
		e.syncBy = time.Time{}
		e.wake()
	}
}

func (e *End) hello(p *peer) {
	e.tell(p, frame{kind: frameHello, first: p.base})
}

// tell sends a frame without data. If the bus is away the frame is not missed: Again
// says all anew.
func (e *End) tell(p *peer, f frame) {
	e.frame = f.append(e.frame[:0])
	e.frame = tag(p.to, e.frame, e.frame)
	_ = e.Bus.Publish(p.role, e.frame)
}

// Waiting is how many messages to a role have not been acknowledged.
func (e *End) Waiting(r protocol.Role) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.peers[r]; p != nil && p.next > p.base {
		return int(p.next - p.base)
	}
	return 0
}

// Settled reports whether every role has all that was sent to it, but for those that
// gone says to need nothing more, and this one's journal has all that came.
func (e *End) Settled(gone func(protocol.Role) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for r, p := range e.peers {
		if p.base < p.next && !gone(r) {
			return false
		}
	}
	return !e.unsynced
}
