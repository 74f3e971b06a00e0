package protocol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// local connects roles that share this process: messages and masked vectors are
// handed over without copies. Its roles are coroutines that take turns, so that
// a round among thousands of parties costs no scheduling; they compute in parallel
// by the engine's pool.
type local struct {
	rt    *engine.Runtime
	views *Views
	noisy bool    // somebody draws noise
	order []*seat // parties, then the servers
	// parties counts those that have not left, events what may have ended a wait.
	parties, events int
	meetings        int          // of all parties
	goal            int          // rounds that parties may end before they wait
	sums            [2]*localSum // of this round and the last one, which a slow party may not have read
	adder           *seat        // the server's, while it serves
	memo            []memoValue  // of calls that not all roles have made
	abreast         []*seat      // whose work waits for the pool
	each            func(worker, index int)
}

// localSum is a sum under way.
type localSum struct {
	number  int
	total   *secagg.Masked
	arrived int
	done    bool
}

// memoValue is what a call of Once returned.
type memoValue struct {
	name  string
	round int
	value any
	err   error
	users int // roles that have not asked yet
}

// seat is one role's end of local.
type seat struct {
	*local
	role           Role
	player         *role
	next           func() (struct{}, bool)
	stop           func()
	pause          func(struct{}) bool
	left           bool
	taken          int // sums taken part in
	met            int // meetings taken part in
	awaits         awaited
	sum            *localSum                        // that it waits for,
	round          int                              // or round to go on from,
	from           Role                             // or sender of a message
	add            func(total *secagg.Masked) error // to a sum, the server's
	addErr         error
	last           int                         // sum that it serves
	work           func(context.Context) error // to be done abreast of the others'
	workErr        error
	sent, received int64
	mail           map[Role][][]byte
}

// awaited is what a role that has paused waits for.
type awaited int

const (
	nothing    awaited = iota
	theSum             // of all vectors, from the server
	allVectors         // of a sum, at the server
	nextRound          // that it may go on to
	theOthers          // to meet
	aMessage           // or that nobody is left to send it
	theWork            // that is done abreast
	theEnd             // of what the server serves
)

// ready tells whether there is what the role waits for.
func (s *seat) ready() bool {
	switch s.awaits {
	case theSum:
		return s.sum.done
	case allVectors:
		return s.parties == 0 || s.complete()
	case nextRound:
		return s.goal > s.round+1
	case theOthers:
		return s.meetings >= s.met*s.parties
	case aMessage:
		sender := s.at(s.from)
		return len(s.mail[s.from]) > 0 || sender == nil || sender.left
	case theWork:
		return s.work == nil
	case theEnd:
		return s.parties == 0 || s.taken == s.last || s.addErr != nil
	}
	return true
}

// complete tells whether the sum that this server is to return has the vectors of all parties.
func (s *seat) complete() bool {
	sum := s.sums[s.taken%2]
	return sum != nil && sum.number == s.taken && !sum.done && sum.arrived == s.parties
}

func newLocal(rt *engine.Runtime, views *Views, noisy bool) *local {
	return &local{rt: rt, views: views, noisy: noisy, memo: make([]memoValue, 0, 2)}
}

// add gives a role a seat, parties in their order and servers last.
func (l *local) add(s *seat, r Role) {
	s.local, s.role = l, r
	l.order = append(l.order, s)
	if !r.Serves() {
		l.parties++
	}
}

// at is the seat of a role, nil if it has none.
func (l *local) at(r Role) *seat {
	if at := int(r); at >= 0 && at < len(l.order) && l.order[at].role == r {
		return l.order[at]
	}
	for _, s := range slices.Backward(l.order) {
		if s.role == r {
			return s
		}
	}
	return nil
}

// run lets the roles take turns until all have ended, or one has failed, or stop
// reports true between two turns. It may be called again after a stop. Without any stop the
// first role needs no coroutine: the others take their turns while it waits.
func (l *local) run(ctx context.Context, stop func() bool) error {
	err := l.play(ctx, stop)
	if err != nil {
		l.close()
	}
	return err
}

func (l *local) play(ctx context.Context, stop func() bool) (err error) {
	if l.each == nil { // within the context that the roles begin with
		l.each = func(_, index int) {
			s := l.abreast[index]
			s.workErr = s.work(ctx)
		}
	}
	var caller *seat // who plays without a coroutine
	for i, s := range l.order {
		switch {
		case s.next != nil || s.left:
		case i == 0 && stop == nil:
			caller = s
		default:
			s.next, s.stop = iter.Pull(func(yield func(struct{}) bool) { s.play(ctx, yield) })
		}
	}
	if caller != nil {
		err = l.lead(ctx, caller)
	}
	for running := true; running && err == nil; {
		running, err = l.turn(ctx, stop)
	}
	return err
}

