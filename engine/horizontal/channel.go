package horizontal

import (
	"encoding/binary"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/secagg"
)

// channel carries a round's messages: it takes the clients' words and leaves the
// noisy sum, as every client reads it, in the session's words. It counts the
// bytes of the encoded messages.
type channel struct {
	s    *Session
	ring secagg.Ring

	// masks counts the exchanges: it numbers the masks, which are never used twice,
	// not even after a Rewind.
	masks int

	// By server.
	clients []*secagg.Client
	message *secagg.Masked // what the server reads from a client
	total   *secagg.Masked // the server's sum
	back    *secagg.Masked // what a client reads from the server
	wire    []byte

	// By ring.
	pass    *secagg.RingPass
	values  [][]int64
	present []bool
	trace   secagg.Trace
	round   int
}

func newChannel(s *Session) (*channel, error) {
	ring, err := secagg.ParseRing(s.job.RingBits)
	if err != nil {
		return nil, err
	}
	ch := &channel{s: s, ring: ring, message: secagg.NewMasked(ring, s.m, s.length),
		total: secagg.NewMasked(ring, s.m, s.length), back: secagg.NewMasked(ring, s.m, s.length)}
	ch.wire = make([]byte, 0, ch.message.WireBytes()+(s.m+7)/8)
	if s.job.Aggregator == ByRing {
		seeds := make([]secagg.Seed, s.m)
		for i := range seeds {
			seeds[i] = s.maskSeed(fmt.Sprintf("client %d", i))
		}
		ch.values, ch.present = make([][]int64, s.m), make([]bool, s.m)
		ch.trace = ch.passed
		ch.pass, err = secagg.NewRingPass(seeds, ring, s.length)
		return ch, err
	}
	shared := s.maskSeed("clients")
	for i := range s.m {
		c, err := secagg.NewClient(shared, ring, i, s.m, s.length)
		if err != nil {
			return nil, err
		}
		ch.clients = append(ch.clients, c)
	}
	return ch, nil
}

// maskSeed is a mask secret: of a simulation with a seed, else random.
func (s *Session) maskSeed(purpose string) secagg.Seed {
	if s.job.Seed == nil {
		return secagg.NewSeed()
	}
	return secagg.SeedFrom(*s.job.Seed, purpose)
}

// exchange runs the communication of round t.
func (ch *channel) exchange(t int) error {
	s := ch.s
	ch.seeLocals(t)
	var err error
	switch s.job.Aggregator {
	case ByRing:
		err = ch.around(t)
	case Naive:
		ch.plain(t)
	default:
		err = ch.throughServer(t)
	}
	s.comm.Rounds++
	ch.masks++
	ch.seeGlobals(t)
	return err
}

// throughServer is masked secure aggregation (FastLloyd Figure 2). The unmasking
// that every client does is done once, by the first one present.
func (ch *channel) throughServer(t int) error {
	s := ch.s
	ch.total.Reset(ch.masks)
	first := -1
	for _, c := range s.clients {
		if c.gone {
			continue
		}
		if first < 0 {
			first = c.index
		}
		span := s.rt.Begin(engine.PhaseMask, t, c.index)
		err := ch.clients[c.index].Mask(ch.message, ch.masks, c.words)
		ch.wire = ch.message.AppendWire(ch.wire[:0])
		s.rt.End(span)
		if err != nil {
			return err
		}
		s.comm.BytesSent[c.index] += int64(len(ch.wire))
		s.job.Transcript.message(engine.Server, t, MaskedLocal, c.index, ch.wire)
		span = s.rt.Begin(engine.PhaseAggregate, t, engine.Server)
		if err = ch.message.ReadFrom(ch.wire, ch.masks, c.index); err == nil {
			err = ch.total.Merge(ch.message)
		}
		s.rt.End(span)
		if err != nil {
			return err
		}
	}
	if s.job.Algorithm.Private() && s.job.Noise == ByTheServer {
		span := s.rt.Begin(engine.PhaseNoise, t, engine.Server)
		s.draw(&s.stream, engine.Server, t, s.noise)
		err := ch.total.Add(s.noise)
		s.rt.End(span)
		if err != nil {
			return err
		}
	}
	ch.wire = ch.total.AppendSum(ch.wire[:0])
	s.job.Transcript.message(engine.Server, t, MaskedGlobal, engine.Server, ch.wire)
	for _, c := range s.clients {
		if !c.gone {
			s.comm.BytesReceived[c.index] += int64(len(ch.wire))
			s.job.Transcript.message(c.index, t, MaskedGlobal, engine.Server, ch.wire)
		}
	}
	span := s.rt.Begin(engine.PhaseUnmask, t, first)
	defer s.rt.End(span)
	if err := ch.back.ReadSum(ch.wire, ch.masks); err != nil {
		return err
	}
	return ch.clients[first].Unmask(s.words, ch.back)
}

