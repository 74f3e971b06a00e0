package engine

import (
	"context"
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/internal/elementary"
)

func TestMeasureAgainstBruteForce(t *testing.T) {
	norm, table := datasettest.Builtin(t, "blobs", dataset.Generator{N: 20000, D: 3, K: 5, Seed: 9})
	centroids := make([]float64, 6*3)
	for j := range 5 {
		for h, v := range norm.Points.Point(j*31, make([]float32, 3)) {
			centroids[j*3+h] = float64(v)
		}
	}
	copy(centroids[15:], []float64{5, 5, 5}) // far away: attracts nothing
	want := 0.0
	for i := range table.N {
		best := math.Inf(1)
		for j := range 6 {
			best = min(best, elementary.SquaredDistance(norm.Points.Point(i, make([]float32, 3)), centroids[j*3:j*3+3]))
		}
		want += best
	}
	var first Quality
	part := dataset.Part{Points: norm.Points, FractionBits: 16}
	for _, workers := range []int{1, 2, 3} {
		pool := NewPool(workers)
		q, err := Measure(context.Background(), pool, Evaluation{Part: part, Clamped: 4}, centroids, 6)
		pool.Close()
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(*q.WCSS-want) > 1e-9*want || math.Abs(*q.NICV-want/20000) > 1e-9*want || *q.EmptyClusters != 1 ||
			*q.Clamped != 4 {
			t.Errorf("workers %d: WCSS %v (want %v), NICV %v, empty %d", workers, *q.WCSS, want, *q.NICV, *q.EmptyClusters)
		}
		if first.WCSS == nil {
			first = q
		} else if *first.WCSS != *q.WCSS {
			t.Errorf("%d workers give another WCSS than one: %v, %v", workers, *q.WCSS, *first.WCSS)
		}
	}
	if _, err := Measure(context.Background(), NewPool(1), Evaluation{Part: part}, centroids, 5); err == nil {
		t.Error("a wrong number of centroids is accepted")
	}
}

func TestMeasureScoresLabels(t *testing.T) {
	norm, table := datasettest.Builtin(t, "blobs", dataset.Generator{N: 3000, D: 2, K: 3, Separation: 20, Seed: 4})
	parts, err := norm.Split(1, nil, 1) // in another order
	if err != nil {
		t.Fatal(err)
	}
	var centroids []float64
	for _, i := range []int{2500, 500, 1500} { // one record of each class, in another order
		for _, v := range norm.Points.Point(i, make([]float32, 2)) {
			centroids = append(centroids, float64(v))
		}
	}
	pool := NewPool(2)
	defer pool.Close()
	q, err := Measure(context.Background(), pool, Evaluation{Part: parts[0], Labels: table.Labels}, centroids, 3)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*float64{"ARI": q.ARI, "NMI": q.NMI, "FMI": q.FMI, "V-measure": q.VMeasure,
		"accuracy": q.Accuracy} {
		if v == nil || *v < 0.999 || *v > 1+1e-12 {
			t.Errorf("%s is %v on clusters that are far apart", name, v)
		}
	}
}
