package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/balcan"
	"github.com/cohort-engine/cohort/engine/method/eugkm"
	"github.com/cohort-engine/cohort/engine/method/evolve"
	"github.com/cohort-engine/cohort/engine/method/hybrid"
	"github.com/cohort-engine/cohort/engine/method/lsf"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// maker builds a job on one side of a pair; the replay is nil for a run of its own.
type maker func(parts []dataset.Part, b privacy.Budget, seed *uint64, replay *privacy.Replay) engine.Job

// runs are those of a case from end to end. A worker plans either side of the pair once: its trials are simulations of
// other seeds.
type runs struct {
	job    maker
	sides  [2][]dataset.Part
	budget privacy.Budget
	plans  *perWorker[*[2]protocol.Runner]
}

// wholeRun starts a case that runs a method from end to end, with its ledger.
func wholeRun(p Pair, s Settings, viewer string, job maker) (*Case, *runs, error) {
	r := &runs{job: job, sides: [2][]dataset.Part{p.parts(false, s.Neighbours), p.parts(true, s.Neighbours)},
		budget: privacy.Budget{Epsilon: s.epsilon(), Delta: cmp.Or(s.Delta, 1e-5)},
		plans:  newPerWorker(func() (*[2]protocol.Runner, error) { return new([2]protocol.Runner), nil })}
	pool := engine.NewPool(1)
	defer pool.Close()
	res, err := r.run(context.Background(), engine.NewRuntime(pool), 0, 1, nil)
	if err != nil {
		return nil, nil, err
	}
	one := &Case{Name: p.Name, About: p.About, Weight: 1}
	return one, r, one.state(res.Ledger, viewer)
}

// plan is the plan of a side with a seed. A worker's replay is always the same.
func (r *runs) plan(rt *engine.Runtime, seed uint64, side int, replay *privacy.Replay) (protocol.Runner, error) {
	plans, err := r.plans.of(rt)
	if err != nil {
		return nil, err
	}
	if plans[side] == nil {
		plan, err := r.job(r.sides[side], r.budget, &seed, replay).Plan()
		if err != nil {
			return nil, err
		}
		plans[side] = plan.(protocol.Runner)
	}
	core := plans[side].Core()
	*core = *core.Again(seed)
	return plans[side], nil
}

func (r *runs) run(ctx context.Context, rt *engine.Runtime, seed uint64, side int,
	replay *privacy.Replay) (*engine.Result, error) {
	plan, err := r.plan(rt, seed, side, replay)
	if err != nil {
		return nil, err
	}
	return plan.Run(ctx, rt)
}

// connect is run with what the options record.
func (r *runs) connect(ctx context.Context, rt *engine.Runtime, seed uint64, side int, o protocol.Options) error {
	plan, err := r.plan(rt, seed, side, o.Replay)
	if err != nil {
		return err
	}
	_, err = plan.Connect(ctx, rt, o)
	return err
}

// releases is a whole run that is judged by everything it releases: the same outcome is run through the
// neighbour too, and the score is the log ratio of how likely it is on either: exact, but for choices by
// permute-and-flip (see Replay.Choose). Any score is sound, the exact one tells most.
func releases(p Pair, s Settings, viewer string, weight int, job maker) (*Case, error) {
	one, runs, err := wholeRun(p, s, viewer, job)
	if err != nil {
		return nil, err
	}
	one.Watched = "every release of a whole run, by its likelihood ratio on the pair"
	one.Distribution, one.Weight = direct, weight
	one.Ratio = true
	one.Draw = byReleases(p, func(ctx context.Context, rt *engine.Runtime, seed uint64, side int,
		replay *privacy.Replay) error {
		_, err := runs.run(ctx, rt, seed, side, replay)
		return err
	})
	return one, nil
}

// byReleases is the draw of a case that is judged by all releases of a run with the replay.
func byReleases(p Pair,
	run func(ctx context.Context, rt *engine.Runtime, seed uint64, side int, replay *privacy.Replay) error,
) func(context.Context, *engine.Runtime, *privacy.Stream, bool) ([]float64, error) {
	records := (len(p.Records) + len(p.Extra)) / p.D
	replays := newPerWorker(func() (*privacy.Replay, error) { return &privacy.Replay{Records: records}, nil })
	return func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
		replay, err := replays.of(rt)
		if err != nil {
			return nil, err
		}
		seed := st.Uint64()
		return ratio(replay, sideOf(present), p.Name, func(side int) error { return run(ctx, rt, seed, side, replay) })
	}
}

