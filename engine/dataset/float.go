package dataset

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

var (
	errNotNumber  = errors.New("not a number")
	errNotFinite  = errors.New("NaN and Inf are not allowed")
	errOutOfRange = errors.New("outside the range of float64")
)

// pow10 holds the powers of ten that float64 represents exactly.
var pow10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// shift10 holds the powers of ten by which up to eight digits move a mantissa.
var shift10 = [...]uint64{1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// numberPad is how many bytes after a number scanNumber may look at.
const numberPad = 16

// scanNumber parses the decimal number that begins at b[i], of which b has at
// least numberPad bytes after its end. It returns the correctly rounded value and
// where the number ends, or false for anything but a number of at most 19 digits
// that it can round for certain; what follows the number is up to the caller.
// Digits are read eight at a time (Lemire, Software: Practice and Experience 51,
// 2021, section 8).
func scanNumber(b []byte, i int, point byte) (float64, int, bool) {
	negative := uint64(0)
	if b[i] == '-' {
		negative = 1 << 63
		i++
	} else if b[i] == '+' {
		i++
	}
	mantissa, start := uint64(0), i
	for {
		n, x := leadingDigits(binary.LittleEndian.Uint64(b[i:]))
		mantissa = mantissa*shift10[n] + x
		i += n
		if n < 8 || i-start > 19 {
			break
		}
	}
	digits, exponent := i-start, 0
	if b[i] == point {
		i++
		start = i
		for {
			n, x := leadingDigits(binary.LittleEndian.Uint64(b[i:]))
			mantissa = mantissa*shift10[n] + x
			i += n
			if n < 8 || digits+i-start > 19 {
				break
			}
		}
		exponent = start - i
		digits -= exponent
	}
	if digits == 0 || digits > 19 {
		return 0, i, false
	}
	if b[i]|0x20 == 'e' {
		e, end, ok := scanExponent(b, i+1)
		if !ok {
			return 0, i, false
		}
		exponent, i = exponent+e, end
	}
	if mantissa < 1<<53 && exponent >= -22 && exponent <= 22 {
		// Both are exact, so one operation rounds once (Clinger 1990).
		f := float64(mantissa)
		if exponent < 0 {
			f /= pow10[-exponent]
		} else {
			f *= pow10[exponent]
		}
		return math.Float64frombits(math.Float64bits(f) | negative), i, true
	}
	f, ok := eiselLemire(mantissa, exponent)
	return math.Float64frombits(math.Float64bits(f) | negative), i, ok
}

// leadingDigits returns the number of digits at the beginning of the eight
// characters v (the first in the lowest byte) and their value.
func leadingDigits(v uint64) (int, uint64) {
	v ^= zeroDigits // a digit becomes its value
	other := ((v + 0x7676767676767676) | v) & highBits
	n := bits.TrailingZeros64(other) / 8
	return n, eightDigits(v << uint(64-8*n)) // the digits last, zeros before them
}

// scanExponent parses the exponent that begins at b[i].
func scanExponent(b []byte, i int) (int, int, bool) {
	negative := b[i] == '-'
	if negative || b[i] == '+' {
		i++
	}
	n, x := leadingDigits(binary.LittleEndian.Uint64(b[i:]))
	if n == 0 || n == 8 {
		return 0, i, false
	}
	if negative {
		return -int(x), i + n, true
	}
	return int(x), i + n, true
}

// minPower and maxPower are the exponents of powers; numbers outside are left to strconv.
const minPower, maxPower = -64, 64

// powers holds the first 128 bits, high word first, of 10^e for e from minPower to maxPower, rounded down.
var powers = powersOfTen()

func powersOfTen() (out [maxPower - minPower + 1][2]uint64) {
	one, power := new(big.Int).Lsh(big.NewInt(1), 512), big.NewInt(1)
	for e := range maxPower + 1 {
		for i, x := range map[int]*big.Int{-e: new(big.Int).Div(one, power), e: new(big.Int).Mul(one, power)} {
			first := x.Rsh(x, uint(x.BitLen()-128)).FillBytes(make([]byte, 16))
			out[i-minPower] = [2]uint64{binary.BigEndian.Uint64(first), binary.BigEndian.Uint64(first[8:])}
		}
		power.Mul(power, big.NewInt(10))
	}
	return out
}

// Half is a number of 16 bits in the format of IEEE 754.
func Half(x uint16) float32 {
	exponent, fraction := int(x>>10&31), float64(x&1023)
	value := math.Ldexp(1024+fraction, exponent-25)
	switch exponent {
	case 0:
		value = math.Ldexp(fraction, -24)
	case 31:
		if value = math.Inf(1); fraction != 0 {
			value = math.NaN()
		}
	}
	if x>>15 == 1 {
		value = -value
	}
	return float32(value)
}

// eiselLemire returns mantissa * 10^exponent correctly rounded, or false where
// 128 bits of the power of ten do not tell the rounding or the table ends
// (Lemire, Number parsing at a gigabyte per second, 2021, sections 5 to 7).
func eiselLemire(mantissa uint64, exponent int) (float64, bool) {
	if mantissa == 0 {
		return 0, true
	}
	if exponent < minPower || exponent > maxPower {
		return 0, false
	}
	power := &powers[exponent-minPower]
	zeros := bits.LeadingZeros64(mantissa)
	mantissa <<= uint(zeros)
	// floor(log2(10^exponent)) by a fixed-point log2(10), exact in this range.
	binaryExponent := uint64(217706*exponent>>16+64+1023) - uint64(zeros)
	hi, lo := bits.Mul64(mantissa, power[0])
	if hi&0x1ff == 0x1ff && lo+mantissa < mantissa {
		hi2, lo2 := bits.Mul64(mantissa, power[1])
		merged, carry := bits.Add64(lo, hi2, 0)
		hi += carry
		if hi&0x1ff == 0x1ff && merged+1 == 0 && lo2+mantissa < mantissa {
			return 0, false
		}
		lo = merged
	}
	top := hi >> 63
	m := hi >> (top + 9)
	binaryExponent -= 1 ^ top
	if lo == 0 && hi&0x1ff == 0 && m&3 == 1 {
		return 0, false // halfway, as far as 128 bits tell
	}
	m = (m + m&1) >> 1
	if m>>53 > 0 {
		m >>= 1
		binaryExponent++
	}
	if binaryExponent-1 >= 0x7ff-1 {
		return 0, false // subnormal or infinite
	}
	return math.Float64frombits(binaryExponent<<52 | m&(1<<52-1)), true
}

// parseFloat parses one decimal cell, correctly rounded.
func parseFloat(b []byte) (float64, error) { return parseDecimal(b, '.') }

// parseDecimal is parseFloat for another decimal sign.
func parseDecimal(cell []byte, point byte) (float64, error) {
	var room [64]byte
	if len(cell)+numberPad <= len(room) && len(cell) > 0 {
		copy(room[:], cell)
		if v, end, ok := scanNumber(room[:], 0, point); ok && end == len(cell) {
			return v, nil
		}
	}
	seen := false
	text := make([]byte, len(cell))
	for i, c := range cell {
		switch {
		case c >= '0' && c <= '9':
			seen = true
		case c == point:
			c = '.'
		case c == '+' || c == '-' || (c|0x20 == 'e' && seen):
		default:
			return 0, classifyWord(cell)
		}
		text[i] = c
	}
	if !seen {
		return 0, errNotNumber
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errOutOfRange
	}
	if err != nil {
		return 0, errNotNumber
	}
	return f, nil
}

// classifyWord tells the spellings of NaN and infinity, which are numbers that
// are refused, from text.
func classifyWord(b []byte) error {
	s := b
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	if len(s) > 8 {
		return errNotNumber
	}
	var w [8]byte
	for i, c := range s {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		w[i] = c
	}
	switch string(w[:len(s)]) {
	case "nan", "inf", "infinity":
		return errNotFinite
	}
	return errNotNumber
}
