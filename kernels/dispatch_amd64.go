//go:build amd64 && !purego

package kernels

import (
	"fmt"

	"github.com/klauspost/cpuid/v2"

	"github.com/cohort-engine/cohort/asm"
)

// supportedPaths lists the paths whose every instruction this CPU has.
func supportedPaths() []path {
	paths := []path{generic}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.AESNI, cpuid.POPCNT) {
		paths = append(paths, avx2)
		if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.VAES) {
			paths = append(paths, avx512)
		}
	}
	return paths
}

// maxTileWidth is the number of centroids a tile of [Centroids] holds at most.
func maxTileWidth() int {
	if current == avx512 {
		return 12
	}
	return 6
}

// assignSub assigns whole panels of fewer than exactDims dimensions.
func assignSub(x *float32, panels int, c *Centroids, labels *uint16, dist, second *float32) {
	r := &c.rows[0]
	switch {
	case current == avx512 && second != nil:
		switch c.D {
		case 1:
			asm.AssignSecond1AVX512(x, panels, r, c.K, labels, dist, second)
		case 2:
			asm.AssignSecond2AVX512(x, panels, r, c.K, labels, dist, second)
		case 3:
			asm.AssignSecond3AVX512(x, panels, r, c.K, labels, dist, second)
		case 4:
			asm.AssignSecond4AVX512(x, panels, r, c.K, labels, dist, second)
		case 5:
			asm.AssignSecond5AVX512(x, panels, r, c.K, labels, dist, second)
		case 6:
			asm.AssignSecond6AVX512(x, panels, r, c.K, labels, dist, second)
		case 7:
			asm.AssignSecond7AVX512(x, panels, r, c.K, labels, dist, second)
		case 8:
			asm.AssignSecond8AVX512(x, panels, r, c.K, labels, dist, second)
		case 9:
			asm.AssignSecond9AVX512(x, panels, r, c.K, labels, dist, second)
		case 10:
			asm.AssignSecond10AVX512(x, panels, r, c.K, labels, dist, second)
		case 11:
			asm.AssignSecond11AVX512(x, panels, r, c.K, labels, dist, second)
		case 12:
			asm.AssignSecond12AVX512(x, panels, r, c.K, labels, dist, second)
		case 13:
			asm.AssignSecond13AVX512(x, panels, r, c.K, labels, dist, second)
		case 14:
			asm.AssignSecond14AVX512(x, panels, r, c.K, labels, dist, second)
		case 15:
			asm.AssignSecond15AVX512(x, panels, r, c.K, labels, dist, second)
		}
	case current == avx512 && second == nil:
		switch c.D {
		case 1:
			asm.AssignSub1AVX512(x, panels, r, c.K, labels, dist)
		case 2:
			asm.AssignSub2AVX512(x, panels, r, c.K, labels, dist)
		case 3:
			asm.AssignSub3AVX512(x, panels, r, c.K, labels, dist)
		case 4:
			asm.AssignSub4AVX512(x, panels, r, c.K, labels, dist)
		case 5:
			asm.AssignSub5AVX512(x, panels, r, c.K, labels, dist)
		case 6:
			asm.AssignSub6AVX512(x, panels, r, c.K, labels, dist)
		case 7:
			asm.AssignSub7AVX512(x, panels, r, c.K, labels, dist)
		case 8:
			asm.AssignSub8AVX512(x, panels, r, c.K, labels, dist)
		case 9:
			asm.AssignSub9AVX512(x, panels, r, c.K, labels, dist)
		case 10:
			asm.AssignSub10AVX512(x, panels, r, c.K, labels, dist)
		case 11:
			asm.AssignSub11AVX512(x, panels, r, c.K, labels, dist)
		case 12:
			asm.AssignSub12AVX512(x, panels, r, c.K, labels, dist)
		case 13:
			asm.AssignSub13AVX512(x, panels, r, c.K, labels, dist)
		case 14:
			asm.AssignSub14AVX512(x, panels, r, c.K, labels, dist)
		case 15:
			asm.AssignSub15AVX512(x, panels, r, c.K, labels, dist)
		}
	case current == avx2 && second != nil:
		switch c.D {
		case 1:
			asm.AssignSecond1AVX2(x, panels, r, c.K, labels, dist, second)
		case 2:
			asm.AssignSecond2AVX2(x, panels, r, c.K, labels, dist, second)
		case 3:
			asm.AssignSecond3AVX2(x, panels, r, c.K, labels, dist, second)
		case 4:
			asm.AssignSecond4AVX2(x, panels, r, c.K, labels, dist, second)
		case 5:
			asm.AssignSecond5AVX2(x, panels, r, c.K, labels, dist, second)
		case 6:
			asm.AssignSecond6AVX2(x, panels, r, c.K, labels, dist, second)
		case 7:
			asm.AssignSecond7AVX2(x, panels, r, c.K, labels, dist, second)
		case 8:
			asm.AssignSecond8AVX2(x, panels, r, c.K, labels, dist, second)
		case 9:
			asm.AssignSecond9AVX2(x, panels, r, c.K, labels, dist, second)
		case 10:
			asm.AssignSecond10AVX2(x, panels, r, c.K, labels, dist, second)
		case 11:
			asm.AssignSecond11AVX2(x, panels, r, c.K, labels, dist, second)
		case 12:
			asm.AssignSecond12AVX2(x, panels, r, c.K, labels, dist, second)
		case 13:
			asm.AssignSecond13AVX2(x, panels, r, c.K, labels, dist, second)
		case 14:
			asm.AssignSecond14AVX2(x, panels, r, c.K, labels, dist, second)
		case 15:
			asm.AssignSecond15AVX2(x, panels, r, c.K, labels, dist, second)
		}
	case current == avx2 && second == nil:
		switch c.D {
		case 1:
			asm.AssignSub1AVX2(x, panels, r, c.K, labels, dist)
		case 2:
			asm.AssignSub2AVX2(x, panels, r, c.K, labels, dist)
		case 3:
			asm.AssignSub3AVX2(x, panels, r, c.K, labels, dist)
		case 4:
			asm.AssignSub4AVX2(x, panels, r, c.K, labels, dist)
		case 5:
			asm.AssignSub5AVX2(x, panels, r, c.K, labels, dist)
		case 6:
			asm.AssignSub6AVX2(x, panels, r, c.K, labels, dist)
		case 7:
			asm.AssignSub7AVX2(x, panels, r, c.K, labels, dist)
		case 8:
			asm.AssignSub8AVX2(x, panels, r, c.K, labels, dist)
		case 9:
			asm.AssignSub9AVX2(x, panels, r, c.K, labels, dist)
		case 10:
			asm.AssignSub10AVX2(x, panels, r, c.K, labels, dist)
		case 11:
			asm.AssignSub11AVX2(x, panels, r, c.K, labels, dist)
		case 12:
			asm.AssignSub12AVX2(x, panels, r, c.K, labels, dist)
		case 13:
			asm.AssignSub13AVX2(x, panels, r, c.K, labels, dist)
		case 14:
			asm.AssignSub14AVX2(x, panels, r, c.K, labels, dist)
		case 15:
			asm.AssignSub15AVX2(x, panels, r, c.K, labels, dist)
		}
	}
}

