// Package lsf is the LSH-forest coreset of Sketch-V (Li, Wang and Li: "Differentially
// Private Vertical Federated Clustering", PVLDB 16(6), 2023, sections 3.5 and B.1) as
// a method on one table. package synopsis has the forest itself.
package lsf
