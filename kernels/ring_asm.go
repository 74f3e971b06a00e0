//go:build (amd64 || arm64) && !purego

package kernels

// blocksPerCall bounds a call of the element-wise kernels, which work on blocks
// of 64 bytes: 1 MiB.
const blocksPerCall = 1 << 14

func addUint64(dst, a []uint64) {
	if current != generic {
		for len(dst) >= 8 {
			n := min(len(dst)/8, blocksPerCall)
			addUint64Blocks(&dst[0], &a[0], n)
			dst, a = dst[n*8:], a[n*8:]
		}
	}
	addUint64Portable(dst, a)
}

func subUint64(dst, a []uint64) {
	if current != generic {
		for len(dst) >= 8 {
			n := min(len(dst)/8, blocksPerCall)
			subUint64Blocks(&dst[0], &a[0], n)
			dst, a = dst[n*8:], a[n*8:]
		}
	}
	subUint64Portable(dst, a)
}

func addUint32(dst, a []uint32) {
	if current != generic {
		for len(dst) >= 16 {
			n := min(len(dst)/16, blocksPerCall)
			addUint32Blocks(&dst[0], &a[0], n)
			dst, a = dst[n*16:], a[n*16:]
		}
	}
	addUint32Portable(dst, a)
}

func subUint32(dst, a []uint32) {
	if current != generic {
		for len(dst) >= 16 {
			n := min(len(dst)/16, blocksPerCall)
			subUint32Blocks(&dst[0], &a[0], n)
			dst, a = dst[n*16:], a[n*16:]
		}
	}
	subUint32Portable(dst, a)
}
