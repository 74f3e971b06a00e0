package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/cohort-engine/cohort/bench/chart"
)

//go:embed report.tmpl.html
var reportTemplate string

type htmlTable struct {
	Name string
	// Break is the width in rem below which its rows stand below each other.
	Break   int
	Columns []htmlCell
	Rows    [][]htmlCell
}

type htmlCell struct {
	Text    string
	Column  string // its heading
	Numeric bool
	Hint    string // mean, interval, median and runs behind the text
}

type htmlSection struct {
	*Section
	Figures []chart.Figure
	Tables  []htmlTable
	Missing string
	Remarks []string
	Ledgers []htmlLedger
	CSV     template.URL
	Empty   bool
}

// htmlLedger is the privacy ledger of one run of a protocol.
type htmlLedger struct{ Title, Text string }

type htmlPage struct {
	*Report
	Parts    []htmlSection
	Headline []string
	Floor    string
	Spread   string
	Clock    string
	Style    template.CSS
}

// WriteHTML writes one page that needs no network: tables, drawings with
// intervals, the method and the machine. It follows the reader's light or dark
// theme and fits a narrow screen; every table and figure can be saved as CSV.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Parse(reportTemplate)
	if err != nil {
		return fmt.Errorf("bench: report template: %w", err)
	}
	page := htmlPage{Report: r, Style: template.CSS(chart.Style), Floor: fmt.Sprintf("%.1f%%", 100*r.Machine.NoiseFloor),
		Spread: fmt.Sprintf("%.0f%%", 100*r.Machine.Spread)}
	if r.Machine.MHz > 0 {
		page.Clock = fmt.Sprintf(", %.0f MHz", r.Machine.MHz)
	}
	for i := range r.Sections {
		s := &r.Sections[i]
		part := htmlSection{Section: s, Missing: s.missingText(r.DataDir), Remarks: s.remarks(), Empty: len(s.Rows) == 0}
		var lines strings.Builder
		single := &Report{Sections: []Section{*s}}
		if err := single.WriteCSV(&lines); err != nil {
			return err
		}
		part.CSV = chart.Link("text/csv", []byte(lines.String()))
		for _, f := range s.Suite.Figures {
			for n, p := range f.plots(s.Rows) {
				h := p.Figure(p.Caption(), fmt.Sprintf("%s-%d", slug(s.Suite.Name+"-"+f.Title), n+1))
				h.Legend = p.Legend()
				part.Figures = append(part.Figures, h)
			}
		}
		for _, g := range s.grids() {
			part.Tables = append(part.Tables, g.html())
		}
		part.Ledgers = s.ledgers()
		page.Parts = append(page.Parts, part)
	}
	page.Headline = r.headlines()
	return t.Execute(w, page)
}

// tableBreaks are the widths in rem at which the page's style can turn a table into cards.
var tableBreaks = []int{24, 36, 48, 60, 76, 98}

// always is the break of a table that fits nowhere: its rows are cards at any width.
const always = 100

// html is the grid for the page.
func (g *grid) html() htmlTable {
	t := htmlTable{Name: g.name}
	width := 0.0 // in rem, about
	for j, c := range g.Columns {
		t.Columns = append(t.Columns, htmlCell{Text: c, Numeric: g.Numeric[j]})
		widest := 0
		for _, word := range strings.Fields(c) {
			widest = max(widest, len([]rune(word)))
		}
		for _, row := range g.Rows {
			if n := len([]rune(row[j])); g.Numeric[j] {
				widest = max(widest, n)
			} else {
				widest = max(widest, min(n, 24)) // text wraps
			}
		}
		width += 0.5*float64(widest) + 1.2
	}
	t.Break = always
	for _, b := range slices.Backward(tableBreaks) {
		if width+2 <= float64(b) {
			t.Break = b
		}
	}
	for i, row := range g.Rows {
		var cells []htmlCell
		for j, text := range row {
			column := g.Columns[j]
			if g.Of[j] != "" {
				column += " of " + strings.TrimPrefix(g.Of[j], "of ")
			}
			cells = append(cells, htmlCell{text, column, g.Numeric[j], g.hints[i][j]})
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// ledgers are the privacy ledgers of the section, one for each protocol: the
// first row that has one stands for the others, which differ in sizes and scales.
func (s *Section) ledgers() []htmlLedger {
	var out []htmlLedger
	seen := make(map[string]bool)
	for i := range s.Rows {
		r := &s.Rows[i]
		name := r.label("protocol") + r.label("method")
		if r.Ledger == "" || seen[name] {
			continue
		}
		seen[name] = true
		var labels []string
		for _, l := range r.Labels {
			labels = append(labels, l.Name+" "+l.Value)
		}
		out = append(out, htmlLedger{strings.Join(labels, ", "), r.Ledger})
	}
	return out
}

// headlines compares us with references in one sentence per reference and
// suite: the smallest and largest ratio over its rows, with where the reference was
// taken. Iterations are compared by those that leave no record out, as the reference's do.
func (r *Report) headlines() []string {
	type span struct {
		low, high float64
		rows      int
		source    string
	}
	var out []string
	for _, s := range r.Sections {
		spans := make(map[string]*span)
		var order []string
		for i := range s.Rows {
			for _, v := range s.Rows[i].Values {
				shown := v.shown()
				if whole := s.Rows[i].value(allRecords); v.Name == iteration && whole != nil {
					shown = whole.shown()
				}
				for _, ref := range v.References {
					if v.Unit != unitNanoseconds || !(shown > 0) || !(ref.Value > 0) ||
						ref.Kind != kindPublished && ref.Kind != kindPeer {
						continue
					}
					key := v.Name + " against " + ref.column()
					if spans[key] == nil {
						spans[key] = &span{low: 1e300, source: ref.Source}
						order = append(order, key)
					}
					x := float64(ref.Value) / shown
					spans[key].low, spans[key].high = min(spans[key].low, x), max(spans[key].high, x)
					spans[key].rows++
				}
			}
		}
		for _, key := range order {
			p := spans[key]
			text := fmt.Sprintf("%s to %s the speed over %d rows", chart.Times(p.low), chart.Times(p.high), p.rows)
			if p.rows == 1 {
				text = chart.Times(p.low) + " the speed"
			}
			if p.source != "" {
				text += " (" + p.source + ")"
			}
			out = append(out, fmt.Sprintf("%s, %s: %s", s.Suite.Name, key, text))
		}
	}
	return out
}

// slug makes a file name of a title.
func slug(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s), "-")
}
