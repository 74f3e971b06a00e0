package hybrid

import (
	"math"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
)

// TestBranch: the branch follows from public numbers, one mean where the signal is
// weak, and the headline says so.
func TestBranch(t *testing.T) {
	for _, c := range []struct {
		n, d, k int
		epsilon float64
		branch  string
	}{
		{5000, 2, 15, 0.01, "grid"}, {150, 4, 3, 1, "tree"}, {300, 2, 5, 0.001, "mean"}, {300, 8, 5, 0.1, "mean"},
		{300, 8, 5, 1, "tree"},
		{1000, 30, 10, 0.1, "mean"}, {70000, 784, 10, 1, "projected"}, {70000, 784, 10, 0.1, "high-d"},
		{10000, 20, 10, 1, "projected"},
		{10000, 20, 10, 0.1, "high-d"}, {1000, 16, 5, 0.3, "high-d"}, {1000, 12, 10, 0.3, "tree"},
		{1000, 16, 2, 0.1, "tree"}, {5000, 30, 2, 0.03, "tree"}, {5000, 16, 2, 0.03, "high-d"}, {1000, 16, 1, 0.05, "mean"},
		{1000, 30, 20, 1, "high-d"}, {1000, 30, 20, 0.5, "mean"}, {1000, 4, 20, 0.03, "mean"},
		{300, 4, 5, 0.03, "mean"}, {300, 4, 2, 0.03, "tree"}, {150, 4, 3, 0.1, "tree"}, {5000, 4, 20, 0.01, "mean"},
		{1000, 4, 20, 0.1, "tree"}, {5000, 16, 20, 0.1, "mean"},
	} {
		shape := dataset.Part{Points: dataset.Shape(c.n, *box(c.d), datasettest.Bits).Points, FractionBits: datasettest.Bits}
		job := &Job{Problem: protocol.Problem{Clients: []dataset.Part{shape}, Bounds: *box(c.d), K: c.k,
			Budget: privacy.Budget{Epsilon: c.epsilon, Delta: -1}}}
		h, err := job.plan()
		if err != nil {
			t.Fatal(err)
		}
		if h.branch != c.branch || (len(h.Doubts) > 0) != (c.branch == "mean") {
			t.Errorf("%+v: branch %s, doubts %q", c, h.branch, h.Doubts)
		}
	}
}

func box(d int) *dataset.Bounds {
	b := datasettest.UnitBounds(d)
	return &b
}

// TestTowardCentre: a mean below its noise becomes the centre of the box, one far above
// stays, and none turns around.
func TestTowardCentre(t *testing.T) {
	weak, strong, middle := []float64{0.1, -0.1}, []float64{0.5, -0.5}, []float64{0.3, 0.4}
	towardCentre(weak, 0.04)
	towardCentre(strong, 1e-9)
	towardCentre(middle, 0.05)
	if weak[0] != 0 || weak[1] != 0 {
		t.Errorf("a mean in its noise becomes %v", weak)
	}
	little := []float64{0.3, -0.3} // its square is .18, that of noise .1, with a deviation of .1
	if towardCentre(little, 0.05); little[0] != 0 || little[1] != 0 {
		t.Errorf("a mean little above its noise becomes %v", little)
	}
	if math.Abs(strong[0]-0.5) > 1e-6 || math.Abs(strong[1]+0.5) > 1e-6 {
		t.Errorf("a mean far above its noise becomes %v", strong)
	}
	if want := 1 - 2*0.05/0.25; math.Abs(middle[0]-0.3*want) > 1e-12 || math.Abs(middle[1]-0.4*want) > 1e-12 {
		t.Errorf("%v, want the factor %g", middle, want)
	}
}

// TestAround: the first centre is the mean, the others are in the box and apart, and the
// loss is that of the mean alone at most.
func TestAround(t *testing.T) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 2000, D: 6, K: 5, Separation: 6, Seed: 3})
	mean, seed := []float64{0.9, 0.2, -0.1, 0, 0.3, -0.95}, uint64(1)
	got := around(mean, nil, 1.5, 8, datasettest.Bits, privacy.NewStreams(&seed).Stream(0, 0, "start"))
	if len(got) != 8*6 || !slices.Equal(got[:6], staged.GridRow(mean, datasettest.Bits)) {
		t.Fatalf("%d coordinates, the first centre is %v", len(got), got[:6])
	}
	one, all := 0.0, 0.0
	for i := range norm.Points.N {
		x, least := norm.Points.Point(i, nil), math.Inf(1)
		for c := range 8 {
			square := 0.0
			for h := range x {
				square += math.Pow(float64(x[h])-float64(got[c*6+h]), 2)
			}
			least = min(least, square)
			if c == 0 {
				one += square
			}
		}
		all += least
	}
	if all > 0.95*one {
		t.Errorf("loss %g, of the mean alone %g", all, one)
	}
	for i, x := range got {
		if x < -1 || x > 1 {
			t.Errorf("coordinate %d is %g", i, x)
		}
	}
}

// TestAroundFollowsTheShrunk: the first point around a mean is where the mean was shrunk from, if it was.
func TestAroundFollowsTheShrunk(t *testing.T) {
	seed := uint64(4)
	noisy := []float64{-0.9, -0.9, 0.9, 0.9}
	got := around(make([]float64, 4), noisy, 0.8, 3, datasettest.Bits, privacy.NewStreams(&seed).Stream(0, 0, "start"))
	if len(got) != 12 {
		t.Fatalf("%d coordinates", len(got))
	}
	for h, x := range got[4:8] {
		if want := math.Copysign(math.Abs(float64(got[4])), noisy[h]); math.Abs(float64(x)-want) > 1e-4 || x == 0 {
			t.Errorf("the first point around the mean is %v, not toward %v", got[4:8], noisy)
			break
		}
	}
}
