// Package central has the methods that summarise records once, search the summary
// freely and refine what they find: hybrid, lsf, balcan, balcan-edler, and pca
// without noise. hybrid works over one client or many; the others over one table.
//
//   - hybrid (hybrid.go) is Cohort's own. It chooses a branch from public numbers:
//     a midpoint tree on all axes (tree.go), a tree on random directions
//     (projected.go), or neither (highd.go). Rounds of relative sums follow
//     (refine.go, offsets.go).
//   - lsf (lsf.go) is the LSH-forest coreset of Sketch-V, sections 3.5 and B.1.
//   - balcan (balcan.go, swap.go, projection.go) is the pipeline of Balcan et al.
//     (ICML 2017) with accounting that holds.
//   - balcan-edler (edler.go) is Thesis-B's form of it, under its own claim.
//   - pca (pca.go) is a reference for projections.
//
// A method is a job with a plan (frame.go) and one program that every party runs
// on its own records. Budgets are divided by law.go. Every release goes through
// [github.com/cohort-engine/cohort/engine/protocol]; the search is that of package
// synopsis and costs no budget. Statements of privacy are T2, T5 and T6 of
// engine/privacy/THEOREMS.md.
package central
