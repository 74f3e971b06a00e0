package central

import (
	"context"
	"fmt"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// session is one run: the parties' records, the noise streams and what has been
// released so far.
type session struct {
	ctx     context.Context
	rt      *engine.Runtime
	parties []dataset.Part
	n, d, k int
	bits    int // fraction bits of the records
	streams *privacy.Streams
	ledger  *privacy.Ledger
	comm    engine.Comm
	notes   []string
	rounds  int // releases so far
}

func newSession(ctx context.Context, rt *engine.Runtime, parts []dataset.Part, k int, seed *uint64, delta float64) *session {
	s := &session{ctx: ctx, rt: rt, parties: parts, d: parts[0].Points.D, k: k, bits: parts[0].FractionBits,
		streams: privacy.NewStreams(seed), ledger: &privacy.Ledger{Delta: delta},
		comm: engine.Comm{BytesSent: make([]int64, len(parts)), BytesReceived: make([]int64, len(parts))}}
	for _, p := range parts {
		s.n += p.Points.N
	}
	return s
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
	span := s.rt.Begin(engine.PhaseAggregate, s.rounds, engine.Server)
	sum := make([]int64, len(parts[0]))
	for _, p := range parts {
		for i, x := range p {
			sum[i] += x
		}
	}
	s.rt.End(span)
	span = s.rt.Begin(engine.PhaseNoise, s.rounds, engine.Server)
	defer s.rt.End(span)
	stream := s.streams.Stream(engine.Server, s.rounds, purpose)
	released := make([]float64, len(sum))
	var noise []int64
	var draw sampler
	at, made := 0, 0.0
	for _, g := range groups {
		if g.scale != made {
			var err error
			if draw, err = l.sampler(g.scale * (1 << releaseBits)); err != nil {
				return nil, fmt.Errorf("%s: %w", purpose, err)
			}
			made = g.scale
		}
		noise = slices.Grow(noise[:0], g.values)[:g.values]
		draw.Fill(stream, noise)
		for i, z := range noise {
			released[at+i] = float64(sum[at+i]<<(releaseBits-g.bits)+z) / (1 << releaseBits)
		}
		at += g.values
	}
	s.rounds++
	s.comm.Rounds++
	for p := range s.parties {
		s.comm.BytesSent[p] += 8 * int64(len(sum))
		s.comm.BytesReceived[p] += 8 * int64(len(sum))
	}
	return released, nil
}

// partSums makes room for one vector of integers per party.
func (s *session) partSums(n int) [][]int64 {
	parts := make([][]int64, len(s.parties))
	for p := range parts {
		parts[p] = make([]int64, n)
	}
	return parts
}
