package staged

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestFineCells: fine cells add up to the cells of the quotient, also at the very ends of cells, in every frame that
// two zooms can come to.
func TestFineCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for trial := range 3000 {
		f := &Frame{[]float64{-1}, []float64{1}}
		for range trial % marginalZooms { // as within cuts
			first := rng.IntN(marginalCells)
			last := first + rng.IntN(marginalCells-first)
			cell := (f.Hi[0] - f.Lo[0]) / marginalCells
			f.Lo[0], f.Hi[0] = f.Lo[0]+float64(first)*cell, f.Lo[0]+float64(last+1)*cell
		}
		width := f.Hi[0] - f.Lo[0]
		fine, want, got := make([]int64, fineCells), make([]int64, marginalCells), make([]int64, marginalCells)
		for range 200 {
			x := float32(f.Lo[0] + width*float64(rng.IntN(marginalCells+1))/marginalCells)
			switch rng.IntN(4) {
			case 0:
				x += float32(rng.IntN(3)-1) / (1 << 22)
			case 1:
				x = float32(rng.IntN(1<<17+1))/(1<<16) - 1
			case 2:
				x = 2*float32(rng.IntN(2)) - 1
			}
			x = min(max(x, -1), 1)
			fine[fineCell(x)]++
			want[min(max(int(math.Floor((float64(x)-f.Lo[0])/width*marginalCells)), 0), marginalCells-1)]++
		}
		f.count(fine, got)
		for c := range got {
			if got[c] != want[c] {
				t.Fatalf("cell %d of %v has %d coordinates, want %d", c, *f, got[c], want[c])
			}
		}
	}
}
