//go:build amd64 && !purego

package kernels

import "unsafe"

// membersWidth is the greatest width of rows with routines of their own.
const membersWidth = 32

func addMembers(w *WeightedPoints, which []int32, labels []uint16, sums []float64) {
	if current == generic || w.width > membersWidth {
		addMembersPortable(w, which, labels, sums)
		return
	}
	for len(which) > 0 {
		n := min(len(which), blocksPerCall)
		asmAddMembersN(w.width, &w.rows[0], (*uint32)(unsafe.Pointer(&which[0])), n, &labels[0], &sums[0])
		which = which[n:]
	}
}
