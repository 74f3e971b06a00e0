package kernels

import (
	"math"
	"slices"
	"testing"
)

// aroundSpecial lists values at which a conversion changes its mind, with their
// neighbours and both signs: ties, subnormal numbers, the limits of saturation,
// the first integers without a fraction, infinities.
func aroundSpecial() []float64 {
	list := []float64{math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64}
	for _, x := range []float64{
		0, math.SmallestNonzeroFloat64, 0x1p-1022, math.SmallestNonzeroFloat32, 0x1p-126,
		0.5, 1, 1.5, 2, 2.5, 3.5, 1<<23 - 0.5, 1 << 23, 1 << 24, 1<<31 - 128, 1<<31 - 0.5, 1 << 31, 1 << 32,
		1<<52 - 0.5, 1 << 52, 1 << 53, 1 << 62, 1<<63 - 1024, 1 << 63, 1 << 64, math.MaxFloat32,
	} {
		for _, y := range []float64{
			x, math.Nextafter(x, math.Inf(1)), math.Nextafter(x, math.Inf(-1)),
			float64(math.Nextafter32(float32(x), math.MaxFloat32)), float64(math.Nextafter32(float32(x), 0)),
		} {
			list = append(list, y, math.Copysign(y, -1))
		}
	}
	return list
}

// TestFixedPointExtremesEqualPortable converts special values on every grid and
// at every place of a block, and integers that a float cannot hold.
func TestFixedPointExtremesEqualPortable(t *testing.T) {
	var whole []uint64
	for s := range 64 {
		for _, x := range []uint64{1<<s - 1, 1 << s, 1<<s + 1, 1<<s | 1<<(s/2), 3<<s | 1} {
			whole = append(whole, x, -x)
		}
	}
	special := aroundSpecial()
	withPaths(t, func(t *testing.T) {
		for f := range 63 {
			for shift := range 16 {
				src := slices.Concat(special[shift:], special[:shift])
				for i := range src { // the special value on this grid, half of the time
					if (i+f)%2 == 0 {
						src[i] = math.Ldexp(src[i], -f)
					}
				}
				got, want := make([]uint64, len(src)), make([]uint64, len(src))
				check64 := func(what string, x any) {
					t.Helper()
					if i := firstDifference(got, want); i >= 0 {
						t.Fatalf("%s f=%d: place %d of %v: %#x, want %#x", what, f, i, x, got[i], want[i])
					}
				}
				ToFixed64(got, src, f)
				toFixed64Portable(want, src, math.Ldexp(1, f))
				check64("ToFixed64", src)
				ToFixed64Nearest(got, src, f)
				toFixed64NearestPortable(want, src, math.Ldexp(1, f))
				check64("ToFixed64Nearest", src)

				ints := slices.Concat(whole[shift:], whole[:shift])
				back, backWant := make([]float64, len(ints)), make([]float64, len(ints))
				FromFixed64(back, ints, f)
				fromFixed64Portable(backWant, ints, math.Ldexp(1, -f))
				got, want = bits64(back), bits64(backWant)
				check64("FromFixed64", ints)
				if f > 30 {
					continue
				}
				src32, ints32 := make([]float32, len(src)), make([]uint32, len(ints))
				for i, x := range src {
					src32[i] = float32(x)
				}
				for i, x := range ints {
					ints32[i] = uint32(x)
				}
				got32, want32 := make([]uint32, len(src)), make([]uint32, len(src))
				check32 := func(what string, x any) {
					t.Helper()
					if i := firstDifference(got32, want32); i >= 0 {
						t.Fatalf("%s f=%d: place %d of %v: %#x, want %#x", what, f, i, x, got32[i], want32[i])
					}
				}
				scale := float32(math.Ldexp(1, f))
				ToFixed32(got32, src32, f)
				toFixed32Portable(want32, src32, scale)
				check32("ToFixed32", src32)
				ToFixed32Nearest(got32, src32, f)
				toFixed32NearestPortable(want32, src32, scale)
				check32("ToFixed32Nearest", src32)
				back32, backWant32 := make([]float32, len(ints)), make([]float32, len(ints))
				FromFixed32(back32, ints32, f)
				fromFixed32Portable(backWant32, ints32, 1/scale)
				got32, want32 = bits32(back32), bits32(backWant32)
				check32("FromFixed32", ints32)
			}
		}
	})
}

// firstDifference returns the first place where a and b differ, -1 if none.
func firstDifference[T comparable](a, b []T) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func bits64(x []float64) []uint64 {
	b := make([]uint64, len(x))
	for i, v := range x {
		b[i] = math.Float64bits(v)
	}
	return b
}

func bits32(x []float32) []uint32 {
	b := make([]uint32, len(x))
	for i, v := range x {
		b[i] = math.Float32bits(v)
	}
	return b
}
