//go:build amd64 && !purego

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

func toFixed64(dst []uint64, src []float64, scale float64) {
	if converts64() {
		for len(dst) >= 8 {
			n := min(len(dst)/8, blocksPerCall)
			toFixed64Blocks(&dst[0], &src[0], n, scale)
			dst, src = dst[n*8:], src[n*8:]
		}
	}
	toFixed64Portable(dst, src, scale)
}

func toFixed64Nearest(dst []uint64, src []float64, scale float64) {
	if converts64() {
		for len(dst) >= 8 {
			n := min(len(dst)/8, blocksPerCall)
			toFixed64NearestBlocks(&dst[0], &src[0], n, scale)
			dst, src = dst[n*8:], src[n*8:]
		}
	}
	toFixed64NearestPortable(dst, src, scale)
}

func fromFixed64(dst []float64, src []uint64, scale float64) {
	if converts64() {
		for len(dst) >= 8 {
			n := min(len(dst)/8, blocksPerCall)
			fromFixed64Blocks(&dst[0], &src[0], n, scale)
			dst, src = dst[n*8:], src[n*8:]
		}
	}
	fromFixed64Portable(dst, src, scale)
}

func toFixed32(dst []uint32, src []float32, scale float32) {
	if current != generic {
		for len(dst) >= 16 {
			n := min(len(dst)/16, blocksPerCall)
			toFixed32Blocks(&dst[0], &src[0], n, scale)
			dst, src = dst[n*16:], src[n*16:]
		}
	}
	toFixed32Portable(dst, src, scale)
}

func toFixed32Nearest(dst []uint32, src []float32, scale float32) {
	if current != generic {
		for len(dst) >= 16 {
			n := min(len(dst)/16, blocksPerCall)
			toFixed32NearestBlocks(&dst[0], &src[0], n, scale)
			dst, src = dst[n*16:], src[n*16:]
		}
	}
	toFixed32NearestPortable(dst, src, scale)
}

func fromFixed32(dst []float32, src []uint32, scale float32) {
	if current != generic {
		for len(dst) >= 16 {
			n := min(len(dst)/16, blocksPerCall)
			fromFixed32Blocks(&dst[0], &src[0], n, scale)
			dst, src = dst[n*16:], src[n*16:]
		}
	}
	fromFixed32Portable(dst, src, scale)
}
