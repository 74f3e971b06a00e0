package audit

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/balcan"
	"github.com/cohort-engine/cohort/engine/method/ckks"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// way is one way in which the noise of a method is watched.
type way struct {
	name string
	// weight divides the number of runs.
	weight int
	// clients hold the records, in turn; viewer sees all that is released.
	clients    int
	viewer     string
	neighbours privacy.Neighbours
	// job is a run on records of a pair, dealt to the clients.
	job func(p *Pair, parts []dataset.Part, seed *uint64, replay *privacy.Replay) engine.Job
	// watched are the records of runs that draw noise, pairs those whose record is to move what is released.
	watched Pair
	pairs   []Pair
	// rounds takes the place of job for a protocol whose rounds are watched one by one.
	rounds func() (drawing, *privacy.Ledger, error)
}

// drawing makes a run with all randomness from a seed and returns what it drew. The replay, if it has one, keeps what
// the run released.
type drawing func(ctx context.Context, rt *engine.Runtime, seed uint64, replay *privacy.Replay) ([]protocol.Draw, error)

// prepare plans the runs that are watched: once, as only their seed differs.
func (w *way) prepare() (drawing, *privacy.Ledger, error) {
	if w.rounds != nil {
		return w.rounds()
	}
	seed := new(uint64)
	plan, err := w.job(&w.watched, w.deal(w.watched.parts(true, w.neighbours)), seed, nil).Plan()
	if err != nil {
		return nil, nil, err
	}
	runner, ok := plan.(protocol.Runner)
	if !ok {
		return nil, nil, fault.Failed("audit", w.name+" has no roles", "", nil)
	}
	ledger, err := runner.Core().Ledger(nil)
	return func(ctx context.Context, rt *engine.Runtime, next uint64, replay *privacy.Replay) ([]protocol.Draw, error) {
		*seed = next // the plan's, too
		runner.Core().PublicSeed = protocol.NewPublicSeed(seed)
		var draws protocol.Draws
		_, err := runner.Connect(ctx, rt, protocol.Options{Draws: &draws, Replay: replay})
		return draws.Seen, err
	}, ledger, err
}

// connect runs a job's roles with a replay.
func connect(ctx context.Context, rt *engine.Runtime, job engine.Job, draws *protocol.Draws,
	replay *privacy.Replay) (*protocol.Plan, error) {
	plan, err := job.Plan()
	if err != nil {
		return nil, err
	}
	runner := plan.(protocol.Runner)
	_, err = runner.Connect(ctx, rt, protocol.Options{Draws: draws, Replay: replay})
	return runner.Core(), err
}

// deal gives the records of one holder to the clients in turn, the last to the first client.
func (w *way) deal(parts []dataset.Part) []dataset.Part {
	m := max(w.clients, 1)
	whole := parts[0]
	n, d := whole.Points.N, whole.Points.D
	rows := make([][]float32, m)
	indices := make([][]int, m)
	point := make([]float32, d)
	for i := range n {
		q := (n - 1 - i) % m
		rows[q] = append(rows[q], whole.Points.Point(i, point)...)
		indices[q] = append(indices[q], i)
	}
	out := make([]dataset.Part, m)
	for q := range out {
		out[q] = dataset.Part{Points: kernels.NewPanels(len(indices[q]), d), FractionBits: whole.FractionBits,
			Rows: indices[q]}
		kernels.Pack(out[q].Points, rows[q])
	}
	return out
}

// auditBudget is what watched runs spend.
var auditBudget = privacy.Budget{Epsilon: 1, Delta: 1e-5}

