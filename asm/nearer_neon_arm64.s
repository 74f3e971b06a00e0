//go:build arm64 && !purego

// Sums of distances to the nearest of several centres and a candidate.

#include "textflag.h"
#include "neon_arm64.h"

// DISTANCES sets V0 to V3 to the smaller of nearest at R5 and the squared distances of
// the panel at R0 to the point at R3 of R2 dimensions; R0 moves on to the next.
#define DISTANCES(label) \
	MOVD R3, R8 \
	MOVD R2, R11 \
	VEOR V0.B16, V0.B16, V0.B16 \
	VEOR V1.B16, V1.B16, V1.B16 \
	VEOR V2.B16, V2.B16, V2.B16 \
	VEOR V3.B16, V3.B16, V3.B16 \
label: \
	VLD1.P  64(R0), [V4.S4, V5.S4, V6.S4, V7.S4] \
	VLD1R.P 4(R8), [V8.S4] \
	FSUB4S(8, 4, 4) \
	FSUB4S(8, 5, 5) \
	FSUB4S(8, 6, 6) \
	FSUB4S(8, 7, 7) \
	VFMLA V4.S4, V4.S4, V0.S4 \
	VFMLA V5.S4, V5.S4, V1.S4 \
	VFMLA V6.S4, V6.S4, V2.S4 \
	VFMLA V7.S4, V7.S4, V3.S4 \
	SUBS  $1, R11, R11 \
	BNE   label \
	VLD1  (R5), [V12.S4, V13.S4, V14.S4, V15.S4] \
	FMIN4S(12, 0, 0) \
	FMIN4S(13, 1, 1) \
	FMIN4S(14, 2, 2) \
	FMIN4S(15, 3, 3)

// ADDWIDE adds four float32 to two chains of two float64.
#define ADDWIDE(v, low, high) \
	FCVTL2S(v, 9) \
	FCVTL4S(v, 10) \
	FADD2D(9, low, low) \
	FADD2D(10, high, high)

// func NearestSumNEON(x *float32, panels, d int, c, nearest *float32, sums *[16]float64)
TEXT ·NearestSumNEON(SB), NOSPLIT, $0-48
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD c+24(FP), R3
	MOVD nearest+32(FP), R5
	MOVD sums+40(FP), R6
	ADD  $64, R6, R7
	VLD1 (R6), [V16.D2, V17.D2, V18.D2, V19.D2]
	VLD1 (R7), [V20.D2, V21.D2, V22.D2, V23.D2]

panel:
	DISTANCES(dimension)
	ADD  $64, R5, R5
	ADDWIDE(0, 16, 17)
	ADDWIDE(1, 18, 19)
	ADDWIDE(2, 20, 21)
	ADDWIDE(3, 22, 23)
	SUBS $1, R1, R1
	BNE  panel
	VST1 [V16.D2, V17.D2, V18.D2, V19.D2], (R6)
	VST1 [V20.D2, V21.D2, V22.D2, V23.D2], (R7)
	RET

// func NearerNEON(x *float32, panels, d int, c, nearest *float32)
TEXT ·NearerNEON(SB), NOSPLIT, $0-40
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD c+24(FP), R3
	MOVD nearest+32(FP), R5

panel:
	DISTANCES(dimension)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R5)
	SUBS   $1, R1, R1
	BNE    panel
	RET