// assignDot writes labels and scores of whole panels.
func assignDot(x *float32, panels int, c *Centroids, labels *uint16, score, second *float32) {
	t, h, wide, narrow := &c.tiles[0], &c.half[0], c.wideTiles, c.tileCount-c.wideTiles
	if current == avx512 {
		switch c.tileWidth {
		case 1:
			asm.AssignDot1AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		case 2:
			asm.AssignDot2AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		case 3:
			asm.AssignDot3AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		case 4:
			asm.AssignDot4AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		case 5:
			asm.AssignDot5AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		case 6:
			asm.AssignDot6AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		case 7:
			asm.AssignDot7AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		case 8:
			asm.AssignDot8AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		case 9:
			asm.AssignDot9AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		case 10:
			asm.AssignDot10AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		case 11:
			asm.AssignDot11AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		case 12:
			asm.AssignDot12AVX512(x, panels, c.D, t, h, wide, narrow, labels, score, second)
		}
		return
	}
	switch c.tileWidth {
	case 1:
		asm.AssignDot1AVX2(x, panels, c.D, t, h, wide, narrow, labels, score, second)
	case 2:
		asm.AssignDot2AVX2(x, panels, c.D, t, h, wide, narrow, labels, score, second)
	case 3:
		asm.AssignDot3AVX2(x, panels, c.D, t, h, wide, narrow, labels, score, second)
	case 4:
		asm.AssignDot4AVX2(x, panels, c.D, t, h, wide, narrow, labels, score, second)
	case 5:
		asm.AssignDot5AVX2(x, panels, c.D, t, h, wide, narrow, labels, score, second)
	case 6:
		asm.AssignDot6AVX2(x, panels, c.D, t, h, wide, narrow, labels, score, second)
	default:
		panic(fmt.Sprintf("kernels: centroids in tiles of %d were made for another instruction set", c.tileWidth))
	}
}

