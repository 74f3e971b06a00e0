package lloyd

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// What a party may hold of a variable.
const (
	nothing = "x"
	own     = "own"   // its own value only
	exact   = "exact" // the value itself
	noisy   = "DP"    // the value with noise
)

// leakage is a row of the papers' leakage tables: what one role holds.
type leakage struct{ localCounts, localSums, counts, sums, centroids string }

// transcribe runs a job to the end and returns it with everything that was seen.
func transcribe(t *testing.T, job Job) (*Plan, []protocol.View) {
	t.Helper()
	pool := engine.NewPool(2)
	defer pool.Close()
	job.Views, job.NoQuality = new(protocol.Views), true
	p, err := job.check()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := p.start(engine.NewRuntime(pool), protocol.Options{Views: job.Views})
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return p, job.Views.Seen
}

// For each protocol, every party holds what Thesis-H Tables 5.1 to 5.3, 7.2 and
// 7.3 say, and nothing else: everything each role sees is recorded and compared
// with the true values.
func TestLeakageTables(t *testing.T) {
	seed := uint64(4)
	for _, c := range []struct {
		table          string
		job            Job
		server, client leakage
	}{
		{"5.1 naive", Job{Algorithm: Lloyd, Aggregator: Naive},
			leakage{exact, exact, exact, exact, exact}, leakage{own, own, nothing, nothing, exact}},
		{"5.2 masked sums and counts", Job{Algorithm: Lloyd, Init: Sphere},
			leakage{nothing, nothing, nothing, nothing, nothing}, leakage{own, own, exact, exact, exact}},
		{"plain k-means", Job{Algorithm: Lloyd},
			leakage{nothing, nothing, nothing, nothing, nothing}, leakage{own, own, exact, exact, exact}},
		{"5.2 constrained", Job{Algorithm: CLloyd},
			leakage{nothing, nothing, nothing, nothing, nothing}, leakage{own, own, exact, exact, exact}},
		{"5.3 masked centroids", Job{Algorithm: CLloyd, Release: Centroid},
			leakage{nothing, nothing, nothing, nothing, nothing}, leakage{own, own, nothing, nothing, exact}},
		{"7.2 MNA", Job{Algorithm: SuLloyd},
			leakage{nothing, nothing, nothing, nothing, nothing}, leakage{own, own, noisy, noisy, noisy}},
		{"7.2 MNA, relative", Job{Algorithm: Relative},
			leakage{nothing, nothing, nothing, nothing, nothing}, leakage{own, own, noisy, noisy, noisy}},
		{"7.2 MNA, noise of the clients", Job{Algorithm: CSuLloyd, Noise: Local},
			leakage{nothing, nothing, nothing, nothing, nothing}, leakage{own, own, noisy, noisy, noisy}},
		{"7.3 AMN", Job{Algorithm: FastLloyd},
			leakage{nothing, nothing, nothing, nothing, nothing}, leakage{own, own, nothing, nothing, noisy}},
		{"ring", Job{Algorithm: SuLloyd, Aggregator: ByRing},
			leakage{nothing, nothing, nothing, nothing, nothing}, leakage{own, own, noisy, noisy, noisy}},
	} {
		t.Run(c.table, func(t *testing.T) {
			job := c.job
			job.K, job.Seed, job.Budget = 4, &seed, privacy.Budget{Epsilon: 1, Delta: -1}
			job.Clients = blobs(t, 900, 2, 4, 3, 5)
			s, tr := transcribe(t, job)
			truth := truthOf(s, tr)
			for viewer := protocol.Server; viewer < protocol.Role(s.m); viewer++ {
				want := c.client
				if viewer == protocol.Server {
					want = c.server
				}
				if got := holds(t, s, tr, truth, viewer); got != want {
					t.Errorf("viewer %d holds %+v, may hold %+v", viewer, got, want)
				}
			}
			checkMasked(t, tr)
		})
	}
}

