//go:build arm64 && !purego

package kernels

import (
	"fmt"

	"github.com/klauspost/cpuid/v2"

	"github.com/cohort-engine/cohort/asm"
)

// supportedPaths lists the paths whose every instruction this CPU has. Vector
// instructions are part of every arm64 that Go supports; AES is not.
func supportedPaths() []path {
	if cpuid.CPU.Supports(cpuid.ASIMD, cpuid.AESARM) {
		return []path{generic, neon}
	}
	return []path{generic}
}

// maxTileWidth is the number of centroids a tile of [Centroids] holds at most.
func maxTileWidth() int { return 4 }

// assignSub assigns whole panels of fewer than exactDims dimensions.
func assignSub(x *float32, panels int, c *Centroids, labels *uint16, dist, second *float32) {
	asm.AssignSubNEON(x, panels, c.D, &c.rows[0], c.K, labels, dist, second)
}

// assignDot writes labels and scores of whole panels.
func assignDot(x *float32, panels int, c *Centroids, labels *uint16, score, second *float32) {
	t, h, wide, narrow := &c.tiles[0], &c.half[0], c.wideTiles, c.tileCount-c.wideTiles
	switch c.tileWidth {
	case 1:
		asm.AssignDot1NEON(x, panels, c.D, t, h, wide, narrow, labels, score, second)
	case 2:
		asm.AssignDot2NEON(x, panels, c.D, t, h, wide, narrow, labels, score, second)
	case 3:
		asm.AssignDot3NEON(x, panels, c.D, t, h, wide, narrow, labels, score, second)
	case 4:
		asm.AssignDot4NEON(x, panels, c.D, t, h, wide, narrow, labels, score, second)
	default:
		panic(fmt.Sprintf("kernels: centroids in tiles of %d were made for another instruction set", c.tileWidth))
	}
}

// finishDot turns scores into distances.
func finishDot(x *float32, panels, d int, dist, second *float32) {
	asm.FinishDotNEON(x, panels, d, dist, second)
}

func minHashBlocks(key, blocks *[16]byte, n int, least *[2]uint64) {
	var schedule [44]uint32
	expandKey(&aesTable().sbox, key, &schedule)
	asm.MinHashNEON(&schedule, blocks, n, least)
}

// lanePoints is the number of points of a panel that a lane of the masked form
// takes.
const lanePoints = 4

// laneWords is the number of lanes of the masked form for k clusters of d
// coordinates, [k][1+d][4] with the counts first, or 0 where there is no such form.
// With vectors of four, additions under a mask for each cluster cost less than
// additions by label up to some four clusters: by the models of llvm-mca for
// Cortex-A57, ThunderX2, TSV110, Apple and Cortex-A55, no machine was at hand.
func laneWords(k, d int) int {
	if current != neon || k > 4 || d > 8 {
		return 0
	}
	return k * (1 + d) * 4
}

// assignAdd assigns whole panels and adds them to the lanes.
func assignAdd(x *float32, panels int, c *Centroids, r2 float32, labels *uint16, acc *Accumulator) {
	asm.AssignAddNEON(x, panels, c.D, &c.rows[0], c.K, r2, labels, &acc.scratch.lanes[0])
}

func foldLanes(acc *Accumulator, scale float32) {
	asm.FoldLanesNEON(&acc.scratch.lanes[0], acc.K, acc.D, scale, &acc.Sums[0], &acc.Counts[0])
}

func foldRow(row *int32, blocks int, bias int32, sums *int64) {
	asm.FoldRowNEON(row, blocks, bias, sums)
}

// tableEndsAtD says whether the last block of columns of a table row stands for
// the last dimensions.
const tableEndsAtD = false

// scatter adds whole panels to the table of the accumulator.
func scatter(x *float32, panels int, labels *uint16, acc *Accumulator, bias float32, _ int) {
	table, rows := &acc.scratch.table[0], acc.K+1
	switch acc.D {
	case 1:
		asm.Scatter1NEON(x, panels, labels, table, rows, bias)
	case 2:
		asm.Scatter2NEON(x, panels, labels, table, rows, bias)
	case 3:
		asm.Scatter3NEON(x, panels, labels, table, rows, bias)
	default:
		asm.ScatterNEON(x, panels, acc.D, labels, table, tableWidth(acc.D), bias, &acc.scratch.tally[0])
	}
}

// projectTile multiplies whole panels with a tile of w rows.
func projectTile(w int, x *float32, panels, d int, tile, out *float32, stride int) {
	switch w {
	case 1:
		asm.Project1NEON(x, panels, d, tile, out, stride)
	case 2:
		asm.Project2NEON(x, panels, d, tile, out, stride)
	case 3:
		asm.Project3NEON(x, panels, d, tile, out, stride)
	case 4:
		asm.Project4NEON(x, panels, d, tile, out, stride)
	}
}

