package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// filterTile is the number of centroids in a tile of the candidate filter.
const filterTile = 8

// vnni is AVX-512 with VPDPWSSD.
var vnni = isa{"VNNI", 64, 1}

// filterFile emits the candidate filter: scores in small integers, and the
// centroids whose scores are near the least.
func filterFile(s isa) {
	numbers := constants("filterOnes"+s.name, 1, 1, 1, 1, 1, 1, 1, 1)
	const ofBytes, ofWords = "bytes, four to a word, those at x unsigned", "integers of 16 bits, two to a word"
	var words products
	if s == vnni {
		bytes := func(c, x, sum reg.VecVirtual) { VPDPBUSD(c, x, sum) }
		words = func(c, x, sum reg.VecVirtual) { VPDPWSSD(c, x, sum) }
		filterScore(s, "FilterBytes", ofBytes, 3, bytes)
		filterScore(s, "FilterBytes", ofBytes, 1, bytes)
		filterScore(s, "FilterScore", ofWords, 3, words)
		filterNearest(numbers)
		filterIntegers()
		filterShorts(s)
		filterDots(s, true)
	} else {
		filterRuns(s)
		filterRunIntegers(s)
		filterShorts(s)
		filterDots(s, true)
	}
	filterScore(s, "FilterScore", ofWords, 1, words)
	filterCandidates(s, numbers)
	filterPrune(s)
	filterRows(s)
	filterDots(s, false)
	if s == avx2 {
		filterExact()
	}
}

// products adds the products of a word of a centroid and of a vector of points to a sum, where an instruction does.
type products func(c, x, sum reg.VecVirtual)

// scoring is a routine of integer scores of np panels, with its arguments in registers.
type scoring struct {
	s        isa
	nv       int // vectors of points
	products products

	x, stride, c, base, scores, least, best reg.Register

	end reg.GPVirtual // of the centroids so far, of runs
}

// filterScore emits the integer scores of np panels.
func filterScore(s isa, name, what string, np int, products products) {
	even := ""
	if s == avx2 {
		even = " and even"
	}
	function(fmt.Sprintf("%s%d%s", name, np, s.name),
		"func(x *byte, words int, c *byte, base *int32, tiles int, scores, least, best *int32, ahead uintptr, lines int)",
		fmt.Sprintf("writes the integer scores of %d panels [words][16] at x and tiles > 0 tiles", np),
		fmt.Sprintf("[words][8] at c, words > 0%s, of %s:", even, what),
		"base plus the products. scores is [tiles][8][panels][16], least [tiles][panels][16] has the least score of each",
		"tile, and best [panels][16] falls to the least of all. For each tile so many lines from ahead on, of what comes",
		"next, are fetched into the second-level cache.")
	r := &scoring{s: s, nv: np * s.parts, products: products, x: Load(Param("x"), GP64()),
		stride: Load(Param("words"), GP64()), c: Load(Param("c"), GP64()), base: Load(Param("base"), GP64())}
	tiles := Load(Param("tiles"), GP64()).(reg.GPVirtual)
	r.scores = Load(Param("scores"), GP64())
	r.least = Load(Param("least"), GP64())
	r.best = Load(Param("best"), GP64())
	ahead := Load(Param("ahead"), GP64())
	SHLQ(Imm(6), r.stride) // bytes of a panel
	count("tiles", tiles, func() {
		pass := GP64() // bytes of a tile
		if s == avx2 {
			r.halves(func() { r.centroids(filterTile/2, pass) })
		}
		MOVQ(r.stride, pass)
		SHRQ(Imm(1), pass)
		if s == avx2 {
			LEAQ(Mem{Base: r.c, Index: pass, Scale: 1, Disp: -4 * filterTile}, r.c)
		} else {
			r.centroids(filterTile, pass)
			ADDQ(pass, r.c)
			ADDQ(Imm(4*filterTile), r.base)
			ADDQ(U32(filterTile*r.nv*s.bytes), r.scores)
		}
		ADDQ(U32(r.nv*s.bytes), r.least)
		fetchLines(ahead)
	})
	VZEROUPPER()
	RET()
}

// centroids emits the scores of some centroids of a tile.
func (r *scoring) centroids(width int, pass reg.Register) {
	s := r.s
	sums := make([][]reg.VecVirtual, width)
	for q := range sums {
		sums[q] = s.vectors(r.nv)
	}
	for q := range sums {
		for v := range sums[q] {
			VPBROADCASTD(Mem{Base: r.base, Disp: 4 * q}, sums[q][v])
		}
	}
	xp, cp, left := GP64(), GP64(), GP64()
	MOVQ(r.x, xp)
	LEAQ(Mem{Base: r.c}, cp)
	MOVQ(r.stride, left)
	if s == avx2 {
		SHRQ(Imm(7), left) // pairs of words: 64 bytes each
		r.pairs(xp, cp, left, sums, VPMADDWD, VPADDD)
	} else {
		SHRQ(Imm(6), left)
		r.words(xp, cp, left, pass, sums)
	}
	for q := range sums {
		for v := range sums[q] {
			place := Mem{Base: r.scores, Disp: (q*r.nv + v) * s.bytes}
			if s == avx2 {
				VMOVDQU(sums[q][v], place)
				continue
			}
			// On Zen 4 a whole vector's store keeps two products from their units, its halves' one.
			VEXTRACTI64X4(Imm(0), sums[q][v], place)
			VEXTRACTI64X4(Imm(1), sums[q][v], place.Offset(32))
		}
	}
	r.lower(sums)
}

