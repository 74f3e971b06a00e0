//go:build arm64 && !purego

// Nearest centroids, and sums by cluster that use them while they are in
// registers. A panel of 16 points is four vectors; the running minimum and its
// index stay in registers.

#include "textflag.h"
#include "neon_arm64.h"

// OFFER keeps the smaller of best and v; a strictly smaller v sets index to the
// number of the centroid (V20), so that ties stay with the smaller one.
// V9 is scratch.
#define OFFER(v, best, index) \
	FCMGT4S(v, best, 9)         \
	FMIN4S(v, best, best)       \
	VBIT V9.B16, V20.B16, index.B16

// SECOND keeps the larger of best and v in next when it is the second smallest.
// It precedes OFFER.
#define SECOND(v, best, next) \
	FMAX4S(v, best, 9)          \
	FMIN4S(9, next, next)

// NARROW stores the four index vectors a, b, c, e as 16 uint16 at R5.
#define NARROW(a, b, c, e)   \
	XTN4H(a, 8)                \
	XTN8H(b, 8)                \
	XTN4H(c, 9)                \
	XTN8H(e, 9)                \
	VST1.P [V8.H8, V9.H8], 32(R5)

// func AssignSubNEON(x *float32, panels, d int, c *float32, k int, labels *uint16, dist, second *float32)
TEXT ·AssignSubNEON(SB), NOSPLIT, $0-64
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD c+24(FP), R3
	MOVD k+32(FP), R4
	MOVD labels+40(FP), R5
	MOVD dist+48(FP), R6
	MOVD second+56(FP), R7
	MOVD $0x7f800000, R12
	VDUP R12, V31.S4
	MOVD $1, R12
	VDUP R12, V21.S4

panel:
	VMOV V31.B16, V12.B16
	VMOV V31.B16, V13.B16
	VMOV V31.B16, V14.B16
	VMOV V31.B16, V15.B16
	VMOV V31.B16, V22.B16
	VMOV V31.B16, V23.B16
	VMOV V31.B16, V24.B16
	VMOV V31.B16, V25.B16
	VEOR V16.B16, V16.B16, V16.B16
	VEOR V17.B16, V17.B16, V17.B16
	VEOR V18.B16, V18.B16, V18.B16
	VEOR V19.B16, V19.B16, V19.B16
	VEOR V20.B16, V20.B16, V20.B16
	MOVD R3, R8
	MOVD R4, R9

centroid:
	MOVD R0, R10
	MOVD R2, R11
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

dimension:
	VLD1.P 64(R10), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1R.P 4(R8), [V8.S4]
	FSUB4S(8, 4, 4)
	FSUB4S(8, 5, 5)
	FSUB4S(8, 6, 6)
	FSUB4S(8, 7, 7)
	VFMLA V4.S4, V4.S4, V0.S4
	VFMLA V5.S4, V5.S4, V1.S4
	VFMLA V6.S4, V6.S4, V2.S4
	VFMLA V7.S4, V7.S4, V3.S4
	SUBS $1, R11, R11
	BNE  dimension

	CBZ R7, offer
	SECOND(0, 12, 22)
	SECOND(1, 13, 23)
	SECOND(2, 14, 24)
	SECOND(3, 15, 25)

offer:
	OFFER(0, 12, V16)
	OFFER(1, 13, V17)
	OFFER(2, 14, V18)
	OFFER(3, 15, V19)
	VADD V21.S4, V20.S4, V20.S4
	SUBS $1, R9, R9
	BNE  centroid

	MOVD R10, R0
	NARROW(16, 17, 18, 19)
	CBZ R6, nodist
	VST1.P [V12.S4, V13.S4, V14.S4, V15.S4], 64(R6)

nodist:
	CBZ R7, nosecond
	VST1.P [V22.S4, V23.S4, V24.S4, V25.S4], 64(R7)

nosecond:
	SUBS $1, R1, R1
	BNE  panel
	RET

// INIT sets the four sums of a centroid to its half norm, at R9.
#define INIT(a, b, c, e)    \
	VLD1R.P 4(R9), [a.S4]  \
	VMOV a.B16, b.B16   \
	VMOV a.B16, c.B16   \
	VMOV a.B16, e.B16

