//go:build arm64 && !purego

// The arrivals of eight records: AES-128 of their blocks, the logarithm of the first
// halves, two float64 to a vector, and the scaled second halves.

#include "textflag.h"
#include "neon_arm64.h"

DATA draw<>+0(SB)/8, $0x3ff0000000000000 // 1
DATA draw<>+8(SB)/8, $0x3fefffffffffffff // 1 - 2^-53
DATA draw<>+16(SB)/8, $0x00095f619980c433 // the bits of 1 less those of sqrt(1/2)
DATA draw<>+24(SB)/8, $0x000fffffffffffff // the bits below the exponent
DATA draw<>+32(SB)/8, $0x3fe6a09e667f3bcd // sqrt(1/2)
DATA draw<>+40(SB)/8, $0x4330000000000000 // 2^52
DATA draw<>+48(SB)/8, $0x43300000000003ff // 2^52 + 1023
DATA draw<>+56(SB)/8, $0x4000000000000000 // 2
DATA draw<>+64(SB)/8, $0x3fe62e42fefa39ef // ln 2
DATA draw<>+72(SB)/8, $0x3fc2f112df3e5244
DATA draw<>+80(SB)/8, $0x3fc39a09d078c69f
DATA draw<>+88(SB)/8, $0x3fc7466496cb03de
DATA draw<>+96(SB)/8, $0x3fcc71c51d8e78af
DATA draw<>+104(SB)/8, $0x3fd2492494229359
DATA draw<>+112(SB)/8, $0x3fd999999997fa04
DATA draw<>+120(SB)/8, $0x3fe5555555555593
GLOBL draw<>(SB), RODATA|NOPTR, $128

// ROUND8 does one round of AES on V0 to V7 with the next round key. AESE adds the
// key before the substitution, so the last key is added by itself.
#define ROUND(vx)             \
	AESE  V8.B16, vx.B16 \
	AESMC vx.B16, vx.B16

#define ROUND8                  \
	VLD1.P 16(R7), [V8.B16] \
	ROUND(V0)               \
	ROUND(V1)               \
	ROUND(V2)               \
	ROUND(V3)               \
	ROUND(V4)               \
	ROUND(V5)               \
	ROUND(V6)               \
	ROUND(V7)

#define LAST(vx)              \
	AESE V8.B16, vx.B16   \
	VEOR V9.B16, vx.B16, vx.B16

// HORNER makes d = c + p z, z in V12.
#define HORNER(c, p, d)        \
	VORR  c.B16, c.B16, d.B16 \
	VFMLA V12.D2, p.D2, d.D2

// DRAW turns the blocks va and vb into two logarithms, which it adds to the next
// times by scale (V15), and two marks among the registers (V14).
#define DRAW(va, vb)                   \
	VUZP1 vb.D2, va.D2, V9.D2      \
	VUZP2 vb.D2, va.D2, V10.D2     \
	VUSHR $12, V9.D2, V9.D2        \
	VORR  V16.B16, V9.B16, V9.B16  \
	FSUB2D(17, 9, 9)               \
	VADD  V18.D2, V9.D2, V9.D2     \
	VUSHR $52, V9.D2, V11.D2       \
	VORR  V21.B16, V11.B16, V11.B16 \
	FSUB2D(22, 11, 11)             \
	VAND  V19.B16, V9.B16, V9.B16  \
	VADD  V20.D2, V9.D2, V9.D2     \
	FSUB2D(16, 9, 9)               \
	FADD2D(23, 9, 12)              \
	FDIV2D(12, 9, 9)               \
	FMUL2D(9, 9, 12)               \
	HORNER(V26, V25, V13)          \
	HORNER(V27, V13, V8)           \
	HORNER(V28, V8, V13)           \
	HORNER(V29, V13, V8)           \
	HORNER(V30, V8, V13)           \
	HORNER(V31, V13, V8)           \
	HORNER(V23, V8, V13)           \
	FMUL2D(13, 9, 9)               \
	VFMLA V24.D2, V11.D2, V9.D2    \
	VLD1  (R5), [V11.D2]           \
	VFMLA V15.D2, V9.D2, V11.D2    \
	VST1.P [V11.D2], 16(R5)        \
	XTN2S(10, 12)                  \
	VUSHR $32, V10.D2, V10.D2      \
	XTN2S(10, 13)                  \
	UMULL2D(14, 12, 12)            \
	UMULL2D(14, 13, 13)            \
	VUSHR $32, V12.D2, V12.D2      \
	VADD  V13.D2, V12.D2, V12.D2   \
	VUSHR $32, V12.D2, V12.D2      \
	XTN2S(12, 12)                  \
	VST1.P [V12.S2], 8(R6)

// func DrawNEON(schedule *[44]uint32, blocks *[2]uint64, n, registers int, scale float64, times *float64, marks *uint32)
TEXT ·DrawNEON(SB), NOSPLIT, $0-56
	MOVD  schedule+0(FP), R0
	MOVD  blocks+8(FP), R1
	MOVD  n+16(FP), R2
	MOVD  registers+24(FP), R3
	MOVD  scale+32(FP), R4
	MOVD  times+40(FP), R5
	MOVD  marks+48(FP), R6
	VDUP  R3, V14.S4
	VDUP  R4, V15.D2
	MOVD  $draw<>(SB), R8
	VLD1R.P 8(R8), [V16.D2]
	VLD1R.P 8(R8), [V17.D2]
	VLD1R.P 8(R8), [V18.D2]
	VLD1R.P 8(R8), [V19.D2]
	VLD1R.P 8(R8), [V20.D2]
	VLD1R.P 8(R8), [V21.D2]
	VLD1R.P 8(R8), [V22.D2]
	VLD1R.P 8(R8), [V23.D2]
	VLD1R.P 8(R8), [V24.D2]
	VLD1R.P 8(R8), [V25.D2]
	VLD1R.P 8(R8), [V26.D2]
	VLD1R.P 8(R8), [V27.D2]
	VLD1R.P 8(R8), [V28.D2]
	VLD1R.P 8(R8), [V29.D2]
	VLD1R.P 8(R8), [V30.D2]
	VLD1R.P 8(R8), [V31.D2]

group:
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]
	VLD1.P 64(R1), [V4.B16, V5.B16, V6.B16, V7.B16]
	MOVD   R0, R7
	ROUND8
	ROUND8
	ROUND8
	ROUND8
	ROUND8
	ROUND8
	ROUND8
	ROUND8
	ROUND8
	VLD1   (R7), [V8.B16, V9.B16]
	LAST(V0)
	LAST(V1)
	LAST(V2)
	LAST(V3)
	LAST(V4)
	LAST(V5)
	LAST(V6)
	LAST(V7)
	DRAW(V0, V1)
	DRAW(V2, V3)
	DRAW(V4, V5)
	DRAW(V6, V7)
	SUBS   $8, R2, R2
	BNE    group
	RET
