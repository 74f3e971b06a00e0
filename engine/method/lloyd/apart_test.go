package lloyd

import (
	"context"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/protocol/protocoltest"
	"github.com/cohort-engine/cohort/engine/step"
)

// Every method gives the bits of a run in one process when each role has a
// goroutine of its own and its own records alone, and meets the others by messages
// that are turned into bytes and back.
func TestRolesApart(t *testing.T) {
	seed := uint64(6)
	labels := make([]int32, 900)
	for i := range labels {
		labels[i] = int32(i % 4)
	}
	for _, job := range []Job{
		{Method: Lloyd, Init: step.Sphere}, {Method: Lloyd}, {Method: Lloyd, Aggregator: ByRing, NInit: 3}, {Method: Lloyd,
			Init: SomeRecords}, {Method: CLloyd,
			Aggregator: Naive, Init: SomeRecords},
		{Method: Lloyd, Aggregator: Naive}, {Method: Lloyd, Aggregator: ByRing},
		{Method: CLloyd, Aggregator: Naive, Init: KMeansPlusPlus}, {Method: CLloyd, Release: Centroid}, {Method: CLloyd,
			NonExclusive: true},
		{Method: Lloyd, Aggregator: Naive, Drops: []Drop{{0, 0}, {2, 1}}}, {Method: Lloyd, Drops: []Drop{{0, 1}},
			Init: KMeansPlusPlus, Aggregator: ByRing},
		{Method: SuLloyd}, {Method: SuLloyd, Problem: protocol.Problem{Budget: privacy.Budget{Epsilon: 20}},
			RingBits: 32}, {Method: SuLloyd,
			Problem: protocol.Problem{Noise: protocol.InShares, Mechanism: protocol.Gaussian}, Drops: []Drop{{1, 1}}},
		{Method: CSuLloyd, Problem: protocol.Problem{Noise: protocol.ByEach}}, {Method: FastLloyd},
		{Method: FastLloyd, Radius: 0.8}, {Method: FastLloyd,
			Problem: protocol.Problem{Calibration: privacy.Claimed}},
		{Method: CSuLloyd, Aggregator: ByShares},
		{Method: FastLloyd, Problem: protocol.Problem{Mechanism: protocol.Laplace}, Aggregator: ByShares, Servers: 3},
		{Method: Lloyd, Init: Oversampled}, {Method: Lloyd, Batch: 90, MaxPoints: 60, Aggregator: ByRing},
		{Method: CLloyd, Init: Oversampled}, {Method: Lloyd, Metric: Cosine},
		{Method: Lloyd, Aggregator: ByShares}, {Method: SuLloyd, Aggregator: ByShares, RingBits: 32,
			Problem: protocol.Problem{Noise: protocol.InShares, Budget: privacy.Budget{Epsilon: 20}}},
		{Method: Relative}, {Method: Relative, Problem: protocol.Problem{Noise: protocol.InShares}, Aggregator: ByRing},
		{Method: Relative,
			Problem: protocol.Problem{Calibration: privacy.Published}, Schedule: LaterCode},
	} {
		job.K, job.Clients, job.Seed, job.Labels = 4, blobs(t, 900, 3, 4, 3, 5), &seed, labels
		if job.Method.Private() && job.Budget.Epsilon == 0 {
			job.Budget = privacy.Budget{Epsilon: 2, Delta: -1}
		}
		p := planOf(t, &job)
		var results [2]string
		for apart := range results {
			var o protocol.Options
			if apart == 1 {
				o = protocoltest.Apart(p.Plan)
			}
			var roles protocoltest.Roles
			o.Joined = roles.Join
			pool := engine.NewPool(2)
			s, _ := p.start(engine.NewRuntime(pool), o)
			res, err := s.Finish(context.Background(), job.Bounds)
			pool.Close()
			if err != nil {
				t.Fatalf("%+v: apart %d: %v", job, apart, err)
			}
			want := p.m
			if p.Coordinated {
				want++
			}
			want += p.Servers
			roles.Check(t, want)
			results[apart] = enginetest.JSON(t, res)
		}
		if results[0] != results[1] {
			t.Errorf("%s %s %s: in one process %s\napart %s", job.Method, job.Aggregator, job.Init, results[0],
				results[1])
		}
	}
}
