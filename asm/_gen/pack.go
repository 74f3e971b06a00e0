package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func packFile(s isa) {
	for _, stream := range []bool{false, true} {
		packRows(s, 4, stream)
		packRows(s, 8, stream)
		packRows(s, 16, stream)
	}
}

// packRows emits the packing of rows in blocks of a fixed number of columns;
// stream writes past the caches.
func packRows(s isa, columns int, stream bool) {
	kind, write := "Pack", func(v, m Op) { VMOVUPS(v, m) }
	if stream {
		kind, write = "PackStream", VMOVNTPS
	}
	more := fmt.Sprintf("d is at most %d.", columns)
	if columns == 16 {
		more = "From d = 16 on, the last block is the last 16 columns."
	}
	if stream {
		more += " It writes past the caches, and dst is aligned to 64 bytes."
	}
	function(fmt.Sprintf("%s%d%s", kind, columns, s.name), "func(dst, rows *float32, panels, d int)",
		"transposes 16*panels > 0 rows of d columns into panels of [d][16], reading and",
		fmt.Sprintf("writing %d columns at a time. Where d > 1 is smaller, the last row is read (up to 8", columns),
		"columns at least) and the last panel written (by at most a panel) too far; panels",
		"overwrite what the ones before them wrote too far. "+more)
	dst := Load(Param("dst"), GP64())
	rows := Load(Param("rows"), GP64())
	panels := GP64()
	Load(Param("panels"), panels)
	d := GP64()
	Load(Param("d"), d)
	stride, tripled := GP64(), GP64()
	MOVQ(d, stride)
	SHLQ(Imm(2), stride)
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, tripled)

	at := []reg.GPVirtual{GP64(), GP64(), GP64(), GP64()} // rows 0, 4, 8, 12
	point := func(i int) Mem {
		m := Mem{Base: at[i/4]}
		switch i % 4 {
		case 1, 2:
			m.Index, m.Scale = stride, uint8(i%4)
		case 3:
			m.Index, m.Scale = tripled, 1
		}
		return m
	}
	out, left := GP64(), GP64()
	count("panels", panels, func() {
		MOVQ(rows, at[0])
		for i := 1; i < 4; i++ {
			LEAQ(Mem{Base: at[i-1], Index: stride, Scale: 4}, at[i])
		}
		MOVQ(dst, out)
		MOVQ(d, left)
		Label("block")
		store := func(column int, part int, v reg.VecVirtual) {
			write(v, Mem{Base: out, Disp: 64*column + part*s.bytes})
		}
		if s == avx512 {
			transpose16(columns/4, point, nil, func(column int, v reg.VecVirtual) { store(column, 0, v) })
		} else {
			for part := range 2 {
				for h := range (columns + 7) / 8 {
					transpose8(min(columns, 8)/4, func(i int) Mem { return point(8*part + i).Offset(32 * h) }, nil,
						func(column int, v reg.VecVirtual) { store(8*h+column, part, v) })
				}
			}
		}
		if columns == 16 {
			SUBQ(Imm(16), left)
			JLE(LabelRef("next"))
			shift := GP64()
			MOVQ(U32(16), shift)
			CMPQ(left, shift)
			CMOVQLT(left, shift) // the last block ends at d
			SHLQ(Imm(2), shift)
			for _, a := range at {
				ADDQ(shift, a)
			}
			SHLQ(Imm(4), shift)
			ADDQ(shift, out)
			JMP(LabelRef("block"))
			Label("next")
		}
		SHLQ(Imm(4), stride)
		ADDQ(stride, rows)
		ADDQ(stride, dst)
		SHRQ(Imm(4), stride)
	})
	if stream {
		SFENCE()
	}
	VZEROUPPER()
	RET()
}

// transpose8 turns eight rows of eight float32 into eight columns, after adding
// bias when there is one; only the first 4*quads columns are made.
func transpose8(quads int, at func(row int) Mem, bias reg.VecVirtual, use func(column int, v reg.VecVirtual)) {
	for q := range quads {
		a := make([]reg.VecVirtual, 4)
		for r := range a {
			a[r] = YMM()
			VBROADCASTF128(at(r).Offset(16*q), a[r])
			VINSERTF128(Imm(1), at(r+4).Offset(16*q), a[r], a[r])
			if bias != nil {
				VADDPS(bias, a[r], a[r])
			}
		}
		unpack(avx2, a, func(c int, v reg.VecVirtual) { use(4*q+c, v) })
	}
}

// unpack transposes the 4x4 blocks of 32-bit elements in the 128-bit lanes.
func unpack(s isa, a []reg.VecVirtual, use func(c int, v reg.VecVirtual)) {
	t := s.vectors(4)
	VUNPCKLPS(a[1], a[0], t[0])
	VUNPCKHPS(a[1], a[0], t[1])
	VUNPCKLPS(a[3], a[2], t[2])
	VUNPCKHPS(a[3], a[2], t[3])
	for c := range 4 {
		v := s.vector()
		if c%2 == 0 {
			VUNPCKLPD(t[2+c/2], t[c/2], v)
		} else {
			VUNPCKHPD(t[2+c/2], t[c/2], v)
		}
		use(c, v)
	}
}

// transpose16 turns 16 rows of 16 float32 into columns, after adding bias when
// there is one, and hands each over when it is ready; only the first 4*quads
// columns are made. Loads that insert halves save a third of the shuffles.
func transpose16(quads int, at func(row int) Mem, bias reg.VecVirtual, use func(column int, v reg.VecVirtual)) {
	for h := range (quads + 1) / 2 {
		q := min(2, quads-2*h)
		parts := [2][]reg.VecVirtual{avx512.vectors(4), avx512.vectors(4)}
		for r := range 4 {
			low, high := ZMM(), ZMM()
			for i, v := range []reg.VecVirtual{low, high} {
				row := 8*i + r
				VBROADCASTF64X4(at(row).Offset(32*h), v)
				VINSERTF64X4(Imm(1), at(row+4).Offset(32*h), v, v)
				if bias != nil {
					VADDPS(bias, v, v)
				}
			}
			VSHUFF32X4(Imm(0x88), high, low, parts[0][r])
			if q == 2 {
				VSHUFF32X4(Imm(0xdd), high, low, parts[1][r])
			}
		}
		for i := range q {
			unpack(avx512, parts[i], func(c int, v reg.VecVirtual) { use(8*h+4*i+c, v) })
		}
	}
}
