package lloyd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// A client that fails in the first round leaves the run of the others.
func TestDropOutLeavesTheSurvivors(t *testing.T) {
	seed := uint64(2)
	parts := blobs(t, 900, 2, 4, 3, 7)
	for _, agg := range []Aggregator{ByServer, ByRing} {
		with := run(t, 2, Job{Method: Lloyd, Problem: protocol.Problem{K: 4, Clients: parts, Seed: &seed,
			NoQuality: true}, Aggregator: agg, Drops: []Drop{{1, 0}}})
		without := run(t, 2, Job{Method: Lloyd, Problem: protocol.Problem{K: 4,
			Clients: []dataset.Part{parts[0], parts[2]}, Seed: &seed, NoQuality: true}, Init: step.Sphere})
		if diff := cmp.Diff(without.Centroids, with.Centroids); diff != "" {
			t.Errorf("%s: the survivors' centroids differ:\n%s", agg, diff)
		}
		if with.Comm.BytesSent[1] != 0 {
			t.Errorf("%s: the client that failed sent %d bytes", agg, with.Comm.BytesSent[1])
		}
		if !strings.Contains(ledgerText(t, with), "client 2 failed in round 1") || len(with.Notes) == 0 {
			t.Errorf("%s: the ledger does not say who failed:\n%s", agg, ledgerText(t, with))
		}
	}
}

// After a drop-out the mean of means is that of the clients that are left, up to
// a grid unit for each division.
func TestDropOutRescalesMeans(t *testing.T) {
	seed := uint64(2)
	parts := blobs(t, 900, 2, 4, 3, 7)
	with := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 4, Clients: parts, Seed: &seed, Iterations: 1},
		Release: Centroid, Drops: []Drop{{1, 0}}})
	without := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 4,
		Clients: []dataset.Part{parts[0], parts[2]}, Seed: &seed, Iterations: 1}, Release: Centroid})
	for j := range with.Centroids {
		for h := range with.Centroids[j] {
			if d := math.Abs(with.Centroids[j][h] - without.Centroids[j][h]); d > 4.0/65536 {
				t.Errorf("centroid %d differs by %g", j, d)
			}
		}
	}
}

// The noise of every release has the variance that its place and calibration ask
// for. 2000 rounds of 4 sums in 2 dimensions give 16000 draws; the relative
// deviation of the variance of Laplace noise is sqrt(5/16000) = 1.8%, so 12%
// lies beyond 6 deviations (probability below 1e-6 by Chebyshev-Cantelli for the
// heavy tail and far less in truth).
func TestNoiseHasTheVarianceItShould(t *testing.T) {
	seed := uint64(5)
	parts := blobs(t, 400, 2, 4, 4, 3)
	for _, c := range []struct {
		noise     protocol.NoiseBy
		mechanism protocol.Mechanism
		cal       privacy.Calibration
		agg       Aggregator
		colluders int
		times     float64 // variance over that of one whole draw
	}{
		{protocol.ByServer, protocol.Laplace, privacy.Proven, ByServer, 0, 1},
		{protocol.ByServer, protocol.Gaussian, privacy.Proven, ByServer, 0, 1},
		{protocol.ByServer, protocol.Laplace, privacy.Claimed, ByServer, 0, 1},
		{protocol.ByServer, protocol.Laplace, privacy.Published, ByServer, 0, 1},
		{protocol.ByEach, protocol.Laplace, privacy.Proven, ByServer, 0, 4},
		{protocol.ByEach, protocol.Laplace, privacy.Proven, ByRing, 0, 4},
		{protocol.ByEach, protocol.Gaussian, privacy.Claimed, ByRing, 0, 4},
		{protocol.InShares, protocol.Laplace, privacy.Claimed, ByRing, 2, 2},
		{protocol.InShares, protocol.Gaussian, privacy.Proven, ByServer, 1, 4.0 / 3},
		{protocol.InShares, protocol.Laplace, privacy.Proven, ByServer, 1, 4.0 / 3},
		{protocol.InShares, protocol.Laplace, privacy.Proven, ByRing, 2, 2},
		{protocol.InShares, protocol.Laplace, privacy.Proven, ByServer, 3, 4},
	} {
		job := Job{Method: SuLloyd, Problem: protocol.Problem{K: 4, Clients: parts, Seed: &seed, Noise: c.noise,
			Mechanism: c.mechanism, Calibration: c.cal, Colluders: c.colluders, Iterations: 2000,
			Budget: privacy.Budget{Epsilon: 100, Delta: -1}}, Aggregator: c.agg}
		s, tr := transcribed(t, job)
		v := truthOf(s, tr)
		for _, part := range s.parts {
			sum, n := 0.0, 0.0
			for _, e := range tr {
				if e.What == s.release.Name && e.Viewer == 0 && e.Of == protocol.Server {
					for i := range part.length {
						z := float64(e.Values[part.offset+i] - v[e.Round][part.offset+i])
						sum += z * z
						n++
					}
				}
			}
			scale := part.scales[0].scale / part.unit
			want := c.times * scale * scale
			if c.mechanism == protocol.Laplace {
				want *= 2
			}
			if got := sum / n; math.Abs(got/want-1) > 0.12 {
				t.Errorf("%s noise, %s, %s, %s: variance of the %s %.4g, want %.4g", c.noise, c.mechanism, c.cal, c.agg,
					part.name, got, want)
			}
		}
	}
}

