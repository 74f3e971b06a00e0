package sketch

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Encoder makes one party's sketches under one set of keys from a stream of
// records, in memory for the registers alone: for each cluster and sketch the
// first arrival over the cluster's ids and phantoms (kernels.Arrivals), which is
// rounded to a height at the end. Encoders with the same secret, set and shape
// make parts that Merge joins, in any order, with the same result.
//
// An Encoder serves one goroutine at a time.
type Encoder struct {
	clusters          int
	records, phantoms *kernels.ArrivalKey
	hash              *hasher
	registers         [][]float64 // by cluster
	// bound is, by cluster, a time beyond which arrivals are left out. Of a stream
	// it is the last register's, +Inf while a register has no arrival.
	bound []float64
	// rate is that of what was added, by cluster, and measured that at which the
	// bound is to be looked up again.
	rate, measured []float64
	waiting        [][]Digest // by cluster, ids not yet in the registers
	scratch        kernels.ArrivalScratch
}

// NewEncoder returns an encoder of key set number set, with 1 to MaxSketches
// sketches for each of 1 to MaxLocalK clusters.
func NewEncoder(secret Secret, set, sketches, clusters int) (*Encoder, error) {
	if sketches < 1 || sketches > MaxSketches {
		return nil, fault.Range("sketches", sketches, fmt.Sprintf("from 1 to %d", MaxSketches))
	}
	if clusters < 1 || clusters > MaxLocalK {
		return nil, fault.Range("clusters", clusters, fmt.Sprintf("from 1 to %d", MaxLocalK))
	}
	return newEncoder(secret, newArrivalKeys(secret, set), sketches, clusters), nil
}

// arrivalKeys are the keys of the records and of the phantoms in one key set.
type arrivalKeys [2]*kernels.ArrivalKey

func newArrivalKeys(secret Secret, set int) (keys arrivalKeys) {
	h := newHasher(secret)
	var data [16]byte
	binary.LittleEndian.PutUint64(data[:], uint64(set))
	for i, domain := range []byte{domainRecord, domainPhantom} {
		data[8] = domain
		keys[i] = kernels.NewArrivalKey(h.digest(domainKey, data[:]))
	}
	return keys
}

func newEncoder(secret Secret, keys arrivalKeys, sketches, clusters int) *Encoder {
	e := &Encoder{clusters: clusters, records: keys[0], phantoms: keys[1], hash: newHasher(secret),
		bound: make([]float64, clusters), rate: make([]float64, clusters), measured: make([]float64, clusters),
		waiting: make([][]Digest, clusters)}
	all := make([]float64, clusters*sketches)
	fill(all, math.Inf(1))
	for a := range clusters {
		e.registers = append(e.registers, all[a*sketches:(a+1)*sketches])
	}
	fill(e.bound, math.Inf(1))
	return e
}

func fill(dst []float64, x float64) {
	for i := range dst {
		dst[i] = x
	}
}

// recordsPerBatch is the number of ids of a cluster that a stream collects.
const recordsPerBatch = 1024

// Add puts a record into a cluster. It panics unless cluster is one.
func (e *Encoder) Add(cluster int, id []byte) {
	w := append(e.waiting[cluster], e.hash.record(id))
	if len(w) == recordsPerBatch {
		e.lower(cluster, e.records, w, 1)
		w = w[:0]
	}
	e.waiting[cluster] = w
}

// AddPhantoms puts into each cluster a of the party with position at among the
// parties of the key set the phantoms of all cells g in [clusters]^parties with
// g_at = a, perCell in each: the superposition of perCell processes is one of that
// rate. All parties draw the same phantoms.
func (e *Encoder) AddPhantoms(parties, at int, perCell float64) error {
	cells, ok := product(e.clusters, parties-1, maxDense)
	if parties < 2 || at < 0 || at >= parties || !(perCell > 0) || !ok {
		return fault.Request("phantoms",
			fmt.Sprintf("of party %d of %d, %v in a cell, with %d clusters", at+1, parties, perCell, e.clusters),
			"the numbers must be positive and the grid within its limits")
	}
	digests := make([]Digest, min(cells, recordsPerBatch))
	for a := range e.clusters {
		for lo := 0; lo < cells; lo += recordsPerBatch {
			part := digests[:min(recordsPerBatch, cells-lo)]
			phantomDigests(e.clusters, parties, at, a, lo, part)
			e.lower(a, e.phantoms, part, perCell)
		}
	}
	return nil
}