// around is the ring-pass secure sum (Thesis-H §7.3.1).
func (ch *channel) around(t int) error {
	s := ch.s
	for i, c := range s.clients {
		ch.values[i], ch.present[i] = c.words, !c.gone
	}
	ch.round = t
	span := s.rt.Begin(engine.PhaseAggregate, t, engine.Server)
	defer s.rt.End(span)
	return ch.pass.Sum(s.words, ch.masks, ch.values, ch.present, ch.trace)
}

// passed counts and records one message of the ring. Messages to clients behind
// the first one carry its mask; those back from it are the noisy sum.
func (ch *channel) passed(from, to int, message []byte) {
	s := ch.s
	s.comm.BytesSent[from] += int64(len(message))
	s.comm.BytesReceived[to] += int64(len(message))
	s.job.Transcript.message(to, ch.round, MaskedLocal, from, message)
}

// plain sends every client's values to the server as they are (Thesis-H §5.2),
// which returns the centroids.
func (ch *channel) plain(t int) {
	s := ch.s
	clear(s.words)
	for _, c := range s.clients {
		if c.gone {
			continue
		}
		ch.wire = ch.wire[:0]
		for i, v := range c.words {
			s.words[i] += v
			ch.wire = binary.LittleEndian.AppendUint64(ch.wire, uint64(v))
		}
		s.comm.BytesSent[c.index] += int64(len(ch.wire))
	}
}

// broadcast sends the centroids that a naive server computed to the clients.
func (ch *channel) broadcast(t int) {
	s := ch.s
	ch.wire = ch.wire[:0]
	for i, x := range s.centroids {
		s.words[i] = int64(x * s.scale)
		ch.wire = binary.LittleEndian.AppendUint64(ch.wire, uint64(s.words[i]))
	}
	s.job.Transcript.values(engine.Server, t, GlobalCentroids, engine.Server, s.words[:s.k*s.d])
	for _, c := range s.clients {
		if !c.gone {
			s.comm.BytesReceived[c.index] += int64(len(ch.wire))
			s.job.Transcript.values(c.index, t, GlobalCentroids, engine.Server, s.words[:s.k*s.d])
		}
	}
}

// seeLocals records what each client knows of itself, and what a naive server
// is told.
func (ch *channel) seeLocals(t int) {
	s := ch.s
	if s.job.Transcript == nil {
		return
	}
	for _, c := range s.clients {
		if c.gone {
			continue
		}
		viewers := []int{c.index}
		if s.job.Aggregator == Naive {
			viewers = append(viewers, engine.Server)
		}
		for _, v := range viewers {
			s.job.Transcript.values(v, t, LocalSums, c.index, c.acc.Sums)
			s.job.Transcript.values(v, t, LocalCounts, c.index, c.acc.Counts)
		}
	}
}

// seeGlobals records what comes out of the round and who can read it.
func (ch *channel) seeGlobals(t int) {
	s := ch.s
	if s.job.Transcript == nil {
		return
	}
	see := func(viewer int) {
		if s.job.Release == Centroid {
			s.job.Transcript.values(viewer, t, GlobalCentroids, engine.Server, s.words)
			return
		}
		kd := s.k * s.d
		s.job.Transcript.values(viewer, t, GlobalSums, engine.Server, s.words[:kd])
		s.job.Transcript.values(viewer, t, GlobalCounts, engine.Server, s.words[kd:])
	}
	if s.job.Aggregator == Naive {
		see(engine.Server)
		return
	}
	for _, c := range s.clients {
		if !c.gone {
			see(c.index)
		}
	}
}
