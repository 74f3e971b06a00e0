package page

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// result is a private run of d columns.
func result(t *testing.T, d int) *engine.Result {
	t.Helper()
	epsilon, delta, moved := 1.0, 1e-6, 0.25
	r := &engine.Result{Method: "m<b>", N: 100, D: d, K: 3, Parties: 2, Iterations: 2, Calibration: "proven",
		Epsilon: &epsilon, Delta: &delta,
		Sizes: []float64{50, 30, 20}, Ledger: &privacy.Ledger{Delta: delta}, Version: "v",
		Convergence: []engine.Step{{}, {Moved: &moved}, {Moved: &moved}},
		Comm:        engine.Comm{Rounds: 3, BytesSent: []int64{1500, 2}, BytesReceived: []int64{7, 8}}}
	for j := range 3 {
		c := make([]float64, d)
		for h := range c {
			c[h] = float64((j*7+h*3)%10) + 0.5
		}
		r.Centroids = append(r.Centroids, c)
	}
	for _, e := range []privacy.Entry{
		{What: "sums <x>", Viewers: []string{privacy.Outsider}, Mechanism: "laplace", Scale: 4,
			Cost: privacy.Spec{Family: "laplace", Scale: 4}, Theorem: "T2", Calibration: privacy.Proven},
		{What: "masked sums", Viewers: []string{privacy.Server}, Mechanism: "mask", Calibration: privacy.Proven},
	} {
		if err := r.Ledger.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	r.Ledger.Note("the bounds are the data's own")
	return r
}

func write(t *testing.T, r *Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageShowsTheRun(t *testing.T) {
	for _, d := range []int{1, 2, 3, 40} {
		r := result(t, d)
		bounds := dataset.Bounds{Lo: make([]float64, d), Hi: make([]float64, d)}
		for h := range bounds.Hi {
			bounds.Hi[h] = 10
		}
		page := write(t, &Run{Result: r, Data: "people.csv", Columns: []string{"age"}, Bounds: bounds,
			Headline: []string{"epsilon 1"}})
		for _, want := range []string{"m&lt;b&gt;", "sums &lt;x&gt;", "by T2", "Where the budget went", "Who saw what",
			"outsider", "server", "the bounds are the data", "How far centroids move",
			"1.5 kB", "Sizes of clusters", "noisy counts", `download="result.json"`, `download="ledger.txt"`,
			"prefers-color-scheme: dark", "age"} {
			if !strings.Contains(page, want) {
				t.Errorf("d = %d: the page lacks %q", d, want)
			}
		}
		for _, bad := range []string{"http://", "https://", "<script", "@import", "src=", "NaN", "Inf", `class="cloud`} {
			if strings.Contains(page, bad) {
				t.Errorf("d = %d: the page has %q", d, bad)
			}
		}
		if has := strings.Contains(page, `<span class="key c2 "></span>cluster 3</span>`); has != (d != 2) {
			t.Errorf("d = %d: a legend names the clusters of the lines: %t", d, has)
		}
		if has := strings.Contains(page, "Principal axes 1 and 2"); has != (d > 2) {
			t.Errorf("d = %d: principal axes are drawn: %t", d, has)
		}
	}
}

// The page shows records only if it is given them, and then says so.
func TestPageShowsPointsOnlyIfGiven(t *testing.T) {
	r := result(t, 2)
	r.Synopsis = []engine.Cell{{Lo: []float64{1, 2}, Hi: []float64{3, 4}, Weight: 12}}
	private := write(t, &Run{Result: r, Data: "a"})
	if !strings.Contains(private, "about 12 records") || strings.Contains(private, `class="cloud`) {
		t.Error("the private page does not show the synopsis alone")
	}
	if strings.Contains(private, "number of clusters") {
		t.Error("a page shows a choice that was not made")
	}
	r.KCurve = []engine.KFit{{K: 2, NICV: 0.5, Silhouette: 0.25}, {K: 3, NICV: 0.25, Silhouette: 0.75}, {K: 4}}
	chose := write(t, &Run{Result: r, Data: "a"})
	if !strings.Contains(chose, "Silhouette by number of clusters") || !strings.Contains(chose, "the run chose 3") ||
		!strings.Contains(chose, "Loss by number of clusters") {
		t.Error("the page lacks the curves that the number of clusters was chosen by")
	}
	own := write(t, &Run{Result: r, Data: "a", Points: [][]float64{{1, 1}, {2, 9}}})
	if strings.Count(own, `class="cloud`) != 8 || !strings.Contains(own, "do not pass this page on") {
		t.Error("the owner's page lacks the points or its warning")
	}
}

// Rounds of several starts are curves of their own, the best one named.
func TestConvergenceOfStarts(t *testing.T) {
	r := result(t, 2)
	r.Convergence = nil
	for _, s := range []struct {
		start int
		loss  float64
	}{{1, 9}, {1, 5}, {2, 8}, {2, 3}, {3, 7}, {2, 2.5}} {
		r.Convergence = append(r.Convergence, engine.Step{Start: s.start, Loss: &s.loss})
	}
	run := &Run{Result: r}
	curves := run.courses("loss", 0, func(s engine.Step) *float64 { return s.Loss })
	last := curves[len(curves)-1]
	if len(curves) != 3 || last.Name != "start 2, the best" || len(last.Points) != 3 ||
		last.Points[2] != (chart.Point{X: 3, Y: 2.5}) {
		t.Errorf("the curves are %+v", curves)
	}
	if page := write(t, run); strings.Count(page, "</span>other starts</span>") != 1 {
		t.Error("the legend does not name the other starts once")
	}
}

// A legend names every cluster once, by the colour of its line.
func TestStrandKeys(t *testing.T) {
	for clusters, want := range map[int]string{1: "cluster 1", 3: "cluster 2", 10: "2, 10", 40: "2, 10, 18, 26, 34",
		41: ""} {
		keys, got := strandKeys(clusters), ""
		if len(keys) > 0 {
			got = keys[min(1, len(keys)-1)].Name
		}
		if got != want || clusters < 41 && len(keys) != min(clusters, chart.Colours) {
			t.Errorf("%d clusters: %q of %d keys, want %q", clusters, got, len(keys), want)
		}
	}
}

// The principal axes of points on a line are the line.
func TestPrincipalAxesFindALine(t *testing.T) {
	r := result(t, 3)
	r.Centroids = [][]float64{{1, 1, 5}, {4, 4, 5}, {9, 9, 5}}
	run := &Run{Result: r, Bounds: dataset.Bounds{Lo: []float64{0, 0, 0}, Hi: []float64{10, 10, 10}}}
	axes, shares := run.axes(run.box())
	if shares[0] < 1-1e-12 || math.Abs(math.Abs(axes.At(0, 0))-math.Sqrt(0.5)) > 1e-12 || math.Abs(axes.At(2, 0)) > 1e-12 {
		t.Errorf("axes %v, shares %v", axes, shares)
	}
}

func TestFactsCountOne(t *testing.T) {
	r := result(t, 1)
	r.Parties, r.Iterations = 1, 1
	var got []string
	for _, f := range (&Run{Result: r}).facts() {
		got = append(got, f.Value+" "+f.Name)
	}
	if text := strings.Join(got, ", "); text != "100 points, 1 column, 3 clusters, 1 epsilon, 1e-06 delta, proven "+
		"calibration, 1 party, 1 round" {
		t.Error(text)
	}
}
