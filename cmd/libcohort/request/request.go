// Package request reads what a program that calls the C library asks for: options as JSON.
package request

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/cohort-engine/cohort"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog/standard"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Options are the JSON object of cohort_prepare and cohort_fit. cohort.h says what each field means.
type Options struct {
	K            int              `json:"k"`
	Method       string           `json:"method"`
	Epsilon      *float64         `json:"epsilon"`
	Delta        float64          `json:"delta"`
	Pure         bool             `json:"pure"`
	Settings     map[string]value `json:"settings"`
	Lower        []float64        `json:"lower"`
	Upper        []float64        `json:"upper"`
	OneScale     bool             `json:"one_scale"`
	Unit         bool             `json:"unit"`
	FractionBits int              `json:"fraction_bits"`
	Clients      int              `json:"clients"`
	Holders      string           `json:"holders"`
	Parties      [][]int          `json:"parties"`
	Start        [][]float64      `json:"start"`
	Seed         *uint64          `json:"seed"`
	Ordered      bool             `json:"ordered"`
	NoLabels     bool             `json:"no_labels"`
	Cache        string           `json:"cache"`
	Ledger       *Ledger          `json:"ledger"`
}

// Ledger is a ledger file.
type Ledger struct {
	Path        string  `json:"path"`
	KeyFile     string  `json:"key_file"`
	Anchor      string  `json:"anchor"`
	Epsilon     float64 `json:"epsilon"`
	Delta       float64 `json:"delta"`
	Composition string  `json:"composition"`
}

// value is the value of a setting: text, a number, or true and false.
type value string

func (v *value) UnmarshalJSON(b []byte) error {
	var text string
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		*v = value(text)
		return nil
	}
	if len(b) > 0 && (b[0] == '{' || b[0] == '[' || b[0] == 'n') {
		return fmt.Errorf("%s is neither text nor a number", b)
	}
	*v = value(b)
	return nil
}

