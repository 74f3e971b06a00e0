package chart

import (
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strconv"
	"strings"
)

// Sizes of a drawing that stands alone.
const (
	fileMargin  = 10.0
	fileTitle   = 26.0 // height of the title
	fileLegend  = 19.0 // height of a line of the legend
	letterWidth = 6.9  // of the legend's text, on average
	keyWidth    = 30.0
)

// viewBox finds the size of a drawing.
var viewBox = regexp.MustCompile(`^<svg viewBox="0 0 ([0-9.]+) ([0-9.]+)"`)

// Figure is a drawing on a page, with its numbers.
type Figure struct {
	Title, Note string
	SVG         template.HTML
	Legend      []Key
	CSV         template.URL
	Drawing     template.URL // the figure as a file
	File        string       // name of both files without an ending
}

// NewFigure is a drawing of lines with its legend and its numbers as CSV.
func NewFigure(title, drawn string, keys []Key, csv []byte, note, file string) Figure {
	return Figure{Title: title, Note: note, SVG: template.HTML(drawn), Legend: keys, CSV: Link("text/csv", csv),
		Drawing: Link("image/svg+xml", standalone(title, drawn, keys, false)), File: file}
}

// Figure is the plot on a page, without a legend beside it.
func (p *Plot) Figure(note, file string) Figure {
	return Figure{Title: p.Title, Note: note, SVG: template.HTML(p.SVG()), CSV: Link("text/csv", p.CSV()),
		Drawing: Link("image/svg+xml", p.File()), File: file}
}

// File is the plot as an SVG file that stands alone.
func (p *Plot) File() []byte { return standalone(p.Title, p.SVG(), p.Legend(), p.Bars) }

// standalone is a drawing as an SVG file that stands alone: title, legend and style are in it, and it follows its
// reader's light or dark theme. In the legend are bars or lines.
func standalone(title, inner string, keys []Key, bars bool) []byte {
	size := viewBox.FindStringSubmatch(inner)
	if size == nil {
		return []byte(inner)
	}
	width, _ := strconv.ParseFloat(size[1], 64)
	height, _ := strconv.ParseFloat(size[2], 64)
	var b strings.Builder
	x, y := fileMargin, fileMargin+fileTitle
	if len(keys) < 2 {
		keys = nil // it would say what the title says
	}
	for i, k := range keys {
		wide := keyWidth + letterWidth*float64(len([]rune(k.Name))) + 12
		if i > 0 && x+wide > width {
			x, y = fileMargin, y+fileLegend
		}
		fileKey(&b, k, bars, x, y)
		x += wide
	}
	if keys != nil {
		y += fileLegend
	}
	var out strings.Builder
	whole, tall := width+2*fileMargin, y+height+fileMargin
	name := html.EscapeString(title)
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" role="img" `+
		`aria-label="%s">`, whole, tall, whole, name)
	fmt.Fprintf(&out, `<style>%s</style><rect width="100%%" height="100%%" rx="8" style="fill: var(--card)"/>`, svgStyle())
	fmt.Fprintf(&out, `<text x="%.0f" y="%.0f" style="font-weight: 600">%s</text>`, fileMargin, fileMargin+14, name)
	out.WriteString(b.String())
	nested := fmt.Sprintf(`<svg x="%.0f" y="%.1f" width="%s" height="%s" viewBox="0 0 %s %s"`,
		fileMargin, y, size[1], size[2], size[1], size[2])
	out.WriteString(nested + inner[len(size[0]):] + "</svg>\n")
	return []byte(out.String())
}

// fileKey draws a line of the legend.
func fileKey(b *strings.Builder, k Key, bars bool, x, y float64) {
	if bars {
		class := fmt.Sprintf("fill c%d", k.Colour)
		if k.Style != "" {
			class += " " + k.Style
		}
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="18" height="10" rx="2"/>`, class, x, y-1)
	} else {
		dash := ""
		if k.Style != "" {
			dash = ` stroke-dasharray="5 4"`
		}
		fmt.Fprintf(b, `<path class="line c%d"%s d="M%.1f %.1fh20"/>`, k.Colour, dash, x, y+4)
	}
	fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f">%s</text>`, x+26, y+8, html.EscapeString(k.Name))
}

// svgStyle is what drawings need of the pages' style.
func svgStyle() string {
	var kept []string
	for _, line := range strings.Split(Style, "\n") {
		for _, start := range []string{":root", "@media (prefers", "  --c", "svg "} {
			if strings.HasPrefix(line, start) {
				kept = append(kept, line)
				break
			}
		}
	}
	return strings.Join(kept, "\n")
}