// The published noise of fastlloyd is 1/d of the claimed one, and the proven one
// 2k of it for large clusters.
func TestCalibrationsOfFastLloyd(t *testing.T) {
	parts := blobs(t, 6000, 3, 5, 2, 1)
	scale := func(c privacy.Calibration) float64 {
		p := planOf(t, &Job{Method: FastLloyd, Problem: protocol.Problem{K: 5, Clients: parts, Calibration: c,
			Iterations: 3, Budget: privacy.Budget{Epsilon: 1}}})
		return p.parts[0].scales[0].scale
	}
	claimed, published, proven := scale(privacy.Claimed), scale(privacy.Published), scale(privacy.Proven)
	// B T d / (eta_min eps), eta_min = 2 ceil(6000/(1.25*5*2)) = 960.
	if want := 3 * 3 / 960.0; math.Abs(claimed/want-1) > 1e-6 {
		t.Errorf("claimed scale %g, want %g", claimed, want)
	}
	if math.Abs(published*3/claimed-1) > 1e-6 {
		t.Errorf("published scale %g, claimed %g, want a ratio of d = 3", published, claimed)
	}
	if r := proven / claimed; r < 10 || r > 10.2 {
		t.Errorf("proven scale is %g times the claimed one, want 2k = 10 and a little for the grid", r)
	}
}

// The ledger charges what was asked and no more, whoever adds the noise.
func TestLedgerChargesTheBudget(t *testing.T) {
	seed := uint64(1)
	parts := blobs(t, 2000, 2, 4, 4, 2)
	for _, m := range Methods() {
		if !m.Private() {
			continue
		}
		for _, c := range []privacy.Calibration{privacy.Proven, privacy.Claimed, privacy.Published} {
			for _, mech := range []protocol.Mechanism{protocol.Laplace, protocol.Gaussian} {
				for _, rel := range []privacy.Neighbours{privacy.AddRemove, privacy.ReplaceOne} {
					for _, noise := range []protocol.NoiseBy{protocol.ByServer, protocol.ByEach, protocol.InShares} {
						job := Job{Method: m, Problem: protocol.Problem{K: 4, Clients: parts, Seed: &seed,
							Calibration: c, Mechanism: mech, Neighbours: rel, Noise: noise,
							Budget: privacy.Budget{Epsilon: 0.7, Delta: 1e-6}, NoQuality: true}}
						if m == Relative {
							job.Schedule = LaterCode
						}
						if _, err := job.Plan(); err != nil {
							continue // the table of refusals tests these
						}
						res := run(t, 1, job)
						for _, viewer := range []string{"clients", "outsider"} {
							e := res.Ledger.TotalFor(viewer)
							if e.Epsilon == nil || *e.Epsilon > 0.7*(1+1e-9) || *e.Epsilon < 0.7*0.99 {
								t.Errorf("%s %s %s %s %s: %s see epsilon %v, want 0.7", m, c, mech, rel, noise, viewer,
									e.Epsilon)
							}
						}
						// the result is public: a server that drew the noise has the exact values
						if server := res.Ledger.TotalFor("server"); server.Unbounded != (noise == protocol.ByServer ||
							res.Ledger.TotalFor("clients").Unbounded) {
							t.Errorf("%s %s %s: the server's total is %+v", m, c, noise, server)
						}
					}
				}
			}
		}
	}
}

// Unless something else is asked for, no single role knows the noise of a proven run
// with several clients, and the papers' calibrations have it where the papers do.
func TestWhoAddsTheNoiseByDefault(t *testing.T) {
	for _, c := range []struct {
		job    Job
		m      int
		noise  protocol.NoiseBy
		makers protocol.Makers
	}{
		{Job{Method: SuLloyd}, 1, protocol.ByServer, protocol.Holder},
		{Job{Method: SuLloyd}, 2, protocol.InShares, protocol.EachShare},
		{Job{Method: FastLloyd}, 3, protocol.InShares, protocol.EachShare},
		{Job{Method: Relative, Aggregator: ByRing}, 3, protocol.InShares, protocol.EachShare},
		{Job{Method: Relative, Problem: protocol.Problem{Colluders: 2}}, 3, protocol.InShares, protocol.EachShare},
		{Job{Method: Relative, Drops: []Drop{{1, 1}}}, 2, protocol.ByEach, protocol.EachWhole}, // no share would be left
		{Job{Method: CSuLloyd, Problem: protocol.Problem{Noise: protocol.ByServer}}, 2, protocol.ByServer,
			protocol.ServerAlone},
		{Job{Method: CSuLloyd, Problem: protocol.Problem{Calibration: privacy.Claimed}}, 2, protocol.ByServer,
			protocol.ServerAlone},
		{Job{Method: SuLloyd, Problem: protocol.Problem{Calibration: privacy.Claimed}, Aggregator: ByRing}, 2,
			protocol.ByEach,
			protocol.EachWhole},
		{Job{Method: FastLloyd, Problem: protocol.Problem{Calibration: privacy.Published}}, 1, protocol.ByServer,
			protocol.ServerAlone},
	} {
		job := c.job
		job.K, job.Clients, job.Budget = 3, blobs(t, 120, 2, 3, c.m, 1), privacy.Budget{Epsilon: 1, Delta: -1}
		p := planOf(t, &job)
		if p.job.Noise != c.noise || p.release.Makers != c.makers {
			t.Errorf("%s %s, %d clients: noise by %q, makers %d, want %q and %d", c.job.Method, c.job.Calibration, c.m,
				p.job.Noise, p.release.Makers, c.noise, c.makers)
		}
		ledger, err := p.Ledger(nil)
		if err != nil {
			t.Fatal(err)
		}
		known := c.makers == protocol.ServerAlone
		if total := ledger.TotalFor(privacy.Server); c.makers != protocol.Holder && total.Unbounded != known {
			t.Errorf("%s %s, %d clients: the server's total is %+v", c.job.Method, c.job.Calibration, c.m, total)
		}
	}
}

