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

// d = n * m; four float32.
#define FMUL4S(m, n, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d))

// d = d + n * m[i], rounded once; four float32 and the float32 i of m.
#define FMLA4SI(i, m, n, d) WORD $(0x4F801000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))

// d -= n times element i of m; four float32.
#define FMLS4SI(i, m, n, d) WORD $(0x4F805000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))

// d = n as signed integers, truncated toward zero; saturates.
#define FCVTZS4S(n, d) WORD $(0x4EA1B800 | (n)<<5 | (d))
#define FCVTZS2D(n, d) WORD $(0x4EE1B800 | (n)<<5 | (d))

// d = the signed integers of n as floats, rounded to nearest even.
#define SCVTF4S(n, d) WORD $(0x4E21D800 | (n)<<5 | (d))
#define SCVTF2D(n, d) WORD $(0x4E61D800 | (n)<<5 | (d))

// The low 16 bits of d = the largest of the eight unsigned 16-bit integers of n.
#define UMAXV8H(n, d) WORD $(0x6E70A800 | (n)<<5 | (d))

// d = square root of n; four float32.
#define FSQRT4S(n, d) WORD $(0x6EA1F800 | (n)<<5 | (d))

// The first float32 of d = the smallest and the largest of the four of n.
#define FMINV4S(n, d) WORD $(0x6EB0F800 | (n)<<5 | (d))
#define FMAXV4S(n, d) WORD $(0x6E30F800 | (n)<<5 | (d))

// d = all ones where n > m, else zero; two float64.
#define FCMGT2D(m, n, d) WORD $(0x6EE0E400 | (m)<<16 | (n)<<5 | (d))
#define FCMGE2D(m, n, d) WORD $(0x6E60E400 | (m)<<16 | (n)<<5 | (d))

// d = d + n * m, modulo 2^32; four 32-bit integers.
#define MLA4S(m, n, d) WORD $(0x4EA09400 | (m)<<16 | (n)<<5 | (d))

// d = n + the low (SADDW) or high (SADDW2) two 32-bit integers of m, widened with
// their sign; two 64-bit integers.
#define SADDW2S(m, n, d) WORD $(0x0EA01000 | (m)<<16 | (n)<<5 | (d))
#define SADDW4S(m, n, d) WORD $(0x4EA01000 | (m)<<16 | (n)<<5 | (d))

// d = n / m; two float64.
#define FDIV2D(m, n, d) WORD $(0x6E60FC00 | (m)<<16 | (n)<<5 | (d))

// The low (FCVTN) or high (FCVTN2) two float32 of d = the two float64 of n, rounded
// to nearest even; FCVTN clears the high ones.
#define FCVTN2S(n, d) WORD $(0x0E616800 | (n)<<5 | (d))
#define FCVTN4S(n, d) WORD $(0x4E616800 | (n)<<5 | (d))

// d = n + m, n - m, n * m and the smaller of n and m without sign; four 32-bit integers.
#define ADD4S(m, n, d) WORD $(0x4EA08400 | (m)<<16 | (n)<<5 | (d))
#define SUB4S(m, n, d) WORD $(0x6EA08400 | (m)<<16 | (n)<<5 | (d))
#define MUL4S(m, n, d) WORD $(0x4EA09C00 | (m)<<16 | (n)<<5 | (d))
#define UMIN4S(m, n, d) WORD $(0x6EA06C00 | (m)<<16 | (n)<<5 | (d))

// d = the upper half of twice n * m, and (n - m)/2 rounded down; four signed 32-bit
// integers.
#define SQDMULH4S(m, n, d) WORD $(0x4EA0B400 | (m)<<16 | (n)<<5 | (d))
#define SHSUB4S(m, n, d) WORD $(0x4EA02400 | (m)<<16 | (n)<<5 | (d))

// d = n * m, d + n * m and d - n * m of the low (SMULL, SMLAL, SMLSL) or high two of
// four signed 32-bit integers; two 64-bit integers.
#define SMULL(m, n, d) WORD $(0x0EA0C000 | (m)<<16 | (n)<<5 | (d))
#define SMULL2(m, n, d) WORD $(0x4EA0C000 | (m)<<16 | (n)<<5 | (d))
#define SMLAL(m, n, d) WORD $(0x0EA08000 | (m)<<16 | (n)<<5 | (d))
#define SMLAL2(m, n, d) WORD $(0x4EA08000 | (m)<<16 | (n)<<5 | (d))
#define SMLSL(m, n, d) WORD $(0x0EA0A000 | (m)<<16 | (n)<<5 | (d))
#define SMLSL2(m, n, d) WORD $(0x4EA0A000 | (m)<<16 | (n)<<5 | (d))

// d = n << m, or n >> -m with its sign where m is negative; four 32-bit integers.
#define SSHL4S(m, n, d) WORD $(0x4EA04400 | (m)<<16 | (n)<<5 | (d))

// Permutations of n and m: interleaving (ZIP), even and odd lanes (UZP), transposed
// pairs of lanes (TRN); lanes of 32 or 64 bits.
#define ZIP14S(m, n, d) WORD $(0x4E803800 | (m)<<16 | (n)<<5 | (d))
#define ZIP24S(m, n, d) WORD $(0x4E807800 | (m)<<16 | (n)<<5 | (d))
#define ZIP12D(m, n, d) WORD $(0x4EC03800 | (m)<<16 | (n)<<5 | (d))
#define ZIP22D(m, n, d) WORD $(0x4EC07800 | (m)<<16 | (n)<<5 | (d))
#define UZP14S(m, n, d) WORD $(0x4E801800 | (m)<<16 | (n)<<5 | (d))
#define UZP24S(m, n, d) WORD $(0x4E805800 | (m)<<16 | (n)<<5 | (d))
#define TRN14S(m, n, d) WORD $(0x4E802800 | (m)<<16 | (n)<<5 | (d))
#define TRN24S(m, n, d) WORD $(0x4E806800 | (m)<<16 | (n)<<5 | (d))

// d = n with the 32-bit lanes of each half exchanged, and with its halves exchanged
// when m is n.
#define REV64S(n, d) WORD $(0x4EA00800 | (n)<<5 | (d))
#define EXT8(m, n, d) WORD $(0x6E004000 | (m)<<16 | (n)<<5 | (d))

// d = n; 16 bytes.
#define MOV16(n, d) WORD $(0x4EA01C00 | (n)<<16 | (n)<<5 | (d))

// d = n * m of the low two unsigned 32-bit integers, as two of 64 bits.
#define UMULL2D(m, n, d) WORD $(0x2EA0C000 | (m)<<16 | (n)<<5 | (d))

// The low half of d = the low 32 bits of the two 64-bit integers of n; the high
// half is cleared.
#define XTN2S(n, d) WORD $(0x0EA12800 | (n)<<5 | (d))

// The smaller of n and m; four signed 32-bit integers.
#define SMIN4S(m, n, d) WORD $(0x4EA06C00 | (m)<<16 | (n)<<5 | (d))

// d = n as signed integers, rounded to nearest even; saturates.
#define FCVTNS4S(n, d) WORD $(0x4E21A800 | (n)<<5 | (d))

// d = d + the four products of the signed bytes of each 32-bit lane of n with those of
// lane i of m (FEAT_DotProd).
#define SDOT4SI(i, m, n, d) WORD $(0x4F80E000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))

// d = d + the products of the two rows of eight unsigned bytes of n with the two of eight
// signed bytes of m, row i of n with row j of m in lane 2i+j (FEAT_I8MM).
#define USMMLA(m, n, d) WORD $(0x4E80AC00 | (m)<<16 | (n)<<5 | (d))
