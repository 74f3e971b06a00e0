//go:build arm64 && !purego

// The candidate filter, by signed products of bytes: four to a lane of 32 bits, and
// four lanes an instruction.

#include "textflag.h"
#include "neon_arm64.h"

// PRODUCTS adds the products of a word of a centroid, word i of V22, with those of 16
// points in V16 to V19.
#define PRODUCTS(i, a, b, c, d) \
	SDOT4SI(i, 22, 16, a) \
	SDOT4SI(i, 22, 17, b) \
	SDOT4SI(i, 22, 18, c) \
	SDOT4SI(i, 22, 19, d)

// LEAST leaves the least of four scores in a.
#define LEAST(a, b, c, d) \
	SMIN4S(b, a, a) \
	SMIN4S(d, c, c) \
	SMIN4S(c, a, a)

// FOUR writes the scores of four centroids, the words of which begin at R11 and what
// their sums begin with at R3, and leaves the least in V0 to V3.
#define FOUR(words)                                     \
	VLD1.P 16(R3), [V21.S4]                               \
	VDUP   V21.S[0], V0.S4                                \
	VDUP   V21.S[1], V4.S4                                \
	VDUP   V21.S[2], V8.S4                                \
	VDUP   V21.S[3], V12.S4                               \
	VMOV   V0.B16, V1.B16                                 \
	VMOV   V0.B16, V2.B16                                 \
	VMOV   V0.B16, V3.B16                                 \
	VMOV   V4.B16, V5.B16                                 \
	VMOV   V4.B16, V6.B16                                 \
	VMOV   V4.B16, V7.B16                                 \
	VMOV   V8.B16, V9.B16                                 \
	VMOV   V8.B16, V10.B16                                \
	VMOV   V8.B16, V11.B16                                \
	VMOV   V12.B16, V13.B16                               \
	VMOV   V12.B16, V14.B16                               \
	VMOV   V12.B16, V15.B16                               \
	MOVD   R0, R10                                        \
	MOVD   R1, R12                                        \
words:                                                  \
	VLD1.P 64(R10), [V16.B16, V17.B16, V18.B16, V19.B16]  \
	VLD1   (R11), [V22.B16]                               \
	ADD    $32, R11, R11                                  \
	VEOR   V28.B16, V16.B16, V16.B16                      \
	VEOR   V28.B16, V17.B16, V17.B16                      \
	VEOR   V28.B16, V18.B16, V18.B16                      \
	VEOR   V28.B16, V19.B16, V19.B16                      \
	PRODUCTS(0, 0, 1, 2, 3)                               \
	PRODUCTS(1, 4, 5, 6, 7)                               \
	PRODUCTS(2, 8, 9, 10, 11)                             \
	PRODUCTS(3, 12, 13, 14, 15)                           \
	SUBS   $1, R12, R12                                   \
	BNE    words                                          \
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R5)           \
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R5)           \
	VST1.P [V8.S4, V9.S4, V10.S4, V11.S4], 64(R5)         \
	VST1.P [V12.S4, V13.S4, V14.S4, V15.S4], 64(R5)       \
	LEAST(0, 4, 8, 12)                                    \
	LEAST(1, 5, 9, 13)                                    \
	LEAST(2, 6, 10, 14)                                   \
	LEAST(3, 7, 11, 15)

// func FilterBytes1DOT(x *byte, words int, c *byte, base *int32, tiles int, scores, least, best *int32)
TEXT ·FilterBytes1DOT(SB), NOSPLIT, $0-64
	MOVD  x+0(FP), R0
	MOVD  words+8(FP), R1
	MOVD  c+16(FP), R2
	MOVD  base+24(FP), R3
	MOVD  tiles+32(FP), R4
	MOVD  $0x80, R5
	VDUP  R5, V28.B16
	MOVD  scores+40(FP), R5
	MOVD  least+48(FP), R6
	MOVD  best+56(FP), R7

tile:
	MOVD  R2, R11
	FOUR(low)
	VMOV  V0.B16, V23.B16
	VMOV  V1.B16, V24.B16
	VMOV  V2.B16, V25.B16
	VMOV  V3.B16, V26.B16
	ADD   $16, R2, R11
	FOUR(high)
	SMIN4S(23, 0, 0)
	SMIN4S(24, 1, 1)
	SMIN4S(25, 2, 2)
	SMIN4S(26, 3, 3)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R6)
	VLD1  (R7), [V4.S4, V5.S4, V6.S4, V7.S4]
	SMIN4S(4, 0, 0)
	SMIN4S(5, 1, 1)
	SMIN4S(6, 2, 2)
	SMIN4S(7, 3, 3)
	VST1  [V0.S4, V1.S4, V2.S4, V3.S4], (R7)
	ADD   R1<<5, R2, R2
	SUBS  $1, R4, R4
	BNE   tile
	RET

// PAIRS adds the products of the two centroids in m with the eight points in V16 to V19.
#define PAIRS(m, a, b, c, d) \
	USMMLA(m, 16, a) \
	USMMLA(m, 17, b) \
	USMMLA(m, 18, c) \
	USMMLA(m, 19, d)

