//go:build arm64 && !purego

// The two centroids of the least biased distances.

#include "textflag.h"
#include "neon_arm64.h"

// OFFER marks v with the number of the centroid (V20) in its low bits (V26) and
// puts it in its place among the two smallest. V4 is scratch.
#define OFFER(v, vv, best, next)   \
	VBIT V26.B16, V20.B16, vv.B16    \
	FMAX4S(v, best, 4)               \
	FMIN4S(v, best, best)            \
	FMIN4S(4, next, next)

// CELLS turns the two smallest into the label in label, the gap in best and the
// cell in cell. runnerUp is scratch.
#define CELLS(best, bb, next, nn, label, ll, runnerUp, rr, cell, cc) \
	VAND V26.B16, bb.B16, ll.B16         \
	VAND V26.B16, nn.B16, rr.B16         \
	FSUB4S(best, next, best)             \
	VFMLS V30.S4, nn.S4, bb.S4           \
	MLA4S(28, label, runnerUp)              \
	FCMGE4S(best, 29, next)              \
	VADD ll.S4, V27.S4, cc.S4            \
	VBIT nn.B16, rr.B16, cc.B16

// func TopTwoNEON(x *float32, panels int, d int, c *float32, k int, weight *float32, low uint32, slack float32, window float32, labels *uint16, cells *uint32, gap *float32)
TEXT ·TopTwoNEON(SB), NOSPLIT, $0-88
	MOVD  x+0(FP), R0
	MOVD  panels+8(FP), R1
	MOVD  d+16(FP), R2
	MOVD  c+24(FP), R3
	MOVD  k+32(FP), R4
	MOVD  weight+40(FP), R5
	MOVWU low+48(FP), R6
	VDUP  R6, V26.S4
	MOVWU slack+52(FP), R6
	VDUP  R6, V30.S4
	MOVWU window+56(FP), R6
	VDUP  R6, V29.S4
	MOVD  labels+64(FP), R6
	MOVD  cells+72(FP), R7
	MOVD  gap+80(FP), R13
	VDUP  R4, V28.S4
	MUL   R4, R4, R12
	VDUP  R12, V27.S4
	MOVD  $0x7f800000, R12
	VDUP  R12, V31.S4
	MOVD  $1, R12
	VDUP  R12, V21.S4

panel:
	VMOV V31.B16, V12.B16
	VMOV V31.B16, V13.B16
	VMOV V31.B16, V14.B16
	VMOV V31.B16, V15.B16
	VMOV V31.B16, V22.B16
	VMOV V31.B16, V23.B16
	VMOV V31.B16, V24.B16
	VMOV V31.B16, V25.B16
	VEOR V20.B16, V20.B16, V20.B16
	MOVD R3, R8
	MOVD R4, R9
	MOVD R5, R12

centroid:
	MOVD R0, R10
	MOVD R2, R11
	VLD1R.P 4(R12), [V0.S4]
	VMOV V0.B16, V1.B16
	VMOV V0.B16, V2.B16
	VMOV V0.B16, V3.B16

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
	OFFER(0, V0, 12, 22)
	OFFER(1, V1, 13, 23)
	OFFER(2, V2, 14, 24)
	OFFER(3, V3, 15, 25)
	VADD V21.S4, V20.S4, V20.S4
	SUBS $1, R9, R9
	BNE  centroid

	MOVD R10, R0
	CELLS(12, V12, 22, V22, 16, V16, 0, V0, 4, V4)
	CELLS(13, V13, 23, V23, 17, V17, 1, V1, 5, V5)
	CELLS(14, V14, 24, V24, 18, V18, 2, V2, 6, V6)
	CELLS(15, V15, 25, V25, 19, V19, 3, V3, 7, V7)
	VUZP1 V17.H8, V16.H8, V0.H8
	VUZP1 V19.H8, V18.H8, V1.H8
	VST1.P [V0.H8, V1.H8], 32(R6)
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R7)
	VST1.P [V12.S4, V13.S4, V14.S4, V15.S4], 64(R13)
	SUBS $1, R1, R1
	BNE  panel
	RET
