package sketch_test

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Two parties hold four columns each of the same records.
func ExampleJob() {
	ctx := context.Background()
	table, err := dataset.Generate(ctx, "blobs", dataset.Generator{N: 5000, D: 8, K: 4, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	bounds := dataset.Bounds{Lo: make([]float64, 8), Hi: make([]float64, 8)}
	for h := range 8 {
		bounds.Lo[h], bounds.Hi[h] = -1, 1 // public
	}
	data, err := dataset.Normalise(table, bounds, dataset.DefaultFractionBits)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := engine.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	result, err := e.Run(ctx, &sketch.Job{Method: sketch.Sketch, Problem: protocol.Problem{Clients: data.Table(),
		Bounds: data.Bounds, Columns: sketch.EqualSplit(8, 2), K: 4, Budget: privacy.Budget{Epsilon: 1, Delta: -1}},
		Sketches: 1024})
	if err != nil {
		fmt.Println(err)
		return
	}
	total := result.Ledger.TotalFor("server")
	fmt.Println(len(result.Centroids), "centroids, budget kept:", *total.Epsilon <= 1)
	// Output: 4 centroids, budget kept: true
}
