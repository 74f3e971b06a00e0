package profile_test

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/bench/profile"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

// A profiler is an observer of the engine.
func Example() {
	ctx := context.Background()
	table, err := dataset.Generate(ctx, "s1-like", dataset.Generator{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	bounds, err := dataset.BoundsFromData(table)
	if err != nil {
		fmt.Println(err)
		return
	}
	norm, err := dataset.Normalise(table, bounds, dataset.DefaultFractionBits)
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := norm.Split(2, nil, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	profiler := profile.New(profile.Options{})
	eng, err := engine.New(engine.WithObserver(profiler))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close()
	if _, err := eng.Run(ctx, &lloyd.Job{Method: lloyd.Lloyd, Problem: protocol.Problem{K: 15, Clients: parts,
		Iterations: 3}, Init: step.Sphere}); err != nil {
		fmt.Println(err)
		return
	}
	summary := profile.Summarise(profiler.Runs(), nil, eng.Workers(), profile.Limits{}, nil)
	for _, p := range summary.Phases {
		if p.Name == "assign" {
			fmt.Println(p.Name, "ran", p.Count, "times in", summary.Iterations.Count, "iterations")
		}
	}
	// Output: assign ran 6 times in 3 iterations
}
