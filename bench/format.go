package bench

import (
	"fmt"
	"math"
	"strconv"
)

// parseNumber reads a number, NaN if it is none.
func parseNumber(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// formatUnit prints a quantity with three significant digits and its unit.
func formatUnit(x float64, unit string) string {
	switch {
	case math.IsNaN(x):
		return "–"
	case math.IsInf(x, 0):
		return "∞"
	}
	switch unit {
	case Nanoseconds:
		return scaled(x, []step{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}})
	case Bytes:
		return scaled(x, []step{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}})
	case "/s":
		return scaled(x, []step{{1e9, "G/s"}, {1e6, "M/s"}, {1e3, "k/s"}, {1, "/s"}})
	case Plain:
		return digits(x)
	}
	return digits(x) + " " + unit
}

type step struct {
	factor float64
	name   string
}

func scaled(x float64, steps []step) string {
	for _, s := range steps {
		if math.Abs(x) >= s.factor || s.factor == 1 {
			return digits(x/s.factor) + " " + s.name
		}
	}
	return digits(x)
}

// digits prints three significant digits, and whole numbers below a million as
// they are.
func digits(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e6 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	if a := math.Abs(x); a >= 100 && a < 1e6 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	} else if a >= 1e6 || a < 1e-3 {
		return strconv.FormatFloat(x, 'e', 2, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// formatValue prints what stands for a value: median and 99th percentile of
// timings, mean and interval of runs.
func formatValue(v *Value) string {
	if v == nil {
		return ""
	}
	s := formatUnit(v.Shown(), v.Unit)
	switch {
	case v.Timed && v.N > 1:
		return s + " (p99 " + formatUnit(float64(v.P99), v.Unit) + ")"
	case v.N > 1:
		return s + " ± " + formatUnit(float64(v.Half), v.Unit)
	}
	return s
}

// formatDetails prints everything about a value of several runs.
func formatDetails(v *Value) string {
	if v == nil || v.N < 2 {
		return ""
	}
	s := fmt.Sprintf("mean %s ± %s (95%%) over %d", formatUnit(float64(v.Mean), v.Unit), formatUnit(float64(v.Half), v.Unit), v.N)
	if !math.IsNaN(float64(v.Median)) {
		s += fmt.Sprintf(", median %s, 99th percentile %s", formatUnit(float64(v.Median), v.Unit), formatUnit(float64(v.P99), v.Unit))
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
	s := formatUnit(float64(r.Value), v.Unit)
	if r.Half > 0 {
		s += " ± " + formatUnit(float64(r.Half), v.Unit)
	}
	if v.Unit == Nanoseconds && v.Shown() > 0 && r.Value > 0 {
		s += fmt.Sprintf(" (%s)", times(float64(r.Value)/v.Shown()))
	}
	return s
}

// times prints a ratio as "37x" or "0.82x".
func times(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0fx", x)
	}
	return fmt.Sprintf("%.2gx", x)
}

// compact prints a number on an axis: 30k, 2M.
func compact(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1e6 && a < 1e9:
		return digits(x/1e6) + "M"
	case a >= 1e4 && a < 1e6:
		return digits(x/1e3) + "k"
	}
	return digits(x)
}
