// Package secret holds the roots that a role's randomness is derived from.
//
// A [Root] is 256 bits. Roots are derived from one another by name (HKDF-Expand
// with SHA-256, RFC 5869), so whoever has the root of one name learns nothing of
// those of other names, nor of the root that it was derived from.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Root is 256 bits that are secret to those who hold it. It prints as "redacted"
// in every format.
type Root struct{ key [32]byte }

// New draws a root from the system's random generator.
func New() Root {
	var r Root
	rand.Read(r.key[:]) // never fails since Go 1.24
	return r
}

// Of is the root of a key that roles agreed on or read from their own storage.
func Of(key [32]byte) Root { return Root{key} }

// Simulation is the root that those of a simulation are derived from. It is no secret to those who know the seed.
func Simulation(seed uint64) Root {
	var b [64]byte
	return Root{sha256.Sum256(binary.LittleEndian.AppendUint64(append(b[:0], "cohort simulation root\x00"...), seed))}
}

// Simulated is a root of a simulation. Equal arguments give equal roots.
func Simulated(seed uint64, name string) Root { return Simulation(seed).Derive(name) }

// Derive returns the root of a name: the one block of HKDF-Expand is HMAC(root, name || 1), written out here, since
// crypto/hkdf takes three times as long for so little, and each role of a run derives some.
func (r Root) Derive(name string) Root {
	var inner, outer [2 * sha256.BlockSize]byte // a longer name moves to the heap
	copy(inner[:], r.key[:])
	for i, k := range inner[:sha256.BlockSize] {
		inner[i], outer[i] = k^0x36, k^0x5c
	}
	sum := sha256.Sum256(append(append(inner[:sha256.BlockSize], name...), 1))
	return Root{sha256.Sum256(append(outer[:sha256.BlockSize], sum[:]...))}
}

// Key returns the bits.
func (r Root) Key() [32]byte { return r.key }

// Format prints "secret.Root(redacted)" whatever the verb.
func (Root) Format(f fmt.State, _ rune) { fmt.Fprint(f, "secret.Root(redacted)") }

// String returns "secret.Root(redacted)".
func (Root) String() string { return "secret.Root(redacted)" }

// MarshalText keeps the secret out of JSON and other encodings.
func (Root) MarshalText() ([]byte, error) { return []byte("redacted"), nil }