// TWO writes the scores of eight points and two centroids, the sums of pairs of points
// in a to d, and lowers V26 and V27 to them.
#define TWO(a, b, c, d)                \
	UZP14S(b, a, 20)                     \
	UZP14S(d, c, 21)                     \
	UZP24S(b, a, 22)                     \
	UZP24S(d, c, 23)                     \
	VST1.P [V20.S4, V21.S4], (R14)(R15)  \
	VST1.P [V22.S4, V23.S4], (R14)(R15)  \
	SMIN4S(20, 26, 26)                   \
	SMIN4S(21, 27, 27)                   \
	SMIN4S(22, 26, 26)                   \
	SMIN4S(23, 27, 27)

// func FilterBytes1I8MM(x *byte, words int, c *byte, base *int32, tiles int, scores, least, best *int32)
TEXT ·FilterBytes1I8MM(SB), NOSPLIT, $0-64
	MOVD  x+0(FP), R0
	MOVD  words+8(FP), R1
	MOVD  c+16(FP), R2
	MOVD  base+24(FP), R3
	MOVD  tiles+32(FP), R4
	MOVD  scores+40(FP), R5
	MOVD  least+48(FP), R6
	MOVD  best+56(FP), R7
	MOVD  $64, R15

tile:
	VLD1.P 32(R3), [V24.S4, V25.S4]
	MOVD   R0, R8
	MOVD   $2, R9

eight:  // points
	VDUP V24.D[0], V0.D2
	VDUP V24.D[1], V4.D2
	VDUP V25.D[0], V8.D2
	VDUP V25.D[1], V12.D2
	VMOV V0.B16, V1.B16
	VMOV V0.B16, V2.B16
	VMOV V0.B16, V3.B16
	VMOV V4.B16, V5.B16
	VMOV V4.B16, V6.B16
	VMOV V4.B16, V7.B16
	VMOV V8.B16, V9.B16
	VMOV V8.B16, V10.B16
	VMOV V8.B16, V11.B16
	VMOV V12.B16, V13.B16
	VMOV V12.B16, V14.B16
	VMOV V12.B16, V15.B16
	MOVD R8, R10
	MOVD R2, R11
	MOVD R1, R12

words:
	VLD1   (R10), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1.P 64(R11), [V20.B16, V21.B16, V22.B16, V23.B16]
	ADD    $128, R10, R10
	PAIRS(20, 0, 1, 2, 3)
	PAIRS(21, 4, 5, 6, 7)
	PAIRS(22, 8, 9, 10, 11)
	PAIRS(23, 12, 13, 14, 15)
	SUBS   $1, R12, R12
	BNE    words
	VLD1   (R7), [V16.S4, V17.S4]
	MOVD   R5, R14
	MOVD   $0x7fffffff, R12
	VDUP   R12, V26.S4
	VDUP   R12, V27.S4
	TWO(0, 1, 2, 3)
	TWO(4, 5, 6, 7)
	TWO(8, 9, 10, 11)
	TWO(12, 13, 14, 15)
	VST1.P [V26.S4, V27.S4], 32(R6)
	SMIN4S(16, 26, 26)
	SMIN4S(17, 27, 27)
	VST1.P [V26.S4, V27.S4], 32(R7)
	ADD    $64, R8, R8
	ADD    $32, R5, R5
	SUBS   $1, R9, R9
	BNE    eight
	MOVD   R11, R2
	ADD    $448, R5, R5
	SUB    $64, R7, R7
	SUBS   $1, R4, R4
	BNE    tile
	RET

// func FilterExactNEON(x, c *[4]*float32, d int, scores *[4]float32)
TEXT ·FilterExactNEON(SB), NOSPLIT, $0-32
	MOVD  x+0(FP), R0
	MOVD  c+8(FP), R1
	MOVD  d+16(FP), R2
	MOVD  scores+24(FP), R3
	LDP   (R0), (R4, R5)
	LDP   16(R0), (R6, R7)
	LDP   (R1), (R8, R9)
	LDP   16(R1), (R10, R11)
	FMOVS (R3), F0
	FMOVS 4(R3), F1
	FMOVS 8(R3), F2
	FMOVS 12(R3), F3

dims:
	FMOVS.P 64(R4), F4
	FMOVS.P 64(R5), F5
	FMOVS.P 64(R6), F6
	FMOVS.P 64(R7), F7
	FMOVS.P 4(R8), F8
	FMOVS.P 4(R9), F9
	FMOVS.P 4(R10), F10
	FMOVS.P 4(R11), F11
	FMSUBS  F8, F0, F4, F0
	FMSUBS  F9, F1, F5, F1
	FMSUBS  F10, F2, F6, F2
	FMSUBS  F11, F3, F7, F3
	SUBS    $1, R2, R2
	BNE     dims
	FMOVS F0, (R3)
	FMOVS F1, 4(R3)
	FMOVS F2, 8(R3)
	FMOVS F3, 12(R3)
	RET
