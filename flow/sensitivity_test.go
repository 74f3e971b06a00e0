package flow

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cohort-engine/cohort/kernels"
)

// change is what adding one record does to an assignment: per cluster, how many
// records came in and went out, and the change of its size.
type change struct {
	in, out, size []int
}

// compare solves p with and without its last point and compares the clusters as
// multisets of records, which is all that a release can depend on.
func compare(t interface{ Fatal(...any) }, p *Problem) (change, bool) {
	ctx := context.Background()
	n, k := p.Points.N, p.k()
	less := *p
	less.Points = p.Points.Slice(0, n-1)
	if p.Weights != nil {
		p.Weights[n-1] = 1
		less.Weights = p.Weights[:n-1]
	}
	var before, after Result
	if err := new(Solver).Solve(ctx, nil, &less, &before); err != nil {
		if errors.Is(err, ErrInfeasible) {
			return change{}, false
		}
		t.Fatal(err)
	}
	if err := new(Solver).Solve(ctx, nil, p, &after); err != nil {
		if errors.Is(err, ErrInfeasible) {
			return change{}, false
		}
		t.Fatal(err)
	}
	hash := newTieHash(p)
	members := func(p *Problem, r *Result) []map[digest]int {
		m := make([]map[digest]int, k+1)
		for j := range m {
			m[j] = map[digest]int{}
		}
		for i, label := range r.Labels {
			m[label][hash.digest(p, i)] += unitsOf(r, i)
		}
		for _, e := range r.Extra {
			m[e.Cluster][hash.digest(p, int(e.Point))] += int(e.Units)
		}
		return m
	}
	old, now := members(&less, &before), members(p, &after)
	c := change{make([]int, k), make([]int, k), make([]int, k)}
	for j := range k {
		for d, count := range now[j] {
			c.in[j] += max(0, count-old[j][d])
		}
		for d, count := range old[j] {
			c.out[j] += max(0, count-now[j][d])
		}
		c.size[j] = after.Sizes[j] - before.Sizes[j]
	}
	return c, true
}

// unitsOf returns how often point i is in the cluster of its label.
func unitsOf(r *Result, i int) int {
	if len(r.Units) == 0 {
		return 1
	}
	return int(r.Units[i])
}

// TestOneRecordMovesOnePath is the path theorem of T1: adding a record lets each
// cluster gain at most one record and lose at most one, and changes one size, by
// +1; with unassigned points or fillers the sizes change by at most 1 in all; with
// exclusivity E each of these is at most E.
func TestOneRecordMovesOnePath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		if p.Points.N == 0 {
			t.Skip("no point to add")
		}
		c, ok := compare(t, p)
		if !ok {
			t.Skip("one of the two is infeasible")
		}
		e := p.exclusivity()
		total := 0
		for j := range c.in {
			if c.in[j] > e || c.out[j] > e {
				t.Fatalf("cluster %d gains %d and loses %d, exclusivity %d", j, c.in[j], c.out[j], e)
			}
			total += max(c.size[j], -c.size[j])
		}
		if total > e || !p.mayLeave() && e == 1 && total != 1 {
			t.Fatalf("sizes change by %v", c.size)
		}
	})
}

// means returns the mean of each cluster.
func means(p *Problem, r *Result) [][]float64 {
	d := p.Points.D
	m := make([][]float64, p.k())
	for j := range m {
		m[j] = make([]float64, d)
	}
	for i, label := range r.Labels {
		for c, x := range p.Points.Point(i, nil) {
			m[label][c] += float64(x) / float64(r.Sizes[label])
		}
	}
	return m
}

// hundredths is the instance with coordinates given in hundredths, on the finest
// grid.
func hundredths(points, centroids [][]int, lo, hi int) *Problem {
	const f = 20
	rows := func(x [][]int) []float32 {
		var rows []float32
		for _, row := range x {
			for _, c := range row {
				rows = append(rows, float32(math.Ldexp(math.Trunc(math.Ldexp(float64(c)/100, f)), -f)))
			}
		}
		return rows
	}
	k := len(centroids)
	p := kernels.NewPanels(len(points), len(points[0]))
	kernels.Pack(p, rows(points))
	return &Problem{Points: *p, Centroids: rows(centroids), FractionBits: f,
		Lo: slices.Repeat([]int{lo}, k), Hi: slices.Repeat([]int{hi}, k)}
}

