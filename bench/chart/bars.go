package chart

import (
	"fmt"
	"html"
	"strings"
)

// svgBars draws horizontal bars, one group per abscissa, which leaves room for
// names and numbers on a narrow screen.
func (p *Plot) svgBars() string {
	var ys []float64
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			ys = append(ys, pt.Y+pt.Half)
		}
	}
	right := barRight
	for _, c := range p.Curves {
		if c.Reference != "" {
			right = barReferenceRight
		}
	}
	sx := newScale(ys, barLeft, plotWidth-right, p.LogY, true)
	type bar struct {
		c  *Curve
		pt Point
	}
	groups := make([][]bar, len(p.Categories))
	height := barAxisSpace
	for i := range p.Curves {
		for _, pt := range p.Curves[i].Points {
			groups[int(pt.X)] = append(groups[int(pt.X)], bar{&p.Curves[i], pt})
			height += barHeight + barGap
		}
	}
	height += barGroup * float64(len(groups))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %.0f" role="img" aria-label="%s">`, plotWidth, height, html.EscapeString(p.Title))
	y := 0.0
	for i, g := range groups {
		fmt.Fprintf(&b, `<text class="name" x="%.1f" y="%.1f">%s</text>`, barLeft, y+18, html.EscapeString(p.Categories[i]))
		y += barGroup
		for _, r := range g {
			class := fmt.Sprintf("fill c%d", r.c.Colour%Colours)
			if r.c.Reference != "" {
				class += " faint"
			}
			end := max(sx.at(r.pt.Y), barLeft+1)
			text := Quantity(r.pt.Y, p.Unit)
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%g" rx="2"><title>%s</title></rect>`,
				class, barLeft, y, end-barLeft, barHeight, html.EscapeString(r.c.Name))
			if r.pt.Half > 0 {
				low, high := max(sx.at(max(r.pt.Y-r.pt.Half, sx.lo)), barLeft), sx.at(r.pt.Y+r.pt.Half)
				fmt.Fprintf(&b, `<path class="interval" d="M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8"/>`, low, y+barHeight/2, high, low, y+barHeight/2-4, high, y+barHeight/2-4)
				text += " ± " + Quantity(r.pt.Half, p.Unit)
				end = high
			}
			if r.c.Reference != "" {
				name, _, _ := strings.Cut(r.c.Reference, ",")
				text += " " + name
			}
			fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f">%s</text>`, end+6, y+12, html.EscapeString(text))
			y += barHeight + barGap
		}
	}
	b.WriteString("</svg>")
	return b.String()
}
