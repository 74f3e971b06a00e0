package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// MaxRegisters is the largest number of registers of [Arrivals].
const MaxRegisters = 1 << 20

// An ArrivalKey is the AES-128 key of [Arrivals], expanded.
type ArrivalKey struct{ schedule [44]uint32 }

// NewArrivalKey expands a key.
func NewArrivalKey(key [16]byte) *ArrivalKey {
	k := new(ArrivalKey)
	expandKey(&aesTable().sbox, &key, &k.schedule)
	return k
}

// Arrivals lowers each register to the first arrival up to limit of the records'
// processes at it. Under a key, a record of m = len(registers) registers is a
// Poisson process of rate m rate in the time from 0 on, each arrival of which
// goes to one register, uniform over them: so the arrivals at the registers are
// independent processes of the given rate, first arrivals independent and
// exponential, and the minimum over the records of a set says which of two sets
// agree, as a min-hash does. A register that is at most limit is final: nothing
// that comes later is below it. For any order and grouping of the records, for
// any limit and on every instruction set its bits are the same.
//
// Arrival i = 0, 1, ... of a record is AES-128 of its digest with i added,
// modulo 2^32, to the last 4 bytes (little endian), so digests that share their
// first 12 bytes share arrivals. Of the halves x and y of the result, little
// endian, the gap is -ln((2 floor(x/2^12) + 1)/2^53)/(m rate) and the register
// floor(y m/2^64), whose probability is off by a factor within 1 +- m/2^64.
//
// m is 1 to MaxRegisters, rate and limit are positive and finite, and a record
// has less than 2^31 arrivals on average: m rate limit < 2^31.
//
// With states, it keeps in them, from the first on, where the processes stand whose next
// arrival is at most horizon, for [Continue], and returns how many; there must be room
// for a state of each digest. Nothing else comes up to the horizon, which may be +Inf.
func Arrivals(key *ArrivalKey, digests [][16]byte, rate, limit, horizon float64, registers []float64,
	states []ArrivalState, s *ArrivalScratch) int {
	scale := checkArrivals("Arrivals", rate, limit, registers)
	if states != nil && (len(states) < len(digests) || !(horizon >= limit)) {
		panic(fmt.Sprintf("kernels: Arrivals: len(states)=%d, len(digests)=%d, limit=%v, horizon=%v: "+
			"want room for each and a horizon beyond the limit", len(states), len(digests), limit, horizon))
	}
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

// An ArrivalState is where the process of a record stands: at its first arrival
// beyond a limit, which no register has yet.
type ArrivalState struct {
	block [2]uint64 // of the arrival after it
	time  float64
	mark  uint32
}

// Continue goes on with processes where they stand, under the same key and rate and
// with as many registers, up to a later limit, beyond which they stand then: registers
// and states are those of [Arrivals] with that limit.
func Continue(key *ArrivalKey, states []ArrivalState, rate, limit float64, registers []float64, s *ArrivalScratch) {
	scale := checkArrivals("Continue", rate, limit, registers)
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

// A Reach is the time up to which to generate the arrivals of a set of records until no
// register is without one. At the time (ln m + c)/rate some register is with probability
// at most e^-c; then the arrivals go on from where they stand, each time for twice as
// long.
type Reach struct{ Limit, step float64 }

// firstReach and firstStep weigh the m blocks that buy one of c against going on, and
// KeptReach is what is left of c after steps of 2, 4 and 8: how far beyond the first
// limit states are worth their memory.
const (
	firstReach = 2
	firstStep  = 2
	KeptReach  = 14
)

// NewReach returns the first reach of a set of records whose rates add up to rate.
func NewReach(rate float64, registers int) Reach {
	return Reach{(math.Log(float64(registers)) + firstReach) / rate, firstStep / rate}
}

// Extend goes on.
func (r *Reach) Extend() {
	r.Limit += r.step
	r.step *= 2
}

// checkArrivals checks what the arrivals are drawn with and returns -1/(m rate).
func checkArrivals(name string, rate, limit float64, registers []float64) (scale float64) {
	if len(registers) < 1 || len(registers) > MaxRegisters {
		panic(fmt.Sprintf("kernels: %s: len(registers)=%d, want 1 to %d", name, len(registers), MaxRegisters))
	}
	m := float64(len(registers))
	if !(rate > 0 && limit > 0 && m*rate*limit < 1<<31) {
		panic(fmt.Sprintf("kernels: %s: rate=%v, limit=%v with %v registers, "+
			"want positive numbers whose product is less than 2^31", name, rate, limit, m))
	}
	return -1 / (m * rate)
}

// arrivalsPortable is the reference form of [Arrivals], with
// scale = -1/(m rate). Without states it keeps none.
func arrivalsPortable(key *ArrivalKey, digests [][16]byte, scale, limit, horizon float64, registers []float64,
	states []ArrivalState) (kept int) {
	for i := range digests {
		d := &digests[i]
		a := ArrivalState{block: [2]uint64{binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:])}}
		a.draw(key, scale, len(registers))
		a.advance(key, scale, limit, registers)
		if states != nil && a.time <= horizon {
			states[kept] = a
			kept++
		}
	}
	return kept
}

