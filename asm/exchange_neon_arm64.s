//go:build arm64 && !purego

// Losses of the exchanges of a local search.

#include "textflag.h"
#include "neon_arm64.h"

// WIDEN turns the eight float32 of a and b into float64 in c, e, f and g.
#define WIDEN(a, b, c, e, f, g) \
	FCVTL2S(a, c)                 \
	FCVTL4S(a, e)                 \
	FCVTL2S(b, f)                 \
	FCVTL4S(b, g)

// func ExchangeNEON(own *float32, near *float32, next *float32, labels *uint16, weights *float64, blocks int, table *float64, base *float64)
TEXT ·ExchangeNEON(SB), NOSPLIT, $0-64
	MOVD own+0(FP), R0
	MOVD near+8(FP), R1
	MOVD next+16(FP), R2
	MOVD labels+24(FP), R3
	MOVD weights+32(FP), R4
	MOVD blocks+40(FP), R5
	MOVD table+48(FP), R6
	MOVD base+56(FP), R7
	VLD1 (R7), [V24.D2, V25.D2, V26.D2, V27.D2]

block:
	VLD1.P 32(R0), [V0.S4, V1.S4]
	VLD1.P 32(R1), [V2.S4, V3.S4]
	VLD1.P 32(R2), [V4.S4, V5.S4]
	FMIN4S(0, 4, 4)
	FMIN4S(1, 5, 5)
	FMAX4S(2, 4, 4)
	FMAX4S(3, 5, 5)
	FMIN4S(2, 0, 0)
	FMIN4S(3, 1, 1)
	WIDEN(4, 5, 16, 17, 18, 19)
	WIDEN(2, 3, 20, 21, 22, 23)
	FSUB2D(20, 16, 16)
	FSUB2D(21, 17, 17)
	FSUB2D(22, 18, 18)
	FSUB2D(23, 19, 19)
	WIDEN(0, 1, 20, 21, 22, 23)
	CBZ R4, add
	VLD1.P 64(R4), [V0.D2, V1.D2, V2.D2, V3.D2]
	FMUL2D(0, 16, 16)
	FMUL2D(1, 17, 17)
	FMUL2D(2, 18, 18)
	FMUL2D(3, 19, 19)
	FMUL2D(0, 20, 20)
	FMUL2D(1, 21, 21)
	FMUL2D(2, 22, 22)
	FMUL2D(3, 23, 23)

add:
	FADD2D(20, 24, 24)
	FADD2D(21, 25, 25)
	FADD2D(22, 26, 26)
	FADD2D(23, 27, 27)
	MOVHU.P 2(R3), R8
	ADD     R8<<6, R6, R8
	FMOVD   0(R8), F28
	FADDD   F16, F28, F28
	FMOVD   F28, 0(R8)
	VDUP    V16.D[1], V16.D2
	MOVHU.P 2(R3), R8
	ADD     R8<<6, R6, R8
	FMOVD   8(R8), F28
	FADDD   F16, F28, F28
	FMOVD   F28, 8(R8)
	MOVHU.P 2(R3), R8
	ADD     R8<<6, R6, R8
	FMOVD   16(R8), F28
	FADDD   F17, F28, F28
	FMOVD   F28, 16(R8)
	VDUP    V17.D[1], V17.D2
	MOVHU.P 2(R3), R8
	ADD     R8<<6, R6, R8
	FMOVD   24(R8), F28
	FADDD   F17, F28, F28
	FMOVD   F28, 24(R8)
	MOVHU.P 2(R3), R8
	ADD     R8<<6, R6, R8
	FMOVD   32(R8), F28
	FADDD   F18, F28, F28
	FMOVD   F28, 32(R8)
	VDUP    V18.D[1], V18.D2
	MOVHU.P 2(R3), R8
	ADD     R8<<6, R6, R8
	FMOVD   40(R8), F28
	FADDD   F18, F28, F28
	FMOVD   F28, 40(R8)
	MOVHU.P 2(R3), R8
	ADD     R8<<6, R6, R8
	FMOVD   48(R8), F28
	FADDD   F19, F28, F28
	FMOVD   F28, 48(R8)
	VDUP    V19.D[1], V19.D2
	MOVHU.P 2(R3), R8
	ADD     R8<<6, R6, R8
	FMOVD   56(R8), F28
	FADDD   F19, F28, F28
	FMOVD   F28, 56(R8)
	SUBS    $1, R5, R5
	BNE     block
	VST1    [V24.D2, V25.D2, V26.D2, V27.D2], (R7)
	RET

// func RootsNEON(dist *float32, panels int, most float32)
TEXT ·RootsNEON(SB), NOSPLIT, $0-20
	MOVD  dist+0(FP), R0
	MOVD  panels+8(FP), R1
	MOVWU most+16(FP), R2
	VDUP  R2, V30.S4

loop:
	VLD1 (R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	FSQRT4S(0, 0)
	FSQRT4S(1, 1)
	FSQRT4S(2, 2)
	FSQRT4S(3, 3)
	FMIN4S(30, 0, 0)
	FMIN4S(30, 1, 1)
	FMIN4S(30, 2, 2)
	FMIN4S(30, 3, 3)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	SUBS   $1, R1, R1
	BNE    loop
	RET

// func SquaresNEON(dist *float32, panels int, most float32)
TEXT ·SquaresNEON(SB), NOSPLIT, $0-20
	MOVD  dist+0(FP), R0
	MOVD  panels+8(FP), R1
	MOVWU most+16(FP), R2
	VDUP  R2, V30.S4

loop:
	VLD1 (R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	FMIN4S(30, 0, 0)
	FMIN4S(30, 1, 1)
	FMIN4S(30, 2, 2)
	FMIN4S(30, 3, 3)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	SUBS   $1, R1, R1
	BNE    loop
	RET
