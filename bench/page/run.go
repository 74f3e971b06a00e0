// Package page writes one run as a page for a person who was not there: one file that needs no network,
// with drawings, what was spent and who saw what. It shows what the result holds, and the points of the
// reader's own file if it is given them.
package page

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

//go:embed run.tmpl.html
var runTemplate string

// Run is a run and what its page needs besides the result.
type Run struct {
	Result *engine.Result
	// Data names the data set; Columns its columns, nil for x1, x2, ...
	Data    string
	Columns []string
	// Bounds are those of the columns; without any the page takes what the centroids span.
	Bounds dataset.Bounds
	// Points are rows of the reader's own file, which no budget covers; nil in a page for others.
	Points [][]float64
	// Headline says what holds of the run, one sentence each.
	Headline []string
}

// fact is a number in the page's head.
type fact struct{ Name, Value string }

// view is what one viewer sees.
type view struct {
	Viewer, Total string
	Releases      []seen
}

type seen struct{ What, Cost, How, Theorem string }

// file is one that can be saved from the page.
type file struct {
	Name string
	Link template.URL
}

type runPage struct {
	Style      template.CSS
	Title      string
	Version    string
	Headline   []string
	Facts      []fact
	Clusters   []chart.Figure
	Table      [][]string
	Process    []chart.Figure
	Privacy    []chart.Figure
	Views      []view
	NotCovered []string
	Conditions []string
	Costs      []chart.Figure
	Notes      []string
	Files      []file
}

// WriteHTML writes the page. It follows its reader's light or dark theme and fits a narrow screen.
func (r *Run) WriteHTML(w io.Writer) error {
	t, err := template.New("run").Parse(runTemplate)
	if err != nil {
		return fmt.Errorf("page: template: %w", err)
	}
	res := r.Result
	p := runPage{Style: template.CSS(chart.Style), Version: res.Version, Headline: r.Headline, Facts: r.facts(),
		Notes: res.Notes, Table: r.table(),
		Title: fmt.Sprintf("%s of %s by %s", fault.Count(len(res.Centroids), "cluster"), r.Data, res.Method)}
	p.Clusters = r.clusters()
	p.Clusters = append(p.Clusters, r.numbers()...)
	p.Process = append(p.Process, r.convergence()...)
	p.Privacy, p.Views = budget(res.Ledger), views(res.Ledger)
	for _, e := range res.Ledger.Entries() {
		if e.Kind == privacy.Note {
			p.NotCovered = append(p.NotCovered, e.What)
		}
		for _, c := range e.Conditions {
			if !slices.Contains(p.Conditions, c) {
				p.Conditions = append(p.Conditions, c)
			}
		}
	}
	p.Costs = append(times(res), traffic(res)...)
	if p.Files, err = r.files(); err != nil {
		return err
	}
	return t.Execute(w, p)
}

// name is the name of column h.
func (r *Run) name(h int) string {
	if h < len(r.Columns) {
		return r.Columns[h]
	}
	return fmt.Sprintf("x%d", h+1)
}

// counted is a number of things.
func counted(n int, thing string) fact {
	value, name, _ := strings.Cut(fault.Count(n, thing), " ")
	return fact{name, value}
}

func (r *Run) facts() []fact {
	res := r.Result
	f := []fact{counted(res.N, "point"), counted(res.D, "column"), counted(len(res.Centroids), "cluster")}
	if res.Epsilon == nil {
		f = append(f, fact{"privacy", "none"})
	} else {
		f = append(f, fact{"epsilon", fmt.Sprintf("%g", *res.Epsilon)}, fact{"delta", fmt.Sprintf("%.3g", *res.Delta)},
			fact{"calibration", res.Calibration})
	}
	f = append(f, counted(res.Parties, "party"), counted(res.Iterations, "round"))
	switch {
	case res.NICV != nil:
		f = append(f, fact{"NICV", fmt.Sprintf("%.5g", *res.NICV)})
	case res.LossEstimate != nil:
		f = append(f, fact{"NICV, estimated", fmt.Sprintf("%.3g", *res.LossEstimate)})
	}
	return f
}

// tableRows and tableColumns are what the page shows of the centroids; the file has all.
const tableRows, tableColumns = 100, 12

// table is the centroids with their sizes, the head first.
func (r *Run) table() [][]string {
	res := r.Result
	shown := min(res.D, tableColumns)
	head := []string{"cluster"}
	if res.Sizes != nil {
		head = append(head, map[bool]string{true: "size, noisy", false: "size"}[res.Epsilon != nil])
	}
	for h := range shown {
		head = append(head, r.name(h))
	}
	rows := [][]string{head}
	for j, c := range res.Centroids[:min(len(res.Centroids), tableRows)] {
		row := []string{strconv.Itoa(j + 1)}
		if res.Sizes != nil {
			row = append(row, fmt.Sprintf("%.0f", res.Sizes[j]))
		}
		for _, x := range c[:shown] {
			row = append(row, fmt.Sprintf("%.5g", x))
		}
		rows = append(rows, row)
	}
	return rows
}

