package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
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
func Arrivals(key *ArrivalKey, digests [][16]byte, rate, limit float64, registers []float64, s *ArrivalScratch) {
	if len(registers) < 1 || len(registers) > MaxRegisters {
		panic(fmt.Sprintf("kernels: Arrivals: len(registers)=%d, want 1 to %d", len(registers), MaxRegisters))
	}
	m := float64(len(registers))
	if !(rate > 0 && limit > 0 && m*rate*limit < 1<<31) {
		panic(fmt.Sprintf("kernels: Arrivals: rate=%v, limit=%v with %v registers, "+
			"want positive numbers whose product is less than 2^31", rate, limit, m))
	}
	arrivals(key, digests, -1/(m*rate), limit, registers, s)
}

// arrivalsPortable is the reference form of [Arrivals], with scale = -1/(m rate).
func arrivalsPortable(key *ArrivalKey, digests [][16]byte, scale, limit float64, registers []float64) {
	table := aesTable()
	for i := range digests {
		first, second := binary.LittleEndian.Uint64(digests[i][:8]), binary.LittleEndian.Uint64(digests[i][8:])
		t := 0.0
		for {
			x, y := encryptBlock(table, &key.schedule, first, second)
			t = math.FMA(logUniform(x), scale, t)
			if t > limit {
				break
			}
			j, _ := bits.Mul64(y, uint64(len(registers)))
			if t < registers[j] {
				registers[j] = t
			}
			second += 1 << 32
		}
	}
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
	run    struct {
		blocks [arrivalRun][2]uint64
		logs   [arrivalRun]float64
		marks  [arrivalRun]uint32
	}
}
