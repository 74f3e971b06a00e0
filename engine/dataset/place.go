package dataset

import "fmt"

// place names a cell of a file for an error. Row and column count from 1 as an
// editor shows them (a header is row 1); zero leaves them out.
func place(path string, row, column int) string {
	switch {
	case row > 0 && column > 0:
		return fmt.Sprintf("%s, row %d, column %d", path, row, column)
	case row > 0:
		return fmt.Sprintf("%s, row %d", path, row)
	}
	return path
}
