// Package protocol is the skeleton of every method: what is planned, who plays
// which role, how roles meet, and the one gate through which anything computed
// from records leaves a party.
//
// A method makes a [Plan] from public values alone, before any record is touched:
// the rounds, every [Release] with its mechanism, sensitivity, scale, theorem and
// audience, and so the whole ledger. [Run] then gives every role its own [Party]:
// its randomness root, its end of the [Transport], the plan; the method's program
// for that role closes over that role's records and nothing else.
//
// What a step computes from records goes into a [Private] vector, which can be
// added to but not read, printed, encoded or sent. [Party.Sum] and [Party.Own]
// are the ways out of it: they check that the plan has the release and that it
// was not made in this round before, draw this role's noise or share of it, mask,
// add up over the parties, unmask, and return plain numbers to those who are in
// the release's audience. [Party.Send] carries bytes that the plan names.
//
// All roles of a release's audience post-process for themselves and reach the
// same bits, since what they compute from is public and public randomness has a
// public seed. Where roles share a process the result of such a computation is
// taken from the first of them ([Party.Once]).
package protocol
