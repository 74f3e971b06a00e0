package bench

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// plot is one drawing: curves over a common abscissa.
type plot struct {
	title      string
	xName      string
	yName      string
	unit       string
	logX, logY bool
	bars, heat bool
	timed      bool
	categories []string // names of the abscissae if they are not numbers
	curves     []curve
}

// curve is one series; references are drawn dashed in the colour of the series
// that they belong to.
type curve struct {
	name      string
	colour    int
	reference string // whose figures they are; empty for ours
	points    []point
}

type point struct {
	x, y, half float64
	runs       int // behind it; 0 for references
}

// plots builds the drawings of a figure from rows.
func (f *Figure) plots(rows []Row) []plot {
	var panels []string
	for i := range rows {
		if rows[i].Table == f.Table && rows[i].Value(f.Y) != nil {
			if p := rows[i].Label(f.Panel); !slices.Contains(panels, p) {
				panels = append(panels, p)
			}
		}
	}
	var out []plot
	for _, panel := range panels {
		p := plot{title: f.Title, xName: f.X, yName: f.Y, logX: f.LogX, logY: f.LogY, bars: f.Bars, heat: f.Heat}
		if f.Panel != "" {
			p.title += ": " + f.Panel + " " + panel
		}
		p.fill(f, rows, panel)
		if len(p.curves) > 0 {
			out = append(out, p)
		}
	}
	return out
}

func (p *plot) fill(f *Figure, rows []Row, panel string) {
	var xs []string
	numeric := true
	for i := range rows {
		if rows[i].Table != f.Table || rows[i].Label(f.Panel) != panel || rows[i].Value(f.Y) == nil {
			continue
		}
		x := rows[i].Label(f.X)
		if !slices.Contains(xs, x) {
			xs = append(xs, x)
		}
		numeric = numeric && !math.IsNaN(parseNumber(x))
	}
	if f.Bars || !numeric {
		p.categories, p.logX = xs, false
	}
	at := make(map[string]int)
	add := func(name string, colour int, reference string, pt point) {
		i, ok := at[name]
		if !ok {
			i = len(p.curves)
			at[name] = i
			p.curves = append(p.curves, curve{name: name, colour: colour, reference: reference})
		}
		p.curves[i].points = append(p.curves[i].points, pt)
	}
	colours := make(map[string]int)
	for i, name := range f.curveNames(rows, panel) {
		colours[name] = i
	}
	for i := range rows {
		r := &rows[i]
		v := r.Value(f.Y)
		if r.Table != f.Table || r.Label(f.Panel) != panel || v == nil || math.IsNaN(v.Shown()) {
			continue
		}
		p.unit, p.timed = v.Unit, p.timed || v.Timed
		x := float64(slices.Index(xs, r.Label(f.X)))
		if p.categories == nil {
			x = parseNumber(r.Label(f.X))
		}
		name := f.curveName(r)
		half := float64(v.Half)
		if v.Timed {
			half = 0
		}
		add(name, colours[name], "", point{x, v.Shown(), half, v.N})
		for _, ref := range v.References {
			if !math.IsNaN(float64(ref.Value)) {
				add(name+" – "+ref.column(), colours[name], ref.column(), point{x, float64(ref.Value), float64(ref.Half), 0})
			}
		}
	}
	p.addLevels(f, rows, panel, len(colours))
	slices.SortStableFunc(p.curves, func(a, b curve) int { return a.colour - b.colour })
	for i := range p.curves {
		slices.SortStableFunc(p.curves[i].points, func(a, b point) int {
			switch {
			case a.x < b.x:
				return -1
			case a.x > b.x:
				return 1
			}
			return 0
		})
	}
}

// addLevels draws the rows of the figure's level table from the first abscissa to
// the last.
func (p *plot) addLevels(f *Figure, rows []Row, panel string, colour int) {
	if f.Level == "" || p.categories != nil {
		return
	}
	from, to := math.Inf(1), math.Inf(-1)
	for _, c := range p.curves {
		for _, pt := range c.points {
			from, to = min(from, pt.x), max(to, pt.x)
		}
	}
	for i := range rows {
		r := &rows[i]
		v := r.Value(f.Y)
		if r.Table != f.Level || r.Label(f.Panel) != panel || v == nil || math.IsNaN(v.Shown()) || from > to {
			continue
		}
		half := float64(v.Half)
		p.curves = append(p.curves, curve{name: f.curveName(r), colour: colour, points: []point{{from, v.Shown(), half, v.N}, {to, v.Shown(), half, v.N}}})
		colour++
	}
}

// curveName is the name of the curve that a row belongs to.
func (f *Figure) curveName(r *Row) string {
	var parts []string
	for _, s := range f.Series {
		if l := r.Label(s); l != "" {
			if math.IsNaN(parseNumber(l)) {
				parts = append(parts, l)
			} else {
				parts = append(parts, s+" "+l)
			}
		}
	}
	if len(parts) == 0 {
		return "Cohort"
	}
	return strings.Join(parts, ", ")
}

