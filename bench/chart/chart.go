// Package chart draws figures as SVG for pages that follow their reader's light or dark
// theme: curves, bars, tables of cells, scattered points. Colours come from the page's style ([Style]).
package chart

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"html/template"
	"slices"
	"strconv"
)

// Style is the style sheet of pages with drawings and tables.
//
//go:embed style.css
var Style string

// Plot is one drawing: curves over a common abscissa.
type Plot struct {
	Title      string
	XName      string
	YName      string
	Unit       string // of the ordinate
	LogX, LogY bool
	Bars, Heat bool
	Timed      bool     // points are medians
	Categories []string // names of the abscissae if they are not numbers
	Curves     []Curve
}

// Curve is one series; references are drawn dashed in the colour of the series
// that they belong to.
type Curve struct {
	Name      string
	Colour    int    // of the style's, modulo Colours
	Reference string // whose figures they are; empty for ours
	Points    []Point
}

// Point is one value of a curve.
type Point struct {
	X, Y, Half float64 // Half is the half width of an interval, 0 for none
	Runs       int     // behind it; 0 for references
	Hint       string  // shown when pointed at, besides the value
}

// Caption says what our points are: of how many runs, and with intervals or not.
func (p *Plot) Caption() string {
	least, most, whiskers := 0, 0, false
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			if pt.Runs > 0 {
				if least == 0 || pt.Runs < least {
					least = pt.Runs
				}
				most = max(most, pt.Runs)
				whiskers = whiskers || pt.Half > 0 && !p.Heat
			}
		}
	}
	switch {
	case most <= 1:
		return "single values"
	case p.Timed && least < most:
		return fmt.Sprintf("medians of %d to %d repetitions", least, most)
	case p.Timed:
		return fmt.Sprintf("medians of %d repetitions", most)
	}
	s := fmt.Sprintf("means of %d runs", most)
	if least < most {
		s = fmt.Sprintf("means of %d to %d runs", least, most)
	}
	if whiskers {
		s += ", whiskers are 95% intervals"
	}
	return s
}

// CSV lists the points of a drawing.
func (p *Plot) CSV() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	unit := p.YName
	if p.Unit != "" {
		unit += " (" + p.Unit + ")"
	}
	lines := [][]string{{"series", p.XName, unit, "ci95_half", "runs"}}
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			x := strconv.FormatFloat(pt.X, 'g', -1, 64)
			if p.Categories != nil {
				x = p.Categories[int(pt.X)]
			}
			lines = append(lines, []string{c.Name, x, strconv.FormatFloat(pt.Y, 'g', -1, 64),
				strconv.FormatFloat(pt.Half, 'g', -1, 64), strconv.Itoa(pt.Runs)})
		}
	}
	w.WriteAll(lines) // a bytes.Buffer does not fail
	return b.Bytes()
}

// Key is a line of a legend.
type Key struct {
	Name   string
	Colour int
	Style  string // how a reference differs: dashed line or faint bar
}

// Legend names the curves, those of one name and colour once, and each kind of reference once: references have the
// colour of the curve that they belong to. A table of cells has none.
func (p *Plot) Legend() []Key {
	if p.Heat {
		return nil // the cells say what they are
	}
	var keys []Key
	var references []string
	for _, c := range p.Curves {
		key := Key{Name: c.Name, Colour: c.Colour % Colours}
		if c.Reference == "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		} else if c.Reference != "" && !slices.Contains(references, c.Reference) {
			references = append(references, c.Reference)
		}
	}
	style, colour := map[bool]string{true: "faint", false: "dashed"}[p.Bars], Colours-1
	if len(keys) == 1 {
		colour = keys[0].Colour // theirs, too
	}
	for _, r := range references {
		keys = append(keys, Key{Name: r, Colour: colour, Style: style})
	}
	return keys
}

// Link is an address that holds a file's bytes, for pages that need no network.
func Link(mime string, b []byte) template.URL {
	return template.URL("data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(b))
}
