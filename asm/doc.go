// Package asm holds the assembly routines of Cohort and their Go declarations.
// Only the package kernels calls them: it checks lengths, cuts the work into
// bounded calls and picks the instruction set.
//
// The amd64 routines are written by the avo programs in _gen (go generate); the
// arm64 ones by hand. Pointers need no alignment unless a routine says so.
// Panels are blocks of [d][16]float32. Routines read and write exactly the
// ranges their comments name, and none of them is preemptible, so a call should
// stay below some 100 microseconds.
package asm
