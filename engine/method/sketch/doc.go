// Package sketch clusters records whose columns are spread over S parties
// (Sketch-V). Each party clusters its own columns privately into k' local
// clusters and tells an untrusted server the local centres and, encoded in
// Flajolet-Martin sketches, which records are in which cluster. The server
// estimates how many records each cell of the grid of local clusters holds, and
// runs weighted k-means on the grid.
//
// A Job runs the whole protocol, every party and the server, in one process.
//
// Under the proven calibration phantoms belong to grid cells and are hashed
// alike by all parties, which makes the joint release of all sketches private
// (privacy/THEOREMS.md, T3); under the claimed calibration each party adds
// phantoms of its own, as the paper has it, whose composition over parties does
// not hold. Either way the sketches protect against the server only: who knows
// the keys can test for any id.
package sketch
