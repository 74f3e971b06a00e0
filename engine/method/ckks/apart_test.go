package ckks

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/protocol/protocoltest"
)

// Every mode, with each role in a goroutine of its own that shares nothing but
// bytes with the others, gives the bits of the roles that share a process.
func TestRolesApart(t *testing.T) {
	data := sample(t, "blobs", 300, 4, 2, 3)
	pool := engine.NewPool(2)
	defer pool.Close()
	for _, c := range []struct {
		name string
		job  Job
	}{
		{"two-party", Job{Problem: protocol.Problem{Columns: [][]int{{0, 3}, {1, 2}}}}},
		{"two-party, claimed", Job{Problem: protocol.Problem{Columns: [][]int{{0, 3}, {1, 2}},
			Calibration: privacy.Claimed}}},
		{"server-aided", Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2, 3}}}}},
		{"multiparty", Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1, 2}, {3}}}, Mode: Multiparty}},
		{"threshold", Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}, {3}}}, Mode: Multiparty,
			Threshold: 2}},
		{"threshold, others online", Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}, {3}}},
			Mode: Multiparty, Threshold: 2, Online: []int{3, 1}}},
	} {
		j := c.job
		j.Clients, j.Bounds, j.K, j.Iterations, j.Seed, j.NoQuality = data.Table(), data.Bounds, 2, 4, seed(3), true
		j.chain, j.Budget = &smallChain, privacy.Budget{Epsilon: 20, Delta: 1e-5}
		pl, err := j.plan()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		// No party has a use for the tables of Lattigo's transforms.
		var transforms atomic.Bool
		full := pl.params.full
		pl.params.full = func() (ckks.Parameters, error) {
			transforms.Store(true)
			return full()
		}
		var got [2]string
		for i := range got {
			run := pl.Run
			if i == 1 {
				run = func(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
					var roles protocoltest.Roles
					o := protocoltest.Apart(pl.Plan)
					o.Joined = roles.Join
					defer func() { roles.Check(t, pl.Parties) }()
					return pl.Connect(ctx, rt, o)
				}
			}
			res, err := run(context.Background(), engine.NewRuntime(pool))
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			b, err := json.MarshalIndent(res, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			got[i] = string(b)
		}
		if diff := cmp.Diff(got[0], got[1]); diff != "" {
			t.Errorf("%s: roles apart differ:\n%s", c.name, diff)
		}
		if transforms.Load() {
			t.Errorf("%s: tables of Lattigo's transforms are made", c.name)
		}
	}
}
