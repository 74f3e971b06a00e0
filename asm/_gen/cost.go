package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// costPanel emits exact integer squared distances of some lanes of a panel to
// all centroids. Lanes of a vector are centroids, in float64, where squared grid
// distances are exact over a bounded number of dimensions.
func costPanel(s isa) {
	width := s.bytes / 8 // centroids in a vector
	function("CostPanel"+s.name,
		"func(x *float32, dims int, wide *float64, first, lanes int, c *float64, stride, k int, scale float64, sum "+
			"int64, dst *int64)",
		"writes to dst [lanes][k] the squared distances, times scale, of lanes > 0 points from",
		"lane first on of a panel part [dims][16] at x to k > 0 centroids at c, [dims][stride],",
		"and adds to what dst holds when sum is not zero. wide is scratch for 16*dims values.",
		"Each product and each sum is an integer of at most 2^51 after scaling. Rows of c are",
		"readable up to k rounded up to 8.")
	x := Load(Param("x"), GP64())
	dims := GP64()
	Load(Param("dims"), dims)
	wide := Load(Param("wide"), GP64())
	from, to, left := GP64(), GP64(), GP64()
	MOVQ(x, from)
	MOVQ(wide, to)
	MOVQ(dims, left)
	v := s.vector()
	count("widen", left, func() {
		for part := range 16 / width {
			VCVTPS2PD(Mem{Base: from, Disp: part * s.bytes / 2}, v)
			VMOVUPD(v, Mem{Base: to, Disp: part * s.bytes})
		}
		ADDQ(Imm(64), from)
		ADDQ(U32(128), to)
	})

	first := GP64()
	Load(Param("first"), first)
	LEAQ(Mem{Base: wide, Index: first, Scale: 8}, wide)
	stride := GP64()
	Load(Param("stride"), stride)
	SHLQ(Imm(3), stride)
	k := GP64()
	Load(Param("k"), k)
	dst := GP64()
	Load(Param("dst"), dst)
	lanes := GP64()
	Load(Param("lanes"), lanes)
	scale := s.vector()
	VBROADCASTSD(NewParamAddr("scale", 64), scale)
	magic := s.vector() // 2^52 + 2^51: its low bits are integers
	bits := GP64()
	MOVQ(U64(0x4338000000000000), bits)
	VMOVQ(bits, magic.AsX())
	VPBROADCASTQ(magic.AsX(), magic)

	// group computes vectors of centroids for m points.
	points := 4
	if s == avx512 {
		points = 8
	}
	group := func(tag string, m int) {
		column, rest, out := GP64(), GP64(), GP64()
		Load(Param("c"), column)
		MOVQ(k, rest)
		MOVQ(dst, out)
		Label(tag + "_vector")
		costs := s.vectors(m)
		for _, c := range costs {
			s.zero(c)
		}
		cp, xp := GP64(), GP64()
		MOVQ(column, cp)
		MOVQ(wide, xp)
		MOVQ(dims, left)
		centroid, t := s.vector(), s.vector()
		count(tag+"_dims", left, func() {
			VMOVUPD(Mem{Base: cp}, centroid)
			for p, c := range costs {
				if s == avx512 {
					VSUBPD_BCST(Mem{Base: xp, Disp: 8 * p}, centroid, t)
				} else {
					VBROADCASTSD(Mem{Base: xp, Disp: 8 * p}, t)
					VSUBPD(centroid, t, t)
				}
				VFMADD231PD(t, t, c)
			}
			ADDQ(stride, cp)
			ADDQ(U32(128), xp)
		})
		for _, c := range costs {
			VMULPD(scale, c, c)
			VADDPD(magic, c, c)
			VPSUBQ(magic, c, c)
		}
		store(tag, s, costs, out, k, rest)
		ADDQ(Imm(uint64(s.bytes)), column)
		ADDQ(Imm(uint64(s.bytes)), out)
		SUBQ(Imm(uint64(width)), rest)
		JG(LabelRef(tag + "_vector"))
		ADDQ(U32(uint32(8*m)), wide)
		for range m {
			LEAQ(Mem{Base: dst, Index: k, Scale: 8}, dst)
		}
		SUBQ(Imm(uint64(m)), lanes)
	}
	Label("groups")
	CMPQ(lanes, Imm(uint64(points)))
	JLT(LabelRef("rest"))
	group("group", points)
	JMP(LabelRef("groups"))
	Label("rest")
	TESTQ(lanes, lanes)
	JZ(LabelRef("end"))
	group("single", 1)
	JMP(LabelRef("rest"))
	Label("end")
	VZEROUPPER()
	RET()
}

// store writes, or adds, one vector of costs per point to rows of k integers;
// rest says how many of its lanes exist.
func store(tag string, s isa, costs []reg.VecVirtual, out, k, rest reg.GPVirtual) {
	p := GP64()
	sum := NewParamAddr("sum", 72)
	if s == avx512 {
		mask, n, ones := K(), GP64(), GP64()
		MOVQ(U32(8), n)
		CMPQ(rest, n)
		CMOVQLT(rest, n)
		MOVQ(U64(0xffffffffffffffff), ones)
		BZHIQ(n, ones, ones)
		KMOVB(ones.As32(), mask)
		CMPQ(sum, Imm(0))
		JEQ(LabelRef(tag + "_store"))
		MOVQ(out, p)
		for _, c := range costs {
			VPADDQ(Mem{Base: p}, c, mask, c)
			LEAQ(Mem{Base: p, Index: k, Scale: 8}, p)
		}
		Label(tag + "_store")
		MOVQ(out, p)
		for _, c := range costs {
			VMOVDQU64(c, mask, Mem{Base: p})
			LEAQ(Mem{Base: p, Index: k, Scale: 8}, p)
		}
		return
	}
	mask, numbers, old := YMM(), YMM(), YMM()
	VMOVQ(rest, mask.AsX())
	VPBROADCASTQ(mask.AsX(), mask)
	VMOVDQU(constantLanes, numbers)
	VPCMPGTQ(numbers, mask, mask)
	CMPQ(sum, Imm(0))
	JEQ(LabelRef(tag + "_store"))
	MOVQ(out, p)
	for _, c := range costs {
		VPMASKMOVQ(Mem{Base: p}, mask, old)
		VPADDQ(old, c, c)
		LEAQ(Mem{Base: p, Index: k, Scale: 8}, p)
	}
	Label(tag + "_store")
	MOVQ(out, p)
	for _, c := range costs {
		VPMASKMOVQ(c, mask, Mem{Base: p})
		LEAQ(Mem{Base: p, Index: k, Scale: 8}, p)
	}
}

// constantLanes holds the 64-bit integers 0 to 3.
var constantLanes Mem

func costFile(s isa) {
	if s == avx2 {
		constantLanes = constants("lanes", 0, 0, 1, 0, 2, 0, 3, 0)
	}
	costPanel(s)
}
