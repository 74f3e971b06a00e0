//go:build arm64 && !purego

// Polynomials modulo primes below 2^30: see kernels/ntt. Registers are named by
// number. V31 holds the prime, V30 its inverse modulo 2^32, V29 and V28 the range
// of reductions and half of it; V24 and V25 are spoilt by products and reductions.

#include "textflag.h"
#include "neon_arm64.h"

#define PRIME(R)            \
	MOVWU 0(R), R9         \
	VDUP  R9, V31.S4       \
	MOVWU 4(R), R9         \
	VDUP  R9, V30.S4

#define REDUCTIONS(R, cap, half) \
	MOVWU cap(R), R9            \
	VDUP  R9, V29.S4            \
	MOVWU half(R), R9           \
	VDUP  R9, V28.S4

// The reductions of primes up to 2^30 and of those with lazy layers.
#define FULL(R) REDUCTIONS(R, 8, 0)
#define LAZY(R) REDUCTIONS(R, 12, 8)

// r = y w / 2^32 modulo the prime; r may be y. The low halves of y w and m q are
// equal, so the halved difference of the doubled high halves is exact.
#define MONT(y, w, r)       \
	MUL4S(w, y, 24)        \
	SQDMULH4S(w, y, r)     \
	MUL4S(30, 24, 24)      \
	SQDMULH4S(31, 24, 24)  \
	SHSUB4S(24, r, r)

#define REDUCE(x)           \
	ADD4S(29, x, 24)       \
	UMIN4S(24, x, x)       \
	SUB4S(28, x, x)

#define NOTHING(x)

// x in [-2q, 2q) to [0, q), and x in [-4q, 4q).
#define CANONICAL(x)        \
	ADD4S(29, x, 24)       \
	UMIN4S(24, x, x)       \
	SUB4S(31, x, 24)       \
	UMIN4S(24, x, x)

#define CANONICALLAZY(x)    \
	ADD4S(29, x, 24)       \
	UMIN4S(24, x, x)       \
	SUB4S(28, x, 24)       \
	UMIN4S(24, x, x)       \
	SUB4S(31, x, 24)       \
	UMIN4S(24, x, x)

// x in (-q, q) to [0, q).
#define POSITIVE(x)         \
	ADD4S(31, x, 24)       \
	UMIN4S(24, x, x)

#define BUTTERFLY(x, y, w)  \
	MONT(y, w, 25)         \
	SUB4S(25, x, y)        \
	ADD4S(25, x, x)

#define UNBUTTERFLY(x, y, w) \
	SUB4S(y, x, 25)         \
	ADD4S(y, x, x)          \
	REDUCE(x)               \
	MONT(25, w, y)

#define REVERSE(x)          \
	REV64S(x, x)           \
	EXT8(x, x, x)

// The first layer: R0 dst, R1 src, R2 words, R3 n. R4 and R5 walk up from 16 and
// n/2+16, R6 and R7 down to n/2-19 and n-19; R8 is dst - src.
#define FOLD(ranges, reduction)        \
	MOVD   dst+0(FP), R0              \
	MOVD   src+8(FP), R1              \
	MOVD   words+16(FP), R2           \
	MOVD   n+24(FP), R3               \
	PRIME(R2)                         \
	ranges(R2)                        \
	MOVWU  16(R2), R9                 \
	VDUP   R9, V27.S4                 \
	MOVWU  20(R2), R9                 \
	VDUP   R9, V26.S4                 \
	SUB    R1, R0, R8                 \
	ADD    $64, R1, R4                \
	ADD    R3<<1, R4, R5              \
	ADD    R3<<1, R1, R6              \
	SUB    $76, R6, R6                \
	ADD    R3<<2, R1, R7              \
	SUB    $76, R7, R7                \
	LSR    $4, R3, R3                 \
	SUB    $4, R3, R3                 \