// TestCounterexamples runs the two instances of T1 that refute the published
// sensitivities.
func TestCounterexamples(t *testing.T) {
	for _, c := range []struct {
		name                 string
		points, centroids    [][]int
		added                []int
		labels, labelsBefore []uint16
		moved                [][]float64
	}{
		{
			name:   "one dimension, factor two",
			points: [][]int{{100}, {100}, {100}, {100}}, centroids: [][]int{{-100}, {-50}}, added: []int{-100},
			labelsBefore: []uint16{0, 0, 1, 1}, labels: []uint16{0, 1, 1, 1, 0},
			moved: [][]float64{{1}, {0}},
		},
		{
			name:      "all clusters change",
			points:    [][]int{{100, 98}, {-96, -100}, {100, 94}, {100, 92}, {-90, -100}, {-88, -100}},
			centroids: [][]int{{-30, 30}, {-20, 20}, {-10, 10}}, added: []int{100, 100},
			labelsBefore: []uint16{0, 0, 1, 1, 2, 2}, labels: []uint16{0, 1, 1, 2, 2, 2, 0},
			moved: [][]float64{{.98, 1}, {.98, .96}, {.63, .64}},
		},
	} {
		before := hundredths(c.points, c.centroids, 2, 7)
		after := hundredths(append(slices.Clone(c.points), c.added), c.centroids, 2, 7)
		var b, a Result
		for _, run := range []struct {
			p      *Problem
			r      *Result
			labels []uint16
		}{{before, &b, c.labelsBefore}, {after, &a, c.labels}} {
			if err := new(Solver).Solve(context.Background(), nil, run.p, run.r); err != nil {
				t.Fatal(err)
			}
			if err := Verify(run.p, run.r); err != nil {
				t.Error(err)
			}
			if !slices.Equal(run.r.Labels, run.labels) {
				t.Errorf("%s: labels %v, want %v", c.name, run.r.Labels, run.labels)
			}
		}
		mb, ma := means(before, &b), means(after, &a)
		for j := range mb {
			for x := range mb[j] {
				if got := math.Abs(ma[j][x] - mb[j][x]); math.Abs(got-c.moved[j][x]) > 0.005 {
					t.Errorf("%s: centroid %d coordinate %d moves by %.3f, want %.2f", c.name, j, x, got, c.moved[j][x])
				}
			}
		}
	}
}

// TestOrderDoesNotMatter permutes the records of instances full of ties: each
// cluster gets the same multiset of records.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		n, d := p.Points.N, p.Points.D
		var res, shuffled Result
		if err := new(Solver).Solve(context.Background(), nil, p, &res); err != nil {
			t.Skip("infeasible")
		}
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0)).Perm(n)
		q := *p
		points := kernels.NewPanels(n, d)
		for i, from := range order {
			points.Set(i, p.Points.Point(from, nil))
		}
		q.Points = *points
		if p.Weights != nil {
			q.Weights = make([]int32, n)
			for i, from := range order {
				q.Weights[i] = p.Weights[from]
			}
		}
		if err := new(Solver).Solve(context.Background(), nil, &q, &shuffled); err != nil {
			t.Fatal(err)
		}
		hash := newTieHash(p)
		type place struct {
			d digest
			j uint16
		}
		count := map[place]int{}
		for i, j := range res.Labels {
			count[place{hash.digest(p, i), j}] += unitsOf(&res, i)
		}
		for _, m := range res.Extra {
			count[place{hash.digest(p, int(m.Point)), m.Cluster}] += int(m.Units)
		}
		for i, j := range shuffled.Labels {
			count[place{hash.digest(&q, i), j}] -= unitsOf(&shuffled, i)
		}
		for _, m := range shuffled.Extra {
			count[place{hash.digest(&q, int(m.Point)), m.Cluster}] -= int(m.Units)
		}
		for _, c := range count {
			// With several clusters per point, which of a record's twins holds
			// which pair does not matter, nor which cluster is called its label.
			if c != 0 {
				t.Fatalf("clusters differ after a permutation: %v and %v", res.Labels, shuffled.Labels)
			}
		}
	})
}
