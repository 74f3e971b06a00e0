package central

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/secagg"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// Data is what every job of this package works on.
type Data struct {
	// Clients holds each client's records on one grid; at least one client.
	Clients []dataset.Part
	// Bounds maps centroids back to the data's own units.
	Bounds dataset.Bounds
	// Labels has the true class of each row of the table, for scores; nil if
	// unknown.
	Labels []int32
	// Clamped counts coordinates that were outside the bounds.
	Clamped int
	// NoQuality leaves out what is computed from the private data.
	NoQuality bool
	// Tape makes the run one of two on neighbouring data sets, for an audit, which
	// may end after the last release, with an empty result; there are no ledger
	// entries. Edler does not use it. nil for a run of its own.
	Tape *privacy.Tape
}

// validate checks the records against k.
func (x *Data) validate(k int) error {
	if len(x.Clients) == 0 {
		return fault.Range("clients", 0, "at least 1")
	}
	n, d := 0, x.Clients[0].Points.D
	for _, p := range x.Clients {
		n += p.Points.N
		if p.Points.D != d || p.FractionBits != x.Clients[0].FractionBits {
			return fault.Request("clients", "differ in their columns or fraction bits", "normalise all parts alike")
		}
	}
	if k < 1 || k > n || k >= math.MaxUint16 {
		return fault.Range("k", k, fmt.Sprintf("1 to %d", min(n, math.MaxUint16-1)))
	}
	if len(x.Bounds.Lo) != d || len(x.Bounds.Hi) != d {
		return fault.Request("bounds", fmt.Sprintf("%d pairs for %d columns", len(x.Bounds.Lo), d), "give one pair per column")
	}
	// The largest sum: every record at length 2 sqrt d from its centroid, in one
	// cluster, on the release grid.
	return secagg.Capacity{Ring: secagg.Ring64, Records: n, PerRecord: math.Ldexp(2, releaseBits), Noise: math.Ldexp(1, 61)}.Check()
}

// records is the number of records of all clients.
func (x *Data) records() int {
	n := 0
	for _, p := range x.Clients {
		n += p.Points.N
	}
	return n
}

// session is one run: the parties' records, the noise streams and what has been
// released so far.
type session struct {
	ctx      context.Context
	rt       *engine.Runtime
	data     *Data
	parties  []dataset.Part
	n, d, k  int
	bits     int // fraction bits of the records
	streams  *privacy.Streams
	seed     *uint64
	maskSeed secagg.Seed
	ledger   *privacy.Ledger
	comm     engine.Comm
	notes    []string
	sizes    []float64 // noisy, of the last round's clusters, or on the synopsis where they are constrained
	rounds   int       // releases so far
	method   string
}

func newSession(ctx context.Context, rt *engine.Runtime, data *Data, k int, seed *uint64, delta float64) *session {
	m := len(data.Clients)
	s := &session{ctx: ctx, rt: rt, data: data, parties: data.Clients, n: data.records(), d: data.Clients[0].Points.D, k: k,
		bits: data.Clients[0].FractionBits, streams: privacy.NewStreams(seed), seed: seed, ledger: &privacy.Ledger{Delta: delta},
		comm: engine.Comm{BytesSent: make([]int64, m), BytesReceived: make([]int64, m)}}
	if data.Tape != nil && data.Tape.Records > 0 {
		s.n = data.Tape.Records
	}
	if seed == nil {
		s.maskSeed = secagg.NewSeed()
	} else {
		s.maskSeed = secagg.SeedFrom(*seed, "hybrid")
	}
	return s
}

// bound is the line of the table of calibrations for a release of the method,
// stated for adding or removing one record.
func (s *session) bound(release string, radius float64) privacy.Bound {
	b, err := privacy.At(s.method, privacy.Proven, release, privacy.Shape{D: s.d, K: s.k, Bound: 1, Radius: radius})
	if err != nil {
		panic("central: " + err.Error()) // the table lacks what the method does
	}
	return b
}

// viewers are those who see a release.
func (s *session) viewers() []string {
	if len(s.parties) == 1 {
		return []string{"outsider"}
	}
	return []string{"clients", "outsider"}
}

// noiseGroup is a run of consecutive values with one noise scale in data units.
// A value is an integer multiple of 2^-bits; it is released on the grid of
// 2^-releaseBits.
type noiseGroup struct {
	values, bits int
	scale        float64
}

