// Package virtual runs the sums of a study under virtual time: the state machines of
// package sum, with every role's work, the network between them and who drops out or is
// slow as events of a simulated clock. It says what a sum of more parties than there are
// machines would take: the time of a round, the bytes of each role, the work of servers.
//
// Above so many parties as one coordinator adds up, aggregators do it in a tree: each
// sums its own parties by the whole protocol, and those above sum the aggregators' totals,
// which are under the parties' group mask as every total is.
//
// State machines are run for the parties of whole groups, as many as Play allows; other
// groups have the sizes and the work that were measured of these, and delays, stragglers
// and drop-outs of their own.
package virtual

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine/study/sum"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// Link is the network between each party and its server.
type Link struct {
	RoundTrip time.Duration
	PerSend   time.Duration // pause before each send
	Bandwidth float64       // bits per second through a server's link, 0: unlimited
}

// End is what one end of a message costs its processor, in seconds: sealing, journal,
// encryption, system calls.
type End struct{ Message, Byte float64 }

// of is the cost of a message.
func (e End) of(bytes int) float64 { return e.Message + e.Byte*float64(bytes) }

// Transport is what ends of messages cost on machines with so many connections, in ascending
// order: the more there are, the less of each is in the processor's caches, and the less of a
// round is waiting for the last.
type Transport []Measured

// Measured is what an end costs on a machine with so many connections.
type Measured struct {
	Connections float64
	End         End
}

// with is the cost of an end on a machine with so many connections: linear in their logarithm
// between two measurements, and that of the nearest beyond them.
func (t Transport) with(connections int) End {
	n := float64(connections)
	above := slices.IndexFunc(t, func(m Measured) bool { return m.Connections >= n })
	switch {
	case len(t) == 0:
		return End{}
	case above < 0:
		return t[len(t)-1].End
	case above == 0:
		return t[0].End
	}
	few, many := t[above-1], t[above]
	at := math.Log(n/few.Connections) / math.Log(many.Connections/few.Connections)
	between := func(a, b float64) float64 { return a + (b-a)*at }
	return End{Message: between(few.End.Message, many.End.Message), Byte: between(few.End.Byte, many.End.Byte)}
}

// Simulation is a sum of Parties vectors of Words elements.
type Simulation struct {
	Parties, Words int
	// Plain leaves out the masks between pairs of parties.
	Plain bool
	// Threshold is the least share of the parties in a sum.
	Threshold float64
	// Fan is the most parties that one server sums.
	Fan       int
	Link      Link
	Transport Transport
	// Cores are the processors of a server; Shared has all roles on those of one machine.
	Cores  int
	Shared bool
	// DropOut is the share of parties that vanish in a step; Stragglers that of parties
	// whose work takes Slow times as long.
	DropOut, Stragglers, Slow float64
	// Deadline is how long a step waits.
	Deadline time.Duration
	// Play is the most parties whose state machines are run.
	Play int
	// Known, if not nil, has what groups were measured to cost in simulations of the same
	// sums, and takes what this one measures.
	Known Known
	Seed  uint64
}

// Known are the costs of groups, by their size and whether their sums are plain.
type Known map[Group]*costs

// Group is a kind of group.
type Group struct {
	Members int
	Plain   bool
}

// Report is what a sum came to.
type Report struct {
	// Round is the time until the last party has the result. Of it, Waited is what a group
	// waited for parties that had vanished, at most.
	Round, Waited time.Duration
	// Levels of servers and how many they are; Played are the parties whose state
	// machines were run.
	Levels, Servers, Played int
	// Missing are the parties that are not in the sum.
	Missing int
	// PartySent and PartyReceived are bytes of a party on average, ServerBytes those that
	// the busiest server sent and received.
	PartySent, PartyReceived, ServerBytes float64
	// Work is processor time of all servers, Most that of the busiest.
	Work, Most time.Duration
}

