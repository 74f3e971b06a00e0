package secagg

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Client is one client's end: it knows the root of the masks.
type Client struct {
	key            *Key
	index, clients int
	// own is this client's mask of round ownRound, kept from Mask to Unmask.
	own       []byte
	ownRound  int64
	ownStream stream
	// What an end that unmasks needs besides: room, and the streams of the others.
	pad     []byte
	scratch []uint64
	others  []stream
}

// Client returns client index (from 0) of clients.
func (k *Key) Client(index, clients int) (*Client, error) {
	if clients < 1 || index < 0 || index >= clients {
		return nil, fault.Request("secure aggregation", fmt.Sprintf("there is no client %d among %d", index+1, clients),
			"give at least one client")
	}
	return &Client{key: k, index: index, clients: clients, ownRound: -1}, nil
}

// Mask sets dst to values under this client's mask of a round. Two different
// vectors must never be masked for the same round.
func (c *Client) Mask(dst *Masked, round int, values []int64) error {
	if err := dst.alike(c.key.ring, c.clients, len(values)); err != nil {
		return err
	}
	if len(values) != c.key.length {
		return fmt.Errorf("secagg: mask %d elements of %d", len(values), c.key.length)
	}
	if round < 0 || int64(round) > math.MaxUint32 {
		return fmt.Errorf("secagg: round %d is not 0 to 2^32-1", round)
	}
	if c.own == nil {
		c.own = c.key.pad()
	}
	dst.begin(round)
	for i, v := range values {
		dst.words[i] = uint64(v)
	}
	c.ownStream.mask(c.own, c.key, dst.round, c.index)
	c.ownRound = int64(round)
	addPad(c.key.ring, dst.words, c.own)
	dst.in[c.index], dst.count = true, 1
	return nil
}

// Forget clears the masks that the client has made, and what was under them: nothing is masked any more.
func (c *Client) Forget() {
	clear(c.own)
	clear(c.pad)
	clear(c.scratch)
	c.ownRound = -1
}

// Unmask writes the plain sum to dst: it takes off the masks of the clients
// that are in m.
func (c *Client) Unmask(dst []int64, m *Masked) error {
	ring := c.key.ring
	if err := m.alike(ring, c.clients, len(dst)); err != nil {
		return err
	}
	if len(dst) != c.key.length {
		return fmt.Errorf("secagg: unmask %d elements of %d", len(dst), c.key.length)
	}
	if c.pad == nil {
		c.pad, c.scratch, c.others = c.key.pad(), make([]uint64, c.key.length), make([]stream, c.clients)
	}
	copy(c.scratch, m.words)
	for i, in := range m.in {
		switch {
		case !in:
		case i == c.index && c.ownRound == int64(m.round):
			removePad(ring, c.scratch, c.own)
		default:
			c.others[i].mask(c.pad, c.key, m.round, i)
			removePad(ring, c.scratch, c.pad)
		}
	}
	for i, w := range c.scratch {
		dst[i] = ring.signed(w)
	}
	return nil
}
