// Package secagg sums vectors of several clients so that whoever adds them sees
// masked values only.
//
// It implements the masked aggregation of FastLloyd (section 5.2, Figure 2) and
// Thesis-H (section 7.2): values are fixed-point integers in a ring Z_2^64 or
// Z_2^32; the clients share a 256-bit root that the server does not have; in
// round t client i adds the mask r_(t,i), an AES-256-CTR stream of its own; the
// server adds the messages and the noise and sends the result back; the clients
// take off the masks of those who took part. A client that fails in a round is
// left out of that round's sum, and the others go on.
//
// A [Masked] vector has no way to plain values: its methods add, encode and
// decode, and only a [Client], which needs the root, takes a mask off.
//
// Wrapping around is harmless while values are masked (adding is a homomorphism
// into the ring), but the sum itself has to fit: see [Capacity].
//
// Steady-state rounds allocate nothing. Values of this package are not safe for
// concurrent use, except that different clients may work at the same time.
package secagg
