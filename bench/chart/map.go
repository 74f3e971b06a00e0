package chart

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/cohort-engine/cohort/bench/table"
)

// Map is a drawing of the plane: boxes shaded by their weight, clouds of points, and centroids with the regions
// nearest to them. Its frame is drawn square, so distances on the page are those of coordinates that the
// limits scale to one width.
type Map struct {
	Title, XName, YName string
	// X and Y are the limits.
	X, Y [2]float64
	// Boxes are drawn the fuller the more weight an area has.
	Boxes []MapBox
	// Clouds are points, each of a colour.
	Clouds []Cloud
	// Marks are centroids.
	Marks []Mark
	// Regions draws the borders between the marks' nearest places.
	Regions bool
}

// MapBox is a box with a weight.
type MapBox struct{ X, Y, DX, DY, Weight float64 }

// Cloud is points of one colour.
type Cloud struct {
	Colour int
	Points [][2]float64
}

// Mark is a numbered place.
type Mark struct {
	X, Y float64
	Name string
	Hint string
}

// The frame of a map.
const (
	mapSide                  = 430.0
	mapLeft, mapTop          = 60.0, 8.0
	mapWidth, mapHeight      = mapLeft + mapSide + 16, mapTop + mapSide + 40
	mapFaintest, mapFullest  = 0.04, 0.75
	mapMarkRadius            = 9.0
	mapNamed                 = 60 // marks that are numbered, at most
	mapSmallMark, mapMostKth = 3.0, 400
)

func (m *Map) at(x, y float64) (float64, float64) {
	return mapLeft + (x-m.X[0])/(m.X[1]-m.X[0])*mapSide, mapTop + (m.Y[1]-y)/(m.Y[1]-m.Y[0])*mapSide
}