// POINTS loads one dimension of the panel, at R10.
#define POINTS VLD1.P 64(R10), [V16.S4, V17.S4, V18.S4, V19.S4]

// TIMES subtracts the product with the next centroid value, at R8.
#define TIMES(a, b, c, e)        \
	VLD1R.P 4(R8), [V20.S4]        \
	VFMLS V20.S4, V16.S4, a.S4  \
	VFMLS V20.S4, V17.S4, b.S4  \
	VFMLS V20.S4, V18.S4, c.S4  \
	VFMLS V20.S4, V19.S4, e.S4

// ELEMENT subtracts the product with centroid value i of V20.
#define ELEMENT(i, a, b, c, e) \
	FMLS4SI(i, 20, 16, a)         \
	FMLS4SI(i, 20, 17, b)         \
	FMLS4SI(i, 20, 18, c)         \
	FMLS4SI(i, 20, 19, e)

// NUMBER puts the number of the centroid, R12, in every lane and counts it up.
#define NUMBER        \
	VDUP R12, V20.S4    \
	ADD $1, R12, R12

#define OFFER4(a, b, c, e) \
	NUMBER                   \
	OFFER(a, 24, V28)         \
	OFFER(b, 25, V29)         \
	OFFER(c, 26, V30)         \
	OFFER(e, 27, V31)

// With the second smallest in V16 to V19.
#define BOTH4(a, b, c, e) \
	SECOND(a, 24, 16)       \
	SECOND(b, 25, 17)       \
	SECOND(c, 26, 18)       \
	SECOND(e, 27, 19)       \
	OFFER4(a, b, c, e)

// func AssignDot1NEON(x *float32, panels int, d int, tiles, half *float32, wide, narrow int, labels *uint16, score, second *float32)
TEXT ·AssignDot1NEON(SB), NOSPLIT, $0-80
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD tiles+24(FP), R3
	MOVD half+32(FP), R4
	MOVD labels+56(FP), R5
	MOVD score+64(FP), R6
	MOVD second+72(FP), R7

panel:
	MOVD $0x7f800000, R12
	VDUP R12, V24.S4
	VMOV V24.B16, V25.B16
	VMOV V24.B16, V26.B16
	VMOV V24.B16, V27.B16
	VEOR V28.B16, V28.B16, V28.B16
	VEOR V29.B16, V29.B16, V29.B16
	VEOR V30.B16, V30.B16, V30.B16
	VEOR V31.B16, V31.B16, V31.B16
	CBZ  R7, start
	VST1 [V24.S4, V25.S4, V26.S4, V27.S4], (R7)

start:
	MOVD R3, R8
	MOVD R4, R9
	MOVD ZR, R12
	MOVD wide+40(FP), R13

wide:
	MOVD R0, R10
	MOVD R2, R11
	INIT(V0, V1, V2, V3)

widedim:
	POINTS
	TIMES(V0, V1, V2, V3)
	SUBS $1, R11, R11
	BNE  widedim
	CBZ  R7, widefirst
	VLD1 (R7), [V16.S4, V17.S4, V18.S4, V19.S4]
	BOTH4(0, 1, 2, 3)
	VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R7)
	B    wideend

widefirst:
	OFFER4(0, 1, 2, 3)

wideend:
	SUBS $1, R13, R13
	BNE  wide

found:
	MOVD R10, R0
	NARROW(28, 29, 30, 31)
	CBZ  R6, noscore
	VST1.P [V24.S4, V25.S4, V26.S4, V27.S4], 64(R6)

noscore:
	CBZ R7, nosecond
	ADD $64, R7, R7

nosecond:
	SUBS $1, R1, R1
	BNE  panel
	RET

// func AssignDot2NEON(x *float32, panels int, d int, tiles, half *float32, wide, narrow int, labels *uint16, score, second *float32)
TEXT ·AssignDot2NEON(SB), NOSPLIT, $0-80
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD tiles+24(FP), R3
	MOVD half+32(FP), R4
	MOVD labels+56(FP), R5
	MOVD score+64(FP), R6
	MOVD second+72(FP), R7

