package engine

import (
	"math"
	"testing"
)

func TestTraceKeepsWhatIsSeen(t *testing.T) {
	var trace Trace
	trace.JobBegin(JobInfo{Method: "a", K: 2, D: 1})
	trace.IterationEnd(Iteration{Seen: Seen{Centroids: []float64{0, 0}, Loss: 8}})
	trace.IterationEnd(Iteration{Seen: Seen{Centroids: []float64{3, -1}, Loss: math.NaN()}})
	trace.IterationEnd(Iteration{Seen: Seen{Loss: math.NaN()}})
	trace.JobEnd(nil, nil)
	s := trace.Steps
	if len(s) != 3 || s[0].Moved != nil || *s[0].Loss != 8 || math.Abs(*s[1].Moved-math.Sqrt(5)) > 1e-15 ||
		s[1].Loss != nil || s[2] != (Step{}) {
		t.Errorf("steps %+v", s)
	}
	// A start is not compared with the one before.
	for i, start := range []int{1, 1, 2, 2} {
		trace.IterationEnd(Iteration{Seen: Seen{Centroids: []float64{float64(i), 0}, Loss: math.NaN(), Start: start}})
	}
	if s = trace.Steps[3:]; s[0].Moved != nil || s[1].Moved == nil || s[2].Moved != nil || s[3].Moved == nil ||
		s[3].Start != 2 {
		t.Errorf("steps of starts %+v", s)
	}
	trace.JobBegin(JobInfo{Method: "b"})
	if len(trace.Steps) != 0 || trace.Job.Method != "b" {
		t.Errorf("a new job finds %+v", trace)
	}
}
