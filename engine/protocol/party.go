package protocol

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/secagg"
	"github.com/cohort-engine/cohort/internal/secret"
)

// Party is what one role has besides its records: the plan, randomness of its
// own, and its end of the transport.
type Party struct {
	Role Role
	Plan *Plan
	// Public is randomness that everybody knows.
	Public *privacy.Streams
	// Group is randomness that the parties share and the server lacks; nil there.
	Group *privacy.Streams
	// Replay makes the run one of two on neighbouring data sets, for an audit.
	Replay *privacy.Replay

	rt        *engine.Runtime
	transport Transport
	own       secret.Root // of all that is the role's own; see root
	streams   *privacy.Streams
	common    *shared
	maskRoot  secret.Root // the parties', or the party's own of a ring; zero at the server
	views     *Views
	draws     *Draws

	made     []int    // by release: rounds up to here are over
	asked    *Release // of the last Show
	outside  bool     // outsiders see it
	booked   []booking
	sums     int // so far, at the server of those that it served: a mask is never used twice
	noise    []int64
	exact    *exactSum
	ended    int // rounds
	stream   privacy.Stream
	masks    *secagg.Client
	masked   *secagg.Masked
	passed   [2][]byte  // a ring's messages: the partial sum and the sum
	split    [][]byte   // shares of the values, by server
	plain    [2][]int64 // unmasked sums of this round and the last
	unmask   func() (any, error)
	unmasked int // round of unmask
	rounds   int // of communication
	// published counts the bytes of what a party alone releases.
	published int64
	// uncounted are bytes sent and received that measure the result.
	uncounted [2]int64
	measures  bool // the release under way does
	single    bool // no other role is in this process
	notes     []string
	seen      engine.Seen // of the round under way
	start     int         // that its rounds go on from, of several
	seat      *seat       // where the roles of this process take turns, else nil
}

// exactSum gathers, for a replay alone, what the parties' vectors add up to.
type exactSum struct {
	words []int64
}

// Pool is the engine's workers.
func (p *Party) Pool() *engine.Pool { return p.rt.Pool() }

// Begin starts a span of a phase of this role; End ends it. What measures the
// result is no phase of it.
func (p *Party) Begin(phase engine.Phase, round int) engine.Span {
	if p.measures {
		return engine.Span{}
	}
	return p.rt.Begin(phase, round, max(int(p.Role), engine.Server))
}

// Follow is Begin where a phase of the role, or one that it waited for, has just ended.
func (p *Party) Follow(phase engine.Phase, round int) engine.Span {
	if p.seat == nil || p.measures { // others' phases may have ended since
		return p.Begin(phase, round)
	}
	return p.rt.Follow(phase, round, max(int(p.Role), engine.Server))
}

// Abreast runs work of this role's own on one worker, at the same time as the
// other roles of this process that call it.
func (p *Party) Abreast(ctx context.Context, work func(context.Context) error) error {
	return p.transport.Abreast(ctx, work)
}

// End ends a span.
func (p *Party) End(s engine.Span) {
	if !p.measures {
		p.rt.End(s)
	}
}

// Note adds a remark for the reader of the result: a function of released and
// public values.
func (p *Party) Note(format string, args ...any) {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	p.notes = append(p.notes, format)
}

// Observed tells whether what is given to Show reaches anybody.
func (p *Party) Observed() bool { return p.rt.Observed() }

// Tries tells observers of a run that is not private that the rounds from here on go on from the given one,
// from 1, of several first centroids.
func (p *Party) Tries(start int) { p.start = start }

