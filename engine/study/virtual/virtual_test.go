package virtual

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// plain is a simulation without by-pairs masks, whose times can be told by hand: work is
// measured, so that the network is made slow beside it.
func plain(parties int) *Simulation {
	return &Simulation{Parties: parties, Words: 45, Plain: true, Threshold: 0.6, Fan: 50, Cores: 2, Slow: 1,
		Link: Link{RoundTrip: 10 * time.Second}, Deadline: time.Hour, Play: 1000, Seed: 1}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*want {
		t.Errorf("%s: %g, expected %g", what, got, want)
	}
}

// A round takes a trip to each level of servers and back, and what bandwidth takes.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		parties, levels, servers int
	}{{40, 1, 1}, {100, 2, 3}, {5000, 3, 103}} {
		s := plain(c.parties)
		r, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Levels != c.levels || r.Servers != c.servers || r.Missing != 0 {
			t.Errorf("%d parties: %+v", c.parties, r)
		}
		near(t, "a round", r.Round.Seconds(), 10*float64(c.levels), 0.05)
		near(t, "bytes of a party", r.PartySent, 45*8+5, 1e-9)
	}
	s := plain(40)
	s.Link = Link{Bandwidth: 8 * 40 * (45*8 + 5) / 100} // a hundred seconds for all vectors
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	near(t, "a slow link", r.Round.Seconds(), 200, 0.05)
}

// Sums by pairs have the steps of the protocol, whoever vanishes; a step waits until its
// deadline for who has vanished; and a sum with too few has none.
func TestDropOuts(t *testing.T) {
	s := plain(60)
	s.Plain, s.Fan, s.Link.RoundTrip = false, 30, time.Minute
	whole, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Half a trip, four, half a trip, and half a trip down each level.
	near(t, "five steps and the level above", whole.Round.Minutes(), 6, 0.1)
	s.DropOut, s.Deadline = 0.2, time.Hour
	some, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if some.Missing == 0 || some.Missing > 30 || some.Round < time.Hour {
		t.Errorf("with drop-outs: %+v", some)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Run(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
	s.DropOut = 0.9
	if _, err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "parties") {
		t.Errorf("a sum of a tenth of the parties: %v", err)
	}
}

// Groups of which only the course is played are like those whose machines are run.
func TestRecalled(t *testing.T) {
	s := plain(120)
	s.Plain, s.Fan, s.DropOut, s.Stragglers, s.Slow = false, 20, 0.1, 0.1, 3
	all, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Play = 20
	few, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if all.Played != 120 || few.Played != 20 {
		t.Fatalf("%d and %d parties were played", all.Played, few.Played)
	}
	near(t, "time", few.Round.Seconds(), all.Round.Seconds(), 0.2)
	near(t, "bytes", few.PartyReceived, all.PartyReceived, 0.1)
	s.Known = make(Known)
	for _, played := range []int{20, 0} { // costs of one simulation serve another
		if few, err = s.Run(t.Context()); err != nil || few.Played != played {
			t.Errorf("%d parties were played: %v", few.Played, err)
		}
	}
	near(t, "missing", float64(few.Missing), float64(all.Missing), 0.5)
}

// An end costs what it did with so many connections as were measured; in between, it follows
// their logarithm, and beyond, the nearest.
func TestTransport(t *testing.T) {
	x := Transport{{10, End{1, 4}}, {1000, End{3, 2}}, {4000, End{2, 2}}}
	for connections, want := range map[int]End{1: {1, 4}, 10: {1, 4}, 100: {2, 3}, 1000: {3, 2}, 2000: {2.5, 2},
		100000: {2, 2}} {
		got := x.with(connections)
		near(t, "a message", got.Message, want.Message, 1e-9)
		near(t, "a byte", got.Byte, want.Byte, 1e-9)
	}
	if got := Transport(nil).with(5); got != (End{}) {
		t.Errorf("of nothing measured: %v", got)
	}
}
