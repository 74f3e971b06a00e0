package sum

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/cohort-engine/cohort/internal/secagg"
)

// Config is what all roles of a study know of its sums.
type Config struct {
	// Study is the hash of the study and its roster.
	Study [32]byte
	// Parties take part, and at least Threshold of them in every sum.
	Parties, Threshold int
	Ring               secagg.Ring
	// Plain leaves out all masks but the group's: one party and the server together
	// could open every vector. It is there to be compared with.
	Plain bool
}

// complete is the most parties that all share secrets with each other.
const complete = 200

// degree is the number of neighbours of a party above that: the probability that the
// neighbours of some party are mostly colluders, or mostly gone, is below 2^-40 for a
// fifth of the parties each and up to 10^4 parties (Bell et al. 2020, section 3).
const degree = 100

// Colluders is how many parties on its side a server needs, at least and wherever they stand, that
// breaks the rules to get more of a sum than one total over enough parties.
//
// Where all are neighbours it is 2 threshold - n: two sets need threshold signatures each, of which
// honest parties give one. Above that, with t shares that make up a secret and 101 holders of each,
// it is 2 t - 102, in three steps. An honest party that reveals shares has t signatures of its set from the
// holders of its own secrets; so fewer than t of them could say that it had vanished, unless 2 t - 101
// collude: its key stays unknown. No other party's seed and key are both known with fewer
// than 2 t - 101, since an honest holder reveals one of the two. The server then learns the sum over those
// whose seeds it knows, if all their other neighbours' keys are known, who therefore reveal nothing. If
// that leaves out an honest party whose key is not known, those in the sum end twice along the circle, before
// 50 places of colluders and of parties that reveal nothing. The seed of the last before each has
// 51 holders left and the colluders in these places, so that t - 51 must be in either.
func (c *Config) Colluders() int {
	if c.Parties <= complete {
		return 2*c.Threshold - c.Parties
	}
	return 2*c.shares() - degree - 2
}

// Whole tells whether a sum has at least threshold vectors with any server. Where not all are neighbours,
// one that shows them different sets has one total over those who are in all of these, which may be fewer.
func (c *Config) Whole() bool { return c.Parties <= complete }

// shares is how many make up a secret.
func (c *Config) shares() int {
	if c.Parties <= complete {
		return c.Threshold
	}
	return degree*c.Threshold/c.Parties + 1
}

// graph has the neighbours of every party.
type graph struct {
	near      [][]int // in order, without the party itself
	threshold int     // shares that make up a secret
}

// newGraph makes the graph of a study: complete, or a cycle's power in an order that
// follows from the study and its roster.
func newGraph(c *Config) *graph {
	g := &graph{near: make([][]int, c.Parties), threshold: c.shares()}
	if c.Parties <= complete {
		for i := range g.near {
			for j := range c.Parties {
				if j != i {
					g.near[i] = append(g.near[i], j)
				}
			}
		}
		return g
	}
	order := c.circle()
	for at, i := range order {
		for d := 1; d <= degree/2; d++ {
			j := order[(at+d)%c.Parties]
			g.near[i] = append(g.near[i], j)
			g.near[j] = append(g.near[j], i)
		}
	}
	for i := range g.near {
		slices.Sort(g.near[i])
	}
	return g
}

// circle is the order of the parties on the cycle.
func (c *Config) circle() []int {
	seed := sha256.Sum256(append([]byte("sum neighbours"), c.Study[:]...))
	return rand.New(rand.NewChaCha8(seed)).Perm(c.Parties)
}

// Kinds of messages; each has its kind, the number of the sum (u32), and then
//
//	keys      public key, signature
//	keyList   entries: party u16, public key, signature
//	shares    entries: for party u16, sealed shares
//	shareList entries: of party u16, sealed shares
//	masked    the vector
//	set       one bit for each party
//	signed    signature of the set
//	signers   entries: party u16, signature
//	reveal    entries: party u16, 0 for a seed and 1 for a key, share
//	result    the set, but for one of all parties, and the sum
const (
	kindKeys byte = 1 + iota
	kindKeyList
	kindShares
	kindShareList
	kindMasked
	kindSet
	kindSigned
	kindSigners
	kindReveal
	kindResult
)

const (
	headBytes   = 5
	keyBytes    = 32
	signBytes   = 64
	sealedBytes = 2*secretBytes + 16
)

// errMessage is wrapped by the refusal of a message of another role.
var errMessage = errors.New("sum: a message was refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMessage, fmt.Sprintf(format, args...))
}

// head begins a message.
func head(kind byte, number uint32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{kind}, number)
}