// Show lets observers see the centroids of a round, K rows of D in the normalised box, that
// were computed from release r and public values, and the loss of those before (NaN if it
// is unknown). In a private run they reach them only if outsiders see all that the release
// shows unmasked, and no loss does.
func (p *Party) Show(r *Release, centroids []float64, loss float64) {
	if !p.rt.Observed() {
		return
	}
	p.seen = engine.Seen{Centroids: centroids, Loss: loss, Start: p.start}
	if !p.Plan.Private {
		return
	}
	p.seen.Loss, p.seen.Start = math.NaN(), 0
	if p.asked != r {
		p.asked, p.outside = r, !slices.ContainsFunc(r.Entries, func(e privacy.Entry) bool {
			return e.Mechanism != "mask" && !slices.Contains(e.Viewers, privacy.Outsider)
		})
	}
	if !p.outside {
		p.seen.Centroids = nil
	}
}

// Ready says that the role has set up for rounds that make release r, and waits until the other parties of this process
// have: what one sets up is no part of another's rounds.
func (p *Party) Ready(ctx context.Context, r *Release) error {
	if p.Plan.Coordinated && r.Words > 0 {
		if err := p.makeMasks(r.Words); err != nil {
			return err
		}
		if p.seat != nil {
			p.seat.prepare(p.masked)
		}
		if p.sums == 0 && (p.seat == nil || p.Role == p.Plan.First(0)) { // who unmasks, for all that take turns
			room := make([]int64, 2*r.Words)
			p.plain = [2][]int64{room[:r.Words:r.Words], room[r.Words:]}
		}
	}
	if r.drawnByParties() {
		p.Streams()
		p.noiseRoom(r.Words)
	}
	return p.Meet(ctx)
}

// Meet waits until the other parties of this process are here too: the time of what one does next is no part of
// a round that another has not ended.
func (p *Party) Meet(ctx context.Context) error {
	if p.seat == nil {
		return nil
	}
	return p.seat.meet(ctx)
}

// EndRound says that the role has ended a round; of all rounds, if known, total. The first party's round is the run's:
// it goes on to the next one before the others have their turns.
func (p *Party) EndRound(ctx context.Context, round, total int) error {
	if p.single || p.Role == p.Plan.First(round) {
		p.rt.IterationEnd(round, total, p.seen)
	}
	p.seen = engine.Seen{Loss: math.NaN()}
	p.ended = round + 1
	if p.seat == nil {
		return nil
	}
	return p.seat.barrier(ctx, round)
}

// admit checks that the plan has a release and that it was not made in this round
// or a later one, and that the layout fits the vector.
func (p *Party) admit(r *Release, round int, groups []Group, length int) error {
	if r.index >= len(p.Plan.Releases) || p.Plan.Releases[r.index] != r {
		return fmt.Errorf("protocol: %s is not in the plan", r.Name)
	}
	if round < p.made[r.index] {
		return fmt.Errorf("protocol: %s of round %d was released before", r.Name, round+1)
	}
	p.made[r.index] = round + 1
	values := 0
	for _, g := range groups {
		values += g.Values
		if (g.Noise == nil) != (r.Makers == Nobody) {
			return fmt.Errorf("protocol: %s has noise where the plan has none, or none where it has", r.Name)
		}
	}
	if values != length {
		return fmt.Errorf("protocol: %s has %d values for %d", r.Name, length, values)
	}
	return nil
}

// encode brings a vector onto the release's grid.
func (p *Party) encode(round int, groups []Group, words []int64) {
	span := p.Follow(engine.PhaseEncode, round) // what the vector is filled with
	at := 0
	for _, g := range groups {
		if g.Shift > 0 {
			for i := at; i < at+g.Values; i++ {
				words[i] <<= g.Shift
			}
		}
		at += g.Values
	}
	p.End(span)
}

// draw fills noise for a release, in streams of this role.
func (p *Party) draw(round int, groups []Group, noise []int64) {
	span := p.Follow(engine.PhaseNoise, round) // encoding, or the last party's vector
	at := 0
	for _, g := range groups {
		p.resume(round, g.Stream)
		g.Noise.sampler.Fill(&p.stream, noise[at:at+g.Values])
		p.draws.record(Draw{Role: p.Role, Round: round, Stream: g.Stream, Noise: g.Noise.Noise,
			Values: noise[at : at+g.Values]})
		at += g.Values
	}
	p.End(span)
}

