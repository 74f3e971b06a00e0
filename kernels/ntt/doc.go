// Package ntt holds polynomial arithmetic modulo primes below 2^30 in 32-bit
// lanes: the number-theoretic transforms of two rings, pointwise products,
// conversions between residue number systems, inner products with a key,
// permutations and uniform sampling. It knows nothing of encryption schemes.
//
// # Representation
//
// A polynomial modulo a prime q is a slice of N uint32. A canonical coefficient x
// has 0 <= x < q. Functions whose names end in Lazy return words that are read as
// signed numbers, any representative of the class within the stated bound; such
// words may be given to the functions that say so.
//
// Products are Montgomery products with R = 2^32 on signed words (Montgomery
// 1985): for a constant |w| <= q/2 and |y| < 2^31 the result
//
//	(y w - ((y w) q^-1 mod+- 2^32) q) / 2^32
//
// is y w / R modulo q and below |y| q/2^33 + q/2 <= 3q/4 in magnitude, so it needs
// no correction, and the other summand of a butterfly grows by 3q/4 at most. With
// q < 2^29.09 (7.5 q < 2^32) one summand is reduced in every second layer of a
// transform, with larger primes in every layer.
//
// Each function has one portable form; the assembly paths return the same words.
// No function allocates except New, none branches on or addresses by a
// coefficient, except [Prime.Uniform], whose input is public.
// Wrong lengths are programming errors: functions panic with both lengths. All
// are safe for concurrent use as long as what they write to is not shared.
package ntt
