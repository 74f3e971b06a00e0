package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// fusedDims is the number of dimensions up to which the fused kernel exists.
const fusedDims = 8

// accumulateFile emits the fused kernels and the accumulation by label.
func accumulateFile(s isa) {
	infinity := constants("fusedInfinity"+s.name, 0x7f800000)
	ones := constants("fusedOnes"+s.name, 1, 1, 1, 1, 1, 1, 1, 1)
	for d := 1; d <= fusedDims; d++ {
		assignSub(s, d, fused, infinity, ones)
	}
	foldLanes(s)
	scatterFile(s)
}

// scatterFile emits the accumulation by label.
func scatterFile(s isa) {
	scatterNarrow(s)
	if s == avx2 {
		scatterWide(s)
	} else {
		sumSlots(s)
	}
	scatterByRow(s)
	foldRow(s)
}

// slotPasses is the number of points at most that sumSlots adds to a slot: so many masks there are.
const slotPasses = 7

// sumSlots emits the accumulation by label for few labels: a dimension of two panels goes to the slots of its sums by
// one instruction for each pass, so that no point is put together.
func sumSlots(s isa) {
	function("SumSlots"+s.name, "func(x *float32, d int, order *int8, passes int, "+
		"bias float32, slots *int32)",
		"adds the bits of x+bias, modulo 2^32, of points of the two panels of d > 0 dimensions at x to the slots [d][16].",
		"In each of the passes, 1 to 7 of them, a row of order [8][16] has the number of the point, below 32, that goes",
		"to a slot, or a negative one where none does.")
	x, second, order := Load(Param("x"), GP64()), Load(Param("d"), GP64()), Load(Param("order"), GP64())
	slots, passes := Load(Param("slots"), GP64()), Load(Param("passes"), GP64())
	SHLQ(Imm(6), second)
	bias, zero := s.vector(), s.vector()
	VBROADCASTSS(NewParamAddr("bias", 32), bias)
	s.zero(zero)
	places, taken := s.vectors(slotPasses), make([]reg.OpmaskVirtual, slotPasses)
	for p := range places {
		taken[p] = K()
		VPMOVSXBD(Mem{Base: order, Disp: 16 * p}, places[p])
		VPCMPD(Imm(5), zero, places[p], taken[p]) // not less
	}
	for n := slotPasses; n > 0; n-- {
		tag := fmt.Sprintf("passes%d", n)
		if n > 1 {
			CMPQ(passes, Imm(uint64(n)))
			JLT(LabelRef(fmt.Sprintf("passes%d_less", n)))
		}
		left := GP64()
		Load(Param("d"), left)
		count(tag, left, func() {
			first, other, sums := s.vector(), s.vector(), s.vector()
			VADDPS(Mem{Base: x}, bias, first)
			VADDPS(Mem{Base: x, Index: second, Scale: 1}, bias, other)
			VMOVDQU32(Mem{Base: slots}, sums)
			for p := range n {
				t := s.vector()
				VMOVDQA32(places[p], t)
				VPERMI2D_Z(other, first, taken[p], t)
				VPADDD(t, sums, sums)
			}
			VMOVDQU32(sums, Mem{Base: slots})
			ADDQ(Imm(64), x)
			ADDQ(Imm(64), slots)
		})
		VZEROUPPER()
		RET()
		if n > 1 {
			Label(fmt.Sprintf("passes%d_less", n))
		}
	}
}

// scatterFar is how many bytes ahead scatterByRow fetches rows of the table, which the second-level cache may not hold.
const scatterFar = 512