// Sum makes a release of the sum of all parties' vectors: it brings own onto the
// release's grid, adds this party's noise if it is one of its makers, adds up over
// the transport under masks, and returns the noisy sum, valid until the second
// Sum after this one. All parties call it alike; nobody may change the result.
func (p *Party) Sum(ctx context.Context, r *Release, round int, groups []Group, own *Private) ([]int64, error) {
	if err := p.admit(r, round, groups, own.len()); err != nil {
		return nil, err
	}
	words := own.words
	p.measures = r.Uncovered
	p.encode(round, groups, words)
	p.views.values(p.Role, round, r.Name, p.Role, words)
	p.gather(words)
	if r.drawnByParties() {
		p.addNoise(round, groups, words)
	}
	at := round
	if r.Before {
		at = 0
	}
	var sum []int64
	var err error
	if r.Uncovered {
		sum, err = p.addUncounted(ctx, at, words)
	} else if err = p.tell(ctx, round, groups); err == nil {
		sum, err = p.add(ctx, at, words)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name, err)
	}
	p.views.values(p.Role, round, r.Name, Server, sum)
	return sum, p.replay(r, groups, sum)
}

// tell lets party 1 tell the server the noise of a sum, where layouts follow from
// other releases.
func (p *Party) tell(ctx context.Context, round int, groups []Group) error {
	if !p.Plan.tellsNoise || p.Role != 0 {
		return nil
	}
	return p.transport.Send(ctx, Server, encodeGroups(round, groups))
}

// noiseRoom is where n values of noise go.
func (p *Party) noiseRoom(n int) []int64 {
	if cap(p.noise) < n {
		p.noise = make([]int64, n)
	}
	return p.noise[:n]
}

func (p *Party) addNoise(round int, groups []Group, words []int64) {
	noise := p.noiseRoom(len(words))
	p.draw(round, groups, noise)
	for i, x := range noise {
		words[i] += x
	}
	clear(noise)
}

// forget clears what the role kept from others, after the last round.
func (p *Party) forget() {
	clear(p.noise)
	for _, b := range p.split {
		clear(b)
	}
	if p.masks != nil {
		p.masks.Forget()
	}
}

// addUncounted is add for what measures the result.
func (p *Party) addUncounted(ctx context.Context, round int, words []int64) ([]int64, error) {
	rounds, published := p.rounds, p.published
	sent, received := p.transport.Traffic()
	if err := p.tell(ctx, round, nil); err != nil {
		return nil, err
	}
	sum, err := p.add(ctx, round, words)
	p.measures, p.rounds, p.published = false, rounds, published
	s, r := p.transport.Traffic()
	p.uncounted[0] += s - sent
	p.uncounted[1] += r - received
	return sum, err
}

// add adds words up over the parties.
func (p *Party) add(ctx context.Context, round int, words []int64) ([]int64, error) {
	number := p.sums
	p.sums++
	p.rounds++
	switch {
	case p.Plan.Servers > 0:
		sum := *p.room(len(words))
		return sum, p.amongServers(ctx, round, number, words, sum)
	case p.Plan.Ring:
		sum := *p.room(len(words))
		return sum, p.around(ctx, round, number, words, sum)
	case !p.Plan.Coordinated:
		span := p.Begin(engine.PhaseAggregate, round)
		sum := *p.room(len(words))
		copy(sum, words)
		p.published += int64(len(words) * p.Plan.Capacity.Ring.Bytes())
		p.End(span)
		return sum, nil
	}
	if err := p.mask(round, number, words); err != nil {
		return nil, err
	}
	if p.measures {
		round = outside
	}
	if err := p.transport.Sum(ctx, round, p.masked); err != nil {
		return nil, err
	}
	p.unmasked = round
	sum, err := p.transport.Once("unmask", number, p.unmask)
	if err != nil {
		return nil, err
	}
	return *sum.(*[]int64), nil
}

