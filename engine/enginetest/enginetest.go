// Package enginetest runs jobs in tests.
package enginetest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/cohort-engine/cohort/engine"
)

// New is an engine that ends with the test.
func New(t testing.TB, options ...engine.Option) *engine.Engine {
	t.Helper()
	e, err := engine.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// Run is what a job gives, which must not fail.
func Run(t testing.TB, e *engine.Engine, job engine.Job) *engine.Result {
	t.Helper()
	res, err := e.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// RunOn is Run on an engine of so many workers, which ends with the run.
func RunOn(t testing.TB, workers int, job engine.Job) *engine.Result {
	t.Helper()
	e := New(t, engine.WithWorkers(workers))
	defer e.Close()
	return Run(t, e, job)
}

// JSON is a result without its timings.
func JSON(t testing.TB, res *engine.Result) string {
	t.Helper()
	c := *res
	c.Timings = nil
	b, err := json.Marshal(&c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Golden compares results with those of a file of testdata, as JSON, or writes them to it.
func Golden(t *testing.T, name string, results any, update bool) {
	t.Helper()
	got, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("results differ from %s; run with -update if they should", path)
	}
}
