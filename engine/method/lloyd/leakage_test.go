package lloyd

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// For each protocol, every party holds what Thesis-H Tables 5.1 to 5.3, 7.2 and
// 7.3 say, and nothing else: everything each role sees is recorded and compared
// with the true values.
func TestLeakageTables(t *testing.T) {
	pool := engine.NewPool(2)
	defer pool.Close()
	clients := blobs(t, 900, 2, 4, 3, 5)
	rows, err := LeakageTables(context.Background(), pool, clients, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	_, jobs := leakageRows()
	for i := range rows {
		r := &rows[i]
		if !r.Agrees() {
			t.Errorf("%s: the server holds %+v and may hold %+v, a client holds %+v and may hold %+v", r.Table,
				r.Server, r.ThesisServer, r.Client, r.ThesisClient)
		}
		_, seen := transcribed(t, onClients(jobs[i], clients, 4, 4))
		checkMasked(t, seen)
	}
}

// transcribed is a run's plan and everything that was seen.
func transcribed(t *testing.T, job Job) (*Plan, []protocol.View) {
	t.Helper()
	pool := engine.NewPool(2)
	defer pool.Close()
	p, seen, err := transcribe(context.Background(), pool, job)
	if err != nil {
		t.Fatal(err)
	}
	return p, seen
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

// TestTwoClientsAreWarned: of two clients that see exact values of both together, and of no others,
// the result says that each knows the other's.
func TestTwoClientsAreWarned(t *testing.T) {
	for _, c := range []struct {
		clients int
		job     Job
		want    bool
	}{
		{2, Job{Method: Lloyd}, true},
		{2, Job{Method: CLloyd}, true},
		{2, Job{Method: Lloyd, Release: Centroid}, true},
		{3, Job{Method: Lloyd}, false},
		{1, Job{Method: Lloyd}, false},
		{2, Job{Method: Lloyd, Aggregator: Naive}, false},
		{2, Job{Method: SuLloyd, Problem: protocol.Problem{Budget: privacy.Budget{Epsilon: 1, Delta: -1}}}, false},
	} {
		seed := uint64(1)
		job := c.job
		job.K, job.Clients, job.Seed, job.Iterations = 3, blobs(t, 300, 2, 3, c.clients, 1), &seed, 3
		if got := slices.Contains(run(t, 1, job).Notes, subtracts); got != c.want {
			t.Errorf("%d clients, %s %s: warned %v, want %v", c.clients, job.Method, job.Aggregator, got, c.want)
		}
	}
}
