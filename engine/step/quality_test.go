package step

import (
	"context"
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// measure is the quality that so many parties find together.
func measure(t *testing.T, parts []dataset.Part, ring secagg.Ring, workers int, centroids []float64,
	labels []int32) engine.Quality {
	t.Helper()
	k, d := len(centroids)/parts[0].Points.D, parts[0].Points.D
	plan := &protocol.Plan{K: k, D: d, Parties: len(parts), Coordinated: len(parts) > 1,
		Capacity: secagg.Capacity{Ring: ring}}
	q, err := PlanQuality(plan, 8, labels)
	if err != nil {
		t.Fatal(err)
	}
	var programs []protocol.Program
	for i, part := range parts {
		programs = append(programs, func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			out, err := q.Measure(ctx, p, 0, Records{Part: part, Labels: labels, Clamped: 4 * i}, centroids)
			return &protocol.Outcome{Centroids: centroids, Quality: out}, err
		})
	}
	var server protocol.Program
	if plan.Coordinated {
		server = protocol.Serve
	}
	pool := engine.NewPool(workers)
	defer pool.Close()
	s := protocol.Start(engine.NewRuntime(pool), plan, programs, server, protocol.Options{})
	res, err := s.Finish(context.Background(), dataset.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	return res.Quality
}

// The loss is that of plain sums over the records, the same bits however records are
// split, on any number of workers and in either ring; an empty cluster is counted, and
// labels score as when all records are in one place.
func TestQualityIsThatOfAllRecords(t *testing.T) {
	norm, table := datasettest.Builtin(t, "blobs", dataset.Generator{N: 20000, D: 3, K: 5, Seed: 9})
	centroids := make([]float64, 6*3)
	for j := range 5 {
		for h, v := range norm.Points.Point(j*31, make([]float32, 3)) {
			centroids[j*3+h] = float64(v)
		}
	}
	copy(centroids[15:], []float64{5, 5, 5}) // far away: attracts nothing
	pool := engine.NewPool(1)
	defer pool.Close()
	one := norm.Table()
	whole, err := engine.Measure(context.Background(), pool, engine.Evaluation{Part: one[0], Labels: table.Labels},
		centroids, 6)
	if err != nil {
		t.Fatal(err)
	}
	first, want := 0.0, *whole.WCSS
	for _, c := range []struct{ parties, workers int }{{1, 1}, {1, 3}, {2, 2}, {40, 2}} {
		for _, ring := range []secagg.Ring{secagg.Ring64, secagg.Ring32} {
			parts, err := norm.Split(c.parties, nil, 7)
			if err != nil {
				t.Fatal(err)
			}
			q := measure(t, parts, ring, c.workers, centroids, table.Labels)
			if first == 0 {
				first = *q.WCSS
			}
			if *q.WCSS != first || math.Abs(*q.WCSS-want) > 1e-12*want ||
				math.Abs(*q.NICV-want/20000) > 1e-12*want/20000 {
				t.Errorf("%d parties, %v: WCSS %v and NICV %v, want %v, the first had %v", c.parties, ring, *q.WCSS,
					*q.NICV, want, first)
			}
			if *q.EmptyClusters != 1 || *q.Clamped != 2*c.parties*(c.parties-1) {
				t.Errorf("%d parties: %d empty clusters, %d clamped", c.parties, *q.EmptyClusters, *q.Clamped)
			}
			for name, v := range map[string][2]*float64{"ARI": {q.ARI, whole.ARI}, "NMI": {q.NMI, whole.NMI},
				"FMI":       {q.FMI, whole.FMI},
				"V-measure": {q.VMeasure, whole.VMeasure}, "accuracy": {q.Accuracy, whole.Accuracy}} {
				if math.Abs(*v[0]-*v[1]) > 1e-12 {
					t.Errorf("%d parties: %s is %v, want %v", c.parties, name, *v[0], *v[1])
				}
			}
		}
	}
}

// Identifiers in the place of labels are refused.
func TestQualityRefusesIdentifiers(t *testing.T) {
	labels := make([]int32, 1<<17)
	for i := range labels {
		labels[i] = int32(i)
	}
	if _, err := PlanQuality(&protocol.Plan{K: 2, D: 1}, 1, labels); !fault.IsRequest(err) {
		t.Errorf("error %v", err)
	}
}

// Records outside the box are refused, and NaN.
func TestCheckRecords(t *testing.T) {
	pool := engine.NewPool(2)
	defer pool.Close()
	norm, err := dataset.Normalise(&dataset.Table{N: 3, D: 2, Rows: []float64{0, 1, 2, 3, 4, 5}},
		dataset.Bounds{Lo: []float64{0, 0}, Hi: []float64{5, 5}}, 16)
	if err != nil {
		t.Fatal(err)
	}
	part := dataset.Part{Points: norm.Points, FractionBits: 16}
	if err := CheckRecords(context.Background(), pool, part, "client 1"); err != nil {
		t.Error(err)
	}
	for _, bad := range []float32{1.5, -1.001, float32(math.NaN()), float32(math.Inf(-1))} {
		norm.Points.Set(2, []float32{0, bad})
		if err := CheckRecords(context.Background(), pool, part, "client 1"); !fault.IsRequest(err) {
			t.Errorf("%v: error %v", bad, err)
		}
	}
	shape := dataset.Part{Points: dataset.Shape(3, norm.Bounds, 16).Points, FractionBits: 16}
	if err := CheckRecords(context.Background(), pool, shape, "client 1"); !fault.IsRequest(err) {
		t.Errorf("no records: error %v", err)
	}
}
