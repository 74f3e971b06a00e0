package kernels

import "math"

// fma32 returns x*y+z rounded once to float32, as a fused multiply-add
// instruction does. The product of two float32 is exact in float64, so only the
// sum rounds; rounding it again to float32 differs from one rounding only when
// the float64 sum lies halfway between two float32 or in the subnormal range.
func fma32(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	s := p + float64(z)
	bits := math.Float64bits(s)
	const belowFloat32 = 1<<29 - 1
	const smallestNormal = 0x381 << 52 // 2^-126
	if bits&belowFloat32 == 1<<28 || bits&^(1<<63) < smallestNormal {
		return float32(roundToOdd(p, float64(z), s))
	}
	return float32(s)
}

// roundToOdd returns p+z rounded to odd, where s = p+z rounded to nearest: an
// inexact result gets an odd last bit, so that a second rounding to a format
// with at least two bits fewer is right (Boldo and Melquiond, "Emulation of FMA
// and correctly rounded sums: proved algorithms using rounding to odd", 2008).
func roundToOdd(p, z, s float64) float64 {
	zz := s - p
	tail := (p - (s - zz)) + (z - zz) // exact: TwoSum
	bits := math.Float64bits(s)
	if tail == 0 || bits&1 == 1 {
		return s
	}
	if (tail > 0) == (s > 0) {
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}
