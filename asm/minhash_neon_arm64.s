//go:build arm64 && !purego

// Minimum of AES-128 over blocks, eight blocks in flight. AESE adds a round key
// before the substitution, so the last key is added by itself.

#include "textflag.h"
#include "neon_arm64.h"

#define ROUND(key, vx)        \
	AESE  key.B16, vx.B16  \
	AESMC vx.B16, vx.B16

#define ROUND8(key) \
	ROUND(key, V0)    \
	ROUND(key, V1)    \
	ROUND(key, V2)    \
	ROUND(key, V3)    \
	ROUND(key, V9)    \
	ROUND(key, V10)   \
	ROUND(key, V11)   \
	ROUND(key, V12)

#define LAST(vx)               \
	AESE V25.B16, vx.B16       \
	VEOR V26.B16, vx.B16, vx.B16

// LEAST keeps the smaller 64-bit halves of x and least.
#define LEAST(x, vx, least, vleast)       \
	CMHI2D(x, least, 8)          \
	VBIT V8.B16, vx.B16, vleast.B16

// func MinHashNEON(schedule *[44]uint32, blocks *[16]byte, n int, dst *[2]uint64)
TEXT ·MinHashNEON(SB), NOSPLIT, $0-32
	MOVD schedule+0(FP), R0
	MOVD blocks+8(FP), R1
	MOVD n+16(FP), R2
	MOVD dst+24(FP), R3
	VLD1.P 64(R0), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1.P 64(R0), [V20.B16, V21.B16, V22.B16, V23.B16]
	VLD1   (R0), [V24.B16, V25.B16, V26.B16]
	VLD1   (R3), [V4.B16]
	VMOV   V4.B16, V5.B16
	VMOV   V4.B16, V6.B16
	VMOV   V4.B16, V7.B16

group:
	CMP  $8, R2
	BLT  rest
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]
	VLD1.P 64(R1), [V9.B16, V10.B16, V11.B16, V12.B16]
	ROUND8(V16)
	ROUND8(V17)
	ROUND8(V18)
	ROUND8(V19)
	ROUND8(V20)
	ROUND8(V21)
	ROUND8(V22)
	ROUND8(V23)
	ROUND8(V24)
	LAST(V0)
	LAST(V1)
	LAST(V2)
	LAST(V3)
	LAST(V9)
	LAST(V10)
	LAST(V11)
	LAST(V12)
	LEAST(0, V0, 4, V4)
	LEAST(1, V1, 5, V5)
	LEAST(2, V2, 6, V6)
	LEAST(3, V3, 7, V7)
	LEAST(9, V9, 4, V4)
	LEAST(10, V10, 5, V5)
	LEAST(11, V11, 6, V6)
	LEAST(12, V12, 7, V7)
	SUB $8, R2, R2
	B   group

rest:
	CBZ R2, reduce
	VLD1.P 16(R1), [V0.B16]
	ROUND(V16, V0)
	ROUND(V17, V0)
	ROUND(V18, V0)
	ROUND(V19, V0)
	ROUND(V20, V0)
	ROUND(V21, V0)
	ROUND(V22, V0)
	ROUND(V23, V0)
	ROUND(V24, V0)
	LAST(V0)
	LEAST(0, V0, 4, V4)
	SUB $1, R2, R2
	B   rest

reduce:
	LEAST(5, V5, 4, V4)
	LEAST(6, V6, 4, V4)
	LEAST(7, V7, 4, V4)
	VST1 [V4.B16], (R3)
	RET
