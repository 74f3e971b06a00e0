package chart

import (
	"fmt"
	"html"
	"strings"
)

// Colours is the number of colours that the page's style defines as --c0, --c1...
const Colours = 8

// Sizes of a drawing in its own units; the page scales it.
const (
	plotWidth, plotHeight           = 480.0, 310.0
	plotLeft, plotRight             = 66.0, 14.0
	plotTop, plotBottom             = 28.0, 48.0
	barHeight, barGap, barGroup     = 14.0, 3.0, 26.0
	barLeft, barRight, barAxisSpace = 4.0, 84.0, 44.0
	barReferenceRight               = 168.0 // room for the name of a reference
)

// tick is the text of a value on the axis: with its unit where the unit changes
// with the size of the value.
func (p *Plot) tick(v float64) string {
	if p.scaledUnit() {
		return Quantity(v, p.Unit)
	}
	return compact(v)
}

// yTitle names the ordinate, with its unit where the ticks have none.
func (p *Plot) yTitle() string {
	if p.Unit == Plain || p.scaledUnit() {
		return p.YName
	}
	return p.YName + ", " + p.Unit
}

func (p *Plot) scaledUnit() bool { return p.Unit == Nanoseconds || p.Unit == Bytes || p.Unit == "/s" }

// axisName is the name of an axis, which says so if it is logarithmic.
func axisName(name string, s scale) string {
	if s.log {
		return name + ", logarithmic axis"
	}
	return name
}

// SVG draws the plot; colours come from the page's style, so the drawing follows
// its light or dark theme.
func (p *Plot) SVG() string {
	switch {
	case p.Bars:
		return p.svgBars()
	case p.Heat:
		return p.svgHeat()
	}
	var xs, ys []float64
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			xs = append(xs, pt.X)
			ys = append(ys, pt.Y)
			if !p.LogY || pt.Y-pt.Half > 0 {
				ys = append(ys, pt.Y-pt.Half)
			}
			ys = append(ys, pt.Y+pt.Half)
		}
	}
	sx := newScale(xs, plotLeft, plotWidth-plotRight, p.LogX, false)
	sy := newScale(ys, plotHeight-plotBottom, plotTop, p.LogY, true)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, plotWidth, plotHeight,
		html.EscapeString(p.Title))
	for _, v := range sy.ticks() {
		y := sy.at(v)
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+
			`<text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			plotLeft, plotWidth-plotRight, y, y, plotLeft-7, y+4, html.EscapeString(p.tick(v)))
	}
	fmt.Fprintf(&b, `<text class="name" x="4" y="16">%s</text>`, html.EscapeString(axisName(p.yTitle(), sy)))
	base := plotHeight - plotBottom
	xTick := func(x float64, text string) {
		fmt.Fprintf(&b, `<line class="axis" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+
			`<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
			x, x, base, base+5, x, base+19, html.EscapeString(text))
	}
	if p.Categories != nil {
		for i, name := range p.Categories {
			xTick(sx.at(float64(i)), name)
		}
	} else {
		for _, v := range sx.ticks() {
			xTick(sx.at(v), compact(v))
		}
	}
	fmt.Fprintf(&b, `<path class="axis" d="M%.1f %.1fV%.1fH%.1f" fill="none"/>`, plotLeft, plotTop, base,
		plotWidth-plotRight)
	fmt.Fprintf(&b, `<text class="name" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
		(plotLeft+plotWidth-plotRight)/2, plotHeight-8, html.EscapeString(axisName(p.XName, sx)))
	for i := range p.Curves {
		p.svgCurve(&b, &p.Curves[i], sx, sy)
	}
	b.WriteString("</svg>")
	return b.String()
}

// svgCurve draws a curve: its line, and a mark with a whisker for each point.
func (p *Plot) svgCurve(b *strings.Builder, c *Curve, sx, sy scale) {
	class := fmt.Sprintf("c%d", c.Colour%Colours)
	dash := ""
	if c.Reference != "" {
		dash = ` stroke-dasharray="6 5"`
	}
	var path strings.Builder
	for i, pt := range c.Points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", command, sx.at(pt.X), sy.at(pt.Y))
	}
	if len(c.Points) > 1 {
		fmt.Fprintf(b, `<path class="line %s" d="%s"%s/>`, class, path.String(), dash)
	}
	for _, pt := range c.Points {
		p.svgPoint(b, c, pt, sx, sy)
	}
}

// svgPoint draws a point of a curve with the half width of its interval.
func (p *Plot) svgPoint(b *strings.Builder, c *Curve, pt Point, sx, sy scale) {
	class := fmt.Sprintf("c%d", c.Colour%Colours)
	x, y := sx.at(pt.X), sy.at(pt.Y)
	if pt.Half > 0 {
		low := pt.Y - pt.Half
		if sy.log {
			low = max(low, sy.lo)
		}
		fmt.Fprintf(b, `<path class="whisker %s" d="M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8"/>`, class, x, sy.at(low),
			sy.at(pt.Y+pt.Half), x-4, sy.at(low), x-4, sy.at(pt.Y+pt.Half))
	}
	fill := "dot"
	if c.Reference != "" {
		fill = "ring"
	}
	text := c.Name + ": " + Quantity(pt.Y, p.Unit)
	if pt.Half > 0 {
		text += " ± " + Quantity(pt.Half, p.Unit)
	}
	fmt.Fprintf(b, `<circle class="%s %s" cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle>`, fill, class, x, y,
		html.EscapeString(text))
}