// ratio runs a side, and the other on what the first released, and returns the log of how much likelier the
// releases are with the record than without.
func ratio(replay *privacy.Replay, side int, name string, run func(side int) error) ([]float64, error) {
	replay.Record()
	if err := run(side); err != nil {
		return nil, err
	}
	if replay.Releases() == 0 {
		return nil, fmt.Errorf("audit: %s: a run released nothing with the replay", name)
	}
	replay.Replay()
	err := run(1 - side)
	var loss float64
	if err == nil {
		loss, err = replay.Loss()
	}
	switch {
	case errors.Is(err, privacy.ErrReplay): // the neighbour cannot have made this outcome
		loss = math.Inf(1)
	case err != nil:
		return nil, err
	case math.IsNaN(loss):
		return nil, fmt.Errorf("audit: %s: an outcome is impossible on both sides", name)
	}
	if side == 0 {
		loss = -loss
	}
	return []float64{loss}, nil
}

// seenByClient is a whole run with additive noise that is judged, as by releases, by the last of several clients, who
// takes its own noise off what is released. The record is the first client's.
func seenByClient(p Pair, s Settings, weight, clients int, job maker) (*Case, error) {
	one, runs, err := wholeRun(p, s, privacy.Clients, job)
	if err != nil {
		return nil, err
	}
	one.Watched = "every release of a whole run, less the client's own noise, by its likelihood ratio on the pair"
	one.Distribution, one.Ratio, one.Weight = direct, true, weight
	records := (len(p.Records) + len(p.Extra)) / p.D
	replays := newPerWorker(func() (*privacy.Replay, error) { return &privacy.Replay{Records: records}, nil })
	one.Draw = func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
		replay, err := replays.of(rt)
		if err != nil {
			return nil, err
		}
		seed, side := st.Uint64(), sideOf(present)
		var own protocol.Draws
		replay.Record()
		if err = runs.connect(ctx, rt, seed, side, protocol.Options{Draws: &own, Replay: replay}); err != nil {
			return nil, err
		}
		replay.Replay()
		err = runs.connect(ctx, rt, seed, 1-side, protocol.Options{Replay: replay})
		if err == nil {
			_, err = replay.Loss()
		}
		switch {
		case errors.Is(err, privacy.ErrReplay): // the neighbour cannot have made this outcome
			return []float64{math.Inf(2*side - 1)}, nil
		case err != nil:
			return nil, err
		}
		var here, there, scales []float64
		gaussian := false
		replay.Numbers(func(x privacy.Number) {
			here, there = append(here, float64(x.Released-x.First)), append(there, float64(x.Released-x.Second))
			scales, gaussian = append(scales, x.Scale), x.Gaussian
		})
		for _, z := range [][]float64{here, there} {
			if err := less(z, protocol.Role(clients-1), &own); err != nil {
				return nil, err
			}
		}
		loss := 0.0
		for i, b := range scales {
			x, y := math.Abs(here[i])/b, math.Abs(there[i])/b
			if gaussian {
				x, y = x*x/2, y*y/2
			}
			loss += y - x
		}
		return []float64{loss * float64(2*side-1)}, nil
	}
	return one, nil
}

// centroids is a whole run that is judged by the centroids that it ends with, in order of their first
// coordinate.
func centroids(p Pair, s Settings, viewer string, weight int, distribution Distribution, job maker) (*Case, error) {
	one, runs, err := wholeRun(p, s, viewer, job)
	if err != nil {
		return nil, err
	}
	one.Watched, one.Distribution, one.Weight = "the centroids of a whole run", distribution, weight
	one.Draw = func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
		res, err := runs.run(ctx, rt, st.Uint64(), sideOf(present), nil)
		if err != nil {
			return nil, err
		}
		rows := slices.Clone(res.Centroids)
		if len(rows) != p.K {
			return nil, fmt.Errorf("audit: %s: %d centroids of %d", p.Name, len(rows), p.K)
		}
		slices.SortFunc(rows, slices.Compare[[]float64])
		// The sum of all coordinates comes first: the direction of a far corner.
		out := []float64{0}
		for _, r := range rows {
			for _, x := range r {
				out[0] += x
			}
			out = append(out, r...)
		}
		return out, nil
	}
	return one, nil
}

// fewRecords puts n records in one corner of d dimensions and adds one in the other.
func fewRecords(d, k, n int) Pair {
	p := Pair{Name: "far record", D: d, K: k,
		About: fmt.Sprintf("%d records in one corner of the box of %d dimensions, one more in the other", n, d)}
	for range n * d {
		p.Records = append(p.Records, -1)
	}
	for range d {
		p.Extra, p.Other = append(p.Extra, 1), append(p.Other, -1)
	}
	return p
}

// crowded adds one more record where all n are: as many cells on its path are open as a forest may have.
func crowded(d, k, n int) Pair {
	p := fewRecords(d, k, n)
	p.Name = "one of a crowd"
	p.About = fmt.Sprintf("%d records in one corner of the box of %d dimensions, one more in the same", n, d)
	copy(p.Extra, p.Records)
	for h := range p.Other {
		p.Other[h] = 1
	}
	return p
}