loop:                                  \
	VLD1   (R4), [V0.S4]              \
	VLD1   (R7), [V1.S4]              \
	VLD1   (R6), [V2.S4]              \
	VLD1   (R5), [V3.S4]              \
	REVERSE(1)                        \
	REVERSE(2)                        \
	MONT(1, 27, 1)                    \
	MONT(3, 27, 3)                    \
	ADD4S(3, 2, 4)                    \
	ADD4S(1, 0, 5)                    \
	SUB4S(1, 0, 0)                    \
	SUB4S(3, 2, 2)                    \
	reduction(0)                      \
	reduction(2)                      \
	MONT(4, 26, 4)                    \
	MONT(5, 26, 5)                    \
	ADD4S(4, 0, 1)                    \
	SUB4S(4, 0, 3)                    \
	ADD4S(5, 2, 6)                    \
	SUB4S(5, 2, 7)                    \
	REVERSE(6)                        \
	REVERSE(7)                        \
	ADD    R8, R4, R9                 \
	VST1   [V1.S4], (R9)              \
	ADD    R8, R5, R9                 \
	VST1   [V3.S4], (R9)              \
	ADD    R8, R6, R9                 \
	VST1   [V6.S4], (R9)              \
	ADD    R8, R7, R9                 \
	VST1   [V7.S4], (R9)              \
	ADD    $16, R4, R4                \
	ADD    $16, R5, R5                \
	SUB    $16, R6, R6                \
	SUB    $16, R7, R7                \
	SUBS   $1, R3, R3                 \
	BNE    loop                       \
	RET

// The last layer of the way back: V27 unfold, V26 scale, V23 turned.
#define UNFOLD(end)                    \
	MOVD   a+0(FP), R1                \
	MOVD   words+8(FP), R2            \
	MOVD   n+16(FP), R3               \
	PRIME(R2)                         \
	FULL(R2)                          \
	MOVWU  24(R2), R9                 \
	VDUP   R9, V27.S4                 \
	MOVWU  scale+24(FP), R9           \
	VDUP   R9, V26.S4                 \
	MOVWU  turned+28(FP), R9          \
	VDUP   R9, V23.S4                 \
	ADD    $64, R1, R4                \
	ADD    R3<<1, R4, R5              \
	ADD    R3<<1, R1, R6              \
	SUB    $76, R6, R6                \
	ADD    R3<<2, R1, R7              \
	SUB    $76, R7, R7                \
	LSR    $4, R3, R3                 \
	SUB    $4, R3, R3                 \
loop:                                  \
	VLD1   (R4), [V0.S4]              \
	VLD1   (R7), [V1.S4]              \
	VLD1   (R6), [V2.S4]              \
	VLD1   (R5), [V3.S4]              \
	REVERSE(1)                        \
	REVERSE(2)                        \
	UNBUTTERFLY(0, 3, 27)             \
	UNBUTTERFLY(2, 1, 27)             \
	ADD4S(1, 0, 4)                    \
	SUB4S(0, 1, 5)                    \
	ADD4S(3, 2, 6)                    \
	SUB4S(2, 3, 7)                    \
	MONT(4, 26, 4)                    \
	MONT(5, 23, 5)                    \
	MONT(6, 26, 6)                    \
	MONT(7, 23, 7)                    \
	end(4)                            \
	end(5)                            \
	end(6)                            \
	end(7)                            \
	REVERSE(5)                        \
	REVERSE(6)                        \
	VST1   [V4.S4], (R4)              \
	VST1   [V5.S4], (R7)              \
	VST1   [V6.S4], (R6)              \
	VST1   [V7.S4], (R5)              \
	ADD    $16, R4, R4                \
	ADD    $16, R5, R5                \
	SUB    $16, R6, R6                \
	SUB    $16, R7, R7                \
	SUBS   $1, R3, R3                 \
	BNE    loop                       \
	RET

// One layer of blocks of 2t words.
#define FORWARDTWO                     \
	REDUCE(0)                         \
	BUTTERFLY(0, 1, 16)

#define INVERSETWO                     \
	UNBUTTERFLY(0, 1, 16)

#define LAYER(ranges, body)            \
	MOVD   a+0(FP), R0                \
	MOVD   w+8(FP), R1                \
	MOVD   words+16(FP), R2           \
	MOVD   blocks+24(FP), R3          \
	MOVD   t+32(FP), R4               \
	PRIME(R2)                         \
	ranges(R2)                        \
block:                                 \
	MOVWU.P 4(R1), R9                 \
	VDUP   R9, V16.S4                 \
	ADD    R4<<2, R0, R5              \
	LSR    $2, R4, R6                 \
vector:                                \
	VLD1   (R0), [V0.S4]              \
	VLD1   (R5), [V1.S4]              \
	body                              \
	VST1.P [V0.S4], 16(R0)            \
	VST1.P [V1.S4], 16(R5)            \
	SUBS   $1, R6, R6                 \
	BNE    vector                     \
	MOVD   R5, R0                     \
	SUBS   $1, R3, R3                 \
	BNE    block                      \
	RET

