package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// columnsOf are random labels below k, n to a column.
func columnsOf(rng *rand.Rand, n, d, k int) [][]uint16 {
	columns := make([][]uint16, d)
	for h := range columns {
		columns[h] = make([]uint16, n)
		for i := range columns[h] {
			columns[h][i] = uint16(rng.IntN(k))
		}
	}
	return columns
}

func power(base, exponent int) int {
	p := 1
	for range exponent {
		p *= base
	}
	return p
}

// TestCellsEqualPortable: cells have the numbers of the portable forms, and their counts
// are those that the definition gives.
func TestCellsEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(41, 7))
		for _, n := range []int{0, 1, 15, 16, 17, 33, 1023, 1025, 3000} {
			for _, shape := range [][2]int{{1, 1}, {1, 65536}, {2, 5}, {2, 40}, {3, 10}, {3, 11}, {5, 4}, {20, 2}} {
				d, k := shape[0], shape[1]
				columns := columnsOf(rng, n, d, k)
				cells, want := make([]uint32, n), make([]uint32, n)
				counts, tally := make([]int64, power(k, d)), make([]int64, power(k, d))
				for i := range counts {
					counts[i] = int64(i)
					tally[i] = int64(i)
				}
				for _, c := range columns {
					labelCells(cells, c, uint32(k))
					labelCellsPortable(want, c, uint32(k))
				}
				for i := range n {
					cell := 0
					for _, c := range columns {
						cell = cell*k + int(c[i])
					}
					tally[cell]++
				}
				CountCells(columns, k, counts)
				if !slices.Equal(cells, want) || !slices.Equal(counts, tally) {
					t.Fatalf("n=%d, %d columns of %d labels: cells\n%v\n%v\ncounts\n%v\n%v", n, d, k, cells, want, counts, tally)
				}
			}
		}
	})
}

// TestGridCellsEqualPortable is that for points, on edges of cells and of the box too.
func TestGridCellsEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(44, 7))
		for _, n := range []int{0, 1, 15, 16, 17, 33, 1023, 1025, 3000} {
			for _, shape := range [][2]int{{1, 1}, {1, 100000}, {2, 32}, {2, 33}, {3, 9}, {4, 5}, {13, 2}} {
				d, side := shape[0], shape[1]
				rows := gridRows(rng, n, d, 22)
				for i := range rows {
					switch rng.IntN(8) {
					case 0:
						rows[i] = float32(2*rng.IntN(side+1))/float32(side) - 1
					case 1:
						rows[i] = []float32{-1, 0, 1, 1 - 0x1p-22}[rng.IntN(4)]
					}
				}
				p := packed(rows, n, d)
				cells, want := make([]uint32, panelCount(n)*Lanes), make([]uint32, panelCount(n)*Lanes)
				if n > 0 {
					gridCells(cells, p.Data, d, side)
					gridCellsPortable(want, p.Data, d, side)
				}
				counts, tally := make([]int64, power(side, d)), make([]int64, power(side, d))
				units, weight, weighed := make([]uint32, n), make([]int64, len(counts)), make([]int64, len(counts))
				for i := range n {
					cell := 0
					for _, x := range rows[i*d : (i+1)*d] {
						cell = cell*side + min(int(math.Floor((float64(x)+1)/2*float64(side))), side-1)
					}
					tally[cell]++
					units[i] = rng.Uint32() >> rng.IntN(33)
					weight[cell] += int64(units[i])
				}
				if WeighGrid(*p, side, units, weighed); !slices.Equal(weighed, weight) {
					t.Fatalf("%d points, side %d in %d dimensions: other weights", n, side, d)
				}
				CountGrid(*p, side, counts)
				if !slices.Equal(cells, want) || !slices.Equal(counts, tally) {
					t.Fatalf("n=%d d=%d side=%d: cells\n%v\n%v\ncounts\n%v\n%v", n, d, side, cells, want, counts, tally)
				}
			}
		}
	})
}

// BenchmarkCountCells counts records of which most are in few cells.
func BenchmarkCountCells(b *testing.B) {
	rng := rand.New(rand.NewPCG(42, 7))
	const n, k = 100_000, 15
	columns := columnsOf(rng, n, 2, k)
	for i := range n {
		if i%10 > 0 {
			columns[1][i] = columns[0][i]
		}
	}
	counts := make([]int64, k*k)
	run(b, n, 0, 4*n, func() { CountCells(columns, k, counts) })
}

func BenchmarkCountGrid(b *testing.B) {
	const n, d, side = 100_000, 4, 12
	p := packed(gridRows(rand.New(rand.NewPCG(43, 7)), n, d, 16), n, d)
	counts := make([]int64, power(side, d))
	run(b, n, 0, 4*n*d, func() { CountGrid(*p, side, counts) })
}

func BenchmarkWeighGrid(b *testing.B) {
	const n, d, side = 100_000, 4, 12
	p := packed(gridRows(rand.New(rand.NewPCG(43, 7)), n, d, 16), n, d)
	counts, units := make([]int64, power(side, d)), make([]uint32, n)
	run(b, n, 0, 4*n*(d+1), func() { WeighGrid(*p, side, units, counts) })
}
