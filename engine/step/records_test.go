package step

import (
	"math"
	"testing"
)

// plainInBox is the reference of inBox.
func plainInBox(x []float32) bool {
	for _, v := range x {
		if !(v >= -1 && v <= 1) {
			return false
		}
	}
	return true
}

// The check of two numbers at a time agrees with the plain one, wherever in a slice of
// any length and alignment a number stands.
func TestInBox(t *testing.T) {
	const above = 1.0000001
	room := make([]float32, 64)
	for i := range room {
		room[i] = float32(i%5-2) / 2
	}
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -1, above, -above, math.MaxFloat32, -math.MaxFloat32,
		math.SmallestNonzeroFloat32,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.Float32frombits(1<<32 - 1),
		math.Float32frombits(0x7f800001)}
	for from := range 3 {
		for to := from; to < 40; to++ {
			for at := from; at < to; at++ {
				was := room[at]
				for _, v := range values {
					room[at] = v
					if got, want := inBox(room[from:to]), plainInBox(room[from:to]); got != want {
						t.Fatalf("%v at %d of [%d,%d): %v, want %v", v, at, from, to, got, want)
					}
				}
				room[at] = was
			}
			if !inBox(room[from:to]) {
				t.Fatalf("[%d,%d) is in the box", from, to)
			}
		}
	}
}

func BenchmarkInBox(b *testing.B) {
	x := make([]float32, 1<<14)
	b.SetBytes(int64(4 * len(x)))
	for b.Loop() {
		if !inBox(x) {
			b.Fatal("zeros are in the box")
		}
	}
}