// SVG draws the map.
func (m *Map) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, mapWidth, mapHeight,
		html.EscapeString(m.Title))
	m.axes(&b)
	m.boxes(&b)
	for _, c := range m.Clouds {
		var path strings.Builder
		for _, p := range c.Points {
			x, y := m.at(p[0], p[1])
			fmt.Fprintf(&path, "M%.0f %.0fh0", x, y)
		}
		fmt.Fprintf(&b, `<path class="cloud c%d" d="%s"/>`, c.Colour%Colours, path.String())
	}
	if m.Regions && len(m.Marks) <= mapMostKth {
		for i := range m.Marks {
			fmt.Fprintf(&b, `<path class="region" d="%s"/>`, m.region(i))
		}
	}
	for _, k := range m.Marks {
		x, y := m.at(k.X, k.Y)
		r := mapMarkRadius
		if len(m.Marks) > mapNamed {
			r = mapSmallMark
		}
		fmt.Fprintf(&b, `<g><title>%s</title><circle class="mark" cx="%.1f" cy="%.1f" r="%g"/>`,
			html.EscapeString(k.Hint), x, y, r)
		if r == mapMarkRadius {
			fmt.Fprintf(&b, `<text class="cell" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x, y+4,
				html.EscapeString(k.Name))
		}
		b.WriteString("</g>")
	}
	b.WriteString("</svg>")
	return b.String()
}

// axes draws the frame with its values and names.
func (m *Map) axes(b *strings.Builder) {
	sx := scale{lo: m.X[0], hi: m.X[1], from: mapLeft, to: mapLeft + mapSide}
	sy := scale{lo: m.Y[0], hi: m.Y[1], from: mapTop + mapSide, to: mapTop}
	for _, v := range sx.ticks() {
		fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, sx.at(v), mapTop+mapSide+15,
			html.EscapeString(compact(v)))
	}
	for _, v := range sy.ticks() {
		fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, mapLeft-4, sy.at(v)+4,
			html.EscapeString(compact(v)))
	}
	fmt.Fprintf(b, `<rect class="region" x="%g" y="%g" width="%g" height="%g"/>`, mapLeft, mapTop, mapSide, mapSide)
	fmt.Fprintf(b, `<text class="name" x="%g" y="%g" text-anchor="middle">%s</text>`, mapLeft+mapSide/2, mapTop+mapSide+
		33, html.EscapeString(m.XName))
	fmt.Fprintf(b, `<text class="name" x="12" y="%g" text-anchor="middle" transform="rotate(-90 12 %g)">%s</text>`,
		mapTop+mapSide/2, mapTop+mapSide/2, html.EscapeString(m.YName))
}

// boxes shades each by its weight on an area, beside that of the fullest but for the topmost fifth.
func (m *Map) boxes(b *strings.Builder) {
	if len(m.Boxes) == 0 {
		return
	}
	density := func(x MapBox) float64 { return math.Sqrt(x.Weight / (x.DX * x.DY)) }
	var all []float64
	for _, x := range m.Boxes {
		all = append(all, density(x))
	}
	slices.Sort(all)
	most := all[len(all)*4/5]
	for _, x := range m.Boxes {
		left, top := m.at(x.X, x.Y+x.DY)
		right, bottom := m.at(x.X+x.DX, x.Y)
		fmt.Fprintf(b, `<rect class="box" x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill-opacity="%.2f">`+
			`<title>about %.0f records</title></rect>`,
			left, top, right-left, bottom-top, mapFaintest+(mapFullest-mapFaintest)*min(density(x)/most, 1), x.Weight)
	}
}

// region is the part of the frame that is nearest to mark i: the frame cut by the half plane of every other mark.
func (m *Map) region(i int) string {
	polygon := [][2]float64{{mapLeft, mapTop}, {mapLeft + mapSide, mapTop}, {mapLeft + mapSide, mapTop + mapSide},
		{mapLeft, mapTop + mapSide}}
	x, y := m.at(m.Marks[i].X, m.Marks[i].Y)
	for j := range m.Marks {
		u, v := m.at(m.Marks[j].X, m.Marks[j].Y)
		dx, dy := u-x, v-y
		if j == i || dx == 0 && dy == 0 {
			continue
		}
		// Nearer to i: (p - middle) . (dx, dy) <= 0.
		side := func(p [2]float64) float64 { return (p[0]-(x+u)/2)*dx + (p[1]-(y+v)/2)*dy }
		var cut [][2]float64
		for k, p := range polygon {
			q := polygon[(k+1)%len(polygon)]
			a, c := side(p), side(q)
			if a <= 0 {
				cut = append(cut, p)
			}
			if (a < 0) != (c < 0) && a != c {
				t := a / (a - c)
				cut = append(cut, [2]float64{p[0] + t*(q[0]-p[0]), p[1] + t*(q[1]-p[1])})
			}
		}
		if polygon = cut; len(polygon) == 0 {
			return ""
		}
	}
	var path strings.Builder
	for k, p := range polygon {
		command := "L"
		if k == 0 {
			command = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", command, p[0], p[1])
	}
	return path.String() + "Z"
}

// Strands is a drawing of rows of numbers as lines over parallel axes, one for each column.
type Strands struct {
	Title string
	// Axes are the names of the columns, Lo and Hi their limits.
	Axes   []string
	Lo, Hi []float64
	// Rows have a number for each column; Hints name them, and Widths are those of their lines, from 0 to 1.
	Rows   [][]float64
	Hints  []string
	Widths []float64
}

// SVG draws the strands, the axes below each other: names and limits find room on a narrow screen.
func (s *Strands) SVG() string {
	const left, right, begin, nearest, least, upright = 128.0, 16.0, 14.0, 30.0, 180.0, 60.0
	// Few axes stand apart, so that the slopes of lines are seen. On one alone, lines stand upright.
	top, row := begin, nearest
	if between := float64(len(s.Axes) - 1); between > 0 {
		row = max(row, least/between)
	} else {
		top += upright
	}
	height := top + row*float64(len(s.Axes)-1) + 26
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %.0f" role="img" aria-label="%s">`, plotWidth, height,
		html.EscapeString(s.Title))
	at := func(h int, x float64) float64 {
		if s.Hi[h] == s.Lo[h] {
			return left
		}
		return left + (x-s.Lo[h])/(s.Hi[h]-s.Lo[h])*(plotWidth-left-right)
	}
	for h, name := range s.Axes {
		y := top + row*float64(h)
		fmt.Fprintf(&b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`+
			`<text class="name" x="4" y="%.1f">%s<title>%s</title></text>`, left, plotWidth-right, y, y, y+4,
			html.EscapeString(table.Clip(name, 13)), html.EscapeString(name))
		fmt.Fprintf(&b, `<text class="tick" x="%g" y="%.1f">%s</text>`+
			`<text class="tick" x="%g" y="%.1f" text-anchor="end">%s</text>`,
			left, y+14, html.EscapeString(compact(s.Lo[h])), plotWidth-right, y+14, html.EscapeString(compact(s.Hi[h])))
	}
	for i, r := range s.Rows {
		var path strings.Builder
		if len(r) == 1 {
			fmt.Fprintf(&path, "M%.1f %.1fV%.1f", at(0, r[0]), begin, top)
			r = nil
		}
		for h, x := range r {
			command := "L"
			if h == 0 {
				command = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", command, at(h, x), top+row*float64(h))
		}
		fmt.Fprintf(&b, `<path class="strand c%d" stroke-width="%.1f" d="%s"><title>%s</title></path>`, i%Colours,
			1+3*s.Widths[i], path.String(), html.EscapeString(s.Hints[i]))
	}
	b.WriteString("</svg>")
	return b.String()
}
