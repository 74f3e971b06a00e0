package bench

import (
	"fmt"
	"math"
	"strconv"

	"github.com/cohort-engine/cohort/bench/chart"
)

// formatValue prints what stands for a value: median and 99th percentile of
// timings, mean and interval of runs.
func formatValue(v *Value) string {
	if v == nil {
		return ""
	}
	s := chart.Quantity(v.shown(), v.Unit)
	switch {
	case v.Timed && v.N > 1:
		return s + " (p99 " + chart.Quantity(float64(v.P99), v.Unit) + ")"
	case v.N > 1:
		return s + " ± " + chart.Quantity(float64(v.Half), v.Unit)
	}
	return s
}

// formatDetails prints everything about a value of several runs.
func formatDetails(v *Value) string {
	if v == nil || v.N < 2 {
		return ""
	}
	s := fmt.Sprintf("mean %s ± %s (95%%) over %d", chart.Quantity(float64(v.Mean), v.Unit),
		chart.Quantity(float64(v.Half), v.Unit), v.N)
	if !math.IsNaN(float64(v.Median)) {
		s += fmt.Sprintf(", median %s, 99th percentile %s", chart.Quantity(float64(v.Median), v.Unit),
			chart.Quantity(float64(v.P99), v.Unit))
	}
	return s
}

// formatCount prints a number of runs, nothing if there were none.
func formatCount(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// formatReference prints a reference and how we compare: how many times smaller
// or larger than it our value is.
func formatReference(v *Value, r *Reference) string {
	s := chart.Quantity(float64(r.Value), v.Unit)
	if r.Half > 0 {
		s += " ± " + chart.Quantity(float64(r.Half), v.Unit)
	}
	if v.Unit == unitNanoseconds && v.shown() > 0 && r.Value > 0 {
		s += fmt.Sprintf(" (%s)", chart.Times(float64(r.Value)/v.shown()))
	}
	return s
}
