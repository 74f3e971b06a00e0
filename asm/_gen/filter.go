package main

import (
	"fmt"

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
	limit := constants("filterLimit"+s.name, 0x4effffff) // the largest float32 below 2^31
	numbers := constants("filterOnes"+s.name, 1, 1, 1, 1, 1, 1, 1, 1)
	words := func(c, x, sum, spare reg.VecVirtual) { multiplyAdd(s, c, x, sum, spare) }
	if s == vnni {
		bytes := func(c, x, sum, _ reg.VecVirtual) { VPDPBUSD(c, x, sum) }
		filterScore(s, "FilterBytes", "bytes, four to a word, those at x unsigned", 3, limit, bytes)
		filterScore(s, "FilterBytes", "bytes, four to a word, those at x unsigned", 1, limit, bytes)
		filterScore(s, "FilterScore", "integers of 16 bits, two to a word", 3, limit, words)
	}
	filterScore(s, "FilterScore", "integers of 16 bits, two to a word", 1, limit, words)
	filterCandidates(s, numbers)
	if s == avx2 {
		filterExact()
	}
}

// multiplyAdd adds the products of the pairs of x and c to sum.
func multiplyAdd(s isa, c, x, sum, spare reg.VecVirtual) {
	if s == vnni {
		VPDPWSSD(c, x, sum)
		return
	}
	VPMADDWD(c, x, spare)
	VPADDD(spare, sum, sum)
}

// filterScore emits the integer scores of np panels; accumulate adds the products
// of a word of a centroid with those of a vector of points.
func filterScore(s isa, name, what string, np int, limit Mem, accumulate func(c, x, sum, spare reg.VecVirtual)) {
	function(fmt.Sprintf("%s%d%s", name, np, s.name),
		"func(x *byte, words int, c *byte, half *float32, shift *int32, tiles int, scale, offset float32, scores, least, "+
			"best *int32)",
		fmt.Sprintf("writes the integer scores of %d panels [words][16] at x and tiles > 0 tiles", np),
		"[words][8] at c, words > 0, of "+what+":",
		"min(half*scale+offset, 2^31-128) rounded, plus shift and the products. scores is [tiles][8][panels][16], least "+
			"[tiles][panels][16] has the least score",
		"of each tile, and best [panels][16] falls to the least of all.")
	x := Load(Param("x"), GP64())
	stride := Load(Param("words"), GP64())
	c := Load(Param("c"), GP64()).(reg.GPVirtual)
	half := Load(Param("half"), GP64())
	shift := Load(Param("shift"), GP64())
	tiles := Load(Param("tiles"), GP64()).(reg.GPVirtual)
	scores := Load(Param("scores"), GP64())
	least := Load(Param("least"), GP64())
	best := Load(Param("best"), GP64())
	SHLQ(Imm(6), stride) // bytes of a panel
	scale, offset := NewParamAddr("scale", 48), NewParamAddr("offset", 52)
	nv := np * s.parts
	width := filterTile // centroids at a time
	if s == avx2 {
		width = filterTile / 2
	}
	count("tiles", tiles, func() {
		for part := 0; part < filterTile; part += width {
			sums := make([][]reg.VecVirtual, width)
			for q := range sums {
				sums[q] = s.vectors(nv)
			}
			value, spare := s.vector(), s.vector()
			VBROADCASTSS(offset, spare)
			for q := range sums {
				first := sums[q][0]
				VBROADCASTSS(Mem{Base: half, Disp: 4 * (part + q)}, first)
				VBROADCASTSS(scale, value)
				VFMADD213PS(spare, value, first)
				VBROADCASTSS(limit, value)
				VMINPS(value, first, first)
				VCVTPS2DQ(first, first)
				VPBROADCASTD(Mem{Base: shift, Disp: 4 * (part + q)}, value)
				VPADDD(value, first, first)
				for _, v := range sums[q][1:] {
					VMOVAPS(first, v)
				}
			}
			xp, cp, left := GP64(), GP64(), GP64()
			MOVQ(x, xp)
			LEAQ(Mem{Base: c, Disp: 4 * part}, cp)
			MOVQ(stride, left)
			SHRQ(Imm(6), left)
			xs := s.vectors(nv)
			count(fmt.Sprintf("words%d", part), left, func() {
				for v := range nv {
					m := Mem{Base: xp, Disp: v % s.parts * s.bytes}
					if p := v / s.parts; p > 0 {
						m.Index, m.Scale = stride, uint8(p)
					}
					VMOVDQUx(s, m, xs[v])
				}
				for q := range width {
					VPBROADCASTD(Mem{Base: cp, Disp: 4 * q}, value)
					for v := range nv {
						accumulate(value, xs[v], sums[q][v], spare)
					}
				}
				ADDQ(Imm(64), xp)
				ADDQ(Imm(4*filterTile), cp)
			})
			for q := range width {
				for v := range nv {
					VMOVDQUx(s, sums[q][v], Mem{Base: scores, Disp: ((part+q)*nv + v) * s.bytes})
				}
			}
			for v := range nv {
				for step := 1; step < width; step *= 2 {
					for q := 0; q < width; q += 2 * step {
						VPMINSD(sums[q+step][v], sums[q][v], sums[q][v])
					}
				}
				low := sums[0][v]
				place := Mem{Base: least, Disp: v * s.bytes}
				if part > 0 {
					VPMINSD(place, low, low)
				}
				VMOVDQUx(s, low, place)
				place = Mem{Base: best, Disp: v * s.bytes}
				VPMINSD(place, low, low)
				VMOVDQUx(s, low, place)
			}
		}
		pass := GP64() // bytes of a tile
		MOVQ(stride, pass)
		SHRQ(Imm(1), pass)
		ADDQ(pass, c)
		ADDQ(Imm(4*filterTile), half)
		ADDQ(Imm(4*filterTile), shift)
		ADDQ(U32(filterTile*nv*s.bytes), scores)
		ADDQ(U32(nv*s.bytes), least)
	})
	VZEROUPPER()
	RET()
}

