package metrics

import "math"

// match returns for each row of a contingency table the column matched with it
// (-1: none) so that the sum of the matched cells is largest. It is the
// Hungarian method with potentials (Kuhn 1955, in the O(n^3) form of Jonker and
// Volgenant 1987) on the table padded to a square.
func match(table []int64, rows, columns int) []int {
	n := max(rows, columns)
	cost := func(i, j int) int64 {
		if i < rows && j < columns {
			return -table[i*columns+j]
		}
		return 0
	}
	// Index 0 is a sentinel: real rows and columns count from 1.
	u, v := make([]int64, n+1), make([]int64, n+1)
	rowOf, way := make([]int, n+1), make([]int, n+1)
	slack, used := make([]int64, n+1), make([]bool, n+1)
	for i := 1; i <= n; i++ {
		rowOf[0] = i
		for j := range slack {
			slack[j], used[j] = math.MaxInt64, false
		}
		at := 0
		for {
			used[at] = true
			row, next, delta := rowOf[at], 0, int64(math.MaxInt64)
			for j := 1; j <= n; j++ {
				if used[j] {
					continue
				}
				if reduced := cost(row-1, j-1) - u[row] - v[j]; reduced < slack[j] {
					slack[j], way[j] = reduced, at
				}
				if slack[j] < delta {
					delta, next = slack[j], j
				}
			}
			for j := range used {
				if used[j] {
					u[rowOf[j]] += delta
					v[j] -= delta
				} else if j > 0 {
					slack[j] -= delta
				}
			}
			at = next
			if rowOf[at] == 0 {
				break
			}
		}
		for at != 0 {
			rowOf[at] = rowOf[way[at]]
			at = way[at]
		}
	}
	out := make([]int, rows)
	for i := range out {
		out[i] = -1
	}
	for j := 1; j <= columns; j++ {
		if i := rowOf[j] - 1; i < rows {
			out[i] = j - 1
		}
	}
	return out
}
