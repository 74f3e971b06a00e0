package secagg

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secret"
)

// Key is the mask generator of a root for vectors of one length: AES-256 in counter mode, under a key of each
// number of blocks that vectors have. A counter block holds the client (32 bits) and the number of the block
// (64 bits); round t of vectors of b blocks takes the numbers t b to t b + b - 1. No two rounds or clients share
// a block of the stream. Clients of one process may share it.
type Key struct {
	ring   Ring
	length int
	block  cipher.Block
	blocks int // per round
}

// NewKey makes the generator of a root for vectors of length elements.
func NewKey(root secret.Root, ring Ring, length int) (*Key, error) {
	if length < 1 || int64(length) > math.MaxUint32 {
		return nil, fault.Range("vector length", length, "1 to 2^32-1")
	}
	blocks := (length*ring.Bytes() + aes.BlockSize - 1) / aes.BlockSize
	// A key for each number of blocks: under one key the blocks of round t of a long
	// vector and those of a later round of a short one would overlap.
	key := root.Derive(fmt.Sprintf("masks of %d blocks", blocks)).Key()
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("secagg: " + err.Error()) // the key has 32 bytes
	}
	return &Key{ring, length, block, blocks}, nil
}

// pad makes room for a mask.
func (k *Key) pad() []byte { return make([]byte, k.blocks*aes.BlockSize) }

// stream is the key stream of one client, which goes on from round to round.
type stream struct {
	ctr  cipher.Stream
	next uint64 // round at which it stands
	iv   [aes.BlockSize]byte
}

// mask sets pad to the mask of a client and round. Only a round that does not follow the last one of that client costs
// an allocation.
func (s *stream) mask(pad []byte, k *Key, round uint32, client int) {
	if s.ctr == nil || s.next != uint64(round) {
		copy(s.iv[:], "mask")
		binary.BigEndian.PutUint32(s.iv[4:], uint32(client))
		binary.BigEndian.PutUint64(s.iv[8:], uint64(round)*uint64(k.blocks))
		s.ctr = cipher.NewCTR(k.block, s.iv[:])
	}
	clear(pad)
	s.ctr.XORKeyStream(pad, pad)
	s.next = uint64(round) + 1
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
