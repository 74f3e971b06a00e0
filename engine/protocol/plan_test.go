package protocol

import (
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// What a release came to may cost less than was planned, but not more.
func TestBookRefusesWhatIsDearer(t *testing.T) {
	planned := []privacy.Entry{{What: "sums", Cost: privacy.Spec{Family: "gaussian", Scale: 2, Rounds: 3}},
		{What: "choices", Cost: privacy.Spec{Family: "pure", Epsilon: 0.1}}}
	for _, c := range []struct {
		name   string
		spoil  func(e []privacy.Entry) []privacy.Entry
		booked bool
	}{
		{"as planned", func(e []privacy.Entry) []privacy.Entry { return e }, true},
		{"more noise", func(e []privacy.Entry) []privacy.Entry { e[0].Cost.Scale = 3; return e }, true},
		{"less noise", func(e []privacy.Entry) []privacy.Entry { e[0].Cost.Scale = 1.9; return e }, false},
		{"more rounds", func(e []privacy.Entry) []privacy.Entry { e[0].Cost.Rounds = 4; return e }, false},
		{"a larger epsilon", func(e []privacy.Entry) []privacy.Entry { e[1].Cost.Epsilon = 0.2; return e }, false},
		{"another mechanism", func(e []privacy.Entry) []privacy.Entry { e[0].Cost.Family = "laplace"; return e },
			false},
		{"an entry less", func(e []privacy.Entry) []privacy.Entry { return e[:1] }, false},
	} {
		if err := costsMore(planned, c.spoil(append([]privacy.Entry(nil), planned...))); (err == nil) != c.booked {
			t.Errorf("%s is booked: %v", c.name, err)
		}
	}
}

// A delta that says little is a doubt of every private plan; a small one and none are not.
func TestLargeDeltaIsDoubted(t *testing.T) {
	for _, c := range []struct {
		private bool
		delta   float64
		doubted bool
	}{{true, privacy.DefaultDelta(2), true}, {true, 0.02, true}, {true, privacy.DefaultDelta(100), false},
		{true, 0, false}, {false, 0.5, false}} {
		pl := &Plan{Private: c.private, Budget: privacy.Budget{Epsilon: 1, Delta: c.delta}, Doubts: []string{"another"}}
		if got := pl.doubts(); (len(got) > 1) != c.doubted || got[0] != "another" {
			t.Errorf("private %v, delta %g: doubts %q", c.private, c.delta, got)
		}
	}
}