// Run simulates a sum, until the context ends.
func (s *Simulation) Run(ctx context.Context) (*Report, error) {
	if s.Parties < 2 || s.Fan < 2 || s.Cores < 1 || s.Words < 1 {
		return nil, fmt.Errorf("virtual: %d parties, %d for a server with %d cores, %d words",
			s.Parties, s.Fan, s.Cores, s.Words)
	}
	rng := rand.New(rand.NewPCG(s.Seed, 1))
	r := &Report{}
	sizes := split(s.Parties, s.Fan)
	ready := make([]float64, len(sizes)) // when each group's total is there
	known := s.Known
	if known == nil {
		known = make(Known)
	}
	for g, n := range sizes {
		c := s.group(ctx, n, nil, s.driver(n, s.Plain, known, r), rng, true)
		if c.err != nil {
			return nil, fmt.Errorf("virtual: group %d of %d: %w", g+1, len(sizes), c.err)
		}
		ready[g] = c.end
		r.add(c, s.Parties)
	}
	r.Levels = 1
	for len(ready) > 1 {
		var above []float64
		at := 0
		for _, n := range split(len(ready), s.Fan) {
			c := s.group(ctx, n, ready[at:at+n], s.driver(n, true, known, nil), rng, false)
			if c.err != nil {
				return nil, c.err
			}
			at += n
			above = append(above, c.end)
			r.add(c, 0)
		}
		ready = above
		r.Levels++
	}
	r.Round = seconds(ready[0] + float64(r.Levels)*s.descend())
	return r, nil
}

