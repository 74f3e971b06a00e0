package elementary

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// Every square is rounded before it is added, and every sum: as exact arithmetic that is rounded
// after each step has it, whatever the architecture fuses.
func TestSquaresAreRoundedBeforeTheyAreAdded(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	fused := 0
	for range 1000 {
		x, y := make([]float32, 1+rng.IntN(9)), make([]float64, 9)
		distance, length, once := 0.0, 0.0, 0.0
		for i := range x {
			x[i], y[i] = rng.Float32(), 2*rng.Float64()-1
			d := float64(x[i]) - y[i]
			distance = rounded(distance, d)
			length = rounded(length, y[i])
			once = math.FMA(d, d, once)
		}
		if got := SquaredDistance(x, y); got != distance {
			t.Fatalf("the squared distance of %v to %v is %v, want %v", x, y, got, distance)
		}
		if got := SquaredLength(y[:len(x)]); got != length {
			t.Fatalf("the squared length of %v is %v, want %v", y[:len(x)], got, length)
		}
		if once != distance {
			fused++
		}
	}
	if fused < 100 {
		t.Errorf("fused products differ %d times: too few to tell", fused)
	}
}

// rounded is sum + x^2, both rounded.
func rounded(sum, x float64) float64 {
	exact := new(big.Float).SetPrec(200).SetFloat64(x)
	square, _ := exact.Mul(exact, exact).Float64()
	exact = new(big.Float).SetPrec(200).SetFloat64(sum)
	sum, _ = exact.Add(exact, new(big.Float).SetFloat64(square)).Float64()
	return sum
}
