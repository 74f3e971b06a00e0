// Package kernels holds the numeric inner loops of Cohort behind typed, checked
// functions: nearest-centroid assignment, exact accumulation, exact cost rows,
// keyed first arrivals (min-hash) and ring arithmetic.
//
// Points live in [Panels]: blocks of 16 points stored dimension by dimension, so
// that a vector lane is a point on every CPU and every instruction set runs the
// same chain of operations per distance. Each function has one portable Go form;
// the assembly paths return the same bits.
//
// # Preconditions
//
// Coordinates are finite and lie on the grid k*2^-f with |x| <= 1 and f <= 22;
// reading and normalising data establishes this. Wrong lengths are programming
// errors: functions panic with a message that names both lengths. No function
// allocates, except the constructors (New...), and none touches memory outside
// the slices it is given. Functions are safe for concurrent use as long as the
// arguments they write to are not shared.
package kernels
