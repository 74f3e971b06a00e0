package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
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
			fs.String("id", "", "vertical: id column of --data, which is then one file per party: --data a.csv,b.csv --id customer")
			fs.String("join", "strict", "vertical: strict refuses ids that are unmatched or duplicate, inner leaves them out")
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
	if err := oneOf("join", o.text("join"), "strict", "inner"); err != nil {
		return err
	}
	if o.given("join") && !o.given("id") {
		return fault.Request("--join", "is given without --id", "name the id column of each party's file with --id")
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
	if in.table.Files != nil {
		return nil, fault.Request("--data", fmt.Sprintf("lists %d files, whose rows cannot be matched", len(in.table.Files)), "name the id column with --id, or give one file")
	}
	parties := o.parties
	if o.split != "" && !o.given("parties") && !vertical.IsPreset(o.split) {
		parties = 0 // the split says how many
	}
	split := in.split
	if split == nil {
		if split, err = vertical.ParseSplit(o.split, parties, in.table.D, in.table.Columns); err != nil {
			return nil, err
		}
	}
	sketches, _ := o.set.GetInt("sketches")
	job := &vertical.Job{
		Protocol: vertical.Protocol(o.method), Data: in.norm, Split: split, K: in.k,
		Calibration: privacy.Calibration(o.calibration), Neighbours: privacy.Neighbours(o.neighbours),
		LocalK: localK, Sketches: sketches, Gamma: o.float("gamma"), Share: o.float("sketch-share"),
		Estimator: vertical.Estimator(o.text("estimator")), Start: vertical.LocalStart(o.text("local-start")),
		Seed: o.seedPointer(), NoQuality: o.quality == "off", Labels: in.table.Labels,
	}
	if ids := in.table.IDs; ids != nil {
		job.ID = func(row int, dst []byte) []byte { return append(dst, ids[row]...) }
		job.Joined = in.joined
	}
	if job.Protocol.Private() {
		job.Budget = o.budget()
	}
	return job, nil
}

// loadJoined reads one file per party and matches their records by id.
func loadJoined(ctx context.Context, o *options) (*input, error) {
	for _, flag := range []string{"labels", "columns", "split", "parties"} {
		if o.given(flag) {
			return nil, fault.Request("--"+flag, "is given together with --id", "leave it out: each file has one party's columns")
		}
	}
	paths := strings.Split(o.data, ",")
	if len(paths) < 2 {
		return nil, fault.Request("--id", "needs one file per party", "list at least two files in --data")
	}
	var tables []*dataset.Table
	for _, path := range paths {
		t, err := dataset.OpenIDs(ctx, strings.TrimSpace(path), o.text("id"))
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	secret := vertical.NewSecret(privacy.NewStreams(o.seedPointer()))
	table, split, report, err := vertical.JoinTables(secret, tables, o.text("join") == "inner")
	if err != nil {
		return nil, err
	}
	return &input{table: table, split: split, joined: &report}, nil
}
