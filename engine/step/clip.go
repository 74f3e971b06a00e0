package step

import "math"

// NearSquared is the squared distance up to which a record is within radius r
// whatever the rounding of a kernel's squared distance, whose relative error is
// below (d+1) 2^-24: a radius shortened by more than that. So no record beyond r
// passes for near; the others are measured in integers.
func NearSquared(r float64, d int) float32 { return float32(r * r * (1 - float64(d+2)*0x1p-23)) }

// Shorten is the factor that cuts an offset to length r and puts it on the grid of
// 1/scale, a power of two, when squared is the kernel's squared length of the
// offset, in d dimensions: a float32 coordinate times it, truncated toward zero, is
// a coordinate of the cut offset. The factor is short by more than the rounding of
// that length, whose relative error is half of that of the square, of the factor and
// of the product. Clip does the same on integers and measures it; this is for many
// far records in one pass.
func Shorten(r float64, squared float32, d int, scale float64) float32 {
	slack := 1 + float64(d+4)*0x1p-24
	return float32(r / (math.Sqrt(float64(squared)) * slack) * scale * (1 - 0x1p-23))
}

// Reach is the largest squared length in grid units of 1/scale, a power of two, that
// is within radius r.
func Reach(r, scale float64) int64 { return int64(math.Floor(float64(r*scale) * float64(r*scale))) }

// Clip cuts an offset of squared length length, in grid units, to a squared length of
// at most reach: each coordinate is shortened by the same factor and truncated toward
// zero, and again by a hair should the factor's rounding have been upward. What comes
// out is measured in integers, so no record moves a sum by more than the radius
// (THEOREMS.md T2, T6).
func Clip(offset []int64, length, reach int64) {
	for factor := math.Sqrt(float64(reach) / float64(length)); length > reach; factor = 1 - 0x1p-20 {
		length = 0
		for h, t := range offset {
			t = int64(float64(t) * factor)
			offset[h] = t
			length += t * t
		}
	}
}
