//go:build arm64 && !purego

// What a new assignment changes, and how far it is from changing.

#include "textflag.h"
#include "neon_arm64.h"

// func ChangedLabelsNEON(before *uint16, now *uint16, blocks int, masks *uint32)
TEXT ·ChangedLabelsNEON(SB), NOSPLIT, $0-32
	MOVD before+0(FP), R0
	MOVD now+8(FP), R1
	MOVD blocks+16(FP), R2
	MOVD masks+24(FP), R3
	MOVD $0x8040201008040201, R4
	VDUP R4, V30.D2

loop:
	VLD1.P 64(R0), [V0.H8, V1.H8, V2.H8, V3.H8]
	VLD1.P 64(R1), [V4.H8, V5.H8, V6.H8, V7.H8]
	VCMEQ  V4.H8, V0.H8, V0.H8
	VCMEQ  V5.H8, V1.H8, V1.H8
	VCMEQ  V6.H8, V2.H8, V2.H8
	VCMEQ  V7.H8, V3.H8, V3.H8

	// One byte for each label, one bit in it, and the bits added up.
	VUZP1  V1.B16, V0.B16, V0.B16
	VUZP1  V3.B16, V2.B16, V2.B16
	VAND   V30.B16, V0.B16, V0.B16
	VAND   V30.B16, V2.B16, V2.B16
	VADDP  V2.B16, V0.B16, V0.B16
	VADDP  V0.B16, V0.B16, V0.B16
	VADDP  V0.B16, V0.B16, V0.B16
	VMOV   V0.S[0], R4
	MVNW   R4, R4
	MOVW.P R4, 4(R3)
	SUBS   $1, R2, R2
	BNE    loop
	RET

// func DistanceBoundsNEON(dist *float32, second *float32, blocks int, bounds *[4]float32)
TEXT ·DistanceBoundsNEON(SB), NOSPLIT, $0-32
	MOVD dist+0(FP), R0
	MOVD second+8(FP), R1
	MOVD blocks+16(FP), R2
	MOVD bounds+24(FP), R3
	MOVD $0x7f800000, R5
	MOVD $0xff800000, R6

block:
	// The smallest second-dist in V16 and V17, the largest second in V18 and V19,
	// the largest dist in V20 and V21.
	MOVD $8, R4
	VDUP R5, V16.S4
	VDUP R5, V17.S4
	VDUP R6, V18.S4
	VDUP R6, V19.S4
	VDUP R6, V20.S4
	VDUP R6, V21.S4

panel:
	VLD1.P 64(R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]
	FMAX4S(4, 18, 18)
	FMAX4S(5, 19, 19)
	FMAX4S(6, 18, 18)
	FMAX4S(7, 19, 19)
	FMAX4S(0, 20, 20)
	FMAX4S(1, 21, 21)
	FMAX4S(2, 20, 20)
	FMAX4S(3, 21, 21)
	FSUB4S(0, 4, 4)
	FSUB4S(1, 5, 5)
	FSUB4S(2, 6, 6)
	FSUB4S(3, 7, 7)
	FMIN4S(4, 16, 16)
	FMIN4S(5, 17, 17)
	FMIN4S(6, 16, 16)
	FMIN4S(7, 17, 17)
	SUBS $1, R4, R4
	BNE  panel
	FMIN4S(17, 16, 16)
	FMAX4S(19, 18, 18)
	FMAX4S(21, 20, 20)
	FMINV4S(16, 0)
	FMAXV4S(18, 1)
	FMAXV4S(20, 2)
	FMOVS F0, (R3)
	FMOVS F1, 4(R3)
	FMOVS F2, 8(R3)
	ADD   $16, R3, R3
	SUBS  $1, R2, R2
	BNE   block
	RET
