// Package lloyd runs private k-means over clients that share the rows of a
// table: Lloyd's algorithm, its differentially private forms after Su et al.,
// FastLloyd and its follow-up, with or without bounds on the sizes of clusters.
//
// A [Job] says what to run. Every client is its records plus its state and the
// server, where there is one, is its state; all of them run in this process. A
// round is: assign and sum at every client, encode in fixed point, mask, add,
// perturb, unmask, post-process. What each party can see of it is the subject of
// Thesis-H Tables 5.1 to 5.3, 7.2 and 7.3; [protocol.Views] records it.
//
// The time of a round depends on the records: constrained assignment is harder for
// some than for others, and a round leaves out records that it knows not to have
// changed since the round before. No message depends on it, but whoever can time a
// client learns something that epsilon does not cover.
//
// The size of the noise is set by the calibration. Claimed follows the theorems
// of FastLloyd and Thesis-H, Published the code that their authors released, and
// Proven, the default, what engine/privacy/THEOREMS.md proves. The ledger of a
// result says which ran and what it is worth.
package lloyd