// Two layers of blocks of 4t words.
#define FORWARDFOUR                    \
	REDUCE(0)                         \
	REDUCE(1)                         \
	FORWARDFOURLAZY

#define FORWARDFOURLAZY                \
	BUTTERFLY(0, 2, 16)               \
	BUTTERFLY(1, 3, 16)               \
	REDUCE(0)                         \
	REDUCE(2)                         \
	BUTTERFLY(0, 1, 17)               \
	BUTTERFLY(2, 3, 18)

#define INVERSEFOUR                    \
	UNBUTTERFLY(0, 1, 17)             \
	UNBUTTERFLY(2, 3, 18)             \
	UNBUTTERFLY(0, 2, 16)             \
	UNBUTTERFLY(1, 3, 16)

#define LAYERS(ranges, body)           \
	MOVD   a+0(FP), R0                \
	MOVD   w+8(FP), R1                \
	MOVD   w2+16(FP), R10             \
	MOVD   words+24(FP), R2           \
	MOVD   blocks+32(FP), R3          \
	MOVD   t+40(FP), R4               \
	PRIME(R2)                         \
	ranges(R2)                        \
block:                                 \
	MOVWU.P 4(R1), R9                 \
	VDUP   R9, V16.S4                 \
	MOVWU.P 4(R10), R9                \
	VDUP   R9, V17.S4                 \
	MOVWU.P 4(R10), R9                \
	VDUP   R9, V18.S4                 \
	ADD    R4<<2, R0, R5              \
	ADD    R4<<2, R5, R7              \
	ADD    R4<<2, R7, R8              \
	LSR    $2, R4, R6                 \
vector:                                \
	VLD1   (R0), [V0.S4]              \
	VLD1   (R5), [V1.S4]              \
	VLD1   (R7), [V2.S4]              \
	VLD1   (R8), [V3.S4]              \
	body                              \
	VST1.P [V0.S4], 16(R0)            \
	VST1.P [V1.S4], 16(R5)            \
	VST1.P [V2.S4], 16(R7)            \
	VST1.P [V3.S4], 16(R8)            \
	SUBS   $1, R6, R6                 \
	BNE    vector                     \
	MOVD   R8, R0                     \
	SUBS   $1, R3, R3                 \
	BNE    block                      \
	RET

// The layers inside blocks of 32 words, V0 to V7. Of a pair of registers p, q the
// layers 2 and 1 see p, q as zipped by 64 and transposed by 32 bits.
#define WIDELAYERS(first, second)      \
	VLD1   (R1), [V16.S4, V17.S4, V18.S4, V19.S4] \
	VDUP   V16.S[1], V20.S4           \
	first(0)                          \
	first(1)                          \
	first(2)                          \
	first(3)                          \
	BUTTERFLY(0, 4, 20)               \
	BUTTERFLY(1, 5, 20)               \
	BUTTERFLY(2, 6, 20)               \
	BUTTERFLY(3, 7, 20)               \
	VDUP   V16.S[2], V20.S4           \
	VDUP   V16.S[3], V21.S4           \
	second(0)                         \
	second(1)                         \
	second(4)                         \
	second(5)                         \
	BUTTERFLY(0, 2, 20)               \
	BUTTERFLY(1, 3, 20)               \
	BUTTERFLY(4, 6, 21)               \
	BUTTERFLY(5, 7, 21)

#define NARROWLAYERS(p, q, lane, twos, zip, at, first, second, end) \
	VDUP   V17.S[lane], V20.S4        \
	first(p)                          \
	BUTTERFLY(p, q, 20)               \
	ZIP12D(q, p, 21)                  \
	ZIP22D(q, p, q)                   \
	zip(twos, twos, 20)               \
	second(21)                        \
	BUTTERFLY(21, q, 20)              \
	TRN14S(q, 21, p)                  \
	TRN24S(q, 21, q)                  \
	ADD    $at, R1, R9                \
	VLD1   (R9), [V20.S4]             \
	first(p)                          \
	BUTTERFLY(p, q, 20)               \
	ZIP14S(q, p, 21)                  \
	ZIP24S(q, p, q)                   \
	end(21)                           \
	end(q)                            \
	MOV16(21, p)

#define TAIL(ranges, first, second, end) \
	MOVD   a+0(FP), R0                \
	MOVD   tail+8(FP), R1             \
	MOVD   words+16(FP), R2           \
	MOVD   blocks+24(FP), R3          \
	PRIME(R2)                         \
	ranges(R2)                        \
