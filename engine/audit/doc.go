// Package audit looks for violations of a ledger. It builds pairs of neighbouring data sets, among them
// the worst cases that THEOREMS.md proves or refutes claims with, runs a protocol on each many
// times, and derives from how often an event happens on either side a lower bound on epsilon that holds
// with a stated confidence. A bound above the ledger's epsilon at the ledger's delta is a violation.
//
// A consistent verdict is no proof: the audit only fails to find a violation by the events it tries.
package audit
