package pca

import (
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
)

// Describe lists the method of this package.
func Describe() method.List {
	return method.List{{
		Name: "pca", Holds: method.Table, Make: describe,
		About:   "k-means on principal components, without noise: a reference for projections",
		Against: "no one: all see exact centroids",
		When:    "as what a projection that looks at the data would give",
		Cost:    "eight passes, and a search on the records",
	}}
}

func describe(d method.Data) (engine.Job, []method.Option) {
	j := &Job{Data: d.Staged(), K: d.K, Seed: d.Seed}
	return j, []method.Option{{Name: "components", Default: "ln(n)/2", About: "number of principal components",
		Value: method.Int(&j.Components, 1, math.MaxInt)}}
}
