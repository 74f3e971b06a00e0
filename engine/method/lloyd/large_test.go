package lloyd

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// The last round of a start on batches goes over all records: on far blobs, whose
// clusters no batch changes, centroids are the exact means, which three batches of a
// hundredth of the records each do not give.
func TestBatchesEndWithAllRecords(t *testing.T) {
	seed := uint64(3)
	for _, m := range []int{1, 3} {
		parts := blobs(t, 6000, 3, 4, m, 8)
		for _, weights := range []bool{false, true} {
			job := Job{Method: Lloyd, Problem: protocol.Problem{K: 4, Clients: slices.Clone(parts), Seed: &seed, Iterations: 3,
				NoQuality: true}, Batch: 60}
			weight := func(int) float64 { return 1 }
			if weights {
				weight = func(i int) float64 { return float64(1 + i%2) }
				for q := range job.Clients {
					job.Clients[q].Weights = make([]float64, parts[q].Points.N)
					for i := range job.Clients[q].Weights {
						job.Clients[q].Weights[i] = weight(i)
					}
				}
			}
			res := run(t, 2, job)
			if res.Iterations > 4 {
				t.Errorf("%d rounds, want at most 3 on batches and one over all records", res.Iterations)
			}
			sums, counts := make([]float64, 4*3), make([]float64, 4)
			for _, p := range parts {
				for i := range p.Points.N {
					x := p.Points.Point(i, nil)
					j, _ := nearestTo(res.Centroids, x)
					counts[j] += weight(i)
					for h, v := range x {
						sums[j*3+h] += weight(i) * float64(v)
					}
				}
			}
			for j, c := range res.Centroids {
				for h, x := range c {
					if mean := sums[j*3+h] / counts[j]; math.Abs(mean-x) > 1e-9 {
						t.Errorf("%d clients, weights %t: centroid %d is %g in column %d, its mean %g", m, weights, j, x, h, mean)
					}
				}
			}
		}
	}
}

// Batches come near to plain k-means where records lie densely, in rounds that look at a
// twentieth of them each.
func TestBatchesComeNear(t *testing.T) {
	seed := uint64(5)
	parts := blobs(t, 20000, 4, 1, 1, 2)
	whole := run(t, 2, Job{Method: Lloyd, Problem: protocol.Problem{K: 20, Clients: parts, Seed: &seed}, NInit: 1})
	some := run(t, 2, Job{Method: Lloyd, Problem: protocol.Problem{K: 20, Clients: parts, Seed: &seed}, Batch: 1000})
	if some.Iterations > 41 || *some.NICV > 1.05*(*whole.NICV) {
		t.Errorf("%d rounds leave %g; plain k-means leaves %g", some.Iterations, *some.NICV, *whole.NICV)
	}
}

// A pass of batches has each record at most once, and all but fewer than a batch.
func TestBatchesDrawWithoutRepetition(t *testing.T) {
	seed := uint64(1)
	b := &batches{size: 13, stream: privacy.NewStreams(&seed).Stream(0, 0, "batches"), order: make([]int32, 100)}
	for i := range b.order {
		b.order[i] = int32(i)
	}
	first := make([]int32, 0, 91)
	for pass := range 50 {
		seen := make([]bool, 100)
		for range 7 {
			for _, i := range b.draw() {
				if seen[i] {
					t.Fatalf("pass %d has record %d twice", pass, i)
				}
				if seen[i] = true; pass == 0 {
					first = append(first, i)
				}
			}
		}
	}
	if slices.IsSorted(first) {
		t.Error("batches are not drawn at random")
	}
}

// With one record for each cluster to train on, centroids are records of all clients,
// each as many as its share.
func TestMaxPointsTrainsOnFew(t *testing.T) {
	for seed := range uint64(5) {
		parts := blobs(t, 3000, 3, 5, 3, 8)
		parts[0].Points = kernels.NewPanels(500, 3)
		for i := range 500 {
			parts[0].Points.Set(i, []float32{float32(i) / (1 << 16), 0.5, 0.5})
		}
		all := 500 + parts[1].Points.N + parts[2].Points.N
		res := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 25, Clients: parts, Seed: &seed}, MaxPoints: 1})
		from := make([]int, 3)
		for _, c := range res.Centroids {
			for q, p := range parts {
				for i := range p.Points.N {
					if x := p.Points.Point(i, nil); float64(x[0]) == c[0] && float64(x[1]) == c[1] && float64(x[2]) == c[2] {
						from[q]++
						break
					}
				}
			}
		}
		for q, p := range parts {
			if share := 25 * p.Points.N / all; from[q] < share || from[q] > share+1 {
				t.Errorf("seed %d: %v centroids are records of each client, of %d records of client %d", seed, from,
					p.Points.N, q+1)
			}
		}
	}
}