// The claimed calibration of a constrained method shows its true epsilon
// (THEOREMS.md T1): 2d((k-1) + lo/(lo+1)) per coordinate of the claim.
func TestLedgerShowsTheTrueEpsilonOfAClaim(t *testing.T) {
	seed := uint64(1)
	res := run(t, 1, Job{Method: FastLloyd, Problem: protocol.Problem{K: 4, Clients: blobs(t, 2000, 2, 4, 2, 2),
		Seed: &seed, Calibration: privacy.Claimed, Budget: privacy.Budget{Epsilon: 1}}})
	e := res.Ledger.TotalFor("clients")
	if e.TrueEpsilon == nil || *e.TrueEpsilon < 7.9 || *e.TrueEpsilon > 8 {
		t.Errorf("true epsilon %v, want just below 2k = 8", e.TrueEpsilon)
	}
	if text := ledgerText(t, res); !strings.Contains(text, "true") {
		t.Errorf("the ledger does not show it:\n%s", text)
	}
	// The released code truncates its noise toward zero: ln 2 more for each of the d sums and the
	// count that a record changes, in every round (T6 vii).
	res = run(t, 1, Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: blobs(t, 300, 2, 3, 2, 2),
		Seed: &seed, Calibration: privacy.Published, Iterations: 4, Budget: privacy.Budget{Epsilon: 1}}})
	e = res.Ledger.TotalFor("clients")
	if want := 1 + 4*3*math.Ln2; e.TrueEpsilon == nil || math.Abs(*e.TrueEpsilon/want-1) > 1e-6 ||
		math.Abs(*e.Epsilon-1) > 1e-6 {
		t.Errorf("truncated noise: epsilon %v, true epsilon %v, want %v", e.Epsilon, e.TrueEpsilon, want)
	}
}

func ledgerText(t *testing.T, res *engine.Result) string {
	t.Helper()
	var b strings.Builder
	if err := res.Ledger.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Each client sends and receives one vector of 8-byte words per round, with no
// header: the bytes of FastLloyd Table 3.
func TestCommunicationOfTable3(t *testing.T) {
	seed := uint64(1)
	for _, c := range []struct {
		k, d  int
		bytes int64 // of both clients, both ways, per iteration
	}{{2, 2, 128}, {2, 5, 320}, {5, 2, 320}, {5, 5, 800}, {3, 2, 192}, {15, 2, 960}} {
		res := run(t, 1, Job{Method: FastLloyd, Problem: protocol.Problem{K: c.k,
			Clients: blobs(t, 400, c.d, c.k, 2, 3), Seed: &seed, Budget: privacy.Budget{Epsilon: 5}}})
		sum := int64(0)
		for i := range 2 {
			sum += res.Comm.BytesSent[i] + res.Comm.BytesReceived[i]
		}
		if got := sum / int64(res.Iterations); got != c.bytes {
			t.Errorf("k=%d d=%d: %d bytes per iteration, want %d", c.k, c.d, got, c.bytes)
		}
		if res.Comm.Rounds != res.Iterations {
			t.Errorf("%d rounds for %d iterations", res.Comm.Rounds, res.Iterations)
		}
	}
}

// Noisy sums, counts and centroids are brought into their domains by the rule of
// each level: sums into [-n, n], counts into the sizes, centroids into the box. The
// released code takes the sizes at one client.
func TestPostProcessingOfEachLevel(t *testing.T) {
	seed := uint64(1)
	parts := blobs(t, 400, 1, 2, 2, 3) // sizes 80 to 125 per client, so 160 to 250 in all
	for _, c := range []struct {
		sum, count, centroid step.Post
		sumIn, countIn       float64 // what arrives
		want                 float64
		calibration          privacy.Calibration
	}{
		{step.Keep, step.Keep, step.Keep, 300, 200, 1.5, ""},
		{step.Keep, step.Keep, step.Fold, 300, 200, 0.5, ""},
		{step.Keep, step.Keep, step.Truncate, 300, 200, 1, ""},
		{step.Truncate, step.Keep, step.Keep, 300, 200, 250.0 / 200, ""},
		{step.Fold, step.Keep, step.Keep, 300, 200, 1, ""}, // 500 - 300 = 200
		{step.Keep, step.Truncate, step.Keep, 100, 50, 100.0 / 160, ""},
		{step.Keep, step.Truncate, step.Keep, 100, 900, 100.0 / 250, ""},
		{step.Keep, step.Fold, step.Keep, 100, 140, 100.0 / 180, ""}, // 320 - 140 = 180
		{step.Truncate, step.Truncate, step.Fold, -900, 10, 2*-1 + 250.0/160, ""},
		{step.Truncate, step.Keep, step.Keep, 300, 200, 125.0 / (200 + 1e-6), privacy.Published},
		{step.Keep, step.Fold, step.Keep, 100, 140, 100.0 / (110 + 1e-6), privacy.Published}, // 250 - 140 = 110
	} {
		p := planOf(t, &Job{Method: CSuLloyd, Problem: protocol.Problem{K: 2, Clients: parts, Seed: &seed,
			Budget: privacy.Budget{Epsilon: 1}, Calibration: c.calibration}, Post: c.centroid, PostSum: c.sum,
			PostCount: c.count})
		if p.m*p.lo != 160 || p.m*p.hi != 250 {
			t.Fatalf("sizes %d to %d", p.m*p.lo, p.m*p.hi)
		}
		s, words := newModel(p), make([]int64, p.length)
		for j := range 2 {
			words[j] = int64(c.sumIn * p.scale)
			words[2+j] = int64(c.countIn)
		}
		s.update(0, words)
		if got := s.centroids[0]; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("sum %s, count %s, centroid %s: %g / %g gives %g, want %g", c.sum, c.count, c.centroid, c.sumIn,
				c.countIn, got, c.want)
		}
	}
}

