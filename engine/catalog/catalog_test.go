package catalog

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// small is a set of 400 records for any method.
func small(t *testing.T, m *method.Method) protocol.Problem {
	t.Helper()
	norm, table := datasettest.Builtin(t, "blobs", dataset.Generator{N: 400, D: 4, K: 3, Seed: 1})
	seed := uint64(3)
	d := protocol.Problem{Clients: norm.Table(), Bounds: norm.Bounds, Clamped: norm.Clamped, Labels: table.Labels,
		K: 3, Seed: &seed}
	if m.Private {
		d.Budget = privacy.Budget{Epsilon: 2, Delta: -1}
	}
	if m.Holds == method.Columns {
		d.Columns = [][]int{{0, 1}, {2, 3}}
	}
	return d
}

// run gives the result of a method less its timings, as JSON.
func run(t *testing.T, eng *engine.Engine, m *method.Method, set method.Settings) string {
	t.Helper()
	job, err := Methods().Job(m.Name, small(t, m), set)
	if err != nil {
		t.Fatalf("%s with %v: %v", m.Name, set, err)
	}
	res, err := eng.Run(context.Background(), job)
	if err != nil {
		t.Fatalf("%s with %v: %v", m.Name, set, err)
	}
	return enginetest.JSON(t, res)
}

// An option that is given at the default that the catalogue states changes nothing.
func TestDefaultsAreWhatTheCatalogueSays(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(2))
	for _, m := range Methods() {
		if m.Name == "ckks" { // seconds each
			continue
		}
		set, plain := make(method.Settings), run(t, eng, &m, nil)
		for _, o := range m.Options() {
			if o.Set(o.Default) == nil {
				set[o.Name] = o.Default
			}
		}
		if got := run(t, eng, &m, set); got != plain {
			t.Errorf("%s: %v is not the default:\n%s\n%s", m.Name, set, got, plain)
		}
	}
}

// What is said of whom a private method is private against agrees with whom its plan shows releases to, and methods
// that have a proof are methods.
func TestAgainstWhoSees(t *testing.T) {
	methods := Methods()
	for _, m := range methods {
		job, _ := m.Make(small(t, &m))
		plan, err := job.Plan()
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		outline, err := plan.Outline()
		if err != nil {
			t.Fatal(err)
		}
		public := false
		for _, r := range outline.Releases {
			public = public || slices.Contains(r.Viewers, privacy.Outsider)
		}
		if m.Private && !public != strings.HasPrefix(m.Against, "the server") {
			t.Errorf("%s: outsiders see releases: %v, and it is private against %q", m.Name, public, m.Against)
		}
	}
	for _, n := range []privacy.Neighbours{privacy.AddRemove, privacy.ReplaceOne} {
		for _, name := range privacy.Provers(n) {
			if _, err := methods.Find(name); err != nil {
				t.Errorf("%s has a proof for %s and cannot be chosen: %v", name, n, err)
			}
		}
	}
}

func TestCatalogueIsWhole(t *testing.T) {
	methods := Methods()
	seen := map[string]bool{}
	for _, m := range methods {
		if seen[m.Name] || m.Name == "" || m.About == "" || m.Holds == "" || m.Against == "" || m.When == "" || m.Cost == "" {
			t.Errorf("%q is there twice, or something is not said of it", m.Name)
		}
		seen[m.Name] = true
		job, options := m.Make(small(t, &m))
		plan, err := job.Plan()
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		if name := plan.Info().Method; name != m.Name {
			t.Errorf("%s makes a job of %s", m.Name, name)
		}
		if m.Private != (len(m.Calibrations()) > 0) {
			t.Errorf("%s is private: %v, and the table of calibrations has %v", m.Name, m.Private, m.Calibrations())
		}
		named := map[string]bool{}
		for _, o := range options {
			if named[o.Name] || o.Name == "" || o.Default == "" || o.About == "" {
				t.Errorf("%s: option %q is there twice, or something is not said of it", m.Name, o.Name)
			}
			named[o.Name] = true
			for _, v := range o.Values() {
				if err := o.Set(v); err != nil && !fault.IsRequest(err) {
					t.Errorf("%s: %s does not take its own value %s: %v", m.Name, o.Name, v, err)
				}
			}
			if o.Type() != "text" || o.Values() != nil {
				if err := o.Set("no such value"); err == nil {
					t.Errorf("%s: %s takes nonsense", m.Name, o.Name)
				}
			}
		}
	}
}

// A request that a method does not take is refused with the name of what it does not take, without data.
func TestRefusals(t *testing.T) {
	paid := protocol.Problem{Budget: privacy.Budget{Epsilon: 1, Delta: -1}}
	for _, c := range []struct {
		method string
		data   protocol.Problem
		set    method.Settings
		want   string
	}{
		{"nosuch", paid, nil, "fastlloyd"},
		{"lloyd", paid, nil, "epsilon"},
		{"hybrid", protocol.Problem{}, nil, "epsilon"},
		{"hybrid", paid, method.Settings{"radius": "1"},
			"radius: hybrid does not take it: leave it out, or choose clloyd, csulloyd, fastlloyd"},
		{"hybrid", paid, method.Settings{"branch": "bush"}, "auto, tree, grid, projected, high-d"},
		{"lsf", paid, method.Settings{"levels": "65"}, "levels"},
		{"fastlloyd", paid, method.Settings{"eta-min-alpha": "NaN"}, "eta-min-alpha"},
		{"fastlloyd", paid, method.Settings{"colluders": "0"}, "1"},
		{"lsf", protocol.Problem{Budget: paid.Budget, Start: make([]float64, 2)}, nil, "start: lsf does not take it"},
		{"balcan-edler", paid, method.Settings{"calibration": "proven"}, "calibration"},
		{"balcan-edler", paid, method.Settings{"neighbours": "replace-one"}, "no proof"},
	} {
		_, err := Methods().Job(c.method, c.data, c.set)
		if err == nil || !fault.IsRequest(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %v: %v lacks %q", c.method, c.set, err, c.want)
		}
	}
	if !slices.Equal(Methods().Takers(func(m *method.Method) bool { return m.Takes("components") }), []string{"pca"}) {
		t.Error("pca alone has components")
	}
}