// room is where the sum under way goes; the one before stays.
func (p *Party) room(length int) *[]int64 {
	sum := &p.plain[p.sums%2]
	if len(*sum) != length {
		*sum = make([]int64, length)
	}
	return sum
}

// makeMasks makes room for vectors of a length under masks, if there is none.
func (p *Party) makeMasks(length int) error {
	if p.masks != nil && p.masked.Len() == length {
		return nil
	}
	ring, m := p.Plan.Capacity.Ring, p.Plan.Parties
	key, err := p.common.maskKey(p.maskRoot, ring, length)
	if err == nil {
		p.masks, err = key.Client(int(p.Role), m)
	}
	p.masked = secagg.NewMasked(ring, m, length)
	if p.unmask == nil {
		p.unmask = p.unmaskSum
	}
	return err
}

// unmaskSum unmasks what the server returned.
func (p *Party) unmaskSum() (any, error) {
	span := p.Follow(engine.PhaseUnmask, p.unmasked)
	sum := p.room(p.masked.Len())
	err := p.masks.Unmask(*sum, p.masked)
	p.End(span)
	return sum, err
}

func (p *Party) mask(round, number int, words []int64) error {
	span := p.Follow(engine.PhaseMask, round)
	defer p.End(span)
	if err := p.makeMasks(len(words)); err != nil {
		return err
	}
	return p.masks.Mask(p.masked, number, words)
}

// Own makes a release of this party's own vector, with its own noise: it returns
// the noisy values, which may leave the party. Others learn them by Send.
func (p *Party) Own(r *Release, round int, groups []Group, own *Private) ([]int64, error) {
	if err := p.admit(r, round, groups, own.len()); err != nil {
		return nil, err
	}
	if r.Makers != Holder && r.Makers != Nobody {
		return nil, fmt.Errorf("protocol: %s is no release of one party", r.Name)
	}
	words := own.words
	p.encode(round, groups, words)
	exact := words
	if p.Replay != nil {
		exact = append([]int64(nil), words...)
	}
	if r.Makers == Holder {
		p.addNoise(round, groups, words)
	}
	out := append([]int64(nil), words...)
	p.views.values(p.Role, round, r.Name, p.Role, out)
	return out, p.onReplay(groups, exact, out)
}

// gather keeps the exact sum for a replay.
func (p *Party) gather(words []int64) {
	if p.Replay == nil {
		return
	}
	if len(p.exact.words) != len(words) {
		p.exact.words = make([]int64, len(words))
	}
	for i, x := range words {
		p.exact.words[i] += x
	}
}

// replay passes a release to the replay, once for all parties, and all go on with what that makes of it: among servers
// each has added it up in a vector of its own.
func (p *Party) replay(r *Release, groups []Group, sum []int64) error {
	if p.Replay == nil || r.Makers == Nobody {
		return nil
	}
	released, err := p.transport.Once("replay", p.sums, func() (any, error) {
		err := p.onReplay(groups, p.exact.words, sum)
		clear(p.exact.words)
		return sum, err
	})
	if err == nil {
		copy(sum, released.([]int64))
	}
	return err
}

func (p *Party) onReplay(groups []Group, exact, released []int64) error {
	at := 0
	for _, g := range groups {
		to := at + g.Values
		if g.Noise != nil {
			if err := p.Replay.Release(exact[at:to], released[at:to], g.Noise.likelihood()); err != nil {
				return err
			}
		}
		at = to
	}
	return nil
}

// Book replaces the planned ledger entries of a release by what it came to, which
// may cost less but not more.
func (p *Party) Book(r *Release, entries ...privacy.Entry) error {
	if p.Replay != nil {
		return nil // pricing the entries would cost more than the run
	}
	if err := costsMore(r.Entries, entries); err != nil {
		return err
	}
	p.booked = append(p.booked, booking{r, entries})
	return nil
}

