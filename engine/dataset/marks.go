package dataset

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Lines of plain numbers are parsed in two steps: first every character that is no digit gets a mark, then numbers are
// taken from mark to mark. Where a number ends is then known before its digits are looked at, so that the processor
// works on several numbers at a time, and whatever is not plain is left to scanNumber and the general parser.

const (
	zeroDigits = 0x3030303030303030
	highBits   = 0x8080808080808080
)

// markOthers sets bit i%64 of marks[i/64] for each character i of the text, up to end, that is no digit, and clears it
// for digits; bits past the end can be either. The text has at least seven bytes of room after it.
func markOthers(marks []uint64, text []byte, end int) {
	whole := end / 64
	for w := range marks[:whole] {
		t := (*[64]byte)(text[64*w:])
		marks[w] = others(t[0:]) | others(t[8:])<<8 | others(t[16:])<<16 | others(t[24:])<<24 |
			others(t[32:])<<32 | others(t[40:])<<40 | others(t[48:])<<48 | others(t[56:])<<56
	}
	if whole == len(marks) {
		return
	}
	marks[whole] = 0
	for i := 64 * whole; i < end; i += 8 {
		marks[whole] |= others(text[i:]) << (i % 64)
	}
}

// others has a bit for each of the first eight characters that is no digit.
func others(text []byte) uint64 {
	v := binary.LittleEndian.Uint64(text) ^ zeroDigits // a digit becomes its value
	// The product moves the high bits of the bytes next to each other.
	return ((v&^highBits + 0x7676767676767676) | v) & highBits * 0x0002040810204081 >> 56
}

// nextMark takes the first of the marks m that are left in word w, or of later words: where it is, and what is left.
func nextMark(marks []uint64, w int, m uint64) (at, word int, left uint64) {
	for m == 0 {
		w++
		m = marks[w]
	}
	return w<<6 | bits.TrailingZeros64(m), w, m & (m - 1)
}

// numbersLine parses the line that begins at text[at] into row if its cells are numbers without exponents and blanks,
// one for each of the row. It returns where the next line begins, or 0 where the line is any other.
func (p *lineParser) numbersLine(at int, row []float64, point, sep byte) int {
	text, marks := p.text, p.marks
	w := at >> 6
	m := marks[w] &^ (1<<(at&63) - 1)
	for c := range row {
		start, sign, stop := at, uint64(0), 0
		if text[at] == '-' {
			_, w, m = nextMark(marks, w, m)
			sign = 1 << 63
			at++
		}
		stop, w, m = nextMark(marks, w, m)
		end, whole, part := stop, stop-at, 0
		if text[stop] == point {
			end, w, m = nextMark(marks, w, m)
			part = end - stop - 1
		}
		if count := whole + part; whole <= 8 && part <= 8 && count >= 1 && count <= 15 {
			v := (binary.LittleEndian.Uint64(text[at:]) ^ zeroDigits) << uint(64-8*whole)
			fraction := (binary.LittleEndian.Uint64(text[stop+1:]) ^ zeroDigits) << uint(64-8*part)
			var mantissa uint64
			if count <= 8 {
				mantissa = eightDigits(v>>uint(8*part) | fraction)
			} else {
				mantissa = eightDigits(v)*shift10[part] + eightDigits(fraction)
			}
			// Both are exact, so one operation rounds once (Clinger 1990).
			row[c] = math.Float64frombits(math.Float64bits(float64(int64(mantissa))/pow10[part]) | sign)
		} else {
			v, to, ok := scanNumber(text, start, point)
			if !ok || to != end {
				return 0
			}
			row[c] = v
		}
		want := sep
		if c == len(row)-1 {
			if want = '\n'; text[end] == '\r' {
				end++
			}
		}
		if text[end] != want {
			return 0
		}
		at = end + 1
	}
	return at
}

// eightDigits is the value of eight digits, the first in the lowest byte.
func eightDigits(v uint64) uint64 {
	v = v*10 + v>>8
	return (v&0x000000ff000000ff*0x000f424000000064 + v>>16&0x000000ff000000ff*0x0000271000000001) >> 32
}
