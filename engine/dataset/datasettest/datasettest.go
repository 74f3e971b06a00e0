// Package datasettest has records for tests.
package datasettest

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/kernels"
)

// Bits is the grid of the records.
const Bits = 16

// GridPanels packs random records on the grid, some of them at corners.
func GridPanels(rng *rand.Rand, n, d int) *kernels.Panels {
	rows := make([]float32, n*d)
	for i := range rows {
		rows[i] = float32(rng.IntN(2<<Bits+1)-1<<Bits) / (1 << Bits)
	}
	for i := 0; i < n; i += 7 {
		for h := range d {
			rows[i*d+h] = float32(2*rng.IntN(2) - 1)
		}
	}
	p := kernels.NewPanels(n, d)
	kernels.Pack(p, rows)
	return p
}

// UnitBounds are [-1, 1] for each of d columns.
func UnitBounds(d int) dataset.Bounds { return dataset.SameBounds(d, -1, 1) }

// Part is a client that holds the records of p.
func Part(p *kernels.Panels) dataset.Part {
	rows := make([]int, p.N)
	for i := range rows {
		rows[i] = i
	}
	return dataset.Part{Points: p, Rows: rows, FractionBits: Bits}
}

// Builtin returns a generated set on the grid.
func Builtin(t testing.TB, name string, g dataset.Generator) (*dataset.Normalised, *dataset.Table) {
	t.Helper()
	table, err := dataset.Generate(context.Background(), name, g)
	if err != nil {
		t.Fatal(err)
	}
	return Normalised(t, table), table
}

// SharedSet reads a set of the data folder, or skips.
func SharedSet(t testing.TB, name string) (*dataset.Normalised, *dataset.Table) {
	t.Helper()
	root, err := filepath.Abs(".")
	for ; err == nil && root != filepath.Dir(root); root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
	}
	path := filepath.Join(root, "../shared/data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no data set %s: the test needs ../shared/data", name)
	}
	table, err := dataset.Open(context.Background(), path, dataset.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return Normalised(t, table), table
}

// Normalised puts a table on the grid, with its own bounds.
func Normalised(t testing.TB, table *dataset.Table) *dataset.Normalised {
	t.Helper()
	b, err := dataset.BoundsFromData(table)
	if err != nil {
		t.Fatal(err)
	}
	norm, err := dataset.Normalise(table, b, Bits)
	if err != nil {
		t.Fatal(err)
	}
	return norm
}
