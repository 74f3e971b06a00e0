//go:build arm64 && !purego

// Records to the grid.

#include "textflag.h"
#include "neon_arm64.h"

// MAP replaces lo by what v is mapped to and counts in V31 where v is outside. It
// overwrites hi; V24 and V25 are scratch. A NaN counts as below. V26 is all ones.
#define MAP(v, lo, ll, hi, width)    \
	FCMGE2D(lo, v, 24)                 \
	VEOR V26.B16, V24.B16, V24.B16     \
	FCMGT2D(hi, v, 25)                 \
	FSUB2D(lo, v, lo)                  \
	FSUB2D(v, hi, hi)                  \
	FSUB2D(hi, lo, lo)                 \
	FDIV2D(width, lo, lo)              \
	VBIT V24.B16, V27.B16, ll.B16      \
	VBIT V25.B16, V28.B16, ll.B16      \
	VORR V25.B16, V24.B16, V24.B16     \
	VSUB V24.D2, V31.D2, V31.D2        \
	FMUL2D(30, lo, lo)                 \
	FCVTZS2D(lo, lo)                   \
	SCVTF2D(lo, lo)                    \
	FMUL2D(29, lo, lo)

// SETUP loads the arguments and the constants.
#define SETUP \
	MOVD  dst+0(FP), R0                \
	MOVD  src+8(FP), R1                \
	MOVD  periods+16(FP), R2           \
	MOVD  lo+24(FP), R3                \
	MOVD  hi+32(FP), R4                \
	MOVD  width+40(FP), R5             \
	MOVD  vectors+48(FP), R6           \
	FMOVD scale+56(FP), F0             \
	FMOVD $1.0, F28                    \
	FDIVD F0, F28, F29                 \
	VDUP  V0.D[0], V30.D2              \
	VDUP  V28.D[0], V28.D2             \
	VDUP  V29.D[0], V29.D2             \
	FMOVD $-1.0, F27                   \
	VDUP  V27.D[0], V27.D2             \
	VEOR  V31.B16, V31.B16, V31.B16    \
	VMOVI $255, V26.B16

// PERIOD starts a period.
#define PERIOD \
	MOVD R3, R7                        \
	MOVD R4, R8                        \
	MOVD R5, R9                        \
	MOVD R6, R10

// EIGHT maps the eight values in V0 to V3 and writes them.
#define EIGHT \
	VLD1.P 64(R7), [V4.D2, V5.D2, V6.D2, V7.D2]     \
	VLD1.P 64(R8), [V16.D2, V17.D2, V18.D2, V19.D2] \
	VLD1.P 64(R9), [V20.D2, V21.D2, V22.D2, V23.D2] \
	MAP(0, 4, V4, 16, 20)              \
	MAP(1, 5, V5, 17, 21)              \
	MAP(2, 6, V6, 18, 22)              \
	MAP(3, 7, V7, 19, 23)              \
	FCVTN2S(4, 0)                      \
	FCVTN4S(5, 0)                      \
	FCVTN2S(6, 1)                      \
	FCVTN4S(7, 1)                      \
	VST1.P [V0.S4, V1.S4], 32(R0)

// COUNT leaves the number of values outside in R0.
#define COUNT \
	VMOV V31.D[0], R0                  \
	VMOV V31.D[1], R1                  \
	ADD  R1, R0, R0

// func QuantiseNEON(dst *float32, src *float64, periods int, lo *float64, hi *float64, width *float64, vectors int, scale float64) int
TEXT ·QuantiseNEON(SB), NOSPLIT, $0-72
	SETUP

period:
	PERIOD

eight:
	VLD1.P 64(R1), [V0.D2, V1.D2, V2.D2, V3.D2]
	EIGHT
	SUBS   $1, R10, R10
	BNE    eight
	SUBS   $1, R2, R2
	BNE    period
	COUNT
	MOVD   R0, ret+64(FP)
	RET

// func QuantiseNarrowNEON(dst *float32, src *float32, periods int, lo *float64, hi *float64, width *float64, vectors int, scale float64) int
TEXT ·QuantiseNarrowNEON(SB), NOSPLIT, $0-72
	SETUP

period:
	PERIOD

eight:
	VLD1.P 32(R1), [V4.S4, V5.S4]
	FCVTL2S(4, 0)
	FCVTL4S(4, 1)
	FCVTL2S(5, 2)
	FCVTL4S(5, 3)
	EIGHT
	SUBS   $1, R10, R10
	BNE    eight
	SUBS   $1, R2, R2
	BNE    period
	COUNT
	MOVD   R0, ret+64(FP)
	RET
