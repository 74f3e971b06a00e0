package vertical

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/cohort-engine/cohort/kernels"
)

// recordsPerTask is the number of records that one task hashes under all keys:
// their digests (64 KiB) stay in the L2 cache while the keys pass over them.
const recordsPerTask = 4096

// maxStoredDigests bounds the digests kept between the parties' sketches; for
// more records each task computes its own.
const maxStoredDigests = 1 << 22

// sketcher makes the keyed min-hashes of clusters. Its keys and digests come
// from the parties' shared secret.
type sketcher struct {
	run     Runner
	secret  Secret
	records int
	id      func(row int, dst []byte) []byte // appends the id of a record
	stored  []Digest
}

func newSketcher(ctx context.Context, run Runner, secret Secret, records int, id func(row int, dst []byte) []byte) (*sketcher, error) {
	s := &sketcher{run: run, secret: secret, records: records, id: id}
	if records > maxStoredDigests {
		return s, nil
	}
	s.stored = make([]Digest, records)
	err := run.Run(ctx, (records+recordsPerTask-1)/recordsPerTask, func(_, task int) {
		lo := task * recordsPerTask
		s.fill(newHasher(secret), lo, s.stored[lo:min(lo+recordsPerTask, records)])
	})
	return s, err
}

// fill computes the digests of the records from lo on.
func (s *sketcher) fill(h *hasher, lo int, dst []Digest) {
	var room [64]byte
	for i := range dst {
		dst[i] = h.digest(domainRecord, s.id(lo+i, room[:0]))
	}
}

// keys derives the AES keys of a key set: each serves two sketches.
func (s *sketcher) keys(set, sketches int) [][16]byte {
	h := newHasher(s.secret)
	keys := make([][16]byte, (sketches+1)/2)
	var data [16]byte
	binary.LittleEndian.PutUint64(data[:], uint64(set))
	for i := range keys {
		binary.LittleEndian.PutUint64(data[8:], uint64(i))
		keys[i] = h.digest(domainKey, data[:])
	}
	return keys
}

// hashScratch is one worker's memory.
type hashScratch struct {
	hasher  *hasher
	digests []Digest
	grouped []Digest
	offsets []int
	minima  []uint64
	best    []uint64
}

// minima returns, for each sketch and cluster, the minimum hash of the records
// with that label, math.MaxUint64 for an empty cluster: row-major, two rows per
// key. Minima do not depend on the order in which tasks are done.
func (s *sketcher) minima(ctx context.Context, keys [][16]byte, labels []uint16, clusters int) ([]uint64, error) {
	size := 2 * len(keys) * clusters
	scratch := make([]*hashScratch, s.run.Workers())
	err := s.run.Run(ctx, (s.records+recordsPerTask-1)/recordsPerTask, func(worker, task int) {
		w := scratch[worker]
		if w == nil {
			w = &hashScratch{hasher: newHasher(s.secret), grouped: make([]Digest, recordsPerTask), offsets: make([]int, clusters+1),
				minima: make([]uint64, size), best: maxHashes(size)}
			scratch[worker] = w
		}
		lo := task * recordsPerTask
		hi := min(lo+recordsPerTask, s.records)
		var digests []Digest
		if s.stored != nil {
			digests = s.stored[lo:hi]
		} else {
			if w.digests == nil {
				w.digests = make([]Digest, recordsPerTask)
			}
			digests = w.digests[:hi-lo]
			s.fill(w.hasher, lo, digests)
		}
		group(digests, labels[lo:hi], w.grouped, w.offsets)
		kernels.MinHash(keys, w.grouped[:hi-lo], w.offsets, w.minima)
		minUint64(w.best, w.minima)
	})
	if err != nil {
		return nil, err
	}
	best := maxHashes(size)
	for _, w := range scratch {
		if w != nil {
			minUint64(best, w.best)
		}
	}
	return best, nil
}

