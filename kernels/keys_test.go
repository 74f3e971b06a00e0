package kernels

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestBoundKeysEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(19, 27))
		kept := 0
		for _, n := range []int{0, 1, 7, 8, 9, 16, 63, 256} {
			for _, k := range []int{1, 3, 64, 1000} {
				dist, second, labels := make([]float32, n), make([]float32, n), make([]uint16, n)
				moved := make([]float64, k)
				for j := range moved {
					moved[j] = rng.Float64() * float64(rng.IntN(2))
				}
				for i := range dist {
					labels[i] = uint16(rng.IntN(k))
					dist[i] = rng.Float32()
					second[i] = dist[i] * (1 + rng.Float32()*float32(math.Ldexp(4, -rng.IntN(24))))
					switch rng.IntN(8) {
					case 0:
						dist[i], second[i] = 0, 0
					case 1:
						dist[i] = 0
					case 2:
						second[i] = float32(math.Inf(1))
					case 3:
						dist[i], second[i] = float32(math.Inf(1)), float32(math.Inf(1))
					}
				}
				s := KeyBound{Off: math.Ldexp(rng.Float64(), -20), Error: math.Ldexp(rng.Float64(), -20), Most: rng.Float64()}
				wantKeys, wantFar := make([]float32, n), make([]float32, n)
				boundKeysPortable(dist, second, labels, moved, &s, wantKeys, wantFar)
				keys, far := make([]float32, n), make([]float32, n)
				BoundKeys(dist, second, labels, moved, s, keys, far)
				for i, want := range wantKeys {
					if math.Float32bits(keys[i]) != math.Float32bits(want) ||
						math.Float32bits(far[i]) != math.Float32bits(wantFar[i]) && !math.IsNaN(float64(far[i])) {
						t.Fatalf("n=%d k=%d, point %d at %v and %v: key %v and far %v, want %v and %v", n, k, i, dist[i], second[i],
							keys[i], far[i], want, wantFar[i])
					}
					if want != NoKey {
						kept++
					}
				}
			}
		}
		if kept < 100 {
			t.Errorf("%d points have keys", kept)
		}
	})
}

// TestBoundKeys checks a key by hand.
func TestBoundKeys(t *testing.T) {
	keys, far := make([]float32, 3), make([]float32, 3)
	BoundKeys([]float32{1, 4, 9}, []float32{16, 100, 9}, []uint16{0, 1, 0}, []float64{1, 2},
		KeyBound{1e-12, 1e-12, 4}, keys, far)
	for i, want := range []float64{2 + 1 + 4, 5 + 2 + 4, NoKey} {
		if math.Abs(float64(keys[i])-want) > 2e-5 {
			t.Errorf("key %d is %v, want about %v", i, keys[i], want)
		}
	}
	for i, want := range []float64{0, 0, 2} { // distances 1, 2 and 3 less the moves
		if off := float64(far[i]) - want; off < 0 || off > 1e-5 {
			t.Errorf("far %d is %v, want a little more than %v", i, far[i], want)
		}
	}
}

func BenchmarkBoundKeys(b *testing.B) {
	const n = 256
	dist, labels, moved := make([]float32, n), make([]uint16, n), make([]float64, 64)
	keys, far := make([]float32, n), make([]float32, n)
	run(b, n, 0, 18*n, func() { BoundKeys(dist, dist, labels, moved, KeyBound{1, 1, 1}, keys, far) })
}