// finishDot turns scores into distances.
func finishDot(x *float32, panels, d int, dist, second *float32) {
	if current == avx512 {
		asm.FinishDotAVX512(x, panels, d, dist, second)
	} else {
		asm.FinishDotAVX2(x, panels, d, dist, second)
	}
}

func minHashBlocks(key, blocks *[16]byte, n int, least *[2]uint64) {
	if current == avx512 {
		asm.MinHashAVX512(key, blocks, n, least)
	} else {
		asm.MinHashAVX2(key, blocks, n, least)
	}
}

// lanePoints is the number of points of a panel that a lane of the masked form
// takes.
const lanePoints = 1

// laneWords is the number of lanes of the masked form for k clusters of d
// coordinates, [k][d][16], or 0 where there is no such form.
func laneWords(k, d int) int {
	most := 16
	if current == avx2 { // half as many lanes: by label is faster sooner
		most = 8
		if d <= maxNarrowD {
			most = 5
		}
	}
	if current == generic || k > most || d > 8 {
		return 0
	}
	return k * d * Lanes
}

// assignAdd assigns whole panels and adds them to the lanes and counts.
func assignAdd(x *float32, panels int, c *Centroids, r2 float32, labels *uint16, acc *Accumulator) {
	r, lanes, counts := &c.rows[0], &acc.scratch.lanes[0], &acc.Counts[0]
	if current == avx2 {
		switch c.D {
		case 1:
			asm.AssignAdd1AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 2:
			asm.AssignAdd2AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 3:
			asm.AssignAdd3AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 4:
			asm.AssignAdd4AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 5:
			asm.AssignAdd5AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 6:
			asm.AssignAdd6AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 7:
			asm.AssignAdd7AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 8:
			asm.AssignAdd8AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		}
		return
	}
	switch c.D {
	case 1:
		asm.AssignAdd1AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 2:
		asm.AssignAdd2AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 3:
		asm.AssignAdd3AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 4:
		asm.AssignAdd4AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 5:
		asm.AssignAdd5AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 6:
		asm.AssignAdd6AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 7:
		asm.AssignAdd7AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 8:
		asm.AssignAdd8AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	}
}

func foldLanes(acc *Accumulator, scale float32) {
	if current == avx512 {
		asm.FoldLanesAVX512(&acc.scratch.lanes[0], acc.K*acc.D, scale, &acc.Sums[0])
	} else {
		asm.FoldLanesAVX2(&acc.scratch.lanes[0], acc.K*acc.D, scale, &acc.Sums[0])
	}
}

func foldRow(row *int32, blocks int, bias int32, sums *int64) {
	if current == avx512 {
		asm.FoldRowAVX512(row, blocks, bias, sums)
	} else {
		asm.FoldRowAVX2(row, blocks, bias, sums)
	}
}

// tableEndsAtD says whether the last block of columns of a table row stands for
// the last dimensions.
const tableEndsAtD = true

// scatter adds whole panels to the table of the accumulator, and fetches data
// that lie ahead bytes after x into the cache.
func scatter(x *float32, panels int, labels *uint16, acc *Accumulator, bias float32, ahead int) {
	table, rows := &acc.scratch.table[0], acc.K+1
	if current == avx512 {
		switch acc.D {
		case 1:
			asm.Scatter1AVX512(x, panels, labels, table, rows, bias)
		case 2:
			asm.Scatter2AVX512(x, panels, labels, table, rows, bias)
		case 3:
			asm.Scatter3AVX512(x, panels, labels, table, rows, bias)
		default:
			asm.ScatterAVX512(x, panels, acc.D, labels, table, tableWidth(acc.D), bias, &acc.scratch.tally[0], ahead)
		}
		return
	}
	switch acc.D {
	case 1:
		asm.Scatter1AVX2(x, panels, labels, table, rows, bias)
	case 2:
		asm.Scatter2AVX2(x, panels, labels, table, rows, bias)
	case 3:
		asm.Scatter3AVX2(x, panels, labels, table, rows, bias)
	default:
		asm.ScatterAVX2(x, panels, acc.D, labels, table, tableWidth(acc.D), bias, &acc.scratch.tally[0], ahead)
	}
}

