package flow_test

import (
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/flow/instance"
)

// read returns the rows of a data set without header, or skips the test.
func read(tb testing.TB, name string) (rows []float64, n, d int) {
	tb.Helper()
	dir := os.Getenv("COHORT_DATA")
	if dir == "" {
		dir = "../../shared/data"
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		tb.Skipf("data set %s is missing: %v", name, err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	for _, record := range records {
		for _, cell := range record {
			x, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				tb.Fatal(err)
			}
			rows = append(rows, x)
		}
	}
	return rows, len(records), len(records[0])
}

// sets are the measured data sets.
func sets(tb testing.TB) []*instance.Set {
	half := func(name, file string, k int) *instance.Set {
		rows, n, d := read(tb, file)
		return instance.Half(name, rows, n, d, k)
	}
	return []*instance.Set{
		half("s1", "s1.csv", 15),
		half("birch2", "birch2_25k.csv", 100),
		half("adult", "adult.csv", 3),
		instance.Blobs("blobs50k", 50000),
		instance.Blobs("blobs5k", 5000),
	}
}

func BenchmarkSolve(b *testing.B) {
	ctx := context.Background()
	for _, set := range sets(b) {
		for _, start := range []struct {
			name  string
			steps int
		}{{"bad", 0}, {"good", 3}} {
			p := set.Problem(set.Centroids(start.steps))
			var res flow.Result
			b.Run("set="+set.Name+"/centroids="+start.name+"/prices=cold", func(b *testing.B) {
				s := flow.NewSolver()
				for b.Loop() {
					s.Forget()
					if err := s.Solve(ctx, nil, p, &res); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(res.Stats.Paths), "paths/op")
				b.ReportMetric(float64(res.Stats.Widenings), "widenings/op")
				b.ReportMetric(float64(res.Stats.Free), "free/op")
			})
			// Warm: the prices of the Lloyd step before, whose means are the centroids.
			before := set.Problem(set.Centroids(start.steps))
			if err := flow.NewSolver().Solve(ctx, nil, before, &res); err != nil {
				b.Fatal(err)
			}
			prices, next := slices.Clone(res.Prices), set.Problem(set.Means(&res))
			b.Run("set="+set.Name+"/centroids="+start.name+"/prices=warm", func(b *testing.B) {
				s := flow.NewSolver()
				for b.Loop() {
					s.StartFrom(prices)
					if err := s.Solve(ctx, nil, next, &res); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(res.Stats.Paths), "paths/op")
				b.ReportMetric(float64(res.Stats.Widenings), "widenings/op")
				b.ReportMetric(float64(res.Stats.Free), "free/op")
			})
		}
	}
}

// TestMeasuredInstances solves the measured instances and checks the certificates,
// and the labels of the smaller ones against the reference.
func TestMeasuredInstances(t *testing.T) {
	ctx := context.Background()
	for _, set := range sets(t) {
		for _, steps := range []int{0, 3} {
			p := set.Problem(set.Centroids(steps))
			var res flow.Result
			if err := flow.NewSolver().Solve(ctx, nil, p, &res); err != nil {
				t.Fatal(err)
			}
			if err := flow.Verify(p, &res); err != nil {
				t.Fatalf("%s, %d steps: %v", set.Name, steps, err)
			}
			if set.N > 20000 || set.K == 100 && steps == 0 {
				continue
			}
			want, err := flow.Reference(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(res.Labels, want.Labels) {
				t.Errorf("%s, %d steps: labels differ from the reference", set.Name, steps)
			}
		}
	}
}

// TestStartingPricesDoNotMatter starts from absurd prices.
func TestStartingPricesDoNotMatter(t *testing.T) {
	set := instance.Mixture("mixture", 1500, 2, 7)
	p := set.Problem(set.Centroids(0))
	var want, got flow.Result
	if err := flow.NewSolver().Solve(context.Background(), nil, p, &want); err != nil {
		t.Fatal(err)
	}
	for _, scale := range []int64{1, 1 << 20, 1 << 32, 1 << 60} {
		prices := make([]int64, set.K)
		for j := range prices {
			prices[j] = int64(j*j%5-2) * scale
		}
		s := flow.NewSolver()
		s.StartFrom(prices)
		if err := s.Solve(context.Background(), nil, p, &got); err != nil {
			t.Fatalf("prices of %d: %v", scale, err)
		}
		if !slices.Equal(got.Labels, want.Labels) {
			t.Errorf("prices of %d change the labels", scale)
		}
		if err := flow.Verify(p, &got); err != nil {
			t.Errorf("prices of %d: %v", scale, err)
		}
	}
}
