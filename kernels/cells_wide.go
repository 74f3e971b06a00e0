//go:build !arm64 || purego

package kernels

// labelsPerBlock is the number of labels that a routine takes at once.
const labelsPerBlock = 16

func labelCells(cells []uint32, labels []uint16, times uint32) {
	blocks := 0
	if current != generic {
		if blocks = len(labels) / labelsPerBlock; blocks > 0 {
			asmLabelCells(&cells[0], &labels[0], blocks, times)
		}
	}
	labelCellsPortable(cells[blocks*labelsPerBlock:], labels[blocks*labelsPerBlock:], times)
}

func gridCells(cells []uint32, x []float32, d, side int) {
	if current == generic {
		gridCellsPortable(cells, x, d, side)
		return
	}
	asmGridCells(&cells[0], &x[0], len(cells)/Lanes, d, float64(side)/2, uint32(side), uint32(side-1))
}
