//go:build arm64 && !purego

// Sums of float64 rows by label, in eight chains.

#include "textflag.h"
#include "neon_arm64.h"

// ROW4 adds the next four values, at R0, to those at place in the row at R5.
#define ROW4(place)              \
	VLD1.P 32(R0), [V0.D2, V1.D2]  \
	FLDPQ  place(R5), (F2, F3)     \
	FADD2D(0, 2, 2)                \
	FADD2D(1, 3, 3)                \
	FSTPQ  (F2, F3), place(R5)

// LABEL4 and LABEL8 set R5 to the row of the table that the next label names.
#define LABEL4              \
	MOVHU.P 2(R2), R5         \
	ADD     R5<<8, R3, R5

#define LABEL8              \
	MOVHU.P 2(R2), R5         \
	ADD     R5<<9, R3, R5

// func AddWeighted4NEON(rows *float64, blocks int, labels *uint16, table *float64)
TEXT ·AddWeighted4NEON(SB), NOSPLIT, $0-32
	MOVD rows+0(FP), R0
	MOVD blocks+8(FP), R1
	MOVD labels+16(FP), R2
	MOVD table+24(FP), R3

block:
	LABEL4
	ROW4(0)
	LABEL4
	ROW4(32)
	LABEL4
	ROW4(64)
	LABEL4
	ROW4(96)
	LABEL4
	ROW4(128)
	LABEL4
	ROW4(160)
	LABEL4
	ROW4(192)
	LABEL4
	ROW4(224)
	SUBS $1, R1, R1
	BNE  block
	RET

// func AddWeighted8NEON(rows *float64, blocks int, labels *uint16, table *float64)
TEXT ·AddWeighted8NEON(SB), NOSPLIT, $0-32
	MOVD rows+0(FP), R0
	MOVD blocks+8(FP), R1
	MOVD labels+16(FP), R2
	MOVD table+24(FP), R3

block:
	LABEL8
	ROW4(0)
	ROW4(32)
	LABEL8
	ROW4(64)
	ROW4(96)
	LABEL8
	ROW4(128)
	ROW4(160)
	LABEL8
	ROW4(192)
	ROW4(224)
	LABEL8
	ROW4(256)
	ROW4(288)
	LABEL8
	ROW4(320)
	ROW4(352)
	LABEL8
	ROW4(384)
	ROW4(416)
	LABEL8
	ROW4(448)
	ROW4(480)
	SUBS $1, R1, R1
	BNE  block
	RET

// func AddWeightedNEON(rows *float64, blocks int, width int, labels *uint16, table *float64, stride int, chain int)
TEXT ·AddWeightedNEON(SB), NOSPLIT, $0-56
	MOVD rows+0(FP), R0
	MOVD blocks+8(FP), R1
	MOVD width+16(FP), R6
	MOVD labels+24(FP), R2
	MOVD table+32(FP), R3
	MOVD stride+40(FP), R7
	MOVD chain+48(FP), R8

block:
	MOVD R3, R9          // the chain of the point
	MOVD $8, R10

point:
	MOVHU.P 2(R2), R5
	MADD    R7, R9, R5, R5
	MOVD    R6, R11

columns:
	ROW4(0)
	ROW4(32)
	ADD  $64, R5, R5
	SUBS $8, R11, R11
	BNE  columns
	ADD  R8, R9, R9
	SUBS $1, R10, R10
	BNE  point
	SUBS $1, R1, R1
	BNE  block
	RET

// TAKE loads four columns of the chain at R4 to a and b and goes to the next one,
// CLEAR also clears them. R3: bytes of a chain.
#define TAKE(a, b)          \
	VLD1 (R4), [a.D2, b.D2]   \
	ADD  R3, R4, R4

#define CLEAR(a, b)           \
	VLD1 (R4), [a.D2, b.D2]     \
	VST1 [V30.D2, V31.D2], (R4) \
	ADD  R3, R4, R4

// func FoldWeightedNEON(table *float64, clusters int, width int)
TEXT ·FoldWeightedNEON(SB), NOSPLIT, $0-24
	MOVD table+0(FP), R0
	MOVD clusters+8(FP), R1
	MOVD width+16(FP), R2
	LSL  $3, R2, R3
	VEOR V30.B16, V30.B16, V30.B16
	VEOR V31.B16, V31.B16, V31.B16

cluster:
	MOVD R2, R5

columns:
	MOVD R0, R4
	TAKE(V0, V1)
	CLEAR(V2, V3)
	CLEAR(V4, V5)
	CLEAR(V6, V7)
	CLEAR(V16, V17)
	CLEAR(V18, V19)
	CLEAR(V20, V21)
	CLEAR(V22, V23)
	FADD2D(2, 0, 0)
	FADD2D(3, 1, 1)
	FADD2D(6, 4, 4)
	FADD2D(7, 5, 5)
	FADD2D(18, 16, 16)
	FADD2D(19, 17, 17)
	FADD2D(22, 20, 20)
	FADD2D(23, 21, 21)
	FADD2D(4, 0, 0)
	FADD2D(5, 1, 1)
	FADD2D(20, 16, 16)
	FADD2D(21, 17, 17)
	FADD2D(16, 0, 0)
	FADD2D(17, 1, 1)
	VST1.P [V0.D2, V1.D2], 32(R0)
	SUBS   $4, R5, R5
	BNE    columns
	SUB    R3, R4, R0    // of the last columns, the last chain
	ADD    $32, R0, R0
	SUBS   $1, R1, R1
	BNE    cluster
	RET

// func WeightedCostsNEON(weights *float64, dist *float32, blocks int, costs *float64)
TEXT ·WeightedCostsNEON(SB), NOSPLIT, $0-32
	MOVD weights+0(FP), R0
	MOVD dist+8(FP), R1
	MOVD blocks+16(FP), R2
	MOVD costs+24(FP), R3
	VLD1 (R3), [V0.D2, V1.D2, V2.D2, V3.D2]

loop:
	VLD1.P 32(R1), [V4.S4, V5.S4]
	FCVTL2S(4, 16)
	FCVTL4S(4, 17)
	FCVTL2S(5, 18)
	FCVTL4S(5, 19)
	VLD1.P 64(R0), [V20.D2, V21.D2, V22.D2, V23.D2]
	FMUL2D(20, 16, 16)
	FMUL2D(21, 17, 17)
	FMUL2D(22, 18, 18)
	FMUL2D(23, 19, 19)
	FADD2D(16, 0, 0)
	FADD2D(17, 1, 1)
	FADD2D(18, 2, 2)
	FADD2D(19, 3, 3)
	SUBS   $1, R2, R2
	BNE    loop
	VST1   [V0.D2, V1.D2, V2.D2, V3.D2], (R3)
	RET