// lead plays a role, and gives the others their turns while it waits.
func (l *local) lead(ctx context.Context, s *seat) error {
	var failed error
	s.play(ctx, func(struct{}) bool {
		if failed == nil {
			_, failed = l.turn(ctx, nil)
		}
		return failed == nil
	})
	return cmp.Or(failed, s.player.err)
}

// turn gives a turn to each role that has a coroutine, and tells whether to go on.
func (l *local) turn(ctx context.Context, stop func() bool) (bool, error) {
	before, running := l.events, false
	for _, s := range l.order {
		if s.next != nil && !s.left && s.ready() {
			s.next()
			if err := s.player.err; err != nil {
				return false, err
			}
		}
		running = running || !s.left
	}
	if len(l.abreast) == l.parties || before == l.events { // else others may still ask, and then work beside them
		if err := l.workAbreast(ctx); err != nil {
			return false, err
		}
	}
	switch {
	case !running || stop != nil && stop():
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case before == l.events:
		return false, errors.New("protocol: every role waits for another")
	}
	return true, nil
}

// workAbreast does the work that roles wait for, each piece by one worker.
func (l *local) workAbreast(ctx context.Context) error {
	if len(l.abreast) == 0 {
		return nil
	}
	if err := l.rt.Pool().Run(ctx, len(l.abreast), l.each); err != nil {
		return err
	}
	for _, s := range l.abreast {
		s.work = nil
	}
	l.abreast = l.abreast[:0]
	l.events++
	return nil
}

