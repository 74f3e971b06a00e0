package audit

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine/method/ckks"
)

// TestTimingFindsADependence plants a function whose time grows with its secret.
// Its t is in the hundreds; the limit is 5.
func TestTimingFindsADependence(t *testing.T) {
	var secrets [2][timingPool][]uint32
	for i := range timingPool {
		secrets[0][i], secrets[1][i] = []uint32{0}, []uint32{5000}
	}
	var turns, sum uint32
	leaky := ckks.SecretOperation{Name: "leaky", Load: func(s []uint32) { turns = s[0] }, Run: func() {
		for i := range turns + 50 {
			sum += i * sum
		}
	}}
	got, err := timeOperation(context.Background(), leaky, &secrets, 5000, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if got.T > -TimingLimit {
		t.Errorf("t = %g for a function that turns 50 times for one secret and 5050 times for the other", got.T)
	}
}

func TestTimingsCoverEveryFunction(t *testing.T) {
	timings, err := Timings(context.Background(), 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(timings) < 15 {
		t.Errorf("%d functions", len(timings))
	}
	for _, x := range timings {
		if x.Counted < 900 || !(x.Fixed > 0) || !(x.Random > 0) {
			t.Errorf("%+v", x)
		}
	}
	if _, err := Timings(context.Background(), 10, 1); err == nil {
		t.Error("ten calls are accepted")
	}
}
