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
// block holds the round, the client and the number of the block, so no two
// rounds or clients share a block of the stream.
type masks struct {
	block   cipher.Block
	in, out [aes.BlockSize]byte
}

func newMasks(s Seed) *masks {
	block, err := aes.NewCipher(s.key[:])
	if err != nil {
		panic("secagg: " + err.Error()) // the key has 32 bytes
	}
	m := &masks{block: block}
	copy(m.in[:4], "mask")
	return m
}

// apply adds the mask of a client and round to words, or takes it off.
func (m *masks) apply(ring Ring, round uint32, client int, words []uint64, remove bool) {
	binary.BigEndian.PutUint32(m.in[4:], round)
	binary.BigEndian.PutUint32(m.in[8:], uint32(client))
	sign := uint64(1)
	if remove {
		sign = ^uint64(0)
	}
	counter := uint32(0)
	next := func() {
		binary.BigEndian.PutUint32(m.in[12:], counter)
		counter++
		m.block.Encrypt(m.out[:], m.in[:])
	}
	if ring == Ring32 {
		for i := 0; i < len(words); i += 4 {
			next()
			for j, w := range words[i:min(i+4, len(words))] {
				words[i+j] = uint64(uint32(w + sign*uint64(binary.LittleEndian.Uint32(m.out[4*j:]))))
			}
		}
		return
	}
	for i := 0; i < len(words); i += 2 {
		next()
		words[i] += sign * binary.LittleEndian.Uint64(m.out[:])
		if i+1 < len(words) {
			words[i+1] += sign * binary.LittleEndian.Uint64(m.out[8:])
		}
	}
}
