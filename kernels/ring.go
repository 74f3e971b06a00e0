package kernels

// AddUint64 adds a to dst element by element, modulo 2^64.
func AddUint64(dst, a []uint64) {
	checkLength("AddUint64", "a", len(a), len(dst))
	addUint64(dst, a)
}

// addUint64Portable is the reference form of [AddUint64].
func addUint64Portable(dst, a []uint64) {
	for i, x := range a {
		dst[i] += x
	}
}