// plotted makes a figure of a drawing.
func plotted(p *chart.Plot, note string) chart.Figure {
	return p.Figure(note, strings.ReplaceAll(strings.ToLower(p.Title), " ", "-"))
}

// numbers draws how well each number of clusters fits what was released, where the run chose.
func (r *Run) numbers() []chart.Figure {
	if len(r.Result.KCurve) < 2 {
		return nil
	}
	silhouette := chart.Plot{Title: "Silhouette by number of clusters", XName: "clusters", YName: "silhouette"}
	loss := chart.Plot{Title: "Loss by number of clusters", XName: "clusters", YName: "NICV, estimated", LogY: true}
	var silhouettes, losses []chart.Point
	for _, c := range r.Result.KCurve {
		silhouettes = append(silhouettes, chart.Point{X: float64(c.K), Y: c.Silhouette})
		if c.NICV > 0 {
			losses = append(losses, chart.Point{X: float64(c.K), Y: c.NICV})
		}
	}
	note := fmt.Sprintf("on the private synopsis, at no further cost; the run chose %d", len(r.Result.Centroids))
	silhouette.Curves = []chart.Curve{{Name: "silhouette", Points: silhouettes}}
	out := []chart.Figure{plotted(&silhouette, note)}
	if len(losses) > 1 {
		loss.Curves = []chart.Curve{{Name: "loss", Colour: 1, Points: losses}}
		out = append(out, plotted(&loss, note))
	}
	return out
}

// convergence draws the loss and the moves of the centroids by round, where they are public.
func (r *Run) convergence() []chart.Figure {
	loss := chart.Plot{Title: "Loss by round", YName: "sum of squared distances"}
	moved := chart.Plot{Title: "How far centroids move", YName: "root mean square move, in half widths of the box"}
	var out []chart.Figure
	for _, f := range []struct {
		plot   *chart.Plot
		name   string
		colour int
		value  func(engine.Step) *float64
		note   string
	}{
		{&loss, "loss", 0, func(s engine.Step) *float64 { return s.Loss }, "of the centroids that each round begins with"},
		{&moved, "move", 1, func(s engine.Step) *float64 { return s.Moved },
			"between the centroids of one round and the next, as they were released"},
	} {
		if f.plot.Curves = r.courses(f.name, f.colour, f.value); f.plot.Curves == nil {
			continue
		}
		f.plot.XName = "round"
		if len(f.plot.Curves) > 1 {
			f.plot.XName = "round of the start"
		}
		drawn := plotted(f.plot, f.note)
		if len(f.plot.Curves) > 1 {
			drawn.Legend = f.plot.Legend()
		}
		out = append(out, drawn)
	}
	return out
}

// courses are values of the rounds as curves, one for each start of several; that of the start with the least
// loss, or of the last round where none is known, lies over the others. It is nil for fewer than two values.
func (r *Run) courses(name string, colour int, value func(engine.Step) *float64) []chart.Curve {
	rounds, points, values := make(map[int]int), make(map[int][]chart.Point), 0
	best, least := 0, math.Inf(1)
	var order []int
	for _, s := range r.Result.Convergence {
		if rounds[s.Start] == 0 {
			order = append(order, s.Start)
		}
		rounds[s.Start]++
		if s.Loss != nil && *s.Loss < least {
			best, least = s.Start, *s.Loss
		}
		if v := value(s); v != nil {
			points[s.Start] = append(points[s.Start], chart.Point{X: float64(rounds[s.Start]), Y: *v})
			values++
		}
	}
	if values < 2 {
		return nil
	}
	if len(order) == 1 {
		return []chart.Curve{{Name: name, Colour: colour, Points: points[order[0]]}}
	}
	if math.IsInf(least, 1) {
		best = r.Result.Convergence[len(r.Result.Convergence)-1].Start
	}
	var curves []chart.Curve
	for _, start := range order {
		if start != best && points[start] != nil {
			curves = append(curves, chart.Curve{Name: "other starts", Colour: chart.Colours - 1, Points: points[start]})
		}
	}
	return append(curves, chart.Curve{Name: fmt.Sprintf("start %d, the best", best), Colour: colour, Points: points[best]})
}

// budget draws what each release costs and what each viewer can learn in all.
func budget(l *privacy.Ledger) []chart.Figure {
	p := chart.Plot{Title: "Where the budget went", YName: "epsilon", Bars: true}
	releases, totals := chart.Curve{Name: "release"}, chart.Curve{Name: "all that a viewer sees", Colour: 1}
	add := func(c *chart.Curve, name string, epsilon float64, hint string) {
		c.Points = append(c.Points, chart.Point{X: float64(len(p.Categories)), Y: epsilon, Hint: hint})
		p.Categories = append(p.Categories, name)
	}
	for _, e := range l.Entries() {
		if e.Kind == privacy.Release && e.Epsilon != nil {
			hint := fmt.Sprintf("%s, %s sensitivity %.4g, scale %.4g", e.Mechanism, e.Norm, e.Sensitivity, e.Scale)
			if e.Theorem != "" {
				hint += ", by " + e.Theorem
			}
			add(&releases, e.What, *e.Epsilon, hint)
		}
	}
	if len(releases.Points) == 0 {
		return nil
	}
	for _, t := range l.Totals() {
		if t.Epsilon != nil {
			add(&totals, t.What, *t.Epsilon, "composed by the accountant "+t.Accountant)
		}
	}
	p.Curves = []chart.Curve{releases, totals}
	f := plotted(&p, fmt.Sprintf("at delta %.3g; what releases cost together is less than the sum of their bars. "+
		"Point at a bar for its theorem", l.Delta))
	f.Legend = p.Legend()
	return []chart.Figure{f}
}

