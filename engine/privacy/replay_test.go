package privacy

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// A replay gives the second run the first one's releases and returns the log ratio of their distributions, written
// out here for one outcome of each.
func TestReplayReplaysAndMeasures(t *testing.T) {
	var replay Replay
	run := func(exact []int64, released []int64, chosen int, scores []float64) (int, []int64) {
		t.Helper()
		counts := slices.Clone(released)
		if err := replay.Release(exact, counts, LaplaceLikelihood(2)); err != nil {
			t.Fatal(err)
		}
		sums := []int64{released[0]}
		if err := replay.Release(exact[:1], sums, GaussianLikelihood(3)); err != nil {
			t.Fatal(err)
		}
		i, err := replay.Choose(chosen, scores, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		return i, append(counts, sums...)
	}
	for range 2 { // a replay is used again
		replay.Record()
		if i, got := run([]int64{5, 0}, []int64{7, -1}, 1, []float64{-1, 0, -3}); i != 1 ||
			!slices.Equal(got, []int64{7, -1, 7}) {
			t.Fatalf("recording changes the run: %v, %v", i, got)
		}
		replay.Replay()
		if i, got := run([]int64{6, 3}, []int64{100, 200}, 2, []float64{-1, -2, -3}); i != 1 ||
			!slices.Equal(got, []int64{7, -1, 7}) {
			t.Fatalf("the second run has releases of its own: %v, %v", i, got)
		}
		got, err := replay.Loss()
		want := (1+4)/2. - (2+1)/2. - 4/18. + 1/18. - math.Log(math.Exp(-0.5)+1+math.Exp(-1.5)) +
			math.Log(math.Exp(0.5)+1+math.Exp(-0.5))
		if err != nil || math.Abs(got-want) > 1e-12 || replay.Releases() != 3 {
			t.Fatalf("loss %v, want %v, %v", got, want, err)
		}
		if l, g := replay.Distance(); l != 0.5+1.5 || math.Abs(g-1/9.) > 1e-15 {
			t.Fatalf("distance %v and %v, want 2 and 1/9", l, g)
		}
	}
	// another shape, or fewer releases, is told
	replay.Replay()
	if err := replay.Release([]int64{1}, []int64{1}, LaplaceLikelihood(1)); !errors.Is(err, ErrReplay) {
		t.Errorf("a release of another length: %v", err)
	}
	replay.Replay()
	if _, err := replay.Loss(); !errors.Is(err, ErrReplay) {
		t.Errorf("releases left out: %v", err)
	}
	var none *Replay
	if i, err := none.Choose(2, nil, 1); i != 2 || err != nil || none.Release(nil, nil, Likelihood{}) != nil {
		t.Error("no replay does something")
	}
}

// Samplers of a replay are those of their scale, made once, however many scales come.
func TestReplayKeepsSamplers(t *testing.T) {
	var replay Replay
	for range 2 {
		for i := range 2 * mostSamplers {
			s := 1 + float64(i)
			g, err := replay.DiscreteGaussian(s)
			if err != nil || g.sigma != s {
				t.Fatal(g, err)
			}
			l, err := replay.DiscreteLaplace(s)
			if err != nil || l.b != s {
				t.Fatal(l, err)
			}
		}
	}
	a, _ := replay.DiscreteLaplace(3)
	if b, _ := replay.DiscreteLaplace(3); a != b {
		t.Error("a sampler is made twice")
	}
	two, err := replay.LaplaceShare(3, 2)
	if err != nil || two.b != 3 || two.shares != 2 {
		t.Error(two, err)
	}
	three, err := replay.LaplaceShare(3, 3)
	if err != nil || three.shares != 3 {
		t.Error("shares of three are those of two", err)
	}
	if again, _ := replay.LaplaceShare(3, 2); again != two {
		t.Error("a share is made twice")
	}
	if _, err := replay.DiscreteGaussian(math.NaN()); !errors.Is(err, ErrRange) {
		t.Errorf("scale NaN: %v", err)
	}
}