panel:
	MOVD $0x7f800000, R12
	VDUP R12, V24.S4
	VMOV V24.B16, V25.B16
	VMOV V24.B16, V26.B16
	VMOV V24.B16, V27.B16
	VEOR V28.B16, V28.B16, V28.B16
	VEOR V29.B16, V29.B16, V29.B16
	VEOR V30.B16, V30.B16, V30.B16
	VEOR V31.B16, V31.B16, V31.B16
	CBZ  R7, start
	VST1 [V24.S4, V25.S4, V26.S4, V27.S4], (R7)

start:
	MOVD R3, R8
	MOVD R4, R9
	MOVD ZR, R12
	MOVD wide+40(FP), R13

wide:
	MOVD R0, R10
	MOVD R2, R11
	INIT(V0, V1, V2, V3)
	INIT(V4, V5, V6, V7)

widedim:
	POINTS
	TIMES(V0, V1, V2, V3)
	TIMES(V4, V5, V6, V7)
	SUBS $1, R11, R11
	BNE  widedim
	CBZ  R7, widefirst
	VLD1 (R7), [V16.S4, V17.S4, V18.S4, V19.S4]
	BOTH4(0, 1, 2, 3)
	BOTH4(4, 5, 6, 7)
	VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R7)
	B    wideend

widefirst:
	OFFER4(0, 1, 2, 3)
	OFFER4(4, 5, 6, 7)

wideend:
	SUBS $1, R13, R13
	BNE  wide
	MOVD narrow+48(FP), R13
	CBZ  R13, found

narrow:
	MOVD R0, R10
	MOVD R2, R11
	INIT(V0, V1, V2, V3)

narrowdim:
	POINTS
	TIMES(V0, V1, V2, V3)
	SUBS $1, R11, R11
	BNE  narrowdim
	CBZ  R7, narrowfirst
	VLD1 (R7), [V16.S4, V17.S4, V18.S4, V19.S4]
	BOTH4(0, 1, 2, 3)
	VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R7)
	B    narrowend

narrowfirst:
	OFFER4(0, 1, 2, 3)

narrowend:
	SUBS $1, R13, R13
	BNE  narrow

found:
	MOVD R10, R0
	NARROW(28, 29, 30, 31)
	CBZ  R6, noscore
	VST1.P [V24.S4, V25.S4, V26.S4, V27.S4], 64(R6)

noscore:
	CBZ R7, nosecond
	ADD $64, R7, R7

nosecond:
	SUBS $1, R1, R1
	BNE  panel
	RET

// func AssignDot3NEON(x *float32, panels int, d int, tiles, half *float32, wide, narrow int, labels *uint16, score, second *float32)
TEXT ·AssignDot3NEON(SB), NOSPLIT, $0-80
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD tiles+24(FP), R3
	MOVD half+32(FP), R4
	MOVD labels+56(FP), R5
	MOVD score+64(FP), R6
	MOVD second+72(FP), R7

panel:
	MOVD $0x7f800000, R12
	VDUP R12, V24.S4
	VMOV V24.B16, V25.B16
	VMOV V24.B16, V26.B16
	VMOV V24.B16, V27.B16
	VEOR V28.B16, V28.B16, V28.B16
	VEOR V29.B16, V29.B16, V29.B16
	VEOR V30.B16, V30.B16, V30.B16
	VEOR V31.B16, V31.B16, V31.B16
	CBZ  R7, start
	VST1 [V24.S4, V25.S4, V26.S4, V27.S4], (R7)

start:
	MOVD R3, R8
	MOVD R4, R9
	MOVD ZR, R12
	MOVD wide+40(FP), R13

wide:
	MOVD R0, R10
	MOVD R2, R11
	INIT(V0, V1, V2, V3)
	INIT(V4, V5, V6, V7)
	INIT(V10, V11, V12, V13)

widedim:
	POINTS
	TIMES(V0, V1, V2, V3)
	TIMES(V4, V5, V6, V7)
	TIMES(V10, V11, V12, V13)
	SUBS $1, R11, R11
	BNE  widedim
	CBZ  R7, widefirst
	VLD1 (R7), [V16.S4, V17.S4, V18.S4, V19.S4]
	BOTH4(0, 1, 2, 3)
	BOTH4(4, 5, 6, 7)
	BOTH4(10, 11, 12, 13)
	VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R7)
	B    wideend

