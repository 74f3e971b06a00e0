package secagg

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Seed is the 256-bit secret that the clients share. It prints as "redacted" in
// every format.
type Seed struct{ key [32]byte }

// NewSeed draws a seed from the system's random generator.
func NewSeed() Seed {
	var s Seed
	rand.Read(s.key[:]) // never fails since Go 1.24
	return s
}

// SeedFrom derives the seed of a simulation. Equal arguments give equal seeds.
func SeedFrom(simulation uint64, purpose string) Seed {
	b := binary.LittleEndian.AppendUint64([]byte("cohort mask seed\x00"), simulation)
	return Seed{sha256.Sum256(append(b, purpose...))}
}

// Format prints "secagg.Seed(redacted)" whatever the verb.
func (Seed) Format(f fmt.State, _ rune) { fmt.Fprint(f, "secagg.Seed(redacted)") }

// String returns "secagg.Seed(redacted)".
func (Seed) String() string { return "secagg.Seed(redacted)" }

// MarshalText keeps the secret out of JSON and other encodings.
func (Seed) MarshalText() ([]byte, error) { return []byte("redacted"), nil }

// masks is the mask generator of a seed: AES-256 in counter mode. A counter
// block holds the client (32 bits) and the number of the block (64 bits); round t
// of vectors of b blocks takes the numbers t b to t b + b - 1. No two rounds or
// clients share a block of the stream.
type masks struct {
	block   cipher.Block
	blocks  uint64 // per round
	streams []stream
	pad     []byte
}

// stream is the key stream of one client, which goes on from round to round.
type stream struct {
	ctr  cipher.Stream
	next uint64 // round at which it stands
}

func newMasks(s Seed, ring Ring, clients, length int) *masks {
	block, err := aes.NewCipher(s.key[:])
	if err != nil {
		panic("secagg: " + err.Error()) // the key has 32 bytes
	}
	blocks := (length*ring.Bytes() + aes.BlockSize - 1) / aes.BlockSize
	return &masks{block: block, blocks: uint64(blocks), streams: make([]stream, clients), pad: make([]byte, blocks*aes.BlockSize)}
}

// of returns the mask of a client and round, valid until the next call. Only a
// round that does not follow the last one of that client costs an allocation.
func (m *masks) of(round uint32, client int) []byte {
	s := &m.streams[client]
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
