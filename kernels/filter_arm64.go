//go:build arm64 && !purego

package kernels

// filterPays is false: there is no candidate filter for this processor.
func filterPays(d, k int) bool { return false }

func filterGroups() []int { return nil }

func assignFiltered(*Panels, *Centroids, []uint16) bool { return false }