loop:                                  \
	ADD    $64, R0, R5                \
	VLD1   (R0), [V0.S4, V1.S4, V2.S4, V3.S4] \
	VLD1   (R5), [V4.S4, V5.S4, V6.S4, V7.S4] \
	WIDELAYERS(first, second)         \
	NARROWLAYERS(0, 1, 0, 18, ZIP14S, 64, first, second, end) \
	NARROWLAYERS(2, 3, 1, 18, ZIP24S, 80, first, second, end) \
	NARROWLAYERS(4, 5, 2, 19, ZIP14S, 96, first, second, end) \
	NARROWLAYERS(6, 7, 3, 19, ZIP24S, 112, first, second, end) \
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0) \
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R0) \
	ADD    $128, R1, R1               \
	SUBS   $1, R3, R3                 \
	BNE    loop                       \
	RET

#define UNNARROW(p, q, lane, twos, zip, at) \
	UZP14S(q, p, 21)                  \
	UZP24S(q, p, q)                   \
	ADD    $at, R1, R9                \
	VLD1   (R9), [V20.S4]             \
	UNBUTTERFLY(21, q, 20)            \
	TRN14S(q, 21, p)                  \
	TRN24S(q, 21, q)                  \
	zip(twos, twos, 20)               \
	UNBUTTERFLY(p, q, 20)             \
	ZIP12D(q, p, 21)                  \
	ZIP22D(q, p, q)                   \
	VDUP   V17.S[lane], V20.S4        \
	UNBUTTERFLY(21, q, 20)            \
	MOV16(21, p)

// Loops over blocks of 16 words: body works on V0, with V1 where there is a second
// operand, V2 for what dst holds.
#define UNARY(read, body)              \
	MOVD   dst+0(FP), R0              \
	MOVD   a+8(FP), R1                \
	MOVD   words+16(FP), R2           \
	MOVD   blocks+24(FP), R3          \
	PRIME(R2)                         \
	FULL(R2)                          \
	MOVWU  c+32(FP), R9               \
	VDUP   R9, V16.S4                 \
	LSL    $2, R3, R3                 \
loop:                                  \
	VLD1.P 16(R1), [V0.S4]            \
	read                              \
	body                              \
	VST1.P [V0.S4], 16(R0)            \
	SUBS   $1, R3, R3                 \
	BNE    loop                       \
	RET

#define NOREAD
#define READDST VLD1 (R0), [V2.S4]

#define SCALE                          \
	MONT(0, 16, 0)

#define SCALEFULL                      \
	MONT(0, 16, 0)                    \
	POSITIVE(0)

#define SCALEADD                       \
	MONT(0, 16, 0)                    \
	ADD4S(2, 0, 0)                    \
	CANONICAL(0)

#define ADDSCALAR                      \
	ADD4S(16, 0, 0)                   \
	SUB4S(31, 0, 24)                  \
	UMIN4S(24, 0, 0)

#define BINARY(ranges, constant, read, body) \
	MOVD   dst+0(FP), R0              \
	MOVD   a+8(FP), R1                \
	MOVD   b+16(FP), R4               \
	MOVD   words+24(FP), R2           \
	MOVD   blocks+32(FP), R3          \
	PRIME(R2)                         \
	ranges(R2)                        \
	constant                          \
	LSL    $2, R3, R3                 \
loop:                                  \
	VLD1.P 16(R1), [V0.S4]            \
	VLD1.P 16(R4), [V1.S4]            \
	read                              \
	body                              \
	VST1.P [V0.S4], 16(R0)            \
	SUBS   $1, R3, R3                 \
	BNE    loop                       \
	RET

#define NOCONSTANT

#define CONSTANTC                      \
	MOVWU  c+40(FP), R9               \
	VDUP   R9, V16.S4

#define SUM                            \
	ADD4S(1, 0, 0)                    \
	SUB4S(31, 0, 24)                  \
	UMIN4S(24, 0, 0)

#define DIFFERENCE                     \
	SUB4S(1, 0, 0)                    \
	POSITIVE(0)

#define MULTIPLY                       \
	MONT(0, 1, 0)                     \
	CANONICAL(0)

#define MULTIPLYADD                    \
	MONT(0, 1, 0)                     \
	ADD4S(2, 0, 0)                    \
	CANONICAL(0)

