package main

import (
	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/central"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// centralFamily is the methods for one data set, and hybrid for any number of
// clients.
func centralFamily() family {
	return family{
		name: "Central, and hybrid over rows",
		methods: []method{
			{name: "hybrid", about: "private synopsis, free search, relative refinement; one client or many (recommended)", private: true},
		},
		flags: func(fs *pflag.FlagSet, _ *options) {
			fs.String("branch", "auto", "hybrid: tree, high-d, or auto (the rule)")
		},
		check: checkCentral,
		job:   centralJob,
	}
}

// text is the value of a flag of this family.
func (o *options) text(flag string) string {
	s, _ := o.set.GetString(flag)
	return s
}

func checkCentral(o *options) error {
	if o.calibration != "proven" {
		return fault.Request("--calibration", o.method+" has no claim but the proven one", "leave it out")
	}
	if o.mechanism == "gaussian" && o.given("delta") && o.delta == 0 {
		return fault.Request("--mechanism", "gaussian noise needs a positive --delta", "give a delta, or --mechanism laplace")
	}
	return oneOf("branch", o.text("branch"), "auto", "tree", "high-d")
}

func centralJob(o *options, in *input) (engine.Job, error) {
	parts, err := in.shares(o)
	if err != nil {
		return nil, err
	}
	iterations, err := o.iterationCount()
	if err != nil {
		return nil, err
	}
	data := central.Data{Clients: parts, Bounds: in.norm.Bounds, Labels: in.table.Labels, Clamped: in.norm.Clamped, NoQuality: o.quality == "off"}
	return &central.Hybrid{Data: data, K: in.k, Budget: o.budget(), Laplace: o.mechanism == "laplace",
		Neighbours: privacy.Neighbours(o.neighbours), Branch: o.text("branch"), Rounds: iterations, Seed: o.seedPointer()}, nil
}
