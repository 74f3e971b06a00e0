//go:build arm64 && !purego

// Exact integer squared distances, in float64 over a bounded number of
// dimensions. A vector is two centroids; eight are computed side by side.

#include "textflag.h"
#include "neon_arm64.h"

// WIDEN writes the four float32 of n as float64 to R3.
#define WIDEN(n)                 \
	FCVTL2S(n, 4)                  \
	FCVTL4S(n, 5)                  \
	VST1.P [V4.D2, V5.D2], 32(R3)

// func CostPanelNEON(x *float32, dims int, wide *float64, first, lanes int, c *float64, stride, k int, scale float64, sum int64, dst *int64)
TEXT ·CostPanelNEON(SB), NOSPLIT, $64-88
	MOVD x+0(FP), R0
	MOVD dims+8(FP), R1
	MOVD wide+16(FP), R2
	MOVD R2, R3
	MOVD R1, R4

widen:
	VLD1.P 64(R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	WIDEN(0)
	WIDEN(1)
	WIDEN(2)
	WIDEN(3)
	SUBS $1, R4, R4
	BNE  widen

	MOVD first+24(FP), R3
	ADD  R3<<3, R2, R2
	MOVD lanes+32(FP), R3
	MOVD stride+48(FP), R5
	LSL  $3, R5, R5
	MOVD k+56(FP), R6
	MOVD scale+64(FP), R7
	VDUP R7, V30.D2
	MOVD sum+72(FP), R7
	MOVD dst+80(FP), R12
	MOVD $0x4338000000000000, R8 // 2^52 + 2^51: its low bits are integers
	VDUP R8, V31.D2
	MOVD $buf-64(SP), R16

lane:
	MOVD c+40(FP), R10
	MOVD R6, R11

eight:
	MOVD R10, R13
	MOVD R2, R14
	MOVD R1, R15
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

dimension:
	VLD1  (R13), [V4.D2, V5.D2, V6.D2, V7.D2]
	VLD1R (R14), [V8.D2]
	FSUB2D(8, 4, 4)
	FSUB2D(8, 5, 5)
	FSUB2D(8, 6, 6)
	FSUB2D(8, 7, 7)
	VFMLA V4.D2, V4.D2, V0.D2
	VFMLA V5.D2, V5.D2, V1.D2
	VFMLA V6.D2, V6.D2, V2.D2
	VFMLA V7.D2, V7.D2, V3.D2
	ADD   R5, R13, R13
	ADD   $128, R14, R14
	SUBS  $1, R15, R15
	BNE   dimension

#define INTEGER(v, vv)        \
	FMUL2D(30, v, v)            \
	FADD2D(31, v, v)            \
	VSUB V31.D2, vv.D2, vv.D2

	INTEGER(0, V0)
	INTEGER(1, V1)
	INTEGER(2, V2)
	INTEGER(3, V3)
	ADD  $64, R10, R10
	CMP  $8, R11
	BLT  few
	CBZ  R7, store
	VLD1 (R12), [V4.D2, V5.D2, V6.D2, V7.D2]
	VADD V4.D2, V0.D2, V0.D2
	VADD V5.D2, V1.D2, V1.D2
	VADD V6.D2, V2.D2, V2.D2
	VADD V7.D2, V3.D2, V3.D2

store:
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R12)
	SUBS   $8, R11, R11
	BNE    eight
	B      done

few:
	// The last centroids of the row go by way of the stack.
	VST1 [V0.D2, V1.D2, V2.D2, V3.D2], (R16)
	MOVD R16, R13

one:
	MOVD.P 8(R13), R14
	CBZ    R7, put
	MOVD   (R12), R15
	ADD    R15, R14, R14

put:
	MOVD.P R14, 8(R12)
	SUBS   $1, R11, R11
	BNE    one

done:
	ADD  $8, R2, R2
	SUBS $1, R3, R3
	BNE  lane
	RET