// Beyond the radius a record belongs to no cluster (FastLloyd §7.1).
func TestRadiusLeavesRecordsUnassigned(t *testing.T) {
	seed := uint64(7)
	parts := blobs(t, 400, 2, 2, 1, 3)
	job := Job{Method: CLloyd, Problem: protocol.Problem{K: 2, Clients: parts, Seed: &seed, Iterations: 1,
		Start: []float64{-0.6, -0.6, 0.6, 0.6}}, EtaMinAlpha: 1000, EtaMaxAlpha: 2, Radius: 0.4}
	s, tr := transcribed(t, job)
	start := s.atStart()
	one := &client{Plan: s, points: *parts[0].Points}
	want := int64(0)
	for i := range parts[0].Points.N {
		for j := range 2 {
			if _, length := start.offset(one, i, j); math.Sqrt(float64(length)) <= 0.4*s.scale {
				want++
				break
			}
		}
	}
	if want == 0 || want == 400 {
		t.Fatalf("%d of 400 records are within the radius: the case shows nothing", want)
	}
	for _, e := range tr {
		if counts := e.Values[4:]; e.Viewer == e.Of && counts[0]+counts[1] != want {
			t.Errorf("%v records in clusters, %d are within the radius", counts, want)
		}
	}
}

// A schedule gives constrained assignment and its noise a radius of their own in
// each round (FastLloyd §7.1, equation 19 and Theorem 7.1).
func TestRadiusByRound(t *testing.T) {
	seed := uint64(1)
	parts := blobs(t, 400, 2, 5, 1, 3)
	loose := Job{Problem: protocol.Problem{K: 2, Clients: parts, Seed: &seed, NoQuality: true}, EtaMinAlpha: 1000,
		EtaMaxAlpha: 2, Release: Centroid}
	plain := func(rounds int, radius float64, schedule Schedule, start []float64) []float64 {
		job := loose
		job.Method, job.Iterations, job.Radius, job.Schedule, job.Start = CLloyd, rounds, radius, schedule, start
		return slices.Concat(run(t, 1, job).Centroids...)
	}
	first := plain(1, math.Sqrt2/2, "", nil)
	if got, want := plain(2, 0, Sqrt, nil), plain(1, 0.5, "", first); !slices.Equal(got, want) {
		t.Errorf("two rounds give %v, one after the other %v", got, want)
	}
	if slices.Equal(plain(2, 0, Sqrt, nil), plain(2, math.Sqrt2/2, "", nil)) {
		t.Error("the second radius changes nothing here")
	}
	// The released code stays with the first radius: without much noise it is seen.
	code := loose
	code.Method, code.Release, code.Iterations, code.Schedule, code.Calibration, code.Budget = FastLloyd, "", 2, Sqrt,
		privacy.Published, privacy.Budget{Epsilon: 1e9}
	code.Start = []float64{-0.5, -0.25, 0.5, 0.25}
	if got, want := slices.Concat(run(t, 1, code).Centroids...),
		plain(2, math.Sqrt2/2, "", code.Start); !slices.Equal(got, want) {
		t.Errorf("the released code gives %v, want %v", got, want)
	}
	if remark := run(t, 1, code).Ledger.Entries()[1].Remark; !strings.Contains(remark, "neither is Theorem 7.1") {
		t.Errorf("the ledger says %q", remark)
	}
	for _, c := range []struct {
		method      Method
		calibration privacy.Calibration
		want        [4]float64 // sensitivity by round; centroids times lo
	}{
		{FastLloyd, privacy.Claimed, [4]float64{2, 2, 4 / math.Sqrt(6), math.Sqrt2}},
		{FastLloyd, privacy.Published, [4]float64{1, 1. / 2, 1. / 3, 1. / 4}},
		{CSuLloyd, privacy.Claimed, [4]float64{2, 2, 2, 2}},
		{CSuLloyd, privacy.Published, [4]float64{2, 1, 2. / 3, 1. / 2}},
	} {
		job := Job{Method: c.method, Problem: protocol.Problem{Calibration: c.calibration, K: 2, Clients: parts,
			Seed: &seed, Iterations: 4, Budget: privacy.Budget{Epsilon: 1}}, Schedule: Sqrt}
		p := planOf(t, &job)
		unit := 1.0
		if c.method == FastLloyd {
			unit = float64(p.m * p.lo)
		}
		for i, s := range p.parts[0].scales {
			if math.Abs(s.value*unit-c.want[i]) > 1e-9 {
				t.Errorf("%s, %s, round %d: sensitivity %g, want %g", c.method, c.calibration, i+1, s.value*unit,
					c.want[i])
			}
		}
	}
}