// advancePortable is the reference form of [Continue].
func advancePortable(key *ArrivalKey, states []ArrivalState, scale, limit float64, registers []float64) {
	for i := range states {
		states[i].advance(key, scale, limit, registers)
	}
}

// advance lowers registers by the arrivals of a process up to limit.
func (a *ArrivalState) advance(key *ArrivalKey, scale, limit float64, registers []float64) {
	for a.time <= limit {
		if r := &registers[a.mark]; a.time < *r {
			*r = a.time
		}
		a.draw(key, scale, len(registers))
	}
}

// draw goes to the next arrival, that of the block.
func (a *ArrivalState) draw(key *ArrivalKey, scale float64, registers int) {
	x, y := encryptBlock(aesTable(), &key.schedule, a.block[0], a.block[1])
	a.block[1] += 1 << 32
	a.time = math.FMA(logUniform(x), scale, a.time)
	j, _ := bits.Mul64(y, uint64(registers))
	a.mark = uint32(j)
}

// logUniform returns the logarithm of u = (2 floor(x/2^12) + 1)/2^53, to a few
// units in the last place also near u = 1, and with the same bits on every
// instruction set: u = 2^e m with m in [sqrt(1/2), sqrt(2)) and ln m = 2 atanh(s),
// s = (m-1)/(m+1), by the odd polynomial of FreeBSD's e_log.c.
func logUniform(x uint64) float64 {
	const one, sqrtHalf = 0x3ff0000000000000, 0x3fe6a09e667f3bcd
	u := math.Float64frombits(one|x>>12) - (1 - 0x1p-53) // exact
	b := math.Float64bits(u) + (one - sqrtHalf)
	e := math.Float64frombits(0x4330000000000000|b>>52) - (0x1p52 + 1023) // exact
	f := math.Float64frombits(b&(1<<52-1)+sqrtHalf) - 1                   // exact
	s := f / (2 + f)
	z := s * s
	p := 1.479819860511658591e-01
	p = math.FMA(p, z, 1.531383769920937332e-01)
	p = math.FMA(p, z, 1.818357216161805012e-01)
	p = math.FMA(p, z, 2.222219843214978396e-01)
	p = math.FMA(p, z, 2.857142874366239149e-01)
	p = math.FMA(p, z, 3.999999999940941908e-01)
	p = math.FMA(p, z, 6.666666666666735130e-01)
	p = math.FMA(p, z, 2)
	return math.FMA(e, math.Ln2, float64(p*s))
}

// Records in flight: a chunk of them takes its arrivals together, one each per
// round, until fewer than a group of blocks are left; then each takes a run of
// its arrivals at once.
const (
	arrivalChunk = 256
	arrivalGroup = 8
	arrivalRun   = 32
)

// An ArrivalScratch is the memory of [Arrivals]. It serves one goroutine at a time.
type ArrivalScratch struct {
	blocks [arrivalChunk][2]uint64
	times  [arrivalChunk]float64
	marks  [arrivalChunk]uint32
	chosen [arrivalChunk]uint8 // places in the others
	parted [arrivalChunk]uint8 // likewise, of those to keep
	slots  [arrivalChunk]uint8 // places in states
	run    struct {
		blocks [arrivalRun][2]uint64
		logs   [arrivalRun]float64
		marks  [arrivalRun]uint32
	}
}

// arrivalWork is a call of [Arrivals] or [Continue].
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
