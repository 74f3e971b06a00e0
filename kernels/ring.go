package kernels

import (
	"fmt"
	"math"
)

// AddUint64 adds a to dst element by element, modulo 2^64.
func AddUint64(dst, a []uint64) {
	checkLength("AddUint64", "a", len(a), len(dst))
	addUint64(dst, a)
}

// SubUint64 subtracts a from dst element by element, modulo 2^64.
func SubUint64(dst, a []uint64) {
	checkLength("SubUint64", "a", len(a), len(dst))
	subUint64(dst, a)
}

// AddUint32 adds a to dst element by element, modulo 2^32.
func AddUint32(dst, a []uint32) {
	checkLength("AddUint32", "a", len(a), len(dst))
	addUint32(dst, a)
}

// SubUint32 subtracts a from dst element by element, modulo 2^32.
func SubUint32(dst, a []uint32) {
	checkLength("SubUint32", "a", len(a), len(dst))
	subUint32(dst, a)
}

// ToFixed64 writes src*2^fractionBits truncated toward zero, in two's
// complement. Magnitudes from 2^63 on saturate at the largest float64 below.
// It panics unless 0 <= fractionBits <= 62.
func ToFixed64(dst []uint64, src []float64, fractionBits int) {
	checkLength("ToFixed64", "src", len(src), len(dst))
	toFixed64(dst, src, scale64("ToFixed64", fractionBits))
}

// ToFixed64Nearest is [ToFixed64] with rounding to nearest, ties to even.
func ToFixed64Nearest(dst []uint64, src []float64, fractionBits int) {
	checkLength("ToFixed64Nearest", "src", len(src), len(dst))
	toFixed64Nearest(dst, src, scale64("ToFixed64Nearest", fractionBits))
}

// FromFixed64 is the inverse of [ToFixed64]: dst = src*2^-fractionBits, where
// src is read as a signed number and rounded to nearest even beyond 53 bits.
func FromFixed64(dst []float64, src []uint64, fractionBits int) {
	checkLength("FromFixed64", "src", len(src), len(dst))
	fromFixed64(dst, src, 1/scale64("FromFixed64", fractionBits))
}

// ToFixed32 writes src*2^fractionBits truncated toward zero, in two's
// complement. Magnitudes from 2^31 on saturate at the largest float32 below.
// It panics unless 0 <= fractionBits <= 30.
func ToFixed32(dst []uint32, src []float32, fractionBits int) {
	checkLength("ToFixed32", "src", len(src), len(dst))
	toFixed32(dst, src, scale32("ToFixed32", fractionBits))
}

// ToFixed32Nearest is [ToFixed32] with rounding to nearest, ties to even.
func ToFixed32Nearest(dst []uint32, src []float32, fractionBits int) {
	checkLength("ToFixed32Nearest", "src", len(src), len(dst))
	toFixed32Nearest(dst, src, scale32("ToFixed32Nearest", fractionBits))
}

// FromFixed32 is the inverse of [ToFixed32]: dst = src*2^-fractionBits, where
// src is read as a signed number and rounded to nearest even beyond 24 bits.
func FromFixed32(dst []float32, src []uint32, fractionBits int) {
	checkLength("FromFixed32", "src", len(src), len(dst))
	fromFixed32(dst, src, 1/scale32("FromFixed32", fractionBits))
}

func scale64(what string, fractionBits int) float64 {
	if fractionBits < 0 || fractionBits > 62 {
		panic(fmt.Sprintf("kernels: %s: fractionBits=%d, want 0 to 62", what, fractionBits))
	}
	return math.Ldexp(1, fractionBits)
}

func scale32(what string, fractionBits int) float32 {
	if fractionBits < 0 || fractionBits > 30 {
		panic(fmt.Sprintf("kernels: %s: fractionBits=%d, want 0 to 30", what, fractionBits))
	}
	return float32(math.Ldexp(1, fractionBits))
}

// The largest floats whose conversion to a signed integer does not overflow.
const (
	limit64 = 1<<63 - 1<<10
	limit32 = 1<<31 - 1<<7
)

func addUint64Portable(dst, a []uint64) {
	for i, x := range a {
		dst[i] += x
	}
}

func subUint64Portable(dst, a []uint64) {
	for i, x := range a {
		dst[i] -= x
	}
}

func addUint32Portable(dst, a []uint32) {
	for i, x := range a {
		dst[i] += x
	}
}

func subUint32Portable(dst, a []uint32) {
	for i, x := range a {
		dst[i] -= x
	}
}

func toFixed64Portable(dst []uint64, src []float64, scale float64) {
	for i, x := range src {
		dst[i] = uint64(int64(min(max(x*scale, -limit64), limit64)))
	}
}

func toFixed64NearestPortable(dst []uint64, src []float64, scale float64) {
	for i, x := range src {
		dst[i] = uint64(int64(math.RoundToEven(min(max(x*scale, -limit64), limit64))))
	}
}

func fromFixed64Portable(dst []float64, src []uint64, scale float64) {
	for i, x := range src {
		dst[i] = float64(int64(x)) * scale
	}
}

func toFixed32Portable(dst []uint32, src []float32, scale float32) {
	for i, x := range src {
		dst[i] = uint32(int32(min(max(x*scale, -limit32), limit32)))
	}
}

func toFixed32NearestPortable(dst []uint32, src []float32, scale float32) {
	for i, x := range src {
		dst[i] = uint32(int32(math.RoundToEven(float64(min(max(x*scale, -limit32), limit32)))))
	}
}

func fromFixed32Portable(dst []float32, src []uint32, scale float32) {
	for i, x := range src {
		dst[i] = float32(int32(x)) * scale
	}
}
