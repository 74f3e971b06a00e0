package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/fault"
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
	joined *vertical.JoinReport
}

// load reads the data that the options name.
func load(ctx context.Context, o *options, m method) (*input, error) {
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
func read(ctx context.Context, o *options, m method) (*input, error) {
	if o.text("id") != "" {
		if !m.vertical {
			return nil, fault.Request("--id", o.method+" splits the data by rows", "leave it out, or use a vertical method")
		}
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
	if t.Files != nil && !m.vertical {
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
