package central

import (
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
)

func (s *session) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// result packs what a run found.
func (s *session) result(method string, centroids []float32, bounds dataset.Bounds, b privacy.Budget, laplace bool) *engine.Result {
	return &engine.Result{
		Method: method, N: s.n, D: s.d, K: s.k, Parties: len(s.parties), Calibration: string(privacy.Proven),
		Epsilon: &b.Epsilon, Delta: &b.Delta, Centroids: centroidRows(centroids, s.k, s.d, bounds),
		Comm: s.comm, Notes: s.notes,
	}
}
