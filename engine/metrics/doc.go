// Package metrics measures clusterings: compactness and separation from the
// points alone, agreement when the true classes are known (Thesis-H, section
// 2.1.3, lists them).
//
// Every measure is computed from private data, so no budget covers it. Results
// depend neither on the number of workers nor on the architecture: sums are
// taken in a fixed order, products are rounded before they are added, and the
// logarithm is this package's own.
package metrics
