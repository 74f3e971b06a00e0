// Package dataset brings records into the engine: it reads files and makes
// built-in sets, maps each coordinate from its public bounds onto the
// fixed-point grid in [-1, 1], and splits the records among parties.
//
// A Table holds the records in the data's own units. Normalise turns it into
// panels of exact grid points; from there on a coordinate is the same number in
// float32 and in an integer ring. Split and Columns hand rows or columns to the
// parties.
//
// Errors are those of package fault: a failed run for a fault in a file
// (unreadable, ragged, text in a number, truncated), a wrong request for what no
// file could satisfy (reversed bounds, more clients than records). No record is
// ever dropped.
package dataset
