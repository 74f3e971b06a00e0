package page

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/bench/chart"
)

// clusters draws the centroids: on the plane, or on pairs of principal axes and as strands over the columns; and
// their sizes.
func (r *Run) clusters() []chart.Figure {
	var out []chart.Figure
	switch b := r.box(); {
	case r.Result.D == 2:
		out = append(out, r.plane(b))
	case r.Result.D > 2:
		out = append(out, r.principal(b)...)
		out = append(out, r.strands(b))
	default:
		out = append(out, r.strands(b))
	}
	return append(out, r.sizes()...)
}

// box is the lower and upper limit of each column.
func (r *Run) box() [][2]float64 {
	b := make([][2]float64, r.Result.D)
	for h := range b {
		lo, hi := math.Inf(1), math.Inf(-1)
		if len(r.Bounds.Lo) == len(b) {
			lo, hi = r.Bounds.Lo[h], r.Bounds.Hi[h]
		} else {
			for _, c := range r.Result.Centroids {
				lo, hi = min(lo, c[h]), max(hi, c[h])
			}
			margin := max((hi-lo)*0.1, 1e-9)
			lo, hi = lo-margin, hi+margin
		}
		b[h] = [2]float64{lo, hi}
	}
	return b
}

// hint names cluster j.
func (r *Run) hint(j int) string {
	s := fmt.Sprintf("cluster %d", j+1)
	if r.Result.Sizes != nil {
		s += fmt.Sprintf(", about %.0f records", r.Result.Sizes[j])
	}
	for h, x := range r.Result.Centroids[j][:min(r.Result.D, 8)] {
		s += fmt.Sprintf(", %s %.4g", r.name(h), x)
	}
	return s
}

// source says what is drawn behind the centroids.
func (r *Run) source() string {
	switch {
	case r.Points != nil:
		return fmt.Sprintf("%d of the records, which no budget covers: do not pass this page on", len(r.Points))
	case r.Result.Synopsis != nil:
		return "shaded by the private synopsis that the run has paid for"
	}
	return "centroids alone: the method releases no more"
}

// mapped makes a figure of a map.
func (r *Run) mapped(m *chart.Map, note string) chart.Figure {
	var b strings.Builder
	fmt.Fprintf(&b, "cluster,%q,%q\n", m.XName, m.YName)
	for _, k := range m.Marks {
		fmt.Fprintf(&b, "%s,%v,%v\n", k.Name, k.X, k.Y)
	}
	return chart.NewFigure(m.Title, m.SVG(), nil, []byte(b.String()), note, "clusters")
}

// plane draws a set of two columns as it is.
func (r *Run) plane(b [][2]float64) chart.Figure {
	m := chart.Map{Title: "Clusters", XName: r.name(0), YName: r.name(1), X: b[0], Y: b[1], Regions: true}
	if r.Points == nil {
		for _, c := range r.Result.Synopsis {
			m.Boxes = append(m.Boxes, chart.MapBox{X: c.Lo[0], Y: c.Lo[1], DX: c.Hi[0] - c.Lo[0], DY: c.Hi[1] - c.Lo[1],
				Weight: c.Weight})
		}
	}
	m.Clouds = r.clouds(b, func(x []float64) [2]float64 {
		return [2]float64{min(max(x[0], b[0][0]), b[0][1]), min(max(x[1], b[1][0]), b[1][1])}
	})
	for j, c := range r.Result.Centroids {
		m.Marks = append(m.Marks, chart.Mark{X: c[0], Y: c[1], Name: strconv.Itoa(j + 1), Hint: r.hint(j)})
	}
	return r.mapped(&m, "lines part what is nearest to each centroid; "+r.source())
}

// clouds are the reader's own points by their nearest centroid, where the map puts them.
func (r *Run) clouds(b [][2]float64, place func([]float64) [2]float64) []chart.Cloud {
	if r.Points == nil {
		return nil
	}
	clouds := make([]chart.Cloud, chart.Colours)
	for i := range clouds {
		clouds[i].Colour = i
	}
	for _, x := range r.Points {
		best, at := math.Inf(1), 0
		for j, c := range r.Result.Centroids {
			sum := 0.0
			for h, v := range c {
				t := (x[h] - v) / (b[h][1] - b[h][0])
				sum += t * t
			}
			if sum < best {
				best, at = sum, j
			}
		}
		c := &clouds[at%chart.Colours]
		c.Points = append(c.Points, place(x))
	}
	return clouds
}

