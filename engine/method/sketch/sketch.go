package sketch

import (
	"context"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/kernels"
)

// recordsPerTask is the number of records that a task groups by cluster: their
// digests (128 KiB) stay in the L2 cache.
const recordsPerTask = 1 << 13

// maxStoredDigests bounds the digests kept between the parties' sketches; for
// more records each task computes its own.
const maxStoredDigests = 1 << 22

// sketcher makes the sketches of clusters of records that are all at hand. Its
// keys and digests come from the parties' shared secret.
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
	err := run.Run(ctx, s.recordTasks(), func(_, task int) {
		lo := task * recordsPerTask
		s.fill(newHasher(secret), lo, s.stored[lo:min(lo+recordsPerTask, records)])
	})
	return s, err
}

func (s *sketcher) recordTasks() int { return (s.records + recordsPerTask - 1) / recordsPerTask }

// fill computes the digests of the records from lo on.
func (s *sketcher) fill(h *hasher, lo int, dst []Digest) {
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

// encode returns the registers of all records with their labels and of the
// phantoms. The work of a cluster is cut at the time that its rate suggests, and
// done again up to twice that where a register has no arrival.
func (s *sketcher) encode(ctx context.Context, set, sketches int, labels []uint16, clusters int, phantoms cellPhantoms) (*Encoder, error) {
	cells := 0 // of each cluster
	if phantoms.perCell > 0 {
		cells = powInt(clusters, phantoms.parties-1)
	}
	counts := make([]int, clusters)
	for _, a := range labels {
		counts[a]++
	}
	limits := make([]float64, clusters)
	for a, n := range counts {
		if rate := float64(n) + float64(cells)*phantoms.perCell; rate > 0 {
			limits[a] = firstLimit(float64(n+cells), rate, sketches)
		}
	}
	keys := newArrivalKeys(s.secret, set)
	total := newEncoder(s.secret, keys, sketches, clusters)
	workers := make([]*encodingWorker, s.run.Workers())
	room := min(recordsPerTask, max(s.records, cells))
	perCluster := (cells + recordsPerTask - 1) / recordsPerTask
	for again := true; again; {
		err := s.run.Run(ctx, clusters*perCluster+s.recordTasks(), func(worker, task int) {
			w := workers[worker]
			if w == nil {
				w = &encodingWorker{encoder: newEncoder(s.secret, keys, sketches, clusters), digests: make([]Digest, room),
					grouped: make([]Digest, room), offsets: make([]int, clusters+1)}
				workers[worker] = w
			}
			if task < clusters*perCluster {
				lo := task % perCluster * recordsPerTask
				w.addPhantoms(task/perCluster, lo, min(lo+recordsPerTask, cells), phantoms, limits)
			} else {
				w.addRecords(s, (task-clusters*perCluster)*recordsPerTask, labels, limits)
			}
		})
		if err != nil {
			return nil, err
		}
		for _, w := range workers {
			if w != nil {
				total.merge(w.encoder)
			}
		}
		again = false
		for a, limit := range limits {
			if last := latest(total.registers[a]); limit > 0 && last > limit {
				limits[a], again = 2*limit, true
			} else {
				limits[a], total.bound[a] = 0, last
			}
		}
	}
	return total, nil
}

// encodingWorker is one worker's memory.
type encodingWorker struct {
	encoder          *Encoder
	digests, grouped []Digest
	offsets          []int
}

// addRecords adds the records of a task to the clusters with a limit.
func (w *encodingWorker) addRecords(s *sketcher, lo int, labels []uint16, limits []float64) {
	hi := min(lo+recordsPerTask, s.records)
	digests := w.digests[:hi-lo]
	if s.stored != nil {
		digests = s.stored[lo:hi]
	} else {
		s.fill(w.encoder.hash, lo, digests)
	}
	group(digests, labels[lo:hi], w.grouped, w.offsets)
	for a, limit := range limits {
		if part := w.grouped[w.offsets[a]:w.offsets[a+1]]; limit > 0 {
			kernels.Arrivals(w.encoder.records, part, 1, limit, w.encoder.registers[a], &w.encoder.scratch)
		}
	}
}

// addPhantoms adds the phantoms of a cluster's cells lo to hi.
func (w *encodingWorker) addPhantoms(a, lo, hi int, p cellPhantoms, limits []float64) {
	if limits[a] > 0 {
		phantomDigests(w.encoder.clusters, p.parties, p.at, a, lo, w.digests[:hi-lo])
		kernels.Arrivals(w.encoder.phantoms, w.digests[:hi-lo], p.perCell, limits[a], w.encoder.registers[a], &w.encoder.scratch)
	}
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

// addOwnPhantoms adds count phantoms to each sketch of each cluster that no other
// party knows.
func (e *Encoder) addOwnPhantoms(st *privacy.Stream, count float64) {
	for _, registers := range e.registers {
		for j, t := range registers {
			registers[j] = min(t, st.Exponential()/count)
		}
	}
}

// sketches rounds the registers of all clusters.
func (s *sketcher) sketches(ctx context.Context, e *Encoder, law *Geometric, floor uint16) (*Sketches, error) {
	sketches := NewSketches(len(e.registers[0]), e.clusters)
	err := s.run.Run(ctx, e.clusters, func(_, a int) { e.heights(law, floor, a, sketches) })
	return sketches, err
}