widefirst:
	OFFER4(0, 1, 2, 3)
	OFFER4(4, 5, 6, 7)
	OFFER4(10, 11, 12, 13)

wideend:
	SUBS $1, R13, R13
	BNE  wide
	MOVD narrow+48(FP), R13
	CBZ  R13, found

narrow:
	MOVD R0, R10
	MOVD R2, R11
	INIT(V0, V1, V2, V3)
	INIT(V4, V5, V6, V7)

narrowdim:
	POINTS
	TIMES(V0, V1, V2, V3)
	TIMES(V4, V5, V6, V7)
	SUBS $1, R11, R11
	BNE  narrowdim
	CBZ  R7, narrowfirst
	VLD1 (R7), [V16.S4, V17.S4, V18.S4, V19.S4]
	BOTH4(0, 1, 2, 3)
	BOTH4(4, 5, 6, 7)
	VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R7)
	B    narrowend

narrowfirst:
	OFFER4(0, 1, 2, 3)
	OFFER4(4, 5, 6, 7)

narrowend:
	SUBS $1, R13, R13
	BNE  narrow

found:
	MOVD R10, R0
	NARROW(28, 29, 30, 31)
	CBZ  R6, noscore
	VST1.P [V24.S4, V25.S4, V26.S4, V27.S4], 64(R6)

noscore:
	CBZ R7, nosecond
	ADD $64, R7, R7

nosecond:
	SUBS $1, R1, R1
	BNE  panel
	RET

// func AssignDot4NEON(x *float32, panels int, d int, tiles, half *float32, wide, narrow int, labels *uint16, score, second *float32)
TEXT ·AssignDot4NEON(SB), NOSPLIT, $0-80
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD tiles+24(FP), R3
	MOVD half+32(FP), R4
	MOVD labels+56(FP), R5
	MOVD score+64(FP), R6
	MOVD second+72(FP), R7

panel:
	MOVD $0x7f800000, R12
	VDUP R12, V24.S4
	VMOV V24.B16, V25.B16
	VMOV V24.B16, V26.B16
	VMOV V24.B16, V27.B16
	VEOR V28.B16, V28.B16, V28.B16
	VEOR V29.B16, V29.B16, V29.B16
	VEOR V30.B16, V30.B16, V30.B16
	VEOR V31.B16, V31.B16, V31.B16
	CBZ  R7, start
	VST1 [V24.S4, V25.S4, V26.S4, V27.S4], (R7)

start:
	MOVD R3, R8
	MOVD R4, R9
	MOVD ZR, R12
	MOVD wide+40(FP), R13

wide:
	MOVD R0, R10
	MOVD R2, R11
	INIT(V0, V1, V2, V3)
	INIT(V4, V5, V6, V7)
	INIT(V10, V11, V12, V13)
	INIT(V14, V15, V21, V22)

widedim:
	POINTS
	VLD1.P 16(R8), [V20.S4]
	ELEMENT(0, 0, 1, 2, 3)
	ELEMENT(1, 4, 5, 6, 7)
	ELEMENT(2, 10, 11, 12, 13)
	ELEMENT(3, 14, 15, 21, 22)
	SUBS $1, R11, R11
	BNE  widedim
	CBZ  R7, widefirst
	VLD1 (R7), [V16.S4, V17.S4, V18.S4, V19.S4]
	BOTH4(0, 1, 2, 3)
	BOTH4(4, 5, 6, 7)
	BOTH4(10, 11, 12, 13)
	BOTH4(14, 15, 21, 22)
	VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R7)
	B    wideend

widefirst:
	OFFER4(0, 1, 2, 3)
	OFFER4(4, 5, 6, 7)
	OFFER4(10, 11, 12, 13)
	OFFER4(14, 15, 21, 22)

wideend:
	SUBS $1, R13, R13
	BNE  wide
	MOVD narrow+48(FP), R13
	CBZ  R13, found

narrow:
	MOVD R0, R10
	MOVD R2, R11
	INIT(V0, V1, V2, V3)
	INIT(V4, V5, V6, V7)
	INIT(V10, V11, V12, V13)

