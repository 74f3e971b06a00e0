//go:build !amd64 || purego

package kernels

func addMembers(w *WeightedPoints, which []int32, labels []uint16, sums []float64) {
	addMembersPortable(w, which, labels, sums)
}
