package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packFile emits the packing of rows. It is bound by memory, so vectors of AVX2,
// which cross fewer lines where they read rows, are as fast as those of AVX-512.
func packFile() {
	packNarrow()
	packWide(false)
	packWide(true)
}

// packNarrow emits the packing of rows of d < 16 columns, four at a time and then the rest.
func packNarrow() {
	function("PackNarrowAVX2", "func(dst, rows *float32, panels, d int, stream bool)",
		"transposes 16*panels > 0 rows of d < 16 columns into panels of [d][16]. It reads (d+3)&^3",
		"columns of every row, the last one too. With stream it writes past the caches; dst is",
		"then aligned to 64 bytes.")
	out := Load(Param("dst"), GP64())
	rows := Load(Param("rows"), GP64())
	panels := GP64()
	Load(Param("panels"), panels)
	d := Load(Param("d"), GP64())
	point, left := rowsOf(d), GP64()
	loop := func(tag string, write func(v, m Op)) {
		columns := func(n int) {
			transposePairs(n, point.row, func(column int, low, high reg.VecVirtual) {
				write(low, Mem{Base: out, Disp: 64 * column})
				write(high, Mem{Base: out, Disp: 64*column + 32})
			})
			ADDQ(U32(uint32(64*n)), out)
		}
		Label(tag)
		point.begin(rows)
		MOVQ(d, left)
		Label(tag + "_four")
		SUBQ(Imm(4), left)
		JL(LabelRef(tag + "_rest"))
		columns(4)
		for _, a := range point.at {
			ADDQ(Imm(16), a)
		}
		JMP(LabelRef(tag + "_four"))
		Label(tag + "_rest") // left is -4 for none, else the columns left less 4
		CMPQ(left, I32(-3))
		JL(LabelRef(tag + "_next"))
		JE(LabelRef(tag + "_one"))
		CMPQ(left, I32(-2))
		JE(LabelRef(tag + "_two"))
		columns(3)
		JMP(LabelRef(tag + "_next"))
		Label(tag + "_two")
		columns(2)
		JMP(LabelRef(tag + "_next"))
		Label(tag + "_one")
		columns(1)
		Label(tag + "_next")
		point.next(rows)
		DECQ(panels)
		JNZ(LabelRef(tag))
	}
	stream := GP64()
	MOVBLZX(NewParamAddr("stream", 32), stream.As32())
	TESTL(stream.As32(), stream.As32())
	JNZ(LabelRef("streamed"))
	loop("cached", func(v, m Op) { VMOVUPS(v, m) })
	JMP(LabelRef("end"))
	loop("streamed", func(v, m Op) { VMOVNTPS(v, m) })
	SFENCE()
	Label("end")
	VZEROUPPER()
	RET()
}

// strided are the places of 16 rows.
type strided struct {
	at              []reg.GPVirtual // rows 0, 4, 8, 12
	stride, tripled reg.GPVirtual   // bytes of a row, and of three
}

// rowsOf are rows of d columns.
func rowsOf(d reg.Register) *strided {
	s := &strided{at: []reg.GPVirtual{GP64(), GP64(), GP64(), GP64()}, stride: GP64(), tripled: GP64()}
	MOVQ(d, s.stride)
	SHLQ(Imm(2), s.stride)
	LEAQ(Mem{Base: s.stride, Index: s.stride, Scale: 2}, s.tripled)
	return s
}

// begin takes the rows that follow a place.
func (s *strided) begin(rows reg.Register) {
	MOVQ(rows, s.at[0])
	for i := 1; i < 4; i++ {
		LEAQ(Mem{Base: s.at[i-1], Index: s.stride, Scale: 4}, s.at[i])
	}
}

func (s *strided) row(i int) Mem { return further(Mem{Base: s.at[i/4]}, i%4, s.stride, s.tripled) }

// next moves places by 16 rows.
func (s *strided) next(places ...reg.Register) {
	SHLQ(Imm(4), s.stride)
	for _, p := range places {
		ADDQ(s.stride, p)
	}
	SHRQ(Imm(4), s.stride)
}

