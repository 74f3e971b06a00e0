package sketch

import (
	"encoding/binary"
	"fmt"

	"github.com/cohort-engine/cohort/internal/fault"
)

// message is all that a party sends to the server in the sketch protocols.
// Every number in it was released through a mechanism of the ledger or is
// public; it carries neither keys nor ids nor padding.
type message struct {
	Party, Clusters, Columns int
	FractionBits             int
	// Centers are the local centres in grid units of 2^-FractionBits, row-major,
	// Clusters x Columns.
	Centers []int32
	// Sizes are the noisy sizes of the local clusters in multiples of 2^-SizeBits;
	// empty if the protocol does not release them.
	Sizes    []int64
	SizeBits int
	// Sets are the sketches: one for the joint keys, or one for each other party.
	Sets []*Sketches
}

// messageHeader is the size of the fixed part: party, clusters, columns,
// fraction bits, 0 or 1 + size bits if sizes follow, number of sets, bytes per height (one
// byte each, columns two), and the number of keys (four bytes).
const messageHeader = 12

// encode returns the message in bytes: the header, centres as 4 bytes each,
// sizes as 8 bytes each, then for every set its heights by key and cluster, one
// byte each where heightBytes is 1, else two; all little endian.
func (m *message) encode(heightBytes int) []byte {
	keys := 0
	if len(m.Sets) > 0 {
		keys = m.Sets[0].Keys
	}
	var sizes byte
	if len(m.Sizes) > 0 {
		sizes = byte(1 + m.SizeBits)
	}
	b := make([]byte, 0, messageHeader+4*len(m.Centers)+8*len(m.Sizes)+len(m.Sets)*keys*m.Clusters*heightBytes)
	b = append(b, byte(m.Party), byte(m.Clusters), byte(m.Columns), byte(m.Columns>>8), byte(m.FractionBits), sizes,
		byte(len(m.Sets)), byte(heightBytes))
	b = binary.LittleEndian.AppendUint32(b, uint32(keys))
	for _, c := range m.Centers {
		b = binary.LittleEndian.AppendUint32(b, uint32(c))
	}
	for _, s := range m.Sizes {
		b = binary.LittleEndian.AppendUint64(b, uint64(s))
	}
	for _, set := range m.Sets {
		for _, h := range set.Heights {
			if heightBytes == 1 {
				b = append(b, byte(h))
			} else {
				b = binary.LittleEndian.AppendUint16(b, h)
			}
		}
	}
	return b
}

// decodeMessage reads a message that Encode wrote. It refuses bytes that are
// missing or left over.
func decodeMessage(b []byte) (*message, error) {
	bad := func(why string) error {
		return fault.Failed("sketch message", why, "the sender and the server must run the same protocol", nil)
	}
	if len(b) < messageHeader {
		return nil, bad(fmt.Sprintf("has %d bytes, fewer than its header's %d", len(b), messageHeader))
	}
	m := &message{Party: int(b[0]), Clusters: int(b[1]), Columns: int(b[2]) | int(b[3])<<8, FractionBits: int(b[4])}
	sizes, sets, heightBytes := 0, int(b[6]), int(b[7])
	if b[5] > 0 {
		sizes, m.SizeBits = m.Clusters, int(b[5])-1
	}
	keys := int(binary.LittleEndian.Uint32(b[8:]))
	if m.Clusters < 1 || b[5] > 63 || heightBytes < 1 || heightBytes > 2 {
		return nil, bad("has a broken header")
	}
	want := messageHeader + 4*m.Clusters*m.Columns + 8*sizes + sets*keys*m.Clusters*heightBytes
	if len(b) != want {
		return nil, bad(fmt.Sprintf("has %d bytes, its header says %d", len(b), want))
	}
	b = b[messageHeader:]
	m.Centers = make([]int32, m.Clusters*m.Columns)
	for i := range m.Centers {
		m.Centers[i] = int32(binary.LittleEndian.Uint32(b))
		b = b[4:]
	}
	if sizes > 0 {
		m.Sizes = make([]int64, sizes)
	}
	for i := range m.Sizes {
		m.Sizes[i] = int64(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	for range sets {
		set := newSketches(keys, m.Clusters)
		for i := range set.Heights {
			if heightBytes == 1 {
				set.Heights[i], b = uint16(b[0]), b[1:]
			} else {
				set.Heights[i], b = binary.LittleEndian.Uint16(b), b[2:]
			}
		}
		m.Sets = append(m.Sets, set)
	}
	return m, nil
}

// fits reports whether a message is what party l sends by the plan: the server reads no
// further into one that is not.
func (r *run) fits(m *message, l int) bool {
	sizes, sets := 0, 0
	if r.parties[l].sizes != nil {
		sizes = r.plan.clusters
	}
	if r.parties[l].sketches != nil {
		sets = r.plan.keySets()
	}
	if m.Party != l || m.Clusters != r.plan.clusters || m.Columns != len(r.job.Columns[l]) ||
		m.FractionBits != r.bits || len(m.Sizes) != sizes || len(m.Sets) != sets {
		return false
	}
	for _, s := range m.Sets {
		if s.Keys != r.plan.sketches {
			return false
		}
		for _, h := range s.Heights {
			if h < 1 || int(h) > r.plan.distribution.max() {
				return false
			}
		}
	}
	return true
}