// axes are the first principal axes of released values in the normalised box: of the synopsis where there is one,
// else of the centroids; by their sizes.
func (r *Run) axes(b [][2]float64) (axes *mat.Dense, shares []float64) {
	res, d := r.Result, r.Result.D
	var rows, weights []float64
	add := func(weight float64, at func(h int) float64) {
		if weight <= 0 {
			return
		}
		for h := range d {
			rows = append(rows, 2*(at(h)-b[h][0])/(b[h][1]-b[h][0])-1)
		}
		weights = append(weights, weight)
	}
	for _, c := range res.Synopsis {
		add(c.Weight, func(h int) float64 { return (c.Lo[h] + c.Hi[h]) / 2 })
	}
	if len(weights) <= d || len(weights) < 3 {
		rows, weights = nil, nil
		for j, c := range res.Centroids {
			weight := 1.0
			if res.Sizes != nil {
				weight = max(res.Sizes[j], 1)
			}
			add(weight, func(h int) float64 { return c[h] })
		}
	}
	var pc stat.PC
	if len(weights) < 2 || !pc.PrincipalComponents(mat.NewDense(len(weights), d, rows), weights) {
		return nil, nil
	}
	axes = new(mat.Dense)
	pc.VectorsTo(axes)
	shares = pc.VarsTo(nil)
	total := 0.0
	for _, v := range shares {
		total += v
	}
	for i := range shares {
		shares[i] /= max(total, 1e-300)
	}
	return axes, shares
}

// principal draws pairs of the first three principal axes.
func (r *Run) principal(b [][2]float64) []chart.Figure {
	axes, shares := r.axes(b)
	if axes == nil {
		return nil
	}
	project := func(x []float64, a int) float64 {
		sum := 0.0
		for h, v := range x {
			sum += axes.At(h, a) * (2*(v-b[h][0])/(b[h][1]-b[h][0]) - 1)
		}
		return sum
	}
	_, count := axes.Dims()
	var out []chart.Figure
	for _, pair := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
		if pair[1] >= min(count, len(shares)) {
			continue
		}
		place := func(x []float64) [2]float64 { return [2]float64{project(x, pair[0]), project(x, pair[1])} }
		m := chart.Map{Title: fmt.Sprintf("Principal axes %d and %d", pair[0]+1, pair[1]+1)}
		m.XName = fmt.Sprintf("axis %d, %.0f%% of the variance", pair[0]+1, 100*shares[pair[0]])
		m.YName = fmt.Sprintf("axis %d, %.0f%%", pair[1]+1, 100*shares[pair[1]])
		m.Clouds = r.clouds(b, place)
		m.X, m.Y = [2]float64{math.Inf(1), math.Inf(-1)}, [2]float64{math.Inf(1), math.Inf(-1)}
		see := func(p [2]float64) {
			m.X, m.Y = [2]float64{min(m.X[0], p[0]), max(m.X[1], p[0])}, [2]float64{min(m.Y[0], p[1]), max(m.Y[1], p[1])}
		}
		for _, c := range m.Clouds {
			for _, p := range c.Points {
				see(p)
			}
		}
		for j, c := range r.Result.Centroids {
			p := place(c)
			see(p)
			m.Marks = append(m.Marks, chart.Mark{X: p[0], Y: p[1], Name: strconv.Itoa(j + 1), Hint: r.hint(j)})
		}
		side := max(m.X[1]-m.X[0], m.Y[1]-m.Y[0], 1e-9) * 1.12 // one unit on both axes
		m.X, m.Y = around(m.X, side), around(m.Y, side)
		note := "axes computed from released values; one unit is half the width of the box"
		if r.Points != nil {
			note += "; " + r.source()
		}
		out = append(out, r.mapped(&m, note))
	}
	return out
}

// around is an interval of a width about the middle of another.
func around(x [2]float64, width float64) [2]float64 {
	middle := (x[0] + x[1]) / 2
	return [2]float64{middle - width/2, middle + width/2}
}