// Without noise an empty cluster keeps its centroid, and goes to the origin as in
// the released code.
func TestEmptyClusters(t *testing.T) {
	seed := uint64(1)
	parts := blobs(t, 300, 2, 1, 2, 3)
	all := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 1, Clients: parts, Seed: &seed, Iterations: 1}})
	far := []float64{-all.Centroids[0][0], -all.Centroids[0][1]}
	start := slices.Concat(all.Centroids[0], []float64{math.Copysign(1, far[0]), math.Copysign(1, far[1])})
	for _, c := range []struct {
		calibration privacy.Calibration
		want        []float64
	}{{"", start[2:]}, {privacy.Published, []float64{0, 0}}} {
		res := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 2, Clients: parts, Seed: &seed,
			Iterations: 1, Start: start, Calibration: c.calibration}, Init: step.Sphere})
		if got := res.Centroids[1]; !slices.Equal(got, c.want) {
			t.Errorf("calibration %q: the empty cluster is at %v, want %v", c.calibration, got, c.want)
		}
	}
}

// A small ring gives the same result in half the bytes.
func TestRing32(t *testing.T) {
	seed := uint64(1)
	job := Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: blobs(t, 600, 2, 3, 2, 3), Seed: &seed,
		Budget: privacy.Budget{Epsilon: 5}}}
	wide := run(t, 1, job)
	job.RingBits = 32
	narrow := run(t, 1, job)
	if diff := cmp.Diff(wide.Centroids, narrow.Centroids); diff != "" {
		t.Errorf("results differ:\n%s", diff)
	}
	if 2*narrow.Comm.BytesSent[0] != wide.Comm.BytesSent[0] {
		t.Errorf("%d bytes sent in the small ring, %d in the large one", narrow.Comm.BytesSent[0],
			wide.Comm.BytesSent[0])
	}
}

// Without noise a run ends when nothing moves any more.
func TestStopsWhenNothingMoves(t *testing.T) {
	seed := uint64(1)
	parts := blobs(t, 600, 2, 3, 2, 3)
	res := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts, Seed: &seed,
		Iterations: 500}, Init: step.Sphere})
	if res.Iterations >= 500 {
		t.Fatalf("%d iterations", res.Iterations)
	}
	coarse := run(t, 1, Job{Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts, Seed: &seed,
		Iterations: 500}, Init: step.Sphere, Tolerance: 10})
	if coarse.Iterations != 1 {
		t.Errorf("tolerance 10 runs %d iterations", coarse.Iterations)
	}
}

// refusal is a job that is refused as a wrong request, in words that name what is wrong.
type refusal struct {
	name string
	job  Job
	want []string
}

func refused(t *testing.T, jobs []refusal) {
	t.Helper()
	for _, c := range jobs {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.job.Plan()
			if err == nil {
				t.Fatal("accepted")
			}
			if !fault.IsRequest(err) {
				t.Errorf("%v is not a wrong request", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
		})
	}
}

// enough is a budget that nobody refuses.
var enough = privacy.Budget{Epsilon: 1, Delta: 1e-6}

func TestOptionsThatAreRefused(t *testing.T) {
	parts := blobs(t, 60, 2, 3, 2, 1)
	refused(t, []refusal{
		{"unknown method", Job{Method: "loyd", Problem: protocol.Problem{K: 3, Clients: parts}},
			[]string{"method", "loyd", "fastlloyd"}},
		{"kmeans++ under privacy", Job{Method: Relative, Problem: protocol.Problem{K: 3, Clients: parts, Budget: enough},
			Init: KMeansPlusPlus}, []string{"kmeans++", "relative"}},
		{"starts of sphere", Job{Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts}, Init: step.Sphere,
			NInit: 2}, []string{"n-init", "kmeans++"}},
		{"starts from given centroids", Job{Method: Lloyd, Problem: protocol.Problem{K: 1, Clients: parts,
			Start: []float64{0, 0}}, NInit: 2}, []string{"n-init", "given"}},
		{"starts of clloyd", Job{Method: CLloyd, Problem: protocol.Problem{K: 3, Clients: parts}, NInit: 2},
			[]string{"n-init"}},
		{"exclusivity without constraints", Job{Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts},
			Exclusivity: 2}, []string{"exclusivity", "clloyd"}},
		{"radius without constraints", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Budget: enough}, Radius: 1}, []string{"radius"}},
		{"radius is negative", Job{Method: CLloyd, Problem: protocol.Problem{K: 3, Clients: parts}, Radius: -1},
			[]string{"radius"}},
		{"two radius rules", Job{Method: CLloyd, Problem: protocol.Problem{K: 3, Clients: parts}, Radius: 1,
			Schedule: Sqrt}, []string{"radius"}},
		{"a schedule without a radius", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Budget: enough}, Schedule: Sqrt}, []string{"radius-schedule"}},
		{"means of unconstrained clusters", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Budget: enough}, Release: Centroid}, []string{"release", "fastlloyd"}},
		{"nonexclusive with a radius", Job{Method: CLloyd, Problem: protocol.Problem{K: 3, Clients: parts},
			NonExclusive: true, Radius: 1}, []string{"nonexclusive"}},
		{"centroids of relative", Job{Method: Relative, Problem: protocol.Problem{K: 3, Clients: parts, Budget: enough},
			Release: Centroid}, []string{"release"}},
	})
}