// Parse reads options; no text means no options.
func Parse(text string) (*Options, error) {
	o := new(Options)
	if text == "" {
		return o, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(o); err != nil {
		return nil, fault.Request("options", "cannot be read ("+err.Error()+")",
			"give a JSON object with the fields that cohort.h lists")
	}
	if _, err := d.Token(); err != io.EOF { // More takes a bracket too many for the end
		return nil, fault.Request("options", "go on after the object", "give one JSON object")
	}
	if o.Epsilon != nil && !(*o.Epsilon > 0) { // 0 is none to what is below
		return nil, fault.Range("epsilon", *o.Epsilon, "positive and finite; without a budget it is left out")
	}
	if o.Holders != "" && o.Holders != "rows" && o.Holders != "columns" {
		return nil, fault.Request("holders", fmt.Sprintf("%q is unknown", o.Holders), "choose one of rows, columns")
	}
	return o, nil
}

// account is the ledger file, nil if there is none.
func (o *Options) account() (*cohort.Account, error) {
	l := o.Ledger
	if l == nil {
		return nil, nil
	}
	if l.Path == "" {
		return nil, fault.Request("ledger", "has no path", "name the file")
	}
	composition, err := privacy.ParseComposition(l.Composition)
	if err != nil {
		return nil, fault.Request("ledger", err.Error(), "choose one of basic, zcdp, gdp, rdp")
	}
	a := &cohort.Account{File: privacy.LedgerFile{Path: l.Path, Anchor: l.Anchor},
		Budget: privacy.Budget{Epsilon: l.Epsilon, Delta: l.Delta}}
	if l.Composition != "" {
		a.Composition = composition
	}
	if l.KeyFile != "" {
		if a.File.Key, err = privacy.ReadKey("ledger key", l.KeyFile); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Prepared is records with what fits of them share.
type Prepared struct {
	*cohort.Records
	account *cohort.Account
	parties [][]int
}

// Data are the records of one holder or several, as they were handed over.
type Data struct {
	// Parts are in memory; File is a path instead.
	Parts   []dataset.Borrowed
	File    string
	Weights []float64
}

// source joins the holders' records, and gives the columns of each holder of columns.
func (d *Data) source(columns bool) (cohort.Data, [][]int, error) {
	if d.File != "" {
		return cohort.File(d.File), nil, nil
	}
	if columns && len(d.Parts) > 1 {
		s, parties, err := dataset.Beside("data", d.Parts)
		return cohort.From(s), parties, err
	}
	s, err := dataset.Below("data", d.Parts)
	return cohort.From(s), nil, err
}

// Prepare reads the records.
func (o *Options) Prepare(ctx context.Context, d *Data, workers int) (*Prepared, error) {
	account, err := o.account()
	if err != nil {
		return nil, err
	}
	source, parties, err := d.source(o.Holders == "columns")
	if err != nil {
		return nil, err
	}
	p := &Prepared{account: account, parties: parties}
	p.Records, err = cohort.Prepare(ctx, source,
		cohort.PrepareOptions{Bounds: cohort.Bounds{Lower: o.Lower, Upper: o.Upper}, OneScale: o.OneScale,
			Unit:         o.Unit || o.Settings["metric"] == "cosine",
			FractionBits: o.FractionBits, Weights: d.Weights, Account: account, Cache: o.Cache, Workers: workers})
	return p, err
}

// Fit reads the records and clusters them, by one of the methods.
func (o *Options) Fit(ctx context.Context, d *Data, methods method.List, eng *engine.Engine,
	watch engine.Observer) (*cohort.Model, error) {
	if o.Holders == "" {
		m, err := o.method(methods)
		if err != nil {
			return nil, err
		}
		if m.Holds == method.Columns {
			o.Holders = "columns"
		}
	}
	p, err := o.Prepare(ctx, d, eng.Workers())
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return o.fit(ctx, p, methods, eng, watch)
}

// FitPrepared clusters records that were prepared; what concerns how they are read was said then.
func (o *Options) FitPrepared(ctx context.Context, p *Prepared, methods method.List, eng *engine.Engine,
	watch engine.Observer) (*cohort.Model, error) {
	if o.Lower != nil || o.Upper != nil || o.OneScale || o.Unit || o.FractionBits != 0 || o.Holders != "" ||
		o.Ledger != nil || o.Cache != "" {
		return nil, fault.Request("options",
			"have lower, upper, one_scale, unit, fraction_bits, holders, ledger or cache for records that are prepared",
			"give those to cohort_prepare")
	}
	return o.fit(ctx, p, methods, eng, watch)
}

// method is the method that is asked for.
func (o *Options) method(methods method.List) (*method.Method, error) {
	return methods.Find(cmp.Or(o.Method, standard.Default(o.Epsilon != nil)))
}

func (o *Options) fit(ctx context.Context, p *Prepared, methods method.List, eng *engine.Engine,
	watch engine.Observer) (*cohort.Model, error) {
	parties := o.Parties
	if parties == nil {
		// A method over rows takes the joined columns as one table.
		if m, err := o.method(methods); err == nil && m.Holds == method.Columns {
			parties = slices.Clone(p.parties)
		}
	} else if p.parties != nil {
		return nil, fault.Request("parties", "are given and each holder of columns is one", "leave them out")
	}
	epsilon := 0.0
	if o.Epsilon != nil {
		epsilon = *o.Epsilon
	}
	settings := make(map[string]string)
	for name, v := range o.Settings {
		settings[name] = string(v)
	}
	return p.Fit(ctx, cohort.Options{K: o.K, Epsilon: epsilon, Delta: o.Delta, Pure: o.Pure, Method: o.Method,
		Settings: settings, Methods: methods,
		Clients: o.Clients, Parties: parties, Start: o.Start, Account: p.account, Seed: o.Seed, Ordered: o.Ordered,
		NoLabels: o.NoLabels, Engine: eng, Observer: watch})
}
