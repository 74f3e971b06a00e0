//go:build arm64 && !purego

// Accumulation by label into private int32 tables.

#include "textflag.h"
#include "neon_arm64.h"

// TRANSPOSE turns V0 to V3, four dimensions of four points, into four points of
// four dimensions in V4 to V7.
#define TRANSPOSE                  \
	VTRN1 V1.S4, V0.S4, V16.S4       \
	VTRN2 V1.S4, V0.S4, V17.S4       \
	VTRN1 V3.S4, V2.S4, V18.S4       \
	VTRN2 V3.S4, V2.S4, V19.S4       \
	VTRN1 V18.D2, V16.D2, V4.D2      \
	VTRN1 V19.D2, V17.D2, V5.D2      \
	VTRN2 V18.D2, V16.D2, V6.D2      \
	VTRN2 V19.D2, V17.D2, V7.D2

// ROW adds v to the four integers at address a.
#define ROW(a, v)                  \
	VLD1 (a), [V20.S4]               \
	VADD v.S4, V20.S4, V20.S4     \
	VST1 [V20.S4], (a)

// func Scatter1NEON(x *float32, panels int, labels *uint16, table *int32, rows int, bias float32)
TEXT ·Scatter1NEON(SB), NOSPLIT, $0-44
	MOVD  x+0(FP), R0
	MOVD  panels+8(FP), R1
	MOVD  labels+16(FP), R2
	MOVD  table+24(FP), R3
	MOVD  rows+32(FP), R4
	MOVWU bias+40(FP), R5
	VDUP  R5, V30.S4
	LSL   $4, R4, R4
	ADD   R4, R3, R6      // replicas of lanes 1, 2, 3 modulo 4
	ADD   R4, R6, R7
	ADD   R4, R7, R8
	MOVD  $1, R9
	VDUP  R9, V31.S4

panel:
	MOVD $4, R10

quad:
	VLD1 (R0), [V0.S4]
	FADD4S(30, 0, 0)
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VMOV V31.B16, V3.B16
	TRANSPOSE
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R3, R13
	ROW(R13, V4)
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R6, R13
	ROW(R13, V5)
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R7, R13
	ROW(R13, V6)
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R8, R13
	ROW(R13, V7)
	ADD  $16, R0, R0
	SUBS $1, R10, R10
	BNE  quad
	ADD  $0, R0, R0
	SUBS $1, R1, R1
	BNE  panel
	RET

// func Scatter2NEON(x *float32, panels int, labels *uint16, table *int32, rows int, bias float32)
TEXT ·Scatter2NEON(SB), NOSPLIT, $0-44
	MOVD  x+0(FP), R0
	MOVD  panels+8(FP), R1
	MOVD  labels+16(FP), R2
	MOVD  table+24(FP), R3
	MOVD  rows+32(FP), R4
	MOVWU bias+40(FP), R5
	VDUP  R5, V30.S4
	LSL   $4, R4, R4
	ADD   R4, R3, R6      // replicas of lanes 1, 2, 3 modulo 4
	ADD   R4, R6, R7
	ADD   R4, R7, R8
	MOVD  $1, R9
	VDUP  R9, V31.S4

panel:
	MOVD $4, R10

quad:
	VLD1 (R0), [V0.S4]
	FADD4S(30, 0, 0)
	ADD  $64, R0, R11
	VLD1 (R11), [V1.S4]
	FADD4S(30, 1, 1)
	VEOR V2.B16, V2.B16, V2.B16
	VMOV V31.B16, V3.B16
	TRANSPOSE
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R3, R13
	ROW(R13, V4)
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R6, R13
	ROW(R13, V5)
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R7, R13
	ROW(R13, V6)
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R8, R13
	ROW(R13, V7)
	ADD  $16, R0, R0
	SUBS $1, R10, R10
	BNE  quad
	ADD  $64, R0, R0
	SUBS $1, R1, R1
	BNE  panel
	RET

// func Scatter3NEON(x *float32, panels int, labels *uint16, table *int32, rows int, bias float32)
TEXT ·Scatter3NEON(SB), NOSPLIT, $0-44
	MOVD  x+0(FP), R0
	MOVD  panels+8(FP), R1
	MOVD  labels+16(FP), R2
	MOVD  table+24(FP), R3
	MOVD  rows+32(FP), R4
	MOVWU bias+40(FP), R5
	VDUP  R5, V30.S4
	LSL   $4, R4, R4
	ADD   R4, R3, R6      // replicas of lanes 1, 2, 3 modulo 4
	ADD   R4, R6, R7
	ADD   R4, R7, R8
	MOVD  $1, R9
	VDUP  R9, V31.S4