// crowds has half of n records in either of two corners and adds one in the second: every cell on its path is open, and
// the one centroid is far from it.
func crowds(d, n int) Pair {
	p := crowded(d, 1, n)
	p.Name = "one of two crowds"
	p.About = fmt.Sprintf("%d records in either of two corners of the box of %d dimensions, one more in the second, "+
		"one cluster", n/2, d)
	for i := range p.Records[:n/2*d] {
		p.Records[i] = 1
	}
	for h := range p.Extra {
		p.Extra[h], p.Other[h] = -1, 1
	}
	return p
}

func box(d int) dataset.Bounds { return dataset.SameBounds(d, -1, 1) }

// central is the problem of a run on a pair's records.
func central(p *Pair, parts []dataset.Part, b privacy.Budget, s Settings, seed *uint64,
	replay *privacy.Replay) protocol.Problem {
	return protocol.Problem{Clients: parts, Bounds: box(p.D), K: p.K, Budget: b, Neighbours: s.Neighbours,
		Mechanism: protocol.Mechanism(s.Mechanism), Seed: seed, NoQuality: true, Replay: replay}
}

// centralJob is a run of hybrid, by a branch, lsf, eugkm, evolve or balcan.
func centralJob(method string, p Pair, branch string, parts []dataset.Part, b privacy.Budget, s Settings,
	seed *uint64, replay *privacy.Replay) engine.Job {
	problem := central(&p, parts, b, s, seed, replay)
	switch method {
	case "lsf":
		return &lsf.Job{Problem: problem}
	case "eugkm":
		problem.Iterations = 1
		return &eugkm.Job{Problem: problem}
	case "evolve":
		return &evolve.Job{Problem: problem}
	case "balcan":
		return &balcan.Job{Problem: problem}
	}
	if branch == framed {
		return &hybrid.Job{Problem: problem, Branch: "tree", Frame: "on"}
	}
	return &hybrid.Job{Problem: problem, Branch: branch}
}

// localJob is a run by columns, by so many parties, whose result the server has.
func localJob(method string, p Pair, holders int, parts []dataset.Part, b privacy.Budget, c privacy.Calibration,
	s Settings, seed *uint64, replay *privacy.Replay) engine.Job {
	split := make(sketch.Split, holders)
	for h := range p.D {
		split[h*holders/p.D] = append(split[h*holders/p.D], h)
	}
	j := &sketch.Job{Method: sketch.Method(method),
		Problem: protocol.Problem{Clients: []dataset.Part{{Points: parts[0].Points, FractionBits: gridBits}},
			Bounds: box(p.D), Columns: split, K: p.K, Budget: b, Calibration: c, Neighbours: s.Neighbours, Seed: seed,
			NoQuality: true, Replay: replay}}
	if j.Method == sketch.Sketch || j.Method == sketch.SketchBasic {
		j.Sketches = sketchKeys
	}
	return j
}

// byColumns makes such runs on sides of a pair.
func byColumns(method string, p Pair, holders int, c privacy.Calibration, s Settings) maker {
	return func(parts []dataset.Part, b privacy.Budget, seed *uint64, replay *privacy.Replay) engine.Job {
		return localJob(method, p, holders, parts, b, c, s, seed, replay)
	}
}

