package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// costs is a routine of exact integer squared distances of some lanes of a panel to
// all centroids. Lanes of a vector are centroids, in float64, where squared grid
// distances are exact over a bounded number of dimensions.
type costs struct {
	s                          isa
	dims, left, stride, k, dst reg.GPVirtual
	wide                       reg.Register
	scale, magic               reg.VecVirtual
}

// width is the number of centroids in a vector.
func (r *costs) width() int { return r.s.bytes / 8 }

// costPanel emits the routine.
func costPanel(s isa) {
	function("CostPanel"+s.name,
		"func(x *float32, dims int, wide *float64, first, lanes int, c *float64, stride, k int, scale float64, sum "+
			"int64, dst *int64)",
		"writes to dst [lanes][k] the squared distances, times scale, of lanes > 0 points from",
		"lane first on of a panel part [dims][16] at x to k > 0 centroids at c, [dims][stride],",
		"and adds to what dst holds when sum is not zero. wide is scratch for 16*dims values.",
		"Each product and each sum is an integer of at most 2^51 after scaling. Rows of c are",
		"readable up to k rounded up to 8.")
	r := &costs{s: s}
	x := Load(Param("x"), GP64())
	r.dims = GP64()
	Load(Param("dims"), r.dims)
	r.wide = Load(Param("wide"), GP64())
	r.widen(x)

	first := GP64()
	Load(Param("first"), first)
	LEAQ(Mem{Base: r.wide, Index: first, Scale: 8}, r.wide)
	r.stride = GP64()
	Load(Param("stride"), r.stride)
	SHLQ(Imm(3), r.stride)
	r.k = GP64()
	Load(Param("k"), r.k)
	r.dst = GP64()
	Load(Param("dst"), r.dst)
	lanes := GP64()
	Load(Param("lanes"), lanes)
	r.scale = s.vector()
	VBROADCASTSD(NewParamAddr("scale", 64), r.scale)
	r.magic = s.vector() // 2^52 + 2^51: its low bits are integers
	bits := GP64()
	MOVQ(U64(0x4338000000000000), bits)
	VMOVQ(bits, r.magic.AsX())
	VPBROADCASTQ(r.magic.AsX(), r.magic)
	groups(lanes, r.width(), r.group)
}

// widen converts the panel to float64.
func (r *costs) widen(x reg.Register) {
	from, to := GP64(), GP64()
	r.left = GP64()
	MOVQ(x, from)
	MOVQ(r.wide, to)
	MOVQ(r.dims, r.left)
	v := r.s.vector()
	count("widen", r.left, func() {
		for part := range 16 / r.width() {
			VCVTPS2PD(Mem{Base: from, Disp: part * r.s.bytes / 2}, v)
			VMOVUPD(v, Mem{Base: to, Disp: part * r.s.bytes})
		}
		ADDQ(Imm(64), from)
		ADDQ(U32(128), to)
	})
}

// group takes m points, a vector of centroids at a time.
func (r *costs) group(tag string, m int) {
	s := r.s
	column, rest, out := GP64(), GP64(), GP64()
	Load(Param("c"), column)
	MOVQ(r.k, rest)
	MOVQ(r.dst, out)
	Label(tag + "_vector")
	costs := s.vectors(m)
	for _, c := range costs {
		s.zero(c)
	}
	cp, xp := GP64(), GP64()
	MOVQ(column, cp)
	MOVQ(r.wide, xp)
	MOVQ(r.dims, r.left)
	centroid, t := s.vector(), s.vector()
	count(tag+"_dims", r.left, func() {
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
		ADDQ(r.stride, cp)
		ADDQ(U32(128), xp)
	})
	for _, c := range costs {
		VMULPD(r.scale, c, c)
		VADDPD(r.magic, c, c)
		VPSUBQ(r.magic, c, c)
	}
	store(tag, s, costs, out, r.k, rest)
	ADDQ(Imm(uint64(s.bytes)), column)
	ADDQ(Imm(uint64(s.bytes)), out)
	SUBQ(Imm(uint64(r.width())), rest)
	JG(LabelRef(tag + "_vector"))
	ADDQ(U32(uint32(8*m)), r.wide)
	for range m {
		LEAQ(Mem{Base: r.dst, Index: r.k, Scale: 8}, r.dst)
	}
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
