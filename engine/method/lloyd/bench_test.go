package lloyd

import (
	"context"
	"fmt"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// benchWorkers is the size of the pool that benchmarks run on.
const benchWorkers = 2

// BenchmarkIteration is one whole round of two clients and the server: assign,
// sum, encode, mask, aggregate, noise, unmask, post-process.
func BenchmarkIteration(b *testing.B) {
	for _, set := range []struct {
		name string
		k    int
	}{{"s1", 15}, {"adult", 3}, {"birch2_25k", 100}, {"timesynth_k5_d2_n100000.csv.gz", 5},
		{"timesynth_k2_d2_n100000.csv.gz", 2}} {
		for _, m := range []Method{Lloyd, SuLloyd, Relative, FastLloyd} {
			b.Run(fmt.Sprintf("set=%s/method=%s", set.name, m), func(b *testing.B) {
				_, parts := load(b, set.name, 2, 1)
				seed := uint64(1)
				pool := engine.NewPool(benchWorkers)
				defer pool.Close()
				job := Job{Method: m, Problem: protocol.Problem{K: set.k, Clients: parts, Seed: &seed,
					Calibration: privacy.Claimed, NoQuality: true, Budget: privacy.Budget{Epsilon: 1, Delta: -1}}}
				p := planOf(b, &job)
				ctx := context.Background()
				var s *protocol.Session
				more := false
				b.ReportAllocs()
				for b.Loop() {
					if !more {
						b.StopTimer()
						s, _ = p.start(engine.NewRuntime(pool), protocol.Options{})
						if _, err := s.Step(ctx); err != nil { // which also sets up
							b.Fatal(err)
						}
						b.StartTimer()
					}
					var err error
					if more, err = s.Step(ctx); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