// words emits the products of so many words of panels with the centroids at cp.
func (r *scoring) words(xp, cp, left reg.GPVirtual, pass reg.Register, sums [][]reg.VecVirtual) {
	s, value := r.s, r.s.vector()
	xs := s.vectors(r.nv)
	count("words0", left, func() {
		for v := range xs {
			m := Mem{Base: xp, Disp: v % s.parts * s.bytes}
			if p := v / s.parts; p > 0 {
				m.Index, m.Scale = r.stride, uint8(p)
			}
			VMOVDQUx(s, m, xs[v])
		}
		PREFETCHT0(Mem{Base: cp, Index: pass, Scale: 1}) // the next centroids, into the first-level cache
		for q := range sums {
			VPBROADCASTD(Mem{Base: cp, Disp: 4 * q}, value)
			for v := range xs {
				r.products(value, xs[v], sums[q][v])
			}
		}
		ADDQ(Imm(64), xp)
		ADDQ(Imm(4*filterTile), cp)
	})
}

// lower emits the least of a tile's scores, of which those of some centroids, or of all, are sums.
func (r *scoring) lower(sums [][]reg.VecVirtual) {
	s := r.s
	for v := range r.nv {
		for step := 1; step < len(sums); step *= 2 {
			for q := 0; q < len(sums); q += 2 * step {
				VPMINSD(sums[q+step][v], sums[q][v], sums[q][v])
			}
		}
		low := sums[0][v]
		place := Mem{Base: r.least, Disp: v * s.bytes}
		if len(sums) < filterTile {
			VPMINSD(place, low, low)
		}
		VMOVDQUx(s, low, place)
		place = Mem{Base: r.best, Disp: v * s.bytes}
		VPMINSD(place, low, low)
		VMOVDQUx(s, low, place)
	}
}

// filterRuns emits the integer scores of bytes without an instruction that adds products of four to 32 bits: products
// of two bytes each are added in 16 bits along a run of words, and then their pairs.
func filterRuns(s isa) {
	function("FilterRuns"+s.name,
		"func(x *byte, words, run int, c *byte, base *int32, tiles int, scores, least, best *int32, ahead uintptr, "+
			"lines int)",
		"writes the integer scores of a panel [words][16] at x and tiles > 0 tiles at c, of bytes, four to a word, those",
		"at x unsigned: base plus the products. words > 0 and run > 0 are even. A tile is [words][8], before each run of",
		"so many words 8 words of what sums of 16 bits begin at: those of the first two bytes and of the last two.",
		"scores is [tiles][8][16], least [tiles][16] has the least score of each tile, and best [16] falls to the least of",
		"all. For each tile so many lines from ahead on, of what comes next, are fetched into the second-level cache.")
	r := &scoring{s: s, nv: s.parts, x: Load(Param("x"), GP64()), stride: Load(Param("words"), GP64()),
		c: Load(Param("c"), GP64()), base: Load(Param("base"), GP64()), end: GP64()}
	run := Load(Param("run"), GP64())
	tiles := Load(Param("tiles"), GP64()).(reg.GPVirtual)
	r.scores = Load(Param("scores"), GP64())
	r.least = Load(Param("least"), GP64())
	r.best = Load(Param("best"), GP64())
	ahead := Load(Param("ahead"), GP64())
	SHRQ(Imm(1), r.stride) // pairs of words
	SHRQ(Imm(1), run)
	ones := constants("filterPairs"+s.name, 0x10001, 0x10001, 0x10001, 0x10001, 0x10001, 0x10001, 0x10001, 0x10001)
	count("tiles", tiles, func() {
		r.halves(func() { r.runs(run, ones) })
		LEAQ(Mem{Base: r.end, Disp: -4 * filterTile / 2}, r.c)
		ADDQ(U32(uint32(r.nv*s.bytes)), r.least)
		fetchLines(ahead)
	})
	VZEROUPPER()
	RET()
}

// fetchLines emits the prefetch of the next lines of what comes after, as many as a call has for each tile.
func fetchLines(ahead reg.Register) {
	lines := Load(Param("lines"), GP64()).(reg.GPVirtual)
	TESTQ(lines, lines)
	JZ(LabelRef("fetched"))
	count("fetch", lines, func() {
		PREFETCHT1(Mem{Base: ahead})
		ADDQ(Imm(64), ahead)
	})
	Label("fetched")
}

// halves emits a loop over the halves of a tile, which move on by themselves where centroids, base and scores are read
// and written: body takes one.
func (r *scoring) halves(body func()) {
	const width = filterTile / 2
	s, most, half := r.s, r.s.vector(), GP64()
	VPCMPEQD(most, most, most)
	VPSRLD(Imm(1), most, most)
	for v := range r.nv {
		VMOVDQU(most, Mem{Base: r.least, Disp: v * s.bytes})
	}
	MOVQ(U32(2), half)
	count("halves", half, func() {
		body()
		ADDQ(Imm(4*width), r.c)
		ADDQ(Imm(4*width), r.base)
		ADDQ(U32(uint32(width*r.nv*s.bytes)), r.scores)
	})
}

// runs emits the scores of some centroids of a tile; the sums of 32 bits of all runs but the last are where the scores
// will be.
func (r *scoring) runs(run reg.Register, ones Mem) {
	s := r.s
	sums := make([][]reg.VecVirtual, filterTile/2)
	for q := range sums {
		sums[q] = s.vectors(r.nv)
	}
	xp, left, n := GP64(), GP64(), GP64()
	MOVQ(r.x, xp)
	MOVQ(r.c, r.end)
	MOVQ(r.stride, left)
	Label("run")
	MOVQ(run, n)
	CMPQ(n, left)
	CMOVQGT(left, n)
	SUBQ(n, left)
	r.run(xp, r.end, n, sums)
	one := s.vector()
	VMOVDQU(ones, one)
	LEAQ(Mem{Base: run, Index: left, Scale: 1}, n)
	CMPQ(n, r.stride)
	JL(LabelRef("more"))
	values := s.vectors(len(sums))
	for q := range sums {
		VPBROADCASTD(Mem{Base: r.base, Disp: 4 * q}, values[q])
	}
	r.widen(one, sums, func(q int, _ Mem, sum reg.VecVirtual) { VPADDD(values[q], sum, sum) })
	TESTQ(left, left)
	JNZ(LabelRef("run"))
	JMP(LabelRef("done"))
	Label("more")
	r.widen(one, sums, func(_ int, place Mem, sum reg.VecVirtual) { VPADDD(place, sum, sum) })
	TESTQ(left, left)
	JNZ(LabelRef("run"))
	Label("done")
	r.lower(sums)
}