// waysOf are the ways in which a method's noise is watched: with each kind of noise and each who may draw it.
func waysOf(method string, c privacy.Calibration) ([]way, error) {
	var ways []way
	switch method {
	case "sulloyd", "csulloyd", "fastlloyd", "relative":
		ways = lloydWays(lloyd.Method(method), c)
	case "hybrid", "lsf", "eugkm", "evolve", "balcan":
		ways = centralWays(method)
	case "balcan-edler":
		p := fewRecords(3, 2, 60)
		ways = []way{{name: "one holder", weight: 2, viewer: privacy.Outsider, watched: p,
			job: func(p *Pair, parts []dataset.Part, seed *uint64, _ *privacy.Replay) engine.Job {
				problem := central(p, parts, auditBudget, Settings{}, seed, nil)
				problem.Iterations = 1
				return &balcan.Edler{Problem: problem}
			}}}
	case "ind-lap", "ldp-agg":
		ways = localWays(method, c)
	case "sketch", "sketch-basic":
		ways = sketchWays(sketch.Method(method), c)
	case "ckks":
		ways = encryptedWays(c)
	default:
		return nil, fault.Request("--white-box", method+" draws no noise", "choose a private method")
	}
	if c != privacy.Proven {
		for i := range ways {
			ways[i].pairs = nil // what others claim need not hold
		}
	}
	return ways, nil
}

// lloydWays are those of the horizontal methods.
func lloydWays(m lloyd.Method, c privacy.Calibration) []way {
	var ways []way
	for _, mechanism := range []protocol.Mechanism{protocol.Laplace, protocol.Gaussian} {
		if m == lloyd.Relative && mechanism == protocol.Laplace || m.Constrained() && mechanism == protocol.Gaussian &&
			c != privacy.Proven {
			continue // no such form
		}
		for _, by := range []struct {
			name       string
			clients    int
			noise      protocol.NoiseBy
			aggregator lloyd.Aggregator
		}{
			{"one client", 1, "", ""}, {"three clients, the server's noise", 3, protocol.ByServer, ""},
			{"three clients, local noise", 3, protocol.ByEach, ""},
			{"three clients, split noise", 3, protocol.InShares, ""},
			{"three clients in a ring", 3, protocol.InShares, lloyd.ByRing},
			{"three clients, shares among two servers", 3, protocol.AmongServers, lloyd.ByShares},
		} {
			w := way{name: by.name + ", " + string(mechanism), clients: by.clients, viewer: privacy.Outsider,
				neighbours: privacy.AddRemove, watched: corner(3, -0.25)}
			if m.Constrained() {
				w.watched = chain(3, 8)
				w.watched.Alpha = 2 // each client's clusters have so few records that it can fill them
			}
			w.job = func(p *Pair, parts []dataset.Part, seed *uint64, replay *privacy.Replay) engine.Job {
				j := &lloyd.Job{Method: m, Problem: protocol.Problem{K: p.K, Start: p.Start, Calibration: c,
					Mechanism: mechanism, Budget: auditBudget, Clients: parts, NoQuality: true, Noise: by.noise,
					Seed: seed, Iterations: 3}, EtaMinAlpha: p.Alpha, EtaMaxAlpha: 100, Post: step.Fold,
					Aggregator: by.aggregator}
				if mechanism == protocol.Laplace {
					j.Budget.Delta = 0
				}
				if laterCode(m, c) {
					j.Schedule = lloyd.LaterCode
				}
				if replay != nil {
					j.Records, j.Iterations, j.Post = replay.Records, 1, step.Keep
				}
				return j
			}
			if by.aggregator != lloyd.ByRing { // where nobody adds up for all, the exact sum is nobody's
				w.pairs = lloydPairs(m, by.clients)
			}
			ways = append(ways, w)
		}
	}
	return ways
}

// lloydPairs are the worst cases of a horizontal method. With several clients the sizes of one client's clusters are
// a part of all, so the counterexamples to one client's theorem are none.
func lloydPairs(m lloyd.Method, clients int) []Pair {
	switch {
	case m == lloyd.Relative:
		return []Pair{corner(2, -0.9), corner(4, -0.9)} // beyond the radius, so cut to it
	case !m.Constrained():
		return []Pair{corner(2, -0.25), corner(4, -0.25)}
	case clients > 1:
		return []Pair{chain(5, 10)}
	}
	return []Pair{doubled(), everyCluster(), chain(5, 10)}
}