// centralCases are the cases of hybrid, lsf, eugkm, evolve, balcan and balcan-edler.
func centralCases(method string, c privacy.Calibration, s Settings) ([]Case, error) {
	if method == "balcan-edler" {
		// one coordinate's noise under all d coordinates of a small cluster's mean (T5)
		p := fewRecords(784, 1, 12)
		p.Name, p.About = "small cluster",
			"one cluster of twelve records in 784 dimensions, a record in the far corner joins it"
		if s.Pair != nil {
			p = *s.Pair
		}
		one, err := centroids(p, s, "outsider", 16, laplaceNoise,
			func(parts []dataset.Part, b privacy.Budget, seed *uint64, _ *privacy.Replay) engine.Job {
				problem := central(&p, parts, b, Settings{}, seed, nil)
				problem.Iterations = 1
				return &balcan.Edler{Problem: problem}
			})
		if err != nil {
			return nil, err
		}
		return []Case{*one}, nil
	}
	type variant struct {
		p       Pair
		branch  string
		weight  int
		clients int
		viewer  string // the outsider if empty
	}
	one, two := fewRecords(2, 1, 60), fewRecords(2, 2, 60)
	one.Name = "far record, one cluster"
	variants := []variant{{two, "", 1, 1, ""}}
	switch method {
	case "hybrid":
		wide := fewRecords(6, 2, 60)
		variants = []variant{{one, "tree", 28, 1, ""}, {crowds(2, 2000), "tree", 70, 1, ""},
			{wide, "high-d", 20, 1, ""}, {wide, "projected", 20, 1, ""},
			{wide, "mean", 80, 1, ""}, {crowds(2, 2000), "tree", 130, 3, ""},
			{crowds(2, 2000), "tree", 130, 3, privacy.Clients}, {wide, "mean", 90, 3, privacy.Clients},
			{wide, "mean", 120, 3, privacy.Server}, {two, "grid", 12, 1, ""}}
		for i, name := range []string{"far record, high dimension", "far record, projected", "far record, mean",
			"one of two crowds, three clients, seen by an outsider", "one of two crowds, three clients, seen by a client",
			"far record, mean, three clients, seen by a client", "far record, mean, three clients, seen by the server",
			"far record, grid"} {
			variants[2+i].p.Name = name
		}
	case "lsf":
		variants = append(variants, variant{crowded(2, 2, 2000), "", 10, 1, ""})
	case "balcan":
		far := fewRecords(3, 2, 60) // moves most of what is released
		far.Name = "far record, two clusters"
		variants = []variant{{one, "", 10, 1, ""}, {far, "", 10, 1, ""}, {crowds(2, 2000), "", 40, 1, ""}}
	}
	if s.Pair != nil {
		variants = []variant{{*s.Pair, "", 16, 1, ""}}
	}
	var cases []Case
	for _, v := range variants {
		job := func(parts []dataset.Part, b privacy.Budget, seed *uint64, replay *privacy.Replay) engine.Job {
			parts = (&way{clients: v.clients}).deal(parts)
			return centralJob(method, v.p, v.branch, parts, b, s, seed, replay)
		}
		var one *Case
		var err error
		if v.viewer == privacy.Clients {
			one, err = seenByClient(v.p, s, v.weight, v.clients, job)
		} else {
			one, err = releases(v.p, s, cmp.Or(v.viewer, privacy.Outsider), v.weight, job)
		}
		if err != nil {
			return nil, err
		}
		cases = append(cases, *one)
	}
	return cases, nil
}

// local are the cases of ind-lap and ldp-agg: of two parties and of three, as the server sees them and a party does.
func local(method string, c privacy.Calibration, s Settings) ([]Case, error) {
	if method == string(sketch.LocalReports) {
		if s.Pair != nil && s.Neighbours != privacy.ReplaceOne {
			return nil, fault.Request("--pair", "adds a record, and the number of ldp-agg's reports is public",
				"use --neighbours replace-one")
		}
		s.Neighbours = privacy.ReplaceOne
	}
	if s.Pair != nil {
		one, err := releases(*s.Pair, s, privacy.Server, 2, byColumns(method, *s.Pair, 2, c, s))
		if err != nil {
			return nil, err
		}
		return []Case{*one}, nil
	}
	var cases []Case
	for i, name := range []string{"two parties", "three parties"} {
		holders := 2 + i
		p := fewRecords(holders, 2, 40)
		p.Name += ", " + name + ", seen by the server"
		one, err := releases(p, s, privacy.Server, 3+i, byColumns(method, p, holders, c, s))
		if err != nil {
			return nil, err
		}
		cases = append(cases, *one)
	}
	one, err := untold(method, c, s)
	if err != nil {
		return nil, err
	}
	return append(cases, *one), nil
}

// untold is what reaches the last of three parties in a run of columns whose result stays with the server: the ledger
// lists nothing, so the least that tells a record is a violation.
func untold(method string, c privacy.Calibration, s Settings) (*Case, error) {
	p := fewRecords(3, 2, 40)
	p.Name += ", three parties, seen by a party"
	one, runs, err := wholeRun(p, s, privacy.Clients, byColumns(method, p, 3, c, s))
	if err != nil {
		return nil, err
	}
	one.Watched, one.Weight = "the messages that reach the last party: how many, how long, and what is in them", 80
	one.Draw = func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
		var views protocol.Views
		if err := runs.connect(ctx, rt, st.Uint64(), sideOf(present), protocol.Options{Views: &views}); err != nil {
			return nil, err
		}
		messages, bytes, sum := 0, 0, 0
		for _, x := range views.Seen {
			if x.Viewer != 2 || x.Of == 2 { // what a party has made itself tells it nothing
				continue
			}
			messages, bytes = messages+1, bytes+len(x.Message)
			for _, b := range x.Message {
				sum += int(b)
			}
			for _, v := range x.Values {
				sum += int(v)
			}
		}
		return []float64{float64(messages), float64(bytes), float64(sum)}, nil
	}
	return one, nil
}