// widen emits the sums of 32 bits of a run's pairs of 16 bits, adds to them, and stores them where the scores will be.
func (r *scoring) widen(one reg.VecVirtual, sums [][]reg.VecVirtual,
	add func(q int, place Mem, sum reg.VecVirtual)) {
	for _, vectors := range sums {
		for _, sum := range vectors {
			VPMADDWD(one, sum, sum)
		}
	}
	for q, vectors := range sums {
		for v, sum := range vectors {
			place := Mem{Base: r.scores, Disp: (q*r.nv + v) * r.s.bytes}
			add(q, place, sum)
			VMOVDQU(sum, place)
		}
	}
}

// run emits the products of n pairs of words of a panel with centroids at cp, which both move on.
func (r *scoring) run(xp, cp, n reg.GPVirtual, sums [][]reg.VecVirtual) {
	for q := range sums {
		VPBROADCASTD(Mem{Base: cp, Disp: 4 * q}, sums[q][0])
		for v := 1; v < r.nv; v++ {
			VMOVDQA(sums[q][0], sums[q][v])
		}
	}
	ADDQ(Imm(4*filterTile), cp)
	r.pairs(xp, cp, n, sums, VPMADDUBSW, VPADDW)
}

// pairs emits the products of n pairs of words of a panel with centroids at cp, which both move on.
func (r *scoring) pairs(xp, cp, n reg.GPVirtual, sums [][]reg.VecVirtual, multiply, add func(ops ...Op)) {
	const together = 2 // words
	x, values := r.s.vectors(r.nv), r.s.vectors(2)
	l := &lateSums{products: r.s.vectors(4), add: add}
	align()
	count("words", n, func() {
		value := func(i int) { // of centroid i of those of both words
			if w, q := i/len(sums), i%len(sums); w < together {
				VPBROADCASTD(Mem{Base: cp, Disp: 4 * (filterTile*w + q)}, values[i%2])
			}
		}
		value(0)
		for i := range together * len(sums) {
			w, q := i/len(sums), i%len(sums)
			for v := range x {
				if q == 0 {
					VMOVDQU(Mem{Base: xp, Disp: 64*w + v*r.s.bytes}, x[v])
				}
				if v == 0 {
					value(i + 1)
				}
				l.next(sums[q][v], func(product reg.VecVirtual) { multiply(values[i%2], x[v], product) })
			}
		}
		l.drain()
		ADDQ(U32(64*together), xp)
		ADDQ(Imm(4*filterTile*together), cp)
	})
}

// lateSums adds products to sums some products later: an addition that waits for the product before it holds up others,
// and takes their pipe when it goes (Zen 3 does a fifth more products so).
type lateSums struct {
	products []reg.VecVirtual // one more than wait at most
	add      func(ops ...Op)
	waiting  [][2]reg.VecVirtual // products with their sums
	used     int
}

// next emits a product, and the addition of an earlier one.
func (l *lateSums) next(sum reg.VecVirtual, multiply func(product reg.VecVirtual)) {
	product := l.products[l.used%len(l.products)]
	l.used++
	multiply(product)
	if l.waiting = append(l.waiting, [2]reg.VecVirtual{product, sum}); len(l.waiting) == len(l.products) {
		l.one()
	}
}

// one emits the first addition that waits.
func (l *lateSums) one() {
	sum := l.waiting[0][1]
	l.add(l.waiting[0][0], sum, sum)
	l.waiting = l.waiting[1:]
}

// drain emits the additions that wait.
func (l *lateSums) drain() {
	for len(l.waiting) > 0 {
		l.one()
	}
}

// candidates is the routine of the search for scores near the least, with its arguments in registers.
type candidates struct {
	s isa

	scores, least, stride, word, list, kept, found reg.Register

	limit, label, tally []reg.VecVirtual
	above               []reg.VecVirtual // 1 more than the limits
	one, at             reg.VecVirtual   // ones, and the number of a centroid
	number, mask        reg.GPVirtual    // of a centroid, and of its points
}

