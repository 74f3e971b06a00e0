package sketch

import (
	"context"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// recordsPerTask is the number of records that a task groups by cluster: their
// digests (128 KiB) stay in the L2 cache.
const recordsPerTask = 1 << 13

// maxStoredDigests bounds the digests kept between the parties' sketches; for
// more records, and of row numbers, each task computes its own.
const maxStoredDigests = 1 << 22

// sketcher makes the sketches of clusters of records that are all at hand. Its
// keys and digests come from the parties' shared secret.
type sketcher struct {
	run     runner
	secret  Secret
	records int
	id      func(row int, dst []byte) []byte // appends the id of a record; nil if that is the row number
	stored  []Digest
}

func newSketcher(ctx context.Context, run runner, secret Secret, records int,
	id func(row int, dst []byte) []byte) (*sketcher, error) {
	s := &sketcher{run: run, secret: secret, records: records, id: id}
	if records > maxStoredDigests || id == nil {
		return s, nil
	}
	s.stored = make([]Digest, records)
	err := run.Run(ctx, s.recordTasks(), func(_, task int) {
		lo := task * recordsPerTask
		s.fill(newHasher(secret), lo, s.stored[lo:min(lo+recordsPerTask, records)])
	})
	return s, err
}

func (s *sketcher) recordTasks() int { return (s.records + recordsPerTask - 1) / recordsPerTask }

// fill computes the digests of the records from lo on.
func (s *sketcher) fill(h *hasher, lo int, dst []Digest) {
	if s.id == nil {
		for i := range dst {
			dst[i] = rowDigest(lo + i)
		}
		return
	}
	var room [64]byte
	for i := range dst {
		dst[i] = h.record(s.id(lo+i, room[:0]))
	}
}

// cellPhantoms are the phantoms of a party that has position at among the parties
// of a key set: perCell in each cell of the grid. None if perCell is 0.
type cellPhantoms struct {
	parties, at int
	perCell     float64
}

// addOwnPhantoms adds count phantoms to each sketch of each cluster that no other
// party knows.
func (e *encoder) addOwnPhantoms(st *privacy.Stream, count float64) {
	for _, registers := range e.registers {
		for j, t := range registers {
			registers[j] = min(t, st.Exponential()/count)
		}
	}
}

// sketches rounds the registers of all clusters.
func (s *sketcher) sketches(ctx context.Context, e *encoder, distribution *Geometric, floor uint16) (*Sketches, error) {
	sketches := newSketches(len(e.registers[0]), e.clusters)
	err := s.run.Run(ctx, e.clusters, func(_, a int) { e.heights(distribution, floor, a, sketches) })
	return sketches, err
}
