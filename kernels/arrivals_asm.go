//go:build (amd64 || arm64) && !purego

package kernels

import (
	"encoding/binary"
	"math"
	"unsafe"
)

func arrivals(key *ArrivalKey, digests [][16]byte, scale, limit float64, registers []float64, s *ArrivalScratch) {
	if current == generic {
		arrivalsPortable(key, digests, scale, limit, registers)
		return
	}
	// On average a record has this many arrivals: few of them are not worth a run.
	many := limit > -arrivalGroup/2*scale
	for lo := 0; lo < len(digests); lo += arrivalChunk {
		inside := s.first(key, digests[lo:min(lo+arrivalChunk, len(digests))], scale, limit, registers)
		for inside >= arrivalGroup || inside > 0 && !many {
			inside = s.next(key, inside, scale, limit, registers)
		}
		for i := range inside {
			s.finish(key, s.blocks[i], s.times[i], scale, limit, registers)
		}
	}
}

// first gives each record of a chunk its first arrival and returns how many of them
// are within limit; their next blocks come to the front.
func (s *ArrivalScratch) first(key *ArrivalKey, chunk [][16]byte, scale, limit float64, registers []float64) int {
	n, groups := len(chunk), len(chunk)&^(arrivalGroup-1)
	clear(s.times[:])
	if groups > 0 {
		asmDraw(&key.schedule, (*[2]uint64)(unsafe.Pointer(&chunk[0])), groups, len(registers), scale, &s.times[0],
			&s.marks[0])
	}
	if groups < n {
		for i, d := range chunk[groups:] {
			s.blocks[i] = [2]uint64{binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:])}
		}
		asmDraw(&key.schedule, &s.blocks[0], arrivalGroup, len(registers), scale, &s.times[groups], &s.marks[groups])
	}
	inside := s.choose(n, limit)
	for i := range inside {
		at := s.chosen[i]
		d := &chunk[at]
		s.blocks[i] = [2]uint64{binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:]) + 1<<32}
		s.arrive(i, at, registers)
	}
	return inside
}

// next is first for the first n records of the scratch and their next arrivals.
func (s *ArrivalScratch) next(key *ArrivalKey, n int, scale, limit float64, registers []float64) int {
	asmDraw(&key.schedule, &s.blocks[0], (n+arrivalGroup-1)&^(arrivalGroup-1), len(registers), scale, &s.times[0],
		&s.marks[0])
	inside := s.choose(n, limit)
	for i := range inside {
		at := s.chosen[i]
		b := &s.blocks[at]
		s.blocks[i] = [2]uint64{b[0], b[1] + 1<<32}
		s.arrive(i, at, registers)
	}
	return inside
}

// choose lists those of the first n times that are within limit. Times are positive,
// so their bits are in the same order: comparisons that nobody can predict are
// subtractions, and minima of them.
func (s *ArrivalScratch) choose(n int, limit float64) int {
	inside, last := 0, math.Float64bits(limit)
	for i, t := range s.times[:n] {
		s.chosen[inside&(arrivalChunk-1)] = uint8(i)
		inside += int(1 - (last-math.Float64bits(t))>>63)
	}
	return inside
}

// arrive lowers the register of the arrival at place `at`, whose time comes to
// place i.
func (s *ArrivalScratch) arrive(i int, at uint8, registers []float64) {
	t := s.times[at]
	s.times[i] = t
	r := &registers[s.marks[at]]
	*r = math.Float64frombits(min(math.Float64bits(*r), math.Float64bits(t)))
}

// finish gives one record the rest of its arrivals. Their order in time makes the
// sum sequential; what they come from is not.
func (s *ArrivalScratch) finish(key *ArrivalKey, block [2]uint64, t, scale, limit float64, registers []float64) {
	r := &s.run
	for {
		n := arrivalRun
		for n > arrivalGroup && limit-t < -scale*float64(n/2) {
			n /= 2
		}
		for i := range n {
			r.blocks[i] = block
			block[1] += 1 << 32
		}
		clear(r.logs[:n])
		asmDraw(&key.schedule, &r.blocks[0], n, len(registers), 1, &r.logs[0], &r.marks[0])
		for i, x := range r.logs[:n] {
			if t = math.FMA(x, scale, t); t > limit {
				return
			}
			if r := &registers[r.marks[i]]; t < *r {
				*r = t
			}
		}
	}
}
