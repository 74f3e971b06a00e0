package request

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog/standard"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/internal/fault"
)

func TestParse(t *testing.T) {
	o, err := Parse(`{"k": 3, "epsilon": 0.5, "settings": {"iterations": 7, "init": "random", "flag": true},
		"seed": 18446744073709551615, "ledger": {"path": "x"}}`)
	if err != nil || o.K != 3 || *o.Seed != 1<<64-1 || o.Settings["iterations"] != "7" ||
		o.Settings["init"] != "random" || o.Settings["flag"] != "true" {
		t.Errorf("%+v, error %v", o, err)
	}
	for _, text := range []string{"[]", "{", `{"k": "3"}`, `{"K3": 1}`, `{"settings": {"a": null}}`, `{"k": 1} 2`,
		`{"k": 1}}`, `{"k": 1}]`, `{"holders": "both"}`, `{"seed": -1}`, `{"k": 3, "epsilon": 0}`,
		`{"k": 3, "epsilon": -1}`} {
		if _, err := Parse(text); !fault.IsRequest(err) {
			t.Errorf("%s is taken, error %v", text, err)
		}
	}
}

// Every option is explained in cohort.h.
func TestHeaderListsTheOptions(t *testing.T) {
	header, err := os.ReadFile("../cohort.h")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []reflect.Type{reflect.TypeFor[Options](), reflect.TypeFor[Ledger]()} {
		for i := range of.NumField() {
			if name := of.Field(i).Tag.Get("json"); !strings.Contains(string(header), name) {
				t.Errorf("cohort.h does not mention %s", name)
			}
		}
	}
	if !strings.Contains(string(header), `#define COHORT_VERSION "`+engine.Version+`"`) {
		t.Errorf("cohort.h is of another version than %s", engine.Version)
	}
}

// Holders of rows are clients where the method has such, of columns parties.
func TestHolders(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(1))
	of := func() *Data {
		return &Data{Parts: []dataset.Borrowed{
			&dataset.Matrix[float64]{Data: []float64{0, 0, 10, 10, 0, 1, 10, 11}, N: 4, D: 2},
			&dataset.Matrix[float32]{Data: []float32{0, 0, 10, 10, 0, 1, 10, 11}, N: 4, D: 2}}}
	}
	for _, c := range []struct {
		text    string
		records int
		columns int
	}{{`{"k": 2}`, 8, 2}, {`{"k": 2, "method": "vertical-plain"}`, 4, 4}, {`{"k": 2, "holders": "columns"}`, 4, 4}} {
		o, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		m, err := o.Fit(context.Background(), of(), standard.Methods(), eng, nil)
		if err != nil || len(m.Labels) != c.records || len(m.Lower) != c.columns {
			t.Errorf("%s: %+v, error %v", c.text, m, err)
		}
	}
	for _, text := range []string{`{"k": 2, "parties": [[0], [1, 2, 3]], "method": "vertical-plain"}`,
		`{"k": 2, "clients": 3}`, `{"k": 2, "ledger": {"path": "x", "key_file": "/no/such"}}`} {
		o, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Fit(context.Background(), of(), standard.Methods(), eng, nil); err == nil {
			t.Errorf("%s is done", text)
		}
	}
}

// Files give what their rows do, prepared or not.
func TestFile(t *testing.T) {
	eng := enginetest.New(t)
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("1,2\n3,4\n90,80\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, fit := &Options{Lower: []float64{0}, Upper: []float64{100}, OneScale: true}, &Options{K: 2}
	p, err := o.Prepare(context.Background(), &Data{File: path}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := fit.FitPrepared(context.Background(), p, standard.Methods(), eng, nil)
	if err != nil || m.Labels[0] != m.Labels[1] || m.Labels[0] == m.Labels[2] ||
		!slices.Equal(m.Upper, []float64{100, 100}) {
		t.Errorf("%+v, error %v", m, err)
	}
	fit.OneScale = true
	if _, err := fit.FitPrepared(context.Background(), p, standard.Methods(), eng, nil); !fault.IsRequest(err) {
		t.Errorf("an option that came too late: %v", err)
	}
}