// Spherical k-means ends at the directions of the sums of the clusters' records, where
// no record is nearer to another; Euclidean k-means of the same records does not.
func TestCosineEndsAtDirections(t *testing.T) {
	const n, d, k = 3000, 20, 6
	seed := uint64(4)
	draw := privacy.NewStreams(&seed).Stream(0, 0, "directions")
	centres := make([]float64, k*d)
	for i := range centres {
		centres[i] = 2*draw.Float64() - 1
	}
	norm := &dataset.Normalised{Points: kernels.NewPanels(n, d), FractionBits: 22}
	row, grid := make([]float64, d), make([]float32, d)
	for i := range n {
		for h := range row {
			row[h] = centres[i%k*d+h] + 1.2*(2*draw.Float64()-1)
		}
		dataset.ToUnit(row)
		for h, x := range row {
			grid[h] = dataset.Truncate(x, 22)
		}
		norm.Points.Set(i, grid)
	}
	parts, err := norm.Split(3, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	off := map[Metric]float64{}
	for _, metric := range []Metric{Euclidean, Cosine} {
		res := run(t, 2, Job{Method: Lloyd, Problem: protocol.Problem{K: k, Clients: parts, Seed: &seed}, Metric: metric})
		sums := make([]float64, k*d)
		eachRecord(parts, func(x []float32) {
			j, _ := nearestTo(res.Centroids, x)
			for h, v := range x {
				sums[j*d+h] += float64(v)
			}
		})
		for j, c := range res.Centroids {
			mean := sums[j*d : (j+1)*d]
			dataset.ToUnit(mean)
			for h, x := range c {
				off[metric] = max(off[metric], math.Abs(mean[h]-x))
			}
		}
		if want := string(metric); metric == Cosine && res.Metric != want {
			t.Errorf("the result's metric is %q", res.Metric)
		}
	}
	if off[Cosine] > 1e-3 || off[Euclidean] < 0.01 {
		t.Errorf("centroids are off the directions of their records by %v", off)
	}
}

// First centroids of any length are scaled, those of none refused.
func TestCosineScalesTheStart(t *testing.T) {
	parts := blobs(t, 500, 2, 3, 1, 3)
	problem := protocol.Problem{K: 2, Clients: parts, Start: []float64{0.1, 0.1, -0.5, 0.2}, Iterations: 1,
		NoQuality: true}
	short := run(t, 1, Job{Method: Lloyd, Problem: problem, Metric: Cosine})
	problem.Start = []float64{0.8, 0.8, -0.25, 0.1}
	if long := run(t, 1, Job{Method: Lloyd, Problem: problem, Metric: Cosine}); !slices.EqualFunc(short.Centroids,
		long.Centroids, slices.Equal[[]float64]) {
		t.Errorf("starts in the same directions end at %v and %v", short.Centroids, long.Centroids)
	}
	problem.Start = []float64{0, 0, 1, 0}
	if _, err := (&Job{Method: Lloyd, Problem: problem, Metric: Cosine}).Plan(); !fault.IsRequest(err) {
		t.Errorf("a start of length 0: %v", err)
	}
}

// k-means|| finds all far blobs, as greedy k-means++ does, for one client or several,
// and for records that are fewer than its candidates.
func TestOversampledStarts(t *testing.T) {
	for seed := range uint64(6) {
		for _, c := range []struct{ n, m int }{{2500, 1}, {2500, 3}, {60, 2}} {
			parts := blobs(t, c.n, 2, 25, c.m, 4)
			res := run(t, 2, Job{Method: Lloyd, Problem: protocol.Problem{K: 25, Clients: parts, Seed: &seed},
				Init: Oversampled, NInit: 5})
			if *res.NICV > 2*2*0.05*0.05 {
				t.Errorf("seed %d, %+v: %g is left", seed, c, *res.NICV)
			}
		}
	}
}

// What only plain k-means has is refused elsewhere, by name.
func TestLargeRefused(t *testing.T) {
	parts := blobs(t, 300, 2, 3, 1, 3)
	for name, change := range map[string]func(*Job){
		"cosine of private sums":     func(j *Job) { j.Method, j.Metric = SuLloyd, Cosine },
		"batches under sizes":        func(j *Job) { j.Method, j.Batch = CLloyd, 20 },
		"few records from no record": func(j *Job) { j.Init, j.MaxPoints = step.Sphere, 3 },
		"cosine of means":            func(j *Job) { j.Release, j.Metric = Centroid, Cosine },
		"a negative batch":           func(j *Job) { j.Batch = -1 },
		"an unknown metric":          func(j *Job) { j.Metric = "manhattan" },
	} {
		job := &Job{Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts}}
		if change(job); job.Method.Private() {
			job.Budget = privacy.Budget{Epsilon: 1}
		}
		if _, err := job.Plan(); !fault.IsRequest(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The number of workers decides nothing.
func TestLargeOnAnyWorkers(t *testing.T) {
	seed := uint64(9)
	parts := blobs(t, 9000, 40, 30, 2, 7)
	for _, job := range []Job{{Init: Oversampled}, {Batch: 700}, {MaxPoints: 50, Init: Oversampled, Batch: 300}} {
		job.Method, job.K, job.Clients, job.Seed, job.Iterations = Lloyd, 150, parts, &seed, 4
		var want *engine.Result
		for _, workers := range []int{1, 2, 5} {
			eng, err := engine.New(engine.WithWorkers(workers))
			if err != nil {
				t.Fatal(err)
			}
			res, err := eng.Run(context.Background(), &job)
			eng.Close()
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = res
			} else if !slices.EqualFunc(res.Centroids, want.Centroids, slices.Equal[[]float64]) {
				t.Errorf("init %s, batch %d: %d workers find other centroids", job.Init, job.Batch, workers)
			}
		}
	}
}
