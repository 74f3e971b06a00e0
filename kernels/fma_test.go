package kernels

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA32 rounds x*y+z once, by way of arbitrary precision.
func exactFMA32(x, y, z float32) float32 {
	product := new(big.Float).SetPrec(2000).Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y)))
	sum := product.Add(product, big.NewFloat(float64(z)))
	f, _ := sum.Float32()
	return f
}

func TestFMA32RoundsOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func() float32 {
		switch rng.IntN(4) {
		case 0: // any finite bit pattern, subnormal numbers included
			for {
				f := math.Float32frombits(rng.Uint32())
				if f == f && !math.IsInf(float64(f), 0) {
					return f
				}
			}
		case 1: // few significant bits: ties between neighbours become likely
			return float32(math.Ldexp(float64(rng.IntN(4096)-2048), rng.IntN(60)-30))
		case 2: // around the bottom of the range
			return math.Float32frombits(rng.Uint32N(1<<25) | rng.Uint32()&(1<<31))
		default:
			return 2*rng.Float32() - 1
		}
	}
	twice := 0 // how often rounding twice would have been wrong
	for range 300000 {
		x, y, z := draw(), draw(), draw()
		if rng.IntN(2) == 0 { // place z so that the sum falls near a midpoint of float32
			p := float64(x) * float64(y)
			z = math.Float32frombits(math.Float32bits(float32(p*math.Ldexp(1, 24))) &^ 0xff)
		}
		p := float64(x) * float64(y)
		if math.IsInf(float64(z), 0) || math.Abs(p+float64(z)) > math.MaxFloat32 {
			continue
		}
		got, want := fma32(x, y, z), exactFMA32(x, y, z)
		if got != want {
			t.Fatalf("fma32(%x, %x, %x) = %x, want %x", x, y, z, got, want)
		}
		if float32(p+float64(z)) != want {
			twice++
		}
	}
	if twice == 0 {
		t.Error("no input distinguished one rounding from two")
	}
}