// views lists what each viewer sees, with what it costs.
func views(l *privacy.Ledger) []view {
	var out []view
	for _, v := range l.Viewers() {
		s := view{Viewer: v, Total: "no bound"}
		if t := l.TotalFor(v); t.Epsilon != nil {
			s.Total = fmt.Sprintf("epsilon %.4g", *t.Epsilon)
			if t.Delta != nil && *t.Delta > 0 {
				s.Total += fmt.Sprintf(", delta %.3g", *t.Delta)
			}
		}
		for _, e := range l.Entries() {
			if !e.SeenBy(v) {
				continue
			}
			row := seen{What: e.What, Cost: "–", How: e.Mechanism, Theorem: e.Theorem}
			if e.Epsilon != nil {
				row.Cost = fmt.Sprintf("%.4g", *e.Epsilon)
			}
			if e.Scale != 0 {
				row.How += strings.TrimRight(fmt.Sprintf(", scale %.4g %s", e.Scale, e.Unit), " ")
			}
			if who := e.Noise.String(); who != "" {
				row.How += ", " + who
			}
			s.Releases = append(s.Releases, row)
		}
		out = append(out, s)
	}
	return out
}

// times draws the time of each phase.
func times(res *engine.Result) []chart.Figure {
	if len(res.Timings) == 0 {
		return nil
	}
	p := chart.Plot{Title: "Time by phase", YName: "total", Unit: chart.Nanoseconds, Bars: true}
	names := slices.SortedFunc(maps.Keys(res.Timings),
		func(a, b string) int { return int(res.Timings[b].TotalNS - res.Timings[a].TotalNS) })
	c := chart.Curve{}
	for i, n := range names {
		t := res.Timings[n]
		c.Points = append(c.Points, chart.Point{X: float64(i), Y: float64(t.TotalNS),
			Hint: fmt.Sprintf("%d times, median %s", t.Count, chart.Quantity(float64(t.P50NS), chart.Nanoseconds))})
		p.Categories = append(p.Categories, n)
	}
	p.Curves = []chart.Curve{c}
	return []chart.Figure{plotted(&p, "of all parties together; it depends on the records")}
}

// mostParties is the number of parties whose traffic is drawn one by one.
const mostParties = 12

// traffic draws the bytes of each party.
func traffic(res *engine.Result) []chart.Figure {
	if len(res.Comm.BytesSent) == 0 {
		return nil
	}
	p := chart.Plot{Title: "Bytes", YName: "bytes of encoded messages", Unit: chart.Bytes, Bars: true}
	sent, received := chart.Curve{Name: "sent"}, chart.Curve{Name: "received", Colour: 1}
	for i := range res.Comm.BytesSent[:min(len(res.Comm.BytesSent), mostParties)] {
		p.Categories = append(p.Categories, fmt.Sprintf("party %d", i+1))
		sent.Points = append(sent.Points, chart.Point{X: float64(i), Y: float64(res.Comm.BytesSent[i])})
		received.Points = append(received.Points, chart.Point{X: float64(i), Y: float64(res.Comm.BytesReceived[i])})
	}
	p.Curves = []chart.Curve{sent, received}
	f := plotted(&p, fmt.Sprintf("rounds of messages: %d; parties: %d", res.Comm.Rounds, len(res.Comm.BytesSent)))
	f.Legend = p.Legend()
	return []chart.Figure{f}
}

// files are those that can be saved.
func (r *Run) files() ([]file, error) {
	whole, err := json.MarshalIndent(r.Result, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	var ledger, centroids bytes.Buffer
	if err := r.Result.Ledger.Text(&ledger); err != nil {
		return nil, err
	}
	c := csv.NewWriter(&centroids)
	head := make([]string, r.Result.D)
	for h := range head {
		head[h] = r.name(h)
	}
	rows := [][]string{head}
	for _, x := range r.Result.Centroids {
		row := make([]string, len(x))
		for h, v := range x {
			row[h] = strconv.FormatFloat(v, 'g', -1, 64)
		}
		rows = append(rows, row)
	}
	if err := c.WriteAll(rows); err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	return []file{{"result.json", chart.Link("application/json", whole)},
		{"centroids.csv", chart.Link("text/csv", centroids.Bytes())},
		{"ledger.txt", chart.Link("text/plain", ledger.Bytes())}}, nil
}
