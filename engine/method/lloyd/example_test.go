package lloyd_test

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Two clients cluster their rows under a budget of epsilon 1.
func Example() {
	ctx := context.Background()
	table, err := dataset.Open(ctx, "builtin:s1-like", dataset.ReadOptions{Generator: dataset.Generator{Seed: 1}})
	if err != nil {
		panic(err)
	}
	bounds, err := dataset.BoundsFromData(table) // better public ones, where they are known
	if err != nil {
		panic(err)
	}
	records, err := dataset.Normalise(table, bounds, dataset.DefaultFractionBits)
	if err != nil {
		panic(err)
	}
	clients, err := records.Split(2, nil, 1)
	if err != nil {
		panic(err)
	}
	eng, err := engine.New()
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	seed := uint64(1) // a simulation; leave Seed out for real noise
	res, err := eng.Run(ctx, &lloyd.Job{Method: lloyd.Relative, Problem: protocol.Problem{K: 15, Clients: clients,
		Bounds: bounds, Seed: &seed, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6}}})
	if err != nil {
		panic(err)
	}
	fmt.Println(len(res.Centroids), "centroids after", res.Iterations, "rounds")
	fmt.Printf("the clients see epsilon %.3g in total\n", *res.Ledger.TotalFor("clients").Epsilon)
	// Output:
	// 15 centroids after 7 rounds
	// the clients see epsilon 1 in total
}

// A wrong request is refused before any record is looked at, with what is wrong
// and what to do.
func ExampleJob_Plan() {
	_, err := (&lloyd.Job{Method: "kmeans"}).Plan()
	fmt.Println(err != nil)
	// Output: true
}
