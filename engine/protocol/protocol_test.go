package protocol_test

import (
	"context"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/protocol/protocoltest"
)

// ring is EachWhole without a server.
const ring protocol.Makers = 99

// summing is a plan of rounds of sums over parties with the given makers, and the
// program of a party that holds one number.
func summing(t *testing.T, parties, rounds int, makers protocol.Makers, seed *uint64) (*protocol.Plan,
	*protocol.Release, []protocol.Group) {
	t.Helper()
	plan := &protocol.Plan{Method: "test", K: 1, D: 1, Parties: parties, Rounds: rounds, Coordinated: parties > 1,
		Seed: seed}
	if makers == ring {
		plan.Ring, plan.Coordinated, makers = true, false, protocol.EachWhole
	}
	groups := []protocol.Group{{Stream: "a", Values: 2, Shift: 3}, {Values: 1}}
	if makers != protocol.Nobody {
		noise, err := protocol.NewDistribution(protocol.Noise{Mechanism: protocol.Gaussian, Scale: 5}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range groups {
			groups[i].Noise = noise
		}
	}
	return plan, plan.Add(&protocol.Release{Name: "numbers", Makers: makers, Times: rounds}), groups
}

func party(r *protocol.Release, groups []protocol.Group, rounds int, leave int) func(id int,
	got *[][]int64) protocol.Program {
	return func(id int, got *[][]int64) protocol.Program {
		return func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			own := protocol.NewPrivate(3)
			for t := range rounds {
				if t == leave && id == 1 {
					return &protocol.Outcome{Centroids: []float64{0}}, nil
				}
				fill(own, []int64{int64(id + 1), int64(t), int64(10 * id)})
				sum, err := p.Sum(ctx, r, t, groups, own)
				if err != nil {
					return nil, err
				}
				*got = append(*got, slices.Clone(sum))
				if err := p.EndRound(ctx, t, rounds); err != nil {
					return nil, err
				}
			}
			return &protocol.Outcome{Centroids: []float64{0}, Iterations: rounds}, nil
		}
	}
}

func runtime(t *testing.T) *engine.Runtime {
	t.Helper()
	pool := engine.NewPool(1)
	t.Cleanup(pool.Close)
	return engine.NewRuntime(pool)
}

// fill writes values to the first elements of v.
func fill(v *protocol.Private, values []int64) {
	_ = v.Fill(func(words []int64) error { copy(words, values); return nil })
}

// Roles that share memory and roles that share nothing but bytes reach the same
// sums, whoever draws the noise, also after a party has left.
func TestTransportsAgree(t *testing.T) {
	seed := uint64(3)
	for _, makers := range []protocol.Makers{protocol.Nobody, protocol.ServerAlone, protocol.EachWhole, ring} {
		for _, leave := range []int{-1, 2} {
			const parties, rounds = 3, 5
			var sums [2][parties][][]int64
			for over := range 2 {
				plan, r, groups := summing(t, parties, rounds, makers, &seed)
				plan.Leaves = []int{-1, leave, -1}
				var o protocol.Options
				if over == 1 {
					o = protocoltest.Apart(plan)
				}
				make := party(r, groups, rounds, leave)
				var programs []protocol.Program
				for id := range parties {
					programs = append(programs, make(id, &sums[over][id]))
				}
				server := protocol.Program(protocol.Serve)
				if plan.Ring {
					server = nil
				}
				s := protocol.Start(runtime(t), plan, programs, server, o)
				if _, err := s.Finish(context.Background(), dataset.Bounds{}); err != nil {
					t.Fatalf("makers %d, over mail %d: %v", makers, over, err)
				}
			}
			for id := range parties {
				if !slices.EqualFunc(sums[0][id], sums[1][id], slices.Equal) {
					t.Errorf("makers %d: party %d got %v in one process, %v by mail", makers, id, sums[0][id],
						sums[1][id])
				}
				if id != 1 && !slices.EqualFunc(sums[0][0], sums[0][id], slices.Equal) {
					t.Errorf("makers %d: parties 1 and %d differ", makers, id+1)
				}
			}
			if makers == protocol.Nobody && leave < 0 && !slices.Equal(sums[0][0][2], []int64{48, 48, 30}) {
				t.Errorf("the exact sum of round 3 is %v, want [48 48 30]", sums[0][0][2])
			}
		}
	}
}

// A release is made at most once a round, and only as planned.
func TestReleaseOncePerRound(t *testing.T) {
	plan, r, groups := summing(t, 1, 3, protocol.Holder, nil)
	var errs []error
	program := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		for _, c := range []struct {
			r      *protocol.Release
			round  int
			groups []protocol.Group
		}{{r, 1, groups}, {r, 1, groups}, {r, 0, groups}, {&protocol.Release{Name: "foreign"}, 2, groups},
			{r, 2, groups[:1]}, {r, 3, []protocol.Group{{Values: 3}}}} {
			_, err := p.Sum(ctx, c.r, c.round, c.groups, protocol.NewPrivate(3))
			errs = append(errs, err)
		}
		return nil, nil
	}
	if err := protocol.Start(runtime(t), plan, []protocol.Program{program}, nil,
		protocol.Options{}).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "released before", "released before", "not in the plan", "3 values for 2",
		"noise"} {
		if (errs[i] == nil) != (want == "") || errs[i] != nil && !strings.Contains(errs[i].Error(), want) {
			t.Errorf("case %d: %v, want %q", i, errs[i], want)
		}
	}
}

