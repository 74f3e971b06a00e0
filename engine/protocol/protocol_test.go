package protocol

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/secagg"
)

// post is mail among goroutines of a test.
type post struct {
	mu    sync.Mutex
	ready *sync.Cond
	boxes map[[2]Role][][]byte
	gone  map[Role]bool
}

func newPost() *post {
	p := &post{boxes: map[[2]Role][][]byte{}, gone: map[Role]bool{}}
	p.ready = sync.NewCond(&p.mu)
	return p
}

// end is one role's end of post.
type end struct {
	*post
	role Role
}

func (e end) Send(_ context.Context, to Role, message []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := [2]Role{e.role, to}
	e.boxes[key] = append(e.boxes[key], slices.Clone(message))
	e.ready.Broadcast()
	return nil
}

func (e end) Receive(_ context.Context, from Role) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := [2]Role{from, e.role}
	for len(e.boxes[key]) == 0 {
		if e.gone[from] {
			return nil, ErrLeft
		}
		e.ready.Wait()
	}
	b := e.boxes[key][0]
	e.boxes[key] = e.boxes[key][1:]
	return b, nil
}

func (e end) Leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone[e.role] = true
	e.ready.Broadcast()
}

// summing is a plan of rounds of sums over parties with the given makers, and the
// program of a party that holds one number.
func summing(t *testing.T, parties, rounds int, makers Makers, seed *uint64) (*Plan, *Release, []Group) {
	t.Helper()
	plan := &Plan{Method: "test", K: 1, D: 1, Parties: parties, Rounds: rounds, Coordinated: parties > 1, Seed: seed}
	groups := []Group{{Stream: "a", Values: 2, Shift: 3}, {Values: 1}}
	if makers != Nobody {
		noise, err := NewDistribution(Noise{Mechanism: Gaussian, Scale: 5}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range groups {
			groups[i].Noise = noise
		}
	}
	return plan, plan.Add(&Release{Name: "numbers", Makers: makers, Times: rounds}), groups
}

func party(r *Release, groups []Group, rounds int, leave int) func(id int, got *[][]int64) Program {
	return func(id int, got *[][]int64) Program {
		return func(ctx context.Context, p *Party) (*Outcome, error) {
			own := NewPrivate(3)
			for t := range rounds {
				if t == leave && id == 1 {
					return &Outcome{Centroids: []float64{0}}, nil
				}
				own.Set(0, []int64{int64(id + 1), int64(t), int64(10 * id)})
				sum, err := p.Sum(ctx, r, t, groups, own)
				if err != nil {
					return nil, err
				}
				*got = append(*got, slices.Clone(sum))
				if err := p.EndRound(ctx, t, rounds); err != nil {
					return nil, err
				}
			}
			return &Outcome{Centroids: []float64{0}, Iterations: rounds}, nil
		}
	}
}

func runtime(t *testing.T) *engine.Runtime {
	t.Helper()
	pool := engine.NewPool(1)
	t.Cleanup(pool.Close)
	return engine.NewRuntime(pool)
}

// Roles that share memory and roles that share nothing but bytes reach the same
// sums, whoever draws the noise, also after a party has left.
func TestTransportsAgree(t *testing.T) {
	seed := uint64(3)
	for _, makers := range []Makers{Nobody, ServerAlone, EachWhole} {
		for _, leave := range []int{-1, 2} {
			const parties, rounds = 3, 5
			var sums [2][parties][][]int64
			for over := range 2 {
				plan, r, groups := summing(t, parties, rounds, makers, &seed)
				var o Options
				if over == 1 {
					mail := newPost()
					o.Connect = func(role Role) Transport { return OverMail(end{mail, role}, role, parties, secagg.Ring64) }
				}
				make := party(r, groups, rounds, leave)
				var programs []Program
				for id := range parties {
					programs = append(programs, make(id, &sums[over][id]))
				}
				s := Start(runtime(t), plan, programs, Serve, o)
				if err := s.Run(context.Background()); err != nil {
					t.Fatalf("makers %d, over mail %d: %v", makers, over, err)
				}
				if _, err := s.Result(dataset.Bounds{}); err != nil {
					t.Fatal(err)
				}
			}
			for id := range parties {
				if !slices.EqualFunc(sums[0][id], sums[1][id], slices.Equal) {
					t.Errorf("makers %d: party %d got %v in one process, %v by mail", makers, id, sums[0][id], sums[1][id])
				}
				if id != 1 && !slices.EqualFunc(sums[0][0], sums[0][id], slices.Equal) {
					t.Errorf("makers %d: parties 1 and %d differ", makers, id+1)
				}
			}
			if makers == Nobody && leave < 0 && !slices.Equal(sums[0][0][2], []int64{48, 48, 30}) {
				t.Errorf("the exact sum of round 3 is %v, want [48 48 30]", sums[0][0][2])
			}
		}
	}
}

// A release is made at most once a round, and only as planned.
func TestReleaseOncePerRound(t *testing.T) {
	plan, r, groups := summing(t, 1, 3, Holder, nil)
	var errs []error
	program := func(ctx context.Context, p *Party) (*Outcome, error) {
		for _, c := range []struct {
			r      *Release
			round  int
			groups []Group
		}{{r, 1, groups}, {r, 1, groups}, {r, 0, groups}, {&Release{Name: "foreign"}, 2, groups}, {r, 2, groups[:1]}, {r, 3, []Group{{Values: 3}}}} {
			_, err := p.Sum(ctx, c.r, c.round, c.groups, NewPrivate(3))
			errs = append(errs, err)
		}
		return nil, nil
	}
	if err := Start(runtime(t), plan, []Program{program}, nil, Options{}).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "released before", "released before", "not in the plan", "3 values for 2", "noise"} {
		if (errs[i] == nil) != (want == "") || errs[i] != nil && !strings.Contains(errs[i].Error(), want) {
			t.Errorf("case %d: %v, want %q", i, errs[i], want)
		}
	}
}

