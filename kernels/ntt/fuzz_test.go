package ntt

import (
	"encoding/binary"
	"slices"
	"testing"
)

// FuzzTransform compares the paths on coefficients made from the input.
func FuzzTransform(f *testing.F) {
	f.Add([]byte{0}, uint8(0), uint32(1))
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 128}, uint8(5), uint32(12345))
	rings := map[uint8]*Ring{}
	for i := range uint8(2 * len(testPrimes)) {
		r, err := NewRing(Kind(i%2), MinLogN+int(i/2)%2, testPrimes[i/2])
		if err != nil {
			f.Fatal(err)
		}
		rings[i] = r
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8, factor uint32) {
		r := rings[which%uint8(len(rings))]
		x := make([]uint32, r.n)
		for i := range x {
			if len(data) > 0 {
				at := data[4*i%len(data):]
				x[i] = binary.LittleEndian.Uint32(append(slices.Clone(at), 0, 0, 0, 0)) % r.q
			}
		}
		sameOnEveryPath(t, "transform", func() [][]uint32 {
			y, z, back := make([]uint32, r.n), make([]uint32, r.n), make([]uint32, r.n)
			r.Forward(y, x)
			r.InverseLazy(z, x, r.Constant(uint64(factor)))
			r.Inverse(back, y, r.Constant(1))
			if !slices.Equal(back, x) {
				t.Fatalf("kind %d, prime %d: the inverse of the transform is another polynomial", r.kind, r.q)
			}
			return [][]uint32{y, z}
		})
	})
}
