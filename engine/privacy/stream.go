package privacy

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/cohort-engine/cohort/internal/secret"
)

// Streams hands out independent random streams, one per (party, iteration, purpose), all derived
// from one root. Without a seed the root is 256 bits of crypto/rand and nothing is reproducible;
// with a seed (simulation) the same triple always names the same stream, so results depend neither
// on the number of workers nor on the order in which parties draw.
//
// A stream is ChaCha8 (math/rand/v2) under the key SHA-256(root, party, iteration, purpose): the
// guarantees of noise drawn from it are computational in the strength of that cipher (T6).
// A seeded root gives no privacy against whoever knows the seed.
type Streams struct{ root [32]byte }

// NewStreams returns the streams of a seed, or streams from crypto/rand for nil.
func NewStreams(seed *uint64) *Streams {
	if seed == nil {
		return StreamsOf(secret.New())
	}
	var b [40]byte
	copy(b[:], "cohort simulation seed")
	binary.LittleEndian.PutUint64(b[32:], *seed)
	return &Streams{sha256.Sum256(b[:])}
}

// StreamsOf returns the streams of a root.
func StreamsOf(root secret.Root) *Streams { return &Streams{root.Key()} }

// Run returns the streams of the r-th repetition of a run, unrelated to those of any other.
func (s *Streams) Run(r int) *Streams {
	child := new(Streams)
	var st Stream
	s.Reset(&st, 0, r, "run")
	for i := range 4 {
		binary.LittleEndian.PutUint64(child.root[8*i:], st.Uint64())
	}
	return child
}

// Stream returns the stream of a party (the server may use -1), an iteration and a purpose.
// Two calls with the same arguments return the same stream from its beginning: use one per draw.
func (s *Streams) Stream(party, iteration int, purpose string) *Stream {
	st := new(Stream)
	s.Reset(st, party, iteration, purpose)
	return st
}

// Reset points st at the beginning of a stream. It allocates nothing for purposes of up to 80 bytes.
func (s *Streams) Reset(st *Stream, party, iteration int, purpose string) {
	var room [128]byte
	b := append(room[:0], s.root[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(party))
	b = binary.LittleEndian.AppendUint64(b, uint64(iteration))
	b = append(b, purpose...)
	st.src.Seed(sha256.Sum256(b))
}

// Stream is one random stream. It is not safe for concurrent use.
type Stream struct{ src rand.ChaCha8 }

// Uint64 returns 64 uniform bits.
func (st *Stream) Uint64() uint64 { return st.src.Uint64() }

// Uint64n returns a uniform integer in [0, n), exactly. It panics if n = 0.
func (st *Stream) Uint64n(n uint64) uint64 {
	if n == 0 {
		panic("privacy: Stream.Uint64n: n is 0, must be positive")
	}
	hi, lo := bits.Mul64(st.src.Uint64(), n)
	if lo < n {
		for limit := -n % n; lo < limit; {
			hi, lo = bits.Mul64(st.src.Uint64(), n)
		}
	}
	return hi
}

// IntN returns a uniform integer in [0, n), exactly. It panics if n < 1.
func (st *Stream) IntN(n int) int {
	if n < 1 {
		panic("privacy: Stream.IntN: n must be positive")
	}
	return int(st.Uint64n(uint64(n)))
}

// Float64 returns a multiple of 2^-53 uniform in [0, 1).
func (st *Stream) Float64() float64 { return float64(st.src.Uint64()>>11) * 0x1p-53 }

// Float64Open returns an odd multiple of 2^-53 uniform in (0, 1).
func (st *Stream) Float64Open() float64 { return float64(st.src.Uint64()>>12<<1|1) * 0x1p-53 }

// Perm returns a uniform permutation of 0..n-1.
func (st *Stream) Perm(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	st.shuffle(n, func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}

// shuffle permutes n things uniformly by swaps.
func (st *Stream) shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, st.IntN(i+1))
	}
}

// Read fills p with random bytes. It never fails.
func (st *Stream) Read(p []byte) (int, error) { return st.src.Read(p) }
