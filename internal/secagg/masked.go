package secagg

import (
	"fmt"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Masked is a vector under the masks of some clients for one round. It can be
// added to, sent and received; without the root there is no way from it to
// plain values.
type Masked struct {
	ring    Ring
	round   uint32
	clients int
	in      []bool // whose masks are in it
	count   int    // how many of in are set
	words   []uint64
}

// NewMasked returns an empty sum of vectors of length elements from clients.
func NewMasked(ring Ring, clients, length int) *Masked {
	return &Masked{ring: ring, clients: clients, in: make([]bool, clients), words: make([]uint64, length)}
}

// Len returns the number of elements.
func (m *Masked) Len() int { return len(m.words) }

// Present reports whether the vector of a client is in the sum.
func (m *Masked) Present(client int) bool { return m.in[client] }

// Reset empties the sum for a round.
func (m *Masked) Reset(round int) {
	clear(m.words)
	m.begin(round)
}

// begin is Reset where the elements are about to be read.
func (m *Masked) begin(round int) {
	clear(m.in)
	m.round, m.count = uint32(round), 0
}

// Merge adds the vector of o, whose clients must not be in m yet.
func (m *Masked) Merge(o *Masked) error {
	if err := m.alike(o.ring, o.clients, len(o.words)); err != nil {
		return err
	}
	if o.round != m.round {
		return fmt.Errorf("secagg: a message of round %d in round %d", o.round, m.round)
	}
	for i, in := range o.in {
		if in && m.in[i] {
			return fmt.Errorf("secagg: client %d is in the sum twice", i+1)
		}
	}
	for i, in := range o.in {
		m.in[i] = m.in[i] || in
	}
	m.count += o.count
	kernels.AddUint64(m.words, o.words)
	m.reduce()
	return nil
}

// Add adds plain values: the server's noise, or a client's own contribution to
// a sum that goes around a ring. Nothing but addition may happen to masked
// values (THEOREMS.md T6).
func (m *Masked) Add(values []int64) error {
	if len(values) != len(m.words) {
		return fmt.Errorf("secagg: add %d values to %d", len(values), len(m.words))
	}
	for i, v := range values {
		m.words[i] += uint64(v)
	}
	m.reduce()
	return nil
}

func (m *Masked) reduce() {
	if m.ring == Ring32 {
		for i := range m.words {
			m.words[i] &= 1<<32 - 1
		}
	}
}

func (m *Masked) alike(ring Ring, clients, length int) error {
	if ring != m.ring || clients != m.clients || length != len(m.words) {
		return fmt.Errorf("secagg: %d elements of %v from %d clients meet %d of %v from %d", length, ring, clients,
			len(m.words), m.ring, m.clients)
	}
	return nil
}

// AppendWire appends the message of one client: the elements, little-endian.
// Sender and round are known from the channel, so it has no header.
func (m *Masked) AppendWire(b []byte) []byte {
	return AppendWords(b, m.ring, m.words)
}

// AppendSum appends the server's message: the elements and, only when a client
// has failed, one bit per client that says who is in the sum.
func (m *Masked) AppendSum(b []byte) []byte {
	b = m.AppendWire(b)
	if m.count == m.clients {
		return b
	}
	for i := 0; i < m.clients; i += 8 {
		var set byte
		for j, in := range m.in[i:min(i+8, m.clients)] {
			if in {
				set |= 1 << j
			}
		}
		b = append(b, set)
	}
	return b
}

// WireBytes returns the length of a message, of the server's too while no
// client has failed.
func (m *Masked) WireBytes() int { return len(m.words) * m.ring.Bytes() }

// ReadFrom reads the message of one client in a round.
func (m *Masked) ReadFrom(b []byte, round, client int) error {
	if len(b) != m.WireBytes() {
		return badLength(len(b), m.WireBytes())
	}
	m.Reset(round)
	m.in[client], m.count = true, 1
	ReadWords(m.words, m.ring, b)
	return nil
}

// ReadSum reads the sum of a round as a client receives it from the server.
func (m *Masked) ReadSum(b []byte, round int) error {
	body := m.WireBytes()
	partial := len(b) == body+(m.clients+7)/8
	if len(b) != body && !partial {
		return badLength(len(b), body)
	}
	m.begin(round)
	ReadWords(m.words, m.ring, b)
	if !partial {
		for i := range m.in {
			m.in[i] = true
		}
		m.count = m.clients
		return nil
	}
	for i := range m.in {
		if m.in[i] = b[body+i/8]>>(i%8)&1 == 1; m.in[i] {
			m.count++
		}
	}
	return nil
}

func badLength(got, want int) error {
	return fault.Failed("message", fmt.Sprintf("has %d bytes where %d were expected", got, want), "restart the run", nil)
}

// Round returns the round that the masks belong to.
func (m *Masked) Round() int { return int(m.round) }

// Empty returns an empty sum of the same shape.
func (m *Masked) Empty() *Masked { return NewMasked(m.ring, m.clients, len(m.words)) }

// CopyFrom makes m a copy of o, which has the same shape.
func (m *Masked) CopyFrom(o *Masked) error {
	if err := m.alike(o.ring, o.clients, len(o.words)); err != nil {
		return err
	}
	copy(m.words, o.words)
	copy(m.in, o.in)
	m.round, m.count = o.round, o.count
	return nil
}

// SumBytes returns the length of the server's message (AppendSum).
func (m *Masked) SumBytes() int {
	if m.count == m.clients {
		return m.WireBytes()
	}
	return m.WireBytes() + (m.clients+7)/8
}
