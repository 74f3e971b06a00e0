package sketch

import (
	"encoding/binary"
	"math"

	"github.com/cohort-engine/cohort/kernels"
)

// encoder has the registers of one party's sketches under one set of keys: for each
// cluster and sketch the first arrival over the cluster's ids and phantoms
// (kernels.Arrivals), which is rounded to a height at the end. Encoders with the same
// keys and shape make parts that merge joins, in any order, with the same result.
type encoder struct {
	clusters  int
	hash      *hasher
	registers [][]float64 // by cluster; +Inf where there is no arrival
	scratch   kernels.ArrivalScratch
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

func newEncoder(secret Secret, sketches, clusters int) *encoder {
	e := &encoder{clusters: clusters, hash: newHasher(secret)}
	all := make([]float64, clusters*sketches)
	for i := range all {
		all[i] = math.Inf(1)
	}
	for a := range clusters {
		e.registers = append(e.registers, all[a*sketches:(a+1)*sketches])
	}
	return e
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

// latest returns the largest register.
func latest(registers []float64) float64 {
	last := 0.0
	for _, t := range registers {
		last = max(last, t)
	}
	return last
}

// merge joins the registers of a cluster with those that another encoder has of it.
func (e *encoder) merge(a int, o *encoder) {
	r, other := e.registers[a], o.registers[a][:len(e.registers[a])]
	for j, t := range other {
		r[j] = math.Float64frombits(min(math.Float64bits(r[j]), math.Float64bits(t))) // both positive
	}
}

// heights fills in one cluster of s.
func (e *encoder) heights(distribution *Geometric, floor uint16, a int, s *Sketches) {
	for i, t := range e.registers[a] {
		s.Heights[i*e.clusters+a] = max(distribution.height(t), floor)
	}
}