// framed is the tree branch with counts of the columns before the tree, however weak the signal.
const framed = "framed tree"

// centralWays are those of hybrid, lsf and balcan.
func centralWays(method string) []way {
	var ways []way
	branches := []string{""}
	if method == "hybrid" {
		branches = []string{"tree", framed, "grid", "high-d", "projected", "mean"}
	}
	for _, branch := range branches {
		for _, by := range []struct {
			name, mechanism string
			clients         int
			delta           float64
			neighbours      privacy.Neighbours
		}{
			{"one client", "gaussian", 1, 1e-5, privacy.AddRemove}, {"one client", "laplace", 1, 0, privacy.AddRemove},
			{"three clients, split noise", "gaussian", 3, 1e-5, privacy.AddRemove},
			{"three clients, split noise", "laplace", 3, 0, privacy.AddRemove},
			{"one client, a record replaced", "gaussian", 1, 1e-5, privacy.ReplaceOne},
			{"one client, a record replaced", "laplace", 1, 0, privacy.ReplaceOne},
		} {
			if method != "hybrid" && by.clients > 1 {
				continue // it has one holder
			}
			weight := 2
			if by.clients > 1 || by.neighbours == privacy.ReplaceOne {
				weight = 3 // the noise of one client, in shares or at another scale
			}
			w := way{name: by.name + ", " + by.mechanism, weight: weight, clients: by.clients, viewer: privacy.Outsider,
				neighbours: by.neighbours, watched: fewRecords(3, 2, 60)}
			if branch != "" {
				w.name += ", " + branch
			}
			if branch != "" && branch != "tree" && branch != framed && branch != "grid" {
				w.watched = fewRecords(6, 2, 60)
			}
			w.pairs = []Pair{w.watched}
			if method == "lsf" {
				w.pairs = append(w.pairs, crowded(2, 2, 2000))
			}
			w.job = func(p *Pair, parts []dataset.Part, seed *uint64, replay *privacy.Replay) engine.Job {
				b := privacy.Budget{Epsilon: auditBudget.Epsilon, Delta: by.delta}
				return centralJob(method, *p, branch, parts, b,
					Settings{Mechanism: by.mechanism, Neighbours: by.neighbours}, seed, replay)
			}
			ways = append(ways, w)
		}
	}
	return ways
}

// localWays are those of ind-lap and ldp-agg.
func localWays(method string, c privacy.Calibration) []way {
	var ways []way
	for i, name := range []string{"two parties", "three parties"} {
		w := way{name: name, viewer: privacy.Server, neighbours: privacy.AddRemove, watched: fewRecords(2+i, 2, 60)}
		if method == string(sketch.LocalReports) {
			w.neighbours = privacy.ReplaceOne
		}
		w.pairs = []Pair{w.watched}
		w.job = func(p *Pair, parts []dataset.Part, seed *uint64, replay *privacy.Replay) engine.Job {
			return localJob(method, *p, 2+i, parts, auditBudget, c, Settings{}, seed, replay)
		}
		ways = append(ways, w)
	}
	return ways
}

// sketchWays are those of the sketch protocols: with joint keys and with a key for each pair of parties.
func sketchWays(method sketch.Method, c privacy.Calibration) []way {
	var ways []way
	for _, x := range []struct {
		parties int
		back    sketch.Return
	}{{2, sketch.ToServer}, {3, sketch.ToServer}, {3, sketch.Noised}} {
		parties := x.parties
		if x.back == sketch.Noised && (method != sketch.Sketch || c != privacy.Proven) {
			continue // it has no such form
		}
		w := way{name: fmt.Sprintf("%d parties", parties), weight: 2, viewer: privacy.Server,
			watched: fewRecords(3, 2, 60)}
		if x.back == sketch.Noised {
			w.name += ", noised return"
		}
		w.job = func(p *Pair, parts []dataset.Part, seed *uint64, _ *privacy.Replay) engine.Job {
			split := make(sketch.Split, parties)
			for h := range p.D {
				split[h%parties] = append(split[h%parties], h)
			}
			return &sketch.Job{Method: method,
				Problem: protocol.Problem{Clients: []dataset.Part{{Points: parts[0].Points, FractionBits: gridBits}},
					Bounds: box(p.D), Columns: split, K: p.K, Budget: auditBudget, Calibration: c, Seed: seed,
					NoQuality: true}, Sketches: sketchKeys, Return: x.back}
		}
		ways = append(ways, w)
	}
	return ways
}