// projectTile multiplies whole panels with a tile of w rows.
func projectTile(w int, x *float32, panels, d int, tile, out *float32, stride int) {
	if current == avx512 {
		switch w {
		case 1:
			asm.Project1AVX512(x, panels, d, tile, out, stride)
		case 2:
			asm.Project2AVX512(x, panels, d, tile, out, stride)
		case 3:
			asm.Project3AVX512(x, panels, d, tile, out, stride)
		case 4:
			asm.Project4AVX512(x, panels, d, tile, out, stride)
		case 5:
			asm.Project5AVX512(x, panels, d, tile, out, stride)
		case 6:
			asm.Project6AVX512(x, panels, d, tile, out, stride)
		case 7:
			asm.Project7AVX512(x, panels, d, tile, out, stride)
		case 8:
			asm.Project8AVX512(x, panels, d, tile, out, stride)
		case 9:
			asm.Project9AVX512(x, panels, d, tile, out, stride)
		case 10:
			asm.Project10AVX512(x, panels, d, tile, out, stride)
		case 11:
			asm.Project11AVX512(x, panels, d, tile, out, stride)
		case 12:
			asm.Project12AVX512(x, panels, d, tile, out, stride)
		}
		return
	}
	switch w {
	case 1:
		asm.Project1AVX2(x, panels, d, tile, out, stride)
	case 2:
		asm.Project2AVX2(x, panels, d, tile, out, stride)
	case 3:
		asm.Project3AVX2(x, panels, d, tile, out, stride)
	case 4:
		asm.Project4AVX2(x, panels, d, tile, out, stride)
	case 5:
		asm.Project5AVX2(x, panels, d, tile, out, stride)
	case 6:
		asm.Project6AVX2(x, panels, d, tile, out, stride)
	}
}

func labelDistances(x *float32, panels int, c *Centroids, labels *uint16, dist *float32) {
	if current == avx512 {
		asm.LabelDistancesAVX512(x, panels, c.D, &c.rows[0], c.K, labels, dist)
	} else {
		asm.LabelDistancesAVX2(x, panels, c.D, &c.rows[0], c.K, labels, dist)
	}
}

// maxLabel returns the largest label of blocks of 32.
func maxLabel(labels *uint16, blocks int) uint16 {
	if current == avx512 {
		return asm.MaxLabelAVX512(labels, blocks)
	}
	return asm.MaxLabelAVX2(labels, blocks)
}

func cutLabels(labels *uint16, dist *float32, panels int, r2 float32, none int) {
	if current == avx512 {
		asm.CutLabelsAVX512(labels, dist, panels, r2, none)
	} else {
		asm.CutLabelsAVX2(labels, dist, panels, r2, none)
	}
}

func costPanel(x *float32, dims int, wide *float64, first, lanes int, c *float64, stride, k int, scale float64, sum int64, dst *int64) {
	if current == avx512 {
		asm.CostPanelAVX512(x, dims, wide, first, lanes, c, stride, k, scale, sum, dst)
	} else {
		asm.CostPanelAVX2(x, dims, wide, first, lanes, c, stride, k, scale, sum, dst)
	}
}

func addUint64Blocks(dst, a *uint64, blocks int) {
	if current == avx512 {
		asm.AddUint64AVX512(dst, a, blocks)
	} else {
		asm.AddUint64AVX2(dst, a, blocks)
	}
}

// addWeightedBlocks adds blocks of 8 rows.
func addWeightedBlocks(rows *float64, blocks, width int, labels *uint16, table *float64, chains int) {
	chain := 8 * width // bytes
	if chains == 1 {
		chain = 0
	}
	switch {
	case chains > 1 && width == 4: // a row is a vector of AVX2
		asm.AddWeighted4AVX2(rows, blocks, labels, table)
	case chains > 1 && width == 8 && current == avx512:
		asm.AddWeighted8AVX512(rows, blocks, labels, table)
	case chains > 1 && width == 8:
		asm.AddWeighted8AVX2(rows, blocks, labels, table)
	case current == avx512:
		asm.AddWeightedAVX512(rows, blocks, width, labels, table, 8*width*chains, chain)
	default:
		asm.AddWeightedAVX2(rows, blocks, width, labels, table, 8*width*chains, chain)
	}
}

