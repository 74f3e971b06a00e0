package protocol

import (
	"context"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
)

// Noise is cleared once it has been added, and a run that has ended leaves its roles no shares of values.
func TestRolesForgetNoiseAndSecrets(t *testing.T) {
	for _, servers := range []int{0, 2} {
		noise, err := NewDistribution(Noise{Mechanism: Gaussian, Scale: 50}, nil)
		if err != nil {
			t.Fatal(err)
		}
		groups, seed := []Group{{Stream: "a", Values: 8, Noise: noise}}, uint64(1)
		plan := &Plan{Method: "test", K: 1, D: 1, Parties: 2, Rounds: 1, Seed: &seed, Servers: servers,
			Coordinated: servers == 0}
		r := plan.Add(&Release{Name: "numbers", Makers: EachWhole, Times: 1})
		var roles []*Party
		drawn := true
		program := func(ctx context.Context, p *Party) (*Outcome, error) {
			_, err := p.Sum(ctx, r, 0, groups, NewPrivate(8))
			drawn = drawn && len(p.noise) == 8 && !slices.ContainsFunc(p.noise, func(x int64) bool { return x != 0 })
			return &Outcome{}, err
		}
		serve := Program(Serve)
		if servers > 0 {
			serve = ServeShares
		}
		pool := engine.NewPool(1)
		s := Start(engine.NewRuntime(pool), plan, []Program{program, program}, serve,
			Options{Joined: func(p *Party) { roles = append(roles, p) }})
		if _, err := s.Finish(context.Background(), dataset.Bounds{}); err != nil {
			t.Fatal(err)
		}
		pool.Close()
		if !drawn {
			t.Errorf("%d servers: noise is left", servers)
		}
		for _, p := range roles {
			if (p.split != nil) != (servers > 0 && !p.Role.Serves()) {
				t.Errorf("%d servers: %v has made shares %v", servers, p.Role, p.split)
			}
			for _, b := range p.split {
				if slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) {
					t.Errorf("%d servers: %v has a share of values", servers, p.Role)
				}
			}
		}
	}
}
