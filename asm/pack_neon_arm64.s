//go:build arm64 && !purego

// Rows to panels, in blocks of four points by four dimensions.

#include "textflag.h"
#include "neon_arm64.h"

// func PackNEON(dst, rows *float32, panels, d int)
TEXT ·PackNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD rows+8(FP), R1
	MOVD panels+16(FP), R2
	MOVD d+24(FP), R3
	LSL  $2, R3, R4       // bytes of a row

panel:
	MOVD $4, R5

quad:
	// R6 to R9: four rows, R10: their lanes in the panel.
	MOVD R1, R6
	ADD  R4, R6, R7
	ADD  R4, R7, R8
	ADD  R4, R8, R9
	MOVD R0, R10
	MOVD R3, R11

four:
	CMP    $4, R11
	BLT    last
	VLD1.P 16(R6), [V0.S4]
	VLD1.P 16(R7), [V1.S4]
	VLD1.P 16(R8), [V2.S4]
	VLD1.P 16(R9), [V3.S4]
	VTRN1  V1.S4, V0.S4, V16.S4
	VTRN2  V1.S4, V0.S4, V17.S4
	VTRN1  V3.S4, V2.S4, V18.S4
	VTRN2  V3.S4, V2.S4, V19.S4
	VTRN1  V18.D2, V16.D2, V4.D2
	VTRN1  V19.D2, V17.D2, V5.D2
	VTRN2  V18.D2, V16.D2, V6.D2
	VTRN2  V19.D2, V17.D2, V7.D2
	VST1   [V4.S4], (R10)
	ADD    $64, R10, R10
	VST1   [V5.S4], (R10)
	ADD    $64, R10, R10
	VST1   [V6.S4], (R10)
	ADD    $64, R10, R10
	VST1   [V7.S4], (R10)
	ADD    $64, R10, R10
	SUB    $4, R11, R11
	B      four

last:
	CBZ     R11, next
	MOVWU.P 4(R6), R12
	MOVW    R12, (R10)
	MOVWU.P 4(R7), R12
	MOVW    R12, 4(R10)
	MOVWU.P 4(R8), R12
	MOVW    R12, 8(R10)
	MOVWU.P 4(R9), R12
	MOVW    R12, 12(R10)
	ADD     $64, R10, R10
	SUB     $1, R11, R11
	B       last

next:
	ADD  R4<<2, R1, R1
	ADD  $16, R0, R0
	SUBS $1, R5, R5
	BNE  quad
	SUB  $64, R0, R0
	ADD  R3<<6, R0, R0
	SUBS $1, R2, R2
	BNE  panel
	RET