// A private vector shows nothing to any printer or encoder.
func TestPrivateShowsNothing(t *testing.T) {
	v := protocol.NewPrivate(2)
	fill(v, []int64{7351, 9241})
	for _, verb := range []string{"%v", "%+v", "%#v", "%d", "%s", "%x"} {
		if s := fmt.Sprintf(verb, v); s != "private" {
			t.Errorf("%s prints %q", verb, s)
		}
	}
	if b, err := json.Marshal(struct{ V *protocol.Private }{v}); err == nil {
		t.Errorf("JSON has %s", b)
	}
	if err := gob.NewEncoder(io.Discard).Encode(v); err == nil {
		t.Error("gob encodes it")
	}
	if b, err := v.MarshalText(); err == nil {
		t.Errorf("text marshals as %q", b)
	}
	if b, err := json.Marshal(map[*protocol.Private]int{v: 1}); err == nil {
		t.Errorf("as a key it marshals as %s", b)
	}
}

// A run whose roles wait for each other ends with an error.
func TestDeadlockIsFound(t *testing.T) {
	plan, _, _ := summing(t, 2, 1, protocol.Nobody, nil)
	wait := func(from protocol.Role) protocol.Program {
		return func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			_, err := p.Receive(ctx, from)
			return nil, err
		}
	}
	err := protocol.Start(runtime(t), plan, []protocol.Program{wait(1), wait(0)}, nil,
		protocol.Options{}).Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "waits") {
		t.Errorf("two roles that wait for each other end with %v", err)
	}
}

// A cancelled run ends with the context's error.
func TestCancel(t *testing.T) {
	plan, _, _ := summing(t, 1, 1, protocol.Nobody, nil)
	ctx, cancel := context.WithCancel(context.Background())
	program := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		cancel()
		_, err := p.Receive(ctx, protocol.Server)
		return nil, err
	}
	err := protocol.Start(runtime(t), plan, []protocol.Program{program}, protocol.Serve, protocol.Options{}).Run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run ends with %v", err)
	}
}

// Work abreast is done before its role goes on, of all roles of a process together
// and of each by itself.
func TestAbreast(t *testing.T) {
	for _, apart := range []bool{false, true} {
		const parties = 5
		seed := uint64(1)
		plan, r, groups := summing(t, parties, 3, protocol.Nobody, &seed)
		var o protocol.Options
		if apart {
			o = protocoltest.Apart(plan)
		}
		var programs []protocol.Program
		var done [parties]int
		for id := range parties {
			programs = append(programs, func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
				own := protocol.NewPrivate(3)
				for round := range 3 {
					if err := p.Abreast(ctx, func(context.Context) error { done[id]++; return nil }); err != nil {
						return nil, err
					}
					fill(own, []int64{int64(done[id]), 0, 0})
					sum, err := p.Sum(ctx, r, round, groups, own)
					if err != nil {
						return nil, err
					}
					if want := int64(parties*(round+1)) << 3; sum[0] != want {
						t.Errorf("round %d: %d, want %d", round, sum[0], want)
					}
				}
				return nil, nil
			})
		}
		if err := protocol.Start(runtime(t), plan, programs, protocol.Serve, o).Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// Work waits for that of roles that have not yet had their turn since a meeting: else the first rounds of
// parties would come one after the other.
func TestAbreastAfterAMeeting(t *testing.T) {
	const parties = 3
	plan, _, _ := summing(t, parties, 1, protocol.Nobody, nil)
	var programs []protocol.Program
	var asked [parties]bool
	for id := range parties {
		programs = append(programs, func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			if err := p.Meet(ctx); err != nil {
				return nil, err
			}
			asked[id] = true
			return nil, p.Abreast(ctx, func(context.Context) error {
				if asked != [parties]bool{true, true, true} {
					t.Errorf("party %d works while %v have asked", id, asked)
				}
				return nil
			})
		})
	}
	if err := protocol.Start(runtime(t), plan, programs, nil, protocol.Options{}).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// In a ring the first party's mask covers what goes around; what comes out is the
// noisy sum that all may see. Every party records its own exact values and the sum.
func TestRingShowsOnlyTheSum(t *testing.T) {
	const parties, rounds = 4, 3
	seed := uint64(8)
	plan, r, groups := summing(t, parties, rounds, ring, &seed)
	views := new(protocol.Views)
	var sums [parties][][]int64
	var programs []protocol.Program
	for id := range parties {
		programs = append(programs, party(r, groups, rounds, -1)(id, &sums[id]))
	}
	if err := protocol.Start(runtime(t), plan, programs, nil,
		protocol.Options{Views: views}).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	messages, own, global := map[int]int{}, 0, 0
	for _, v := range views.Seen {
		switch {
		case v.Message != nil:
			messages[v.Round]++
			inClear := int64(binary.LittleEndian.Uint64(v.Message)) == sums[0][v.Round][0]
			if around := messages[v.Round] <= parties; inClear == around {
				t.Errorf("round %d, message %d from %v to %v: in the clear is %v", v.Round, messages[v.Round], v.Of,
					v.Viewer, inClear)
			}
		case v.Of == protocol.Server:
			global++
		case v.Of == v.Viewer:
			own++
		default:
			t.Errorf("%v sees the values of %v", v.Viewer, v.Of)
		}
	}
	for round := range rounds {
		if want := parties + parties - 1; messages[round] != want {
			t.Errorf("round %d has %d messages, want %d", round, messages[round], want)
		}
	}
	if own != parties*rounds || global != parties*rounds {
		t.Errorf("%d own values and %d sums were recorded, want %d of each", own, global, parties*rounds)
	}
}
