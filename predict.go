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
	return elementary.SquaredLength(distances) / float64(len(distances)), err
}

// Nearest is Predict with the distances to the nearest centroids, with each column scaled from its
// bounds to [-1,1].
func (m *Model) Nearest(ctx context.Context, points []float64) (labels []int32, distances []float64, err error) {
	d := len(m.Lower)
	if d == 0 {
		return nil, nil, errNoModel
	}
	if len(points) == 0 || len(points)%d != 0 {
		return nil, nil, fault.Request("points", fmt.Sprintf("are %d numbers for records of %d columns", len(points), d),
			"give whole rows")
	}
	n := len(points) / d
	eng, end, err := engineOf(nil, 0, nil)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	labels, distances = make([]int32, n), make([]float64, n)
	return labels, distances, m.PredictMatrix(ctx, eng, &dataset.Matrix[float64]{Data: points, N: n, D: d},
		labels, distances)
}

// errNoModel is the refusal of a model without centroids.
var errNoModel = fault.Request("model", "has no centroids", "fit or load one")

// PredictMatrix writes the cluster of each record to labels and the distance to its centroid to distances,
// either of which may be nil. Where the model has one scale, distances are in the data's own units of half
// the bounds' width, and records outside the bounds of the fit are measured where they are; else they are
// clamped.
func (m *Model) PredictMatrix(ctx context.Context, eng *engine.Engine, points dataset.Borrowed, labels []int32,
	distances []float64) error {
	switch {
	case ctx == nil:
		return engine.ErrNoContext
	case eng == nil:
		return fault.Request("engine", "is nil", "make one by engine.New")
	case points == nil:
		return fault.Request("points", "are nil", "give a matrix")
	case len(m.Lower) == 0 || len(m.Centroids) == 0:
		return errNoModel
	}
	if err := points.Check("points"); err != nil {
		return err
	}
	n, d := points.Shape()
	switch {
	case labels != nil && len(labels) < n || distances != nil && len(distances) < n:
		return fault.Request("points", fmt.Sprintf("are %d and have room for %d labels and %d distances", n, len(labels),
			len(distances)), "give room for one each, or nil")
	case d != len(m.Lower):
		return fault.Request("points", fmt.Sprintf("have %d columns and the model %d", d, len(m.Lower)),
			"give the columns of the model")
	}
	p, err := newPredictor(m, points, labels, distances)
	if err != nil {
		return err
	}
	blocks := (n + predictPoints - 1) / predictPoints
	faults := make([]error, blocks)
	p.scratch = make([]*predictScratch, eng.Workers())
	err = eng.Pool().Run(ctx, blocks, func(worker, i int) {
		if p.scratch[worker] == nil {
			p.scratch[worker] = newPredictScratch(min(n, predictPoints), d)
		}
		faults[i] = p.block(p.scratch[worker], i*predictPoints, min((i+1)*predictPoints, n))
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

// predictor labels records in memory, a block at a time.
type predictor struct {
	m         *Model
	points    dataset.Borrowed
	units     *kernels.UnitMap
	centroids []float64 // normalised
	grid      *kernels.Centroids
	labels    []int32
	distances []float64
	scratch   []*predictScratch // by worker
}

// predictScratch is a worker's memory.
type predictScratch struct {
	rows   []float64
	grid   []float32
	panels *kernels.Panels
	labels []uint16
	row    []float32
}

func newPredictScratch(n, d int) *predictScratch {
	return &predictScratch{rows: make([]float64, n*d), grid: make([]float32, n*d), panels: kernels.NewPanels(n, d),
		labels: make([]uint16, n), row: make([]float32, d)}
}

func newPredictor(m *Model, points dataset.Borrowed, labels []int32, distances []float64) (*predictor, error) {
	p := &predictor{m: m, points: points, labels: labels, distances: distances}
	var err error
	if p.centroids, err = m.grid(); err != nil {
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

// block labels the records [lo, hi).
func (p *predictor) block(w *predictScratch, lo, hi int) error {
	n, d := hi-lo, len(p.m.Lower)
	rows, grid := w.rows[:n*d], w.grid[:n*d]
	p.points.Widen(rows, lo, hi, d)
	if err := p.toUnit(rows, lo); err != nil {
		return err
	}
	outside := kernels.Quantise(grid, rows, p.units)
	if outside > 0 {
		for i, x := range rows {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fault.Failed(fmt.Sprintf("points, row %d, column %d", lo+i/d+1, i%d+1),
					fmt.Sprintf("%g is not a finite number", x), "mend it or leave the row out", nil)
			}
		}
	}
	view := w.panels.Slice(0, n)
	kernels.Pack(&view, grid)
	view.InBox()
	kernels.Assign(view, p.grid, w.labels[:n], nil)
	for i, l := range w.labels[:n] {
		if outside > 0 && p.m.OneScale && p.m.outside(rows[i*d:(i+1)*d]) {
			p.direct(lo+i, rows[i*d:(i+1)*d])
			continue
		}
		if p.labels != nil {
			p.labels[lo+i] = int32(l)
		}
		if p.distances != nil {
			p.distances[lo+i] = math.Sqrt(elementary.SquaredDistance(view.Point(i, w.row), p.centroids[int(l)*d:]))
		}
	}
	return nil
}

// toUnit scales records, of which lo is the first, to length 1 where the model's have it. What is not finite stays.
func (p *predictor) toUnit(rows []float64, lo int) error {
	d := len(p.m.Lower)
	for at := 0; p.m.Metric == cosine && at < len(rows); at += d {
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
func (p *predictor) direct(i int, row []float64) {
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