// split cuts n into the fewest parts of at most fan, as even as they can be.
func split(n, fan int) []int {
	parts := (n + fan - 1) / fan
	sizes := make([]int, parts)
	for i := range sizes {
		sizes[i] = n/parts + b2i(i < n%parts)
	}
	return sizes
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// ends are what a message costs a server with so many members, and one of them.
func (s *Simulation) ends(members int) (server, member End) {
	server, member = s.Transport.with(members), s.Transport.with(1)
	if s.Shared {
		member = server
	}
	return server, member
}

// descend is how long a result takes from a server to those below it.
func (s *Simulation) descend() float64 {
	n, bytes := min(s.Fan, s.Parties), 8*s.Words
	server, member := s.ends(n)
	t := s.Link.PerSend.Seconds() + s.Link.RoundTrip.Seconds()/2
	if s.Link.Bandwidth > 0 {
		t += float64(n*bytes) * 8 / s.Link.Bandwidth
	}
	work := server.of(bytes)
	if s.Shared { // else receivers have processors of their own
		work += member.of(bytes)
	}
	return t + float64(n)*work/float64(s.Cores)
}

// course is how the sum of a group went.
type course struct {
	end            float64
	sent, received float64 // of all members
	work, waited   float64 // of the server
	missing        int
	err            error
}

func (r *Report) add(c course, parties int) {
	r.Servers++
	r.Work += seconds(c.work)
	r.Most = max(r.Most, seconds(c.work))
	r.ServerBytes = max(r.ServerBytes, c.sent+c.received)
	if parties > 0 {
		r.Waited = max(r.Waited, seconds(c.waited))
		r.Missing += c.missing
		r.PartySent += c.sent / float64(parties)
		r.PartyReceived += c.received / float64(parties)
	}
}

// processors are busy until the times that they hold.
type processors []float64

// run gives a piece of work to the processor that is free first, not before a time, and
// returns when it is done.
func (p processors) run(from, work float64) float64 {
	first := 0
	for i := range p {
		if p[i] < p[first] {
			first = i
		}
	}
	p[first] = max(p[first], from) + work
	return p[first]
}

// member is one of a group.
type member struct {
	at    float64 // when it heard the last word of the server, or is ready
	slow  float64
	gone  int // step in which it vanishes
	bytes int // of its message
	there float64
}

// group plays the sum of a group whose members are ready at some times. chance says that
// its members are parties, which are slow or vanish by chance.
func (s *Simulation) group(ctx context.Context, n int, ready []float64, d driver, rng *rand.Rand,
	chance bool) (c course) {
	members, steps := make([]member, n), d.steps()
	for i := range members {
		members[i] = member{slow: 1, gone: steps}
		if ready != nil {
			members[i].at = ready[i]
		}
		if chance && rng.Float64() < s.Stragglers {
			members[i].slow = s.Slow
		}
		if chance && rng.Float64() < s.DropOut {
			members[i].gone = rng.IntN(steps)
		}
	}
	server := make(processors, s.Cores)
	ends, their := s.ends(n)
	begin := 0.0
	for step := range steps {
		on := s.speak(ctx, members, d, step, server, their)
		limit := begin + s.Deadline.Seconds()
		if ready != nil {
			limit = slices.Max(ready) + s.Deadline.Seconds()
		}
		end, wire := begin, 0.0
		for _, i := range on {
			if ctx.Err() != nil {
				break
			}
			m := &members[i]
			wire = s.transfer(max(wire, m.there), m.bytes)
			if wire > limit {
				continue // it comes too late
			}
			work := d.take(i) + ends.of(m.bytes)
			c.work += work
			c.sent += float64(m.bytes)
			end = max(end, server.run(wire, work))
		}
		if c.err = ctx.Err(); c.err != nil {
			return c
		}
		if d.waiting() > 0 {
			c.waited += max(0, limit-end)
			end = max(end, limit)
		}
		told, work, err := d.close()
		if err != nil {
			c.err = err
			return c
		}
		c.work += work
		begin = server.run(end, work)
		wire = begin
		for i := range members {
			if bytes := told(i); bytes > 0 {
				work := ends.of(bytes)
				c.work += work
				c.received += float64(bytes)
				wire = s.transfer(max(wire, server.run(begin, work)), bytes)
				members[i].at = wire + s.Link.PerSend.Seconds() + s.Link.RoundTrip.Seconds()/2
				if s.Shared {
					members[i].at = server.run(members[i].at, their.of(bytes))
				}
			}
		}
	}
	c.end, c.missing = begin, d.missing()
	c.received += float64(d.result() * (n - c.missing))
	c.work += float64(n-c.missing) * ends.of(d.result())
	return c
}

// speak has the members that are there send their messages of a step, and lists them in
// the order in which these come; end is what one costs its sender besides.
func (s *Simulation) speak(ctx context.Context, members []member, d driver, step int, server processors,
	end End) (on []int) {
	for i := range members {
		if ctx.Err() != nil {
			return nil
		}
		m := &members[i]
		if !d.expected(i) || m.gone <= step {
			continue
		}
		bytes, work := d.say(i)
		work = work*m.slow + end.of(bytes)
		if s.Shared {
			m.there = server.run(m.at, work)
		} else {
			m.there = m.at + work
		}
		m.bytes = bytes
		m.there += s.Link.PerSend.Seconds() + s.Link.RoundTrip.Seconds()/2
		on = append(on, i)
	}
	slices.SortStableFunc(on, func(a, b int) int { return cmp.Compare(members[a].there, members[b].there) })
	return on
}

// transfer is when bytes that begin at a time have passed the server's link.
func (s *Simulation) transfer(from float64, bytes int) float64 {
	if s.Link.Bandwidth > 0 {
		from += float64(bytes) * 8 / s.Link.Bandwidth
	}
	return from
}

// driver returns the machines of a group, or what is known of such.
func (s *Simulation) driver(n int, plain bool, known Known, r *Report) driver {
	key := Group{n, plain}
	if k := known[key]; k != nil && (r == nil || s.Known != nil || r.Played+n > s.Play) {
		return newRecalled(k, n, s.threshold(n, plain))
	}
	config := sum.Config{Parties: n, Threshold: s.threshold(n, plain), Ring: secagg.Ring64, Plain: plain}
	k := &costs{}
	known[key] = k
	if r != nil {
		r.Played += n
	}
	d := newPlayed(config, s.Words, k)
	if plain {
		d.warm()
	}
	return d
}

// threshold is the least number of members of a sum.
func (s *Simulation) threshold(n int, plain bool) int {
	if plain && !s.Plain {
		return n // of aggregators none may lack
	}
	return max(min(n, int(s.Threshold*float64(n)+0.999)), n/2+1)
}