// filterCandidates emits the search for scores near the least.
func filterCandidates(s isa, numbers Mem) {
	function("FilterCandidates"+s.name,
		"func(scores, least *int32, tiles, panels, panel, first int, best, before *int32, band, most int32, limit, "+
			"labels, counts *int32, list *uint64, kept *int32) int",
		"goes through the scores of one panel of several, as FilterScore leaves them, and",
		"lists those of at most the limit, which falls to min(best, most)+band. Where the best before exceeds",
		"the limit, the count begins at 0. For each score that is listed, the count of its",
		"point goes up by one, and the label becomes its centroid; first is the number of the",
		"first centroid. An entry of the list is mask | panel<<16 | centroid<<32. The result is",
		"the number of entries, at most 8 for each tile; kept [entries][16] has their scores. There is room for 8 of each",
		"tile.")
	f := &candidates{s: s, scores: Load(Param("scores"), GP64()), least: Load(Param("least"), GP64())}
	tiles := Load(Param("tiles"), GP64()).(reg.GPVirtual)
	f.stride = Load(Param("panels"), GP64())
	SHLQ(Imm(6), f.stride)
	f.word = Load(Param("panel"), GP64())
	SHLQ(Imm(6), f.word)
	ADDQ(f.word, f.scores)
	ADDQ(f.word, f.least)
	SHRQ(Imm(6), f.word)
	SHLQ(Imm(16), f.word)
	best := Load(Param("best"), GP64())
	before, limit := Load(Param("before"), GP64()), Load(Param("limit"), GP64())
	labels, counts := Load(Param("labels"), GP64()), Load(Param("counts"), GP64())
	f.begin(best, before, limit, labels, counts, numbers)
	f.list = Load(Param("list"), GP64())
	// The tiles that have scores within the limit are listed first, from where entries do not reach before they are read:
	// a branch for each would often be mispredicted.
	tile, near, nears := GP64(), GP64(), GP64()
	IMUL3Q(Imm(7*8), tiles, nears)
	ADDQ(f.list, nears)
	XORQ(tile, tile)
	XORQ(near, near)
	if s == avx2 {
		f.raise()
	}
	count("tiles", tiles, func() {
		if s == avx2 {
			f.any(Mem{Base: f.least})
		} else {
			f.within(Mem{Base: f.least})
		}
		MOVQ(tile, Mem{Base: nears, Index: near, Scale: 8})
		CMPL(f.mask, Imm(1)) // borrows from no bits
		SBBQ(I8(-1), near)
		INCQ(tile)
		ADDQ(f.stride, f.least)
	})
	f.kept = Load(Param("kept"), GP64())
	f.found, f.number = GP64(), GP64()
	XORQ(f.found, f.found)
	TESTQ(near, near)
	JZ(LabelRef("none"))
	if s == avx2 {
		f.each(nears, near)
	} else {
		f.eachOfTiles(nears, near)
	}
	Label("none")
	Load(Param("labels"), labels)
	Load(Param("counts"), counts)
	for v := range s.parts {
		VMOVDQUx(s, f.label[v], Mem{Base: labels, Disp: v * s.bytes})
		VMOVDQUx(s, f.tally[v], Mem{Base: counts, Disp: v * s.bytes})
	}
	Store(f.found, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// each lists the centroids of near > 0 tiles that have scores within the limit, in the place of the entries, and then
// makes these. Centroids overtake neither the tiles, which are read before, nor entries the centroids.
func (f *candidates) each(nears, near reg.GPVirtual) {
	some := GP64()
	XORQ(some, some)
	count("near", near, func() {
		n, place := GP64(), GP64()
		MOVQ(Mem{Base: nears}, n)
		ADDQ(Imm(8), nears)
		SHLQ(Imm(3), n)
		MOVQ(n, place)
		IMULQ(f.stride, place)
		ADDQ(f.scores, place)
		Label("centroids")
		f.any(Mem{Base: place})
		MOVQ(n, Mem{Base: f.list, Index: some, Scale: 8})
		INCQ(n)
		ADDQ(f.stride, place)
		CMPL(f.mask, Imm(1)) // borrows from no bits
		SBBQ(I8(-1), some)
		TESTQ(U32(filterTile-1), n)
		JNZ(LabelRef("centroids"))
	})
	count("some", some, func() {
		place, first := GP64(), GP64()
		MOVQ(Mem{Base: f.list, Index: f.found, Scale: 8}, f.number)
		MOVQ(f.number, place)
		IMULQ(f.stride, place)
		ADDQ(f.scores, place)
		Load(Param("first"), first)
		ADDQ(first, f.number)
		f.candidate(0, place)
	})
}

// eachOfTiles makes the entries of near > 0 tiles.
func (f *candidates) eachOfTiles(nears, near reg.GPVirtual) {
	count("near", near, func() {
		MOVQ(Mem{Base: nears}, f.number)
		ADDQ(Imm(8), nears)
		SHLQ(Imm(3), f.number)
		place := GP64()
		MOVQ(f.number, place)
		IMULQ(f.stride, place)
		ADDQ(f.scores, place)
		first := GP64()
		Load(Param("first"), first)
		ADDQ(first, f.number)
		for q := range filterTile {
			f.candidate(q, place)
			ADDQ(f.stride, place)
		}
	})
}

// begin sets the limits, and the labels and counts so far.
func (f *candidates) begin(best, before, limit, labels, counts reg.Register, numbers Mem) {
	s := f.s
	f.limit, f.label, f.tally = s.vectors(s.parts), s.vectors(s.parts), s.vectors(s.parts)
	f.one, f.at, f.mask = s.vector(), s.vector(), GP32()
	VPBROADCASTD(numbers, f.one)
	for v := range s.parts {
		m := Mem{Disp: v * s.bytes}
		of := func(base reg.Register) Mem { m.Base = base; return m }
		VBROADCASTSS(NewParamAddr("most", 68), f.at)
		VPMINSD(of(best), f.at, f.limit[v])
		VBROADCASTSS(NewParamAddr("band", 64), f.at)
		VPADDD(f.at, f.limit[v], f.limit[v])
		VPMINSD(of(limit), f.limit[v], f.limit[v])
		VMOVDQUx(s, f.limit[v], of(limit))
		VMOVDQUx(s, of(labels), f.label[v])
		VMOVDQUx(s, of(before), f.at)
		if s == avx2 {
			VPCMPGTD(f.limit[v], f.at, f.at)
			VPANDN(of(counts), f.at, f.tally[v])
		} else {
			k := K()
			VPCMPD(Imm(2), f.limit[v], f.at, k)
			VMOVDQU32_Z(of(counts), k, f.tally[v])
		}
	}
}

// raise sets above, which is 1 more than the limits: these are less than the largest integer.
func (f *candidates) raise() {
	f.above = f.s.vectors(f.s.parts)
	for v, limit := range f.limit {
		VPADDD(f.one, limit, f.above[v])
	}
}

// any leaves a mask that is 0 where none of the scores at place is within the limit.
func (f *candidates) any(place Mem) {
	under := f.s.vectors(f.s.parts)
	for v := range under {
		VPCMPGTD(place.Offset(v*f.s.bytes), f.above[v], under[v])
	}
	VPOR(under[1], under[0], under[0])
	VMOVMSKPS(under[0], f.mask)
}

// within leaves the bits of the scores at place that are within the limit in
// mask, and the same by vector.
func (f *candidates) within(place Mem) ([]reg.VecVirtual, reg.OpmaskVirtual) {
	s := f.s
	if s != avx2 {
		k, v := K(), s.vector()
		VMOVDQU32(place, v)
		VPCMPD(Imm(2), f.limit[0], v, k)
		KMOVW(k, f.mask)
		return nil, k
	}
	over := s.vectors(s.parts)
	high := GP32()
	for v := range over {
		VMOVDQU(place.Offset(v*s.bytes), over[v])
		VPCMPGTD(f.limit[v], over[v], over[v])
	}
	VMOVMSKPS(over[0], f.mask)
	VMOVMSKPS(over[1], high)
	SHLL(Imm(8), high)
	ORL(high, f.mask)
	XORL(U32(0xffff), f.mask)
	return over, nil
}

// candidate lists centroid q of the tile, whose scores are at place. One that has no score within the limit is
// overwritten by the next: a branch would be mispredicted for most of those that have.
func (f *candidates) candidate(q int, place reg.GPVirtual) {
	s := f.s
	score, at := s.vector(), GP64()
	MOVQ(f.found, at)
	SHLQ(Imm(6), at)
	for v := range s.parts {
		VMOVDQUx(s, Mem{Base: place, Disp: v * s.bytes}, score)
		VMOVDQUx(s, score, Mem{Base: f.kept, Index: at, Scale: 1, Disp: v * s.bytes})
	}
	over, k := f.within(Mem{Base: place})
	entry := GP64()
	LEAQ(Mem{Base: f.number, Disp: q}, entry)
	if s == avx2 {
		low := XMM()
		VMOVD(entry.As32(), low)
		VPBROADCASTD(low, f.at)
		for v := range over {
			VBLENDVPS(over[v], f.label[v], f.at, f.label[v])
			VPADDD(f.one, f.tally[v], f.tally[v])
			VPADDD(over[v], f.tally[v], f.tally[v])
		}
	} else {
		VPBROADCASTD(entry.As32(), f.at)
		VMOVDQA32(f.at, k, f.label[0])
		VPADDD(f.one, f.tally[0], k, f.tally[0])
	}
	SHLQ(Imm(32), entry)
	ORQ(f.word, entry)
	ORQ(f.mask.As64(), entry)
	MOVQ(entry, Mem{Base: f.list, Index: f.found, Scale: 8})
	CMPL(f.mask, Imm(1)) // borrows from no bits
	SBBQ(I8(-1), f.found)
}

// filterNearest emits the search for the centroids of least scores.
func filterNearest(numbers Mem) {
	s := vnni
	function("FilterNearestVNNI",
		"func(scores, least *int32, tiles, panels, panel, first int, best, labels *int32)",
		"goes through the scores of one panel of several, as FilterScore leaves them. The labels of points that have a",
		"score as low as best become the number of a centroid that has it; first is the number of the first centroid.")
	scores, least := Load(Param("scores"), GP64()), Load(Param("least"), GP64())
	stride, at := Load(Param("panels"), GP64()), Load(Param("panel"), GP64())
	SHLQ(Imm(6), stride)
	SHLQ(Imm(6), at)
	ADDQ(at, scores)
	ADDQ(at, least)
	best, labels, left := Load(Param("best"), GP64()), Load(Param("labels"), GP64()), GP64()
	Load(Param("tiles"), left)
	// Each point's tile first: the tiles that some point has are most of them in turn.
	lowest, one, number, tile, has, some := s.vector(), s.vector(), s.vector(), s.vector(), K(), K()
	VMOVDQU32(Mem{Base: best}, lowest)
	VPBROADCASTD(numbers, one)
	s.zero(number)
	s.zero(tile)
	KXORW(some, some, some)
	count("tiles", left, func() {
		VPCMPEQD(Mem{Base: least}, lowest, has)
		VMOVDQA32(number, has, tile)
		KORW(has, some, some)
		VPADDD(one, number, number)
		ADDQ(stride, least)
	})
	place, points := AllocLocal(64), GP32()
	VMOVDQU32(tile, place)
	KMOVW(some, points)
	TESTL(points, points)
	JZ(LabelRef("none"))
	Label("points")
	point, value, label, n := GP64(), GP32(), GP64(), GP64()
	TZCNTL(points, point.As32())
	MOVL(place.Idx(point, 4), n.As32())
	SHLQ(Imm(3), n)
	MOVQ(n, at)
	IMULQ(stride, at)
	ADDQ(scores, at)
	LEAQ(Mem{Base: at, Index: point, Scale: 4}, at)
	ADDQ(NewParamAddr("first", 40), n)
	MOVL(Mem{Base: best, Index: point, Scale: 4}, value)
	for range filterTile {
		CMPL(value, Mem{Base: at})
		CMOVQEQ(n, label)
		INCQ(n)
		ADDQ(stride, at)
	}
	MOVL(label.As32(), Mem{Base: labels, Index: point, Scale: 4})
	BLSRL(points, points)
	JNZ(LabelRef("points"))
	Label("none")
	VZEROUPPER()
	RET()
}

// filterIntegers emits the integers of a centroid.
func filterIntegers() {
	s := vnni
	function("FilterIntegersVNNI", "func(row *float32, blocks int, scale float32, down float64, to *byte, "+
		"totals *[16]int32, errors *[8]float64)",
		"rounds blocks > 0 blocks of 16 coordinates times scale to integers of at most 127 in magnitude, and writes the",
		"opposite ones, four to a word, to every eighth word at to. The totals of 16 lanes are of the integers, the",
		"errors of 8 of the squares of what they, times down, are off by.")
	row := Load(Param("row"), GP64())
	blocks := Load(Param("blocks"), GP64()).(reg.GPVirtual)
	scale, down, shift, zero := s.vector(), s.vector(), s.vector(), s.vector()
	VBROADCASTSS(NewParamAddr("scale", 16), scale)
	VBROADCASTSD(NewParamAddr("down", 24), down)
	to := Load(Param("to"), GP64())
	number := GP32()
	MOVL(U32(math.Float32bits(3<<22)), number)
	VPBROADCASTD(number, shift)
	s.zero(zero)
	total, errors := s.vector(), s.vectors(2)
	for _, v := range []reg.VecVirtual{total, errors[0], errors[1]} {
		s.zero(v)
	}
	count("blocks", blocks, func() {
		x, q, integers, packed := s.vector(), s.vector(), s.vector(), XMM()
		VMOVUPS(Mem{Base: row}, x)
		VMULPS(scale, x, q)
		VADDPS(shift, q, q)
		VSUBPS(shift, q, q)
		VCVTTPS2DQ(q, integers)
		VPADDD(integers, total, total)
		VPSUBD(integers, zero, integers)
		VPMOVDB(integers, packed)
		for i := range 4 {
			VPEXTRD(Imm(uint64(i)), packed, Mem{Base: to, Disp: 4 * filterTile * i})
		}
		for i, sum := range errors {
			exact, near := s.vector(), s.vector()
			half, other := x.AsY(), q.AsY()
			if i == 1 {
				half, other = YMM(), YMM()
				VEXTRACTF64X4(Imm(1), x, half)
				VEXTRACTF64X4(Imm(1), q, other)
			}
			VCVTPS2PD(half, exact)
			VCVTPS2PD(other, near)
			VFNMADD231PD(down, near, exact)
			VFMADD231PD(exact, exact, sum)
		}
		ADDQ(Imm(64), row)
		ADDQ(U32(4*4*filterTile), to)
	})
	VADDPD(errors[1], errors[0], errors[0])
	place := GP64()
	Load(Param("totals"), place)
	VMOVDQUx(s, total, Mem{Base: place})
	Load(Param("errors"), place)
	VMOVUPD(errors[0], Mem{Base: place})
	VZEROUPPER()
	RET()
}

// filterRunIntegers emits what filterIntegers does, for parts of a centroid that are runs.
func filterRunIntegers(s isa) {
	function("FilterIntegers"+s.name, "func(row *float32, blocks int, scale float32, down float64, to *byte, "+
		"totals *[16]int32, errors *[8]float64)",
		"rounds blocks > 0 blocks of 16 coordinates times scale to integers of at most 127 in magnitude, and writes the",
		"opposite ones, four to a word, to every eighth word at to. The totals are of every sixteenth integer, the errors",
		"of the squares of what they, times down, are off by, in eight parts.")
	row := Load(Param("row"), GP64())
	blocks := Load(Param("blocks"), GP64()).(reg.GPVirtual)
	scale, down, zero := s.vector(), s.vector(), s.vector()
	VBROADCASTSS(NewParamAddr("scale", 16), scale)
	VBROADCASTSD(NewParamAddr("down", 24), down)
	to := Load(Param("to"), GP64())
	s.zero(zero)
	totals, errors := s.vectors(s.parts), s.vectors(s.parts)
	for v := range totals {
		s.zero(totals[v])
		s.zero(errors[v])
	}
	count("blocks", blocks, func() {
		opposite := s.vectors(s.parts)
		for v := range totals {
			q := s.vector()
			VMULPS(Mem{Base: row, Disp: v * s.bytes}, scale, q)
			VCVTPS2DQ(q, q)
			VPADDD(q, totals[v], totals[v])
			VPSUBD(q, zero, opposite[v])
			for half := range 2 {
				exact, near := s.vector(), s.vector()
				part := q.AsX()
				if half > 0 {
					part = XMM()
					VEXTRACTI128(Imm(1), q, part)
				}
				VCVTPS2PD(Mem{Base: row, Disp: v*s.bytes + half*s.bytes/2}, exact)
				VCVTDQ2PD(part, near)
				VFNMADD231PD(down, near, exact)
				VFMADD231PD(exact, exact, errors[v])
			}
		}
		// The halves of vectors are packed on their own: the words are 0 and 2, 1 and 3.
		packed, high := s.vector(), XMM()
		VPACKSSDW(opposite[1], opposite[0], packed)
		VPACKSSWB(packed, packed, packed)
		VEXTRACTI128(Imm(1), packed, high)
		for i, half := range []reg.Register{packed.AsX(), high} {
			VMOVD(half, Mem{Base: to, Disp: 4 * filterTile * i})
			VPEXTRD(Imm(1), half, Mem{Base: to, Disp: 4 * filterTile * (i + 2)})
		}
		ADDQ(Imm(64), row)
		ADDQ(U32(4*4*filterTile), to)
	})
	place := GP64()
	for v := range totals {
		Load(Param("totals"), place)
		VMOVDQU(totals[v], Mem{Base: place, Disp: v * s.bytes})
		Load(Param("errors"), place)
		VMOVUPD(errors[v], Mem{Base: place, Disp: v * s.bytes})
	}
	VZEROUPPER()
	RET()
}

// filterShorts emits the integers of 16 bits of a centroid.
func filterShorts(s isa) {
	function("FilterShorts"+s.name, "func(row *float32, blocks int, scale float32, to *int16)",
		"rounds blocks > 0 blocks of 16 coordinates times scale to the nearest integers of 16 bits.")
	row := Load(Param("row"), GP64())
	blocks := Load(Param("blocks"), GP64()).(reg.GPVirtual)
	to := Load(Param("to"), GP64())
	scale, x, packed := s.vector(), s.vectors(s.parts), YMM()
	VBROADCASTSS(NewParamAddr("scale", 16), scale)
	count("blocks", blocks, func() {
		for v := range x {
			VMULPS(Mem{Base: row, Disp: v * s.bytes}, scale, x[v])
			if s == avx2 {
				VCVTPS2DQ(x[v], x[v])
			} else {
				VCVTPS2DQ_RN_SAE(x[v], x[v])
			}
		}
		if s == avx2 {
			VPACKSSDW(x[1], x[0], packed)
			VPERMQ(Imm(0b11011000), packed, packed)
		} else {
			VPMOVSDW(x[0], packed)
		}
		VMOVDQU(packed, Mem{Base: to})
		ADDQ(Imm(64), row)
		ADDQ(Imm(32), to)
	})
	VZEROUPPER()
	RET()
}

// filterExact emits the exact scores of four pairs of a point and a centroid.
func filterExact() {
	const pairs = 4
	function("FilterExactAVX2", "func(x, c *[4]*float32, d int, scores *[4]float32)",
		"takes four scores down the chain s = fma(-x, c, s) over d > 0 dimensions: of the",
		"points at x, a panel's stride apart, and the rows at c.")
	xs, cs := Load(Param("x"), GP64()), Load(Param("c"), GP64())
	left := Load(Param("d"), GP64()).(reg.GPVirtual)
	scores := Load(Param("scores"), GP64())
	var xp, cp [pairs]reg.GPVirtual
	var sum [pairs]reg.VecVirtual
	for i := range pairs {
		xp[i], cp[i], sum[i] = GP64(), GP64(), XMM()
		MOVQ(Mem{Base: xs, Disp: 8 * i}, xp[i])
		MOVQ(Mem{Base: cs, Disp: 8 * i}, cp[i])
		VMOVSS(Mem{Base: scores, Disp: 4 * i}, sum[i])
	}
	xo, co := GP64(), GP64()
	XORQ(xo, xo)
	XORQ(co, co)
	count("dims", left, func() {
		for i := range pairs {
			v := XMM()
			VMOVSS(Mem{Base: xp[i], Index: xo, Scale: 1}, v)
			VFNMADD231SS(Mem{Base: cp[i], Index: co, Scale: 1}, v, sum[i])
		}
		ADDQ(Imm(64), xo)
		ADDQ(Imm(4), co)
	})
	for i := range pairs {
		VMOVSS(sum[i], Mem{Base: scores, Disp: 4 * i})
	}
	RET()
}

// beyondVNNI is the name of the level of routines that need no more than AVX-512.
func beyondVNNI(s isa) string {
	if s == vnni {
		return avx512.name
	}
	return s.name
}

// filterPrune emits the drop of entries beyond limits.
func filterPrune(s isa) {
	function("FilterPrune"+beyondVNNI(s), "func(list *uint64, kept *int32, count int, limits *int32) int",
		"leaves of count > 0 entries, as FilterCandidates lists them, the points whose scores are at most their limits",
		"[panels][16], and of the list the entries that have any; the result is their number.")
	list, kept := Load(Param("list"), GP64()), Load(Param("kept"), GP64())
	entries := Load(Param("count"), GP64()).(reg.GPVirtual)
	limits := Load(Param("limits"), GP64())
	f := &candidates{s: s, mask: GP32()}
	from, left := GP64(), GP64()
	XORQ(left, left)
	MOVQ(list, from)
	scores := GP64()
	MOVQ(kept, scores)
	count("entries", entries, func() {
		entry, panel, to := GP64(), GP64(), GP64()
		MOVQ(Mem{Base: from}, entry)
		MOVQ(entry, panel)
		SHRQ(Imm(16), panel)
		MOVWQZX(panel.As16(), panel)
		SHLQ(Imm(6), panel)
		f.limit = s.vectors(s.parts)
		for v := range f.limit {
			VMOVDQUx(s, Mem{Base: limits, Index: panel, Scale: 1, Disp: v * s.bytes}, f.limit[v])
		}
		f.within(Mem{Base: scores})
		ORL(U32(0xffff0000), f.mask)
		other := GP64()
		MOVQ(U64(0xffffffff00000000), other)
		ORQ(f.mask.As64(), other)
		ANDQ(other, entry)
		MOVQ(entry, Mem{Base: list, Index: left, Scale: 8})
		MOVQ(left, to)
		SHLQ(Imm(6), to)
		for v := range s.parts {
			moved := s.vector()
			VMOVDQUx(s, Mem{Base: scores, Disp: v * s.bytes}, moved)
			VMOVDQUx(s, moved, Mem{Base: kept, Index: to, Scale: 1, Disp: v * s.bytes})
		}
		MOVWLZX(entry.As16(), entry.As32())
		CMPL(entry.As32(), Imm(1)) // borrows from no bits
		SBBQ(I8(-1), left)
		ADDQ(Imm(8), from)
		ADDQ(Imm(64), scores)
	})
	Store(left, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// rowBlock is the size of a block of 16 dimensions of points by row: a line more than they take, as lines of a point
// that are a power of two apart would all share a few sets of the first-level cache.
const rowBlock = 17 * 64

// filterRows emits the transposition of a panel.
func filterRows(s isa) {
	function("FilterRows"+beyondVNNI(s), "func(x *float32, blocks int, rows *float32)",
		"copies blocks > 0 blocks of 16 dimensions of the panel at x to rows [blocks][16 points and another][16].")
	x := Load(Param("x"), GP64()).(reg.GPVirtual)
	blocks := Load(Param("blocks"), GP64()).(reg.GPVirtual)
	rows := Load(Param("rows"), GP64())
	if s == vnni {
		s = avx512
	}
	zero := s.vector()
	s.zero(zero)
	count("blocks", blocks, func() {
		scatterBlock(s, x, zero, func(point, disp int, v reg.VecVirtual) {
			VMOVUPS(v, Mem{Base: rows, Disp: 64*point + disp})
		})
		ADDQ(U32(1024), x)
		ADDQ(U32(rowBlock), rows)
	})
	VZEROUPPER()
	RET()
}

// filterDots emits products of points of a panel with centroids, or with their coordinates as integers of 16 bits.
func filterDots(s isa, short bool) {
	name, kind, what, bytes := "FilterDots", "float32", "coordinates", 4
	if short {
		name, kind, what, bytes = "FilterShortDots", "int16", "integers", 2
	}
	function(name+beyondVNNI(s),
		"func(x *float32, d int, rows *"+kind+", pairs *uint32, count int, dots *float32)",
		"writes the inner products of count > 0 pairs point<<16 | row of points at x, by row as FilterRows has them, and",
		"rows of d > 0 "+what+", each as sums of sums in some order.")
	x, rows := Load(Param("x"), GP64()), Load(Param("rows"), GP64())
	pairs, dots := Load(Param("pairs"), GP64()), Load(Param("dots"), GP64())
	count0 := Load(Param("count"), GP64()).(reg.GPVirtual)
	const sums = 4
	const block = rowBlock
	count("pairs", count0, func() {
		row, size, at, left := GP64(), GP64(), GP64(), GP64()
		Load(Param("d"), size)
		MOVWQZX(Mem{Base: pairs}, row)
		IMULQ(size, row)
		LEAQ(Mem{Base: rows, Index: row, Scale: uint8(bytes)}, row)
		MOVWQZX(Mem{Base: pairs, Disp: 2}, at)
		SHLQ(Imm(6), at)
		ADDQ(x, at)
		next := GP64() // the next pair's row, the last one's its own
		CMPQ(count0, Imm(2))
		SBBQ(next, next)
		nextx := GP64()
		MOVWQZX(Mem{Base: pairs, Index: next, Scale: 4, Disp: 6}, nextx)
		SHLQ(Imm(6), nextx)
		ADDQ(x, nextx)
		MOVWQZX(Mem{Base: pairs, Index: next, Scale: 4, Disp: 4}, next)
		IMULQ(size, next)
		LEAQ(Mem{Base: rows, Index: next, Scale: uint8(bytes)}, next)
		MOVQ(size, left)
		acc := s.vectors(sums)
		for _, v := range acc {
			s.zero(v)
		}
		blocks := func(tag string, n int) {
			Label(tag)
			CMPQ(left, Imm(uint64(16*n)))
			JLT(LabelRef(tag + "end"))
			for i := range n * s.parts {
				place := Mem{Base: at, Disp: i/s.parts*block + i%s.parts*s.bytes}
				multiplyRow(s, short, Mem{Base: row, Disp: i * s.bytes / 4 * bytes}, place, acc[i%sums])
				if i%s.parts == 0 {
					PREFETCHT0(Mem{Base: next, Disp: 16 * bytes * (i / s.parts)})
					PREFETCHT0(Mem{Base: nextx, Disp: i / s.parts * block})
				}
			}
			ADDQ(U32(uint32(16*bytes*n)), next)
			ADDQ(U32(uint32(n*block)), nextx)
			ADDQ(U32(uint32(n*block)), at)
			ADDQ(U32(uint32(16*bytes*n)), row)
			SUBQ(Imm(uint64(16*n)), left)
			JMP(LabelRef(tag))
			Label(tag + "end")
		}
		blocks("wide", 4)
		blocks("narrow", 1)
		VADDPS(acc[1], acc[0], acc[0])
		VADDPS(acc[3], acc[2], acc[2])
		VADDPS(acc[2], acc[0], acc[0])
		low := sumOfLanes(s, acc[0])
		TESTQ(left, left)
		JZ(LabelRef("done"))
		Label("single")
		multiplyOne(short, Mem{Base: row}, Mem{Base: at}, low)
		ADDQ(Imm(4), at)
		ADDQ(Imm(uint64(bytes)), row)
		DECQ(left)
		JNZ(LabelRef("single"))
		Label("done")
		VMOVSS(low, Mem{Base: dots})
		ADDQ(Imm(4), pairs)
		ADDQ(Imm(4), dots)
	})
	VZEROUPPER()
	RET()
}

// multiplyRow adds the products of coordinates of a point and of a row, which is short or not, to sum.
func multiplyRow(s isa, short bool, row, at Mem, sum reg.VecVirtual) {
	t := s.vector()
	if short {
		VPMOVSXWD(row, t)
		VCVTDQ2PS(t, t)
		VFMADD231PS(at, t, sum)
		return
	}
	VMOVUPS(at, t)
	VFMADD231PS(row, t, sum)
}

// multiplyOne is multiplyRow for one coordinate.
func multiplyOne(short bool, row, at Mem, sum reg.Register) {
	t := XMM()
	if short {
		number := GP32()
		MOVWLSX(row, number)
		VCVTSI2SSL(number, sum, t)
		VFMADD231SS(at, t, sum)
		return
	}
	VMOVSS(at, t)
	VFMADD231SS(row, t, sum)
}

// sumOfLanes leaves the sum of the float32 of a vector in the first.
func sumOfLanes(s isa, v reg.VecVirtual) reg.Register {
	sum, high := v, XMM()
	if s.bytes == 64 {
		sum = YMM()
		VEXTRACTF64X4(Imm(1), v, sum)
		VADDPS(v.AsY(), sum, sum)
	}
	low := sum.AsX()
	VEXTRACTF128(Imm(1), sum, high)
	VADDPS(high, low, low)
	VMOVHLPS(low, low, high)
	VADDPS(high, low, low)
	VMOVSHDUP(low, high)
	VADDSS(high, low, low)
	return low
}
