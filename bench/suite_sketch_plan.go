package bench

import (
	"context"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/sketch"
)

// sketchPlanSuites compare the plan of the sketches with what is beside it.
func sketchPlanSuites() []Suite {
	return []Suite{{
		Name: "sketch-plan", Group: groupPerformance, Title: "Plan of the sketches: error by M, gamma and share",
		About: "Error of the intersections and loss on mixgauss with k' = k = 5 and delta = 1/n under the proven " +
			"calibration, whose phantoms are the least that the distribution of losses allows, as planned and with one " +
			"thing changed. Four times the keys take four times the time of the joint likelihood and lower the error " +
			"by less than the rows can tell; the share of the squared budget is what the local centres do without, so " +
			"the loss decides it.",
		Needs: []string{"mixgauss"},
		Figures: []Figure{{Title: "Error of the intersections by plan", X: "epsilon", Y: "intersection error",
			Series: []string{"plan"}, Panel: "parties", LogX: true, LogY: true}},
		Run: runSketchPlan,
	}}
}

// plans are the changes; keys is the planned number of sketches.
var plans = []struct {
	name string
	edit func(j *sketch.Job, keys int)
}{
	{"default", func(*sketch.Job, int) {}},
	{"M / 4", func(j *sketch.Job, keys int) { j.Sketches = keys / 4 }},
	{"M x 4", func(j *sketch.Job, keys int) { j.Sketches = 4 * keys }},
	{"gamma x 8", func(j *sketch.Job, keys int) { j.Sketches, j.Gamma = keys, 8*sketch.DefaultGamma }},
	{"share .1", func(j *sketch.Job, keys int) { j.Sketches, j.Share = keys, 0.1 }},
	{"share .5", func(j *sketch.Job, keys int) { j.Sketches, j.Share = keys, 0.5 }},
}

func runSketchPlan(ctx context.Context, e *Env) {
	for _, epsilon := range []float64{1, 0.05, 4, 0.25} {
		for _, parties := range []int{2, 4} {
			for _, p := range plans {
				labels := []Label{L("parties", parties), L("epsilon", epsilon), L("plan", p.name)}
				e.newCase(ctx, "", labels, func(ctx context.Context, c *Case) error {
					return measurePlan(ctx, c, parties, epsilon, p.edit)
				})
			}
		}
	}
}

// measurePlan runs a plan with one thing changed.
func measurePlan(ctx context.Context, c *Case, parties int, epsilon float64, edit func(*sketch.Job, int)) error {
	s, err := c.Env.set(ctx, "mixgauss")
	if err != nil {
		return err
	}
	planned, err := c.Env.Engine.Run(ctx, sketchJob(s.Norm, s.Labels, parties, paperK, epsilon, 1))
	if err != nil {
		return err
	}
	keys := planned.Details["sketches"].(int)
	var last *engine.Result
	var errors, losses []float64
	for run := 1; run <= c.Env.reps(10, 2); run++ {
		j := sketchJob(s.Norm, s.Labels, parties, paperK, epsilon, run)
		edit(j, keys)
		if last, err = c.Env.Engine.Run(ctx, j); err != nil {
			return err
		}
		errors = append(errors, last.Details["relative_intersection_error"].(float64))
		losses = append(losses, *last.NICV)
	}
	c.samples("intersection error", unitPlain, errors)
	c.samples("loss", unitPlain, losses)
	c.number("sketches", unitPlain, float64(last.Details["sketches"].(int)))
	c.number("phantoms", unitPlain, last.Details["phantoms"].(float64))
	return nil
}
