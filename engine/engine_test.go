package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/internal/fault"
)

// sleeper is a job of three iterations that cancels itself when told to.
type sleeper struct {
	invalid error
	cancel  context.CancelFunc
}

func (sleeper) Method() string        { return "sleeper" }
func (s sleeper) Plan() (Plan, error) { return s, s.invalid }
func (sleeper) Info() JobInfo {
	return JobInfo{Method: "sleeper", N: 5, D: 2, K: 3, Parties: 1, Rounds: 3}
}
func (sleeper) Outline() (*Outline, error) { return &Outline{Rounds: 3}, nil }
func (s sleeper) Run(ctx context.Context, rt *Runtime) (*Result, error) {
	for it := range 3 {
		span := rt.Begin(PhaseAssign, it, 0)
		if s.cancel != nil {
			s.cancel()
		}
		err := rt.Pool().Run(ctx, 10, func(_, _ int) {})
		rt.End(span)
		if err != nil {
			return nil, err
		}
		rt.IterationEnd(it, 3, Seen{})
	}
	return &Result{Method: "sleeper"}, nil
}

type recorder struct{ events []string }

func (r *recorder) JobBegin(i JobInfo)     { r.events = append(r.events, "begin "+i.Method) }
func (r *recorder) PhaseBegin(s Span)      { r.events = append(r.events, "phase "+s.Phase.String()) }
func (r *recorder) PhaseEnd(s Span)        { r.events = append(r.events, "end "+s.Phase.String()) }
func (r *recorder) IterationEnd(Iteration) { r.events = append(r.events, "iteration") }
func (r *recorder) JobEnd(_ *Result, err error) {
	if err != nil {
		r.events = append(r.events, "failed")
		return
	}
	r.events = append(r.events, "done")
}

func TestRunReportsToObservers(t *testing.T) {
	rec := new(recorder)
	e, err := New(WithWorkers(2), WithObserver(rec))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	res, err := e.Run(context.Background(), sleeper{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Timings["assign"].Count != 3 || len(res.Timings) != 1 || res.Version != Version {
		t.Errorf("timings %v, version %q", res.Timings, res.Version)
	}
	step := []string{"phase assign", "end assign", "iteration"}
	want := slices.Concat([]string{"begin sleeper"}, step, step, step, []string{"done"})
	if !slices.Equal(rec.events, want) {
		t.Errorf("events %v, want %v", rec.events, want)
	}
}

// meter is an observer of progress.
type meter struct {
	recorder
	seen []string
}

func (m *meter) Progress(what string, done, total int) {
	m.seen = append(m.seen, fmt.Sprint(what, " ", done, " of ", total))
}

func TestProgressReachesObservers(t *testing.T) {
	m := new(meter)
	e, err := New(WithWorkers(1), WithObserver(new(recorder)), WithObserver(m))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.Pool().Report("starts", 3, 8)
	if !slices.Equal(m.seen, []string{"starts 3 of 8"}) {
		t.Errorf("seen %v", m.seen)
	}
}

func TestRunRefuses(t *testing.T) {
	e, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(context.Background(), nil); !fault.IsRequest(err) {
		t.Errorf("error of no job is %v", err)
	}
	//lint:ignore SA1012 a nil context is what is refused
	if _, err := e.Run(nil, sleeper{}); !fault.IsRequest(err) {
		t.Errorf("error of no context is %v", err)
	}
	bad := fault.Range("K", 0, "at least 1")
	if _, err := e.Run(context.Background(), sleeper{invalid: bad}); !errors.Is(err, bad) {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := e.Run(ctx, sleeper{cancel: cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("error after a cancel is %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Run(context.Background(), sleeper{}); !fault.IsRequest(err) {
		t.Errorf("error of a closed engine is %v", err)
	}
	for _, n := range []int{0, -1, MaxWorkers + 1} {
		if _, err := New(WithWorkers(n)); !fault.IsRequest(err) {
			t.Errorf("WithWorkers(%d): error is %v", n, err)
		}
	}
}

func TestShardsCoverEveryPointOnce(t *testing.T) {
	for _, d := range []int{1, 2, 33, 784, 100000} {
		for _, n := range []int{5000, 1, 33, 70000} {
			next := 0
			for i, s := range Shards(n, d) {
				if s.Index != i || s.Lo != next || s.Lo%16 != 0 || s.Hi <= s.Lo {
					t.Fatalf("d %d: shard %+v after %d", d, s, next)
				}
				if s.Hi-s.Lo > MinShardPoints && (s.Hi-s.Lo)*d*4 > ShardBytes {
					t.Fatalf("d %d: shard %+v is larger than %d bytes", d, s, ShardBytes)
				}
				next = s.Hi
			}
			if next != n {
				t.Fatalf("d %d: shards end at %d, want %d", d, next, n)
			}
		}
	}
}

func TestSummariseByNearestRank(t *testing.T) {
	var d []int64
	for i := int64(100); i >= 1; i-- {
		d = append(d, i)
	}
	if got, want := Summarise(d), (Timing{100, 5050, 50, 90, 99, 100}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := Summarise([]int64{7}), (Timing{1, 7, 7, 7, 7, 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestResultJSONHasTheContractFields(t *testing.T) {
	b, err := json.Marshal(&Result{})
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"method", "n", "d", "k", "parties", "iterations", "calibration", "epsilon", "delta",
		"centroids", "nicv", "wcss", "empty_clusters", "timings", "comm", "seed", "version"} {
		if _, ok := m[f]; !ok {
			t.Errorf("field %q is missing", f)
		}
	}
	comm, _ := m["comm"].(map[string]any)
	for _, f := range []string{"rounds", "bytes_sent", "bytes_received"} {
		if _, ok := comm[f]; !ok {
			t.Errorf("field comm.%s is missing", f)
		}
	}
}
