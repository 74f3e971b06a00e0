package hybrid

import (
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Describe lists the method of this package.
func Describe() method.List {
	return method.List{{
		Name: "hybrid", Holds: method.Rows, Private: true, Weighs: true, Make: describe,
		About:   "private synopsis, free search, relative refinement; one client or many (recommended)",
		Against: "others' records: clients and outsiders see noisy counts and sums, the server masked values",
		When:    "first: it has the best loss at most sizes, dimensions and budgets",
		Cost:    "some passes over the records, and a search on the synopsis that grows with k",
	}}
}

func describe(p protocol.Problem) (engine.Job, method.Options) {
	j := &Job{Problem: p}
	return j, append(method.Shared(name, &j.Problem, takes), j.own()...)
}

// own are the options that are not the problem's, with the rules of the fields that they write to.
func (j *Job) own() method.Options {
	return method.Options{
		{Name: "branch", Default: "auto", About: "tree, grid, projected, high-d, mean, or auto (the rule)",
			Value: method.Choice(&j.Branch, "auto", "tree", "grid", "projected", "high-d", "mean")},
		{Name: "k-least", Default: "k",
			About: "least number of clusters, k being the most: the private synopsis decides, which --k auto:2-30 asks for",
			Value: method.Int(&j.KLeast, 1, math.MaxUint16)},
		{Name: "k-rule", Default: "silhouette",
			About: "what decides on the number of clusters: silhouette, or elbow of the loss",
			Value: method.Text(func(text string) error {
				j.Elbow = text == "elbow"
				return nil
			}, "silhouette", "elbow")},
		{Name: "frame", Default: "auto",
			About: "counts of each column's cells find where the records are before the tree: on, off, or auto (by the signal)",
			Value: method.Choice(&j.Frame, "auto", "on", "off")},
		{Name: "balance", Default: "any size",
			About: "clusters of n/(B k) to B n/k records, on the private synopsis: " +
				"the records nearest to a centroid can be more or fewer",
			Value: method.Real(&j.Balance, 1, math.MaxFloat64)},
	}
}
