// Vector instructions that the Go assembler lacks, as WORD macros. Operands are
// register numbers in the order of the Go assembler: m, n, d (d is written).
// The encodings are those of the Arm Architecture Reference Manual for A-profile,
// "Advanced SIMD" data processing, with m<<16 | n<<5 | d added to a base.

// d = n + m, n - m, smaller and larger of n and m; four float32.
#define FADD4S(m, n, d) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d))
#define FSUB4S(m, n, d) WORD $(0x4EA0D400 | (m)<<16 | (n)<<5 | (d))
#define FMIN4S(m, n, d) WORD $(0x4EA0F400 | (m)<<16 | (n)<<5 | (d))
#define FMAX4S(m, n, d) WORD $(0x4E20F400 | (m)<<16 | (n)<<5 | (d))

// d = all ones where n > m, else zero; four float32.
#define FCMGT4S(m, n, d) WORD $(0x6EA0E400 | (m)<<16 | (n)<<5 | (d))

// d = all ones where n > m as unsigned numbers; two 64-bit integers.
#define CMHI2D(m, n, d) WORD $(0x6EE03400 | (m)<<16 | (n)<<5 | (d))

// d = the low 16 bits of the four 32-bit integers of n: XTN to the low half of d
// (the high half is cleared), XTN2 to the high half.
#define XTN4H(n, d) WORD $(0x0E612800 | (n)<<5 | (d))
#define XTN8H(n, d) WORD $(0x4E612800 | (n)<<5 | (d))

// d = n + m, n - m, n * m; two float64.
#define FADD2D(m, n, d) WORD $(0x4E60D400 | (m)<<16 | (n)<<5 | (d))
#define FSUB2D(m, n, d) WORD $(0x4EE0D400 | (m)<<16 | (n)<<5 | (d))
#define FMUL2D(m, n, d) WORD $(0x6E60DC00 | (m)<<16 | (n)<<5 | (d))

// d = the low (FCVTL) or high (FCVTL2) two float32 of n as float64.
#define FCVTL2S(n, d) WORD $(0x0E617800 | (n)<<5 | (d))
#define FCVTL4S(n, d) WORD $(0x4E617800 | (n)<<5 | (d))

// d = all ones where n >= m, else zero; four float32.
#define FCMGE4S(m, n, d) WORD $(0x6E20E400 | (m)<<16 | (n)<<5 | (d))