func labelDistances(x *float32, panels int, c *Centroids, labels *uint16, dist *float32) {
	asm.LabelDistancesNEON(x, panels, c.D, &c.rows[0], c.K, labels, dist)
}

// maxLabel returns the largest label of blocks of 32.
func maxLabel(labels *uint16, blocks int) uint16 { return asm.MaxLabelNEON(labels, blocks) }

func cutLabels(labels *uint16, dist *float32, panels int, r2 float32, none int) {
	asm.CutLabelsNEON(labels, dist, panels, r2, none)
}

func addUint64Blocks(dst, a *uint64, blocks int) { asm.AddUint64NEON(dst, a, blocks) }

func costPanel(x *float32, dims int, wide *float64, first, lanes int, c *float64, stride, k int, scale float64, sum int64, dst *int64) {
	asm.CostPanelNEON(x, dims, wide, first, lanes, c, stride, k, scale, sum, dst)
}

func pack(dst *Panels, rows []float32) {
	panels, d := dst.N/Lanes, dst.D
	if current == generic {
		panels = 0
	}
	step := panelsPerCall(8 * d)
	for at := 0; at < panels; at += step {
		asm.PackNEON(&dst.Data[at*Lanes*d], &rows[at*Lanes*d], min(step, panels-at), d)
	}
	if base := panels * Lanes; base < dst.N {
		rest := dst.Slice(base, dst.N)
		packPortable(&rest, rows[base*d:])
	}
}

func within(p *Panels, c *Centroids, limit []float32, masks []uint16) {
	if current == generic {
		withinPortable(p, c, limit, masks)
		return
	}
	panels := panelCount(p.N)
	step := panelsPerCall(c.K * c.D)
	for at := 0; at < panels; at += step {
		asm.WithinNEON(&p.Data[at*Lanes*p.D], min(step, panels-at), c.D, &c.rows[0], c.K, &limit[at*Lanes], &masks[at*c.K])
	}
}

// addWeightedBlocks adds blocks of 8 rows.
func addWeightedBlocks(rows *float64, blocks, width int, labels *uint16, table *float64, chains int) {
	switch {
	case chains > 1 && width == 4:
		asm.AddWeighted4NEON(rows, blocks, labels, table)
	case chains > 1 && width == 8:
		asm.AddWeighted8NEON(rows, blocks, labels, table)
	default:
		chain := 8 * width // bytes
		if chains == 1 {
			chain = 0
		}
		asm.AddWeightedNEON(rows, blocks, width, labels, table, 8*width*chains, chain)
	}
}

func weightedCosts(weights *float64, dist *float32, blocks int, costs *float64) {
	asm.WeightedCostsNEON(weights, dist, blocks, costs)
}

func foldWeightedRows(table *float64, clusters, width int) {
	asm.FoldWeightedNEON(table, clusters, width)
}

func exchangeBlocks(own, near, next *float32, labels *uint16, weights *float64, blocks int, table, base *float64) {
	asm.ExchangeNEON(own, near, next, labels, weights, blocks, table, base)
}

func contributionPanels(dist *float32, panels int, root bool, most float32) {
	if root {
		asm.RootsNEON(dist, panels, most)
	} else {
		asm.SquaresNEON(dist, panels, most)
	}
}

func changedLabels(before, now *uint16, blocks int, masks *uint32) {
	asm.ChangedLabelsNEON(before, now, blocks, masks)
}

func distanceBounds(dist, second *float32, blocks int, bounds *[4]float32) {
	asm.DistanceBoundsNEON(dist, second, blocks, bounds)
}

// rivalsPanels handles whole panels on the current path.
func rivalsPanels(x *float32, panels int, c *Centroids, bias *float32, slack, window float32, labels *uint16, cells *uint32, gap *float32) {
	asm.RivalsNEON(x, panels, c.D, &c.rows[0], c.K, bias, rivalMask(c.K), slack, window, labels, cells, gap)
}

// leastDotPart is leastDot for as many sums as a call may take.
func leastDotPart(x []float64, stride, n int, coef []float64) (float64, int) {
	return leastDotLanes(x, stride, n, coef)
}

func leastDotBlocks(x *float64, stride, blocks int, coef *float64, d int, least *float64, at *int64) {
	asm.LeastDotNEON(x, stride, blocks, coef, d, least, at)
}

func quantisePeriods(dst *float32, src *float64, periods int, m *UnitMap, scale float64) int {
	return asm.QuantiseNEON(dst, src, periods, &m.lo[0], &m.hi[0], &m.width[0], len(m.lo)/unitLanes, scale)
}
