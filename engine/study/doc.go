// Package study runs a method among parties on machines of their own.
//
// A [Study] is a file of public values: the method, what it will release and cost, who
// takes part. Its hash stands in every [Invitation] and is what every party signs. A
// [Coordinator] gathers the parties, carries their messages and adds up their sums; it
// holds no data and lacks the parties' group secret. A party takes part by [Take]: it
// compares the study with its invitation, shows its terms and the roster's fingerprint,
// pays from its own ledger, signs, and plays its role.
//
// Below it stand, each by itself: package journal (what a role must not forget), link
// (messages over a bus that loses frames, and over the death of either end), bus (NATS
// over TLS), sum (masked sums that survive parties who vanish).
//
// What a role does follows from its records, its keys and what it receives, in the
// order of its journal. So a role that was killed runs its program again, and what it
// sends is what it had sent, or it is refused.
package study
