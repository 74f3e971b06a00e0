package pca

import (
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Describe lists the method of this package.
func Describe() method.List {
	return method.List{{
		Name: "pca", Holds: method.Table, Make: describe,
		About:   "k-means on principal components, without noise: a reference for projections",
		Against: "no one: all see exact centroids",
		When:    "as what a projection that looks at the data would give",
		Cost:    "eight passes, and a search on the records", Unweighed: "its components are of records that count once",
	}}
}

func describe(p protocol.Problem) (engine.Job, method.Options) {
	j := &Job{Problem: p}
	return j, method.Options{{Name: "components", Default: "ln(n)/2", About: "number of principal components",
		Value: method.Int(&j.Components, 1, math.MaxInt)}}
}
