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

// blocksPerCall bounds a call of the element-wise kernels, which work on blocks
// of 64 bytes: 1 MiB.
const blocksPerCall = 1 << 14

func addUint64(dst, a []uint64) {
	if current != generic {
		for len(dst) >= 8 {
			n := min(len(dst)/8, blocksPerCall)
			asmAddUint64(&dst[0], &a[0], n)
			dst, a = dst[n*8:], a[n*8:]
		}
	}
	addUint64Portable(dst, a)
}
