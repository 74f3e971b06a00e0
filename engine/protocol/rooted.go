package protocol

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/internal/secret"
)

// Rooted is the job of a plan all of whose randomness, public and secret, follows from a root: it
// can be done again, to the same bits, by who has the root and the same records. The
// root is as secret as the noise of all roles together. The plan is the job's from then on.
func Rooted(plan engine.Plan, root secret.Root) (engine.Job, error) {
	runner, ok := plan.(Runner)
	if !ok {
		return nil, fmt.Errorf("protocol: %s does not take its randomness from a root", plan.Info().Method)
	}
	runner.Core().PublicSeed = PublicSeed(root.Derive("public").Key())
	return engine.Planned(rootedPlan{runner, root}), nil
}

type rootedPlan struct {
	Runner
	root secret.Root
}

// Run implements engine.Plan.
func (p rootedPlan) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	return p.Connect(ctx, rt, Options{Secrets: func(r Role) Secrets {
		s := Secrets{Own: p.root.Derive("own " + r.String())}
		if !r.Serves() {
			s.Group = p.root.Derive("group")
		}
		return s
	}})
}
