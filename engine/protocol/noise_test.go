package protocol

import (
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// Truncated noise doubles the weight of 0 and keeps the others of discrete Laplace (T6 vii): with
// 4 10^6 draws at scale 2 the ratio of 0 to 1 is 2 e^(1/2) within 1%, at over 7 standard deviations, that
// of 1 to 2 is e^(1/2) within 1.5%, at over 7.
func TestTruncatedNoiseDoublesZero(t *testing.T) {
	seed := uint64(3)
	st := privacy.NewStreams(&seed).Stream(0, 0, "truncated")
	l, err := NewDistribution(Noise{Mechanism: Laplace, Scale: 2, Rounding: TowardZero}, nil)
	if err != nil {
		t.Fatal(err)
	}
	draws, count := make([]int64, 4_000_000), map[int64]float64{}
	l.sampler.Fill(st, draws)
	for _, z := range draws {
		count[z]++
	}
	for _, side := range []int64{1, -1} {
		if got, want := count[0]/count[side], 2*math.Exp(0.5); math.Abs(got/want-1) > 0.01 {
			t.Errorf("0 is %v times as likely as %d, want %v", got, side, want)
		}
		if got, want := count[side]/count[2*side], math.Exp(0.5); math.Abs(got/want-1) > 0.015 {
			t.Errorf("%d is %v times as likely as %d, want %v", side, got, 2*side, want)
		}
	}
}