func TestBudgetsThatAreRefused(t *testing.T) {
	parts := blobs(t, 60, 2, 3, 2, 1)
	refused(t, []refusal{
		{"epsilon is 0", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts}}, []string{"epsilon"}},
		{"epsilon is NaN", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Budget: privacy.Budget{Epsilon: math.NaN()}}}, []string{"epsilon"}},
		{"epsilon is infinite", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Budget: privacy.Budget{Epsilon: math.Inf(1)}}}, []string{"epsilon"}},
		{"delta is 1", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Budget: privacy.Budget{Epsilon: 1, Delta: 1}}}, []string{"delta"}},
		{"delta is NaN", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Budget: privacy.Budget{Epsilon: 1, Delta: math.NaN()}}}, []string{"delta"}},
		{"pure Gaussian", Job{Method: Relative, Problem: protocol.Problem{K: 3, Clients: parts, Mechanism: protocol.Gaussian,
			Budget: privacy.Budget{Epsilon: 1}}}, []string{"delta", "laplace"}},
		{"published without code", Job{Method: Relative, Problem: protocol.Problem{K: 3, Clients: parts, Budget: enough,
			Calibration: privacy.Published}}, []string{"published", "later-code"}},
		{"claimed Gaussian of a constrained method", Job{Method: FastLloyd, Problem: protocol.Problem{K: 3,
			Clients: parts, Budget: enough, Calibration: privacy.Claimed, Mechanism: protocol.Gaussian}}, []string{"mechanism"}},
		{"claimed replace-one", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts, Budget: enough,
			Calibration: privacy.Claimed, Neighbours: privacy.ReplaceOne}}, []string{"replace-one", "proven"}},
		{"replace-one and exclusivity", Job{Method: FastLloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Budget: enough, Neighbours: privacy.ReplaceOne}, Exclusivity: 2}, []string{"replace-one", "proof"}},
		{"a schedule without code", Job{Method: FastLloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Budget: enough, Calibration: privacy.Published}, Schedule: Geometric}, []string{"sqrt"}},
		{"a ring that is too small", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Budget: privacy.Budget{Epsilon: 1e-3}}, RingBits: 32}, []string{"Z_2^32", "64-bit"}},
		{"too many radii", Job{Method: Relative, Problem: protocol.Problem{K: 3, Clients: parts, Budget: enough,
			Iterations: 1001}}, []string{"iterations", "1001", "at most 1000"}},
		{"a radius below the grid", Job{Method: Relative, Problem: protocol.Problem{K: 3, Clients: parts, Budget: enough,
			Iterations: 300}}, []string{"noise", "fewer iterations"}},
	})
}

func TestSizesThatAreRefused(t *testing.T) {
	parts := blobs(t, 60, 2, 3, 2, 1)
	uneven := oneWithFew(t)
	refused(t, []refusal{
		{"no clients", Job{Method: Lloyd, Problem: protocol.Problem{K: 3}}, []string{"clients"}},
		{"k is 0", Job{Method: Lloyd, Problem: protocol.Problem{K: 0, Clients: parts}}, []string{"k", "0"}},
		{"k above n", Job{Method: Lloyd, Problem: protocol.Problem{K: 61, Clients: parts}},
			[]string{"61", "60 records"}},
		{"too few records at a client", Job{Method: CLloyd, Problem: protocol.Problem{K: 3, Clients: uneven},
			EtaMaxAlpha: 100}, []string{"client 2", "10 records", "need 24"}},
		{"too many records at a client", Job{Method: CLloyd, Problem: protocol.Problem{K: 3, Clients: uneven},
			EtaMinAlpha: 100}, []string{"client 1", "50 records", "hold 36"}},
		{"too few under claimed", Job{Method: FastLloyd, Problem: protocol.Problem{K: 3, Clients: uneven, Budget: enough,
			Calibration: privacy.Claimed}, EtaMaxAlpha: 100}, []string{"client 2"}},
		{"too few under published", Job{Method: FastLloyd, Problem: protocol.Problem{K: 3, Clients: uneven,
			Budget: enough, Calibration: privacy.Published}, EtaMaxAlpha: 100}, []string{"client 2"}},
		{"minimum above maximum", Job{Method: CLloyd, Problem: protocol.Problem{K: 60,
			Clients: blobs(t, 61, 1, 3, 1, 1)}, EtaMinAlpha: 1, EtaMaxAlpha: 1}, []string{"client 1"}},
		{"alpha below 1", Job{Method: CLloyd, Problem: protocol.Problem{K: 3, Clients: parts}, EtaMinAlpha: 0.5},
			[]string{"eta-min-alpha", "0.5"}},
		{"exclusivity above k", Job{Method: CLloyd, Problem: protocol.Problem{K: 3, Clients: parts}, Exclusivity: 4},
			[]string{"exclusivity", "k = 3"}},
	})
}

func TestSharesThatAreRefused(t *testing.T) {
	parts := blobs(t, 60, 2, 3, 2, 1)
	refused(t, []refusal{
		{"naive with noise", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts, Budget: enough},
			Aggregator: Naive}, []string{"naive"}},
		{"ring with a server's noise", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Budget: enough, Noise: protocol.ByServer}, Aggregator: ByRing}, []string{"ring", "local"}},
		{"no share left", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3, Clients: blobs(t, 60, 2, 3, 4, 1),
			Budget: enough, Noise: protocol.InShares, Colluders: 4}}, []string{"colluders", "no share"}},
		{"no share left after a failure", Job{Method: SuLloyd, Problem: protocol.Problem{K: 3,
			Clients: blobs(t, 60, 2, 3, 4, 1), Budget: enough, Noise: protocol.InShares, Colluders: 3}, Drops: []Drop{{1, 0}}},
			[]string{"colluders", "no share"}},
		{"a drop of nobody", Job{Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts},
			Drops: []Drop{{7, 0}}}, []string{"client 8"}},
		{"nobody left", Job{Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts},
			Drops: []Drop{{0, 0}, {1, 2}}}, []string{"no client"}},
	})
}