// truth is the exact sum over all clients of what they release, by round.
type truth map[int][]int64

func truthOf(s *Plan, seen []protocol.View) truth {
	v := truth{}
	for _, e := range seen {
		if e.Viewer != e.Of || e.What != s.release.Name || e.Values == nil {
			continue
		}
		if v[e.Round] == nil {
			v[e.Round] = make([]int64, s.length)
		}
		for i, x := range e.Values {
			v[e.Round][i] += x
		}
	}
	return v
}

// holds says what a viewer has, judged by values and not by labels alone: a
// global value counts as exact if it equals the true one, as noisy otherwise. What
// a client releases of its own tells it its own sums and counts.
func holds(t *testing.T, s *Plan, seen []protocol.View, v truth, viewer protocol.Role) leakage {
	t.Helper()
	l := leakage{nothing, nothing, nothing, nothing, nothing}
	kd := s.k * s.d
	global := func(field *string, got, want []int64) {
		same := 0
		for i := range got {
			if got[i] == want[i] {
				same++
			}
		}
		switch {
		case same == len(got):
			*field = exact
		case same > len(got)/2:
			t.Errorf("%v: %d of %d noisy values are the true ones", viewer, same, len(got))
		default:
			*field = noisy
		}
	}
	for _, e := range seen {
		switch {
		case e.Viewer != viewer:
		case e.What == protocol.MaskedLocal || e.What == protocol.MaskedGlobal:
			if e.Values != nil {
				t.Errorf("a masked message carries plain values")
			}
		case s.plain && e.What == s.seeds.Name && viewer != protocol.Server && (e.Of == viewer || e.Of == protocol.Server):
			// The records that centroids start at: no table has them.
		case e.What != s.release.Name:
			t.Errorf("%v sees %q, which no table knows", viewer, e.What)
		case e.Message != nil && viewer == protocol.Server: // plain sums and counts, of which it makes all else
			l = leakage{exact, exact, exact, exact, exact}
		case e.Message != nil:
			l.centroids = exact
		case e.Of == viewer:
			l.localCounts, l.localSums = own, own
		case e.Of != protocol.Server:
			t.Errorf("%v sees the values of %v", viewer, e.Of)
		case s.job.Release == Centroid:
			global(&l.centroids, e.Values, v[e.Round])
		default:
			global(&l.counts, e.Values[kd:], v[e.Round][kd:])
			global(&l.sums, e.Values[:kd], v[e.Round][:kd])
			l.centroids = l.counts
		}
	}
	return l
}

// checkMasked looks at the masked messages themselves: no 64-bit word of theirs
// is a value that some party holds in the clear (under a uniform mask: 2^-64
// each), and their bytes are uniform by a chi-square test.
func checkMasked(t *testing.T, seen []protocol.View) {
	t.Helper()
	plain := map[uint64]string{}
	for _, e := range seen {
		for i, x := range e.Values {
			plain[uint64(x)] = fmt.Sprintf("%s of %v, element %d of round %d", e.What, e.Of, i, e.Round)
		}
	}
	var bytes [256]float64
	n := 0.0
	for _, e := range seen {
		if e.What != protocol.MaskedLocal && e.What != protocol.MaskedGlobal || e.Viewer != protocol.Server {
			continue
		}
		for w := e.Message; len(w) >= 8; w = w[8:] {
			if what, ok := plain[binary.LittleEndian.Uint64(w)]; ok {
				t.Errorf("a masked message to %v shows the %s", e.Viewer, what)
			}
			for _, b := range w[:8] {
				bytes[b]++
				n++
			}
		}
	}
	if n == 0 {
		return
	}
	chi := 0.0
	for _, x := range bytes {
		chi += (x - n/256) * (x - n/256) / (n / 256)
	}
	// 255 degrees of freedom: beyond 385 with probability 3e-7.
	if chi > 385 {
		t.Errorf("the bytes of masked messages are not uniform: chi-square %.0f over %.0f bytes", chi, n)
	}
}
