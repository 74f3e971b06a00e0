//go:build !unix && !windows

package filelock

import "os"

// Wait does nothing: there are no other processes here.
func Wait(*os.File) error { return nil }

// Try does nothing: there are no other processes here.
func Try(*os.File) error { return nil }

// Held is false: there are no other processes here.
func Held(*os.File) bool { return false }
