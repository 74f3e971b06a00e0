// Package filelock locks files against other processes. Closing the file, or the
// end of the process, releases the lock.
package filelock
