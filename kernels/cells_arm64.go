//go:build !purego

package kernels

func labelCells(cells []uint32, labels []uint16, times uint32) {
	labelCellsPortable(cells, labels, times)
}

func gridCells(cells []uint32, x []float32, d, side int) { gridCellsPortable(cells, x, d, side) }
