package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Units of values. Any other text is shown as it is.
const (
	Nanoseconds = "ns"
	Bytes       = "B"
	Plain       = ""
)

// ParseNumber reads a number, NaN if it is none.
func ParseNumber(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// Quantity prints a quantity with three significant digits and its unit.
func Quantity(x float64, unit string) string {
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
		return inDigits(x)
	}
	return inDigits(x) + " " + unit
}

type step struct {
	factor float64
	name   string
}

func scaled(x float64, steps []step) string {
	for _, s := range steps {
		if math.Abs(x) >= s.factor || s.factor == 1 {
			return inDigits(x/s.factor) + " " + s.name
		}
	}
	return inDigits(x)
}

// inDigits prints three significant digits, and whole numbers below a million as
// they are.
func inDigits(x float64) string {
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

// Times prints a ratio as "37x" or "0.82x".
func Times(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0fx", x)
	}
	return fmt.Sprintf("%.2gx", x)
}

// Percent prints a share as "3.2 %".
func Percent(x float64) string { return fmt.Sprintf("%.2g %%", 100*x) }

// compact prints a number on an axis: 30k, 2M.
func compact(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1e6 && a < 1e9:
		return inDigits(x/1e6) + "M"
	case a >= 1e4 && a < 1e6:
		return inDigits(x/1e3) + "k"
	}
	return inDigits(x)
}

// TrailingNumber is the number at the end of a name such as "k 12", NaN if none.
func TrailingNumber(name string) float64 {
	return ParseNumber(name[strings.LastIndexByte(name, ' ')+1:])
}
