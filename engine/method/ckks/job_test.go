package ckks

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
)

// sample makes n records around k centres.
func sample(t testing.TB, name string, n, d, k int, seed uint64) *dataset.Normalised {
	t.Helper()
	norm, _ := datasettest.Builtin(t, name, dataset.Generator{N: n, D: d, K: k, Seed: seed})
	return norm
}

func seed(x uint64) *uint64 { return &x }

// lloyd is plaintext k-means from the same start; empty clusters stay.
func lloyd(data *dataset.Normalised, start [][]float64, rounds int) [][]float64 {
	p := data.Points
	cur := start
	row := make([]float32, p.D)
	for range rounds {
		counts := make([]float64, len(cur))
		sums := make([][]float64, len(cur))
		for j := range sums {
			sums[j] = make([]float64, p.D)
		}
		for i := range p.N {
			row = p.Point(i, row)
			best, at := math.Inf(1), 0
			for j, c := range cur {
				var s float64
				for h := range row {
					s += (float64(row[h]) - c[h]) * (float64(row[h]) - c[h])
				}
				if s < best {
					best, at = s, j
				}
			}
			counts[at]++
			for h := range row {
				sums[at][h] += float64(row[h])
			}
		}
		next := make([][]float64, len(cur))
		for j := range next {
			next[j] = append([]float64(nil), cur[j]...)
			if counts[j] > 0 {
				for h := range next[j] {
					next[j][h] = sums[j][h] / counts[j]
				}
			}
		}
		cur = next
	}
	return cur
}

func loss(data *dataset.Normalised, c [][]float64) float64 {
	p := data.Points
	row := make([]float32, p.D)
	var total float64
	for i := range p.N {
		row = p.Point(i, row)
		best := math.Inf(1)
		for _, c := range c {
			var s float64
			for h := range row {
				s += (float64(row[h]) - c[h]) * (float64(row[h]) - c[h])
			}
			best = min(best, s)
		}
		total += best
	}
	return total / float64(p.N)
}

func runJob(t testing.TB, j *Job, workers int) *engine.Result {
	t.Helper()
	return enginetest.RunOn(t, workers, j)
}

// Every mode computes the same clustering, with the messages that its plan counts. Rounds start far enough from
// decision boundaries that soft and hard assignment end in the same optimum.
// Small rings, except for the first case.
func TestModesFollowLloyd(t *testing.T) {
	data := sample(t, "timesynth", 300, 3, 3, 3)
	start := [][]float64{row(data, 0), row(data, 150), row(data, 299)}
	want := loss(data, lloyd(data, start, 2))
	small := &Chain{LogN: 10, Levels: signDepth + 1, LogLevel: 29, LogP: []int{30, 30, 30}}
	rank := rankChain(3)
	rank.LogN = 12
	for _, c := range []struct {
		name      string
		tolerance float64
		job       Job
	}{
		{"full ring", 1.03, Job{Problem: protocol.Problem{Columns: [][]int{{0, 2}, {1}}}}},
		{"two-party", 1.03, Job{Problem: protocol.Problem{Columns: [][]int{{0, 2}, {1}}}, chain: small}},
		{"all pairs", 1.03, Job{Problem: protocol.Problem{Columns: [][]int{{0, 2}, {1}}}, chain: small,
			KeepPairs: true}},
		{"server-aided", 1.03, Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}, chain: small}},
		{"server-aided without own columns", 1.03, Job{Problem: protocol.Problem{Columns: [][]int{{}, {1}, {0, 2}}},
			Mode: ServerAided, chain: small}},
		{"multiparty", 1.03, Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}, Mode: Multiparty,
			chain: small}},
		{"threshold", 1.03, Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}, {}}}, Mode: Multiparty,
			Threshold: 2, Online: []int{1, 3}, chain: small}},
		// Records between the other two centroids have memberships below 0 in both.
		{"rank", 1.07, Job{Problem: protocol.Problem{Columns: [][]int{{0, 2}, {1}}}, Argmin: Rank, chain: &rank}},
		{"rank, multiparty", 1.07, Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}, Mode: Multiparty,
			Argmin: Rank, chain: &rank}},
		{"rank, threshold", 1.07, Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}, {}}}, Mode: Multiparty,
			Threshold: 2, Online: []int{1, 3}, Argmin: Rank, chain: &rank}},
		{"rank, server-aided", 1.07, Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}, Argmin: Rank,
			chain: &rank}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := c.job
			var last Round
			j.Clients, j.Bounds, j.Calibration, j.Start = data.Table(), data.Bounds, privacy.None,
				slices.Concat(start...)
			j.K, j.Iterations, j.Seed, j.OnRound = 3, 2, seed(1), func(r Round) { last = r }
			res := runJob(t, &j, 2)
			got := loss(data, last.Centroids)
			t.Logf("%d bytes, loss %g, plaintext %g, %+v", res.Details["bytes_total"], got, want, last)
			if got > c.tolerance*want {
				t.Errorf("loss %g, plaintext Lloyd %g", got, want)
			}
			plan, err := j.Plan()
			if err != nil {
				t.Fatal(err)
			}
			if o, err := plan.Outline(); err != nil || o.BytesAtMost || !reflect.DeepEqual(*o.Bytes, res.Comm) {
				t.Errorf("planned %+v (error %v), sent %+v", o.Bytes, err, res.Comm)
			}
		})
	}
}