narrowdim:
	POINTS
	TIMES(V0, V1, V2, V3)
	TIMES(V4, V5, V6, V7)
	TIMES(V10, V11, V12, V13)
	SUBS $1, R11, R11
	BNE  narrowdim
	CBZ  R7, narrowfirst
	VLD1 (R7), [V16.S4, V17.S4, V18.S4, V19.S4]
	BOTH4(0, 1, 2, 3)
	BOTH4(4, 5, 6, 7)
	BOTH4(10, 11, 12, 13)
	VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R7)
	B    narrowend

narrowfirst:
	OFFER4(0, 1, 2, 3)
	OFFER4(4, 5, 6, 7)
	OFFER4(10, 11, 12, 13)

narrowend:
	SUBS $1, R13, R13
	BNE  narrow

found:
	MOVD R10, R0
	NARROW(28, 29, 30, 31)
	CBZ  R6, noscore
	VST1.P [V24.S4, V25.S4, V26.S4, V27.S4], 64(R6)

noscore:
	CBZ R7, nosecond
	ADD $64, R7, R7

nosecond:
	SUBS $1, R1, R1
	BNE  panel
	RET

// func FinishDotNEON(x *float32, panels int, d int, dist, second *float32)
TEXT ·FinishDotNEON(SB), NOSPLIT, $0-40
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD dist+24(FP), R6
	MOVD second+32(FP), R7
	VEOR V31.B16, V31.B16, V31.B16

panel:
	MOVD R2, R11
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

dimension:
	VLD1.P 64(R0), [V4.S4, V5.S4, V6.S4, V7.S4]
	VFMLA V4.S4, V4.S4, V0.S4
	VFMLA V5.S4, V5.S4, V1.S4
	VFMLA V6.S4, V6.S4, V2.S4
	VFMLA V7.S4, V7.S4, V3.S4
	SUBS $1, R11, R11
	BNE  dimension

#define FINISH(norm, v) \
	FADD4S(v, v, v)       \
	FADD4S(norm, v, v)    \
	FMAX4S(31, v, v)

	VLD1 (R6), [V4.S4, V5.S4, V6.S4, V7.S4]
	FINISH(0, 4)
	FINISH(1, 5)
	FINISH(2, 6)
	FINISH(3, 7)
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R6)
	CBZ R7, next
	VLD1 (R7), [V4.S4, V5.S4, V6.S4, V7.S4]
	FINISH(0, 4)
	FINISH(1, 5)
	FINISH(2, 6)
	FINISH(3, 7)
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R7)

next:
	SUBS $1, R1, R1
	BNE  panel
	RET

// func AssignAddNEON(x *float32, panels int, d int, c *float32, k int, r2 float32, labels *uint16, lanes *float32)
TEXT ·AssignAddNEON(SB), NOSPLIT, $0-64
	MOVD  x+0(FP), R0
	MOVD  panels+8(FP), R1
	MOVD  d+16(FP), R2
	MOVD  c+24(FP), R3
	MOVD  k+32(FP), R4
	MOVWU r2+40(FP), R6
	MOVD  labels+48(FP), R5
	MOVD  lanes+56(FP), R7
	VDUP  R6, V29.S4
	VDUP  R4, V28.S4
	MOVD  $0x7f800000, R12
	VDUP  R12, V31.S4
	MOVD  $0x3f800000, R12
	VDUP  R12, V30.S4
	MOVD  $1, R12
	VDUP  R12, V21.S4

panel:
	VMOV V31.B16, V12.B16
	VMOV V31.B16, V13.B16
	VMOV V31.B16, V14.B16
	VMOV V31.B16, V15.B16
	VEOR V16.B16, V16.B16, V16.B16
	VEOR V17.B16, V17.B16, V17.B16
	VEOR V18.B16, V18.B16, V18.B16
	VEOR V19.B16, V19.B16, V19.B16
	VEOR V20.B16, V20.B16, V20.B16
	MOVD R3, R8
	MOVD R4, R9

centroid:
	MOVD R0, R10
	MOVD R2, R11
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