#define SUBSCALE                       \
	REDUCE(1)                         \
	SUB4S(1, 0, 0)                    \
	MONT(0, 16, 0)                    \
	POSITIVE(0)

// r = (even, odd as low and high halves of 64-bit sums lo, hi) / 2^32 modulo the
// prime; lo has the sums of words 0 and 1, hi those of 2 and 3.
#define DIVIDE(lo, hi, r)   \
	UZP14S(hi, lo, 24)     \
	MUL4S(30, 24, 24)      \
	SMLSL(31, 24, lo)      \
	SMLSL2(31, 24, hi)     \
	UZP24S(hi, lo, r)

#define NOADD(c, x)
#define ADDOLD(c, x)        \
	VLD1 (c), [V7.S4]      \
	ADD4S(7, x, x)

#define PRODUCTEND(c, add)  \
	DIVIDE(4, 5, 6)        \
	MUL4S(16, 6, 6)        \
	add(c, 6)              \
	CANONICAL(6)           \
	VST1.P [V6.S4], 16(c)

#define PRODUCT(add)                   \
	MOVD   c0+0(FP), R0               \
	MOVD   c1+8(FP), R1               \
	MOVD   c2+16(FP), R4              \
	MOVD   a0+24(FP), R5              \
	MOVD   a1+32(FP), R6              \
	MOVD   b0+40(FP), R7              \
	MOVD   b1+48(FP), R8              \
	MOVD   words+56(FP), R2           \
	MOVD   blocks+64(FP), R3          \
	PRIME(R2)                         \
	FULL(R2)                          \
	MOVWU  times+72(FP), R9           \
	VDUP   R9, V16.S4                 \
	LSL    $2, R3, R3                 \
loop:                                  \
	VLD1.P 16(R5), [V0.S4]            \
	VLD1.P 16(R6), [V1.S4]            \
	VLD1.P 16(R7), [V2.S4]            \
	VLD1.P 16(R8), [V3.S4]            \
	SMULL(2, 0, 4)                    \
	SMULL2(2, 0, 5)                   \
	PRODUCTEND(R0, add)               \
	SMULL(3, 1, 4)                    \
	SMULL2(3, 1, 5)                   \
	PRODUCTEND(R4, add)               \
	SMULL(3, 0, 4)                    \
	SMULL2(3, 0, 5)                   \
	SMLAL(2, 1, 4)                    \
	SMLAL2(2, 1, 5)                   \
	PRODUCTEND(R1, add)               \
	SUBS   $1, R3, R3                 \
	BNE    loop                       \
	RET

// TERMS adds the products of d vectors, at R7 bytes from the pointers at R1, with
// the d words from R4 on to V4 and V5; it spoils V0, V1, R6, R8, R9, R10, R11.
#define TERMS(label)                   \
	MOVD   R1, R8                     \
	MOVD   R4, R10                    \
	MOVD   R5, R6                     \
label:                                 \
	MOVD.P 8(R8), R9                  \
	ADD    R7, R9, R9                 \
	VLD1   (R9), [V0.S4]              \
	MOVWU.P 4(R10), R11               \
	VDUP   R11, V1.S4                 \
	SMLAL(1, 0, 4)                    \
	SMLAL2(1, 0, 5)                   \
	SUBS   $1, R6, R6                 \
	BNE    label

#define CONVERT                        \
	PRIME(R2)                         \
	LSL    $2, R3, R3                 \
	MOVD   ZR, R7

// DIGITS adds the products of d vectors, at R7 bytes from the pointers at R4, with
// the key's factors at R5, 128 bytes a digit, to V4, V5 and V6, V7.
#define DIGITS(label)                  \
	MOVD   R4, R8                     \
	MOVD   R5, R10                    \
	MOVD   R6, R11                    \
label:                                 \
	MOVD.P 8(R8), R9                  \
	ADD    R7, R9, R9                 \
	VLD1   (R9), [V0.S4]              \
	VLD1   (R10), [V1.S4]             \
	ADD    $64, R10, R9               \
	VLD1   (R9), [V2.S4]              \
	ADD    $128, R10, R10             \
	SMLAL(1, 0, 4)                    \
	SMLAL2(1, 0, 5)                   \
	SMLAL(2, 0, 6)                    \
	SMLAL2(2, 0, 7)                   \
	SUBS   $1, R11, R11               \
	BNE    label

