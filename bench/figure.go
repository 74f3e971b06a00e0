package bench

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/cohort-engine/cohort/bench/chart"
)

// plots builds the drawings of a figure from rows.
func (f *Figure) plots(rows []Row) []chart.Plot {
	var panels []string
	for i := range rows {
		if rows[i].Table == f.Table && rows[i].value(f.Y) != nil {
			if p := rows[i].label(f.Panel); !slices.Contains(panels, p) {
				panels = append(panels, p)
			}
		}
	}
	var out []chart.Plot
	for _, panel := range panels {
		p := chart.Plot{Title: f.Title, XName: f.X, YName: f.Y, LogX: f.LogX, LogY: f.LogY, Bars: f.Bars, Heat: f.Heat}
		if f.Panel != "" {
			p.Title += ": " + f.Panel + " " + panel
		}
		f.fill(&p, rows, panel)
		if len(p.Curves) > 0 {
			out = append(out, p)
		}
	}
	return out
}

func (f *Figure) fill(p *chart.Plot, rows []Row, panel string) {
	var xs []string
	numeric := true
	for i := range rows {
		if rows[i].Table != f.Table || rows[i].label(f.Panel) != panel || rows[i].value(f.Y) == nil {
			continue
		}
		x := rows[i].label(f.X)
		if !slices.Contains(xs, x) {
			xs = append(xs, x)
		}
		numeric = numeric && !math.IsNaN(chart.ParseNumber(x))
	}
	if f.Bars || !numeric {
		p.Categories, p.LogX = xs, false
	}
	at := make(map[string]int)
	add := func(name string, colour int, reference string, pt chart.Point) {
		i, ok := at[name]
		if !ok {
			i = len(p.Curves)
			at[name] = i
			p.Curves = append(p.Curves, chart.Curve{Name: name, Colour: colour, Reference: reference})
		}
		p.Curves[i].Points = append(p.Curves[i].Points, pt)
	}
	colours := make(map[string]int)
	for i, name := range f.curveNames(rows, panel) {
		colours[name] = i
	}
	for i := range rows {
		r := &rows[i]
		v := r.value(f.Y)
		if r.Table != f.Table || r.label(f.Panel) != panel || v == nil || math.IsNaN(v.shown()) {
			continue
		}
		p.Unit, p.Timed = v.Unit, p.Timed || v.Timed
		x := float64(slices.Index(xs, r.label(f.X)))
		if p.Categories == nil {
			x = chart.ParseNumber(r.label(f.X))
		}
		name := f.curveName(r)
		half := float64(v.Half)
		if v.Timed {
			half = 0
		}
		add(name, colours[name], "", chart.Point{X: x, Y: v.shown(), Half: half, Runs: v.N})
		for _, ref := range v.References {
			if !math.IsNaN(float64(ref.Value)) {
				add(name+" – "+ref.column(), colours[name], ref.column(),
					chart.Point{X: x, Y: float64(ref.Value), Half: float64(ref.Half)})
			}
		}
	}
	f.addLevels(p, rows, panel, len(colours))
	slices.SortStableFunc(p.Curves, func(a, b chart.Curve) int { return a.Colour - b.Colour })
	for i := range p.Curves {
		slices.SortStableFunc(p.Curves[i].Points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
	}
}

// addLevels draws the rows of the figure's level table from the first abscissa to
// the last.
func (f *Figure) addLevels(p *chart.Plot, rows []Row, panel string, colour int) {
	if f.Level == "" || p.Categories != nil {
		return
	}
	from, to := math.Inf(1), math.Inf(-1)
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			from, to = min(from, pt.X), max(to, pt.X)
		}
	}
	for i := range rows {
		r := &rows[i]
		v := r.value(f.Y)
		if r.Table != f.Level || r.label(f.Panel) != panel || v == nil || math.IsNaN(v.shown()) || from > to {
			continue
		}
		half := float64(v.Half)
		p.Curves = append(p.Curves, chart.Curve{Name: f.curveName(r), Colour: colour, Points: []chart.Point{{X: from,
			Y: v.shown(), Half: half, Runs: v.N}, {X: to, Y: v.shown(), Half: half, Runs: v.N}}})
		colour++
	}
}

// curveName is the name of the curve that a row belongs to.
func (f *Figure) curveName(r *Row) string {
	var parts []string
	for _, s := range f.Series {
		if l := r.label(s); l != "" {
			if math.IsNaN(chart.ParseNumber(l)) {
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
		if r.Table != f.Table || r.label(f.Panel) != panel || r.value(f.Y) == nil {
			continue
		}
		if name := f.curveName(r); !slices.Contains(names, name) {
			names = append(names, name)
			numbers = numbers && !math.IsNaN(chart.TrailingNumber(name))
		}
	}
	if numbers && len(f.Series) == 1 {
		slices.SortStableFunc(names,
			func(a, b string) int { return cmp.Compare(chart.TrailingNumber(a), chart.TrailingNumber(b)) })
	}
	return names
}
