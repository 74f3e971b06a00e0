// Package secret holds the roots that a role's randomness is derived from.
//
// A [Root] is 256 bits. Roots are derived from one another by name (HKDF-Expand
// with SHA-256, RFC 5869), so whoever has the root of one name learns nothing of
// those of other names, nor of the root that it was derived from.
package secret

import (
	"crypto/hkdf"
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

// Simulated is a root of a simulation. It is no secret to those who know the seed.
// Equal arguments give equal roots.
func Simulated(seed uint64, name string) Root {
	b := binary.LittleEndian.AppendUint64([]byte("cohort simulation root\x00"), seed)
	return Root{sha256.Sum256(b)}.Derive(name)
}

// Derive returns the root of a name.
func (r Root) Derive(name string) Root {
	b, err := hkdf.Expand(sha256.New, r.key[:], name, len(r.key))
	if err != nil {
		panic("secret: " + err.Error()) // the length is allowed
	}
	return Root{[32]byte(b)}
}

// Key returns the bits.
func (r Root) Key() [32]byte { return r.key }

// Format prints "secret.Root(redacted)" whatever the verb.
func (Root) Format(f fmt.State, _ rune) { fmt.Fprint(f, "secret.Root(redacted)") }

// String returns "secret.Root(redacted)".
func (Root) String() string { return "secret.Root(redacted)" }

// MarshalText keeps the secret out of JSON and other encodings.
func (Root) MarshalText() ([]byte, error) { return []byte("redacted"), nil }
