package study

import (
	"context"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/secret"
)

// seated is the job of one role of a study.
type seated struct {
	runner  protocol.Runner
	options protocol.Options
}

// Method implements engine.Job.
func (s *seated) Method() string { return s.runner.Core().Method }

// Plan implements engine.Job.
func (s *seated) Plan() (engine.Plan, error) { return s, nil }

// Outline implements engine.Plan.
func (s *seated) Outline() (*engine.Outline, error) { return s.runner.Outline() }

// Info implements engine.Plan.
func (s *seated) Info() engine.JobInfo { return s.runner.Info() }

// Run implements engine.Plan.
func (s *seated) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	return s.runner.Connect(ctx, rt, s.options)
}

// secrets are those of a role: of the simulation that the study is, or of the role's
// own root and the group's.
func (s *Study) secrets(r protocol.Role, k *keys, group secret.Root) protocol.Secrets {
	if s.Seed != nil {
		return protocol.SimulatedSecrets(*s.Seed, r)
	}
	return protocol.Secrets{Own: secret.Of(k.root).Derive("run"), Group: group}
}
