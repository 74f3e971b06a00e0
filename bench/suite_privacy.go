package bench

import (
	"context"

	"github.com/cohort-engine/cohort/engine/privacy"
)

func privacySuites() []Suite {
	return []Suite{{
		Name: "privacy", Group: groupPerformance, Title: "What calibration costs and saves",
		About: "Phantoms of a sketch run at epsilon 0.5, delta 5e-5 over 4096 keys, for S parties of k' clusters: by " +
			"Renyi divergences and by the distribution of losses of the censored maximum, and the time that the latter takes " +
			"on one thread.",
		Run: runPrivacy,
	}}
}

func runPrivacy(ctx context.Context, e *Env) {
	b := privacy.Budget{Epsilon: 0.5, Delta: 5e-5}
	const keys = 4096
	for _, size := range []struct{ parties, cells, pairs int }{{2, 5, 1}, {2, 10, 1}, {3, 5, 1}, {4, 5, 1},
		{8, 2, 1}, {2, 5, 6}} {
		for _, gamma := range []float64{1, 0.05, 0} {
			labels := []Label{L("parties", size.parties), L("clusters", size.cells), L("pairs", size.pairs), L("gamma", gamma)}
			e.newCase(ctx, "phantoms", labels, func(ctx context.Context, c *Case) error {
				f := privacy.FM{Gamma: gamma, Parties: size.parties, Cells: size.cells}
				renyi, err := privacy.FMPhantoms(b, f, keys*size.pairs)
				if err != nil {
					return err
				}
				losses := 0
				if err := c.time(ctx, "calibration", func() { losses, err = privacy.FMPhantomsPLD(b, f, keys*size.pairs) },
					atMost(50e6)...); err != nil {
					return err
				}
				c.number("by rdp", unitPlain, float64(renyi))
				c.number("by pld", unitPlain, float64(losses))
				return err
			})
		}
	}
}
