package profile

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/kernels"
)

// steps is a job of three iterations with two phases each, one of them parallel.
type steps struct {
	inside func()
}

func (steps) Method() string                      { return "steps" }
func (s steps) Plan() (engine.Plan, error)        { return s, nil }
func (steps) Info() engine.JobInfo                { return engine.JobInfo{Method: "steps", Rounds: 3} }
func (s steps) Outline() (*engine.Outline, error) { return &engine.Outline{Rounds: 3}, nil }
func (s steps) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	for it := range 3 {
		for party := range 2 {
			span := rt.Begin(engine.PhaseAssign, it, party)
			err := rt.Pool().Run(ctx, 8, func(_, _ int) {
				if s.inside != nil {
					s.inside()
				}
				time.Sleep(200 * time.Microsecond)
			})
			rt.End(span)
			if err != nil {
				return nil, err
			}
		}
		span := rt.Begin(engine.PhaseNoise, it, engine.Server)
		allocated = make([]byte, 1<<10)
		time.Sleep(300 * time.Microsecond)
		rt.End(span)
		rt.IterationEnd(it, 3, engine.Seen{})
	}
	return &engine.Result{N: 1000, D: 2, K: 5}, nil
}

var allocated []byte

func observe(t *testing.T, o Options, job engine.Job) *Profiler {
	t.Helper()
	o.Workers = 2
	p := New(o)
	e := enginetest.New(t, engine.WithWorkers(2), engine.WithObserver(p))
	enginetest.Run(t, e, job)
	return p
}

func TestProfilerSeesEverySpanAndWorker(t *testing.T) {
	runs := observe(t, Options{}, steps{}).Runs()
	if len(runs) != 1 || len(runs[0].Spans) != 9 || len(runs[0].Iterations) != 3 || runs[0].Result.N != 1000 {
		t.Fatalf("got %d runs, %d spans, %d iterations", len(runs), len(runs[0].Spans), len(runs[0].Iterations))
	}
	var stays [2]int
	for _, s := range runs[0].Stays {
		stays[s.Worker]++
		if s.End < s.Begin {
			t.Errorf("a stay ends before it begins: %+v", s)
		}
	}
	if stays != [2]int{6, 6} {
		t.Errorf("stays by worker are %v, want 6 each", stays)
	}
	s := Summarise(runs, nil, 2, Limits{Differences: 1e12, Bandwidth: 1e12}, nil)
	if s.Iterations.Count != 3 || len(s.Phases) != 2 || s.Phases[0].Name != "assign" || s.Phases[0].Count != 6 ||
		len(s.Rounds) != 3 {
		t.Fatalf("summary %+v", s)
	}
	sum := s.OutsideShare
	for _, p := range s.Phases {
		sum += p.Share
	}
	if math.Abs(sum-1) > 1e-6 {
		t.Errorf("the shares add up to %v", sum)
	}
	if p := s.Phases[0]; p.PointsPerSecond <= 0 || math.Abs(p.FLOPS/p.PointsPerSecond-2*5*differenceFLOPs) > 1e-6 ||
		math.Abs(p.Bandwidth/p.PointsPerSecond-8) > 1e-6 {
		t.Errorf("rates %+v", p)
	}
}

func TestAllocationsAreCountedByPhase(t *testing.T) {
	p := observe(t, Options{Allocations: true}, steps{})
	s := Summarise(p.Runs(), &p.Runs()[0], 2, Limits{}, nil)
	for _, ph := range s.Phases {
		if ph.Name == "noise" && (ph.Allocations < 1 || ph.Allocations > 20) {
			t.Errorf("noise allocates %v times, want about 1", ph.Allocations)
		}
	}
}

// TestLabelsReachTheWorkers looks at the goroutines' labels while a region runs.
func TestLabelsReachTheWorkers(t *testing.T) {
	var mu sync.Mutex
	var text string
	observe(t, Options{Labels: true, Regions: true}, steps{inside: func() {
		var b bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
			t.Error(err)
		}
		mu.Lock()
		text += b.String()
		mu.Unlock()
	}})
	if !strings.Contains(text, `"phase":"assign"`) || !strings.Contains(text, `"client":"2"`) ||
		!strings.Contains(text, `"iteration":"3"`) {
		t.Errorf("labels are missing in\n%.2000s", text)
	}
}

// run is two iterations whose times are known: the parties overlap.
func known() Run {
	span := func(p engine.Phase, it, party, from, to int) Span {
		return Span{Span: engine.Span{Phase: p, Iteration: it, Party: party, Begin: time.Duration(from),
			End: time.Duration(to)}}
	}
	return Run{
		Spans: []Span{
			span(engine.PhaseAssign, 0, 0, 100, 200), span(engine.PhaseNoise, 0, engine.Server, 200, 300),
			span(engine.PhaseAssign, 1, 1, 360, 460), span(engine.PhaseAssign, 1, 0, 320, 400),
			span(engine.PhaseNoise, 1, engine.Server, 480, 500),
		},
		Iterations: []engine.Iteration{{Index: 0, Begin: 0, End: 300}, {Index: 1, Begin: 300, End: 520}},
		Stays:      []Stay{{Worker: 0, Begin: 320, End: 400}, {Worker: 1, Begin: 360, End: 460}},
		Result:     &engine.Result{N: 10, D: 1, K: 1},
	}
}

func TestSharesOfOverlappingParties(t *testing.T) {
	r := known()
	its := r.iterations()
	if its[0].begin != 100 || its[1].begin != 320 {
		t.Errorf("iterations begin at %v and %v, want 100 and 320: set-up does not count", its[0].begin, its[1].begin)
	}
	parts, outside := its[1].divide()
	// In order of time: party 1 alone 40, both 40, party 2 alone 60.
	if outside != 40 || parts[0] != 60 || parts[1] != 80 || parts[2] != 20 {
		t.Errorf("parts %v, outside %v", parts, outside)
	}
}

