package engine

import (
	"math"
	"slices"

	"github.com/cohort-engine/cohort/internal/elementary"
)

// Step is how far a run had come after an iteration.
type Step struct {
	// Moved is the root mean square distance that the centroids moved in the iteration, in
	// normalised units; nil in the first, also of a start, and where they are not released.
	Moved *float64 `json:"moved,omitempty"`
	// Loss is that of the centroids that the iteration began with; nil in a private run.
	Loss *float64 `json:"loss,omitempty"`
	// Start is that of [Seen].
	Start int `json:"start,omitempty"`
}

// Trace is an observer that keeps what everybody may see of each iteration of a job, the last one that it saw
// begin. The zero value is ready.
type Trace struct {
	Job   JobInfo
	Steps []Step
	last  []float64
}

// JobBegin implements Observer.
func (t *Trace) JobBegin(job JobInfo) { *t = Trace{Job: job} }

// PhaseBegin implements Observer.
func (t *Trace) PhaseBegin(Span) {}

// PhaseEnd implements Observer.
func (t *Trace) PhaseEnd(Span) {}

// IterationEnd implements Observer.
func (t *Trace) IterationEnd(it Iteration) {
	s := Step{Start: it.Start}
	same := len(t.Steps) > 0 && t.Steps[len(t.Steps)-1].Start == it.Start
	if same && it.Centroids != nil && len(t.last) == len(it.Centroids) {
		moved := elementary.SquaredDistance(it.Centroids, t.last)
		moved = math.Sqrt(moved * float64(t.Job.D) / float64(len(it.Centroids)))
		s.Moved = &moved
	}
	if !math.IsNaN(it.Loss) {
		loss := it.Loss
		s.Loss = &loss
	}
	t.last = append(t.last[:0], it.Centroids...)
	t.Steps = append(t.Steps, s)
}

// JobEnd implements Observer.
func (t *Trace) JobEnd(*Result, error) { t.Steps = slices.Clip(t.Steps) }