// packWide emits the packing of rows of at least 16 columns in blocks of 16;
// stream writes past the caches.
func packWide(stream bool) {
	const columns = 16
	kind, write := "Pack", func(v, m Op) { VMOVUPS(v, m) }
	more := ""
	if stream {
		kind, write = "PackStream", func(v, m Op) { VMOVNTPS(v, m) }
		more = " It writes past the caches, and dst is aligned to 64 bytes."
	}
	function(kind+"AVX2", "func(dst, rows *float32, panels, d int)",
		"transposes 16*panels > 0 rows of d >= 16 columns into panels of [d][16], 16 columns",
		"at a time; the last block is the last 16 columns."+more)
	dst := Load(Param("dst"), GP64())
	rows := Load(Param("rows"), GP64())
	panels := GP64()
	Load(Param("panels"), panels)
	d := GP64()
	Load(Param("d"), d)
	point := rowsOf(d)
	out, left := GP64(), GP64()
	count("panels", panels, func() {
		point.begin(rows)
		MOVQ(dst, out)
		MOVQ(d, left)
		Label("block")
		transposePairs(columns, point.row, func(column int, low, high reg.VecVirtual) {
			write(low, Mem{Base: out, Disp: 64 * column})
			write(high, Mem{Base: out, Disp: 64*column + 32})
		})
		SUBQ(Imm(16), left)
		JLE(LabelRef("next"))
		shift := GP64()
		MOVQ(U32(16), shift)
		CMPQ(left, shift)
		CMOVQLT(left, shift) // the last block ends at d
		SHLQ(Imm(2), shift)
		for _, a := range point.at {
			ADDQ(shift, a)
		}
		SHLQ(Imm(4), shift)
		ADDQ(shift, out)
		JMP(LabelRef("block"))
		Label("next")
		point.next(rows, dst)
	})
	if stream {
		SFENCE()
	}
	VZEROUPPER()
	RET()
}

// transposeRows turns eight rows of eight float32 into eight columns, after adding
// bias. It reads whole rows: halves of lines a line apart wait for each other in the first-level cache.
func transposeRows(at func(row int) Mem, bias reg.VecVirtual, use func(column int, v reg.VecVirtual)) {
	var halves [2][4]reg.VecVirtual // of rows 0 to 3 and 4 to 7: column c, and c+4 in the upper half
	for h := range halves {
		a := avx2.vectors(4)
		for r := range a {
			VADDPS(at(4*h+r), bias, a[r])
		}
		unpack(avx2, a, 4, func(c int, v reg.VecVirtual) { halves[h][c] = v })
	}
	for c := range 4 {
		low, high := halves[0][c], halves[1][c]
		v := YMM()
		VPERM2F128(Imm(0x31), high, low, v)
		VINSERTF128(Imm(1), high.AsX(), low, low)
		use(c, low)
		use(c+4, v)
	}
}

// transposePairs turns 16 rows into columns of two vectors each, handed over
// together, so that a line is written at once; only the first columns are made.
func transposePairs(columns int, at func(row int) Mem, use func(column int, low, high reg.VecVirtual)) {
	for q := 0; 4*q < columns; q++ {
		low := map[int]reg.VecVirtual{}
		transposeQuad(q, columns, at, func(column int, v reg.VecVirtual) { low[column] = v })
		transposeQuad(q, columns, func(row int) Mem { return at(8 + row) },
			func(column int, v reg.VecVirtual) { use(column, low[column], v) })
	}
}

// transposeQuad makes the columns 4q to 4q+3 of eight rows, as far as there are.
func transposeQuad(q, columns int, at func(row int) Mem, use func(column int, v reg.VecVirtual)) {
	a := make([]reg.VecVirtual, 4)
	for r := range a {
		a[r] = YMM()
		VBROADCASTF128(at(r).Offset(16*q), a[r])
		VINSERTF128(Imm(1), at(r+4).Offset(16*q), a[r], a[r])
	}
	unpack(avx2, a, columns-4*q, func(c int, v reg.VecVirtual) { use(4*q+c, v) })
}

// unpack transposes the 4x4 blocks of 32-bit elements in the 128-bit lanes; only
// the first columns are made.
func unpack(s isa, a []reg.VecVirtual, columns int, use func(c int, v reg.VecVirtual)) {
	for c := 0; c < min(columns, 4); c += 2 {
		low, high, v := s.vector(), s.vector(), s.vector()
		if c == 0 {
			VUNPCKLPS(a[1], a[0], low)
			VUNPCKLPS(a[3], a[2], high)
		} else {
			VUNPCKHPS(a[1], a[0], low)
			VUNPCKHPS(a[3], a[2], high)
		}
		VUNPCKLPD(high, low, v)
		use(c, v)
		if c+1 < columns {
			w := s.vector()
			VUNPCKHPD(high, low, w)
			use(c+1, w)
		}
	}
}

// transpose16 turns 16 rows of 16 float32 into columns, after adding bias, and
// hands each over when it is ready. Loads that insert halves save a third of the
// shuffles.
func transpose16(at func(row int) Mem, bias reg.VecVirtual, use func(column int, v reg.VecVirtual)) {
	for h := range 2 {
		parts := [2][]reg.VecVirtual{avx512.vectors(4), avx512.vectors(4)}
		for r := range 4 {
			low, high := ZMM(), ZMM()
			for i, v := range []reg.VecVirtual{low, high} {
				row := 8*i + r
				VBROADCASTF64X4(at(row).Offset(32*h), v)
				VINSERTF64X4(Imm(1), at(row+4).Offset(32*h), v, v)
				VADDPS(bias, v, v)
			}
			VSHUFF32X4(Imm(0x88), high, low, parts[0][r])
			VSHUFF32X4(Imm(0xdd), high, low, parts[1][r])
		}
		for i, part := range parts {
			unpack(avx512, part, 4, func(c int, v reg.VecVirtual) { use(8*h+4*i+c, v) })
		}
	}
}