// booking is what a release came to.
type booking struct {
	release *Release
	entries []privacy.Entry
}

// Send gives another role bytes that belong to a release of the plan: computed
// from what came out of the gate, encrypted, or, where the release is exact,
// exact.
func (p *Party) Send(ctx context.Context, r *Release, to Role, message []byte) error {
	if r.index >= len(p.Plan.Releases) || p.Plan.Releases[r.index] != r {
		return fmt.Errorf("protocol: %s is not in the plan", r.Name)
	}
	p.views.message(to, p.ended, r.Name, p.Role, message)
	return p.transport.Send(ctx, to, message)
}

// Receive waits for the next message of another role.
func (p *Party) Receive(ctx context.Context, from Role) ([]byte, error) {
	if from == Server {
		p.rounds++
	}
	return p.transport.Receive(ctx, from)
}

// Same is Once for rounds, which allocate nothing: what it returns may be another role's, and changes when that role
// goes on from the next sum.
func (p *Party) Same(name string, round int, compute func() (any, error)) (any, error) {
	return p.transport.Once(name, round, compute)
}

// Once returns what compute makes of public values, the same at every role.
func Once[T any](p *Party, name string, round int, compute func() (T, error)) (T, error) {
	v, err := p.Same(name, round, func() (any, error) { return compute() })
	if err != nil {
		var none T
		return none, err
	}
	return v.(T), nil
}

// Serve is the server's program for methods whose parties meet in sums alone:
// it adds up masked vectors, adds the noise that is the server's to draw, and
// returns the sum, until no party is left.
func Serve(ctx context.Context, p *Party) (*Outcome, error) {
	return nil, ServeSums(ctx, p, math.MaxInt)
}

// ServeSums is Serve for the next so many sums.
func ServeSums(ctx context.Context, p *Party, sums int) error {
	if p.seat != nil && !p.Plan.tellsNoise {
		round, groups, err := p.noiseOf(ctx, p.sums)
		if err != nil {
			return err
		}
		return p.seat.serve(ctx, sums, func(total *secagg.Masked) (err error) {
			if err = p.addDrawn(round, groups, total); err == nil {
				p.sums++
				round, groups, err = p.noiseOf(ctx, p.sums)
			}
			return err
		})
	}
	for end := p.sums + min(sums, math.MaxInt-p.sums); p.sums < end; p.sums++ {
		round, groups, err := p.noiseOf(ctx, p.sums)
		if err != nil {
			return err
		}
		total, err := p.transport.Collect(ctx, p.sums)
		if err != nil || total == nil {
			return err
		}
		if err := p.addDrawn(round, groups, total); err != nil {
			return err
		}
		if err := p.transport.Return(ctx, total); err != nil {
			return err
		}
	}
	return nil
}

// addDrawn adds the noise that the server draws to a sum.
func (p *Party) addDrawn(round int, groups []Group, total *secagg.Masked) error {
	if len(groups) == 0 {
		return nil
	}
	noise := p.noiseRoom(total.Len())
	p.draw(round, groups, noise)
	err := total.Add(noise)
	clear(noise)
	return err
}

// noiseOf is the noise that the server draws for the t-th sum, none if it draws
// none or party 1, who would tell it, has left. It sets up for it, which is no part of the round.
func (p *Party) noiseOf(ctx context.Context, t int) (round int, groups []Group, err error) {
	switch {
	case p.Plan.ServerNoise != nil:
		round, groups = t, p.Plan.ServerNoise(t)
	case p.Plan.tellsNoise:
		told, err := p.transport.Receive(ctx, 0)
		if errors.Is(err, ErrLeft) {
			return 0, nil, nil
		}
		if err == nil {
			round, groups, err = decodeGroups(told)
		}
		if err != nil {
			return 0, nil, err
		}
	}
	if len(groups) > 0 {
		p.Streams()
		p.noiseRoom(valuesOf(groups))
	}
	return round, groups, nil
}
