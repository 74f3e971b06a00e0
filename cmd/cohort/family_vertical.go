package main

import (
	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/vertical"
)

// verticalFamily is the sketch protocols of Sketch-V and their baselines.
func verticalFamily() family {
	return family{
		name: "Vertical, by sketches",
		methods: []method{
			{name: "vertical-plain", about: "exact local centres and memberships, no privacy", vertical: true},
			{name: "ind-lap", about: "noisy sizes of local clusters, columns taken for independent", private: true, vertical: true},
			{name: "ldp-agg", about: "memberships under local privacy", private: true, vertical: true},
			{name: "sketch-basic", about: "membership sketches, each cell of the grid on its own", private: true, vertical: true},
			{name: "sketch", about: "membership sketches, the grid as a whole (recommended)", private: true, vertical: true},
		},
		flags: func(fs *pflag.FlagSet, _ *options) {
			fs.String("local-k", "auto", "vertical: local clusters of each party: auto, paper or a number")
			fs.Int("sketches", vertical.DefaultSketches, "vertical: number of sketches M")
			fs.Float64("gamma", 0, "vertical: parameter of the sketches (default 1/1024; 1 for the paper's estimators)")
			fs.Float64("sketch-share", 0, "vertical: share of the squared budget for the sketches (default .25 for 2 parties, .5 from 4 on)")
			fs.String("estimator", "", "vertical: em, pair-mle or paper (default em; paper under claimed)")
			fs.String("local-start", "auto", "vertical: start of the local centres: auto, grid or lsf")
		},
		check: checkVertical,
		job:   verticalJob,
	}
}

func checkVertical(o *options) error {
	if o.mechanism == "laplace" && (o.method == "sketch" || o.method == "sketch-basic") && o.calibration == "proven" {
		return fault.Request("--mechanism", "laplace is not what "+o.method+" is calibrated with", "leave it out, or use --calibration claimed or --method ind-lap")
	}
	if o.mechanism == "gaussian" && (o.method == "ind-lap" || o.method == "ldp-agg") {
		return fault.Request("--mechanism", "gaussian is not what "+o.method+" is calibrated with", "leave it out")
	}
	if sketches, _ := o.set.GetInt("sketches"); sketches < 1 {
		return fault.Range("--sketches", sketches, "at least 1")
	}
	if o.given("sketch-share") && !(o.float("sketch-share") > 0 && o.float("sketch-share") < 1) {
		return fault.Range("--sketch-share", o.float("sketch-share"), "between 0 and 1, both excluded")
	}
	if o.given("gamma") && !(o.float("gamma") > 0) {
		return fault.Range("--gamma", o.float("gamma"), "positive")
	}
	_, err := vertical.ParseLocalK(o.text("local-k"))
	return err
}

func (o *options) float(flag string) float64 {
	x, _ := o.set.GetFloat64(flag)
	return x
}

func verticalJob(o *options, in *input) (engine.Job, error) {
	localK, err := vertical.ParseLocalK(o.text("local-k"))
	if err != nil {
		return nil, err
	}
	parties := o.parties
	if o.split != "" && !o.given("parties") && !vertical.IsPreset(o.split) {
		parties = 0 // the split says how many
	}
	split, err := vertical.ParseSplit(o.split, parties, in.table.D, in.table.Columns)
	if err != nil {
		return nil, err
	}
	sketches, _ := o.set.GetInt("sketches")
	job := &vertical.Job{
		Protocol: vertical.Protocol(o.method), Data: in.norm, Split: split, K: in.k,
		Calibration: privacy.Calibration(o.calibration), Neighbours: privacy.Neighbours(o.neighbours),
		LocalK: localK, Sketches: sketches, Gamma: o.float("gamma"), Share: o.float("sketch-share"),
		Estimator: vertical.Estimator(o.text("estimator")), Start: vertical.LocalStart(o.text("local-start")),
		Seed: o.seedPointer(), NoQuality: o.quality == "off", Labels: in.table.Labels,
	}
	if job.Protocol.Private() {
		job.Budget = o.budget()
	}
	return job, nil
}
