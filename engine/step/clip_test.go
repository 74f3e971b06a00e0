package step

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A clipped offset is never longer than the radius, points the same way up to a grid
// unit in each coordinate, and is as long as the grid allows; one within stays as it is.
func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.SliceOfN(rapid.Int64Range(-1<<18, 1<<18), 1, 40).Draw(t, "offset")
		r, length := rapid.Float64Range(1e-3, 8).Draw(t, "r"), int64(0)
		reach := Reach(r, 1<<16)
		if most := r * (1 << 16); float64(reach) > most*most || float64(reach)+1 < most*most*(1-1e-12) {
			t.Fatalf("reach %d of radius %g", reach, most)
		}
		for _, x := range offset {
			length += x * x
		}
		got := append([]int64(nil), offset...)
		Clip(got, length, reach)
		after, factor := int64(0), min(1, math.Sqrt(float64(reach)/float64(max(length, 1))))
		for h, x := range got {
			after += x * x
			if math.Abs(float64(x)-float64(offset[h])*factor) > 1+1e-5*math.Abs(float64(x)) {
				t.Fatalf("coordinate %d of %v becomes %d, factor %g", h, offset, x, factor)
			}
		}
		if after > reach && length > reach {
			t.Fatalf("%v of squared length %d is cut to %d, limit %d", offset, length, after, reach)
		}
		if length <= reach && after != length {
			t.Fatalf("%v is within %d and changes to %v", offset, reach, got)
		}
	})
}

// A kernel's distance that passes for near belongs to a record within the radius.
func TestNearSquaredAllowsForRounding(t *testing.T) {
	for _, d := range []int{1, 2, 15, 784} {
		for _, r := range []float64{0.01, 0.3, 1, 2 * math.Sqrt(float64(d))} {
			if most := float64(NearSquared(r, d)) * (1 + float64(d+1)*0x1p-24); most > r*r {
				t.Errorf("d %d, r %g: a distance of %g passes for near", d, r, math.Sqrt(most))
			}
		}
	}
}
