// Package balcan has the pipeline of Balcan, Dick, Liang, Mou and Zhang,
// "Differentially Private Clustering in High-Dimensional Euclidean Spaces" (ICML
// 2017), twice: balcan (balcan.go) has accounting that holds, balcan-edler is
// Thesis-B's form of it under its own claim (edler.go plans, edlerparty.go runs).
// Both exchange centres for candidates by private choices (swap.go).
package balcan
