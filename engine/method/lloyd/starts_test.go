package lloyd

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// startParts are the records of three clients.
func startParts(t *testing.T) []dataset.Part {
	t.Helper()
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 900, D: 2, K: 4, Seed: 3})
	parts, err := norm.Split(3, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// The server's first centroids reach every client in one message, are those of its own randomness, and
// the plan has counted them; without the option no such message is sent.
func TestServerDrawsFirstCentroids(t *testing.T) {
	parts := startParts(t)
	for _, x := range []struct {
		method     Method
		aggregator Aggregator
		init       step.Init
	}{{Lloyd, ByServer, step.Sphere}, {CLloyd, ByServer, step.Random}, {Lloyd, Naive, step.Sphere},
		{FastLloyd, ByServer, step.Sphere},
		{SuLloyd, ByServer, step.Random}} {
		var results [2]*engine.Result
		for i, by := range []InitBy{ByClients, ByTheirServer} {
			seed, views := uint64(5), &protocol.Views{}
			job := &Job{Method: x.method, Aggregator: x.aggregator, Init: x.init, InitBy: by, Views: views,
				Problem: protocol.Problem{Clients: parts, K: 4, Seed: &seed, Iterations: 3, NoQuality: true}}
			if x.method.Private() {
				job.Budget = privacy.Budget{Epsilon: 1, Delta: -1}
			}
			eng, err := engine.New()
			if err != nil {
				t.Fatal(err)
			}
			results[i], err = eng.Run(context.Background(), job)
			eng.Close()
			if err != nil {
				t.Fatalf("%+v, %s: %v", x, by, err)
			}
			var sent [][]byte
			for _, v := range views.Seen {
				if v.Message != nil && v.Of == protocol.Server && v.What == "first centroids of the server" {
					sent = append(sent, v.Message)
				}
			}
			if by == ByClients {
				if len(sent) != 0 {
					t.Errorf("%+v: the server sends first centroids unasked", x)
				}
				continue
			}
			if len(sent) != 3 || len(sent[0]) != 8*4*2 || !bytes.Equal(sent[0], sent[1]) || !bytes.Equal(sent[1], sent[2]) {
				t.Errorf("%+v: %d messages", x, len(sent))
			}
			plan, err := job.Plan()
			if err != nil {
				t.Fatal(err)
			}
			outline, err := plan.Outline()
			if err != nil {
				t.Fatal(err)
			}
			got, want := results[i].Comm, outline.Bytes
			if results[i].Iterations == 3 && (!slices.Equal(got.BytesSent, want.BytesSent) ||
				!slices.Equal(got.BytesReceived, want.BytesReceived) || got.Rounds != want.Rounds) {
				t.Errorf("%+v: messages %+v, planned %+v", x, got, want)
			}
		}
		if slices.EqualFunc(results[0].Centroids, results[1].Centroids, slices.Equal[[]float64]) && x.method.Private() {
			t.Errorf("%+v: who draws makes no difference", x)
		}
	}
}

// A client refuses first centroids that are not in the box.
func TestServersFirstCentroidsMustLieInTheBox(t *testing.T) {
	parts := startParts(t)
	for _, bad := range []float64{1.5, math.NaN(), math.Inf(-1)} {
		seed := uint64(1)
		job := &Job{Method: Lloyd, Init: step.Sphere, InitBy: ByTheirServer,
			Problem: protocol.Problem{Clients: parts, K: 4, Seed: &seed, NoQuality: true}}
		p := planOf(t, job)
		var programs []protocol.Program
		for _, part := range parts {
			programs = append(programs, newClient(p, step.Records{Part: part},
				kernels.NewAccumulator(p.k, p.d, p.fraction), protocol.NewPrivate(p.length)).run)
		}
		server := func(ctx context.Context, party *protocol.Party) (*protocol.Outcome, error) {
			centroids := make([]float64, 8)
			centroids[7] = bad
			for q := range protocol.Role(3) {
				if err := party.Send(ctx, p.drawn, q, encodeCentroids(centroids)); err != nil {
					return nil, err
				}
			}
			return protocol.Serve(ctx, party)
		}
		pool := engine.NewPool(1)
		s := protocol.Start(engine.NewRuntime(pool), p.Plan, programs, server, protocol.Options{})
		if err := s.Run(context.Background()); err == nil {
			t.Errorf("%v is taken for a coordinate", bad)
		}
		s.Close()
		pool.Close()
	}
}

// A run ends after the first round in which the sum of squares, as runs of fewer rounds measure it,
// changes by less than is asked for.
func TestRunEndsByChangeOfWCSS(t *testing.T) {
	parts := startParts(t)
	eng := enginetest.New(t)
	run := func(iterations int, change float64, init step.Init) *engine.Result {
		seed := uint64(2)
		r := enginetest.Run(t, eng, &Job{Method: Lloyd, Init: init, NInit: 1, WCSSChange: change,
			Problem: protocol.Problem{Clients: parts, K: 7, Seed: &seed, Iterations: iterations}})
		return r
	}
	var wcss []float64 // after so many rounds, from one
	for rounds := 1; rounds <= 14; rounds++ {
		wcss = append(wcss, *run(rounds, 0, step.Sphere).WCSS)
	}
	for _, change := range []float64{30, 3, 0.5} {
		want := 2
		for ; want < 14; want++ {
			// The centroids that round t assigns to are those after t - 1.
			if want >= 3 && math.Abs(wcss[want-2]-wcss[want-3]) < change {
				break
			}
		}
		if got := run(100, change, step.Sphere).Iterations; got != want {
			t.Errorf("a change of %g ends after %d rounds, want %d (%v)", change, got, want, wcss)
		}
	}
	if coarse, fine := run(100, 10, KMeansPlusPlus).Iterations, run(100, 0, KMeansPlusPlus).Iterations; coarse >= fine {
		t.Errorf("plain k-means takes %d rounds by the change of WCSS, %d to rest", coarse, fine)
	}
}

// What nobody can do or tell is refused.
func TestEndsAndStartsThatAreRefused(t *testing.T) {
	parts := startParts(t)
	for name, edit := range map[string]func(*Job){
		"one client":               func(j *Job) { j.Clients, j.InitBy = parts[:1], ByTheirServer },
		"ring":                     func(j *Job) { j.Aggregator, j.InitBy = ByRing, ByTheirServer },
		"records":                  func(j *Job) { j.Init, j.InitBy = SomeRecords, ByTheirServer },
		"unknown":                  func(j *Job) { j.InitBy = "nobody" },
		"change of centroids":      func(j *Job) { j.Release, j.WCSSChange = Centroid, 1 },
		"change under naive":       func(j *Job) { j.Aggregator, j.WCSSChange = Naive, 1 },
		"change under noise":       func(j *Job) { j.Method, j.Budget.Epsilon, j.WCSSChange = SuLloyd, 1, 1 },
		"change of clients":        func(j *Job) { j.Drops, j.WCSSChange = []Drop{{Client: 1}}, 1 },
		"negative change":          func(j *Job) { j.WCSSChange = -1 },
		"change that is no number": func(j *Job) { j.WCSSChange = math.NaN() },
	} {
		job := &Job{Method: Lloyd, Init: step.Sphere, Problem: protocol.Problem{Clients: parts, K: 4}}
		edit(job)
		if _, err := job.Plan(); !fault.IsRequest(err) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