// runApart gives every role a goroutine, for roles whose transports connect them,
// and returns the first error.
func (l *local) runApart(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var roles sync.WaitGroup
	for _, s := range l.order {
		roles.Go(func() {
			if err := s.player.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	roles.Wait()
	return context.Cause(ctx)
}

const (
	// deep is more stack than a role's rounds take, shallow than those without noise do.
	deep, shallow = 12 << 10, 6 << 10
	// few is how many roles get as much; of more each has what it needs.
	few = 64
)

// growStack makes room for a role's rounds at once, rather than by several copies in the first. To enter it is enough:
// the room that it would use is not cleared.
//
//go:noinline
func growStack(use bool) {
	if use {
		var room [deep]byte
		touch(room[:])
	}
}

// growHalf is growStack for rounds without noise.
//
//go:noinline
func growHalf(use bool) {
	if use {
		var room [shallow]byte
		touch(room[:])
	}
}

//go:noinline
func touch(room []byte) { room[0]++ }

// play runs the role's program. It calls pause to let others take their turns.
func (s *seat) play(ctx context.Context, pause func(struct{}) bool) {
	switch {
	case len(s.order) > few || s.role.Serves() && !s.noisy: // who only adds needs little
	case s.noisy:
		growStack(false)
	default:
		growHalf(false)
	}
	s.pause = pause
	s.player.run(ctx)
}

// close ends the programs that wait.
func (l *local) close() {
	for _, s := range l.order {
		if s.stop != nil {
			s.stop()
		}
		s.left = true
	}
}

// wait gives others their turns until there is what the role waits for.
func (s *seat) wait(ctx context.Context, what awaited) error {
	s.awaits = what
	if !s.ready() {
		for !s.ready() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !s.pause(struct{}{}) {
				return context.Canceled
			}
		}
		s.events++
	}
	s.awaits = nothing
	return nil
}

// barrier holds the role after a round until it may go on.
func (s *seat) barrier(ctx context.Context, round int) error {
	s.round = round
	return s.wait(ctx, nextRound)
}

// meet holds the party until all that have not left are here, as often. The first party goes on first, after the others
// and the servers have had their turns: what they set up is no part of its round.
func (s *seat) meet(ctx context.Context) error {
	s.met++
	s.meetings++
	s.events++
	if s.next != nil && !s.pause(struct{}{}) {
		return context.Canceled
	}
	return s.wait(ctx, theOthers)
}

// Send implements Transport.
func (s *seat) Send(_ context.Context, to Role, message []byte) error {
	other := s.at(to)
	if other == nil {
		return fmt.Errorf("protocol: %v sends to %v, who takes no part", s.role, to)
	}
	if other.mail == nil {
		other.mail = make(map[Role][][]byte)
	}
	other.mail[s.role] = append(other.mail[s.role], message)
	s.events++
	s.sent += int64(len(message))
	return nil
}

// Receive implements Transport.
func (s *seat) Receive(ctx context.Context, from Role) ([]byte, error) {
	s.from = from
	if err := s.wait(ctx, aMessage); err != nil {
		return nil, err
	}
	box := s.mail[from]
	if len(box) == 0 {
		return nil, fmt.Errorf("protocol: %v waits for a message: %v %w", s.role, from, ErrLeft)
	}
	first := box[0]
	s.mail[from] = slices.Delete(box, 0, 1) // which forgets the last place, too
	s.events++
	s.received += int64(len(first))
	return first, nil
}

// Sum implements Transport.
func (s *seat) Sum(ctx context.Context, round int, own *secagg.Masked) error {
	sum := s.place(own)
	if err := s.merge(round, sum, own); err != nil {
		return err
	}
	sum.arrived++
	s.taken++
	s.events++
	s.sent += int64(own.WireBytes())
	s.views.masked(Server, round, MaskedLocal, s.role, own)
	if s.addUp() && s.next != nil && !s.pause(struct{}{}) { // the first party goes on first
		return context.Canceled
	}
	s.sum = sum
	if err := s.wait(ctx, theSum); err != nil {
		return err
	}
	s.received += int64(sum.total.SumBytes())
	s.views.masked(s.role, round, MaskedGlobal, Server, sum.total)
	return own.CopyFrom(sum.total)
}

// outside is the round of what happens in none.
const outside = -1

// merge adds a party's vector to a sum under way.
func (s *seat) merge(round int, sum *localSum, own *secagg.Masked) error {
	if round != outside {
		span := s.rt.Follow(engine.PhaseAggregate, round, engine.Server) // the party's masking has just ended
		defer s.rt.End(span)
	}
	if sum.arrived == 0 {
		sum.total.Reset(own.Round())
	}
	return sum.total.Merge(own)
}

// place is the sum that this seat takes part in next, for vectors alike v. A party
// reads a sum before it takes part in the next one, so two places are enough.
func (s *seat) place(v *secagg.Masked) *localSum {
	at := &s.sums[s.taken%2]
	if *at == nil || (*at).done && (*at).number != s.taken {
		if *at == nil || (*at).total.Len() != v.Len() {
			*at = &localSum{total: v.Empty()}
		}
		(*at).number, (*at).arrived, (*at).done = s.taken, 0, false
	}
	return *at
}

// prepare makes room for sums of vectors alike v.
func (s *seat) prepare(v *secagg.Masked) {
	for i := range s.sums {
		if s.sums[i] == nil {
			s.sums[i] = &localSum{total: v.Empty(), number: -1, done: true}
		}
	}
}

// serve lets a server serve so many sums, until no party is left. What it adds of its own it adds when the last party
// hands its vector over, which saves a turn.
func (s *seat) serve(ctx context.Context, sums int, add func(total *secagg.Masked) error) error {
	s.adder, s.add, s.last = s, add, s.taken+min(sums, math.MaxInt-s.taken)
	s.addUp()
	err := s.wait(ctx, theEnd)
	s.adder = nil
	return cmp.Or(s.addErr, err)
}

// addUp lets the server, if it serves, return the sum under way once all vectors are there, and tells whether it did.
func (l *local) addUp() bool {
	a := l.adder
	if a == nil || l.parties == 0 || a.taken == a.last || !a.complete() {
		return false
	}
	total := l.sums[a.taken%2].total
	if a.addErr = a.add(total); a.addErr != nil {
		return false
	}
	a.giveBack(total)
	return true
}

// Collect implements Transport.
func (s *seat) Collect(ctx context.Context, _ int) (*secagg.Masked, error) {
	err := s.wait(ctx, allVectors)
	if err != nil || s.parties == 0 {
		return nil, err
	}
	return s.sums[s.taken%2].total, nil
}

// Return implements Transport.
func (s *seat) Return(_ context.Context, total *secagg.Masked) error {
	s.giveBack(total)
	return nil
}

func (s *seat) giveBack(total *secagg.Masked) {
	sum := s.sums[s.taken%2]
	s.views.masked(Server, s.taken, MaskedGlobal, Server, total)
	sum.done = true
	s.taken++
	s.events++
	s.received += int64(sum.arrived) * int64(total.WireBytes())
	s.sent += int64(sum.arrived) * int64(total.SumBytes())
}

// Abreast implements Transport.
func (s *seat) Abreast(ctx context.Context, work func(context.Context) error) error {
	s.work = work
	s.local.abreast = append(s.local.abreast, s)
	s.events++
	if err := s.wait(ctx, theWork); err != nil {
		return err
	}
	return s.workErr
}

// Leave implements Transport.
func (s *seat) Leave() {
	if s.left {
		return
	}
	s.left = true
	s.events++
	if !s.role.Serves() {
		s.parties--
		s.addUp()
	}
}

// Once implements Transport.
func (s *seat) Once(name string, round int, compute func() (any, error)) (any, error) {
	for i := range s.memo {
		m := &s.memo[i]
		if m.round != round || m.name != name {
			continue
		}
		value, err := m.value, m.err
		if m.users--; m.users <= 0 {
			last := len(s.memo) - 1
			s.memo[i], s.memo[last] = s.memo[last], memoValue{}
			s.memo = s.memo[:last]
		}
		return value, err
	}
	value, err := compute()
	if s.parties > 1 {
		s.memo = append(s.memo, memoValue{name, round, value, err, s.parties - 1})
	}
	return value, err
}

// Traffic implements Transport.
func (s *seat) Traffic() (sent, received int64) { return s.sent, s.received }
