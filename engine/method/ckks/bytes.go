package ckks

import (
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Outline implements engine.Plan: it counts the messages, too, which follow from public values.
func (pl *jobPlan) Outline() (*engine.Outline, error) {
	s, counted := newRun(pl), *pl.Plan
	var err error
	if counted.Messages, err = s.messages(); err != nil {
		return nil, err
	}
	o, err := counted.Outline()
	if err == nil {
		o.Memory = s.memory()
	}
	return o, err
}

// messages counts what the parties send each other.
func (s *run) messages() (*engine.Comm, error) {
	parties := s.job.Columns
	c := protocol.NoMessages(len(parties))
	send := func(from, to, count, bytes int) {
		c.BytesSent[from] += int64(count) * int64(wireHead+bytes)
		c.BytesReceived[to] += int64(count) * int64(wireHead+bytes)
	}
	terms, err := s.terms.marshal()
	if err != nil {
		return nil, err
	}
	x := sizes{s.params}
	rounds, rotations := s.job.rounds(), len(s.lay.shifts())
	aggregates, centroids := x.aggregates(s.job.K*(1+s.cols.d)), 4+8*s.job.K*s.cols.d
	committee := s.job.mode() == Multiparty
	for q := 1; q < len(parties); q++ {
		send(q, 0, 1, len(terms)-wireHead) // it has no head
		send(q, 0, len(parties[q]), x.column(s.lay, q == 1 && !committee))
		if committee {
			first := x.firstShare(rotations)
			send(q, 0, 1, first)
			send(0, q, 1, first)
			send(q, 0, 1, x.secondShare())
			for other := 1; other < len(parties) && s.job.threshold() < len(parties)-1; other++ {
				if other != q {
					send(q, other, 1, x.threshold())
				}
			}
			send(0, q, 1, centroids)
		} else if q > 1 {
			send(1, q, 1, x.publicKey(s.params.MaxLevel(), 0))
			send(0, q, 1, centroids)
		}
	}
	if committee {
		for _, q := range s.online {
			send(0, q, rounds, aggregates)
			send(q, 0, rounds, x.shares(s.job.K*(1+s.cols.d)))
		}
		c.Rounds = s.firstRoundStep() + 2*rounds + 1
		return c, nil
	}
	send(1, 0, 1, x.keys(rotations))
	send(0, 1, 1, centroids)
	send(0, 1, rounds, aggregates)
	send(1, 0, rounds, centroids)
	c.Rounds = 3 + 2*rounds
	if len(parties) > 2 {
		c.Rounds += 2 // the others' columns, and the centroids for them
	}
	return c, nil
}

// sizes are the lengths of messages without their heads.
type sizes struct{ p *parameters }

// polynomial is that of one modulo the primes of Q up to a level and those of P up to another, -1 for none.
func (x sizes) polynomial(levelQ, levelP int) (size int) {
	for _, q := range x.p.primes(levelQ, levelP) {
		size += packedSize(x.p.N(), q)
	}
	return size
}

const seedSize = 32

func (x sizes) switchKey(g *rns.Gadget) int {
	levelQ, levelP := (&switchKey{gadget: g}).levels()
	return seedSize + g.Digits(levelQ)*x.polynomial(levelQ, levelP)
}

func (x sizes) publicKey(levelQ, levelP int) int { return seedSize + x.polynomial(levelQ, levelP) }

func (x sizes) keys(rotations int) int {
	return x.switchKey(x.p.relin) + 4 + rotations*x.switchKey(x.p.rotation) + x.switchKey(x.p.small) +
		x.publicKey(aggregateLevel, -1)
}

// firstShare is a member's message of the first round of key generation, and the sum of all.
func (x sizes) firstShare(rotations int) int {
	return 1 + x.publicKey(x.p.MaxLevel(), 0) + x.switchKey(x.p.small) + 4 + rotations*x.switchKey(x.p.rotation) +
		2*x.switchKey(x.p.relin)
}

// secondShare is that of the second round.
func (x sizes) secondShare() int { return 1 + x.switchKey(x.p.relin) }

// column is an encrypted column, with seeds in the place of half of its polynomials or without.
func (x sizes) column(l layout, seeded bool) int {
	cipher := func(level int) int {
		if seeded {
			return 8 + seedSize + x.polynomial(level, -1)
		}
		return 8 + 2*x.polynomial(level, -1)
	}
	return 4 + 1 + seedSize + 4 + l.tops()*cipher(x.p.MaxLevel()) + 4 + l.lows()*cipher(aggregateLevel)
}

// aggregates are so many totals.
func (x sizes) aggregates(totals int) int { return 4 + 4 + totals*x.total() }

// total is one of them, with its unit.
func (x sizes) total() int { return 8 + x.small(1) + x.threshold() }

// threshold is a polynomial of the aggregates' ring.
func (x sizes) threshold() int { return x.small(x.p.N() / x.p.stride) }

// shares are the decryption shares of so many totals.
func (x sizes) shares(totals int) int { return 4 + totals*x.small(1) }

// small is the size of so many residues modulo each prime of the aggregates.
func (x sizes) small(count int) (size int) {
	for _, q := range x.p.Q()[:aggregateLevel+1] {
		size += packedSize(count, q)
	}
	return size
}