// filterCandidates emits the search for scores near the least.
func filterCandidates(s isa, numbers Mem) {
	function("FilterCandidates"+s.name,
		"func(scores, least *int32, tiles, panels, panel, first int, best, before *int32, band, most int32, labels, "+
			"counts *int32, list *uint64, kept *int32) int",
		"goes through the scores of one panel of several, as FilterScore leaves them, and",
		"lists those of at most the limit min(best, most)+band. Where the best before exceeds",
		"the limit, the count begins at 0. For each score that is listed, the count of its",
		"point goes up by one, and the label becomes its centroid; first is the number of the",
		"first centroid. An entry of the list is mask | panel<<16 | centroid<<32. The result is",
		"the number of entries, at most 8 for each tile; kept [entries][16] has their scores.")
	scores := Load(Param("scores"), GP64())
	least := Load(Param("least"), GP64())
	tiles := Load(Param("tiles"), GP64()).(reg.GPVirtual)
	stride := Load(Param("panels"), GP64())
	SHLQ(Imm(6), stride)
	word := Load(Param("panel"), GP64())
	SHLQ(Imm(6), word)
	ADDQ(word, scores)
	ADDQ(word, least)
	SHRQ(Imm(6), word)
	SHLQ(Imm(16), word)
	number := Load(Param("first"), GP64())
	best := Load(Param("best"), GP64())
	before := Load(Param("before"), GP64())
	labels := Load(Param("labels"), GP64())
	counts := Load(Param("counts"), GP64())
	list := Load(Param("list"), GP64())
	kept := Load(Param("kept"), GP64())
	found := GP64()
	XORQ(found, found)
	band, most := NewParamAddr("band", 64), NewParamAddr("most", 68)
	limit, label, tally := s.vectors(s.parts), s.vectors(s.parts), s.vectors(s.parts)
	one, at := s.vector(), s.vector()
	mask := GP32()
	VPBROADCASTD(numbers, one)
	for v := range s.parts {
		m := Mem{Disp: v * s.bytes}
		of := func(base reg.Register) Mem { m.Base = base; return m }
		VBROADCASTSS(most, at)
		VPMINSD(of(best), at, limit[v])
		VBROADCASTSS(band, at)
		VPADDD(at, limit[v], limit[v])
		VMOVDQUx(s, of(labels), label[v])
		VMOVDQUx(s, of(before), at)
		if s == avx2 {
			VPCMPGTD(limit[v], at, at)
			VPANDN(of(counts), at, tally[v])
		} else {
			k := K()
			VPCMPD(Imm(2), limit[v], at, k)
			VMOVDQU32_Z(of(counts), k, tally[v])
		}
	}
	VPBROADCASTD(NewParamAddr("first", 40), at)
	// within leaves the bits of the scores at place that are within the limit in
	// mask, and the same by vector.
	within := func(place Mem) ([]reg.VecVirtual, reg.OpmaskVirtual) {
		if s != avx2 {
			k, v := K(), s.vector()
			VMOVDQU32(place, v)
			VPCMPD(Imm(2), limit[0], v, k)
			KMOVW(k, mask)
			return nil, k
		}
		over := s.vectors(s.parts)
		high := GP32()
		for v := range over {
			VMOVDQU(place.Offset(v*s.bytes), over[v])
			VPCMPGTD(limit[v], over[v], over[v])
		}
		VMOVMSKPS(over[0], mask)
		VMOVMSKPS(over[1], high)
		SHLL(Imm(8), high)
		ORL(high, mask)
		XORL(U32(0xffff), mask)
		return over, nil
	}
	count("tiles", tiles, func() {
		within(Mem{Base: least})
		TESTL(mask, mask)
		JZ(LabelRef("none"))
		place := GP64()
		MOVQ(scores, place)
		for q := range filterTile {
			over, k := within(Mem{Base: place})
			TESTL(mask, mask)
			skip := fmt.Sprintf("skip%d", q)
			JZ(LabelRef(skip))
			if s == avx2 {
				for v := range over {
					VBLENDVPS(over[v], label[v], at, label[v])
					VPADDD(one, tally[v], tally[v])
					VPADDD(over[v], tally[v], tally[v])
				}
			} else {
				VMOVDQA32(at, k, label[0])
				VPADDD(one, tally[0], k, tally[0])
			}
			entry := GP64()
			LEAQ(Mem{Base: number, Disp: q}, entry)
			SHLQ(Imm(32), entry)
			ORQ(word, entry)
			ORQ(mask.As64(), entry)
			MOVQ(entry, Mem{Base: list, Index: found, Scale: 8})
			INCQ(found)
			score := s.vector()
			for v := range s.parts {
				VMOVDQUx(s, Mem{Base: place, Disp: v * s.bytes}, score)
				VMOVDQUx(s, score, Mem{Base: kept, Disp: v * s.bytes})
			}
			ADDQ(Imm(64), kept)
			Label(skip)
			VPADDD(one, at, at)
			ADDQ(stride, place)
		}
		JMP(LabelRef("next"))
		Label("none")
		for range filterTile {
			VPADDD(one, at, at)
		}
		Label("next")
		ADDQ(Imm(filterTile), number)
		ADDQ(stride, least)
		for range filterTile {
			ADDQ(stride, scores)
		}
	})
	for v := range s.parts {
		VMOVDQUx(s, label[v], Mem{Base: labels, Disp: v * s.bytes})
		VMOVDQUx(s, tally[v], Mem{Base: counts, Disp: v * s.bytes})
	}
	Store(found, ReturnIndex(0))
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
