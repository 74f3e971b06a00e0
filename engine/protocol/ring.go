package protocol

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// around adds words up over the parties without a server (Thesis-H §7.3.1). The
// first party that is present sends its words under a mask of its own; every other
// adds its words and passes the message on; back at the first, the mask comes off
// and the sum goes to all. A message is read before its buffer is written again,
// since nobody takes part in the next sum without this one.
func (p *Party) around(ctx context.Context, round, number int, words, sum []int64) error {
	first := p.Plan.First(round)
	next := p.Plan.neighbour(p.Role, round)
	if p.Role != first {
		b, err := p.transport.Receive(ctx, p.before(round))
		if err != nil {
			return err
		}
		if p.masked == nil || p.masked.Len() != len(words) {
			p.masked = secagg.NewMasked(p.Plan.Capacity.Ring, p.Plan.Parties, len(words))
		}
		span := p.Begin(engine.PhaseAggregate, round)
		if err = p.masked.ReadFrom(b, number, int(first)); err == nil {
			err = p.masked.Add(words)
		}
		p.End(span)
		if err != nil {
			return err
		}
		if err := p.passOn(ctx, round, next); err != nil {
			return err
		}
		if b, err = p.transport.Receive(ctx, first); err != nil {
			return err
		}
		return decodeWords(sum, p.Plan.Capacity.Ring, b)
	}
	if err := p.mask(round, number, words); err != nil {
		return err
	}
	if next != first {
		if err := p.passOn(ctx, round, next); err != nil {
			return err
		}
		b, err := p.transport.Receive(ctx, p.before(round))
		if err != nil {
			return err
		}
		if err := p.masked.ReadFrom(b, number, int(first)); err != nil {
			return err
		}
	}
	span := p.Begin(engine.PhaseUnmask, round)
	err := p.masks.Unmask(sum, p.masked)
	p.End(span)
	if err != nil {
		return err
	}
	p.passed[1] = secagg.AppendWords(p.passed[1][:0], p.Plan.Capacity.Ring, sum)
	for q := next; q != first; q = p.Plan.neighbour(q, round) {
		if err := p.pass(ctx, round, q, MaskedLocal, p.passed[1]); err != nil {
			return err
		}
	}
	return nil
}

// before is the party whose partial sum this one receives.
func (p *Party) before(round int) Role {
	q := p.Role
	for next := p.Plan.neighbour(q, round); next != p.Role; next = p.Plan.neighbour(q, round) {
		q = next
	}
	return q
}

// passOn sends the partial sum to the next party.
func (p *Party) passOn(ctx context.Context, round int, next Role) error {
	p.passed[0] = p.masked.AppendWire(p.passed[0][:0])
	return p.pass(ctx, round, next, MaskedLocal, p.passed[0])
}

// decodeWords reads a sum that is meant for everybody.
func decodeWords(dst []int64, ring secagg.Ring, b []byte) error {
	if err := checkWords(len(dst), ring, b); err != nil {
		return err
	}
	secagg.ReadWords(dst, ring, b)
	giveSigns(dst, ring)
	return nil
}

// checkWords refuses what is not the length of so many words.
func checkWords(n int, ring secagg.Ring, b []byte) error {
	if len(b) != n*ring.Bytes() {
		return fmt.Errorf("protocol: a sum of %d bytes where %d were expected", len(b), n*ring.Bytes())
	}
	return nil
}

// giveSigns makes integers of words modulo the ring.
func giveSigns(words []int64, ring secagg.Ring) {
	if ring == secagg.Ring32 {
		for i, x := range words {
			words[i] = int64(int32(uint32(x)))
		}
	}
}