// After a vector the key advances by 16 bytes, after four by the stride, R12.
#define NEXTDIGITS                     \
	DIVIDE(4, 5, 3)                   \
	CANONICAL(3)                      \
	VST1.P [V3.S4], 16(R0)            \
	DIVIDE(6, 7, 3)                   \
	CANONICAL(3)                      \
	VST1.P [V3.S4], 16(R1)            \
	ADD    $16, R5, R5                \
	ADD    $16, R7, R7

// func NTTForwardFoldNEON(dst, src, words *uint32, n int)
TEXT ·NTTForwardFoldNEON(SB), NOSPLIT, $0-32
	FOLD(FULL, REDUCE)

// func NTTForwardFoldLazyNEON(dst, src, words *uint32, n int)
TEXT ·NTTForwardFoldLazyNEON(SB), NOSPLIT, $0-32
	FOLD(LAZY, NOTHING)

// func NTTInverseFoldNEON(a, words *uint32, n int, scale, turned uint32)
TEXT ·NTTInverseFoldNEON(SB), NOSPLIT, $0-32
	UNFOLD(POSITIVE)

// func NTTInverseFoldLazyNEON(a, words *uint32, n int, scale, turned uint32)
TEXT ·NTTInverseFoldLazyNEON(SB), NOSPLIT, $0-32
	UNFOLD(NOTHING)

// func NTTForwardLayerNEON(a, w, words *uint32, blocks, t int)
TEXT ·NTTForwardLayerNEON(SB), NOSPLIT, $0-40
	LAYER(FULL, FORWARDTWO)

// func NTTForwardLayerLazyNEON(a, w, words *uint32, blocks, t int)
TEXT ·NTTForwardLayerLazyNEON(SB), NOSPLIT, $0-40
	LAYER(LAZY, FORWARDTWO)

// func NTTInverseLayerNEON(a, w, words *uint32, blocks, t int)
TEXT ·NTTInverseLayerNEON(SB), NOSPLIT, $0-40
	LAYER(FULL, INVERSETWO)

// func NTTForwardLayersNEON(a, w, w2, words *uint32, blocks, t int)
TEXT ·NTTForwardLayersNEON(SB), NOSPLIT, $0-48
	LAYERS(FULL, FORWARDFOUR)

// func NTTForwardLayersLazyNEON(a, w, w2, words *uint32, blocks, t int)
TEXT ·NTTForwardLayersLazyNEON(SB), NOSPLIT, $0-48
	LAYERS(LAZY, FORWARDFOURLAZY)

// func NTTInverseLayersNEON(a, w, w2, words *uint32, blocks, t int)
TEXT ·NTTInverseLayersNEON(SB), NOSPLIT, $0-48
	LAYERS(FULL, INVERSEFOUR)

// func NTTForwardTailNEON(a, tail, words *uint32, blocks int)
TEXT ·NTTForwardTailNEON(SB), NOSPLIT, $0-32
	TAIL(FULL, REDUCE, REDUCE, NOTHING)

// func NTTForwardTailFullNEON(a, tail, words *uint32, blocks int)
TEXT ·NTTForwardTailFullNEON(SB), NOSPLIT, $0-32
	TAIL(FULL, REDUCE, REDUCE, CANONICAL)

// func NTTForwardTailLazyNEON(a, tail, words *uint32, blocks int)
TEXT ·NTTForwardTailLazyNEON(SB), NOSPLIT, $0-32
	TAIL(LAZY, NOTHING, REDUCE, NOTHING)

// func NTTForwardTailFullLazyNEON(a, tail, words *uint32, blocks int)
TEXT ·NTTForwardTailFullLazyNEON(SB), NOSPLIT, $0-32
	TAIL(LAZY, NOTHING, REDUCE, CANONICALLAZY)

// func NTTInverseTailNEON(dst, src, untail, words *uint32, blocks int)
TEXT ·NTTInverseTailNEON(SB), NOSPLIT, $0-40
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R5
	MOVD untail+16(FP), R1
	MOVD words+24(FP), R2
	MOVD blocks+32(FP), R3
	PRIME(R2)
	FULL(R2)

