//go:build arm64 && !purego

// Kernels that read labels.

#include "textflag.h"
#include "neon_arm64.h"

// func MaxLabelNEON(labels *uint16, blocks int) uint16
TEXT ·MaxLabelNEON(SB), NOSPLIT, $0-18
	MOVD labels+0(FP), R0
	MOVD blocks+8(FP), R1
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16

loop:
	VLD1.P 64(R0), [V0.H8, V1.H8, V2.H8, V3.H8]
	VUMAX  V0.H8, V4.H8, V4.H8
	VUMAX  V1.H8, V5.H8, V5.H8
	VUMAX  V2.H8, V6.H8, V6.H8
	VUMAX  V3.H8, V7.H8, V7.H8
	SUBS   $1, R1, R1
	BNE    loop
	VUMAX  V5.H8, V4.H8, V4.H8
	VUMAX  V7.H8, V6.H8, V6.H8
	VUMAX  V6.H8, V4.H8, V4.H8
	UMAXV8H(4, 4)
	VMOV   V4.H[0], R0
	MOVH   R0, ret+16(FP)
	RET

// func CutLabelsNEON(labels *uint16, dist *float32, panels int, r2 float32, none int)
TEXT ·CutLabelsNEON(SB), NOSPLIT, $0-40
	MOVD  labels+0(FP), R0
	MOVD  dist+8(FP), R1
	MOVD  panels+16(FP), R2
	MOVWU r2+24(FP), R3
	VDUP  R3, V30.S4
	MOVD  none+32(FP), R3
	VDUP  R3, V31.H8

loop:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	FCMGT4S(30, 0, 0)
	FCMGT4S(30, 1, 1)
	FCMGT4S(30, 2, 2)
	FCMGT4S(30, 3, 3)
	VUZP1  V1.H8, V0.H8, V4.H8
	VUZP1  V3.H8, V2.H8, V5.H8
	VLD1   (R0), [V6.H8, V7.H8]
	VBIT   V4.B16, V31.B16, V6.B16
	VBIT   V5.B16, V31.B16, V7.B16
	VST1.P [V6.H8, V7.H8], 32(R0)
	SUBS   $1, R2, R2
	BNE    loop
	RET

// ROW sets row to the address of the centroid that the next label, at R5, names;
// to that of the first one if there is no such centroid.
#define ROW(row)              \
	MOVHU.P 2(R5), R10          \
	CMP     R4, R10             \
	CSEL    LO, R10, ZR, R10    \
	MADD    R7, R3, R10, row

// CENTRES loads the next four values of the rows a, b, c and e and turns them into
// four dimensions of four centroids in V4 to V7.
#define CENTRES(a, b, c, e)        \
	VLD1.P 16(a), [V4.S4]            \
	VLD1.P 16(b), [V5.S4]            \
	VLD1.P 16(c), [V6.S4]            \
	VLD1.P 16(e), [V7.S4]            \
	VTRN1  V5.S4, V4.S4, V16.S4      \
	VTRN2  V5.S4, V4.S4, V17.S4      \
	VTRN1  V7.S4, V6.S4, V18.S4      \
	VTRN2  V7.S4, V6.S4, V19.S4      \
	VTRN1  V18.D2, V16.D2, V4.D2     \
	VTRN1  V19.D2, V17.D2, V5.D2     \
	VTRN2  V18.D2, V16.D2, V6.D2     \
	VTRN2  V19.D2, V17.D2, V7.D2

// POINTS loads a dimension of the eight points, at R11.
#define POINTS(a, b)        \
	VLD1 (R11), [a.S4, b.S4]  \
	ADD  $64, R11, R11

// func LabelDistancesNEON(x *float32, panels, d int, c *float32, k int, labels *uint16, dist *float32)
TEXT ·LabelDistancesNEON(SB), NOSPLIT, $0-56
	MOVD x+0(FP), R0
	MOVD panels+8(FP), R1
	MOVD d+16(FP), R2
	MOVD c+24(FP), R3
	MOVD k+32(FP), R4
	MOVD labels+40(FP), R5
	MOVD dist+48(FP), R6
	LSL  $2, R2, R7       // bytes of a row
	VDUP R4, V29.H8
	MOVD $0x7f800000, R8
	VDUP R8, V31.S4

panel:
	MOVD $2, R8          // eight points each
	MOVD R0, R9          // they in dimension 0

eight:
	// V2, V3: ones where the label is k or more.
	VLD1  (R5), [V2.H8]
	VUMIN V29.H8, V2.H8, V2.H8
	VCMEQ V29.H8, V2.H8, V3.H8
	VZIP1 V3.H8, V3.H8, V2.H8
	VZIP2 V3.H8, V3.H8, V3.H8
	ROW(R19)
	ROW(R20)
	ROW(R21)
	ROW(R22)
	ROW(R23)
	ROW(R24)
	ROW(R25)
	ROW(R26)
	MOVD  R9, R11
	MOVD  R2, R12
	VEOR  V0.B16, V0.B16, V0.B16
	VEOR  V1.B16, V1.B16, V1.B16

