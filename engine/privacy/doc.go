// Package privacy holds what makes a release private and what proves it: budgets, random streams,
// exact noise samplers, mechanisms, accountants, selection, the calibrations of every method, and
// the ledger in which each release is entered.
//
// Every theorem that the package relies on is stated, with its conditions and a proof or a precise
// reference, in THEOREMS.md beside this file; a ledger entry cites it by name (T1, T2, ...).
//
// Neighbouring data sets differ by adding or removing one record unless ReplaceOne is said.
// The package imports nothing of the engine.
package privacy
