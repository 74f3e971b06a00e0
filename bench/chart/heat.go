package chart

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Sizes of a table of cells.
const (
	heatLeft, heatTop, heatRow = 52.0, 26.0, 27.0
	heatFaintest, heatFullest  = 0.04, 0.55 // opacities, with which text stays legible
)

// svgHeat draws a table of cells, the darker the larger the number in it: a row
// for each curve, a column for each abscissa, both in the order of their numbers.
func (p *Plot) svgHeat() string {
	var xs []float64
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			if !slices.Contains(xs, pt.X) {
				xs = append(xs, pt.X)
			}
			lo, hi = min(lo, pt.Y), max(hi, pt.Y)
		}
	}
	slices.Sort(xs)
	rows := slices.Clone(p.Curves)
	slices.SortStableFunc(rows, func(a,
		b Curve) int {
		return cmp.Compare(TrailingNumber(a.Name), TrailingNumber(b.Name))
	})
	width := (plotWidth - heatLeft - 4) / float64(len(xs))
	height := heatTop + heatRow*float64(len(rows)) + 34
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %.0f" role="img" aria-label="%s">`, plotWidth, height,
		html.EscapeString(p.Title))
	fmt.Fprintf(&b, `<text class="name" x="4" y="16">%s</text>`, html.EscapeString(p.yTitle()))
	for r, c := range rows {
		y := heatTop + heatRow*float64(r)
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, heatLeft-7, y+18,
			html.EscapeString(c.Name))
		for _, pt := range c.Points {
			x := heatLeft + width*float64(slices.Index(xs, pt.X))
			shade := heatFullest
			if hi > lo {
				shade = heatFaintest + (heatFullest-heatFaintest)*(pt.Y-lo)/(hi-lo)
			}
			fmt.Fprintf(&b, `<rect class="fill c0" fill-opacity="%.2f" x="%.1f" y="%.1f" width="%.1f" height="%.1f">`+
				`<title>%s, %s %s: %s</title></rect><text class="cell" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
				shade, x, y, width-1, heatRow-1, html.EscapeString(c.Name), html.EscapeString(p.XName), compact(pt.X),
				html.EscapeString(cellText(pt.Y, pt.Half)), x+width/2, y+18, html.EscapeString(short(pt.Y)))
		}
	}
	base := heatTop + heatRow*float64(len(rows))
	for i, x := range xs {
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, heatLeft+
			width*(float64(i)+0.5), base+15, compact(x))
	}
	fmt.Fprintf(&b, `<text class="name" x="%.1f" y="%.1f" text-anchor="middle">%s</text></svg>`, (heatLeft+plotWidth)/2,
		base+30, html.EscapeString(p.XName))
	return b.String()
}

// cellText is a value with its interval, if it has one.
func cellText(x, half float64) string {
	if half > 0 {
		return inDigits(x) + " ± " + inDigits(half)
	}
	return inDigits(x)
}

// short prints two significant digits, for a narrow cell.
func short(x float64) string {
	if a := math.Abs(x); a >= 10 && a < 1e4 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	} else if a >= 0.001 && a < 10 {
		return strings.TrimPrefix(strconv.FormatFloat(x, 'g', 2, 64), "0")
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}