// scatterByRow emits the accumulation by label of points that are rows already.
func scatterByRow(s isa) {
	function("ScatterByRow"+s.name, "func(rows *float32, blocks int, labels *uint16, table *int32, width int, "+
		"bias float32, counts *int32)",
		"adds the bits of x+bias, modulo 2^32, of each of 16 points, by row as FilterRows has blocks > 0 blocks of 16",
		"dimensions, to the row of table [][width]int32 that its label names, and 1 to counts[label].")
	x, labels := Load(Param("rows"), GP64()), Load(Param("labels"), GP64())
	bias := s.vector()
	VBROADCASTSS(NewParamAddr("bias", 40), bias)
	for half := range 2 {
		counts, table, width, label := GP64(), GP64(), GP64(), GP64()
		Load(Param("counts"), counts)
		Load(Param("table"), table)
		Load(Param("width"), width)
		to := make([]reg.GPVirtual, 8)
		for i := range to {
			MOVWLZX(Mem{Base: labels, Disp: 2 * (8*half + i)}, label.As32())
			INCL(Mem{Base: counts, Index: label, Scale: 4})
			IMULQ(width, label)
			to[i] = GP64()
			LEAQ(Mem{Base: table, Index: label, Scale: 4}, to[i])
		}
		from, column, left := GP64(), GP64(), GP64()
		LEAQ(Mem{Base: x, Disp: 512 * half}, from)
		XORQ(column, column)
		Load(Param("blocks"), left)
		count([]string{"lower", "upper"}[half], left, func() {
			for i := range to {
				PREFETCHT0(Mem{Base: to[i], Index: column, Scale: 1, Disp: scatterFar})
				for part := range s.parts {
					sums, v := Mem{Base: to[i], Index: column, Scale: 1, Disp: s.bytes * part}, s.vector()
					VADDPS(Mem{Base: from, Disp: 64*i + s.bytes*part}, bias, v)
					VPADDD(sums, v, v)
					VMOVUPS(v, sums)
				}
			}
			ADDQ(U32(rowBlock), from)
			ADDQ(Imm(64), column)
		})
	}
	VZEROUPPER()
	RET()
}

