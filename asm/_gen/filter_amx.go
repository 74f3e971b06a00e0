package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileRows is the number of centroids in a tile of AMX.
const tileRows = 2 * filterTile

// The tiles of products: up to two by two sums, then those of centroids and of points.
const (
	sumTile      = 0
	centroidTile = 4
	pointTile    = 6
)

// tiledScores is a routine of integer scores by products of tiles. All registers are physical, as the bytes of an
// instruction name them.
type tiledScores struct {
	np int // panels
	// x and c are the first panel and tile, passing is what a panel and a tile of centroids take, at the offset of
	// what the centroids' sums begin with.
	x, c, passing, at reg.GPPhysical
	tiles             reg.GPPhysical
	scores, least     reg.GPPhysical
	line, row         reg.GPPhysical // 64, and the bytes of a centroid in a tile
	xp, cp, left      reg.GPPhysical
	xq, cq            reg.GPPhysical // the second panel and tile
}

// filterTilesFile emits the scores of the candidate filter by products of tiles.
func filterTilesFile() {
	filterTiles(2)
	filterTiles(1)
}

// peakTilesFile emits the loop of products of tiles for the limits.
func peakTilesFile() {
	const sums = 4 // hide the latency of a product
	function("PeakTileAMX", "func(config *byte, n int)",
		fmt.Sprintf("runs n > 0 rounds of %d products of tiles, of 16 by 64 and 64 by 16 bytes.", sums),
		"config is as FilterTiles2AMX has it, with chunk = 16.")
	Load(Param("config"), reg.RAX)
	tileConfigure(reg.RAX)
	for t := range 8 {
		tileZero(t)
	}
	Load(Param("n"), reg.RCX)
	Label("loop")
	for t := range sums {
		tileProducts(sumTile+t, centroidTile, pointTile)
	}
	DECQ(reg.RCX)
	JNZ(LabelRef("loop"))
	tileRelease()
	RET()
}

// filterTiles emits the integer scores of np panels.
func filterTiles(np int) {
	function(fmt.Sprintf("FilterTiles%dAMX", np),
		"func(config, x *byte, words, chunk int, c *byte, base *int32, tiles int, scores, least, best *int32)",
		fmt.Sprintf("writes the integer scores of %d panels [words][16] at x, of unsigned bytes, and", np),
		"tiles > 0 tiles [words/chunk][16][chunk] at c, of signed ones, four to a word: 0 < chunk <= 16 divides words > 0.",
		"config is the form of tiles: 16 rows of 64 bytes in 0 to 3, 16 rows of 4*chunk bytes in 4 and 5, chunk rows of 64",
		"bytes in 6 and 7. A score is base plus the products. scores is [tiles][16][panels][16], least [2*tiles][panels][16]",
		"has the least score of each half of a tile, and best [panels][16] falls to the least of all.")
	r := &tiledScores{np: np, x: reg.R8, passing: reg.R9, c: reg.R10, line: reg.R11, at: reg.R12, tiles: reg.R13,
		scores: reg.RDI, least: reg.RSI, row: reg.RBX, xp: reg.RAX, cp: reg.RCX, left: reg.RDX, xq: reg.R14, cq: reg.R15}
	Load(Param("config"), r.xp)
	tileConfigure(r.xp)
	Load(Param("x"), r.x)
	Load(Param("words"), r.passing)
	SHLQ(Imm(6), r.passing)
	Load(Param("c"), r.c)
	Load(Param("tiles"), r.tiles)
	Load(Param("scores"), r.scores)
	Load(Param("least"), r.least)
	Load(Param("chunk"), r.row)
	SHLQ(Imm(2), r.row)
	XORQ(r.at, r.at)
	// The scores of a block are finished while the products of the next one are under way.
	CMPQ(r.tiles, Imm(2))
	JLT(LabelRef("rest"))
	r.issue("first", 2)
	Label("pairs")
	CMPQ(r.tiles, Imm(2))
	JLT(LabelRef("drain"))
	r.issue("pair", 2)
	r.finish(2, 4)
	JMP(LabelRef("pairs"))
	Label("drain")
	r.finish(2, 2)
	Label("rest")
	TESTQ(r.tiles, r.tiles)
	JZ(LabelRef("end"))
	r.issue("single", 1)
	r.finish(1, 1)
	Label("end")
	tileRelease()
	VZEROUPPER()
	RET()
}

