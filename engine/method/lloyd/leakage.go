package lloyd

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

// What a party may hold of a variable, as Thesis-H's leakage tables write it.
const (
	nothing = "x"
	own     = "own"   // its own value only
	exact   = "exact" // the value itself
	noisy   = "DP"    // the value with noise
)

// Leakage is a row of Thesis-H's leakage tables: what one role holds of each
// variable, "x", "own", "exact" or "DP".
type Leakage struct {
	LocalCounts string `json:"local_counts"`
	LocalSums   string `json:"local_sums"`
	Counts      string `json:"counts"`
	Sums        string `json:"sums"`
	Centroids   string `json:"centroids"`
}

// LeakageRow is what server and clients hold after a run of one protocol, as the
// transcript of all that each role saw shows it, and what the thesis's table says.
type LeakageRow struct {
	// Table is the thesis's table, or what the protocol is where it has none.
	Table  string  `json:"table"`
	Server Leakage `json:"server"`
	// Client is what every client holds.
	Client       Leakage `json:"client"`
	ThesisServer Leakage `json:"thesis_server"`
	ThesisClient Leakage `json:"thesis_client"`
}

// Agrees tells whether the transcript shows what the thesis says, and nothing else.
func (r *LeakageRow) Agrees() bool { return r.Server == r.ThesisServer && r.Client == r.ThesisClient }

// leakageRows are the protocols of Thesis-H Tables 5.1 to 5.3, 7.2 and 7.3 and their
// relatives here: the rows and, apart from what is printed, their jobs.
func leakageRows() (rows []LeakageRow, jobs []Job) {
	none := Leakage{nothing, nothing, nothing, nothing, nothing}
	sums, means := Leakage{own, own, exact, exact, exact}, Leakage{own, own, nothing, nothing, exact}
	noisySums, noisyMeans := Leakage{own, own, noisy, noisy, noisy}, Leakage{own, own, nothing, nothing, noisy}
	for _, c := range []struct {
		table          string
		job            Job
		server, client Leakage
	}{
		{"5.1 naive", Job{Method: Lloyd, Aggregator: Naive}, Leakage{exact, exact, exact, exact, exact}, means},
		{"5.2 masked sums and counts", Job{Method: Lloyd, Init: step.Sphere}, none, sums},
		{"plain k-means", Job{Method: Lloyd}, none, sums},
		{"5.2 constrained", Job{Method: CLloyd}, none, sums},
		{"5.3 masked centroids", Job{Method: CLloyd, Release: Centroid}, none, means},
		{"7.2 MNA", Job{Method: SuLloyd}, none, noisySums},
		{"7.2 MNA, relative", Job{Method: Relative}, none, noisySums},
		{"7.2 MNA, noise of the clients", Job{Method: CSuLloyd, Problem: protocol.Problem{Noise: protocol.ByEach}}, none,
			noisySums},
		{"7.3 AMN", Job{Method: FastLloyd}, none, noisyMeans},
		{"ring", Job{Method: SuLloyd, Aggregator: ByRing}, none, noisySums},
		{"7.3.2 shares among servers", Job{Method: SuLloyd, Aggregator: ByShares, Servers: 3}, none, noisySums},
	} {
		rows = append(rows, LeakageRow{Table: c.table, ThesisServer: c.server, ThesisClient: c.client})
		jobs = append(jobs, c.job)
	}
	return rows, jobs
}

// LeakageTables runs every protocol of the thesis's leakage tables on the clients'
// records and judges by values what each role has seen.
func LeakageTables(ctx context.Context, pool *engine.Pool, clients []dataset.Part, k int, seed uint64) ([]LeakageRow,
	error) {
	rows, jobs := leakageRows()
	for i := range rows {
		r := &rows[i]
		plan, seen, err := transcribe(ctx, pool, onClients(jobs[i], clients, k, seed))
		if err != nil {
			return nil, err
		}
		truth := truthOf(plan, seen)
		for viewer := protocol.ServerAt(max(plan.Servers, 1) - 1); viewer < protocol.Role(plan.m); viewer++ {
			held, err := holds(plan, seen, truth, viewer)
			if err != nil {
				return nil, err
			}
			switch {
			case viewer.Serves() && held != r.Server && r.Server != (Leakage{}):
				return nil, fmt.Errorf("lloyd: %s: %v holds %+v and another server %+v", r.Table, viewer, held,
					r.Server)
			case viewer.Serves():
				r.Server = held
			case viewer > 0 && held != r.Client:
				return nil, fmt.Errorf("lloyd: %s: %v holds %+v and %v %+v", r.Table, viewer, held, viewer-1, r.Client)
			default:
				r.Client = held
			}
		}
	}
	return rows, nil
}

// onClients is a row's job on the clients' records.
func onClients(job Job, clients []dataset.Part, k int, seed uint64) Job {
	job.K, job.Seed, job.Clients = k, &seed, clients
	if job.Method.Private() {
		job.Budget = privacy.Budget{Epsilon: 1, Delta: -1}
	}
	return job
}

// transcribe runs a job to the end and returns its plan with everything that was seen.
func transcribe(ctx context.Context, pool *engine.Pool, job Job) (*Plan, []protocol.View, error) {
	job.Views, job.NoQuality = new(protocol.Views), true
	plan, err := job.check()
	if err != nil {
		return nil, nil, err
	}
	s, _ := plan.start(engine.NewRuntime(pool), protocol.Options{Views: job.Views})
	defer s.Close()
	if err := s.Run(ctx); err != nil {
		return nil, nil, err
	}
	return plan, job.Views.Seen, nil
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
func holds(s *Plan, seen []protocol.View, v truth, viewer protocol.Role) (Leakage, error) {
	l := Leakage{nothing, nothing, nothing, nothing, nothing}
	var odd error
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
			odd = fmt.Errorf("lloyd: %v: %d of %d noisy values are the true ones", viewer, same, len(got))
		default:
			*field = noisy
		}
	}
	for _, e := range seen {
		switch {
		case e.Viewer != viewer:
		case e.What == protocol.MaskedLocal || e.What == protocol.MaskedGlobal || e.What == protocol.ShareLocal ||
			e.What == protocol.ShareGlobal:
			if e.Values != nil {
				odd = fmt.Errorf("lloyd: a masked message carries plain values")
			}
		case s.plain && e.What == s.seeds.Name && viewer != protocol.Server &&
			(e.Of == viewer || e.Of == protocol.Server):
			// The records that centroids start at: no table has them.
		case e.What != s.release.Name:
			odd = fmt.Errorf("lloyd: %v sees %q, which no table knows", viewer, e.What)
		case e.Message != nil && viewer == protocol.Server: // plain sums and counts, of which it makes all else
			l = Leakage{exact, exact, exact, exact, exact}
		case e.Message != nil:
			l.Centroids = exact
		case e.Of == viewer:
			l.LocalCounts, l.LocalSums = own, own
		case e.Of != protocol.Server:
			odd = fmt.Errorf("lloyd: %v sees the values of %v", viewer, e.Of)
		case s.job.Release == Centroid:
			global(&l.Centroids, e.Values, v[e.Round])
		default:
			global(&l.Counts, e.Values[kd:], v[e.Round][kd:])
			global(&l.Sums, e.Values[:kd], v[e.Round][:kd])
			l.Centroids = l.Counts
		}
	}
	return l, odd
}
