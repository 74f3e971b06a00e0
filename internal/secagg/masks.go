package secagg

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"

	"github.com/cohort-engine/cohort/internal/secret"
)

// masks is the mask generator of a root: AES-256 in counter mode, under a key of each
// number of blocks that vectors have. A counter
// block holds the client (32 bits) and the number of the block (64 bits); round t
// of vectors of b blocks takes the numbers t b to t b + b - 1. No two rounds or
// clients share a block of the stream.
type masks struct {
	block   cipher.Block
	blocks  uint64 // per round
	clients int
	// first is the stream of the client asked for first, at most ends the only one: -1 before; others those of the rest.
	firstOf int
	first   stream
	others  []stream
	pad     []byte
}

// stream is the key stream of one client, which goes on from round to round.
type stream struct {
	ctr  cipher.Stream
	next uint64 // round at which it stands
}

func newMasks(root secret.Root, ring Ring, clients, length int) *masks {
	blocks := (length*ring.Bytes() + aes.BlockSize - 1) / aes.BlockSize
	// A key for each number of blocks: under one key the blocks of round t of a long
	// vector and those of a later round of a short one would overlap.
	key := root.Derive(fmt.Sprintf("masks of %d blocks", blocks)).Key()
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("secagg: " + err.Error()) // the key has 32 bytes
	}
	return &masks{block: block, blocks: uint64(blocks), clients: clients, firstOf: -1,
		pad: make([]byte, blocks*aes.BlockSize)}
}

// stream is that of a client.
func (m *masks) stream(client int) *stream {
	if m.firstOf < 0 {
		m.firstOf = client
	}
	if client == m.firstOf {
		return &m.first
	}
	if m.others == nil {
		m.others = make([]stream, m.clients)
	}
	return &m.others[client]
}

// of returns the mask of a client and round, valid until the next call. Only a
// round that does not follow the last one of that client costs an allocation.
func (m *masks) of(round uint32, client int) []byte {
	s := m.stream(client)
	if s.ctr == nil || s.next != uint64(round) {
		var iv [aes.BlockSize]byte
		copy(iv[:], "mask")
		binary.BigEndian.PutUint32(iv[4:], uint32(client))
		binary.BigEndian.PutUint64(iv[8:], uint64(round)*m.blocks)
		s.ctr = cipher.NewCTR(m.block, iv[:])
	}
	clear(m.pad)
	s.ctr.XORKeyStream(m.pad, m.pad)
	s.next = uint64(round) + 1
	return m.pad
}

// addPad adds a mask to words.
func addPad(ring Ring, words []uint64, pad []byte) {
	for i := range words {
		if ring == Ring32 {
			words[i] = uint64(uint32(words[i]) + binary.LittleEndian.Uint32(pad[4*i:]))
		} else {
			words[i] += binary.LittleEndian.Uint64(pad[8*i:])
		}
	}
}

// removePad takes a mask off words.
func removePad(ring Ring, words []uint64, pad []byte) {
	for i := range words {
		if ring == Ring32 {
			words[i] = uint64(uint32(words[i]) - binary.LittleEndian.Uint32(pad[4*i:]))
		} else {
			words[i] -= binary.LittleEndian.Uint64(pad[8*i:])
		}
	}
}