// encryptedWays are those of ckks: by two parties, and by key holders together, all of whom or some decrypt.
func encryptedWays(c privacy.Calibration) []way {
	var ways []way
	for _, x := range []struct {
		name      string
		holders   int
		threshold int
	}{{"two parties", 1, 0}, {"two key holders", 2, 0}, {"two of three key holders", 3, 2}} {
		if x.holders > 1 && c != privacy.Proven {
			continue // the paper's noise is the computing party's alone
		}
		ways = append(ways, way{name: x.name, rounds: func() (drawing, *privacy.Ledger, error) {
			return encryptedDraws(c, x.holders, x.threshold)
		}})
	}
	return ways
}

// encryptedDraws watches a round of ckks: what its parties draw, and what the computing party's noise is worth in
// records.
func encryptedDraws(c privacy.Calibration, holders, threshold int) (drawing, *privacy.Ledger, error) {
	const n, k = 40, attackedClusters
	p := fewRecords(attackedColumns, k, n-1)
	job := &ckks.Job{Problem: protocol.Problem{Clients: []dataset.Part{{Points: p.parts(true,
		privacy.AddRemove)[0].Points, FractionBits: gridBits}},
		Bounds: box(attackedColumns), Columns: held(holders), K: k, Iterations: 1, Budget: auditBudget,
		Calibration: c, NoQuality: true, Start: []float64{-0.5, 0, 0, 0.5, 0, 0}}, Post: "none", Threshold: threshold}
	if holders > 1 {
		job.Mode = ckks.Multiparty
	}
	sigmaCount, sigmaSum, err := job.Scales()
	if err != nil {
		return nil, nil, err
	}
	if holders > 1 {
		// one of all that draw may collude: the others' shares make up the noise
		part := math.Sqrt(float64(cmp.Or(threshold, holders)))
		sigmaCount, sigmaSum = sigmaCount/part, sigmaSum/part
	}
	plan, err := job.Plan()
	if err != nil {
		return nil, nil, err
	}
	ledger, err := plan.(protocol.Runner).Core().Ledger(nil)
	if err != nil {
		return nil, nil, err
	}
	var opened *ckks.Opened
	return func(ctx context.Context, rt *engine.Runtime, seed uint64, _ *privacy.Replay) ([]protocol.Draw, error) {
		if opened == nil {
			if opened, err = ckks.Open(ctx, job, rt); err != nil {
				return nil, err
			}
		}
		var draws protocol.Draws
		v, err := opened.Close(ctx, seed, protocol.Options{Draws: &draws})
		if err != nil {
			return nil, err
		}
		counts := protocol.Draw{Stream: "counts in records", Noise: protocol.Noise{Scale: sigmaCount}}
		sums := protocol.Draw{Stream: "sums in records", Noise: protocol.Noise{Scale: sigmaSum}}
		for i, x := range v.Noise {
			of, sigma := &sums, sigmaSum
			if i%(1+attackedColumns) == 0 {
				of, sigma = &counts, sigmaCount
			}
			u := below(false, x/sigma)
			of.Chances = append(of.Chances, [2]float64{u, u})
		}
		return append(draws.Seen, counts, sums), nil
	}, ledger, nil
}

// held deals the columns of an attack to the computing party and so many others, some of whom may have none.
func held(others int) [][]int {
	columns := make([][]int, 1+others)
	for h := range attackedColumns {
		at := min(h, others)
		columns[at] = append(columns[at], h)
	}
	return columns
}
