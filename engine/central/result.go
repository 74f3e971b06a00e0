package central

import (
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// note records a remark for the reader, in the result and in the ledger's text.
func (s *session) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// budget fills in the default delta: 1/(n ln n) for a negative one.
func budgetFor(b privacy.Budget, n int) privacy.Budget {
	if b.Delta < 0 {
		b.Delta = privacy.DefaultDelta(n)
	}
	return b
}

// result packs what a run found and measures its quality.
func (s *session) result(method string, calibration privacy.Calibration, centroids []float64, b privacy.Budget, iterations int) (*engine.Result, error) {
	if s.data.Bounds.FromData {
		s.ledger.Note("the bounds are the data's own minimum and maximum")
	}
	s.ledger.Note(fmt.Sprintf("the number of records, %d, is treated as public", s.n))
	res := &engine.Result{
		Method: method, N: s.n, D: s.d, K: s.k, Parties: len(s.parties), Iterations: iterations, Calibration: string(calibration),
		Epsilon: &b.Epsilon, Delta: &b.Delta, Centroids: centroidRows(centroids, s.k, s.d, s.data.Bounds),
		Ledger: s.ledger, Comm: s.comm, Seed: s.seed, Notes: s.notes,
	}
	if len(s.sizes) == s.k {
		res.Sizes = s.sizes
	}
	if s.data.NoQuality {
		return res, nil
	}
	s.ledger.Note("quality figures (nicv, wcss, empty clusters, label scores, clamped count) are computed from the private data")
	q, err := engine.Measure(s.ctx, s.rt.Pool(), engine.Evaluation{Parts: s.parties, Labels: s.data.Labels, Clamped: s.data.Clamped}, centroids, s.k)
	res.Quality = q
	return res, err
}

// centroidRows returns k rows of d numbers in the data's own units.
func centroidRows(centroids []float64, k, d int, bounds dataset.Bounds) [][]float64 {
	rows := make([][]float64, k)
	for j := range rows {
		rows[j] = bounds.Denormalise(nil, centroids[j*d:(j+1)*d])
	}
	return rows
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
