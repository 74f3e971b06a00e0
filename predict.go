package cohort

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Predict returns the cluster of each record, from 0. Points are row-major in the data's own units.
func (m *Model) Predict(points []float64) ([]int32, error) {
	labels, _, err := m.Nearest(context.Background(), points)
	return labels, err
}

// Score is the mean squared distance of the records to their nearest centroids, with each column
// scaled from its bounds to [-1,1]. It is computed from the records: no budget covers it.
func (m *Model) Score(points []float64) (float64, error) {
	_, distances, err := m.Nearest(context.Background(), points)
	if err != nil {
		return 0, err
	}
	return elementary.SquaredLength(distances) / float64(len(distances)), nil
}

// Nearest is Predict with the distances to the nearest centroids, with each column scaled from its
// bounds to [-1,1].
func (m *Model) Nearest(ctx context.Context, points []float64) (labels []int32, distances []float64, err error) {
	if m == nil || len(m.Lower) == 0 {
		return nil, nil, errNoModel
	}
	d := len(m.Lower)
	if len(points) == 0 || len(points)%d != 0 {
		return nil, nil, fault.Request("points", fmt.Sprintf("are %s for records of %s",
			fault.Count(len(points), "number"), fault.Count(d, "column")),
			"give whole rows")
	}
	n := len(points) / d
	eng, end, err := engineOf(nil, 0, nil)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	p, err := m.Predictor()
	if err != nil {
		return nil, nil, err
	}
	labels, distances = make([]int32, n), make([]float64, n)
	return labels, distances, p.Nearest(ctx, eng, &dataset.Matrix[float64]{Data: points, N: n, D: d}, labels, distances)
}

// errNoModel is the refusal of a model without centroids.
var errNoModel = fault.Request("model", "has no centroids", "fit or load one")

// Predictor labels records by a model as it was when the predictor was made, in any number of calls, also at the same
// time.
type Predictor struct {
	m         Model
	units     *kernels.UnitMap
	centroids []float64 // normalised
	grid      *kernels.Centroids
}

// Predictor prepares the model for labelling records.
func (m *Model) Predictor() (*Predictor, error) {
	if m == nil || len(m.Lower) == 0 || len(m.Centroids) == 0 {
		return nil, errNoModel
	}
	p := &Predictor{m: *m}
	p.m.Centroids = make([][]float64, len(m.Centroids))
	for j, c := range m.Centroids {
		p.m.Centroids[j] = slices.Clone(c)
	}
	p.m.Lower, p.m.Upper, p.m.Labels = slices.Clone(m.Lower), slices.Clone(m.Upper), nil
	var err error
	if p.centroids, err = p.m.grid(); err != nil {
		return nil, err
	}
	p.units = kernels.NewUnitMap(m.Lower, m.Upper, m.FractionBits)
	grid := make([]float32, len(p.centroids))
	for i, c := range p.centroids {
		grid[i] = dataset.Truncate(c, m.FractionBits)
	}
	p.grid = kernels.NewCentroids(len(m.Centroids), len(m.Lower))
	box := kernels.Panels{D: p.grid.D}
	box.InBox()
	p.grid.PrepareFilter(&box)
	p.grid.Set(grid)
	return p, nil
}

// Nearest writes the cluster of each record to labels and the distance to its centroid to distances, either of which
// may be nil. Where the model has one scale, distances are in the data's own units of half the bounds' width, and
// records outside the bounds of the fit are measured where they are; else they are clamped.
func (p *Predictor) Nearest(ctx context.Context, eng *engine.Engine, points dataset.Borrowed, labels []int32,
	distances []float64) error {
	switch {
	case p == nil || p.grid == nil:
		return errNoModel
	case ctx == nil:
		return engine.ErrNoContext
	case eng == nil:
		return fault.Request("engine", "is nil", "make one by engine.New")
	case points == nil:
		return fault.Request("points", "are nil", "give a matrix")
	}
	if err := points.Check("points"); err != nil {
		return err
	}
	n, d := points.Shape()
	switch {
	case labels != nil && len(labels) < n || distances != nil && len(distances) < n:
		return fault.Request("points", fmt.Sprintf("are %d and have room for %s and %d distances", n,
			fault.Count(len(labels), "label"),
			len(distances)), "give room for one each, or nil")
	case d != len(p.m.Lower):
		return fault.Request("points", fmt.Sprintf("have %s and the model %d", fault.Count(d, "column"),
			len(p.m.Lower)),
			"give the columns of the model")
	}
	r := prediction{Predictor: p, points: points, labels: labels, distances: distances}
	if err := ctx.Err(); err != nil {
		return err
	}
	if n <= predictPoints { // they are labelled before other workers are awake
		return r.block(r.scratch(n), 0, n)
	}
	blocks := (n + predictPoints - 1) / predictPoints
	faults := make([]error, blocks)
	scratch := make([]*predictScratch, eng.Workers())
	err := eng.Pool().Run(ctx, blocks, func(worker, i int) {
		if scratch[worker] == nil {
			scratch[worker] = r.scratch(predictPoints)
		}
		faults[i] = r.block(scratch[worker], i*predictPoints, min((i+1)*predictPoints, n))
	})
	for _, e := range faults {
		if err == nil {
			err = e
		}
	}
	return err
}

