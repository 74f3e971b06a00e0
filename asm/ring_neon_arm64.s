//go:build arm64 && !purego

// Element-wise kernels over blocks of 64 bytes.

#include "textflag.h"
#include "neon_arm64.h"

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

// func SubUint64NEON(dst, a *uint64, blocks int)
TEXT ·SubUint64NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD a+8(FP), R1
	MOVD blocks+16(FP), R2

loop:
	VLD1   (R0), [V0.D2, V1.D2, V2.D2, V3.D2]
	VLD1.P 64(R1), [V4.D2, V5.D2, V6.D2, V7.D2]
	VSUB   V4.D2, V0.D2, V0.D2
	VSUB   V5.D2, V1.D2, V1.D2
	VSUB   V6.D2, V2.D2, V2.D2
	VSUB   V7.D2, V3.D2, V3.D2
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	SUBS   $1, R2, R2
	BNE    loop
	RET

// func AddUint32NEON(dst, a *uint32, blocks int)
TEXT ·AddUint32NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD a+8(FP), R1
	MOVD blocks+16(FP), R2

loop:
	VLD1   (R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]
	VADD   V4.S4, V0.S4, V0.S4
	VADD   V5.S4, V1.S4, V1.S4
	VADD   V6.S4, V2.S4, V2.S4
	VADD   V7.S4, V3.S4, V3.S4
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	SUBS   $1, R2, R2
	BNE    loop
	RET

// func SubUint32NEON(dst, a *uint32, blocks int)
TEXT ·SubUint32NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD a+8(FP), R1
	MOVD blocks+16(FP), R2

loop:
	VLD1   (R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]
	VSUB   V4.S4, V0.S4, V0.S4
	VSUB   V5.S4, V1.S4, V1.S4
	VSUB   V6.S4, V2.S4, V2.S4
	VSUB   V7.S4, V3.S4, V3.S4
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	SUBS   $1, R2, R2
	BNE    loop
	RET

// FIX32 scales the vector v and clamps it to +-(2^31 - 2^7), the largest float below the
// range of the integers.
#define FIX32(v)            \
	FMUL4S(30, v, v)       \
	FMAX4S(29, v, v)       \
	FMIN4S(31, v, v)

// func ToFixed32NEON(dst *uint32, src *float32, blocks int, scale float32)
TEXT ·ToFixed32NEON(SB), NOSPLIT, $0-28
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD blocks+16(FP), R2
	MOVWU scale+24(FP), R3
	VDUP R3, V30.S4
	MOVD $0x4effffff, R3
	VDUP R3, V31.S4
	MOVD $0xceffffff, R3
	VDUP R3, V29.S4

loop:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	FIX32(0)
	FIX32(1)
	FIX32(2)
	FIX32(3)
	FCVTZS4S(0, 0)
	FCVTZS4S(1, 1)
	FCVTZS4S(2, 2)
	FCVTZS4S(3, 3)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	SUBS   $1, R2, R2
	BNE    loop
	RET

// func ToFixed32NearestNEON(dst *uint32, src *float32, blocks int, scale float32)
TEXT ·ToFixed32NearestNEON(SB), NOSPLIT, $0-28
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD blocks+16(FP), R2
	MOVWU scale+24(FP), R3
	VDUP R3, V30.S4
	MOVD $0x4effffff, R3
	VDUP R3, V31.S4
	MOVD $0xceffffff, R3
	VDUP R3, V29.S4

loop:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	FIX32(0)
	FIX32(1)
	FIX32(2)
	FIX32(3)
	FCVTNS4S(0, 0)
	FCVTNS4S(1, 1)
	FCVTNS4S(2, 2)
	FCVTNS4S(3, 3)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	SUBS   $1, R2, R2
	BNE    loop
	RET

// func FromFixed32NEON(dst *float32, src *uint32, blocks int, scale float32)
TEXT ·FromFixed32NEON(SB), NOSPLIT, $0-28
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD blocks+16(FP), R2
	MOVWU scale+24(FP), R3
	VDUP R3, V30.S4

loop:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	SCVTF4S(0, 0)
	FMUL4S(30, 0, 0)
	SCVTF4S(1, 1)
	FMUL4S(30, 1, 1)
	SCVTF4S(2, 2)
	FMUL4S(30, 2, 2)
	SCVTF4S(3, 3)
	FMUL4S(30, 3, 3)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	SUBS   $1, R2, R2
	BNE    loop
	RET

// FIX64 scales the vector v and clamps it to +-(2^63 - 2^10), the largest float below the
// range of the integers.
#define FIX64(v)            \
	FMUL2D(30, v, v)       \
	FMAX2D(29, v, v)       \
	FMIN2D(31, v, v)

// func ToFixed64NEON(dst *uint64, src *float64, blocks int, scale float64)
TEXT ·ToFixed64NEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD blocks+16(FP), R2
	MOVD scale+24(FP), R3
	VDUP R3, V30.D2
	MOVD $0x43dfffffffffffff, R3
	VDUP R3, V31.D2
	MOVD $0xc3dfffffffffffff, R3
	VDUP R3, V29.D2

loop:
	VLD1.P 64(R1), [V0.D2, V1.D2, V2.D2, V3.D2]
	FIX64(0)
	FIX64(1)
	FIX64(2)
	FIX64(3)
	FCVTZS2D(0, 0)
	FCVTZS2D(1, 1)
	FCVTZS2D(2, 2)
	FCVTZS2D(3, 3)
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	SUBS   $1, R2, R2
	BNE    loop
	RET

// func ToFixed64NearestNEON(dst *uint64, src *float64, blocks int, scale float64)
TEXT ·ToFixed64NearestNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD blocks+16(FP), R2
	MOVD scale+24(FP), R3
	VDUP R3, V30.D2
	MOVD $0x43dfffffffffffff, R3
	VDUP R3, V31.D2
	MOVD $0xc3dfffffffffffff, R3
	VDUP R3, V29.D2

loop:
	VLD1.P 64(R1), [V0.D2, V1.D2, V2.D2, V3.D2]
	FIX64(0)
	FIX64(1)
	FIX64(2)
	FIX64(3)
	FCVTNS2D(0, 0)
	FCVTNS2D(1, 1)
	FCVTNS2D(2, 2)
	FCVTNS2D(3, 3)
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	SUBS   $1, R2, R2
	BNE    loop
	RET

// func FromFixed64NEON(dst *float64, src *uint64, blocks int, scale float64)
TEXT ·FromFixed64NEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD blocks+16(FP), R2
	MOVD scale+24(FP), R3
	VDUP R3, V30.D2

loop:
	VLD1.P 64(R1), [V0.D2, V1.D2, V2.D2, V3.D2]
	SCVTF2D(0, 0)
	FMUL2D(30, 0, 0)
	SCVTF2D(1, 1)
	FMUL2D(30, 1, 1)
	SCVTF2D(2, 2)
	FMUL2D(30, 2, 2)
	SCVTF2D(3, 3)
	FMUL2D(30, 3, 3)
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	SUBS   $1, R2, R2
	BNE    loop
	RET
