package main

import (
	"math"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Narrow points are words of two integers of 16 bits, [words][16] for a panel, in chunks of narrowWords words.
const (
	narrowWords  = 16 // of a chunk
	narrowBits   = 22 // of the grid
	narrowRest   = 8  // bits of it that the integers leave out
	narrowTile   = 10 // centroids
	narrowLast   = 5  // centroids of the last tile, where these suffice
	narrowPanels = 2
)

// narrowFile emits the routines of narrow points.
func narrowFile() {
	narrowPack()
	narrowRow()
	narrowMove()
	one := constants("narrowOneVNNI", 1)
	infinity := constants("narrowInfinityVNNI", math.Float32bits(float32(math.Inf(1))))
	narrowAssign(one, infinity)
	narrowSum(one, infinity)
	narrowLengths()
}

// narrowPack emits the routine that makes narrow points.
func narrowPack() {
	function("NarrowPackVNNI", "func(x *float32, chunks int, origin, words, rest *int32, stride int, sums *float32)",
		"rounds chunks > 0 chunks of 32 dimensions of the panel at x. With X = x 2^22 and D = X - origin, words gets",
		"u = floor((D+128)/256) of two dimensions each, [16 chunks][16], and rest the bytes r = D - 256 u of four each,",
		"[16][8 stride]. sums are rows of 16: the squares of D, the largest of a chunk, the squares of r, and, as an",
		"integer, the largest magnitude of X, all ones where an X is no integer.")
	x, chunks := Load(Param("x"), GP64()), Load(Param("chunks"), GP64()).(reg.GPVirtual)
	origin, words := Load(Param("origin"), GP64()), Load(Param("words"), GP64())
	rest, sums := Load(Param("rest"), GP64()), Load(Param("sums"), GP64())
	grid, half, all, most := ZMM(), ZMM(), ZMM(), ZMM()
	VBROADCASTSS(constants("narrowGridVNNI", math.Float32bits(1<<narrowBits)), grid)
	VPBROADCASTD(constants("narrowHalfVNNI", 1<<(narrowRest-1)), half)
	VPTERNLOGD(Imm(0xff), all, all, all)
	squares, largest, rough, part := ZMM(), ZMM(), ZMM(), ZMM()
	for _, v := range []reg.VecVirtual{squares, largest, rough, most} {
		avx512.zero(v)
	}
	points := ZMM() // where their words of rest are
	numbers := make([]uint32, 16)
	for i := range numbers {
		numbers[i] = uint32(i * narrowWords / 2)
	}
	VPBROADCASTD(NewParamAddr("stride", 40), points)
	VPMULLD(constants("narrowLanesVNNI", numbers...), points, points)
	odd, high, other, every := GP32(), K(), K(), K()
	MOVL(U32(0xaaaaaaaa), odd)
	KMOVD(odd, high)
	count("chunks", chunks, func() {
		avx512.zero(part)
		left := GP64()
		MOVQ(U32(narrowWords/2), left)
		count("words", left, func() {
			u, r := avx512.vectors(4), avx512.vectors(4)
			for q := range u {
				t, back := ZMM(), ZMM()
				VMULPS(Mem{Base: x, Disp: 64 * q}, grid, t)
				VCVTPS2DQ(t, u[q])
				VCVTDQ2PS(u[q], back)
				VCMPPS(Imm(4), back, t, other) // not equal, or no number
				VPABSD(u[q], back)
				VPMAXUD(back, most, most)
				VMOVDQA32(all, other, most)
				VPSUBD_BCST(Mem{Base: origin, Disp: 4 * q}, u[q], r[q])
				VCVTDQ2PS(r[q], t)
				VFMADD231PS(t, t, part)
				VPADDD(half, r[q], u[q])
				VPSRAD(Imm(narrowRest), u[q], u[q])
				VPSLLD(Imm(narrowRest), u[q], t)
				VPSUBD(t, r[q], r[q])
				VCVTDQ2PS(r[q], t)
				VFMADD231PS(t, t, rough)
				VPSLLD(Imm(24), r[q], r[q])
				if q < 3 {
					VPSRLD(Imm(uint64(8*(3-q))), r[q], r[q])
				}
			}
			for q := 0; q < 4; q += 2 {
				VPSLLD(Imm(16), u[q+1], u[q+1])
				VMOVDQU16(u[q+1], high, u[q])
				VMOVDQU32(u[q], Mem{Base: words, Disp: 32 * q})
			}
			VPORD(r[0], r[1], r[0])
			VPORD(r[2], r[3], r[2])
			VPORD(r[0], r[2], r[0])
			KXNORW(every, every, every)
			VPSCATTERDD(r[0], every, Mem{Base: rest, Index: points, Scale: 4})
			ADDQ(U32(4*64), x)
			ADDQ(Imm(4*4), origin)
			ADDQ(U32(2*64), words)
			ADDQ(Imm(4), rest)
		})
		VADDPS(part, squares, squares)
		VMAXPS(part, largest, largest)
	})
	for i, v := range []reg.VecVirtual{squares, largest, rough, most} {
		VMOVUPS(v, Mem{Base: sums, Disp: 64 * i})
	}
	VZEROUPPER()
	RET()
}

// narrowRow emits the routine that reads a point from its narrow form.
func narrowRow() {
	function("NarrowRowVNNI", "func(words, rest, origin *int32, chunks int, row *float32)",
		"writes the coordinates 2^-22 (256 u + r + origin) of a point whose words [16 chunks] are 64 bytes apart, with two u",
		"each, and whose rest has four r in a word, [8 chunks]. chunks > 0 chunks of 32 dimensions are written to row.")
	words, rest := Load(Param("words"), GP64()), Load(Param("rest"), GP64())
	origin, row := Load(Param("origin"), GP64()), Load(Param("row"), GP64())
	chunks := Load(Param("chunks"), GP64()).(reg.GPVirtual)
	places, orders := make([]uint32, 16), [2][]uint32{make([]uint32, 16), make([]uint32, 16)}
	for i := range places {
		places[i] = uint32(16 * i)
		for half := range orders {
			orders[half][i] = uint32(8*half + i/2 + i%2*16)
		}
	}
	place, down, every := ZMM(), ZMM(), K()
	order := avx512.vectors(2)
	VMOVDQU32(constants("narrowPlacesVNNI", places...), place)
	VMOVDQU32(constants("narrowLowVNNI", orders[0]...), order[0])
	VMOVDQU32(constants("narrowHighVNNI", orders[1]...), order[1])
	VBROADCASTSS(constants("narrowDownVNNI", math.Float32bits(1./(1<<narrowBits))), down)
	ahead, left := GP64(), GP64() // all lines of rest are fetched at once
	MOVQ(rest, ahead)
	MOVQ(chunks, left)
	count("fetch", left, func() {
		PREFETCHT0(Mem{Base: ahead})
		ADDQ(U32(2*narrowWords), ahead)
	})
	count("chunks", chunks, func() {
		word, bytes := ZMM(), ZMM()
		KXNORW(every, every, every)
		VPXORD(word, word, word)
		VPGATHERDD(Mem{Base: words, Index: place, Scale: 4}, every, word)
		VPMOVZXWD(Mem{Base: rest}, bytes)
		parts := avx512.vectors(2) // of even and odd dimensions
		for part, x := range parts {
			r := ZMM()
			if part == 0 {
				VPSLLD(Imm(16), word, x)
				VPSRAD(Imm(16), x, x)
				VPSLLD(Imm(24), bytes, r)
			} else {
				VPSRAD(Imm(16), word, x)
				VPSLLD(Imm(16), bytes, r)
			}
			VPSRAD(Imm(24), r, r)
			VPSLLD(Imm(narrowRest), x, x)
			VPADDD(r, x, x)
		}
		for half := range parts {
			x := ZMM()
			VMOVDQU32(order[half], x)
			VPERMI2D(parts[1], parts[0], x)
			VPADDD(Mem{Base: origin, Disp: 64 * half}, x, x)
			VCVTDQ2PS(x, x)
			VMULPS(down, x, x)
			VMOVUPS(x, Mem{Base: row, Disp: 64 * half})
		}
		ADDQ(U32(64*narrowWords), words)
		ADDQ(Imm(2*narrowWords), rest)
		ADDQ(U32(128), origin)
		ADDQ(U32(128), row)
	})
	VZEROUPPER()
	RET()
}

// narrowMove emits the routine that takes a point from sum to sum.
func narrowMove() {
	function("NarrowMoveVNNI", "func(row *float32, blocks int, scale float32, from, to *int64)",
		"subtracts the coordinates of blocks > 0 blocks of 16 dimensions, times scale and truncated to integers of 32 bits,",
		"from the sums from, and adds them to the sums to.")
	row, blocks := Load(Param("row"), GP64()), Load(Param("blocks"), GP64()).(reg.GPVirtual)
	from, to := Load(Param("from"), GP64()), Load(Param("to"), GP64())
	scale := ZMM()
	VBROADCASTSS(NewParamAddr("scale", 16), scale)
	count("blocks", blocks, func() {
		for half := range 2 {
			x, sum := ZMM(), ZMM()
			VMULPS(Mem{Base: row, Disp: 32 * half}, scale.AsY(), x.AsY())
			VCVTTPS2DQ(x.AsY(), x.AsY())
			VPMOVSXDQ(x.AsY(), x)
			VMOVDQU64(Mem{Base: from, Disp: 64 * half}, sum)
			VPSUBQ(x, sum, sum)
			VMOVDQU64(sum, Mem{Base: from, Disp: 64 * half})
			VPADDQ(Mem{Base: to, Disp: 64 * half}, x, x)
			VMOVDQU64(x, Mem{Base: to, Disp: 64 * half})
		}
		ADDQ(Imm(64), row)
		ADDQ(U32(128), from)
		ADDQ(U32(128), to)
	})
	VZEROUPPER()
	RET()
}

// narrowing is the routine that ranks centroids, with its arguments in registers.
type narrowing struct {
	x, stride, tripled, c, room reg.GPVirtual
	number                      reg.GPVirtual // of a tile's first centroid
	least, second, index        []reg.VecVirtual
	one                         Mem
}

// narrowAssign emits the routine.
func narrowAssign(one, infinity Mem) {
	function("NarrowAssignVNNI", "func(x *int32, stride, chunks int, c *int32, tiles, last int, band float32, "+
		"room *float32, labels, doubts *uint16)",
		"ranks the centroids of tiles tiles for each point of the two panels at x and stride bytes beyond, and fetches as",
		"much after them. A tile at c is [1+16 chunks][10] words: float32 to which the products of a point with the",
		"integers of 16 bits in the next ones are added, those of a chunk modulo 2^32; one of [1+16 chunks][5] follows where",
		"last is not 0. The label is the number of the first least sum, and a bit of doubts, 16 for each panel, says that",
		"the second least less the least is at most band. room is for [10][2][16] sums.")
	r := &narrowing{x: GP64(), stride: GP64(), tripled: GP64(), c: GP64(), room: GP64(), number: GP64(), one: one}
	Load(Param("stride"), r.stride)
	LEAQ(Mem{Base: r.stride, Index: r.stride, Scale: 2}, r.tripled)
	Load(Param("c"), r.c)
	Load(Param("room"), r.room)
	r.start(infinity)
	tiles := Load(Param("tiles"), GP64()).(reg.GPVirtual)
	TESTQ(tiles, tiles)
	JZ(LabelRef("last"))
	count("tiles", tiles, func() { r.tile("tile", narrowTile) })
	Label("last")
	last := Load(Param("last"), GP64())
	TESTQ(last, last)
	JZ(LabelRef("ranked"))
	r.tile("last_tile", narrowLast)
	Label("ranked")
	r.end(NewParamAddr("band", 48))
}

// start writes the minima of no centroids.
func (r *narrowing) start(infinity Mem) {
	r.least, r.second, r.index = avx512.vectors(narrowPanels), avx512.vectors(narrowPanels), avx512.vectors(narrowPanels)
	for p := range narrowPanels {
		VBROADCASTSS(infinity, r.least[p])
		VBROADCASTSS(infinity, r.second[p])
		avx512.zero(r.index[p])
	}
	XORQ(r.number, r.number)
}

// end writes labels and doubts.
func (r *narrowing) end(width Mem) {
	labels, doubts := Load(Param("labels"), GP64()), Load(Param("doubts"), GP64())
	band, near, bits := ZMM(), K(), GP32()
	VBROADCASTSS(width, band)
	for p := range narrowPanels {
		VSUBPS(r.least[p], r.second[p], r.second[p])
		VCMPPS(Imm(2), band, r.second[p], near)
		KMOVW(near, bits)
		MOVW(bits.As16(), Mem{Base: doubts, Disp: 2 * p})
		VPMOVDW(r.index[p], Mem{Base: labels, Disp: 32 * p})
	}
	VZEROUPPER()
	RET()
}

// tile ranks the next n centroids.
func (r *narrowing) tile(label string, n int) {
	const together = 4 // words
	sums := r.begin(n)
	chunks, left := Load(Param("chunks"), GP64()).(reg.GPVirtual), GP64()
	count(label+"_chunks", chunks, func() {
		for _, s := range slices.Concat(sums...) {
			avx512.zero(s)
		}
		MOVQ(U32(narrowWords/together), left)
		count(label+"_words", left, func() {
			for w := range together {
				points := avx512.vectors(narrowPanels)
				VMOVDQU32(Mem{Base: r.x, Disp: 64 * w}, points[0])
				VMOVDQU32(Mem{Base: r.x, Index: r.stride, Scale: 1, Disp: 64 * w}, points[1])
				PREFETCHT1(Mem{Base: r.x, Index: r.stride, Scale: 2, Disp: 64 * w})
				PREFETCHT1(Mem{Base: r.x, Index: r.tripled, Scale: 1, Disp: 64 * w})
				for q := range sums {
					r.multiply(sums[q], points, 4*(n*w+q))
				}
			}
			ADDQ(U32(64*together), r.x)
			ADDQ(U32(uint32(4*n*together)), r.c)
		})
		r.add(sums)
	})
	r.rank(n)
}

// begin writes what the products of n centroids are added to.
func (r *narrowing) begin(n int) [][]reg.VecVirtual {
	sums := make([][]reg.VecVirtual, n)
	for q := range sums {
		sums[q] = avx512.vectors(narrowPanels)
		for p, s := range sums[q] {
			VBROADCASTSS(Mem{Base: r.c, Disp: 4 * q}, s)
			VMOVUPS(s, r.sum(q, p))
		}
	}
	ADDQ(Imm(uint64(4*n)), r.c)
	Load(Param("x"), r.x)
	return sums
}

// sum is the place of the sum of centroid q and panel p.
func (r *narrowing) sum(q, p int) Mem { return Mem{Base: r.room, Disp: 64 * (narrowPanels*q + p)} }

// multiply adds the products of points with the word of a centroid, disp bytes on, to its sums.
func (r *narrowing) multiply(sums, points []reg.VecVirtual, disp int) {
	for p, x := range points {
		VPDPWSSD_BCST(Mem{Base: r.c, Disp: disp}, x, sums[p])
	}
}

// add adds the sums of a chunk to those before.
func (r *narrowing) add(sums [][]reg.VecVirtual) {
	for q := range sums {
		for p, s := range sums[q] {
			VCVTDQ2PS(s, s)
			VADDPS(r.sum(q, p), s, s)
			VMOVUPS(s, r.sum(q, p))
		}
	}
}

// rank takes the sums of n centroids into the minima.
func (r *narrowing) rank(n int) {
	number, one, nearer := ZMM(), ZMM(), K()
	VPBROADCASTD(r.number.As32(), number)
	VPBROADCASTD(r.one, one)
	for q := range n {
		for p := range narrowPanels {
			s, larger := ZMM(), ZMM()
			VMOVUPS(r.sum(q, p), s)
			VCMPPS(Imm(1), r.least[p], s, nearer)
			VMOVDQA32(number, nearer, r.index[p])
			VMAXPS(s, r.least[p], larger)
			VMINPS(s, r.least[p], r.least[p])
			VMINPS(larger, r.second[p], r.second[p])
		}
		VPADDD(one, number, number)
	}
	ADDQ(U32(uint32(n)), r.number)
}
