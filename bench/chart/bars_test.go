package chart

import (
	"regexp"
	"strconv"
	"testing"
	"unicode/utf8"
)

// No name of the axis begins left of the picture, however long it is.
func TestNamesOfTheAxisStayInside(t *testing.T) {
	p := Plot{Unit: "ns", YName: "iteration", LogY: true, Bars: true, Categories: []string{"a", "b"},
		Curves: []Curve{{Name: "ours", Points: []Point{{X: 0, Y: 2e4}, {X: 1, Y: 3.5e11}}}}}
	names := regexp.MustCompile(`class="tick" x="([0-9.]+)"[^>]*middle">([^<]*)<`).FindAllStringSubmatch(p.svgBars(), -1)
	for _, m := range names {
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil || x < 3*float64(utf8.RuneCountInString(m[2])) {
			t.Errorf("%q is about %g", m[2], x)
		}
	}
	if len(names) < 2 || utf8.RuneCountInString(names[0][2]) < 5 {
		t.Errorf("%q", names)
	}
}
