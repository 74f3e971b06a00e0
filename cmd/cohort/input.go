package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/vertical"
)

// input is a data set that has been read and put on the grid.
type input struct {
	table *dataset.Table
	norm  *dataset.Normalised
	// k is the number of clusters asked for, or what a built-in set was made with.
	k int
	// digest identifies the data in a ledger file; empty if there is none.
	digest string
	// split and joined are set if each party's columns came from a file of their
	// own (--id).
	split  vertical.Split
	joined string
}

// load reads the data that the options name.
func load(ctx context.Context, o *options, m *method.Method) (*input, error) {
	in, err := read(ctx, o, m)
	if err != nil {
		return nil, err
	}
	t := in.table
	in.k = o.k
	if !o.given("k") {
		in.k = classes(t.Labels)
	}
	if in.k > t.N {
		return nil, fault.Request("--k", fmt.Sprintf("is %d and there are only %d points", in.k, t.N), "ask for fewer clusters")
	}
	b, err := bounds(ctx, o, t)
	if err != nil {
		return nil, err
	}
	if in.norm, err = dataset.Normalise(t, b, o.fractionBits); err != nil {
		return nil, err
	}
	if o.ledger != "" {
		in.digest = digestOf(t)
	}
	t.Rows = nil // the grid holds them from here on
	return in, nil
}

// read opens the source of the data.
func read(ctx context.Context, o *options, m *method.Method) (*input, error) {
	if o.id != "" {
		return loadJoined(ctx, o)
	}
	gen := dataset.Generator{N: o.genN, D: o.genD, Separation: o.genSeparation, Seed: o.dataSeed}
	for _, b := range dataset.Builtins() {
		if "builtin:"+b.Name == o.data && b.Default.K > 0 {
			gen.K = o.k // a set that can be made with any number of clusters
		}
	}
	if !strings.HasPrefix(o.data, "builtin:") {
		for _, flag := range []string{"n", "d", "separation", "data-seed"} {
			if o.given(flag) {
				return nil, fault.Request("--"+flag, "belongs to the built-in generators and "+o.data+" is a file", "leave it out or use --data builtin:NAME")
			}
		}
	}
	t, err := dataset.Open(ctx, o.data, dataset.ReadOptions{Columns: o.columns, Labels: o.labels, Generator: gen})
	if err != nil {
		return nil, err
	}
	if t.Files != nil && m.Holds != method.Columns {
		if o.given("clients") && o.clients != len(t.Files) {
			return nil, fault.Request("--clients", fmt.Sprintf("is %d for %d files", o.clients, len(t.Files)), "leave it out: each file is one client")
		}
		if o.proportions != "" {
			return nil, fault.Request("--proportions", "is given and each file is one client", "leave it out")
		}
		o.clients = len(t.Files)
	}
	return &input{table: t}, nil
}

func bounds(ctx context.Context, o *options, t *dataset.Table) (dataset.Bounds, error) {
	switch {
	case o.bounds != "":
		return dataset.ParseBounds(o.bounds, t.D)
	case o.boundsFile != "":
		return dataset.OpenBounds(ctx, o.boundsFile, t.D)
	}
	return dataset.BoundsFromData(t)
}

// job makes a job of the method on the data.
func (in *input) job(o *options, m *method.Method) (engine.Job, error) {
	d := method.Data{Records: in.norm, Labels: in.table.Labels, IDs: in.table.IDs, K: in.k, Budget: o.budget(),
		Seed: o.seedPointer(), NoQuality: o.quality == "off"}
	var err error
	if m.Holds == method.Columns {
		d.Parties, err = in.parties(o)
	} else {
		d.Clients, err = in.shares(o)
	}
	if err != nil {
		return nil, err
	}
	return catalog.Methods().Job(m.Name, d, o.settings())
}

// parties deals the columns to the parties.
func (in *input) parties(o *options) (vertical.Split, error) {
	switch {
	case in.split != nil:
		return in.split, nil
	case in.table.Files != nil:
		return nil, fault.Request("--data", fmt.Sprintf("lists %d files, whose rows cannot be matched", len(in.table.Files)), "name the id column with --id, or give one file")
	}
	parties := o.parties
	if o.split != "" && !o.given("parties") && !vertical.IsPreset(o.split) {
		parties = 0 // the split says how many
	}
	return vertical.ParseSplit(o.split, parties, in.table.D, in.table.Columns)
}

// shares deals the rows to the clients.
func (in *input) shares(o *options) ([]dataset.Part, error) {
	if in.table.Files != nil {
		return in.norm.SplitFiles(in.table.Files)
	}
	proportions, err := o.proportionList()
	if err != nil {
		return nil, err
	}
	return in.norm.Split(o.clients, proportions, o.seed)
}

// classes is the number of distinct labels; every built-in set has some.
func classes(labels []int32) int {
	seen := make(map[int32]bool)
	for _, l := range labels {
		seen[l] = true
	}
	return len(seen)
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
		t, err := dataset.OpenIDs(ctx, strings.TrimSpace(path), o.id)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	secret := vertical.NewSecret(privacy.NewStreams(o.seedPointer()))
	table, split, report, err := vertical.JoinTables(secret, tables, o.join == "inner")
	if err != nil {
		return nil, err
	}
	return &input{table: table, split: split, joined: report.String()}, nil
}
