package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestStaleEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(17, 7))
		for _, n := range []int{0, 1, 31, 32, 33, 64, 95, 400} {
			for _, k := range []int{1, 2, 17, 32, 64, 65, 300} {
				keys, far, squares, labels := make([]float32, n), make([]float32, n), make([]float32, n), make([]uint16, n)
				limits := make([]float32, k)
				for j := range limits {
					limits[j] = rng.Float32()
				}
				for i := range keys {
					labels[i] = uint16(rng.IntN(k))
					keys[i], far[i], squares[i] = rng.Float32(), rng.Float32(), 6*rng.Float32()
					switch rng.IntN(6) {
					case 0:
						keys[i] = -1
					case 1:
						keys[i] = limits[labels[i]]
					case 2:
						keys[i] = math.Nextafter32(limits[labels[i]], 2)
					}
				}
				bound := DistanceBound{Most: rng.Float32() / 4, Least: rng.Float32() / 4, Up: 1 + 0x1p-18, More: rng.Float32() / 8}
				if n > 0 { // on the edge
					at := keys[n/2] - bound.Most
					f := at + max(at, far[n/2])
					squares[n/2] = float32(f*f*bound.Up) + bound.More
				}
				want, got := make([]uint32, (n+31)/32), make([]uint32, (n+31)/32)
				stalePortable(keys, labels, limits, want)
				if Stale(keys, labels, limits, got); !slices.Equal(want, got) {
					t.Fatalf("Stale n=%d k=%d: %x, want %x", n, k, got, want)
				}
				staleByDistancePortable(keys, far, squares, &bound, want)
				if StaleByDistance(keys, far, squares, bound, got); !slices.Equal(want, got) {
					t.Fatalf("StaleByDistance n=%d %+v: %x, want %x", n, bound, got, want)
				}
			}
		}
	})
}

// TestStale checks masks by hand.
func TestStale(t *testing.T) {
	masks := make([]uint32, 1)
	if Stale([]float32{1, 2, 3}, []uint16{0, 0, 1}, []float32{1, 3}, masks); masks[0] != 0b101 {
		t.Errorf("%b are stale, want the first and the last", masks)
	}
	bound := DistanceBound{Most: 1, Least: 2, Up: 1}
	if StaleByDistance([]float32{2, 2, 0}, []float32{3, 3, 0}, []float32{16, 15, 9}, bound,
		masks); masks[0] != 0b110 {
		t.Errorf("%b do not pass the bound, want the last two", masks)
	}
}

func BenchmarkStale(b *testing.B) {
	const n = 1024
	keys, labels, limits, masks := make([]float32, n), make([]uint16, n), make([]float32, 64), make([]uint32, n/32)
	run(b, n, 0, 6*n, func() { Stale(keys, labels, limits, masks) })
}

func BenchmarkStaleByDistance(b *testing.B) {
	const n = 1024
	keys, far, squares, masks := make([]float32, n), make([]float32, n), make([]float32, n), make([]uint32, n/32)
	run(b, n, 0, 12*n, func() { StaleByDistance(keys, far, squares, DistanceBound{}, masks) })
}