// predictPoints is the number of records that a worker labels at a time.
const predictPoints = 2048

// prediction is a call of Nearest, a block of records at a time.
type prediction struct {
	*Predictor
	points    dataset.Borrowed
	labels    []int32
	distances []float64
}

// predictScratch is a worker's memory.
type predictScratch struct {
	points *dataset.Gridder
	grid   []float32
	panels *kernels.Panels
	labels []uint16
	row    []float32
}

// scratch is for n records at a time.
func (p *prediction) scratch(n int) *predictScratch {
	d := len(p.m.Lower)
	return &predictScratch{points: dataset.NewGridder(p.points), grid: make([]float32, n*d),
		panels: kernels.NewPanels(n, d), labels: make([]uint16, n), row: make([]float32, d)}
}

// block labels the records [lo, hi).
func (p *prediction) block(w *predictScratch, lo, hi int) error {
	n, d := hi-lo, len(p.m.Lower)
	grid := w.grid[:n*d]
	outside, rows, err := p.quantise(w, grid, lo, hi)
	if err != nil {
		return err
	}
	view := w.panels.Slice(0, n)
	kernels.Pack(&view, grid)
	view.InBox()
	kernels.Assign(view, p.grid, w.labels[:n], nil)
	if p.labels != nil {
		to := p.labels[lo:hi]
		for i, l := range w.labels[:n] {
			to[i] = int32(l)
		}
	}
	if p.distances != nil {
		to := p.distances[lo:hi]
		for i, l := range w.labels[:n] {
			to[i] = math.Sqrt(elementary.SquaredDistance(view.Point(i, w.row), p.centroids[int(l)*d:]))
		}
	}
	for i := 0; i < n && outside && p.m.OneScale; i++ {
		if row := rows[i*d : (i+1)*d]; p.m.outside(row) {
			p.direct(lo+i, row)
		}
	}
	return nil
}

// quantise puts records on the grid and reports whether values are outside their bounds; then rows are the records.
func (p *prediction) quantise(w *predictScratch, grid []float32, lo, hi int) (outside bool, rows []float64, err error) {
	d := len(p.m.Lower)
	if p.m.Metric == cosine {
		rows = w.points.Rows(lo, hi)
		if err := p.toUnit(rows, lo); err != nil {
			return false, nil, err
		}
		outside = kernels.Quantise(grid, rows, p.units) > 0
	} else if outside = w.points.Quantise(grid, lo, hi, p.units) > 0; outside {
		rows = w.points.Rows(lo, hi)
	}
	for i, x := range rows {
		if outside && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return false, nil, fault.Failed(fmt.Sprintf("points, row %d, column %d", lo+i/d+1, i%d+1),
				fmt.Sprintf("%g is not a finite number", x), "mend it or leave the row out", nil)
		}
	}
	return outside, rows, nil
}

// toUnit scales records, of which lo is the first, to length 1 where the model's have it. What is not finite stays.
func (p *prediction) toUnit(rows []float64, lo int) error {
	d := len(p.m.Lower)
	for at := 0; at < len(rows); at += d {
		row := rows[at : at+d]
		if !dataset.ToUnit(row) && !slices.ContainsFunc(row, func(x float64) bool { return x != 0 }) {
			return fault.Failed(fmt.Sprintf("points, row %d", lo+at/d+1), "the record has length 0, so no direction",
				"leave the row out", nil)
		}
	}
	return nil
}

// outside tells whether a record lies outside the bounds.
func (m *Model) outside(row []float64) bool {
	for h, x := range row {
		if x < m.Lower[h] || x > m.Upper[h] {
			return true
		}
	}
	return false
}

// direct labels a record by its distances in the data's own units.
func (p *prediction) direct(i int, row []float64) {
	best, least := 0, math.Inf(1)
	unit := p.m.unit()
	for j, c := range p.m.Centroids {
		sum := 0.0
		for h, x := range row {
			t := (x - c[h]) / unit
			sum += float64(t * t)
		}
		if sum < least {
			best, least = j, sum
		}
	}
	if p.labels != nil {
		p.labels[i] = int32(best)
	}
	if p.distances != nil {
		p.distances[i] = math.Sqrt(least)
	}
}
