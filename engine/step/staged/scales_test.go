package staged

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// TestRoundScales checks that every cluster's scales spend no more than the
// round's budget and, away from the floor, all of it.
func TestRoundScales(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		d := 1 + rng.IntN(800)
		l := Share{Gaussian: true, Total: math.Exp(rng.Float64()*10 - 8)}
		radius, size := math.Exp(rng.Float64()*6-4), math.Exp(rng.Float64()*12)
		run := &Plan{Plan: &protocol.Plan{Method: "hybrid", D: d}}
		s := run.RelativeScales(l, radius, size)
		cost := radius*radius/(s.Sums*s.Sums) + 1/(s.Counts*s.Counts)
		if cost > l.Total*(1+1e-9) {
			t.Fatalf("d=%d radius=%v size=%v mu²=%v: costs %v", d, radius, size, l.Total, cost)
		}
		if s.Sums > minScale && s.Counts > minScale && cost < l.Total*(1-1e-9) {
			t.Fatalf("d=%d radius=%v size=%v mu²=%v: wastes all but %v", d, radius, size, l.Total, cost)
		}
		e := run.RelativeScales(Share{Total: l.Total}, radius, size)
		if cost := radius*math.Sqrt(float64(d))/e.Sums + 1/e.Counts; cost > l.Total*(1+1e-9) {
			t.Fatalf("Laplace: costs %v of %v", cost, l.Total)
		}
	}
}

// TestPairs checks that two records which change together spend no more than the budget
// by the worse of T2's cases and, away from the floor, all of it: and that neither half
// has less than where the price of one record is doubled.
func TestPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		d := 1 + rng.IntN(800)
		l := Share{Gaussian: true, Total: math.Exp(rng.Float64()*10 - 8), pair: true}
		radius, size := math.Exp(rng.Float64()*6-4), math.Exp(rng.Float64()*12)
		run := &Plan{Plan: &protocol.Plan{Method: "hybrid", D: d}}
		s := run.RelativeScales(l, radius, size)
		sums, counts := radius*radius/(s.Sums*s.Sums), 1/(s.Counts*s.Counts)
		cost := max(4*sums, 2*sums+2*counts)
		if cost > 4*l.Total*(1+1e-9) {
			t.Fatalf("d=%d radius=%v size=%v: a pair is dearer than its share: %v of %v", d, radius, size, cost,
				4*l.Total)
		}
		if s.Sums <= minScale || s.Counts <= minScale {
			continue
		}
		if cost < 4*l.Total*(1-1e-9) {
			t.Fatalf("d=%d radius=%v size=%v: wastes all but %v of %v", d, radius, size, cost, 4*l.Total)
		}
		if one := run.RelativeScales(Share{Gaussian: true, Total: l.Total}, radius, size); s.Sums > one.Sums*(1+1e-9) {
			t.Fatalf("d=%d radius=%v size=%v: sums have noise %v, and %v at twice the price of one record", d, radius,
				size, s.Sums, one.Sums)
		}
	}
}

// TestJamesStein checks the positive-part rule on one coordinate.
func TestJamesStein(t *testing.T) {
	variance := []float64{0.01, 0.01, 0.04}
	c := []float32{0.5, 0.5 + 1.0/1024, 0.5}
	jamesStein(c, variance, 3, 1, datasettest.Bits)
	if c[0] != c[1] || c[1] != c[2] {
		t.Errorf("centroids closer than the noise become %v, want them equal", c)
	}
	c = []float32{-0.75, 0.75, 0}
	jamesStein(c, variance, 3, 1, datasettest.Bits)
	var weight, mean, spread float64
	for j, x := range []float64{-0.75, 0.75, 0} {
		weight += 1 / variance[j]
		mean += x / variance[j]
	}
	mean /= weight
	for j, x := range []float64{-0.75, 0.75, 0} {
		spread += (x - mean) * (x - mean) / variance[j] / 2
	}
	if want := mean + (0.75-mean)*(1-1/spread); math.Abs(float64(c[1])-want) > 1e-4 {
		t.Errorf("centroid is %v, want %v", c[1], want)
	}
}

// TestMove: an offset is what was measured in an early round, and less by the noise expected in it in a late one.
func TestMove(t *testing.T) {
	l := Share{Total: 1, Gaussian: true}
	scales := []Scales{{Sums: 1, Counts: 1}}
	for _, c := range []struct {
		late bool
		want float64
	}{{false, 0.5}, {true, 0.5 * (1 - 0.5*2/25)}} {
		at := []float32{0, 0}
		Move(l, at, []float64{3, 4}, []float64{10}, []float64{1}, scales, 2, datasettest.Bits, c.late)
		if got := math.Hypot(float64(at[0]), float64(at[1])); math.Abs(got-c.want) > 1e-3 {
			t.Errorf("late %v: moved by %v, want %v", c.late, got, c.want)
		}
	}
}