// foldRow emits the move of a row of the table to sums.
func foldRow(s isa) {
	function("FoldRow"+s.name, "func(row *int32, blocks int, bias int32, sums *int64)",
		"adds row-bias, modulo 2^32 and then taken as signed, to blocks > 0 blocks of 16 sums.")
	row := Load(Param("row"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	sums := Load(Param("sums"), GP64())
	bias := s.vector()
	VBROADCASTSS(NewParamAddr("bias", 16), bias)
	count("loop", blocks, func() {
		for h := range s.parts {
			v, half := s.vector(), s.vector()
			VMOVDQUx(s, Mem{Base: row, Disp: h * s.bytes}, v)
			VPSUBD(bias, v, v)
			if s == avx512 {
				VEXTRACTI64X4(Imm(1), v, half.AsY())
				VPMOVSXDQ(half.AsY(), half)
				VPMOVSXDQ(v.AsY(), v)
			} else {
				VEXTRACTI128(Imm(1), v, half.AsX())
				VPMOVSXDQ(half.AsX(), half)
				VPMOVSXDQ(v.AsX(), v)
			}
			for i, sum := range []reg.VecVirtual{v, half} {
				place := Mem{Base: sums, Disp: (2*h + i) * s.bytes}
				VPADDQ(place, sum, sum)
				VMOVDQUx(s, sum, place)
			}
		}
		ADDQ(Imm(64), row)
		ADDQ(U32(128), sums)
	})
	VZEROUPPER()
	RET()
}

// addMasked adds the vectors of a group to the sums of their clusters: for each
// cluster, every dimension of every vector under the mask of its points.
func addMasked(tag string, a *argmin, p *points, k reg.Register, sums, counts reg.Register) {
	s := a.s
	s.zero(a.number)
	cluster, sp, n := GP64(), GP64(), GP64()
	MOVQ(k, cluster)
	MOVQ(sums, sp)
	MOVQ(counts, n)
	masked := masksAVX2
	if s == avx512 {
		masked = masksAVX512
	}
	countPoints, add := masked(a, p)
	total := GP64()
	halves := s.vectors(s.parts)
	count(tag+"_clusters", cluster, func() {
		countPoints(total)
		ADDQ(total, Mem{Base: n})
		for j := range p.d {
			for h, sum := range halves {
				place := Mem{Base: sp, Disp: 64*j + h*s.bytes}
				VMOVUPS(place, sum)
				for v := h; v < len(a.index); v += s.parts {
					add(v, j, sum)
				}
				VMOVUPS(sum, place)
			}
		}
		a.step()
		ADDQ(U32(uint32(64*p.d)), sp)
		ADDQ(Imm(8), n)
	})
}

// masksAVX512 has two functions: the first makes the masks of the points of the current centroid, and counts them; the
// second adds dimension j of vector v under its mask.
func masksAVX512(a *argmin, p *points) (count func(total reg.GPVirtual), add func(v, j int, sum reg.VecVirtual)) {
	masks := make([]reg.OpmaskVirtual, len(a.index))
	for v := range masks {
		masks[v] = K()
	}
	count = func(total reg.GPVirtual) {
		for v, index := range a.index {
			VPCMPEQD(index, a.number, masks[v])
		}
		bits := GP64()
		for v := range masks {
			KMOVW(masks[v], bits.As32())
			if v == 0 {
				POPCNTL(bits.As32(), total.As32())
				continue
			}
			POPCNTL(bits.As32(), bits.As32())
			ADDQ(bits, total)
		}
	}
	return count, func(v, j int, sum reg.VecVirtual) {
		if j < len(p.kept[v]) {
			VADDPS(p.kept[v][j], sum, masks[v], sum)
		} else {
			VADDPS(p.at(v, j), sum, masks[v], sum)
		}
	}
}

// masksAVX2 is masksAVX512 for masks in vectors.
func masksAVX2(a *argmin, p *points) (count func(total reg.GPVirtual), add func(v, j int, sum reg.VecVirtual)) {
	masks, t := a.s.vectors(len(a.index)), a.s.vector()
	count = func(total reg.GPVirtual) {
		for v, index := range a.index {
			VPCMPEQD(index, a.number, masks[v])
		}
		// The masks of four vectors become one bit to a point, of two vectors two.
		VPACKSSDW(masks[1], masks[0], t)
		if len(masks) > 2 {
			u := a.s.vector()
			VPACKSSDW(masks[3], masks[2], u)
			VPACKSSWB(u, t, t)
		}
		VPMOVMSKB(t, total.As32())
		POPCNTL(total.As32(), total.As32())
		if len(masks) == 2 {
			SHRL(Imm(1), total.As32())
		}
	}
	return count, func(v, j int, sum reg.VecVirtual) {
		VANDPS(p.at(v, j), masks[v], t)
		VADDPS(t, sum, sum)
	}
}

// foldLanes emits the sum over lanes of exact float32 sums.
func foldLanes(s isa) {
	function("FoldLanes"+s.name, "func(lanes *float32, n int, scale float32, sums *int64)",
		"adds to each of n > 0 sums the sum of its 16 lanes times scale, and clears the",
		"lanes. Each lane times scale is an integer of at most 2^24.")
	lanes := Load(Param("lanes"), GP64())
	n := GP64()
	Load(Param("n"), n)
	sums := Load(Param("sums"), GP64())
	scale := s.vector()
	VBROADCASTSS(NewParamAddr("scale", 16), scale)
	v, zero, half := s.vector(), s.vector(), s.vector()
	s.zero(zero)
	sum := GP64()
	count("loop", n, func() {
		VMULPS(Mem{Base: lanes}, scale, v)
		VMOVUPS(zero, Mem{Base: lanes})
		VCVTTPS2DQ(v, v)
		if s == avx512 {
			VEXTRACTI64X4(Imm(1), v, half.AsY())
			VPADDD(half.AsY(), v.AsY(), v.AsY())
			VEXTRACTI32X4(Imm(1), v.AsY(), half.AsX())
		} else {
			VMULPS(Mem{Base: lanes, Disp: 32}, scale, half)
			VMOVUPS(zero, Mem{Base: lanes, Disp: 32})
			VCVTTPS2DQ(half, half)
			VPADDD(half, v, v)
			VEXTRACTI128(Imm(1), v, half.AsX())
		}
		VPADDD(half.AsX(), v.AsX(), v.AsX())
		VPSHUFD(Imm(0b1110), v.AsX(), half.AsX())
		VPADDD(half.AsX(), v.AsX(), v.AsX())
		VPSHUFD(Imm(0b01), v.AsX(), half.AsX())
		VPADDD(half.AsX(), v.AsX(), v.AsX())
		VMOVD(v.AsX(), sum.As32())
		MOVLQSX(sum.As32(), sum)
		ADDQ(sum, Mem{Base: sums})
		ADDQ(Imm(64), lanes)
		ADDQ(Imm(8), sums)
	})
	VZEROUPPER()
	RET()
}

// scatterNarrow emits the accumulation of d <= 3 dimensions by label into rows
// of four int32: the coordinates, the last one again where there are fewer than three, and the count.
func scatterNarrow(s isa) {
	function("ScatterNarrow"+s.name,
		"func(x *float32, panels, d int, labels *uint16, table *int32, rows int, bias float32)",
		"adds each point of panels > 0 panels of d <= 3 dimensions at x to the row of table",
		"that its label names: the bits of x+bias in the first columns, 1 in the fourth,",
		"modulo 2^32. The table has four replicas of [rows][4]int32, one for each lane",
		"modulo 4, so that points of one cluster seldom wait for each other.")
	x := Load(Param("x"), GP64())
	panels := GP64()
	Load(Param("panels"), panels)
	labels := Load(Param("labels"), GP64())
	table := Load(Param("table"), GP64())
	replica := GP64()
	Load(Param("rows"), replica)
	SHLQ(Imm(4), replica)
	bias := s.vector()
	VBROADCASTSS(NewParamAddr("bias", 48), bias)
	tables := []reg.GPVirtual{GP64(), GP64(), GP64(), GP64()}
	MOVQ(table, tables[0])
	for r := 1; r < 4; r++ {
		LEAQ(Mem{Base: tables[r-1], Index: replica, Scale: 1}, tables[r])
	}
	one := s.vector()
	bits := GP32()
	MOVL(U32(1), bits)
	VMOVD(bits, one.AsX())
	VPBROADCASTD(one.AsX(), one)
	step, second, third := Load(Param("d"), GP64()), GP64(), GP64() // bytes to the columns 1 and 2, or the last
	SHLQ(Imm(6), step)
	MOVQ(step, third)
	SUBQ(Imm(64), third)
	MOVQ(U32(64), second)
	CMPQ(second, third)
	CMOVQGT(third, second)
	stack := AllocLocal(256)

	count("panels", panels, func() {
		places := []Mem{{Base: x}, {Base: x, Index: second, Scale: 1}, {Base: x, Index: third, Scale: 1}}
		for _, at := range places {
			PREFETCHT0(at.Offset(4096))
		}
		for part := range s.parts {
			rows := append(s.vectors(3), one)
			for j, at := range places {
				VADDPS(at.Offset(part*s.bytes), bias, rows[j])
			}
			unpack(s, rows, 4, func(c int, v reg.VecVirtual) {
				VMOVUPS(v, stack.Offset(64*c+part*s.bytes))
			})
		}
		row := XMM()
		for i := range 16 {
			l := GP64()
			MOVWLZX(Mem{Base: labels, Disp: 2 * i}, l.As32())
			SHLQ(Imm(4), l)
			place := Mem{Base: tables[i%4], Index: l, Scale: 1}
			VMOVUPS(stack.Offset(64*(i%4)+16*(i/4)), row)
			VPADDD(place, row, row)
			VMOVUPS(row, place)
		}
		ADDQ(step, x)
		ADDQ(Imm(32), labels)
	})
	VZEROUPPER()
	RET()
}

// scatterNext is how many lines of the panel that comes as many bytes later as ahead says scatterWide fetches into the
// second-level cache for each block of 16: the first fourth of each panel of the chunk that is assigned next, while the
// memory has nothing else to do.
const scatterNext = 4

// scatterWide emits the accumulation by label into rows of whole vectors. AVX-512 takes this routine, too: with vectors
// of all points of a panel the loads that insert halves and the shuffles between them take longer, by a tenth to a
// fourth on Zen 4.
func scatterWide(s isa) {
	framed("Scatter"+s.name, "func(x *float32, panels, d int, labels *uint16, table *int32, width int, bias float32, "+
		"counts *int32, ahead int)",
		"adds the bits of x+bias, modulo 2^32, of each point of panels > 0 panels of d > 0",
		"dimensions at x to the row of table [][width]int32 that its label names, and 1 to",
		"counts[label]; width is at least w = (d+15)/16*16, and the table is below 2^31 bytes. When d is at least 16, the "+
			"16 columns before w of",
		"a row stand for the last 16 dimensions, of which 8 that others have too may be left out; columns past d of a "+
			"narrower row receive",
		"bits of bias. A fourth of each panel that lies ahead bytes later is fetched.")
	scatterRows(s)
}

// scatterStrip is the number of dimensions at most that scatterRows takes of the points of one half of a panel before
// those of the other: the first-level cache still has their lines.
const scatterStrip = 128

// scatterRows emits scatterWide for vectors of half the points of a panel. Eight rows of the table are in registers:
// the loads of points and sums and the stores of sums take almost as long as the shuffles, so that places read from
// memory, and fetches for each line, take more than they give. Beyond the caches the processor fetches by itself.
func scatterRows(s isa) {
	bias := s.vector()
	VBROADCASTSS(NewParamAddr("bias", 48), bias)
	stack := AllocLocal(1024 + 16*4 + 7*8)
	offsets := func(i int) Mem { return stack.Offset(1024 + 4*i) }
	local := func(i int) Mem { return stack.Offset(1024 + 16*4 + 8*i) }
	x, labels, panels, left, from, begin, end := local(0), local(1), local(2), local(3), local(4), local(5), local(6)
	for i, name := range []string{"x", "panels", "labels"} {
		MOVQ(Load(Param(name), GP64()), []Mem{x, panels, labels}[i])
	}
	row := s.vector() // bytes of a table row
	VPBROADCASTD(NewParamAddr("width", 40), row)
	VPSLLD(Imm(2), row, row)
	clearStack(s, stack)

	Label("panels")
	counts, label := GP64(), GP64()
	Load(Param("counts"), counts)
	MOVQ(labels, label)
	scatterLabels(s, label, counts, row, offsets)
	MOVQ(label, labels)
	column, place, next, size := GP64(), GP64(), GP64(), GP64()
	XORQ(column, column)
	MOVQ(x, place)
	Load(Param("ahead"), next)
	ADDQ(place, next)
	Load(Param("d"), size)
	CMPQ(size, Imm(16))
	JGE(LabelRef("long"))
	copyShort(s, place, size, stack)
	LEAQ(stack, place)
	MOVQ(U32(16), size)
	Label("long")
	MOVQ(size, left)

	Label("strip") // of size dimensions, but for those beyond a multiple of 16, from place on
	ANDQ(I32(-16), size)
	Label("whole")
	MOVQ(place, from)
	MOVQ(column, begin)
	most := GP64()
	MOVQ(U32(scatterStrip), most)
	CMPQ(size, most)
	CMOVQGT(most, size)
	SUBQ(size, left)
	SHLQ(Imm(2), size)
	ADDQ(column, size)
	MOVQ(size, end)
	for half := range 2 {
		scatterHalf(half, offsets, bias, place, column, next, end)
		if half == 0 {
			MOVQ(from, place)
			ADDQ(Imm(32), place)
			MOVQ(begin, column)
		}
	}
	SUBQ(Imm(32), place)
	MOVQ(left, size)
	CMPQ(size, Imm(16))
	JGE(LabelRef("strip"))
	TESTQ(size, size)
	JZ(LabelRef("next"))
	scatterLast(x, left, place, column, size)
	JMP(LabelRef("whole"))

	Label("next")
	stride := GP64()
	Load(Param("d"), stride)
	SHLQ(Imm(6), stride)
	ADDQ(stride, x)
	DECQ(panels)
	JNZ(LabelRef("panels"))
	VZEROUPPER()
	RET()
}

// scatterLast makes a strip of the last 16 dimensions of a panel at x, or of 8 where no more than these are left.
func scatterLast(x, left Mem, place, column, size reg.GPVirtual) {
	CMPQ(size, Imm(8))
	MOVQ(U32(16), size)
	JGT(LabelRef("sixteen"))
	MOVQ(U32(8), size)
	ADDQ(Imm(32), column)
	Label("sixteen")
	Load(Param("d"), place)
	SUBQ(size, place)
	SHLQ(Imm(6), place)
	ADDQ(x, place)
	MOVQ(size, left)
}

// scatterHalf adds eight points of a strip, the lower or the upper ones of a panel; place and column move on.
func scatterHalf(half int, offsets func(i int) Mem, bias reg.VecVirtual, place, column, next reg.GPVirtual, end Mem) {
	table := GP64()
	Load(Param("table"), table)
	rows := make([]reg.GPVirtual, 8)
	for i := range rows {
		rows[i] = GP64()
		MOVL(offsets(8*half+i), rows[i].As32())
		ADDQ(table, rows[i])
	}
	tag := []string{"lower", "upper"}[half]
	Label(tag)
	if half == 0 {
		for line := range scatterNext / 2 {
			PREFETCHT1(Mem{Base: next, Index: column, Scale: 4, Disp: 64 * line})
		}
	}
	transposeRows(func(row int) Mem { return Mem{Base: place, Disp: 64 * row} }, bias,
		func(point int, v reg.VecVirtual) {
			sums := Mem{Base: rows[point], Index: column, Scale: 1}
			VPADDD(sums, v, v)
			VMOVUPS(v, sums)
		})
	ADDQ(U32(512), place)
	ADDQ(Imm(32), column)
	CMPQ(column, end)
	JNE(LabelRef(tag))
}

// clearStack clears the first 1024 bytes of the stack.
func clearStack(s isa, stack Mem) {
	zero := s.vector()
	s.zero(zero)
	for i := range 1024 / s.bytes {
		VMOVUPS(zero, stack.Offset(s.bytes*i))
	}
}

// scatterLabels counts the labels of a panel, and turns them into offsets of rows of so many bytes.
func scatterLabels(s isa, labels reg.Register, counts reg.GPVirtual, row reg.VecVirtual, offsets func(i int) Mem) {
	for part := range s.parts {
		l := s.vector()
		VPMOVZXWD(Mem{Base: labels, Disp: part * s.bytes / 2}, l)
		VPMULLD(row, l, l)
		VMOVUPS(l, offsets(part*s.bytes/4))
	}
	for i := range 16 {
		l := GP64()
		MOVWLZX(Mem{Base: labels, Disp: 2 * i}, l.As32())
		INCL(Mem{Base: counts, Index: l, Scale: 4})
	}
	ADDQ(Imm(32), labels)
}

// copyShort copies a panel of fewer than 16 dimensions to the stack, under which zeros lie.
func copyShort(s isa, from, left reg.GPVirtual, stack Mem) {
	to := GP64()
	LEAQ(stack, to)
	copied := s.vector()
	count("copy", left, func() {
		for part := range s.parts {
			VMOVUPS(Mem{Base: from, Disp: part * s.bytes}, copied)
			VMOVUPS(copied, Mem{Base: to, Disp: part * s.bytes})
		}
		ADDQ(Imm(64), from)
		ADDQ(Imm(64), to)
	})
}

// scatterBlock hands over 16 dimensions of the points of a panel: disp bytes into the row of each.
func scatterBlock(s isa, from reg.GPVirtual, bias reg.VecVirtual, add func(point, disp int, v reg.VecVirtual)) {
	if s == avx512 {
		transpose16(func(row int) Mem { return Mem{Base: from, Disp: 64 * row} }, bias,
			func(point int, v reg.VecVirtual) { add(point, 0, v) })
		return
	}
	for part := range 2 {
		for h := range 2 {
			transposeRows(func(row int) Mem { return Mem{Base: from, Disp: 64*(8*h+row) + 32*part} }, bias,
				func(point int, v reg.VecVirtual) { add(8*part+point, 32*h, v) })
		}
	}
}
