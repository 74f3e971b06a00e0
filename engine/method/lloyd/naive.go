package lloyd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// report sends the round's sums and counts to the naive server as they are
// (Thesis-H §5.2), and takes over the centroids that it returns.
func (c *client) report(ctx context.Context, t int) error {
	if err := c.private.Fill(c.write); err != nil {
		return err
	}
	own, err := c.party.Own(c.Plan.release, t, c.layout(t), c.private)
	if err != nil {
		return err
	}
	message := make([]byte, 0, 8*len(own))
	for _, x := range own {
		message = binary.LittleEndian.AppendUint64(message, uint64(x))
	}
	if err := c.party.Send(ctx, c.Plan.release, protocol.Server, message); err != nil {
		return err
	}
	if message, err = c.party.Receive(ctx, protocol.Server); err != nil {
		return err
	}
	copy(c.previous, c.centroids)
	if err := c.take(message); err != nil {
		return err
	}
	c.rests = c.still()
	return nil
}

// encodeCentroids encodes centroids as they are.
func encodeCentroids(x []float64) []byte {
	b := make([]byte, 0, 8*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// decodeCentroids reads what encodeCentroids wrote, of as many numbers as x has.
func decodeCentroids(x []float64, message []byte) error {
	if len(message) != 8*len(x) {
		return fmt.Errorf("lloyd: %d bytes of centroids, want %d", len(message), 8*len(x))
	}
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(message[8*i:]))
		if math.IsNaN(x[i]) || math.IsInf(x[i], 0) {
			return errors.New("lloyd: a centroid of the message is no number")
		}
	}
	return nil
}

// take makes the centroids of a message the model's.
func (m *model) take(message []byte) error {
	if err := decodeCentroids(m.centroids, message); err != nil {
		return err
	}
	m.setGrid()
	return nil
}

// naiveServer adds up what clients send in the clear and computes the centroids:
// the protocol that the others improve on.
type naiveServer struct {
	*Plan
	*model
	words []int64
}

func newNaiveServer(p *Plan) *naiveServer {
	return &naiveServer{Plan: p, words: make([]int64, p.length)}
}

// run is the server's program.
func (s *naiveServer) run(ctx context.Context, party *protocol.Party) (*protocol.Outcome, error) {
	s.model = newModel(s.Plan)
	if err := s.begin(ctx, party); err != nil {
		return nil, err
	}
	for t, stop := 0, false; t < s.rounds && !stop; t++ {
		if err := s.collect(ctx, party, t); err != nil {
			return nil, err
		}
		span := party.Begin(engine.PhasePostprocess, t)
		s.update(t, s.words)
		party.End(span)
		message := encodeCentroids(s.centroids)
		for q := range protocol.Role(s.m) {
			if !s.Present(q, t) {
				continue
			}
			if err := party.Send(ctx, s.Plan.release, q, message); err != nil {
				return nil, err
			}
		}
		stop = s.still()
	}
	return protocol.Serve(ctx, party) // the quality
}

// begin sets the first centroids.
func (s *naiveServer) begin(ctx context.Context, party *protocol.Party) error {
	if s.drawn != nil {
		first, err := s.sendStart(ctx, party)
		copy(s.centroids, first)
		s.setGrid()
		return err
	}
	if s.seeds == nil {
		copy(s.centroids, s.first(party))
		s.setGrid()
		return nil
	}
	if err := protocol.ServeSums(ctx, party, s.seedSums()); err != nil {
		return err
	}
	message, err := party.Receive(ctx, s.First(0))
	if err != nil {
		return err
	}
	return s.take(message)
}

// collect adds up what the clients report of a round.
func (s *naiveServer) collect(ctx context.Context, party *protocol.Party, t int) error {
	clear(s.words)
	for q := range protocol.Role(s.m) {
		if !s.Present(q, t) {
			continue
		}
		message, err := party.Receive(ctx, q)
		if err != nil {
			return err
		}
		if len(message) != 8*len(s.words) {
			return fmt.Errorf("lloyd: %d bytes of sums from %s, want %d", len(message), clientName(int(q)),
				8*len(s.words))
		}
		for i := range s.words {
			s.words[i] += int64(binary.LittleEndian.Uint64(message[8*i:]))
		}
	}
	return nil
}