panel:
	MOVD $4, R10

quad:
	VLD1 (R0), [V0.S4]
	FADD4S(30, 0, 0)
	ADD  $64, R0, R11
	VLD1 (R11), [V1.S4]
	FADD4S(30, 1, 1)
	ADD  $128, R0, R11
	VLD1 (R11), [V2.S4]
	FADD4S(30, 2, 2)
	VMOV V31.B16, V3.B16
	TRANSPOSE
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R3, R13
	ROW(R13, V4)
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R6, R13
	ROW(R13, V5)
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R7, R13
	ROW(R13, V6)
	MOVHU.P 2(R2), R12
	ADD  R12<<4, R8, R13
	ROW(R13, V7)
	ADD  $16, R0, R0
	SUBS $1, R10, R10
	BNE  quad
	ADD  $128, R0, R0
	SUBS $1, R1, R1
	BNE  panel
	RET

// func ScatterNEON(x *float32, panels, d int, labels *uint16, table *int32, width int, bias float32, counts *int32)
TEXT ·ScatterNEON(SB), NOSPLIT, $0-64
	MOVD  x+0(FP), R0
	MOVD  panels+8(FP), R1
	MOVD  d+16(FP), R2
	MOVD  labels+24(FP), R3
	MOVD  table+32(FP), R4
	MOVD  width+40(FP), R5
	MOVWU bias+48(FP), R6
	MOVD  counts+56(FP), R7
	VDUP  R6, V30.S4
	LSL   $2, R5, R5     // bytes of a row

panel:
	MOVD $4, R8          // quads of points
	MOVD R0, R9          // the quad in dimension 0

quad:
	// R20 to R23: the rows of the four points.
#define POINT(row)               \
	MOVHU.P 2(R3), R10             \
	LSL     $2, R10, R11           \
	MOVW    (R7)(R11), R12         \
	ADD     $1, R12, R12           \
	MOVW    R12, (R7)(R11)         \
	MADD    R5, R4, R10, row

	POINT(R20)
	POINT(R21)
	POINT(R22)
	POINT(R23)
	MOVD R9, R13
	MOVD R2, R14

four:
	CMP  $4, R14
	BLT  last
	VLD1 (R13), [V0.S4]
	ADD  $64, R13, R13
	VLD1 (R13), [V1.S4]
	ADD  $64, R13, R13
	VLD1 (R13), [V2.S4]
	ADD  $64, R13, R13
	VLD1 (R13), [V3.S4]
	ADD  $64, R13, R13
	SUB  $4, R14, R14

add:
	FADD4S(30, 0, 0)
	FADD4S(30, 1, 1)
	FADD4S(30, 2, 2)
	FADD4S(30, 3, 3)
	TRANSPOSE
	ROW(R20, V4)
	ROW(R21, V5)
	ROW(R22, V6)
	ROW(R23, V7)
	ADD $16, R20, R20
	ADD $16, R21, R21
	ADD $16, R22, R22
	ADD $16, R23, R23
	B   four

last:
	// One to three dimensions are left; the other columns receive the bias.
	CBZ  R14, next
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VLD1 (R13), [V0.S4]
	ADD  $64, R13, R13
	SUBS $1, R14, R14
	BEQ  add
	VLD1 (R13), [V1.S4]
	ADD  $64, R13, R13
	SUBS $1, R14, R14
	BEQ  add
	VLD1 (R13), [V2.S4]
	MOVD ZR, R14
	B    add

next:
	ADD  $16, R9, R9
	SUBS $1, R8, R8
	BNE  quad
	ADD  R2<<6, R0, R0
	SUBS $1, R1, R1
	BNE  panel
	RET

// func FoldRowNEON(row *int32, blocks int, bias int32, sums *int64)
TEXT ·FoldRowNEON(SB), NOSPLIT, $0-32
	MOVD row+0(FP), R0
	MOVD blocks+8(FP), R1
	MOVW bias+16(FP), R2
	MOVD sums+24(FP), R3
	VDUP R2, V30.S4

#define FOLD(v, vv)                   \
	VSUB    V30.S4, vv.S4, vv.S4        \
	VLD1    (R3), [V4.D2, V5.D2]        \
	SADDW2S(v, 4, 4)                    \
	SADDW4S(v, 5, 5)                    \
	VST1.P  [V4.D2, V5.D2], 32(R3)

block:
	VLD1.P 64(R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	FOLD(0, V0)
	FOLD(1, V1)
	FOLD(2, V2)
	FOLD(3, V3)
	SUBS $1, R1, R1
	BNE  block
	RET
