package study

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/vary"
)

// writeTables writes a file for each of two parties: the columns that it holds, of rows in
// an order of its own, with ids of which the other lacks some.
func writeTables(t *testing.T, dir string, norm *dataset.Normalised) (files []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for p := range 2 {
		var b strings.Builder
		fmt.Fprintf(&b, "patient,c%d,c%d\n", 2*p, 2*p+1)
		row := make([]float32, norm.Points.D)
		for _, i := range rng.Perm(norm.Points.N + 20) {
			id := fmt.Sprintf("a patient's long number %d", i)
			if i >= norm.Points.N {
				id = fmt.Sprintf("only at party %d: %d", p, i)
			}
			x := make([]float64, len(row))
			for h, v := range norm.Points.Point(i%norm.Points.N, row) {
				x[h] = float64(v)
			}
			x = norm.Bounds.Denormalise(nil, x)
			fmt.Fprintf(&b, "%s,%g,%g\n", id, x[2*p], x[2*p+1])
		}
		files = append(files, filepath.Join(dir, fmt.Sprintf("party%d.csv", p)))
		if err := os.WriteFile(files[p], []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Parties that match their records by id get the bits of one process that joins their
// files: each has them in another order, and some that the other lacks.
func TestMatching(t *testing.T) {
	for _, c := range []struct {
		name string
		set  method.Settings
	}{{"vertical-plain", nil}, {"sketch", method.Settings{"sketches": "256"}}, {"ckks",
		method.Settings{"iterations": "1"}}} {
		if c.name == "ckks" && testing.Short() {
			continue // a luxury: seconds of encryption
		}
		f := newFixture(t, c.name, 2, 200, c.set)
		f.study.IDColumn = "patient"
		if err := f.study.Complete(); err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		files := writeTables(t, t.TempDir(), f.norm)
		n := newNetwork(t, f)
		n.change = func(j *Join) {
			j.Load = func(ctx context.Context, s *Study, party int) (dataset.Part, []string, error) {
				r, err := s.Load(ctx, party, files[party], dataset.ReadOptions{}, nil)
				if err != nil {
					return dataset.Part{}, nil, err
				}
				return r.Part, r.IDs, nil
			}
		}
		results, errs := n.run(t)
		if err := errors.Join(errs...); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var tables []*dataset.Table
		for _, file := range files {
			table, err := dataset.OpenIDs(ctx, file, "patient", dataset.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			tables = append(tables, table)
		}
		secret := sketch.NewSecret(privacy.StreamsOf(protocol.SimulatedSecrets(*f.study.Seed, 0).Group))
		joined, _, report, err := sketch.JoinTables(secret, tables, true)
		if err != nil || report.Matched != 200 {
			t.Fatalf("%v: %v", &report, err)
		}
		if f.norm, err = dataset.Normalise(joined, f.norm.Bounds, f.norm.FractionBits); err != nil {
			t.Fatal(err)
		}
		f.ids = joined.IDs
		sameCentroids(t, c.name+" by id", f.alone(t), results)
	}
}

// Digests and rows of anybody are what was sent, or refused; no row is one that is not there, or comes twice.
func FuzzMatching(f *testing.F) {
	const n = 9
	f.Add(encodeRows([]int{0, 8, 3}))
	f.Add(encodeRows([]int{0, 9}))
	f.Add(encodeRows([]int{4, 4}))
	f.Add(encodeRows([]int{8, 7, 6, 5, 4, 3, 2, 1, 0}))
	f.Add(encodeRows([]int{1 << 31, 1<<32 - 1}))
	f.Add(encodeRows([]int{0, 8, 3})[:11])
	f.Add(make([]byte, 2*digestBytes))
	f.Add(make([]byte, 2*digestBytes-1))
	f.Add(encodeRows([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}))
	f.Fuzz(func(t *testing.T, b []byte) {
		vary.Bytes(b, func(b []byte) {
			if rows, err := rowsOf(b, n); err == nil {
				var seen [n]bool
				for _, r := range rows {
					if seen[r] {
						t.Fatalf("row %d comes twice", r)
					}
					seen[r] = true
				}
				if string(encodeRows(rows)) != string(b) {
					t.Fatalf("%x is read as %v", b, rows)
				}
			}
			if digests, err := digestsOf(b); err == nil {
				var again []byte
				for _, d := range digests {
					again = append(again, d[:]...)
				}
				if string(again) != string(b) {
					t.Fatalf("%x is read as %x", b, again)
				}
			}
		})
	})
}
