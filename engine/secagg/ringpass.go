package secagg

import (
	"fmt"

	"github.com/cohort-engine/cohort/engine/fault"
)

// Trace sees every message of a protocol as it is sent: who sends (from 0), who
// receives, and the bytes, valid during the call.
type Trace func(from, to int, message []byte)

// RingPass is the serverless secure sum of Thesis-H, section 7.3.1. The first
// client that is present sends its values under a mask of its own; every other
// adds its values and passes the message on; back at the first, the mask comes
// off and the sum goes to all. Each client adds its noise to its values before.
type RingPass struct {
	ring    Ring
	clients []*Client
	message *Masked
	wire    []byte
}

// NewRingPass returns a ring of clients; seeds holds the secret of each, known
// to it alone.
func NewRingPass(seeds []Seed, ring Ring, length int) (*RingPass, error) {
	p := &RingPass{ring: ring, message: NewMasked(ring, len(seeds), length)}
	p.wire = make([]byte, 0, p.message.WireBytes())
	for i, s := range seeds {
		c, err := NewClient(s, ring, i, len(seeds), length)
		if err != nil {
			return nil, err
		}
		p.clients = append(p.clients, c)
	}
	if len(seeds) == 0 {
		return nil, fault.Request("secure sum", "there are no clients", "give at least one")
	}
	return p, nil
}

// Sum writes to dst the sum of the values of the clients that are present (nil:
// all). values[i] is what client i contributes, its noise included.
func (p *RingPass) Sum(dst []int64, round int, values [][]int64, present []bool, trace Trace) error {
	if len(values) != len(p.clients) || (present != nil && len(present) != len(p.clients)) {
		return fmt.Errorf("secagg: values of %d clients in a ring of %d", len(values), len(p.clients))
	}
	send := func(from, to int, message []byte) {
		if trace != nil {
			trace(from, to, message)
		}
	}
	first, holder := -1, -1
	for i := range p.clients {
		if present != nil && !present[i] {
			continue
		}
		if first < 0 {
			first, holder = i, i
			if err := p.clients[i].Mask(p.message, round, values[i]); err != nil {
				return err
			}
			continue
		}
		p.wire = p.message.AppendWire(p.wire[:0])
		send(holder, i, p.wire)
		if err := p.message.ReadFrom(p.wire, round, first); err != nil {
			return err
		}
		if err := p.message.Add(values[i]); err != nil {
			return err
		}
		holder = i
	}
	if first < 0 {
		return fault.Failed("secure sum", fmt.Sprintf("no client is left in round %d", round+1), "restart the run", nil)
	}
	if holder != first {
		p.wire = p.message.AppendWire(p.wire[:0])
		send(holder, first, p.wire)
		if err := p.message.ReadFrom(p.wire, round, first); err != nil {
			return err
		}
	}
	if err := p.clients[first].Unmask(dst, p.message); err != nil {
		return err
	}
	p.wire = appendPlain(p.wire[:0], p.ring, dst)
	for i := range p.clients {
		if i != first && (present == nil || present[i]) {
			send(first, i, p.wire)
		}
	}
	return nil
}

// appendPlain encodes a sum that is meant for everybody.
func appendPlain(b []byte, ring Ring, values []int64) []byte {
	for _, v := range values {
		for i := range ring.Bytes() {
			b = append(b, byte(uint64(v)>>(8*i)))
		}
	}
	return b
}