// split reads the head of a message.
func split(b []byte) (kind byte, number uint32, rest []byte, err error) {
	if len(b) < headBytes {
		return 0, 0, nil, refuse("it has %d bytes", len(b))
	}
	return b[0], binary.LittleEndian.Uint32(b[1:]), b[headBytes:], nil
}

// VectorHead is how the messages begin that bring the vectors of a sum.
func VectorHead(number uint32) []byte { return head(kindMasked, number) }

// IsVector reports whether a message brings a vector, behind a head of so many bytes.
func IsVector(b []byte) (head int, is bool) {
	return headBytes, len(b) > headBytes && b[0] == kindMasked
}

// IsResult reports whether a message brings what a sum came to.
func IsResult(b []byte) bool { return len(b) > headBytes && b[0] == kindResult }

// Number is the sum that a message belongs to.
func Number(b []byte) (uint32, error) {
	_, n, _, err := split(b)
	return n, err
}

// entries reads entries of a party and size bytes. No party comes twice.
func (c *Config) entries(b []byte, size int, take func(party int, b []byte) error) error {
	if len(b)%(2+size) != 0 {
		return refuse("its length is wrong")
	}
	last := -1
	for ; len(b) > 0; b = b[2+size:] {
		p := int(binary.LittleEndian.Uint16(b))
		if p <= last || p >= c.Parties {
			return refuse("its parties are not in order")
		}
		last = p
		if err := take(p, b[2:2+size]); err != nil {
			return err
		}
	}
	return nil
}

func entry(b []byte, party int, parts ...[]byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(party))
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// Set has a bit for each party, the first in the lowest bit of the first byte.
type Set []byte

// newSet is the set of nobody.
func (c *Config) newSet() Set { return make(Set, (c.Parties+7)/8) }

// everybody is the set of all parties.
func (c *Config) everybody() Set {
	s := Set(bytes.Repeat([]byte{0xff}, (c.Parties+7)/8))
	if more := c.Parties % 8; more > 0 {
		s[len(s)-1] = 1<<more - 1
	}
	return s
}

// setOf reads a set.
func (c *Config) setOf(b []byte) (Set, error) {
	if len(b) != (c.Parties+7)/8 {
		return nil, refuse("a set of %d bytes", len(b))
	}
	if c.Parties%8 != 0 && b[len(b)-1]>>(c.Parties%8) != 0 {
		return nil, refuse("a set with parties that are none")
	}
	return b, nil
}

func (s Set) add(party int) { s[party/8] |= 1 << (party % 8) }

// Has reports whether a party is in the set.
func (s Set) Has(party int) bool { return s[party/8]>>(party%8)&1 == 1 }

// Count is the number of its parties.
func (s Set) Count() (n int) {
	for _, b := range s {
		n += bits.OnesCount8(b)
	}
	return n
}

func count(in []bool) (n int) {
	for _, x := range in {
		if x {
			n++
		}
	}
	return n
}

// statement is what a signature is of.
func (c *Config) statement(what string, number uint32, body []byte) []byte {
	b := append([]byte("cohort sum "+what+"\x00"), c.Study[:]...)
	b = binary.LittleEndian.AppendUint32(b, number)
	return append(b, body...)
}

// derive is HKDF with SHA-256.
func derive(secret []byte, study [32]byte, info string, n int) []byte {
	b, err := hkdf.Key(sha256.New, secret, study[:], info, n)
	if err != nil {
		panic("sum: " + err.Error()) // n is small
	}
	return b
}

// addMask adds the mask of a key to words, or takes it off: AES-256 in counter mode,
// under a key that is used once.
func (c *Config) addMask(words []uint64, key []byte, off bool) {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("sum: " + err.Error()) // the key has 32 bytes
	}
	stream := cipher.NewCTR(block, make([]byte, aes.BlockSize))
	var pad [4096]byte
	size := c.Ring.Bytes()
	for len(words) > 0 {
		n := min(len(words), len(pad)/size)
		clear(pad[:n*size])
		stream.XORKeyStream(pad[:n*size], pad[:n*size])
		for i := range words[:n] {
			var w uint64
			if size == 4 {
				w = uint64(binary.LittleEndian.Uint32(pad[4*i:]))
			} else {
				w = binary.LittleEndian.Uint64(pad[8*i:])
			}
			if off {
				words[i] -= w
			} else {
				words[i] += w
			}
		}
		words = words[n:]
	}
}

// readWords reads a vector.
func (c *Config) readWords(b []byte) []uint64 {
	words := make([]uint64, len(b)/c.Ring.Bytes())
	secagg.ReadWords(words, c.Ring, b)
	return words
}
