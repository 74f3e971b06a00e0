//go:build (amd64 || arm64) && !purego

package kernels

import (
	"encoding/binary"
	"math"
)

func arrivals(key *ArrivalKey, digests [][16]byte, scale, limit float64, registers []float64, s *ArrivalScratch) {
	if current == generic {
		arrivalsPortable(key, digests, scale, limit, registers)
		return
	}
	// On average a record has this many arrivals: few of them are not worth a run.
	many := limit > -arrivalGroup/2*scale
	for lo := 0; lo < len(digests); lo += arrivalChunk {
		chunk := digests[lo:min(lo+arrivalChunk, len(digests))]
		for i := range chunk {
			s.blocks[i] = [2]uint64{binary.LittleEndian.Uint64(chunk[i][:8]), binary.LittleEndian.Uint64(chunk[i][8:])}
		}
		inside := len(chunk)
		clear(s.times[:inside])
		for inside >= arrivalGroup || inside > 0 && !many {
			inside = s.round(key, inside, scale, limit, registers)
		}
		for i := range inside {
			s.finish(key, s.blocks[i], s.times[i], scale, limit, registers)
		}
	}
}

// round gives each of the first n records its next arrival and returns how many
// of them are within limit, which it moves to the front.
func (s *ArrivalScratch) round(key *ArrivalKey, n int, scale, limit float64, registers []float64) int {
	asmDraw(&key.schedule, &s.blocks[0], (n+arrivalGroup-1)&^(arrivalGroup-1), len(registers), scale, &s.times[0], &s.marks[0])
	// Times are positive, so their bits are in the same order; comparisons that
	// nobody can predict are subtractions and minima of them.
	inside, last := 0, math.Float64bits(limit)
	for i, t := range s.times[:n] {
		b := s.blocks[i]
		at := inside & (arrivalChunk - 1)
		s.blocks[at] = [2]uint64{b[0], b[1] + 1<<32}
		s.times[at], s.marks[at] = t, s.marks[i]
		inside += int(1 - (last-math.Float64bits(t))>>63)
	}
	for i, t := range s.times[:inside] {
		r := &registers[s.marks[i]]
		*r = math.Float64frombits(min(math.Float64bits(*r), math.Float64bits(t)))
	}
	return inside
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