four:
	SUBS $4, R12, R12
	BLT  last
	POINTS(V20, V21)
	POINTS(V22, V23)
	POINTS(V24, V25)
	POINTS(V26, V27)
	CENTRES(R19, R20, R21, R22)
	FSUB4S(4, 20, 20)
	FSUB4S(5, 22, 22)
	FSUB4S(6, 24, 24)
	FSUB4S(7, 26, 26)
	CENTRES(R23, R24, R25, R26)
	FSUB4S(4, 21, 21)
	FSUB4S(5, 23, 23)
	FSUB4S(6, 25, 25)
	FSUB4S(7, 27, 27)
	VFMLA V20.S4, V20.S4, V0.S4
	VFMLA V21.S4, V21.S4, V1.S4
	VFMLA V22.S4, V22.S4, V0.S4
	VFMLA V23.S4, V23.S4, V1.S4
	VFMLA V24.S4, V24.S4, V0.S4
	VFMLA V25.S4, V25.S4, V1.S4
	VFMLA V26.S4, V26.S4, V0.S4
	VFMLA V27.S4, V27.S4, V1.S4
	B    four

last:
	ADDS $4, R12, R12
	BEQ  store

one:
	POINTS(V20, V21)
	VLD1.P 4(R19), V4.S[0]
	VLD1.P 4(R20), V4.S[1]
	VLD1.P 4(R21), V4.S[2]
	VLD1.P 4(R22), V4.S[3]
	VLD1.P 4(R23), V5.S[0]
	VLD1.P 4(R24), V5.S[1]
	VLD1.P 4(R25), V5.S[2]
	VLD1.P 4(R26), V5.S[3]
	FSUB4S(4, 20, 20)
	FSUB4S(5, 21, 21)
	VFMLA  V20.S4, V20.S4, V0.S4
	VFMLA  V21.S4, V21.S4, V1.S4
	SUBS   $1, R12, R12
	BNE    one

store:
	VBIT   V2.B16, V31.B16, V0.B16
	VBIT   V3.B16, V31.B16, V1.B16
	VST1.P [V0.S4, V1.S4], 32(R6)
	ADD    $32, R9, R9
	SUBS   $1, R8, R8
	BNE    eight
	ADD    R2<<6, R0, R0
	SUBS   $1, R1, R1
	BNE    panel
	RET

// CUT makes the points in registers a and b offsets from the centroids in c and e, times
// factors, truncated and times the unit.
#define CUT(c, e, a, b) \
	FSUB4S(c, a, a)       \
	FSUB4S(e, b, b)       \
	FMUL4S(0, a, a)       \
	FMUL4S(1, b, b)       \
	FCVTZS4S(a, a)        \
	FCVTZS4S(b, b)        \
	SCVTF4S(a, a)         \
	SCVTF4S(b, b)         \
	FMUL4S(31, a, a)      \
	FMUL4S(31, b, b)

// PUT stores a dimension of eight offsets at R13.
#define PUT(a, b)           \
	VST1 [a.S4, b.S4], (R13)  \
	ADD  $64, R13, R13

// func CutOffsetsNEON(x *float32, panels, d int, c *float32, k int, labels *uint16, factor *float32, unit float32, out *float32)
TEXT ·CutOffsetsNEON(SB), NOSPLIT, $0-72
	MOVD  x+0(FP), R0
	MOVD  panels+8(FP), R1
	MOVD  d+16(FP), R2
	MOVD  c+24(FP), R3
	MOVD  k+32(FP), R4
	MOVD  labels+40(FP), R5
	MOVD  factor+48(FP), R6
	MOVWU unit+56(FP), R8
	VDUP  R8, V31.S4
	MOVD  out+64(FP), R14
	LSL   $2, R2, R7      // bytes of a row

cutpanel:
	MOVD $2, R8          // eight points each
	MOVD R0, R9          // they in dimension 0
	MOVD R14, R15        // their offsets

cuteight:
	VLD1.P 32(R6), [V0.S4, V1.S4]
	ROW(R19)
	ROW(R20)
	ROW(R21)
	ROW(R22)
	ROW(R23)
	ROW(R24)
	ROW(R25)
	ROW(R26)
	MOVD   R9, R11
	MOVD   R15, R13
	MOVD   R2, R12

cutfour:
	SUBS $4, R12, R12
	BLT  cutlast
	POINTS(V20, V21)
	POINTS(V22, V23)
	POINTS(V24, V25)
	POINTS(V26, V27)
	CENTRES(R19, R20, R21, R22)
	VMOV V4.B16, V8.B16
	VMOV V5.B16, V9.B16
	VMOV V6.B16, V10.B16
	VMOV V7.B16, V11.B16
	CENTRES(R23, R24, R25, R26)
	CUT(8, 4, 20, 21)
	CUT(9, 5, 22, 23)
	CUT(10, 6, 24, 25)
	CUT(11, 7, 26, 27)
	PUT(V20, V21)
	PUT(V22, V23)
	PUT(V24, V25)
	PUT(V26, V27)
	B    cutfour

cutlast:
	ADDS $4, R12, R12
	BEQ  cutnext

cutone:
	POINTS(V20, V21)
	VLD1.P 4(R19), V4.S[0]
	VLD1.P 4(R20), V4.S[1]
	VLD1.P 4(R21), V4.S[2]
	VLD1.P 4(R22), V4.S[3]
	VLD1.P 4(R23), V5.S[0]
	VLD1.P 4(R24), V5.S[1]
	VLD1.P 4(R25), V5.S[2]
	VLD1.P 4(R26), V5.S[3]
	CUT(4, 5, 20, 21)
	PUT(V20, V21)
	SUBS $1, R12, R12
	BNE  cutone

cutnext:
	ADD  $32, R9, R9
	ADD  $32, R15, R15
	SUBS $1, R8, R8
	BNE  cuteight
	ADD  R2<<6, R0, R0
	ADD  R2<<6, R14, R14
	SUBS $1, R1, R1
	BNE  cutpanel
	RET