// group sorts digests by label. offsets has one entry per cluster and one more.
func group(digests []Digest, labels []uint16, dst []Digest, offsets []int) {
	clear(offsets)
	for _, a := range labels {
		offsets[a+1]++
	}
	for a := 1; a < len(offsets); a++ {
		offsets[a] += offsets[a-1]
	}
	for i, a := range labels {
		dst[offsets[a]] = digests[i]
		offsets[a]++
	}
	copy(offsets[1:], offsets[:len(offsets)-1])
	offsets[0] = 0
}

func maxHashes(n int) []uint64 {
	h := make([]uint64, n)
	fillHashes(h, math.MaxUint64)
	return h
}

func fillHashes(h []uint64, x uint64) {
	for i := range h {
		h[i] = x
	}
}

func minUint64(dst, a []uint64) {
	a = a[:len(dst)]
	for i, x := range a {
		dst[i] = min(dst[i], x)
	}
}

// phantomMinima returns, in the form of minima, the minimum hash of the shared
// phantoms in each cluster of party l: count phantoms in every cell g of
// [clusters]^parties, hashed alike by all parties, of which the party puts into
// its cluster a those with g_l = a. One hash value V per key and cell gives the
// minimum of its phantoms by inversion, 1 - (1-V)^(1/count); since that is
// increasing in V, the cells of a cluster share one inversion.
func (s *sketcher) phantomMinima(ctx context.Context, keys [][16]byte, set, parties, clusters, l int, count float64) ([]uint64, error) {
	rest := powInt(clusters, parties-1) // cells per cluster of party l
	perTask := max(1, recordsPerTask/clusters)
	size := 2 * len(keys) * clusters
	scratch := make([]*hashScratch, s.run.Workers())
	err := s.run.Run(ctx, (rest+perTask-1)/perTask, func(worker, task int) {
		w := scratch[worker]
		if w == nil {
			w = &hashScratch{hasher: newHasher(s.secret), grouped: make([]Digest, perTask*clusters), offsets: make([]int, clusters+1),
				minima: make([]uint64, size), best: maxHashes(size)}
			scratch[worker] = w
		}
		lo := task * perTask
		w.hasher.phantoms(set, clusters, powInt(clusters, parties-1-l), lo, min(lo+perTask, rest), w.grouped, w.offsets)
		kernels.MinHash(keys, w.grouped[:w.offsets[clusters]], w.offsets, w.minima)
		minUint64(w.best, w.minima)
	})
	if err != nil {
		return nil, err
	}
	best := maxHashes(size)
	for _, w := range scratch {
		if w != nil {
			minUint64(best, w.best)
		}
	}
	for i, v := range best {
		best[i] = phantomHash(v, count)
	}
	return best, nil
}

// phantoms computes the digests of the phantoms' cells, grouped by the cluster
// that a party puts them into: of each cluster the cells number lo to hi, in
// lexicographic order of the other parties' clusters. stride is the number of
// cells per combination of the parties before and the party itself.
func (h *hasher) phantoms(set, clusters, stride, lo, hi int, dst []Digest, offsets []int) {
	var data [16]byte
	binary.LittleEndian.PutUint64(data[:], uint64(set))
	offsets[0] = 0
	for a := range clusters {
		offsets[a+1] = offsets[a] + hi - lo
		for i := lo; i < hi; i++ {
			cell := (i/stride*clusters+a)*stride + i%stride
			binary.LittleEndian.PutUint64(data[8:], uint64(cell))
			dst[offsets[a]+i-lo] = h.digest(domainPhantom, data[:])
		}
	}
}

// heights turns minimum hashes into sketches, no lower than floor.
func heights(law *Geometric, minima []uint64, sketches, clusters int, floor uint16) *Sketches {
	s := NewSketches(sketches, clusters)
	for i := range s.Heights {
		s.Heights[i] = max(law.Height(minima[i]), floor)
	}
	return s
}