loop:
	VLD1.P 64(R5), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R5), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1   (R1), [V16.S4, V17.S4, V18.S4, V19.S4]
	UNNARROW(0, 1, 0, 18, ZIP14S, 64)
	UNNARROW(2, 3, 1, 18, ZIP24S, 80)
	UNNARROW(4, 5, 2, 19, ZIP14S, 96)
	UNNARROW(6, 7, 3, 19, ZIP24S, 112)
	VDUP   V16.S[2], V20.S4
	VDUP   V16.S[3], V21.S4
	UNBUTTERFLY(0, 2, 20)
	UNBUTTERFLY(1, 3, 20)
	UNBUTTERFLY(4, 6, 21)
	UNBUTTERFLY(5, 7, 21)
	VDUP   V16.S[1], V20.S4
	UNBUTTERFLY(0, 4, 20)
	UNBUTTERFLY(1, 5, 20)
	UNBUTTERFLY(2, 6, 20)
	UNBUTTERFLY(3, 7, 20)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R0)
	ADD    $128, R1, R1
	SUBS   $1, R3, R3
	BNE    loop
	RET

// func NTTScaleNEON(dst, a, words *uint32, blocks int, c uint32)
TEXT ·NTTScaleNEON(SB), NOSPLIT, $0-36
	UNARY(NOREAD, SCALEFULL)

// func NTTScaleLazyNEON(dst, a, words *uint32, blocks int, c uint32)
TEXT ·NTTScaleLazyNEON(SB), NOSPLIT, $0-36
	UNARY(NOREAD, SCALE)

// func NTTScaleAddNEON(dst, a, words *uint32, blocks int, c uint32)
TEXT ·NTTScaleAddNEON(SB), NOSPLIT, $0-36
	UNARY(READDST, SCALEADD)

// func NTTAddScalarNEON(dst, a, words *uint32, blocks int, c uint32)
TEXT ·NTTAddScalarNEON(SB), NOSPLIT, $0-36
	UNARY(NOREAD, ADDSCALAR)

// func NTTAddNEON(dst, a, b, words *uint32, blocks int)
TEXT ·NTTAddNEON(SB), NOSPLIT, $0-40
	BINARY(FULL, NOCONSTANT, NOREAD, SUM)

// func NTTSubNEON(dst, a, b, words *uint32, blocks int)
TEXT ·NTTSubNEON(SB), NOSPLIT, $0-40
	BINARY(FULL, NOCONSTANT, NOREAD, DIFFERENCE)

// func NTTMultiplyNEON(dst, a, b, words *uint32, blocks int)
TEXT ·NTTMultiplyNEON(SB), NOSPLIT, $0-40
	BINARY(FULL, NOCONSTANT, NOREAD, MULTIPLY)

// func NTTMultiplyAddNEON(dst, a, b, words *uint32, blocks int)
TEXT ·NTTMultiplyAddNEON(SB), NOSPLIT, $0-40
	BINARY(FULL, NOCONSTANT, READDST, MULTIPLYADD)

// func NTTSubScaleNEON(dst, a, b, words *uint32, blocks int, c uint32)
TEXT ·NTTSubScaleNEON(SB), NOSPLIT, $0-44
	BINARY(FULL, CONSTANTC, NOREAD, SUBSCALE)

// func NTTSubScaleLazyNEON(dst, a, b, words *uint32, blocks int, c uint32)
TEXT ·NTTSubScaleLazyNEON(SB), NOSPLIT, $0-44
	BINARY(LAZY, CONSTANTC, NOREAD, SUBSCALE)

// func NTTProductNEON(c0, c1, c2, a0, a1, b0, b1, words *uint32, blocks int, times uint32)
TEXT ·NTTProductNEON(SB), NOSPLIT, $0-76
	PRODUCT(NOADD)

// func NTTProductAddNEON(c0, c1, c2, a0, a1, b0, b1, words *uint32, blocks int, times uint32)
TEXT ·NTTProductAddNEON(SB), NOSPLIT, $0-76
	PRODUCT(ADDOLD)

