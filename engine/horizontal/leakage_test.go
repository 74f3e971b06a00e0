package horizontal

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
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
func transcribe(t *testing.T, job Job) (*Session, *Transcript) {
	t.Helper()
	pool := engine.NewPool(2)
	defer pool.Close()
	job.Transcript = new(Transcript)
	s, err := NewSession(&job, engine.NewRuntime(pool))
	if err != nil {
		t.Fatal(err)
	}
	for !s.Done() {
		if err := s.Step(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return s, job.Transcript
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
		{"5.2 masked sums and counts", Job{Algorithm: Lloyd},
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
			for viewer := engine.Server; viewer < s.m; viewer++ {
				want := c.client
				if viewer == engine.Server {
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

// truth is the exact sums, counts and means of sums over all clients, by round.
type truth struct{ sums, counts, means map[int][]int64 }

func truthOf(s *Session, tr *Transcript) truth {
	v := truth{map[int][]int64{}, map[int][]int64{}, map[int][]int64{}}
	add := func(m map[int][]int64, round int, x []int64) {
		if m[round] == nil {
			m[round] = make([]int64, len(x))
		}
		for i := range x {
			m[round][i] += x[i]
		}
	}
	counts := map[[2]int][]int64{}
	for _, e := range tr.Sights {
		if e.Viewer == e.Of && e.What == LocalCounts {
			add(v.counts, e.Round, e.Values)
			counts[[2]int{e.Round, e.Of}] = e.Values
		}
	}
	for _, e := range tr.Sights {
		if e.Viewer == e.Of && e.What == LocalSums {
			add(v.sums, e.Round, e.Values)
			means := make([]int64, len(e.Values))
			for i := range means {
				if n := counts[[2]int{e.Round, e.Of}][i/s.d]; n > 0 {
					means[i] = e.Values[i] / (n * int64(s.m))
				}
			}
			add(v.means, e.Round, means)
		}
	}
	return v
}

// holds says what a viewer has, judged by values and not by labels alone: a
// global value counts as exact if it equals the true one, as noisy otherwise.
func holds(t *testing.T, s *Session, tr *Transcript, v truth, viewer int) leakage {
	t.Helper()
	l := leakage{nothing, nothing, nothing, nothing, nothing}
	local := func(field *string, of int) {
		switch {
		case of != viewer:
			*field = exact
		case *field == nothing:
			*field = own
		}
	}
	global := func(field *string, got, want []int64, scale int64) {
		same := 0
		for i := range got {
			if got[i] == want[i]*scale {
				same++
			}
		}
		switch {
		case same == len(got):
			*field = exact
		case same > len(got)/2:
			t.Errorf("viewer %d: %d of %d noisy values are the true ones", viewer, same, len(got))
		default:
			*field = noisy
		}
	}
	for _, e := range tr.Sights {
		if e.Viewer != viewer {
			continue
		}
		switch e.What {
		case LocalCounts:
			local(&l.localCounts, e.Of)
		case LocalSums:
			local(&l.localSums, e.Of)
		case GlobalCounts:
			global(&l.counts, e.Values, v.counts[e.Round], int64(1)<<s.countShift())
			l.centroids = l.counts
		case GlobalSums:
			global(&l.sums, e.Values, v.sums[e.Round], 1)
		case GlobalCentroids:
			if e.Of == engine.Server && s.job.Release == Centroid {
				global(&l.centroids, e.Values, v.means[e.Round], 1)
			} else {
				l.centroids = exact
			}
		case MaskedLocal, MaskedGlobal:
			if e.Values != nil {
				t.Errorf("a masked message carries plain values")
			}
		default:
			t.Errorf("viewer %d sees %q, which no table knows", viewer, e.What)
		}
	}
	return l
}

// checkMasked looks at the masked messages themselves: no 64-bit word of theirs
// is a value that some party holds in the clear (under a uniform mask: 2^-64
// each), and their bytes are uniform by a chi-square test.
func checkMasked(t *testing.T, tr *Transcript) {
	t.Helper()
	plain := map[uint64]string{}
	for _, e := range tr.Sights {
		for i, x := range e.Values {
			plain[uint64(x)] = fmt.Sprintf("%s of %d, element %d of round %d", e.What, e.Of, i, e.Round)
		}
	}
	var bytes [256]float64
	n := 0.0
	for _, e := range tr.Sights {
		if e.Message == nil || e.Viewer != engine.Server {
			continue
		}
		for w := e.Message; len(w) >= 8; w = w[8:] {
			if what, ok := plain[binary.LittleEndian.Uint64(w)]; ok {
				t.Errorf("a masked message to %d shows the %s", e.Viewer, what)
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

// In the ring the first client's mask covers every message but the final sum,
// which is the noisy one that all may see.
func TestRingShowsOnlyTheNoisySum(t *testing.T) {
	seed := uint64(8)
	s, tr := transcribe(t, Job{Algorithm: SuLloyd, Aggregator: ByRing, Noise: Local, K: 3, Seed: &seed,
		Clients: blobs(t, 600, 2, 3, 4, 6), Budget: privacy.Budget{Epsilon: 2}})
	sum := map[int][]int64{}
	for _, e := range tr.Sights {
		if e.What == GlobalSums && e.Viewer == 0 {
			sum[e.Round] = e.Values
		}
	}
	messages := map[int]int{}
	for _, e := range tr.Sights {
		if e.What != MaskedLocal {
			continue
		}
		messages[e.Round]++
		inClear := int64(binary.LittleEndian.Uint64(e.Message)) == sum[e.Round][0]
		// The first four messages go around; the rest hand out the sum.
		if around := messages[e.Round] <= s.m; inClear == around {
			t.Errorf("round %d, message %d from %d to %d: in the clear is %v", e.Round, messages[e.Round], e.Of, e.Viewer, inClear)
		}
	}
	for r := range s.rounds {
		if want := s.m + s.m - 1; messages[r] != want {
			t.Errorf("round %d has %d messages, want %d", r, messages[r], want)
		}
	}
}