// With a seed every run gives the same bits, whatever the workers.
func TestSeededRunsAreEqual(t *testing.T) {
	data := sample(t, "blobs", 700, 3, 3, 3)
	for _, mode := range []Mode{TwoParty, Multiparty} {
		first := ""
		for _, workers := range []int{1, 2, 3} {
			j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
				Columns: [][]int{{0, 2}, {1}}, K: 3, Iterations: 2, Seed: seed(9),
				Budget: privacy.Budget{Epsilon: 3, Delta: 1e-5}}, Mode: mode,
				chain: &Chain{LogN: 9, Levels: signDepth + 1, LogLevel: 29, LogP: []int{30, 30, 30}}}
			b := enginetest.JSON(t, runJob(t, j, workers))
			if first == "" {
				first = b
			} else if first != b {
				t.Errorf("%s: %d workers give %s, one gives %s", mode, workers, b, first)
			}
		}
	}
}

// Decrypted memberships point at the nearest centroid wherever every comparison
// of that centroid exceeds the stated width.
func TestNearestCentroidOutsideTheSoftZone(t *testing.T) {
	data := sample(t, "blobs", 2000, 2, 6, 4)
	j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}}, K: 6,
		Calibration: privacy.None, Seed: seed(2)}, chain: &Chain{LogN: 11, Levels: signDepth + 3, LogLevel: 29,
		LogP: []int{30, 30, 30}}}
	pool := engine.NewPool(2)
	defer pool.Close()
	ctx := context.Background()
	s, roles := setUp(t, j, pool)
	r, err := planRound(s.params, s.cols, s.lay, s.start, true, pairSign)
	if err != nil {
		t.Fatal(err)
	}
	w, err := roles.alice.computer.members(ctx, pool, r)
	if err != nil {
		t.Fatal(err)
	}
	members := make([][]float64, j.K)
	for c := range members {
		for _, ct := range w[c] {
			members[c] = append(members[c], decode(t, s.params, ct, roles.bob.secret)...)
		}
	}
	all := append(allPairs(s.cols, s.start, undecided, r.unit), r.pairs...)
	decided := 0
	for i := range data.Points.N {
		x := row(data, i)
		best := 0
		for c := range s.start {
			if elementary.SquaredDistance(x, s.start[c]) < elementary.SquaredDistance(x, s.start[best]) {
				best = c
			}
		}
		clear := true
		for _, p := range all {
			v := p.at(x)
			if (p.i == best && v > -p.width) || (p.j == best && v < p.width) {
				clear = false
			}
		}
		if !clear {
			continue
		}
		decided++
		for c := range members {
			if m := members[c][i]; (c == best) != (m > 0.5) {
				t.Fatalf("record %d: membership %g in cluster %d, nearest is %d", i, m, c, best)
			}
		}
	}
	if decided < data.Points.N/2 {
		t.Errorf("only %d of %d records are outside the soft zone", decided, data.Points.N)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	data := sample(t, "blobs", 300, 3, 2, 3)
	good := func() *Job {
		return &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
			Columns: [][]int{{0}, {1, 2}}, K: 2, Calibration: privacy.None}}
	}
	private := func(j *Job, c privacy.Calibration, b privacy.Budget) { j.Calibration, j.Budget = c, b }
	if err := good().check(); err != nil {
		t.Fatal(err)
	}
	for text, change := range map[string]func(*Job){
		"depth":                func(j *Job) { j.K = maxClusters + 1 },
		"for 100 records":      func(j *Job) { j.K, j.Clients = 101, sample(t, "blobs", 100, 3, 2, 3).Table() },
		"at most 32 with rank": func(j *Job) { j.K, j.Argmin = 33, Rank },
		"outside [-1, 1]":      func(j *Job) { j.Start = []float64{0, 0, 0, 0, 0, 1.5} },
		"2 rows of 3":          func(j *Job) { j.Start = []float64{0, 0, 0, 0, 0} },
		"decryption needs 2": func(j *Job) {
			j.Columns, j.Mode, j.Threshold, j.Online = [][]int{{0}, {1}, {2}, {}}, Multiparty, 2, []int{3}
		},
		"key holders":           func(j *Job) { j.Mode, j.Threshold = Multiparty, 2 },
		"where one party holds": func(j *Job) { j.Threshold = 1 },
		"column 3 has no party": func(j *Job) { j.Columns = [][]int{{0}, {1}} },
		"out of range or taken": func(j *Job) { j.Columns = [][]int{{0, 1}, {1, 2}} },
		"party 2 has none":      func(j *Job) { j.Columns = [][]int{{0, 1, 2}, {}} },
		"parties: is 1":         func(j *Job) { j.Columns = [][]int{{0, 1, 2}} },
		"no pure guarantee":     func(j *Job) { private(j, "", privacy.Budget{Epsilon: 1}) },
		"epsilon: is -1":        func(j *Job) { private(j, "", privacy.Budget{Epsilon: -1, Delta: 1e-5}) },
		"no released code": func(j *Job) {
			private(j, privacy.Published,
				privacy.Budget{Epsilon: 1, Delta: 1e-5})
		},
		"overflow":             func(j *Job) { private(j, "", privacy.Budget{Epsilon: 1e-9, Delta: 1e-9}) },
		"two-party for 3":      func(j *Job) { j.Columns, j.Mode = [][]int{{0}, {1}, {2}}, TwoParty },
		"fold, truncate, none": func(j *Job) { j.Post = "bend" },
	} {
		j := good()
		change(j)
		_, err := j.plan()
		if !fault.IsRequest(err) || !strings.Contains(err.Error(), text) {
			t.Errorf("want a wrong request with %q, got %v", text, err)
		}
	}
}