func weightedCosts(weights *float64, dist *float32, blocks int, costs *float64) {
	if current == avx512 {
		asm.WeightedCostsAVX512(weights, dist, blocks, costs)
	} else {
		asm.WeightedCostsAVX2(weights, dist, blocks, costs)
	}
}

func foldWeightedRows(table *float64, clusters, width int) {
	asm.FoldWeightedAVX2(table, clusters, width)
}

func exchangeBlocks(own, near, next *float32, labels *uint16, weights *float64, blocks int, table, base *float64) {
	if current == avx512 {
		asm.ExchangeAVX512(own, near, next, labels, weights, blocks, table, base)
	} else {
		asm.ExchangeAVX2(own, near, next, labels, weights, blocks, table, base)
	}
}

func contributionPanels(dist *float32, panels int, root bool, most float32) {
	switch {
	case current == avx512 && root:
		asm.RootsAVX512(dist, panels, most)
	case current == avx512:
		asm.SquaresAVX512(dist, panels, most)
	case root:
		asm.RootsAVX2(dist, panels, most)
	default:
		asm.SquaresAVX2(dist, panels, most)
	}
}

func changedLabels(before, now *uint16, blocks int, masks *uint32) {
	if current == avx512 {
		asm.ChangedLabelsAVX512(before, now, blocks, masks)
	} else {
		asm.ChangedLabelsAVX2(before, now, blocks, masks)
	}
}

func distanceBounds(dist, second *float32, blocks int, bounds *[4]float32) {
	if current == avx512 {
		asm.DistanceBoundsAVX512(dist, second, blocks, bounds)
	} else {
		asm.DistanceBoundsAVX2(dist, second, blocks, bounds)
	}
}

// rivalsPanels handles whole panels on the current path.
func rivalsPanels(x *float32, panels int, c *Centroids, bias *float32, slack, window float32, labels *uint16, cells *uint32, gap *float32) {
	r, low := &c.rows[0], rivalMask(c.K)
	if current == avx512 {
		switch c.D {
		case 1:
			asm.Rivals1AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 2:
			asm.Rivals2AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 3:
			asm.Rivals3AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 4:
			asm.Rivals4AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 5:
			asm.Rivals5AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 6:
			asm.Rivals6AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 7:
			asm.Rivals7AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 8:
			asm.Rivals8AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 9:
			asm.Rivals9AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 10:
			asm.Rivals10AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 11:
			asm.Rivals11AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 12:
			asm.Rivals12AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 13:
			asm.Rivals13AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 14:
			asm.Rivals14AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		case 15:
			asm.Rivals15AVX512(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
		}
		return
	}
	switch c.D {
	case 1:
		asm.Rivals1AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 2:
		asm.Rivals2AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 3:
		asm.Rivals3AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 4:
		asm.Rivals4AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 5:
		asm.Rivals5AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 6:
		asm.Rivals6AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 7:
		asm.Rivals7AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 8:
		asm.Rivals8AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 9:
		asm.Rivals9AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 10:
		asm.Rivals10AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 11:
		asm.Rivals11AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 12:
		asm.Rivals12AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 13:
		asm.Rivals13AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 14:
		asm.Rivals14AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	case 15:
		asm.Rivals15AVX2(x, panels, r, c.K, bias, low, slack, window, labels, cells, gap)
	}
}

// leastDotPart is leastDot for as many sums as a call may take.
func leastDotPart(x []float64, stride, n int, coef []float64) (float64, int) {
	if current == avx512 {
		return asm.LeastDotAVX512(&x[0], stride, n, &coef[0], len(coef))
	}
	return leastDotLanes(x, stride, n, coef)
}

func leastDotBlocks(x *float64, stride, blocks int, coef *float64, d int, least *float64, at *int64) {
	asm.LeastDotAVX2(x, stride, blocks, coef, d, least, at)
}

func quantisePeriods(dst *float32, src *float64, periods int, m *UnitMap, scale float64) int {
	vectors := len(m.lo) / unitLanes
	if current == avx512 {
		return asm.QuantiseAVX512(dst, src, periods, &m.lo[0], &m.hi[0], &m.width[0], vectors, scale)
	}
	return asm.QuantiseAVX2(dst, src, periods, &m.lo[0], &m.hi[0], &m.width[0], vectors, scale)
}
