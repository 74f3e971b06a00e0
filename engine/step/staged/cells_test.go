package staged

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMarginalCell: cells are those of the quotient also at their very ends, whatever the frame.
func TestMarginalCell(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 2000 {
		lo := float64(rng.IntN(1<<11))/(1<<10) - 1
		width := float64(1+rng.IntN(1<<11)) / float64(int(1)<<rng.IntN(12))
		per := marginalCells / width
		for range 200 {
			x := float32(lo + width*float64(rng.IntN(marginalCells+1))/marginalCells)
			switch rng.IntN(4) {
			case 0:
				x = math.Nextafter32(x, float32(rng.IntN(3)-1))
			case 1:
				x = float32(rng.IntN(1<<17))/(1<<16) - 1
			}
			if got, want := marginalCell(x, lo, width, per), int((float64(x)-lo)/width*marginalCells); got != want {
				t.Fatalf("%v is in cell %d of [%v, %v], want %d", x, got, lo, lo+width, want)
			}
		}
	}
}
