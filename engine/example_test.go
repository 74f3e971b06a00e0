package engine_test

import (
	"context"
	"fmt"
	"log"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

// Two clients cluster their rows privately. The data set is a built-in one; a
// path would do as well. The seed makes this a simulation with reproducible
// noise: leave it out for real privacy.
func Example() {
	ctx := context.Background()
	table, err := dataset.Open(ctx, "builtin:blobs", dataset.ReadOptions{
		Generator: dataset.Generator{N: 4000, D: 2, K: 3, Separation: 30, Seed: 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	bounds, err := dataset.ParseBounds("-200:200", table.D) // public knowledge, not read from the data
	if err != nil {
		log.Fatal(err)
	}
	normalised, err := dataset.Normalise(table, bounds, dataset.DefaultFractionBits)
	if err != nil {
		log.Fatal(err)
	}
	clients, err := normalised.Split(2, nil, 1)
	if err != nil {
		log.Fatal(err)
	}

	eng, err := engine.New(engine.WithWorkers(2))
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	seed := uint64(7)
	result, err := eng.Run(ctx, &lloyd.Job{Method: lloyd.Relative, Problem: protocol.Problem{K: 3, Clients: clients,
		Bounds: bounds, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6}, Seed: &seed}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Method, "found", len(result.Centroids), "centroids in", result.Iterations, "rounds")
	fmt.Printf("outsiders see the centroids at epsilon %.3g\n", *result.Ledger.TotalFor("outsider").Epsilon)
	// Output:
	// relative found 3 centroids in 7 rounds
	// outsiders see the centroids at epsilon 1
}

// roundCounter is an observer; it sees every phase and round as it happens.
type roundCounter struct{ rounds int }

func (*roundCounter) JobBegin(engine.JobInfo)         {}
func (*roundCounter) PhaseBegin(engine.Span)          {}
func (*roundCounter) PhaseEnd(engine.Span)            {}
func (c *roundCounter) IterationEnd(engine.Iteration) { c.rounds++ }
func (*roundCounter) JobEnd(*engine.Result, error)    {}

func ExampleObserver() {
	ctx := context.Background()
	table, err := dataset.Generate(ctx, "s1-like", dataset.Generator{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	bounds, err := dataset.BoundsFromData(table) // not private: the ledger would say so
	if err != nil {
		log.Fatal(err)
	}
	normalised, err := dataset.Normalise(table, bounds, dataset.DefaultFractionBits)
	if err != nil {
		log.Fatal(err)
	}
	clients, err := normalised.Split(1, nil, 0)
	if err != nil {
		log.Fatal(err)
	}
	counter := new(roundCounter)
	eng, err := engine.New(engine.WithObserver(counter))
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	seed := uint64(1)
	if _, err := eng.Run(ctx, &lloyd.Job{Method: lloyd.Lloyd, Problem: protocol.Problem{K: 15, Clients: clients,
		Iterations: 5, Seed: &seed}, Init: step.Sphere}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(counter.rounds, "rounds")
	// Output: 5 rounds
}
