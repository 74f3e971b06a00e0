//go:build arm64 && !purego

// Element-wise addition over blocks of 64 bytes.

#include "textflag.h"

// func AddUint64NEON(dst, a *uint64, blocks int)
TEXT ·AddUint64NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD a+8(FP), R1
	MOVD blocks+16(FP), R2

loop:
	VLD1   (R0), [V0.D2, V1.D2, V2.D2, V3.D2]
	VLD1.P 64(R1), [V4.D2, V5.D2, V6.D2, V7.D2]
	VADD   V4.D2, V0.D2, V0.D2
	VADD   V5.D2, V1.D2, V1.D2
	VADD   V6.D2, V2.D2, V2.D2
	VADD   V7.D2, V3.D2, V3.D2
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	SUBS   $1, R2, R2
	BNE    loop
	RET
