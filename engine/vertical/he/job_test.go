package he

import (
	"context"
	"math"
	"os"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
)

// sample makes n records around k centres.
func sample(t testing.TB, name string, n, d, k int, seed uint64) *dataset.Normalised {
	t.Helper()
	table, err := dataset.Generate(context.Background(), name, dataset.Generator{N: n, D: d, K: k, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return normalise(t, table)
}

func normalise(t testing.TB, table *dataset.Table) *dataset.Normalised {
	t.Helper()
	b, err := dataset.BoundsFromData(table)
	if err != nil {
		t.Fatal(err)
	}
	norm, err := dataset.Normalise(table, b, 16)
	if err != nil {
		t.Fatal(err)
	}
	return norm
}

func openData(t testing.TB, file string) *dataset.Normalised {
	t.Helper()
	path := "../../../../shared/data/" + file
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not here: %v", path, err)
	}
	table, err := dataset.Open(context.Background(), path, dataset.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return normalise(t, table)
}

func seed(x uint64) *uint64 { return &x }

// lloyd is plaintext k-means from the same start; empty clusters stay.
func lloyd(data *dataset.Normalised, start [][]float64, rounds int) [][]float64 {
	p := data.Points
	cur := start
	row := make([]float32, p.D)
	for range rounds {
		counts := make([]float64, len(cur))
		sums := make([][]float64, len(cur))
		for j := range sums {
			sums[j] = make([]float64, p.D)
		}
		for i := range p.N {
			row = p.Point(i, row)
			best, at := math.Inf(1), 0
			for j, c := range cur {
				var s float64
				for h := range row {
					s += (float64(row[h]) - c[h]) * (float64(row[h]) - c[h])
				}
				if s < best {
					best, at = s, j
				}
			}
			counts[at]++
			for h := range row {
				sums[at][h] += float64(row[h])
			}
		}
		next := make([][]float64, len(cur))
		for j := range next {
			next[j] = append([]float64(nil), cur[j]...)
			if counts[j] > 0 {
				for h := range next[j] {
					next[j][h] = sums[j][h] / counts[j]
				}
			}
		}
		cur = next
	}
	return cur
}

func loss(data *dataset.Normalised, c [][]float64) float64 {
	p := data.Points
	row := make([]float32, p.D)
	var total float64
	for i := range p.N {
		row = p.Point(i, row)
		best := math.Inf(1)
		for _, c := range c {
			var s float64
			for h := range row {
				s += (float64(row[h]) - c[h]) * (float64(row[h]) - c[h])
			}
			best = min(best, s)
		}
		total += best
	}
	return total / float64(p.N)
}

func run(t testing.TB, j *Job, workers int) *engine.Result {
	t.Helper()
	e, err := engine.New(engine.WithWorkers(workers))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	res, err := e.Run(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// Every mode computes the same clustering. Rounds start far enough from
// decision boundaries that soft and hard assignment end in the same optimum.
func TestModesFollowLloyd(t *testing.T) {
	data := sample(t, "timesynth", 400, 3, 3, 3)
	start := [][]float64{row(data, 0), row(data, 150), row(data, 399)}
	want := loss(data, lloyd(data, start, 2))
	for _, c := range []struct {
		name string
		job  Job
	}{
		{"two-party", Job{Columns: [][]int{{0, 2}, {1}}}},
		{"server-aided", Job{Columns: [][]int{{0}, {1}, {2}}}},
		{"server-aided without own columns", Job{Columns: [][]int{{}, {1}, {0, 2}}, Mode: ServerAided}},
		{"multiparty", Job{Columns: [][]int{{0}, {1}, {2}}, Mode: Multiparty}},
		{"threshold", Job{Columns: [][]int{{0}, {1}, {2}, {}}, Mode: Multiparty, Threshold: 2, Online: []int{1, 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := c.job
			var last Round
			j.Data, j.K, j.Rounds, j.Start, j.Seed, j.OnRound = data, 3, 2, start, seed(1), func(r Round) { last = r }
			begin := time.Now()
			res := run(t, &j, 2)
			got := loss(data, last.Centroids)
			t.Logf("%v, %d bytes, loss %g, plaintext %g, %+v", time.Since(begin), res.Details["bytes_total"], got, want, last)
			if got > 1.03*want {
				t.Errorf("loss %g, plaintext Lloyd %g", got, want)
			}
		})
	}
}

func row(data *dataset.Normalised, i int) []float64 {
	var out []float64
	for _, x := range data.Points.Point(i, make([]float32, data.Points.D)) {
		out = append(out, float64(x))
	}
	return out
}