// A private vector shows nothing to any printer or encoder.
func TestPrivateShowsNothing(t *testing.T) {
	v := NewPrivate(2)
	v.Set(0, []int64{7351, 9241})
	for _, verb := range []string{"%v", "%+v", "%#v", "%d", "%s", "%x"} {
		if s := fmt.Sprintf(verb, v); s != "private" {
			t.Errorf("%s prints %q", verb, s)
		}
	}
	if b, err := json.Marshal(struct{ V *Private }{v}); err == nil {
		t.Errorf("JSON has %s", b)
	}
	if err := gob.NewEncoder(io.Discard).Encode(v); err == nil {
		t.Error("gob encodes it")
	}
}

// A run whose roles wait for each other ends with an error.
func TestDeadlockIsFound(t *testing.T) {
	plan, _, _ := summing(t, 2, 1, Nobody, nil)
	wait := func(from Role) Program {
		return func(ctx context.Context, p *Party) (*Outcome, error) {
			_, err := p.Receive(ctx, from)
			return nil, err
		}
	}
	err := Start(runtime(t), plan, []Program{wait(1), wait(0)}, nil, Options{}).Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "waits") {
		t.Errorf("two roles that wait for each other end with %v", err)
	}
}

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
		round, groups, err := decodeGroups(b)
		if err != nil {
			return
		}
		r2, again, err := decodeGroups(encodeGroups(round, groups))
		if err != nil || r2 != round || len(again) != len(groups) {
			t.Errorf("%d groups of round %d come back as %d of %d, %v", len(groups), round, len(again), r2, err)
		}
	})
}

// A cancelled run ends with the context's error.
func TestCancel(t *testing.T) {
	plan, _, _ := summing(t, 1, 1, Nobody, nil)
	ctx, cancel := context.WithCancel(context.Background())
	program := func(ctx context.Context, p *Party) (*Outcome, error) {
		cancel()
		_, err := p.Receive(ctx, Server)
		return nil, err
	}
	err := Start(runtime(t), plan, []Program{program}, Serve, Options{}).Run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run ends with %v", err)
	}
}
