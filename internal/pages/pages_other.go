//go:build !linux

package pages

// Advise does nothing.
func Advise([]byte) {}
