//go:build amd64 && !purego

package kernels

func extend[T float32 | float64](r *Ranges[T], rows []T) bool {
	finite, period := true, len(r.lo)
	most := max(1, callBudget/4/period)
	for current != generic && len(rows) >= period {
		n := min(len(rows)/period, most)
		finite = extendPeriods(r, rows, n) && finite
		rows = rows[n*period:]
	}
	return extendPortable(r, rows) && finite
}

// extendPeriods extends the ranges to the first n periods of rows.
func extendPeriods[T float32 | float64](r *Ranges[T], rows []T, n int) bool {
	switch rows := any(rows).(type) {
	case []float32:
		r := any(r).(*Ranges[float32])
		return asmRangesNarrow(&r.lo[0], &r.hi[0], &rows[0], n, len(r.lo)/16) == 0
	case []float64:
		r := any(r).(*Ranges[float64])
		return asmRanges(&r.lo[0], &r.hi[0], &rows[0], n, len(r.lo)/8) == 0
	}
	panic("kernels: Extend: no type of numbers")
}
