package flow_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/flow"
)

func TestTune(t *testing.T) {
	if os.Getenv("TUNE") == "" {
		t.Skip()
	}
	ctx := context.Background()
	type inst struct {
		name         string
		before, next *flow.Problem
	}
	var is []inst
	for _, set := range sets(t)[:4] {
		for _, steps := range []int{0} {
			b := set.Problem(set.Centroids(steps))
			is = append(is, inst{set.Name, b, set.Problem(means(set, b))})
		}
	}
	var res flow.Result
	for _, ratio := range []int{4, 8, 16} {
		for _, least := range []int{2, 4} {
			for _, share := range []float64{1, 2, 3} {
				for _, wide := range []int64{4, 8} {
					fmt.Printf("ratio %d least %d share %.1f wide %d:", ratio, least, share, wide)
					for _, in := range is {
						s := flow.NewSolver()
						s.SetTuning(ratio, least, 16, share, wide)
						best, bestWarm := time.Hour, time.Hour
						for range 6 {
							s.Cold = true
							t0 := time.Now()
							s.Solve(ctx, nil, in.before, &res)
							best = min(best, time.Since(t0))
							s.Cold = false
							t0 = time.Now()
							s.Solve(ctx, nil, in.next, &res)
							bestWarm = min(bestWarm, time.Since(t0))
						}
						fmt.Printf("  %s %.3f %.3f", in.name, best.Seconds()*1e3, bestWarm.Seconds()*1e3)
					}
					fmt.Println()
				}
			}
		}
	}
}
