package chart

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"

	"github.com/cohort-engine/cohort/bench/table"
)

// bar is one bar of a group.
type bar struct {
	c  *Curve
	pt Point
}

// svgBars draws horizontal bars, one group per abscissa, which leaves room for
// names and numbers on a narrow screen. The axis below has its values, and says if
// it is logarithmic: bars then begin at its least value.
func (p *Plot) svgBars() string {
	var ys []float64
	right := barRight
	groups := make([][]bar, len(p.Categories))
	height := barGroup * float64(len(groups))
	for i := range p.Curves {
		c := &p.Curves[i]
		if c.Reference != "" {
			right = barReferenceRight
		}
		for _, pt := range c.Points {
			ys = append(ys, pt.Y+pt.Half)
			groups[int(pt.X)] = append(groups[int(pt.X)], bar{c, pt})
			height += barHeight + barGap
		}
	}
	sx := newScale(ys, barLeft, plotWidth-right, p.LogY, true)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %.0f" role="img" aria-label="%s">`, plotWidth, height+barAxisSpace,
		html.EscapeString(p.Title))
	p.barAxis(&b, sx, height)
	y := 0.0
	for i, g := range groups {
		fmt.Fprintf(&b, `<text class="name" x="%.1f" y="%.1f">%s</text>`, barLeft, y+18,
			html.EscapeString(table.Clip(p.Categories[i], 64)))
		y += barGroup
		for _, r := range g {
			p.bar(&b, sx, r, y)
			y += barHeight + barGap
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

// barAxis draws the lines of the axis behind the bars and its values below them.
func (p *Plot) barAxis(b *strings.Builder, sx scale, height float64) {
	ticks := sx.ticks()
	for len(ticks) > 5 { // every other
		kept := ticks[:0]
		for i := 0; i < len(ticks); i += 2 {
			kept = append(kept, ticks[i])
		}
		ticks = kept
	}
	for _, v := range ticks {
		name := p.tick(v)
		least := barLeft + max(8, 3.2*float64(utf8.RuneCountInString(name))) // half of what a name takes
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+
			`<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
			sx.at(v), sx.at(v), barGroup-4, height+4, max(sx.at(v), least), height+18, html.EscapeString(name))
	}
	fmt.Fprintf(b, `<text class="name" x="%.1f" y="%.1f">%s</text>`, barLeft, height+36,
		html.EscapeString(axisName(p.yTitle(), sx)))
}

// bar draws one bar at height y.
func (p *Plot) bar(b *strings.Builder, sx scale, r bar, y float64) {
	class := fmt.Sprintf("fill c%d", r.c.Colour%Colours)
	if r.c.Reference != "" {
		class += " faint"
	}
	end := max(sx.at(r.pt.Y), barLeft+1)
	text := Quantity(r.pt.Y, p.Unit)
	hint := strings.TrimPrefix(r.c.Name+": "+r.pt.Hint, ": ")
	fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%g" rx="2"><title>%s</title></rect>`,
		class, barLeft, y, end-barLeft, barHeight, html.EscapeString(strings.TrimSuffix(hint, ": ")))
	if r.pt.Half > 0 {
		low, high := max(sx.at(max(r.pt.Y-r.pt.Half, sx.lo)), barLeft), sx.at(r.pt.Y+r.pt.Half)
		fmt.Fprintf(b, `<path class="interval" d="M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8"/>`, low, y+barHeight/2, high,
			low, y+barHeight/2-4, high, y+barHeight/2-4)
		text += " ± " + Quantity(r.pt.Half, p.Unit)
		end = high
	}
	if r.c.Reference != "" {
		name, _, _ := strings.Cut(r.c.Reference, ",")
		text += " " + name
	}
	fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f">%s</text>`, end+6, y+12, html.EscapeString(text))
}
