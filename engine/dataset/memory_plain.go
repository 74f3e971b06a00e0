//go:build !linux

package dataset

// adviseHuge does nothing.
func adviseHuge([]byte) {}
