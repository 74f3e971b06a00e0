package kernels

import "fmt"

// Records are counted in blocks whose cells are known first, and where there are few
// cells in several tables in turn: an increment need not wait for the one before it,
// which may be of the same cell.
const (
	cellBlock  = 1024
	cellTables = 4
	fewCells   = 1024
)

// A cellCounter counts records by cell.
type cellCounter struct {
	cells  [cellBlock]uint32
	tables [cellTables][fewCells]uint32
}

// CountCells adds to counts the number of records in each cell of a grid of as many
// dimensions as there are columns of labels, each label from 0 to clusters-1, the first
// column varying slowest; len(counts) is clusters to the power of that number, at most 2^31.
func CountCells(columns [][]uint16, clusters int, counts []int64) {
	if len(columns) == 0 {
		return
	}
	checkSide("CountCells", clusters, len(columns), len(counts))
	n := len(columns[0])
	for _, c := range columns {
		checkLength("CountCells", "column", len(c), n)
	}
	var t cellCounter
	for lo := 0; lo < n; lo += cellBlock {
		cells := t.cells[:min(cellBlock, n-lo)]
		for i, c := range columns {
			times := uint32(clusters)
			if i == 0 {
				times = 0
			}
			labelCells(cells, c[lo:lo+len(cells)], times)
		}
		t.tally(cells, counts)
	}
	t.sumTables(counts)
}

// CountGrid adds to counts the number of points in each of side^D equal cells of the box
// [-1, 1]^D, dimension 0 varying slowest: in a dimension x is in cell (x+1)/2 side, rounded
// down, 1 in the last. len(counts) is side^D, at most 2^31.
func CountGrid(p Panels, side int, counts []int64) {
	p.check("CountGrid")
	checkSide("CountGrid", side, p.D, len(counts))
	var t cellCounter
	for lo := 0; lo < p.N; lo += cellBlock {
		t.tally(t.onGrid(&p, side, lo), counts)
	}
	t.sumTables(counts)
}

// WeighGrid is [CountGrid] where point i counts for units[i]; len(units) = N.
func WeighGrid(p Panels, side int, units []uint32, counts []int64) {
	p.check("WeighGrid")
	checkSide("WeighGrid", side, p.D, len(counts))
	checkLength("WeighGrid", "units", len(units), p.N)
	var t cellCounter
	for lo := 0; lo < p.N; lo += cellBlock {
		for i, c := range t.onGrid(&p, side, lo) {
			counts[c] += int64(units[lo+i])
		}
	}
}

// onGrid finds the cells of the block of points from lo.
func (t *cellCounter) onGrid(p *Panels, side, lo int) []uint32 {
	n := min(cellBlock, p.N-lo)
	panels := (n + Lanes - 1) / Lanes
	gridCells(t.cells[:panels*Lanes], p.Data[lo*p.D:][:panels*Lanes*p.D], p.D, side)
	return t.cells[:n]
}

// checkSide checks that counts has side^d cells.
func checkSide(name string, side, d, counts int) {
	cells := 1
	for range d {
		if cells *= side; side < 1 || cells > 1<<31 {
			break
		}
	}
	if side < 1 || cells != counts || cells > 1<<31 {
		panic(fmt.Sprintf("kernels: %s: len(counts)=%d, side=%d in %d dimensions: want side to the power of these, "+
			"at most 2^31", name, counts, side, d))
	}
}

// tally counts a block.
func (t *cellCounter) tally(cells []uint32, counts []int64) {
	if len(counts) > fewCells {
		for _, c := range cells {
			counts[c]++
		}
		return
	}
	for ; len(cells) >= cellTables; cells = cells[cellTables:] {
		t.tables[0][cells[0]]++
		t.tables[1][cells[1]]++
		t.tables[2][cells[2]]++
		t.tables[3][cells[3]]++
	}
	for _, c := range cells {
		t.tables[0][c]++
	}
}

// sumTables adds the tables to the counts.
func (t *cellCounter) sumTables(counts []int64) {
	if len(counts) > fewCells {
		return
	}
	for i := range t.tables {
		for c, n := range t.tables[i][:len(counts)] {
			counts[c] += int64(n)
		}
	}
}

// labelCellsPortable multiplies cells and adds labels.
func labelCellsPortable(cells []uint32, labels []uint16, times uint32) {
	for i, l := range labels {
		cells[i] = cells[i]*times + uint32(l)
	}
}

// gridCellsPortable numbers the cells of the points of panels.
func gridCellsPortable(cells []uint32, x []float32, d, side int) {
	half, last := float64(side)/2, int32(side-1)
	for i := range cells {
		cell := uint32(0)
		panel := x[i/Lanes*Lanes*d+i%Lanes:]
		for h := range d {
			cell = cell*uint32(side) + uint32(min(int32((float64(panel[h*Lanes])+1)*half), last))
		}
		cells[i] = cell
	}
}