// strandColumns is the number of columns that strands run over.
const strandColumns = 24

// strands draws each centroid as a line over the columns in which centroids differ most.
func (r *Run) strands(b [][2]float64) chart.Figure {
	res := r.Result
	columns := make([]int, res.D)
	spread := make([]float64, res.D)
	for h := range columns {
		columns[h] = h
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, c := range res.Centroids {
			lo, hi = min(lo, c[h]), max(hi, c[h])
		}
		spread[h] = (hi - lo) / (b[h][1] - b[h][0])
	}
	note := "each line is a centroid over the bounds of the columns"
	if res.D > strandColumns {
		slices.SortStableFunc(columns, func(a, b int) int { return cmp.Compare(spread[b], spread[a]) })
		columns = slices.Sorted(slices.Values(columns[:strandColumns]))
		note += fmt.Sprintf("; the %d columns in which centroids differ most", strandColumns)
	}
	s := chart.Strands{Title: "Centroids by column"}
	for _, h := range columns {
		s.Axes, s.Lo, s.Hi = append(s.Axes, r.name(h)), append(s.Lo, b[h][0]), append(s.Hi, b[h][1])
	}
	most := 1.0
	for _, x := range res.Sizes {
		most = max(most, x)
	}
	for j, c := range res.Centroids {
		var row []float64
		for _, h := range columns {
			row = append(row, min(max(c[h], b[h][0]), b[h][1]))
		}
		width := 0.3
		if res.Sizes != nil {
			width = max(res.Sizes[j], 0) / most
		}
		s.Rows, s.Hints, s.Widths = append(s.Rows, row), append(s.Hints, r.hint(j)), append(s.Widths, width)
	}
	if res.Sizes != nil {
		note += ", the wider the larger its cluster"
	}
	return chart.NewFigure(s.Title, s.SVG(), strandKeys(len(s.Rows)), strandRows(&s), note, "centroids-by-column")
}

// strandRows lists the strands as CSV, a cluster a line.
func strandRows(s *chart.Strands) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	lines := [][]string{append([]string{"cluster"}, s.Axes...)}
	for j, row := range s.Rows {
		line := []string{strconv.Itoa(j + 1)}
		for _, x := range row {
			line = append(line, strconv.FormatFloat(x, 'g', -1, 64))
		}
		lines = append(lines, line)
	}
	w.WriteAll(lines) // a bytes.Buffer does not fail
	return b.Bytes()
}

// mostKeyed is the number of clusters up to which a legend names them: as many a colour as are told apart.
const mostKeyed = 5 * chart.Colours

// strandKeys names the clusters of each colour: "cluster 1", or "1, 9, 17" where colours are used again.
func strandKeys(clusters int) (keys []chart.Key) {
	if clusters > mostKeyed {
		return nil
	}
	for colour := range min(clusters, chart.Colours) {
		var names []string
		for j := colour; j < clusters; j += chart.Colours {
			names = append(names, strconv.Itoa(j+1))
		}
		name := strings.Join(names, ", ")
		if clusters <= chart.Colours {
			name = "cluster " + name
		}
		keys = append(keys, chart.Key{Name: name, Colour: colour})
	}
	return keys
}

// mostSizes is the number of clusters whose sizes are drawn.
const mostSizes = 60

// sizes draws the sizes of the clusters, the largest first.
func (r *Run) sizes() []chart.Figure {
	res := r.Result
	if res.Sizes == nil {
		return nil
	}
	order := make([]int, len(res.Sizes))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(res.Sizes[b], res.Sizes[a]) })
	p := chart.Plot{Title: "Sizes of clusters", YName: "records", Bars: true}
	c := chart.Curve{}
	for i, j := range order[:min(len(order), mostSizes)] {
		c.Points = append(c.Points, chart.Point{X: float64(i), Y: max(math.Round(res.Sizes[j]), 0), Hint: r.hint(j)})
		p.Categories = append(p.Categories, fmt.Sprintf("cluster %d", j+1))
	}
	p.Curves = []chart.Curve{c}
	note := "exact"
	if res.Epsilon != nil {
		note = "noisy counts that the run has paid for"
	}
	return []chart.Figure{plotted(&p, note)}
}