// release adds up the parties' integer contributions in Z_2^64 and adds
// discrete noise: the one way in which anything computed from records leaves a
// party. Noise streams are named by purpose and round, so that the same seed
// gives the same noise on any number of workers.
// The values come back in data units.
func (s *session) release(purpose string, parts [][]int64, l law, groups []noiseGroup) ([]float64, error) {
	round := s.rounds
	s.rounds++
	stream := s.streams.Stream(engine.Server, round, purpose)
	length := len(parts[0])
	span := s.rt.Begin(engine.PhaseEncode, round, engine.Server)
	for _, p := range parts {
		at := 0
		for _, g := range groups {
			for i := at; i < at+g.values; i++ {
				p[i] <<= releaseBits - g.bits
			}
			at += g.values
		}
	}
	s.rt.End(span)
	span = s.rt.Begin(engine.PhaseNoise, round, engine.Server)
	noise := make([]int64, length)
	err := s.drawNoise(noise, stream, l, groups)
	s.rt.End(span)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, err)
	}
	if err := s.secureSum(round, parts, noise); err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, err)
	}
	if err := s.onTape(parts, noise, l, groups); err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, err)
	}
	released := make([]float64, length)
	for i, x := range noise {
		released[i] = float64(x) / (1 << releaseBits)
	}
	return released, nil
}

// searching is how hard a search on released numbers tries. What it finds is public, so to an audit of the
// releases a poor solution is as good.
func (s *session) searching() synopsis.SearchOptions {
	if s.data.Tape != nil {
		return synopsis.SearchOptions{Starts: 1, Swaps: -1}
	}
	return synopsis.SearchOptions{}
}

// onTape passes a release to the tape, group by group.
func (s *session) onTape(parts [][]int64, released []int64, l law, groups []noiseGroup) error {
	if s.data.Tape == nil {
		return nil
	}
	exact := make([]int64, len(released))
	for _, p := range parts {
		for i, x := range p {
			exact[i] += x
		}
	}
	at := 0
	for _, g := range groups {
		to := at + g.values
		if err := s.data.Tape.Release(exact[at:to], released[at:to], l.likelihood(g.scale*(1<<releaseBits))); err != nil {
			return err
		}
		at = to
	}
	return nil
}

func (s *session) drawNoise(noise []int64, stream *privacy.Stream, l law, groups []noiseGroup) error {
	var draw sampler
	at, made := 0, 0.0
	for _, g := range groups {
		if g.scale != made {
			var err error
			if draw, err = l.sampler(s.data.Tape, g.scale*(1<<releaseBits)); err != nil {
				return err
			}
			made = g.scale
		}
		draw.Fill(stream, noise[at:at+g.values])
		at += g.values
	}
	return nil
}

// secureSum adds the parties' vectors to sum, which holds the noise. One party
// adds its own; several mask theirs, a server adds the masked vectors and the
// noise, and the parties take the masks off.
func (s *session) secureSum(round int, parts [][]int64, sum []int64) error {
	if len(parts) == 1 {
		span := s.rt.Begin(engine.PhaseAggregate, round, engine.Server)
		for i, x := range parts[0] {
			sum[i] += x
		}
		s.rt.End(span)
		s.comm.Rounds++
		s.comm.BytesSent[0] += 8 * int64(len(sum))
		return nil
	}
	m, length := len(parts), len(sum)
	total, message := secagg.NewMasked(secagg.Ring64, m, length), secagg.NewMasked(secagg.Ring64, m, length)
	total.Reset(round)
	var wire []byte
	var last *secagg.Client
	for p, values := range parts {
		client, err := secagg.NewClient(s.maskSeed, secagg.Ring64, p, m, length)
		if err != nil {
			return err
		}
		span := s.rt.Begin(engine.PhaseMask, round, p)
		own := secagg.NewMasked(secagg.Ring64, m, length)
		err = client.Mask(own, round, values)
		s.rt.End(span)
		if err != nil {
			return err
		}
		wire = own.AppendWire(wire[:0])
		s.comm.BytesSent[p] += int64(len(wire))
		span = s.rt.Begin(engine.PhaseAggregate, round, engine.Server)
		if err = message.ReadFrom(wire, round, p); err == nil {
			err = total.Merge(message)
		}
		s.rt.End(span)
		if err != nil {
			return err
		}
		last = client
	}
	if err := total.Add(sum); err != nil {
		return err
	}
	wire = total.AppendSum(wire[:0])
	for p := range parts {
		s.comm.BytesReceived[p] += int64(len(wire))
	}
	s.comm.Rounds++
	// All parties unmask the same message to the same values; one does it here.
	span := s.rt.Begin(engine.PhaseUnmask, round, len(parts)-1)
	defer s.rt.End(span)
	if err := message.ReadSum(wire, round); err != nil {
		return err
	}
	return last.Unmask(sum, message)
}

// partSums makes room for one vector of integers per party.
func (s *session) partSums(n int) [][]int64 {
	parts := make([][]int64, len(s.parties))
	for p := range parts {
		parts[p] = make([]int64, n)
	}
	return parts
}

// panels returns the parties' records.
func (s *session) panels() []*kernels.Panels {
	p := make([]*kernels.Panels, len(s.parties))
	for i := range p {
		p[i] = s.parties[i].Points
	}
	return p
}