// phantomDigests lists, of the cells g with g_at = a in lexicographic order of the
// other parties' clusters, those from lo on. A cell's digest is its number: the
// phantoms have a key of their own.
func phantomDigests(clusters, parties, at, a, lo int, dst []Digest) {
	stride := powInt(clusters, parties-1-at)
	for i := range dst {
		cell := ((lo+i)/stride*clusters+a)*stride + (lo+i)%stride
		dst[i] = Digest{}
		binary.LittleEndian.PutUint64(dst[i][:], uint64(cell))
	}
}

// lower adds records of a rate to a cluster. To the first of them arrivals are given
// until every register has one.
func (e *Encoder) lower(a int, key *kernels.ArrivalKey, digests []Digest, rate float64) {
	registers := e.registers[a]
	e.rate[a] += rate * float64(len(digests))
	if !math.IsInf(e.bound[a], 1) {
		kernels.Arrivals(key, digests, rate, e.bound[a], registers, &e.scratch)
		if e.rate[a] > e.measured[a] {
			e.bound[a], e.measured[a] = latest(registers), 1.25*e.rate[a]
		}
		return
	}
	r := kernels.NewReach(rate*float64(len(digests)), len(registers))
	states := make([]kernels.ArrivalState, len(digests))
	kept := kernels.ArrivalsKept(key, digests, rate, r.Limit, math.Inf(1), registers, states, &e.scratch)
	for latest(registers) > r.Limit {
		r.Extend()
		kernels.Continue(key, states[:kept], rate, r.Limit, registers, &e.scratch)
	}
	e.bound[a], e.measured[a] = latest(registers), 1.25*e.rate[a]
}

// latest returns the largest register.
func latest(registers []float64) float64 {
	last := 0.0
	for _, t := range registers {
		last = max(last, t)
	}
	return last
}

// Merge joins what another encoder of the same keys and shape has to e. Both stay
// usable.
func (e *Encoder) Merge(o *Encoder) error {
	if e.clusters != o.clusters || len(e.registers[0]) != len(o.registers[0]) {
		return fault.Request("sketches", fmt.Sprintf("have %d x %d registers and %d x %d", e.clusters, len(e.registers[0]),
			o.clusters, len(o.registers[0])),
			"merge encoders of one shape")
	}
	o.flush()
	for a := range e.clusters {
		e.mergeCluster(a, o)
		e.bound[a] = min(e.bound[a], o.bound[a])
		e.rate[a] += o.rate[a]
	}
	return nil
}

// mergeCluster joins the registers of one cluster.
func (e *Encoder) mergeCluster(a int, o *Encoder) {
	r, other := e.registers[a], o.registers[a][:len(e.registers[a])]
	for j, t := range other {
		r[j] = math.Float64frombits(min(math.Float64bits(r[j]), math.Float64bits(t))) // both positive
	}
}

// flush puts the ids that wait into the registers.
func (e *Encoder) flush() {
	for a, w := range e.waiting {
		if len(w) > 0 {
			e.lower(a, e.records, w, 1)
			e.waiting[a] = w[:0]
		}
	}
}

// Sketches rounds the first arrivals to heights, no lower than floor; an empty
// cluster has the least height.
func (e *Encoder) Sketches(distribution *Geometric, floor uint16) *Sketches {
	e.flush()
	s := newSketches(len(e.registers[0]), e.clusters)
	for a := range e.clusters {
		e.heights(distribution, floor, a, s)
	}
	return s
}

// heights fills in one cluster of s.
func (e *Encoder) heights(distribution *Geometric, floor uint16, a int, s *Sketches) {
	for i, t := range e.registers[a] {
		s.Heights[i*e.clusters+a] = max(distribution.height(t), floor)
	}
}
