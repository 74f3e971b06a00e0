//go:build (amd64 || arm64) && !purego

package kernels

func toFixed64(dst []uint64, src []float64, scale float64) {
	if current != generic {
		for len(dst) >= 8 {
			n := min(len(dst)/8, blocksPerCall)
			toFixed64Blocks(&dst[0], &src[0], n, scale)
			dst, src = dst[n*8:], src[n*8:]
		}
	}
	toFixed64Portable(dst, src, scale)
}

func toFixed64Nearest(dst []uint64, src []float64, scale float64) {
	if current != generic {
		for len(dst) >= 8 {
			n := min(len(dst)/8, blocksPerCall)
			toFixed64NearestBlocks(&dst[0], &src[0], n, scale)
			dst, src = dst[n*8:], src[n*8:]
		}
	}
	toFixed64NearestPortable(dst, src, scale)
}

func fromFixed64(dst []float64, src []uint64, scale float64) {
	if current != generic {
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
