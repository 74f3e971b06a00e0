// Package hybrid is Cohort's own method, which is recommended first: a private
// synopsis, free search on it, relative refinement; for one client or many. Its
// tree is in the line of Su, Cao, Li, Bertino and Jin, "Differentially Private
// K-Means Clustering and a Hybrid Approach to Private Optimization" (ACM TOPS 2017,
// arXiv:1504.05998), its relative sums in that of FastLloyd's follow-up code.
//
// The branch follows from public numbers: a midpoint tree on all axes (tree.go) or one
// grid (grid.go), a tree on random directions (projected.go), rounds without either
// (highd.go), or one mean with counts of cells about it (mean.go, cells.go). The stages
// are those of [github.com/cohort-engine/cohort/engine/step/staged].
package hybrid