// The errors of sizes that no assignment has are releases, too: a private run with a
// public number of records says that there is none, not which counts fell short.
func TestRefusedSizesTellNoCounts(t *testing.T) {
	seed := uint64(1)
	for name, job := range map[string]Job{
		"before the run": {Method: FastLloyd, EtaMaxAlpha: 100},
		"in a round":     {Method: FastLloyd, Radius: 0.01, EtaMinAlpha: 100},
		"before the run, published": {Method: FastLloyd, Radius: 0.01, Problem: protocol.Problem{
			Calibration: privacy.Published}},
	} {
		job.K, job.Clients, job.Seed, job.Budget, job.Records = 3, oneWithFew(t), &seed, enough, 60
		if job.Calibration == "" {
			job.Calibration = privacy.Claimed
		}
		_, err := enginetest.New(t, engine.WithWorkers(1)).Run(t.Context(), &job)
		if p, err := job.Plan(); err == nil && !slices.ContainsFunc(p.(*Plan).Notes, func(n string) bool {
			return strings.Contains(n, "follows from the records")
		}) {
			t.Errorf("%s: no note says that records may end the run", name)
		}
		var refusal *fault.Error
		if !errors.Is(err, flow.ErrInfeasible) || !errors.As(err, &refusal) {
			t.Errorf("%s: %v, want a refusal of sizes", name, err)
			continue
		}
		for _, secret := range []string{"10 ", "50 ", "cluster 0", "cluster 1", "cluster 2"} {
			if strings.Contains(refusal.Why, secret) {
				t.Errorf("%s: %q tells %q of the records", name, refusal.Why, secret)
			}
		}
	}
}

// oneWithFew are 60 records, of which the second of two clients has 10.
func oneWithFew(t *testing.T) []dataset.Part {
	return []dataset.Part{blobs(t, 50, 2, 3, 1, 1)[0], blobs(t, 10, 2, 3, 1, 1)[0]}
}

// Under the proven calibration the mechanism is total: sizes that no assignment
// has are met by fillers and unassigned records.
func TestProvenIsTotal(t *testing.T) {
	seed := uint64(1)
	uneven := oneWithFew(t)
	for _, job := range []Job{
		{Method: FastLloyd}, {Method: CSuLloyd}, {Method: FastLloyd, NonExclusive: true}, {Method: CSuLloyd,
			Radius: 0.01},
		{Method: FastLloyd, Exclusivity: 2},
	} {
		job.K, job.Clients, job.Seed, job.Budget = 3, uneven, &seed, privacy.Budget{Epsilon: 1}
		s := begin(t, 1, job)
		for more := true; more; {
			more = s.step(t)
			for _, c := range s.clients {
				for j, n := range c.acc.Counts {
					if n < int64(s.lo) {
						t.Errorf("%s: cluster %d of %v has %d members with fillers, want at least %d", job.Method, j,
							c.party.Role, n, s.lo)
					}
				}
			}
		}
	}
}

