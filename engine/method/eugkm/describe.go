package eugkm

import (
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// Describe lists the method of this package.
func Describe() method.List {
	return method.List{{
		Name: "eugkm", Holds: method.Table, Private: true, Make: describe,
		About:   "one uniform grid of noisy counts (Su et al.'s EUGkM)",
		Against: method.Outsiders,
		When:    "to compare with; in one to three dimensions it is good where clusters are large",
		Cost:    "one pass over the records, and a search on the grid",
	}}
}

func describe(d method.Data) (engine.Job, []method.Option) {
	j := &Job{Data: d.Staged(), K: d.K, Budget: d.Budget, Seed: d.Seed}
	rounds := method.Iterations(&j.Rounds)
	rounds.About = "noisy rounds of Lloyd's algorithm after the grid, on half of the budget; auto is none"
	return j, []method.Option{
		method.Calibration(j.Method(), new(privacy.Calibration)),
		method.Neighbours(j.Method(), &j.Neighbours),
		method.PublicRecords(&j.Records),
		rounds,
		{Name: "mechanism", Default: "laplace", About: "kind of noise: laplace or gaussian",
			Value: method.Text(func(text string) error {
				j.Gaussian = text == "gaussian"
				return nil
			}, "laplace", "gaussian")},
	}
}