func TestSecurityIsChecked(t *testing.T) {
	for depth := 0; depth <= maxTreeDepth; depth++ {
		c, err := chooseChain(depth)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newParameters(c); err != nil {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
	for k := 2; k <= maxRankClusters; k++ {
		if _, err := newParameters(rankChain(k)); err != nil {
			t.Errorf("rank, k = %d: %v", k, err)
		}
	}
	over, _ := chooseChain(4)
	over.Levels++
	if _, err := newParameters(over); !fault.IsRequest(err) || !strings.Contains(err.Error(), "128-bit limit") {
		t.Errorf("a chain above 438 bits: %v", err)
	}
	if _, err := newParameters(smallChain); !fault.IsRequest(err) {
		t.Errorf("a ring below the table: %v", err)
	}
}

func row(data *dataset.Normalised, i int) []float64 {
	var out []float64
	for _, x := range data.Points.Point(i, make([]float32, data.Points.D)) {
		out = append(out, float64(x))
	}
	return out
}

// planOf is the plan of a job that is as it should be.
func planOf(t testing.TB, j *Job) *jobPlan {
	t.Helper()
	p, err := j.plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// planned is a run of a job that is as it should be.
func planned(t *testing.T, j *Job) *run {
	t.Helper()
	pl := planOf(t, j)
	s := newRun(pl)
	s.ready(alone)
	return s
}

// firstRound has the computing party and the key holder play a round after setUp, the key holder then what follows it.
func firstRound(s *run, roles *parties, then func(*protocol.Party) error) []protocol.Program {
	return []protocol.Program{func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		roles.alice.Party = p
		_, err := roles.alice.playRound(ctx, 0, s.start)
		return nil, err
	}, func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		roles.bob.Party = p
		err := roles.bob.answer(ctx, 1)
		if err == nil && then != nil {
			err = then(p)
		}
		return nil, err
	}}
}

// setUp runs the setup of two parties.
func setUp(t *testing.T, j *Job, pool *engine.Pool) (*run, *parties) {
	t.Helper()
	s := planned(t, j)
	roles, _ := s.newParties()
	programs := []protocol.Program{func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		roles.alice.join(p)
		return nil, roles.alice.prepare(ctx)
	}}
	if roles.bob != nil {
		programs = append(programs, func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			roles.bob.join(p)
			err := roles.bob.sendTerms(ctx)
			if err == nil {
				err = roles.bob.prepare(ctx)
			}
			if err == nil {
				roles.bob.current, err = roles.bob.receiveCentroids(ctx, 0, 0)
			}
			return nil, err
		})
	}
	for _, v := range roles.providers {
		programs = append(programs, func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			v.join(p)
			if err := v.sendTerms(ctx); err != nil {
				return nil, err
			}
			return nil, v.prepare(ctx)
		})
	}
	for _, m := range roles.members {
		programs = append(programs, func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			m.join(p)
			if err := m.sendTerms(ctx); err != nil {
				return nil, err
			}
			return nil, m.prepare(ctx)
		})
	}
	play(t, s.jobPlan, pool, programs...)
	return s, roles
}

// key is the secret key, of several holders the sum of theirs.
func (r *parties) key(p *parameters) *secretKey {
	if r.bob != nil {
		return r.bob.secret
	}
	all := len(p.Q()) + len(p.P()) - 1
	sum := &secretKey{main: secretRows(p.lattice.NewPoly(all)), small: secretRows(p.lattice.NewPoly(all))}
	rns.Clear(rns.Poly(sum.main))
	rns.Clear(rns.Poly(sum.small))
	for _, m := range r.members {
		p.lattice.Add(rns.Poly(sum.main), rns.Poly(sum.main), rns.Poly(m.secret.main))
		p.lattice.Add(rns.Poly(sum.small), rns.Poly(sum.small), rns.Poly(m.secret.small))
	}
	return sum
}

// play lets parties run.
func play(t *testing.T, pl *jobPlan, pool *engine.Pool, programs ...protocol.Program) {
	t.Helper()
	if err := protocol.Start(engine.NewRuntime(pool), pl.Plan, programs, nil,
		protocol.Options{}).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}
