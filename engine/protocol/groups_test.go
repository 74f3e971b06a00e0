package protocol

import (
	"testing"

	"github.com/cohort-engine/cohort/internal/vary"
)

// The layout that a server is told comes back whole, and nothing else does.
func FuzzDecodeGroups(f *testing.F) {
	noise, err := NewDistribution(Noise{Mechanism: Gaussian, Scale: 3.25}, nil)
	if err != nil {
		f.Fatal(err)
	}
	good := encodeGroups(7, []Group{{Stream: "mean", Values: 12, Noise: noise}, {Values: 3, Noise: noise}})
	f.Add(good)
	f.Add(good[:9])
	f.Add(encodeGroups(0, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		vary.Bytes(b, func(b []byte) {
			round, groups, err := decodeGroups(b)
			if err != nil {
				return
			}
			r2, again, err := decodeGroups(encodeGroups(round, groups))
			if err != nil || r2 != round || len(again) != len(groups) {
				t.Errorf("%d groups of round %d come back as %d of %d, %v", len(groups), round, len(again), r2, err)
			}
		})
	})
}