// curveNames are the names of a panel's curves: by the number at their end if all
// have one, else as they come.
func (f *Figure) curveNames(rows []Row, panel string) []string {
	var names []string
	numbers := true
	for i := range rows {
		r := &rows[i]
		if r.Table != f.Table || r.Label(f.Panel) != panel || r.Value(f.Y) == nil {
			continue
		}
		if name := f.curveName(r); !slices.Contains(names, name) {
			names = append(names, name)
			numbers = numbers && !math.IsNaN(trailingNumber(name))
		}
	}
	if numbers && len(f.Series) == 1 {
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(trailingNumber(a), trailingNumber(b)) })
	}
	return names
}

// caption says what our points are: of how many runs, and with intervals or not.
func (p *plot) caption() string {
	least, most, whiskers := 0, 0, false
	for _, c := range p.curves {
		for _, pt := range c.points {
			if pt.runs > 0 {
				if least == 0 || pt.runs < least {
					least = pt.runs
				}
				most = max(most, pt.runs)
				whiskers = whiskers || pt.half > 0 && !p.heat
			}
		}
	}
	switch {
	case most <= 1:
		return "single values"
	case p.timed && least < most:
		return fmt.Sprintf("medians of %d to %d repetitions", least, most)
	case p.timed:
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

// csv lists the points of a drawing.
func (p *plot) csv() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	unit := p.yName
	if p.unit != "" {
		unit += " (" + p.unit + ")"
	}
	lines := [][]string{{"series", p.xName, unit, "ci95_half", "runs"}}
	for _, c := range p.curves {
		for _, pt := range c.points {
			x := strconv.FormatFloat(pt.x, 'g', -1, 64)
			if p.categories != nil {
				x = p.categories[int(pt.x)]
			}
			lines = append(lines, []string{c.name, x, strconv.FormatFloat(pt.y, 'g', -1, 64), strconv.FormatFloat(pt.half, 'g', -1, 64), strconv.Itoa(pt.runs)})
		}
	}
	w.WriteAll(lines) // a bytes.Buffer does not fail
	return b.Bytes()
}

// scale maps values to pixels.
type scale struct {
	lo, hi   float64
	from, to float64
	log      bool
}

func (s scale) at(v float64) float64 {
	if s.log {
		return s.from + (math.Log(v)-math.Log(s.lo))/(math.Log(s.hi)-math.Log(s.lo))*(s.to-s.from)
	}
	return s.from + (v-s.lo)/(s.hi-s.lo)*(s.to-s.from)
}

// newScale chooses round limits around values; a logarithmic scale needs
// positive ones and falls back to a linear one.
func newScale(values []float64, from, to float64, log, zero bool) scale {
	lo, hi := slices.Min(values), slices.Max(values)
	if log && lo > 0 {
		if hi/lo < 4 {
			mid := math.Sqrt(hi * lo)
			lo, hi = mid/2, mid*2
		}
		margin := math.Pow(hi/lo, 0.05)
		return scale{lo / margin, hi * margin, from, to, true}
	}
	if zero && lo > 0 {
		lo = 0
	}
	if lo == hi {
		lo, hi = lo-0.5, hi+0.5
	}
	margin := (hi - lo) * 0.06
	s := scale{lo - margin, hi + margin, from, to, false}
	if zero && lo == 0 {
		s.lo = 0
	}
	return s
}

// ticks returns round values inside the scale.
func (s scale) ticks() []float64 {
	var out []float64
	if s.log {
		for e := math.Floor(math.Log10(s.lo)); e <= math.Ceil(math.Log10(s.hi)); e++ {
			for _, m := range []float64{1, 2, 5} {
				if v := m * math.Pow(10, e); v >= s.lo && v <= s.hi {
					out = append(out, v)
				}
			}
		}
		if len(out) > 7 {
			out = slices.DeleteFunc(out, func(v float64) bool {
				l := math.Log10(v)
				return math.Abs(l-math.Round(l)) > 1e-9
			})
		}
		for len(out) > 8 {
			for i := len(out) - 1 - (len(out)+1)%2; i > 0; i -= 2 {
				out = slices.Delete(out, i, i+1)
			}
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10((s.hi-s.lo)/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (s.hi-s.lo)/(step*m) <= 6 {
			step *= m
			break
		}
	}
	for v := math.Ceil(s.lo/step) * step; v <= s.hi+step*1e-9; v += step {
		out = append(out, math.Round(v/step)*step)
	}
	return out
}

// colours is the number of colours that the page's style defines as --c0, --c1...
const colours = 8

// Sizes of a drawing in its own units; the page scales it.
const (
	plotWidth, plotHeight           = 480.0, 310.0
	plotLeft, plotRight             = 66.0, 14.0
	plotTop, plotBottom             = 28.0, 48.0
	barHeight, barGap, barGroup     = 14.0, 3.0, 26.0
	barLeft, barRight, barAxisSpace = 4.0, 84.0, 10.0
	barReferenceRight               = 168.0 // room for the name of a reference
)

// tick is the text of a value on the axis: with its unit where the unit changes
// with the size of the value.
func (p *plot) tick(v float64) string {
	if p.scaledUnit() {
		return formatUnit(v, p.unit)
	}
	return compact(v)
}

// yTitle names the ordinate, with its unit where the ticks have none.
func (p *plot) yTitle() string {
	if p.unit == Plain || p.scaledUnit() {
		return p.yName
	}
	return p.yName + ", " + p.unit
}

func (p *plot) scaledUnit() bool { return p.unit == Nanoseconds || p.unit == Bytes || p.unit == "/s" }

// svg draws the plot; colours come from the page's style, so the drawing follows
// its light or dark theme.
func (p *plot) svg() string {
	switch {
	case p.bars:
		return p.svgBars()
	case p.heat:
		return p.svgHeat()
	}
	var xs, ys []float64
	for _, c := range p.curves {
		for _, pt := range c.points {
			xs = append(xs, pt.x)
			ys = append(ys, pt.y)
			if !p.logY || pt.y-pt.half > 0 {
				ys = append(ys, pt.y-pt.half)
			}
			ys = append(ys, pt.y+pt.half)
		}
	}
	sx := newScale(xs, plotLeft, plotWidth-plotRight, p.logX, false)
	sy := newScale(ys, plotHeight-plotBottom, plotTop, p.logY, true)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, plotWidth, plotHeight, html.EscapeString(p.title))
	for _, v := range sy.ticks() {
		y := sy.at(v)
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			plotLeft, plotWidth-plotRight, y, y, plotLeft-7, y+4, html.EscapeString(p.tick(v)))
	}
	fmt.Fprintf(&b, `<text class="name" x="4" y="16">%s</text>`, html.EscapeString(p.yTitle()))
	base := plotHeight - plotBottom
	xTick := func(x float64, text string) {
		fmt.Fprintf(&b, `<line class="axis" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
			x, x, base, base+5, x, base+19, html.EscapeString(text))
	}
	if p.categories != nil {
		for i, name := range p.categories {
			xTick(sx.at(float64(i)), name)
		}
	} else {
		for _, v := range sx.ticks() {
			xTick(sx.at(v), compact(v))
		}
	}
	fmt.Fprintf(&b, `<path class="axis" d="M%.1f %.1fV%.1fH%.1f" fill="none"/>`, plotLeft, plotTop, base, plotWidth-plotRight)
	fmt.Fprintf(&b, `<text class="name" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, (plotLeft+plotWidth-plotRight)/2, plotHeight-8, html.EscapeString(p.xName))
	for _, c := range p.curves {
		class := fmt.Sprintf("c%d", c.colour%colours)
		dash := ""
		if c.reference != "" {
			dash = ` stroke-dasharray="6 5"`
		}
		var path strings.Builder
		for i, pt := range c.points {
			command := "L"
			if i == 0 {
				command = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", command, sx.at(pt.x), sy.at(pt.y))
		}
		if len(c.points) > 1 {
			fmt.Fprintf(&b, `<path class="line %s" d="%s"%s/>`, class, path.String(), dash)
		}
		for _, pt := range c.points {
			x, y := sx.at(pt.x), sy.at(pt.y)
			if pt.half > 0 {
				low := pt.y - pt.half
				if sy.log {
					low = max(low, sy.lo)
				}
				fmt.Fprintf(&b, `<path class="whisker %s" d="M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8"/>`, class, x, sy.at(low), sy.at(pt.y+pt.half), x-4, sy.at(low), x-4, sy.at(pt.y+pt.half))
			}
			fill := "dot"
			if c.reference != "" {
				fill = "ring"
			}
			text := c.name + ": " + formatUnit(pt.y, p.unit)
			if pt.half > 0 {
				text += " ± " + formatUnit(pt.half, p.unit)
			}
			fmt.Fprintf(&b, `<circle class="%s %s" cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle>`, fill, class, x, y, html.EscapeString(text))
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

// svgBars draws horizontal bars, one group per abscissa, which leaves room for
// names and numbers on a narrow screen.
func (p *plot) svgBars() string {
	var ys []float64
	for _, c := range p.curves {
		for _, pt := range c.points {
			ys = append(ys, pt.y+pt.half)
		}
	}
	right := barRight
	for _, c := range p.curves {
		if c.reference != "" {
			right = barReferenceRight
		}
	}
	sx := newScale(ys, barLeft, plotWidth-right, p.logY, true)
	type bar struct {
		c  *curve
		pt point
	}
	groups := make([][]bar, len(p.categories))
	height := barAxisSpace
	for i := range p.curves {
		for _, pt := range p.curves[i].points {
			groups[int(pt.x)] = append(groups[int(pt.x)], bar{&p.curves[i], pt})
			height += barHeight + barGap
		}
	}
	height += barGroup * float64(len(groups))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %.0f" role="img" aria-label="%s">`, plotWidth, height, html.EscapeString(p.title))
	y := 0.0
	for i, g := range groups {
		fmt.Fprintf(&b, `<text class="name" x="%.1f" y="%.1f">%s</text>`, barLeft, y+18, html.EscapeString(p.categories[i]))
		y += barGroup
		for _, r := range g {
			class := fmt.Sprintf("fill c%d", r.c.colour%colours)
			if r.c.reference != "" {
				class += " faint"
			}
			end := max(sx.at(r.pt.y), barLeft+1)
			text := formatUnit(r.pt.y, p.unit)
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%g" rx="2"><title>%s</title></rect>`,
				class, barLeft, y, end-barLeft, barHeight, html.EscapeString(r.c.name))
			if r.pt.half > 0 {
				low, high := max(sx.at(max(r.pt.y-r.pt.half, sx.lo)), barLeft), sx.at(r.pt.y+r.pt.half)
				fmt.Fprintf(&b, `<path class="interval" d="M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8"/>`, low, y+barHeight/2, high, low, y+barHeight/2-4, high, y+barHeight/2-4)
				text += " ± " + formatUnit(r.pt.half, p.unit)
				end = high
			}
			if r.c.reference != "" {
				name, _, _ := strings.Cut(r.c.reference, ",")
				text += " " + name
			}
			fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f">%s</text>`, end+6, y+12, html.EscapeString(text))
			y += barHeight + barGap
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

// Sizes of a table of cells.
const (
	heatLeft, heatTop, heatRow = 52.0, 26.0, 27.0
	heatFaintest, heatFullest  = 0.04, 0.55 // opacities, with which text stays legible
)

// svgHeat draws a table of cells, the darker the larger the number in it: a row
// for each curve, a column for each abscissa, both in the order of their numbers.
func (p *plot) svgHeat() string {
	var xs []float64
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, c := range p.curves {
		for _, pt := range c.points {
			if !slices.Contains(xs, pt.x) {
				xs = append(xs, pt.x)
			}
			lo, hi = min(lo, pt.y), max(hi, pt.y)
		}
	}
	slices.Sort(xs)
	rows := slices.Clone(p.curves)
	slices.SortStableFunc(rows, func(a, b curve) int { return cmp.Compare(trailingNumber(a.name), trailingNumber(b.name)) })
	width := (plotWidth - heatLeft - 4) / float64(len(xs))
	height := heatTop + heatRow*float64(len(rows)) + 34
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %.0f" role="img" aria-label="%s">`, plotWidth, height, html.EscapeString(p.title))
	fmt.Fprintf(&b, `<text class="name" x="4" y="16">%s</text>`, html.EscapeString(p.yTitle()))
	for r, c := range rows {
		y := heatTop + heatRow*float64(r)
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, heatLeft-7, y+18, html.EscapeString(c.name))
		for _, pt := range c.points {
			x := heatLeft + width*float64(slices.Index(xs, pt.x))
			shade := heatFullest
			if hi > lo {
				shade = heatFaintest + (heatFullest-heatFaintest)*(pt.y-lo)/(hi-lo)
			}
			fmt.Fprintf(&b, `<rect class="fill c0" fill-opacity="%.2f" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s, %s %s: %s</title></rect><text class="cell" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
				shade, x, y, width-1, heatRow-1, html.EscapeString(c.name), html.EscapeString(p.xName), compact(pt.x), html.EscapeString(cellText(pt.y, pt.half)), x+width/2, y+18, html.EscapeString(short(pt.y)))
		}
	}
	base := heatTop + heatRow*float64(len(rows))
	for i, x := range xs {
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, heatLeft+width*(float64(i)+0.5), base+15, compact(x))
	}
	fmt.Fprintf(&b, `<text class="name" x="%.1f" y="%.1f" text-anchor="middle">%s</text></svg>`, (heatLeft+plotWidth)/2, base+30, html.EscapeString(p.xName))
	return b.String()
}

// cellText is a value with its interval, if it has one.
func cellText(x, half float64) string {
	if half > 0 {
		return digits(x) + " ± " + digits(half)
	}
	return digits(x)
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

// trailingNumber is the number at the end of a name such as "k 12", NaN if none.
func trailingNumber(name string) float64 {
	return parseNumber(name[strings.LastIndexByte(name, ' ')+1:])
}
