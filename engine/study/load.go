package study

import (
	"context"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Records are a party's own, as a study needs them.
type Records struct {
	Part dataset.Part
	IDs  []string
	// Digests identify the columns in a ledger file, if they were asked for.
	Digests []string
}

// Load reads a party's file: the columns that the study names, in the study's order,
// within its bounds. digest keys the digests of columns; nil asks for none.
func (s *Study) Load(ctx context.Context, party int, path string, read dataset.ReadOptions,
	digest *[16]byte) (*Records, error) {
	from, to := s.span(party)
	if s.Columns != nil && read.Columns == "" {
		read.Columns = dataset.QuoteColumns(s.Columns[from:to])
	}
	all := s.Box()
	bounds := dataset.Bounds{Lo: all.Lo[from:to], Hi: all.Hi[from:to]}
	r := &Records{}
	var source dataset.Source
	var err error
	if s.IDColumn != "" && s.ByColumns() {
		var table *dataset.Table
		if table, err = dataset.OpenIDs(ctx, path, s.IDColumn, read); err == nil {
			r.IDs = table.IDs
			source, err = table.Source()
		}
	} else {
		source, err = dataset.OpenSource(ctx, path, read)
	}
	if err != nil {
		return nil, err
	}
	schema := source.Schema()
	if schema.D != to-from {
		return nil, fault.Request("--data", "has other columns than the study", "choose those of the study with --columns")
	}
	if want := s.Columns; want != nil && schema.Columns != nil {
		for i, name := range schema.Columns {
			if name != want[from+i] {
				return nil, fault.Request("--data", "has column "+name+" where the study has "+want[from+i],
					"choose the columns in the study's order with --columns")
			}
		}
	}
	got, err := dataset.Prepare(ctx, source, dataset.PrepareOptions{Read: read, Bounds: &bounds,
		Unit: s.Options["metric"] == "cosine", FractionBits: s.FractionBits, NoLabels: true, DigestKey: digest})
	if err != nil {
		return nil, err
	}
	r.Part = dataset.Part{Points: got.Points, FractionBits: s.FractionBits}
	r.Digests = got.Digests
	return r, nil
}