dimension:
	VLD1.P 64(R10), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1R.P 4(R8), [V8.S4]
	FSUB4S(8, 4, 4)
	FSUB4S(8, 5, 5)
	FSUB4S(8, 6, 6)
	FSUB4S(8, 7, 7)
	VFMLA V4.S4, V4.S4, V0.S4
	VFMLA V5.S4, V5.S4, V1.S4
	VFMLA V6.S4, V6.S4, V2.S4
	VFMLA V7.S4, V7.S4, V3.S4
	SUBS $1, R11, R11
	BNE  dimension
	OFFER(0, 12, V16)
	OFFER(1, 13, V17)
	OFFER(2, 14, V18)
	OFFER(3, 15, V19)
	VADD V21.S4, V20.S4, V20.S4
	SUBS $1, R9, R9
	BNE  centroid

	// Far points belong to no cluster: their number is k.
	FCMGT4S(29, 12, 12)
	FCMGT4S(29, 13, 13)
	FCMGT4S(29, 14, 14)
	FCMGT4S(29, 15, 15)
	VBIT V12.B16, V28.B16, V16.B16
	VBIT V13.B16, V28.B16, V17.B16
	VBIT V14.B16, V28.B16, V18.B16
	VBIT V15.B16, V28.B16, V19.B16
	CBZ  R5, add
	NARROW(16, 17, 18, 19)

add:
	MOVD R7, R8
	MOVD R4, R9
	VEOR V20.B16, V20.B16, V20.B16

cluster:
	// V4 to V7: minus one in the lanes of the cluster, to be counted; then 1.0.
	VCMEQ V20.S4, V16.S4, V4.S4
	VCMEQ V20.S4, V17.S4, V5.S4
	VCMEQ V20.S4, V18.S4, V6.S4
	VCMEQ V20.S4, V19.S4, V7.S4
	VADD  V5.S4, V4.S4, V0.S4
	VADD  V7.S4, V6.S4, V1.S4
	VLD1  (R8), [V2.S4]
	VADD  V1.S4, V0.S4, V0.S4
	VSUB  V0.S4, V2.S4, V2.S4
	VST1  [V2.S4], (R8)
	ADD   $16, R8, R8
	VAND  V30.B16, V4.B16, V4.B16
	VAND  V30.B16, V5.B16, V5.B16
	VAND  V30.B16, V6.B16, V6.B16
	VAND  V30.B16, V7.B16, V7.B16
	MOVD  R0, R10
	MOVD  R2, R11

coordinate:
	VLD1.P 64(R10), [V24.S4, V25.S4, V26.S4, V27.S4]
	VLD1   (R8), [V0.S4]
	VFMLA  V24.S4, V4.S4, V0.S4
	VFMLA  V25.S4, V5.S4, V0.S4
	VFMLA  V26.S4, V6.S4, V0.S4
	VFMLA  V27.S4, V7.S4, V0.S4
	VST1   [V0.S4], (R8)
	ADD    $16, R8, R8
	SUBS   $1, R11, R11
	BNE    coordinate
	VADD   V21.S4, V20.S4, V20.S4
	SUBS   $1, R9, R9
	BNE    cluster

	MOVD R10, R0
	SUBS $1, R1, R1
	BNE  panel
	RET

// SUM adds the four integers of v to R5.
#define SUM(v)               \
	VADDV v.S4, v              \
	VMOV  v.S[0], R6           \
	ADD   R6.SXTW, R5, R5

// func FoldLanesNEON(lanes *float32, k int, d int, scale float32, sums *int64, counts *int64)
TEXT ·FoldLanesNEON(SB), NOSPLIT, $0-48
	MOVD  lanes+0(FP), R0
	MOVD  k+8(FP), R1
	MOVD  d+16(FP), R2
	MOVWU scale+24(FP), R3
	VDUP  R3, V30.S4
	MOVD  sums+32(FP), R3
	MOVD  counts+40(FP), R4
	VEOR  V31.B16, V31.B16, V31.B16

cluster:
	VLD1   (R0), [V0.S4]
	VST1.P [V31.S4], 16(R0)
	MOVD   (R4), R5
	SUM(V0)
	MOVD.P R5, 8(R4)
	MOVD   R2, R7

coordinate:
	VLD1   (R0), [V0.S4]
	VST1.P [V31.S4], 16(R0)
	FMUL4S(30, 0, 0)
	FCVTZS4S(0, 0)
	MOVD   (R3), R5
	SUM(V0)
	MOVD.P R5, 8(R3)
	SUBS   $1, R7, R7
	BNE    coordinate
	SUBS   $1, R1, R1
	BNE    cluster
	RET
