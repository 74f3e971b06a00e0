package ntt

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// bench runs f on every path, and reports the bytes of size words.
func bench(b *testing.B, size int, f func()) {
	onEveryPath(b, func(p path) {
		b.Run(p.String(), func(b *testing.B) {
			b.SetBytes(int64(4 * size))
			for b.Loop() {
				f()
			}
		})
	})
}

func benchRing(b *testing.B, logN, prime int) *Ring {
	r, err := NewRing(ConjugateInvariant, logN, testPrimes[prime])
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func BenchmarkForward(b *testing.B) {
	for logN := 13; logN <= 15; logN++ {
		for i, name := range []string{"30 bits", "lazy"} {
			b.Run(fmt.Sprintf("N=2^%d/%s", logN, name), func(b *testing.B) {
				r := benchRing(b, logN, i)
				x, y := words(rand.New(rand.NewPCG(1, 2)), r.n, 0, int64(r.q)), make([]uint32, r.n)
				bench(b, 2*r.n, func() { r.Forward(y, x) })
			})
		}
	}
}

func BenchmarkForwardLazy(b *testing.B) {
	r := benchRing(b, 14, 1)
	x, y := words(rand.New(rand.NewPCG(1, 2)), r.n, 0, int64(r.q)), make([]uint32, r.n)
	bench(b, 2*r.n, func() { r.ForwardLazy(y, x) })
}

func BenchmarkInverse(b *testing.B) {
	r := benchRing(b, 14, 1)
	x, y, f := words(rand.New(rand.NewPCG(1, 2)), r.n, 0, int64(r.q)), make([]uint32, r.n), r.Constant(1)
	bench(b, 2*r.n, func() { r.Inverse(y, x, f) })
}

func BenchmarkInverseLazy(b *testing.B) {
	r := benchRing(b, 14, 1)
	x, y, f := words(rand.New(rand.NewPCG(1, 2)), r.n, 0, int64(r.q)), make([]uint32, r.n), r.Constant(1)
	bench(b, 2*r.n, func() { r.InverseLazy(y, x, f) })
}

// vectors are polynomials for the pointwise benchmarks.
func vectors(n int, q uint32) [][]uint32 {
	rng := rand.New(rand.NewPCG(1, 2))
	v := make([][]uint32, 8)
	for i := range v {
		v[i] = words(rng, n, 0, int64(q)*3/4)
	}
	return v
}

const benchN = 1 << 14

func benchVector(b *testing.B, touched int, f func(p *Prime, v [][]uint32)) {
	p, err := NewPrime(testPrimes[0])
	if err != nil {
		b.Fatal(err)
	}
	v := vectors(benchN, p.q)
	bench(b, touched*benchN, func() { f(p, v) })
}

func BenchmarkAdd(b *testing.B) {
	benchVector(b, 3, func(p *Prime, v [][]uint32) { p.Add(v[0], v[1], v[2]) })
}
func BenchmarkSub(b *testing.B) {
	benchVector(b, 3, func(p *Prime, v [][]uint32) { p.Sub(v[0], v[1], v[2]) })
}
func BenchmarkAddScalar(b *testing.B) {
	benchVector(b, 2, func(p *Prime, v [][]uint32) { p.AddScalar(v[0], v[1], 77) })
}
func BenchmarkScale(b *testing.B) {
	benchVector(b, 2, func(p *Prime, v [][]uint32) { p.Scale(v[0], v[1], 77) })
}
func BenchmarkScaleAdd(b *testing.B) {
	benchVector(b, 2, func(p *Prime, v [][]uint32) { p.ScaleAdd(v[0], v[1], 77) })
}
func BenchmarkSubScale(b *testing.B) {
	benchVector(b, 3, func(p *Prime, v [][]uint32) { p.SubScale(v[0], v[1], v[2], 77) })
}
func BenchmarkMultiply(b *testing.B) {
	benchVector(b, 3, func(p *Prime, v [][]uint32) { p.Multiply(v[0], v[1], v[2]) })
}
func BenchmarkMultiplyAdd(b *testing.B) {
	benchVector(b, 3, func(p *Prime, v [][]uint32) { p.MultiplyAdd(v[0], v[1], v[2]) })
}
func BenchmarkProduct(b *testing.B) {
	benchVector(b, 7, func(p *Prime, v [][]uint32) {
		p.Product((*[3][]uint32)(v), (*[2][]uint32)(v[3:]), (*[2][]uint32)(v[5:]), 1)
	})
}
func BenchmarkProductAdd(b *testing.B) {
	benchVector(b, 7, func(p *Prime, v [][]uint32) {
		p.ProductAdd((*[3][]uint32)(v), (*[2][]uint32)(v[3:]), (*[2][]uint32)(v[5:]), 1)
	})
}
func BenchmarkConvert(b *testing.B) {
	benchVector(b, 4, func(p *Prime, v [][]uint32) { p.Convert(v[0], v[1:4], v[4][:3]) })
}
func BenchmarkWhole(b *testing.B) {
	benchVector(b, 4, func(p *Prime, v [][]uint32) { Whole(v[0], v[1:4], v[4][:3], 58) })
}
func BenchmarkInner(b *testing.B) {
	key := NewKey(benchN, 4)
	benchVector(b, 8+8, func(p *Prime, v [][]uint32) { p.Inner(v[0], v[1], v[2:6], key, v[6], v[7], 77) })
}
func BenchmarkUniform(b *testing.B) {
	random := make([]byte, 8*benchN)
	for i := range random {
		random[i] = byte(7 * i >> 3)
	}
	benchVector(b, 3, func(p *Prime, v [][]uint32) { p.Uniform(v[0], random) })
}
func BenchmarkPermute(b *testing.B) {
	benchVector(b, 3, func(p *Prime, v [][]uint32) {
		for i := range v[1] {
			v[2][i] = uint32(i)
		}
		Permute(v[0], v[1], v[2])
	})
}