// issue emits the products of some tiles of centroids, and goes on to the next ones.
func (r *tiledScores) issue(tag string, tiles int) {
	for t := range tiles {
		for p := range r.np {
			tileZero(sumTile + 2*t + p)
		}
	}
	r.products(tag, tiles)
	// The rows of a tile of sums are as far apart as there are panels.
	MOVQ(U32(64*r.np), r.xp)
	for t := range tiles {
		for p := range r.np {
			tileStore(sumTile+2*t+p, r.scores, r.xp, 64*(t*tileRows*r.np+p))
		}
	}
	for range tiles {
		ADDQ(r.passing, r.c)
	}
	ADDQ(U32(64*tiles*tileRows*r.np), r.scores)
	SUBQ(Imm(uint64(tiles)), r.tiles)
}

// finish completes the scores of some tiles of centroids, which begin so many tiles before the place of the next ones.
func (r *tiledScores) finish(tiles, back int) {
	Load(Param("base"), r.xp)
	ADDQ(r.at, r.xp)
	Load(Param("best"), r.cp)
	for p := range r.np {
		best := ZMM()
		VMOVDQU32(Mem{Base: r.cp, Disp: 64 * p}, best)
		for half := range 2 * tiles {
			r.half(half, p, Mem{Base: r.scores, Disp: -64 * back * tileRows * r.np}, best)
		}
		VMOVDQU32(best, Mem{Base: r.cp, Disp: 64 * p})
	}
	ADDQ(Imm(uint64(64*tiles)), r.at)
	ADDQ(U32(64*tiles*2*r.np), r.least)
}

// products adds up the products of all words.
func (r *tiledScores) products(tag string, tiles int) {
	MOVQ(U32(64), r.line)
	MOVQ(r.x, r.xp)
	MOVQ(r.c, r.cp)
	Load(Param("words"), r.left)
	Label(tag)
	for t := range tiles {
		base := r.cp
		if t > 0 {
			base = r.cq
			LEAQ(Mem{Base: r.cp, Index: r.passing, Scale: 1}, base)
		}
		tileLoad(centroidTile+t, base, r.row, 0)
	}
	for p := range r.np {
		base := r.xp
		if p > 0 {
			base = r.xq
			LEAQ(Mem{Base: r.xp, Index: r.passing, Scale: 1}, base)
		}
		tileLoad(pointTile+p, base, r.line, 0)
		for t := range tiles {
			tileProducts(sumTile+2*t+p, centroidTile+t, pointTile+p)
		}
	}
	Load(Param("chunk"), r.xq)
	SUBQ(r.xq, r.left)
	SHLQ(Imm(6), r.xq)
	ADDQ(r.xq, r.xp)
	ADDQ(r.xq, r.cp)
	TESTQ(r.left, r.left)
	JNZ(LabelRef(tag))
}

// half completes the scores of half a tile and a panel; the block begins at place.
func (r *tiledScores) half(half, p int, block Mem, best reg.VecVirtual) {
	v := amx.vectors(filterTile)
	for q := range v {
		row := half*filterTile + q
		place := block.Offset(64 * (row*r.np + p))
		VMOVDQU32(place, v[q])
		VPADDD_BCST(Mem{Base: r.xp, Disp: 4 * row}, v[q], v[q])
		VMOVDQU32(v[q], place)
	}
	for step := 1; step < filterTile; step *= 2 {
		for q := 0; q < filterTile; q += 2 * step {
			VPMINSD(v[q+step], v[q], v[q])
		}
	}
	VMOVDQU32(v[0], Mem{Base: r.least, Disp: 64 * (half*r.np + p)})
	VPMINSD(v[0], best, best)
}