// Rates leave out the records that a phase did not look at.
func TestSettledRecords(t *testing.T) {
	r := known()
	all := Summarise([]Run{r}, nil, 2, Limits{}, nil).Phases[0]
	r.Spans[2].Settled, r.Spans[3].Settled = 3, 2 // of 2 iterations of 10
	some := Summarise([]Run{r}, nil, 2, Limits{}, nil).Phases[0]
	if all.Settled != 0 || some.Settled != 0.25 || some.PointsPerSecond != all.PointsPerSecond ||
		some.FLOPS != 0.75*all.FLOPS || some.Bandwidth != 0.75*all.Bandwidth {
		t.Errorf("all looked at: %+v\nsome settled: %+v", all, some)
	}
}

// Rates count a record each time that a phase looks at it.
func TestRepeatedLooks(t *testing.T) {
	r := known()
	once := Summarise([]Run{r}, nil, 2, Limits{}, nil).Phases[0]
	r.Spans[2].Again, r.Spans[3].Again = 10, 20 // of 2 iterations of 10
	often := Summarise([]Run{r}, nil, 2, Limits{}, nil).Phases[0]
	if once.Looks != 0 || often.Looks != 2.5 || often.PointsPerSecond != once.PointsPerSecond ||
		math.Abs(often.FLOPS/once.FLOPS-2.5) > 1e-9 || math.Abs(often.Bandwidth/once.Bandwidth-2.5) > 1e-9 {
		t.Errorf("once: %+v\noften: %+v", once, often)
	}
}

// TestJobsWithoutIterations profiles a run that reports none, and one that goes
// on after its last.
func TestJobsWithoutIterations(t *testing.T) {
	r := known()
	r.Iterations = nil
	s := Summarise([]Run{r}, nil, 2, Limits{}, nil)
	if s.Iterations.Count != 1 || s.Iterations.TotalNS != 400 || len(s.Rounds) != 1 || s.Rounds[0].Index != restIndex ||
		len(s.Phases) != 2 {
		t.Errorf("without iterations: %+v", s)
	}
	r = known()
	r.Spans = append(r.Spans, Span{Span: engine.Span{Phase: engine.PhaseSearch, Party: engine.Server,
		Begin: 600, End: 700}})
	s = Summarise([]Run{r}, nil, 2, Limits{}, nil)
	if s.Iterations.Count != 2 || len(s.Rounds) != 3 || s.Rounds[2].Index != restIndex || s.Rounds[2].WallNS != 100 ||
		s.Rounds[2].Phases["search"] != 100 {
		t.Errorf("with a rest: %+v", s)
	}
	var b bytes.Buffer
	if err := s.WriteText(&b, 0); err != nil || !strings.Contains(b.String(), "rest") {
		t.Errorf("text %q, error %v", b.String(), err)
	}
}

func TestTimeline(t *testing.T) {
	var b bytes.Buffer
	if err := WriteTimeline(&b, []Run{known()}, 2); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if !strings.Contains(lines[0], "Iteration 2, 200 ns long") {
		t.Errorf("head %q", lines[0])
	}
	for i, want := range map[int]string{1: "server", 2: "party 1   AAAA", 3: "party 2   ....", 4: "worker 1  AAAA",
		5: "worker 2  ...."} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	if !strings.Contains(lines[6], "A assign") || !strings.Contains(lines[6], "N noise") {
		t.Errorf("legend %q", lines[6])
	}
}

func TestChromeEvents(t *testing.T) {
	r := known()
	var b bytes.Buffer
	if err := WriteChrome(&b, &r); err != nil {
		t.Fatal(err)
	}
	var got struct {
		TraceEvents []struct {
			Name, Ph string
			TS, Dur  float64
			PID, TID int
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, e := range got.TraceEvents {
		if e.Ph == "X" {
			counts[e.Name]++
		}
	}
	if counts["assign"] != 3 || counts["noise"] != 2 || counts["iteration"] != 2 || counts["region"] != 2 {
		t.Errorf("events %v", counts)
	}
}

func TestMeasureLimits(t *testing.T) {
	pool := engine.NewPool(2)
	defer pool.Close()
	l, err := MeasureLimits(context.Background(), pool)
	if err != nil || !(l.Bandwidth > 1e8) || strings.HasPrefix(kernels.ISA(), "avx") &&
		!(l.Differences > 1e9 && l.Products > 1e9) {
		t.Errorf("limits %+v, error %v", l, err)
	}
}

func TestSummaryText(t *testing.T) {
	r := known()
	s := Summarise([]Run{r}, &r, 2, Limits{Differences: 1e12, Bandwidth: 1e12}, new(Counters))
	var b bytes.Buffer
	if err := s.WriteText(&b, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 iterations in 1 run on 2 workers", "outside phases", "allocs", "cache misses",
		"Iterations, medians over the runs"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, b.String())
		}
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}

// BenchmarkSpan is the cost of one observed span: eight of them and two stays
// make an iteration, which has to stay under 1% of a millisecond.
func BenchmarkSpan(b *testing.B) {
	p := New(Options{Workers: 1})
	p.JobBegin(engine.JobInfo{})
	s := engine.Span{Phase: engine.PhaseAssign}
	b.ReportAllocs()
	for b.Loop() {
		p.PhaseBegin(s)
		p.PhaseEnd(s)
		if len(p.run.Spans) == cap(p.run.Spans) {
			p.run.Spans = p.run.Spans[:0]
		}
	}
}
