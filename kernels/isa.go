package kernels

// ISA names the instruction set in use: generic, avx2, avx512 or neon.
func ISA() string { return "generic" }

// Select reports whether the instruction set that COHORT_ISA asks for is in
// use.
func Select() error { return nil }
