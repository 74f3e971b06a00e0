//go:build arm64 && !purego

// Centroids near each point, by the exact form.

#include "textflag.h"
#include "neon_arm64.h"

DATA weights<>+0(SB)/8, $0x0008000400020001
DATA weights<>+8(SB)/8, $0x0080004000200010
DATA weights<>+16(SB)/8, $0x0800040002000100
DATA weights<>+24(SB)/8, $0x8000400020001000
GLOBL weights<>(SB), RODATA|NOPTR, $32

// func WithinNEON(x *float32, panels, d int, c *float32, k int, limit *float32, masks *uint16)
TEXT ·WithinNEON(SB), NOSPLIT, $0-56
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD c+24(FP), R3
	MOVD k+32(FP), R4
	MOVD limit+40(FP), R5
	MOVD masks+48(FP), R6
	MOVD $weights<>(SB), R7
	VLD1 (R7), [V30.H8, V31.H8]

panel:
	VLD1.P 64(R5), [V12.S4, V13.S4, V14.S4, V15.S4]
	MOVD   R3, R8
	MOVD   R4, R9

centroid:
	MOVD R0, R10
	MOVD R2, R11
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

dimension:
	VLD1.P  64(R10), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1R.P 4(R8), [V8.S4]
	FSUB4S(8, 4, 4)
	FSUB4S(8, 5, 5)
	FSUB4S(8, 6, 6)
	FSUB4S(8, 7, 7)
	VFMLA V4.S4, V4.S4, V0.S4
	VFMLA V5.S4, V5.S4, V1.S4
	VFMLA V6.S4, V6.S4, V2.S4
	VFMLA V7.S4, V7.S4, V3.S4
	SUBS  $1, R11, R11
	BNE   dimension

	// One bit for each lane, added up.
	FCMGE4S(0, 12, 0)
	FCMGE4S(1, 13, 1)
	FCMGE4S(2, 14, 2)
	FCMGE4S(3, 15, 3)
	XTN4H(0, 4)
	XTN8H(1, 4)
	XTN4H(2, 5)
	XTN8H(3, 5)
	VAND V30.B16, V4.B16, V4.B16
	VAND V31.B16, V5.B16, V5.B16
	VORR V5.B16, V4.B16, V4.B16
	VADDV V4.H8, V4
	VMOV V4.H[0], R12
	MOVH.P R12, 2(R6)
	SUBS $1, R9, R9
	BNE  centroid
	MOVD R10, R0
	SUBS $1, R1, R1
	BNE  panel
	RET
