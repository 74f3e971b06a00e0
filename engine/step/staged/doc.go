// Package staged has what methods share that spend one budget in stages: hybrid,
// balcan, balcan-edler, lsf, and pca without noise.
//
// A run in stages has a plan (plan.go) of releases, each with a share of the budget
// (share.go), and one program that every party runs on its own records (party.go).
// The stages themselves are
//
//   - a midpoint tree of noisy counts (tree.go),
//   - a private mean, by one sum or in steps, and a histogram of distances (mean.go, steppedmean.go),
//   - random projections and a tree on them (projection.go, projected.go),
//   - rounds of relative sums: offsets of records from their nearest centroid, cut
//     to a public radius, and counts (rounds.go, offsets.go),
//   - histograms of the distances within each cluster, by which rounds set radii and
//     move centroids to where they are missing (spreads.go).
//
// Every release goes through [github.com/cohort-engine/cohort/engine/protocol]; the
// search is that of package synopsis and costs no budget. Statements of privacy are
// T2, T5 and T6 of engine/privacy/THEOREMS.md.
package staged