func TestCancelStopsARun(t *testing.T) {
	eng := enginetest.New(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := eng.Run(ctx, &Job{Method: Lloyd,
		Problem: protocol.Problem{K: 3, Clients: blobs(t, 60, 2, 3, 2, 1)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// With a public number of records nothing of a plan follows from how many there are,
// and a run goes through with fewer and with more.
func TestPublicRecords(t *testing.T) {
	seed := uint64(1)
	few, many := blobs(t, 300, 2, 3, 2, 1), blobs(t, 1500, 2, 3, 2, 1)
	for _, job := range []Job{{Method: SuLloyd}, {Method: CSuLloyd}, {Method: FastLloyd}, {Method: FastLloyd,
		NonExclusive: true}, {Method: Relative},
		{Method: Relative, Problem: protocol.Problem{Mechanism: protocol.Gaussian}, Schedule: LaterCode}} {
		job.K, job.Records, job.Seed, job.Budget = 3, 600, &seed, privacy.Budget{Epsilon: 3, Delta: -1}
		var plans [2]*Plan
		for i, clients := range [][]dataset.Part{few, many} {
			job.Clients = clients
			p := planOf(t, &job)
			plans[i] = p
			if res := run(t, 2, job); res.N != 600 {
				t.Errorf("%s: the result says %d records", job.Method, res.N)
			} else if strings.Contains(ledgerText(t, res), "number of records comes") {
				t.Errorf("%s: the ledger says that n is from the data", job.Method)
			}
		}
		a, b := plans[0], plans[1]
		if a.rounds != b.rounds || a.lo != b.lo || a.hi != b.hi || a.Budget != b.Budget ||
			!slices.Equal(a.radius, b.radius) || a.Capacity != b.Capacity {
			t.Errorf("%s: the plans differ: %+v and %+v", job.Method, a.Plan, b.Plan)
		}
		for i := range a.parts {
			if !slices.Equal(a.parts[i].scales, b.parts[i].scales) {
				t.Errorf("%s: noise of %s follows from the data", job.Method, a.parts[i].name)
			}
		}
		job.Records = 0
		if res := run(t, 1, job); !strings.Contains(ledgerText(t, res), "number of records comes from the data") {
			t.Errorf("%s: the ledger does not say that n is from the data", job.Method)
		}
	}
}

// Under a public number of records a run goes through whatever clients hold, also where some of them, or all, hold
// nothing: how it ends would tell the last record.
func TestClientsWithoutRecords(t *testing.T) {
	seed := uint64(1)
	none := dataset.Part{Points: kernels.NewPanels(0, 2), FractionBits: dataset.DefaultFractionBits}
	some := blobs(t, 300, 2, 3, 2, 1)
	for _, job := range []Job{{Method: SuLloyd}, {Method: CSuLloyd}, {Method: FastLloyd}, {Method: Relative},
		{Method: FastLloyd, NonExclusive: true}, {Method: CSuLloyd, NonExclusive: true},
		{Method: FastLloyd, Exclusivity: 2}, {Method: FastLloyd, Radius: 0.5}} {
		for name, clients := range map[string][]dataset.Part{"nobody": {none}, "nobody of two": {none, none},
			"one of three": {some[0], none, some[1]}} {
			t.Run(fmt.Sprintf("%s %v %d %v, %s", job.Method, job.NonExclusive, job.Exclusivity, job.Radius, name),
				func(t *testing.T) {
					job.K, job.Records, job.Seed, job.Clients = 3, 600, &seed, clients
					job.Budget = privacy.Budget{Epsilon: 3, Delta: -1}
					run(t, 1, job)
				})
		}
	}
}

// What a program can get wrong is refused, not met by a panic.
func TestBadInput(t *testing.T) {
	parts := blobs(t, 60, 2, 3, 2, 1)
	outside := blobs(t, 60, 2, 3, 2, 1)
	outside[1].Points.Set(3, []float32{0, float32(math.NaN())})
	short := blobs(t, 60, 2, 3, 1, 1)
	short[0].Points = &kernels.Panels{N: 60, D: 2, Data: short[0].Points.Data[:40]}
	flat := []dataset.Part{{Points: &kernels.Panels{N: 3}, FractionBits: 16}}
	for name, job := range map[string]*Job{
		"no job":       nil,
		"no points":    {Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: make([]dataset.Part, 1)}},
		"short points": {Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: short}},
		"no columns":   {Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: flat}},
		"NaN":          {Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: outside}},
		"labels are short": {Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Labels: make([]int32, 10)}},
		"no rows for labels": {Method: Lloyd, Problem: protocol.Problem{K: 3,
			Clients: []dataset.Part{{Points: parts[0].Points, Rows: []int{1, 2}, FractionBits: 16}},
			Labels:  make([]int32, 60)}},
		"start is NaN": {Method: Lloyd, Problem: protocol.Problem{K: 1, Clients: parts,
			Start: []float64{0, math.NaN()}}},
		"start is short": {Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts, Start: []float64{0}}},
		"half of the bounds": {Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts,
			Bounds: dataset.Bounds{Lo: []float64{0, 0}}}},
		"public n":         {Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts, Records: -1}},
		"k above public n": {Method: Lloyd, Problem: protocol.Problem{K: 3, Clients: parts, Records: 2}},
		"sizes that cross": {Method: FastLloyd, Problem: protocol.Problem{K: 4, Clients: parts, Records: 5,
			Calibration: privacy.Claimed, Mechanism: protocol.Laplace, Budget: privacy.Budget{Epsilon: 1, Delta: -1}}},
	} {
		eng, err := engine.New()
		if err != nil {
			t.Fatal(err)
		}
		if job != nil && job.Method == FastLloyd { // what follows from public numbers is refused before anything is paid
			if _, err := job.Plan(); !fault.IsRequest(err) {
				t.Errorf("%s: the plan's error is %v", name, err)
			}
		}
		if _, err := eng.Run(context.Background(), job); !fault.IsRequest(err) {
			t.Errorf("%s: error %v", name, err)
		}
		eng.Close()
	}
}

// Centroids whose sums and counts repeat are what they would be if they were made anew, also after others took their
// place.
func TestCentroidsOfRepeatedSums(t *testing.T) {
	seed, rng, repeated := uint64(1), rand.New(rand.NewPCG(19, 3)), 0
	parts := blobs(t, 400, 2, 3, 1, 3)
	for _, method := range []Method{Lloyd, SuLloyd, CSuLloyd, Relative} {
		for _, post := range []step.Post{step.Keep, step.Fold, step.Truncate} {
			job := Job{Method: method, Problem: protocol.Problem{K: 3, Clients: parts, Seed: &seed}, Post: post, PostSum: post,
				PostCount: post}
			if method != Lloyd {
				job.Budget = privacy.Budget{Epsilon: 1}
			}
			p := planOf(t, &job)
			own, anew, words := p.atStart(), p.atStart(), make([]int64, p.length)
			for round := range 200 {
				for a := range p.k {
					switch rng.IntN(4) {
					case 0:
						words[p.k*p.d+a] = rng.Int64N(500) - 20
					case 1:
						words[a*p.d+rng.IntN(p.d)] = int64((rng.Float64() - 0.5) * 1600 * p.scale)
					case 2: // what became of it
						words[a*p.d] = int64(own.sums[a*p.d] * p.scale)
					}
				}
				if rng.IntN(8) == 0 {
					for _, m := range []*model{own, anew} {
						m.centroids[round%len(m.centroids)] = 0.25
						m.setGrid()
					}
				}
				anew.updated = false
				own.update(round%p.rounds, words)
				anew.update(round%p.rounds, words)
				if !slices.Equal(own.centroids, anew.centroids) || !slices.Equal(own.previous, anew.previous) ||
					!slices.Equal(own.grid, anew.grid) || !slices.Equal(own.sums, anew.sums) {
					t.Fatalf("%s, %s, round %d: centroids %v, anew %v", method, post, round, own.centroids, anew.centroids)
				}
				if slices.Equal(own.centroids[:p.d], own.previous[:p.d]) {
					repeated++
				}
			}
		}
	}
	if repeated < 200 {
		t.Errorf("%d centroids repeat", repeated)
	}
}
