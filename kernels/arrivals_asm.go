package kernels

import (
	"encoding/binary"
	"math"
	"unsafe"
)

func arrivals(key *ArrivalKey, digests [][16]byte, scale, limit, horizon float64, registers []float64,
	states []ArrivalState, s *ArrivalScratch) int {
	if current == generic {
		return arrivalsPortable(key, digests, scale, limit, horizon, registers, states)
	}
	w := arrivalWork{key, scale, limit, horizon, registers, states, 0, false, s}
	for lo := 0; lo < len(digests); lo += arrivalChunk {
		chunk := digests[lo:min(lo+arrivalChunk, len(digests))]
		w.finish(w.first(chunk), limit)
	}
	return w.kept
}

func advance(key *ArrivalKey, states []ArrivalState, scale, limit float64, registers []float64, s *ArrivalScratch) {
	if current == generic {
		advancePortable(key, states, scale, limit, registers)
		return
	}
	for lo := 0; lo < len(states); lo += arrivalChunk {
		chunk := states[lo:min(lo+arrivalChunk, len(states))]
		w := arrivalWork{key, scale, limit, math.Inf(1), registers, chunk, 0, true, s}
		w.finish(w.take(), limit)
	}
}

// arrivalWork is a call of [ArrivalsKept] or [Continue].
type arrivalWork struct {
	key            *ArrivalKey
	scale          float64
	limit, horizon float64
	registers      []float64
	states         []ArrivalState // nil to keep none
	kept           int
	again          bool // states come from slots of their own
	*ArrivalScratch
}

// first gives each record of a chunk its first arrival and returns how many of them
// are within the limit; their next blocks come to the front.
func (w *arrivalWork) first(chunk [][16]byte) int {
	n, groups := len(chunk), len(chunk)&^(arrivalGroup-1)
	clear(w.times[:])
	if groups > 0 {
		w.draw((*[2]uint64)(unsafe.Pointer(&chunk[0])), groups, 0)
	}
	if groups < n {
		for i, d := range chunk[groups:] {
			w.blocks[i] = [2]uint64{binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:])}
		}
		w.draw(&w.blocks[0], arrivalGroup, groups)
	}
	inside, parted := w.choose(n)
	for _, at := range w.parted[:parted] {
		d := &chunk[at]
		w.keep([2]uint64{binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:])}, w.times[at], w.marks[at])
	}
	a, registers := w.ArrivalScratch, w.registers
	for i := range inside {
		at := a.chosen[i]
		d := &chunk[at]
		a.blocks[i] = [2]uint64{binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:]) + 1<<32}
		a.arrive(i, at, registers)
	}
	return inside
}

// take is first for states: those within the limit leave their slots to whom is kept.
func (w *arrivalWork) take() int {
	a, states, registers := w.ArrivalScratch, w.states, w.registers
	inside, last := 0, math.Float64bits(w.limit)
	for i := range states {
		a.slots[inside&(arrivalChunk-1)] = uint8(i)
		inside += int(1 - (last-math.Float64bits(states[i].time))>>63)
	}
	for i, slot := range a.slots[:inside] {
		p := &states[slot]
		a.blocks[i], a.times[i] = p.block, p.time
		lower(registers, p.mark, p.time)
	}
	return inside
}

// next is first for the first n records of the scratch and their next arrivals.
func (w *arrivalWork) next(n int) int {
	w.draw(&w.blocks[0], (n+arrivalGroup-1)&^(arrivalGroup-1), 0)
	inside, parted := w.choose(n)
	for _, at := range w.parted[:parted] {
		w.keep(w.blocks[at], w.times[at], w.marks[at])
	}
	a, registers := w.ArrivalScratch, w.registers
	for i := range inside {
		at := a.chosen[i]
		b := &a.blocks[at]
		a.blocks[i] = [2]uint64{b[0], b[1] + 1<<32}
		a.arrive(i, at, registers)
	}
	return inside
}

// draw draws the arrivals of n blocks into the scratch from place `at` on.
func (w *arrivalWork) draw(blocks *[2]uint64, n, at int) {
	asmDraw(&w.key.schedule, blocks, n, len(w.registers), w.scale, &w.times[at], &w.marks[at])
}

// choose lists those of the first n times that are within the limit, and those beyond
// it that are to be kept. Times are positive, so their bits are in the same order:
// comparisons that nobody can predict are subtractions, and minima of them.
func (w *arrivalWork) choose(n int) (inside, parted int) {
	a, last, far := w.ArrivalScratch, math.Float64bits(w.limit), math.Float64bits(w.horizon)
	if w.states == nil {
		for i, t := range a.times[:n] {
			a.chosen[inside&(arrivalChunk-1)] = uint8(i)
			inside += int(1 - (last-math.Float64bits(t))>>63)
		}
		return inside, 0
	}
	for i, t := range a.times[:n] {
		b := math.Float64bits(t)
		beyond := int((last - b) >> 63)
		a.chosen[inside&(arrivalChunk-1)] = uint8(i)
		inside += 1 - beyond
		a.parted[parted&(arrivalChunk-1)] = uint8(i)
		parted += beyond - int((far-b)>>63)
	}
	return inside, parted
}

// keep keeps a process at an arrival, which is that of the block.
func (w *arrivalWork) keep(block [2]uint64, t float64, mark uint32) {
	slot := w.kept
	if w.again {
		slot = int(w.slots[slot])
	}
	w.states[slot] = ArrivalState{[2]uint64{block[0], block[1] + 1<<32}, t, mark}
	w.kept++
}

// arrive lowers the register of the arrival at place `at`, whose time comes to
// place i.
func (s *ArrivalScratch) arrive(i int, at uint8, registers []float64) {
	t := s.times[at]
	s.times[i] = t
	lower(registers, s.marks[at], t)
}

// lower lowers a register to t.
func lower(registers []float64, mark uint32, t float64) {
	r := &registers[mark]
	*r = math.Float64frombits(min(math.Float64bits(*r), math.Float64bits(t)))
}

// finish gives the first n records of the scratch the rest of their arrivals: together
// while they fill a group, then each by itself where that is worth a run.
func (w *arrivalWork) finish(n int, limit float64) {
	for n >= arrivalGroup || n > 0 && limit-w.times[0] < -arrivalGroup/2*w.scale {
		n = w.next(n)
	}
	for i := range n {
		w.finishOne(w.blocks[i], w.times[i])
	}
}

// finishOne gives one record the rest of its arrivals. Their order in time makes the
// sum sequential; what they come from is not.
func (w *arrivalWork) finishOne(block [2]uint64, t float64) {
	r := &w.run
	for {
		n := arrivalRun
		for n > arrivalGroup && w.limit-t < -w.scale*float64(n/2) {
			n /= 2
		}
		for i := range n {
			r.blocks[i] = block
			block[1] += 1 << 32
		}
		clear(r.logs[:n])
		asmDraw(&w.key.schedule, &r.blocks[0], n, len(w.registers), 1, &r.logs[0], &r.marks[0])
		for i, x := range r.logs[:n] {
			if t = math.FMA(x, w.scale, t); t > w.limit {
				if w.states != nil && t <= w.horizon {
					w.keep(r.blocks[i], t, r.marks[i])
				}
				return
			}
			lower(w.registers, r.marks[i], t)
		}
	}
}
