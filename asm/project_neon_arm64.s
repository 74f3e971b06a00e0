//go:build arm64 && !purego

// Products of points with the rows of a matrix, four rows side by side.

#include "textflag.h"
#include "neon_arm64.h"

// ZERO clears the four sums of a row.
#define ZERO(a, b, c, e)     \
	VEOR a.B16, a.B16, a.B16   \
	VEOR b.B16, b.B16, b.B16   \
	VEOR c.B16, c.B16, c.B16   \
	VEOR e.B16, e.B16, e.B16

// TIMES adds the products of the panel in V16 to V19 with coefficient i of m.
#define TIMES(i, m, a, b, c, e) \
	FMLA4SI(i, m, 16, a)          \
	FMLA4SI(i, m, 17, b)          \
	FMLA4SI(i, m, 18, c)          \
	FMLA4SI(i, m, 19, e)

// func Project1NEON(x *float32, panels int, d int, tile, out *float32, stride int)
TEXT ·Project1NEON(SB), NOSPLIT, $0-48
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD tile+24(FP), R3
	MOVD out+32(FP), R4
	MOVD stride+40(FP), R5

panel:
	MOVD R3, R8
	MOVD R4, R9
	MOVD R2, R11
	ZERO(V0, V1, V2, V3)

dimension:
	VLD1.P 64(R0), [V16.S4, V17.S4, V18.S4, V19.S4]
	FMOVS.P 4(R8), F20
	TIMES(0, 20, 0, 1, 2, 3)
	SUBS $1, R11, R11
	BNE  dimension
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R9)
	ADD  R5, R4, R4
	SUBS $1, R1, R1
	BNE  panel
	RET

// func Project2NEON(x *float32, panels int, d int, tile, out *float32, stride int)
TEXT ·Project2NEON(SB), NOSPLIT, $0-48
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD tile+24(FP), R3
	MOVD out+32(FP), R4
	MOVD stride+40(FP), R5

panel:
	MOVD R3, R8
	MOVD R4, R9
	MOVD R2, R11
	ZERO(V0, V1, V2, V3)
	ZERO(V4, V5, V6, V7)

dimension:
	VLD1.P 64(R0), [V16.S4, V17.S4, V18.S4, V19.S4]
	FMOVD.P 8(R8), F20
	TIMES(0, 20, 0, 1, 2, 3)
	TIMES(1, 20, 4, 5, 6, 7)
	SUBS $1, R11, R11
	BNE  dimension
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R9)
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R9)
	ADD  R5, R4, R4
	SUBS $1, R1, R1
	BNE  panel
	RET

// func Project3NEON(x *float32, panels int, d int, tile, out *float32, stride int)
TEXT ·Project3NEON(SB), NOSPLIT, $0-48
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD tile+24(FP), R3
	MOVD out+32(FP), R4
	MOVD stride+40(FP), R5

panel:
	MOVD R3, R8
	MOVD R4, R9
	MOVD R2, R11
	ZERO(V0, V1, V2, V3)
	ZERO(V4, V5, V6, V7)
	ZERO(V8, V9, V10, V11)

dimension:
	VLD1.P 64(R0), [V16.S4, V17.S4, V18.S4, V19.S4]
	FMOVD.P 8(R8), F20
	FMOVS.P 4(R8), F21
	TIMES(0, 20, 0, 1, 2, 3)
	TIMES(1, 20, 4, 5, 6, 7)
	TIMES(0, 21, 8, 9, 10, 11)
	SUBS $1, R11, R11
	BNE  dimension
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R9)
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R9)
	VST1.P [V8.S4, V9.S4, V10.S4, V11.S4], 64(R9)
	ADD  R5, R4, R4
	SUBS $1, R1, R1
	BNE  panel
	RET

// func Project4NEON(x *float32, panels int, d int, tile, out *float32, stride int)
TEXT ·Project4NEON(SB), NOSPLIT, $0-48
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD tile+24(FP), R3
	MOVD out+32(FP), R4
	MOVD stride+40(FP), R5

panel:
	MOVD R3, R8
	MOVD R4, R9
	MOVD R2, R11
	ZERO(V0, V1, V2, V3)
	ZERO(V4, V5, V6, V7)
	ZERO(V8, V9, V10, V11)
	ZERO(V12, V13, V14, V15)

dimension:
	VLD1.P 64(R0), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1.P 16(R8), [V20.S4]
	TIMES(0, 20, 0, 1, 2, 3)
	TIMES(1, 20, 4, 5, 6, 7)
	TIMES(2, 20, 8, 9, 10, 11)
	TIMES(3, 20, 12, 13, 14, 15)
	SUBS $1, R11, R11
	BNE  dimension
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R9)
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R9)
	VST1.P [V8.S4, V9.S4, V10.S4, V11.S4], 64(R9)
	VST1.P [V12.S4, V13.S4, V14.S4, V15.S4], 64(R9)
	ADD  R5, R4, R4
	SUBS $1, R1, R1
	BNE  panel
	RET
