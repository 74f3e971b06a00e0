package bench

import (
	"context"

	"github.com/cohort-engine/cohort/engine/method/ckks"
)

// tableSuites are the papers' tables of data sets and of networks.
func tableSuites() []Suite {
	sets := func(name, group, place string, names ...string) Suite {
		s := Suite{Name: name, Group: group, Title: group + " " + place + ": data sets", Source: group + ", " + place,
			About: "Records, columns and clusters of the sets that are at hand, as the suites read them.",
			Run:   func(ctx context.Context, e *Env) { e.setSizes(ctx, names) }}
		for _, n := range names {
			s.Needs = append(s.Needs, SetName(n))
		}
		return s
	}
	return []Suite{
		sets("fastlloyd-table2", groupFastLloyd, "Table 2", "iris", "lsun", "s1", "house", "adult", "birch2", "SynthOV",
			"SynthSEP", "TimeSynth"),
		sets("thesis-8.1", groupThesisH, "Table 8.1", "image", "house", "iris", "adult", "s1", "birch2"),
		sets("sketch-table3", groupSketch, "Table 3", "taxi", "loan", "letter", "mixgauss"),
		sets("ckks-table2", groupCKKS, "Table 2", "bank", "har", "loan", "taxi", "s1"),
		{
			Name: "ckks-table1", Group: groupCKKS, Title: "CKKS-V Table 1: networks", Source: "CKKS-V, Table 1",
			About: "The ten networks as cohort run --method ckks models them, and what the model adds for a round trip and " +
				"for a megabyte. Burst size, quantum and r2q are settings of the paper's traffic shaper, which the model does " +
				"not have.",
			Run: runCKKSTable1,
		},
	}
}

// setSizes measures the sizes of sets, which have the paper's names.
func (e *Env) setSizes(ctx context.Context, names []string) {
	for _, name := range names {
		e.on(ctx, SetName(name), "", []Label{L("set", name)}, func(ctx context.Context, c *Case, s *Set) error {
			c.number("records", unitPlain, float64(s.N))
			c.number("columns", unitPlain, float64(s.D))
			c.number("clusters", unitPlain, float64(s.K))
			return nil
		})
	}
}

func runCKKSTable1(ctx context.Context, e *Env) {
	for _, n := range ckks.Networks() {
		e.newCase(ctx, "", []Label{L("network", n.Name)}, func(_ context.Context, c *Case) error {
			model, err := FindNetwork(n.Name)
			if err != nil {
				return err
			}
			c.number("bandwidth", "Mbit/s", n.Mbps)
			c.number("delay", "ms", n.DelayMS)
			c.number("jitter", "ms", n.JitterMS)
			c.number("loss of packets", "%", n.LossPercent)
			c.number("a round trip", "ms", model.Cost(1, 0).Seconds()*1e3)
			c.number("a megabyte", "ms", model.Cost(0, 1e6).Seconds()*1e3)
			return nil
		})
	}
}
