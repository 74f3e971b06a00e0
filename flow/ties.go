package flow

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"math"
	"slices"

	sha256 "github.com/minio/sha256-simd"
)

// hashBits is the width of a word of the tie hash. Sums of 2(k+2) of them, the
// longest path on k <= 65535 clusters, fit in an int64.
const hashBits = 45

// TieDelta bounds the probability that in any of rounds assignments of n records
// to k clusters, each with a key of its own, the optimum is not unique up to identical
// records, on either of two neighbouring data sets: 2 rounds (n k/2^45)^2, which is what the
// order-independence of the assignment adds to delta. By the isolation lemma two words of W
// values, of which one maps two values to one, leave a tie with probability at most 2nk/W^2
// (privacy/THEOREMS.md T1).
func TieDelta(n, k, rounds int) float64 {
	one := math.Ldexp(float64(n)*float64(k), -hashBits)
	return min(1, 2*float64(rounds)*float64(one*one))
}

// digest identifies a quantised record.
type digest [16]byte

// tieHash computes the words that tell assignments of equal distance apart:
// AES-128, under the key zero, of the digest of the record added to the public key and the
// cluster, cut to two words of hashBits bits. The first word is at least 1, so an extra
// membership is never free. The key may change from problem to problem at no cost.
type tieHash struct {
	key    [16]byte
	block  cipher.Block
	scale  float64
	record []byte
	point  []float32
	in     [16]byte
	out    [16]byte
}

func newTieHash(key [16]byte, fractionBits int) *tieHash {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		panic(err) // a 16-byte key is always accepted
	}
	return &tieHash{key: key, block: block, scale: math.Ldexp(1, fractionBits)}
}

// digest returns the first half of SHA-256 over the grid coordinates of point i.
func (t *tieHash) digest(p *Problem, i int) digest {
	t.point = p.Points.Point(i, t.point)
	t.record = t.record[:0]
	for _, x := range t.point {
		t.record = binary.LittleEndian.AppendUint32(t.record, uint32(int32(float64(x)*t.scale)))
	}
	sum := sha256.Sum256(t.record)
	return digest(sum[:16])
}

// words returns the hash of a record and cluster j.
func (t *tieHash) words(d digest, j int) (hash0, hash1 int64) {
	for i, x := range d {
		t.in[i] = x ^ t.key[i]
	}
	binary.LittleEndian.PutUint32(t.in[:], binary.LittleEndian.Uint32(t.in[:])^uint32(j))
	t.block.Encrypt(t.out[:], t.in[:])
	hash0 = int64(binary.LittleEndian.Uint64(t.out[:8]) >> (64 - hashBits))
	hash1 = int64(binary.LittleEndian.Uint64(t.out[8:]) >> (64 - hashBits))
	return max(1, hash0), hash1
}

// settle deals the clusters of identical records out again in a fixed order, so
// that the labels do not depend on how a solver met the records. points are the
// candidates in ascending order; of reports and set replaces the clusters of a
// point, ascending.
func settle(points []int32, digests []digest, of func(int32) []int32, set func(int32, []int32)) {
	groups := make(map[digest][]int32, len(points))
	for q, i := range points {
		groups[digests[q]] = append(groups[digests[q]], i)
	}
	for q, i := range points {
		group := groups[digests[q]]
		if len(group) < 2 || group[0] != i {
			continue
		}
		count := map[int32]int{}
		var clusters []int32
		for _, r := range group {
			for _, j := range of(r) {
				if count[j] == 0 {
					clusters = append(clusters, j)
				}
				count[j]++
			}
		}
		slices.Sort(clusters)
		dealt := make([][]int32, len(group))
		turn := 0
		for _, j := range clusters {
			for range count[j] {
				dealt[turn%len(group)] = append(dealt[turn%len(group)], j)
				turn++
			}
		}
		for r, i := range group {
			set(i, dealt[r])
		}
	}
}
