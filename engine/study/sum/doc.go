// Package sum adds up vectors of parties that do not trust each other over a server
// that none of them trusts, and survives parties that vanish: Bonawitz et al. 2017,
// "Practical Secure Aggregation for Privacy-Preserving Machine Learning", figure 4,
// with a key pair for every sum; above 200 parties each shares its secrets with some
// neighbours only (Bell et al. 2020, "Secure Single-Server Aggregation with
// (Poly)Logarithmic Overhead").
//
// A sum has these steps. The server closes each when all have answered, or at its
// deadline with those who have; with fewer than the threshold it ends the study.
//
//  1. Keys: each party sends a fresh X25519 public key, signed together with a digest of the group's secret and the
//     results of all sums before. The server passes them on.
//  2. Shares: each party cuts its secret key and the seed of its own mask into Shamir
//     shares, one for each neighbour, sealed for it. The server passes them on.
//  3. Masked: each party sends its vector plus its own mask plus, for each neighbour, a
//     mask of the pair, which the two add with opposite signs.
//  4. Set: the server says whose vectors it has; each party signs that set, and goes on
//     when enough others have signed the same one.
//  5. Unmask: for each neighbour in the set a party sends its share of the own mask's
//     seed, for each that vanished before step 3 its share of the secret key: never both.
//
// The server then takes off the own masks and the pairs' masks of those who vanished,
// and has the sum over the set, which is under the parties' group mask: it learns
// neither a vector nor the sum.
//
// The model: the server and up to threshold-1 parties may pool what they see, and
// follow the protocol; above 200 parties, a fifth of them. A server that does not can leave parties out, and so choose
// which of at least threshold vectors a sum has; it can stop. It cannot show two sets
// for one sum (step 4) while it has fewer than 2 threshold - n of the n parties on its side:
// each of the others signs one set, and either needs threshold signatures. Above 200 parties
// neighbours agree on a set: with fewer than [Config.Colluders] it still has one total at most and no second one
// that differs by a vector, but where it shows parts of the circle different sets, the total is over those who are in
// all of them, which may be fewer than the threshold. It cannot put in
// parties of its own (the roster is signed, and its fingerprint compared by people). It can tell parties a wrong
// result, as a party can send a wrong vector, but not one party another than the rest: what they add next, and the
// scale of their noise, may follow from results, and a share of less noise would not hide the rest's records (step 1).
//
// Server and Client are state machines without clock, network or randomness of their
// own: the same code runs over NATS and under virtual time.
package sum
