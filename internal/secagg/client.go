package secagg

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secret"
)

// Client is one client's end: it knows the root of the masks.
type Client struct {
	ring           Ring
	index, clients int
	masks          *masks
	scratch        []uint64
	// own is this client's mask of round ownRound, kept from Mask to Unmask.
	own      []byte
	ownRound int64
}

// NewClient returns client index (from 0) of clients, for vectors of length
// elements.
func NewClient(root secret.Root, ring Ring, index, clients, length int) (*Client, error) {
	if clients < 1 || index < 0 || index >= clients {
		return nil, fault.Request("secure aggregation", fmt.Sprintf("there is no client %d among %d", index+1, clients),
			"give at least one client")
	}
	if length < 1 || int64(length) > math.MaxUint32 {
		return nil, fault.Range("vector length", length, "1 to 2^32-1")
	}
	return &Client{ring: ring, index: index, clients: clients, masks: newMasks(root, ring, clients, length),
		scratch: make([]uint64, length), ownRound: -1}, nil
}

// Mask sets dst to values under this client's mask of a round. Two different
// vectors must never be masked for the same round.
func (c *Client) Mask(dst *Masked, round int, values []int64) error {
	if err := dst.alike(c.ring, c.clients, len(values)); err != nil {
		return err
	}
	if len(values) != len(c.scratch) {
		return fmt.Errorf("secagg: mask %d elements of %d", len(values), len(c.scratch))
	}
	if round < 0 || int64(round) > math.MaxUint32 {
		return fmt.Errorf("secagg: round %d is not 0 to 2^32-1", round)
	}
	dst.Reset(round)
	for i, v := range values {
		dst.words[i] = uint64(v)
	}
	c.own = append(c.own[:0], c.masks.of(dst.round, c.index)...)
	c.ownRound = int64(round)
	addPad(c.ring, dst.words, c.own)
	dst.in[c.index], dst.count = true, 1
	return nil
}

// Forget clears the masks that the client has made, and what was under them: nothing is masked any more.
func (c *Client) Forget() {
	clear(c.own)
	clear(c.masks.pad)
	clear(c.scratch)
	c.ownRound = -1
}

// Unmask writes the plain sum to dst: it takes off the masks of the clients
// that are in m.
func (c *Client) Unmask(dst []int64, m *Masked) error {
	if err := m.alike(c.ring, c.clients, len(dst)); err != nil {
		return err
	}
	if len(dst) != len(c.scratch) {
		return fmt.Errorf("secagg: unmask %d elements of %d", len(dst), len(c.scratch))
	}
	copy(c.scratch, m.words)
	for i, in := range m.in {
		switch {
		case !in:
		case i == c.index && c.ownRound == int64(m.round):
			removePad(c.ring, c.scratch, c.own)
		default:
			removePad(c.ring, c.scratch, c.masks.of(m.round, i))
		}
	}
	for i, w := range c.scratch {
		dst[i] = c.ring.signed(w)
	}
	return nil
}
