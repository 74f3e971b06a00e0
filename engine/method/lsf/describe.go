package lsf

import (
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Describe lists the method of this package.
func Describe() method.List {
	return method.List{{
		Name: "lsf", Holds: method.Table, Private: true, Weighs: true, Make: describe,
		About:   "LSH-forest coreset (Sketch-V's DPLSF)",
		Against: method.Outsiders,
		When:    "a fast coreset of one table is wanted, and to compare with Sketch-V's parties",
		Cost:    "two passes over the records",
	}}
}

func describe(p protocol.Problem) (engine.Job, method.Options) {
	j := &Job{Problem: p}
	return j, append(method.Shared(name, &j.Problem, takes),
		method.Option{Name: "levels", Default: "12", About: "number of hyperplanes", Value: method.Int(&j.Levels, 1, 64)})
}
