package dataset

import (
	"errors"
	"math"
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

// parseFloat parses one decimal cell. The result is correctly rounded: a
// mantissa below 2^53 and a power of ten up to 22 are both exact, so one
// multiplication or division rounds once (Clinger 1990); strconv does the rest.
func parseFloat(b []byte) (float64, error) {
	i, n := 0, len(b)
	neg := false
	if i < n && (b[i] == '-' || b[i] == '+') {
		neg = b[i] == '-'
		i++
	}
	var mant uint64
	digits, exp := 0, 0
	start := i
	for i < n && b[i]-'0' < 10 {
		mant = mant*10 + uint64(b[i]-'0')
		i++
	}
	digits = i - start
	if i < n && b[i] == '.' {
		i++
		frac := i
		for i < n && b[i]-'0' < 10 {
			mant = mant*10 + uint64(b[i]-'0')
			i++
		}
		exp = frac - i
		digits += i - frac
	}
	if digits == 0 {
		return 0, classifyWord(b)
	}
	if i < n && b[i]|0x20 == 'e' {
		j := i + 1
		eneg := false
		if j < n && (b[j] == '-' || b[j] == '+') {
			eneg = b[j] == '-'
			j++
		}
		estart, e := j, 0
		for j < n && b[j]-'0' < 10 {
			if e < 10000 {
				e = e*10 + int(b[j]-'0')
			}
			j++
		}
		if j == estart {
			return 0, errNotNumber
		}
		if eneg {
			e = -e
		}
		exp += e
		i = j
	}
	if i != n {
		return 0, errNotNumber
	}
	// Up to 19 digits cannot wrap a uint64.
	if digits <= 19 && mant < 1<<53 && exp >= -22 && exp <= 22 {
		f := float64(mant)
		if exp < 0 {
			f /= pow10[-exp]
		} else {
			f *= pow10[exp]
		}
		if neg {
			f = -f
		}
		return f, nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, errOutOfRange
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
