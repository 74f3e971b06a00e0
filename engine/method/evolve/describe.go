package evolve

import (
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Describe lists the method of this package.
func Describe() method.List {
	return method.List{{
		Name: "evolve", Holds: method.Table, Private: true, Weighs: true, Make: describe,
		About:   "candidates that noisy histograms let live, split or die (after PE-means)",
		Against: method.Outsiders,
		When:    "to compare with",
		Cost:    "a pass over the records and all candidates each generation",
	}}
}

func describe(p protocol.Problem) (engine.Job, method.Options) {
	j := &Job{Problem: p}
	options := method.Shared(name, &j.Problem, takes)
	options.Reword("iterations", "", "generations of candidates; auto is by the signal")
	return j, options
}
