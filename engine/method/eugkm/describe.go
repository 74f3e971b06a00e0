package eugkm

import (
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Describe lists the method of this package.
func Describe() method.List {
	return method.List{{
		Name: "eugkm", Holds: method.Table, Private: true, Weighs: true, Make: describe,
		About:   "one uniform grid of noisy counts (Su et al.'s EUGkM)",
		Against: method.Outsiders,
		When:    "to compare with; in one to three dimensions it is good where clusters are large",
		Cost:    "one pass over the records, and a search on the grid",
	}}
}

func describe(p protocol.Problem) (engine.Job, method.Options) {
	j := &Job{Problem: p}
	options := method.Shared(name, &j.Problem, takes)
	options.Reword("iterations", "", "noisy rounds of Lloyd's algorithm after the grid, on half of the budget; auto "+
		"is none")
	return j, options
}
