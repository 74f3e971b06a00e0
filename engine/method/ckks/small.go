package ckks

import (
	"encoding/binary"
	"unsafe"

	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
)

// Secrets and errors: polynomials with small coefficients, of Lattigo's default distributions. What is drawn steers no
// branch and no address.

// smalls are such polynomials in rows of a room, which are cleared before others have them.
type smalls struct {
	room rns.Room
	rows rns.Poly
}

// inRow is how many of them a row has the bytes of.
const inRow = 4

// newSmalls makes room for so many.
func newSmalls(room rns.Room, count int) smalls {
	return smalls{room, room.NewPoly((count - 1) / inRow)}
}

// at is polynomial number i, with any content.
func (s smalls) at(i int) []int8 {
	row := s.rows[i/inRow]
	n := len(row)
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(row))), inRow*n)[i%inRow*n:][:n:n]
}

// wipe clears them, if they were made: a run may have ended before.
func (s smalls) wipe() {
	if s.rows != nil {
		s.room.Wipe(s.rows)
	}
}

// ternary samples coefficients -1, 0 and 1, each with chance 1/3: a byte below 3^5 is five of them, others are drawn
// again, which tells nothing of those.
func ternary(out []int8, prng sampling.PRNG) {
	const digits, below = 5, 243
	buffer := make([]byte, 1024)
	for len(out) > 0 {
		_, _ = prng.Read(buffer) // never fails
		for _, b := range buffer {
			if b >= below {
				continue
			}
			if len(out) == 0 {
				break
			}
			n := min(digits, len(out))
			ternaryDigits(out[:n], b)
			out = out[n:]
		}
	}
	clear(buffer)
}

// ternaryDigits turns a uniform byte below a power of 3 into as many coefficients.
func ternaryDigits(out []int8, b byte) {
	rest := uint32(b)
	for i := range out {
		next := rest * 171 >> 9 // rest/3 for rest below 256
		out[i] = int8(rest-3*next) - 1
		rest = next
	}
}

// errorTails[m] is 2^63 times the chance that an error's magnitude exceeds m. An error is a Gaussian of deviation 3.2
// between -19.2 and 19.2, rounded to the nearest integer.
var errorTails = [...]uint64{0x701b64979cce5481, 0x51d2e3c22602c35a, 0x37a2ca5adb04bb12, 0x23148cced5651c67,
	0x146f686d9f334ca2, 0xaf6e755fa0c6064, 0x567c7e2aac60543, 0x2719296ddec1c55, 0x102ea94adc64556, 0x61fb135b4a6d51,
	0x21dd733efdbcaf, 0xaae45a5534e47, 0x31253def6bcb5, 0xce0ef2e6ce9f, 0x312baedc5b32, 0xaabe5e0c279, 0x218cf2c9097,
	0x5d174b5955, 0xbaf8b0e12}

// smallErrors samples coefficients of an error polynomial.
func smallErrors(out []int8, prng sampling.PRNG) {
	n, buffer := len(out), make([]byte, 8*min(len(out), 256))
	for at := 0; at < n; {
		_, _ = prng.Read(buffer) // never fails
		for b := buffer; len(b) >= 8 && at < n; b, at = b[8:], at+1 {
			out[at] = smallError(binary.LittleEndian.Uint64(b))
		}
	}
	clear(buffer)
}

// smallError turns a uniform word into an error.
func smallError(word uint64) int8 {
	u, sign, t := word&(1<<63-1), int64(word)>>63, &errorTails
	// One for each tail that u is in; a loop takes twice the time.
	m := (u-t[0])>>63 + (u-t[1])>>63 + (u-t[2])>>63 + (u-t[3])>>63 + (u-t[4])>>63 + (u-t[5])>>63 + (u-t[6])>>63 +
		(u-t[7])>>63 + (u-t[8])>>63 + (u-t[9])>>63 + (u-t[10])>>63 + (u-t[11])>>63 + (u-t[12])>>63 + (u-t[13])>>63 +
		(u-t[14])>>63 + (u-t[15])>>63 + (u-t[16])>>63 + (u-t[17])>>63 + (u-t[18])>>63
	return int8((int64(m) ^ sign) - sign)
}

// signedSmall is x modulo q.
func signedSmall(x int8, q uint32) uint32 { return uint32(int32(x)) + q&uint32(int32(x)>>31) }

// splitSmall is x modulo the primes up to a level.
func splitSmall(lattice *rns.Chain, x int8, level int) []uint32 {
	out := make([]uint32, level+1)
	for j := range out {
		out[j] = signedSmall(x, lattice.Q(j))
	}
	return out
}

// transformed returns the polynomial of small coefficients at a level, in the transform's domain.
func transformed(room rns.Room, coefficients []int8, level int) rns.Poly {
	out := room.NewPoly(level)
	last := out[level]
	for i, x := range coefficients {
		last[i] = uint32(int32(x))
	}
	for _, row := range out[:level] {
		copy(row, last)
	}
	room.Chain().Forward(out)
	return out
}
