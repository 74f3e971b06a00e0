package chart

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// A place is in the region of a mark if and only if that mark is the nearest.
func TestRegionsAreOfTheNearestMark(t *testing.T) {
	m := Map{X: [2]float64{0, 10}, Y: [2]float64{-1, 1}}
	for i := range 12 {
		m.Marks = append(m.Marks, Mark{X: math.Mod(float64(i)*3.7, 10), Y: math.Mod(float64(i)*0.61, 2) - 1})
	}
	for i := range m.Marks {
		path := m.region(i)
		var polygon [][2]float64
		for _, p := range strings.FieldsFunc(strings.TrimSuffix(path, "Z"),
			func(r rune) bool { return r == 'M' || r == 'L' }) {
			var x, y float64
			if _, err := fmt.Sscanf(p, "%g %g", &x, &y); err != nil {
				t.Fatal(err)
			}
			polygon = append(polygon, [2]float64{x, y})
		}
		for gx := 0.13; gx < 10; gx += 0.5 {
			for gy := -0.97; gy < 1; gy += 0.1 {
				x, y := m.at(gx, gy)
				nearest, best, second := 0, math.Inf(1), math.Inf(1)
				for j, k := range m.Marks {
					u, v := m.at(k.X, k.Y)
					switch d := math.Hypot(u-x, v-y); {
					case d < best:
						nearest, best, second = j, d, best
					case d < second:
						second = d
					}
				}
				if second-best > 1 && inside(polygon, x, y) != (nearest == i) {
					t.Fatalf("(%g, %g) is nearest to mark %d; in region %d: %t", gx, gy, nearest, i, inside(polygon, x, y))
				}
			}
		}
	}
}

func inside(polygon [][2]float64, x, y float64) bool {
	in := false
	for k, p := range polygon {
		q := polygon[(k+1)%len(polygon)]
		if (p[1] > y) != (q[1] > y) && x < p[0]+(y-p[1])/(q[1]-p[1])*(q[0]-p[0]) {
			in = !in
		}
	}
	return in
}

// Bars and curves on a logarithmic axis say so.
func TestLogarithmicAxesAreMarked(t *testing.T) {
	p := Plot{Title: "t", YName: "time", Unit: Nanoseconds, Bars: true, Categories: []string{"a", "b"},
		Curves: []Curve{{Name: "c", Points: []Point{{X: 0, Y: 10}, {X: 1, Y: 1e6}}}}}
	if s := p.SVG(); strings.Contains(s, "logarithmic") || !strings.Contains(s, ">0 ns<") {
		t.Error("a linear axis does not begin at 0, or is said to be logarithmic")
	}
	p.LogY = true
	if !strings.Contains(p.SVG(), "time, logarithmic axis") {
		t.Error("the axis is not said to be logarithmic")
	}
	p.Bars, p.XName, p.Categories = false, "size", nil
	if s := p.SVG(); !strings.Contains(s, "time, logarithmic axis") || strings.Contains(s, "size, logarithmic") {
		t.Error("of curves, the axis of time alone is logarithmic")
	}
}

// Strands over few columns are as high as others, those over many have room for names, and those of one column
// stand upright on its axis, where each is seen.
func TestStrandsCanBeSeen(t *testing.T) {
	for columns, want := range map[int]float64{1: 100, 2: 220, 3: 220, 7: 220, 24: 730} {
		s := Strands{Title: "t"}
		rows := [][]float64{nil, nil}
		for h := range columns {
			s.Axes, s.Lo, s.Hi = append(s.Axes, fmt.Sprintf("x%d", h)), append(s.Lo, 0), append(s.Hi, 1)
			rows[0], rows[1] = append(rows[0], 0), append(rows[1], 1)
		}
		s.Rows, s.Hints, s.Widths = rows, []string{"a", "b"}, []float64{1, 1}
		svg := s.SVG()
		var width, height float64
		if _, err := fmt.Sscanf(svg, `<svg viewBox="0 0 %g %g"`, &width, &height); err != nil || height != want {
			t.Errorf("%d columns: height %g, want %g, %v", columns, height, want, err)
		}
		for _, path := range strings.Split(svg, `<path class="strand`)[1:] {
			_, d, _ := strings.Cut(path, ` d="`)
			if d, _, _ = strings.Cut(d, `"`); !strings.ContainsAny(d, "LV") {
				t.Errorf("%d columns: nothing is drawn by %q", columns, d)
			}
		}
	}
}
