package protocol

import (
	"context"
	"errors"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// What roles of a sum among servers see of each other.
const (
	ShareLocal  = "additive share of local values"
	ShareGlobal = "additive share of global values"
)

// amongServers adds words up over the parties under additive secret sharing (Thesis-H
// §7.3.2, FastLloyd §7.2, semi-honest): each party splits its words into uniform shares
// that add up to them in the ring, one for each server; each server adds the shares
// that it gets and its own part of the noise, and returns its share of the noisy sum to
// every party, which adds them. Buffers are written again in the next sum alone, to
// which nobody comes who has not read this one's messages.
func (p *Party) amongServers(ctx context.Context, round, number int, words, sum []int64) error {
	ring, servers := p.Plan.Capacity.Ring, p.Plan.Servers
	if p.split == nil {
		p.split = make([][]byte, servers)
	}
	span := p.Begin(engine.PhaseMask, round)
	rest := sum // what is left for the last server
	copy(rest, words)
	share := make([]int64, len(words))
	var uniform privacy.Stream
	p.Streams().Reset(&uniform, int(p.Role), number, "shares of values")
	for s := range servers - 1 {
		for i := range share {
			share[i] = int64(uniform.Uint64())
			rest[i] -= share[i]
		}
		p.split[s] = secagg.AppendWords(p.split[s][:0], ring, share)
	}
	p.split[servers-1] = secagg.AppendWords(p.split[servers-1][:0], ring, rest)
	clear(share)
	p.End(span)
	for s := range servers {
		if err := p.pass(ctx, round, ServerAt(s), ShareLocal, p.split[s]); err != nil {
			return err
		}
	}
	clear(sum)
	for s := range servers {
		b, err := p.transport.Receive(ctx, ServerAt(s))
		if err != nil {
			return err
		}
		if err := addWords(sum, ring, b); err != nil {
			return err
		}
	}
	giveSigns(sum, ring)
	return nil
}

// pass sends a part of a sum that parties make without [Transport.Sum].
func (p *Party) pass(ctx context.Context, round int, to Role, what string, message []byte) error {
	p.views.message(to, round, what, p.Role, message)
	return p.transport.Send(ctx, to, message)
}

// addWords adds a message's words, modulo the ring in the low bits.
func addWords(dst []int64, ring secagg.Ring, b []byte) error {
	if err := checkWords(len(dst), ring, b); err != nil {
		return err
	}
	secagg.AddWords(dst, ring, b)
	return nil
}

// ServeShares is the program of each of several servers that add up under secret
// sharing: it adds the shares that parties send it and, for releases whose noise is the
// servers' to draw, a share of the noise, and returns its share of the sum, until no
// party is left.
func ServeShares(ctx context.Context, p *Party) (*Outcome, error) {
	gone := make([]bool, p.Plan.Parties)
	ring := p.Plan.Capacity.Ring
	var total []int64
	var reply []byte
	for ; ; p.sums++ {
		var present []Role
		for q := range Role(p.Plan.Parties) {
			if gone[q] {
				continue
			}
			b, err := p.transport.Receive(ctx, q)
			if errors.Is(err, ErrLeft) {
				gone[q] = true
				continue
			}
			if err != nil {
				return nil, err
			}
			if length := len(b) / ring.Bytes(); len(present) == 0 {
				total = append(total[:0], make([]int64, length)...)
			}
			if err := addWords(total, ring, b); err != nil {
				return nil, fmt.Errorf("%v: %w", q, err)
			}
			present = append(present, q)
		}
		if len(present) == 0 {
			return nil, nil
		}
		if groups := p.Plan.ServerNoise; groups != nil {
			if layout := groups(p.sums); len(layout) > 0 {
				p.addNoise(p.sums, layout, total)
			}
		}
		reply = secagg.AppendWords(reply[:0], ring, total)
		for _, q := range present {
			if err := p.pass(ctx, p.sums, q, ShareGlobal, reply); err != nil {
				return nil, err
			}
		}
	}
}