// func NTTConvertNEON(dst *uint32, src **uint32, d int, c, words *uint32, blocks int)
TEXT ·NTTConvertNEON(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD d+16(FP), R5
	MOVD c+24(FP), R4
	MOVD words+32(FP), R2
	MOVD blocks+40(FP), R3
	CONVERT

loop:
	VEOR   V4.B16, V4.B16, V4.B16
	VEOR   V5.B16, V5.B16, V5.B16
	TERMS(terms)
	DIVIDE(4, 5, 6)
	VST1.P [V6.S4], 16(R0)
	ADD    $16, R7, R7
	SUBS   $1, R3, R3
	BNE    loop
	RET

// func NTTWholeNEON(dst *uint32, src **uint32, d int, fractions *uint32, blocks, bits int)
TEXT ·NTTWholeNEON(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD d+16(FP), R5
	MOVD fractions+24(FP), R4
	MOVD blocks+32(FP), R3
	LSL  $2, R3, R3
	MOVD ZR, R7
	MOVD bits+40(FP), R10
	SUB  $1, R10, R10
	MOVD $1, R9
	LSL  R10, R9, R9
	VDUP R9, V16.D2
	MOVD $31, R9
	SUB  R10, R9, R9
	VDUP R9, V17.S4

loop:
	VMOV   V16.B16, V4.B16
	VMOV   V16.B16, V5.B16
	TERMS(terms)
	UZP24S(5, 4, 6)
	SSHL4S(17, 6, 6)
	VST1.P [V6.S4], 16(R0)
	ADD    $16, R7, R7
	SUBS   $1, R3, R3
	BNE    loop
	RET

// func NTTInnerNEON(k0, k1 *uint32, x **uint32, d int, key *uint32, stride int, words *uint32, blocks int)
TEXT ·NTTInnerNEON(SB), NOSPLIT, $0-64
	MOVD k0+0(FP), R0
	MOVD k1+8(FP), R1
	MOVD x+16(FP), R4
	MOVD d+24(FP), R6
	MOVD key+32(FP), R5
	MOVD stride+40(FP), R12
	MOVD words+48(FP), R2
	MOVD blocks+56(FP), R3
	PRIME(R2)
	FULL(R2)
	MOVD ZR, R7
	SUB  $64, R12, R12

loop:
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	DIGITS(digits)
	NEXTDIGITS
	AND  $63, R7, R9
	CBNZ R9, loop
	ADD  R12, R5, R5
	SUBS $1, R3, R3
	BNE  loop
	RET

// func NTTInnerLiftNEON(k0, k1 *uint32, x **uint32, d int, key *uint32, stride int, words *uint32, blocks int, c0, c1 *uint32, lift uint32)
TEXT ·NTTInnerLiftNEON(SB), NOSPLIT, $0-84
	MOVD  k0+0(FP), R0
	MOVD  k1+8(FP), R1
	MOVD  x+16(FP), R4
	MOVD  d+24(FP), R6
	MOVD  key+32(FP), R5
	MOVD  stride+40(FP), R12
	MOVD  words+48(FP), R2
	MOVD  blocks+56(FP), R3
	MOVD  c0+64(FP), R13
	MOVD  c1+72(FP), R14
	MOVWU lift+80(FP), R9
	VDUP  R9, V16.S4
	PRIME(R2)
	FULL(R2)
	MOVD  ZR, R7
	SUB   $64, R12, R12

loop:
	VLD1.P 16(R13), [V0.S4]
	VLD1.P 16(R14), [V1.S4]
	SMULL(16, 0, 4)
	SMULL2(16, 0, 5)
	SMULL(16, 1, 6)
	SMULL2(16, 1, 7)
	DIGITS(digits)
	NEXTDIGITS
	AND  $63, R7, R9
	CBNZ R9, loop
	ADD  R12, R5, R5
	SUBS $1, R3, R3
	BNE  loop
	RET

// Keeps lane i of V1, which the next word is written over if it is not below q.
#define KEEP(i)              \
	VMOV  V1.S[i], R7       \
	MOVW  R7, (R0)          \
	ADD   $4, R0, R8        \
	CMPW  R4, R7            \
	CSEL  LO, R8, R0, R0

#define KEEP4                               \
	VLD2.P 32(R1), [V0.S4, V1.S4]          \
	VREV32 V1.B16, V1.B16                  \
	VAND   V31.B16, V1.B16, V1.B16         \
	KEEP(0)                                \
	KEEP(1)                                \
	KEEP(2)                                \
	KEEP(3)

// func NTTUniformNEON(dst *uint32, random *byte, words *uint32, blocks int) int
TEXT ·NTTUniformNEON(SB), NOSPLIT, $0-40
	MOVD  dst+0(FP), R0
	MOVD  random+8(FP), R1
	MOVD  words+16(FP), R2
	MOVD  blocks+24(FP), R3
	MOVWU 0(R2), R4
	MOVWU 40(R2), R5
	VDUP  R5, V31.S4
	MOVD  R0, R6

uniform:
	KEEP4
	KEEP4
	KEEP4
	KEEP4
	SUBS $1, R3, R3
	BNE  uniform
	SUB  R6, R0, R0
	LSR  $2, R0, R0
	MOVD R0, ret+32(FP)
	RET
