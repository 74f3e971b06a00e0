//go:build arm64 && !purego

// The least of many inner products, eight side by side.

#include "textflag.h"
#include "neon_arm64.h"

// OFFER replaces best by v, and index by the start of the block (V20), where v is
// strictly smaller.
#define OFFER(v, vv, b, best, index)     \
	FCMGT2D(v, b, 8)                       \
	VBIT V8.B16, vv.B16, best.B16          \
	VBIT V8.B16, V20.B16, index.B16

DATA places<>+0(SB)/8, $0
DATA places<>+8(SB)/8, $1
DATA places<>+16(SB)/8, $2
DATA places<>+24(SB)/8, $3
DATA places<>+32(SB)/8, $4
DATA places<>+40(SB)/8, $5
DATA places<>+48(SB)/8, $6
DATA places<>+56(SB)/8, $7
GLOBL places<>(SB), RODATA|NOPTR, $64

// func LeastDotNEON(x *float64, stride int, blocks int, coef *float64, d int, least *float64, at *int64)
TEXT ·LeastDotNEON(SB), NOSPLIT, $0-56
	MOVD x+0(FP), R0
	MOVD stride+8(FP), R1
	LSL  $3, R1, R1
	MOVD blocks+16(FP), R2
	MOVD coef+24(FP), R3
	MOVD d+32(FP), R4
	MOVD least+40(FP), R5
	MOVD at+48(FP), R6
	MOVD $0x7ff0000000000000, R7
	VDUP R7, V12.D2
	VDUP R7, V13.D2
	VDUP R7, V14.D2
	VDUP R7, V15.D2
	VEOR V16.B16, V16.B16, V16.B16
	VEOR V17.B16, V17.B16, V17.B16
	VEOR V18.B16, V18.B16, V18.B16
	VEOR V19.B16, V19.B16, V19.B16
	VEOR V20.B16, V20.B16, V20.B16
	MOVD $8, R7
	VDUP R7, V21.D2

block:
	MOVD R0, R8
	MOVD R3, R9
	MOVD R4, R10
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

term:
	VLD1    (R8), [V4.D2, V5.D2, V6.D2, V7.D2]
	VLD1R.P 8(R9), [V8.D2]
	ADD     R1, R8, R8
	VFMLA   V8.D2, V4.D2, V0.D2
	VFMLA   V8.D2, V5.D2, V1.D2
	VFMLA   V8.D2, V6.D2, V2.D2
	VFMLA   V8.D2, V7.D2, V3.D2
	SUBS    $1, R10, R10
	BNE     term
	OFFER(0, V0, 12, V12, V16)
	OFFER(1, V1, 13, V13, V17)
	OFFER(2, V2, 14, V14, V18)
	OFFER(3, V3, 15, V15, V19)
	VADD V21.D2, V20.D2, V20.D2
	ADD  $64, R0, R0
	SUBS $1, R2, R2
	BNE  block

	MOVD $places<>(SB), R7
	VLD1 (R7), [V0.D2, V1.D2, V2.D2, V3.D2]
	VADD V0.D2, V16.D2, V16.D2
	VADD V1.D2, V17.D2, V17.D2
	VADD V2.D2, V18.D2, V18.D2
	VADD V3.D2, V19.D2, V19.D2
	VST1 [V12.D2, V13.D2, V14.D2, V15.D2], (R5)
	VST1 [V16.D2, V17.D2, V18.D2, V19.D2], (R6)
	RET
