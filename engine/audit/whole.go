package audit

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/central"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/vertical"
)

// wholeRun is a case that runs a method from end to end and sees its centroids, in order of
// their first coordinate.
func wholeRun(p Pair, s Settings, viewer string, weight int, job func(parts []dataset.Part, b privacy.Budget, seed *uint64) engine.Job) (*Case, error) {
	sides := [2][]dataset.Part{p.parts(false, s.Neighbours), p.parts(true, s.Neighbours)}
	b := privacy.Budget{Epsilon: s.epsilon(), Delta: s.Delta}
	if b.Delta == 0 {
		b.Delta = 1e-5
	}
	run := func(ctx context.Context, rt *engine.Runtime, seed uint64, side int) (*engine.Result, error) {
		j := job(sides[side], b, &seed)
		if err := j.Validate(); err != nil {
			return nil, err
		}
		return j.Run(ctx, rt)
	}
	pool := engine.NewPool(1)
	defer pool.Close()
	res, err := run(context.Background(), engine.NewRuntime(pool), 0, 1)
	if err != nil {
		return nil, err
	}
	one := &Case{Name: p.Name, About: p.About, Law: Learned, Weight: weight}
	if err := one.state(res.Ledger, viewer); err != nil {
		return nil, err
	}
	one.Draw = func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
		side := 0
		if present {
			side = 1
		}
		res, err := run(ctx, rt, st.Uint64(), side)
		if err != nil {
			return nil, err
		}
		rows := slices.Clone(res.Centroids)
		slices.SortFunc(rows, slices.Compare[[]float64])
		// The sum of all coordinates comes first: the direction of a far corner.
		out := []float64{0}
		for _, r := range rows {
			for _, x := range r {
				out[0] += x
			}
			out = append(out, r...)
		}
		for len(out) < 1+p.K*p.D { // a method may find fewer centroids
			out = append(out, math.NaN())
		}
		for i, x := range out {
			if math.IsNaN(x) {
				out[i] = -1e9
			}
		}
		return out, nil
	}
	return one, nil
}

// fewRecords puts n records in one corner of d dimensions and adds one in the other.
func fewRecords(d, k, n int) Pair {
	p := Pair{Name: "far record", D: d, K: k, About: "a few records in one corner of the box, one more in the other"}
	for range n * d {
		p.Records = append(p.Records, -1)
	}
	for range d {
		p.Extra, p.Other = append(p.Extra, 1), append(p.Other, -1)
	}
	return p
}

func box(d int) dataset.Bounds {
	b := dataset.Bounds{Lo: make([]float64, d), Hi: make([]float64, d)}
	for i := range d {
		b.Lo[i], b.Hi[i] = -1, 1
	}
	return b
}

// Central are the cases of hybrid, lsf, balcan and balcan-edler.
func Central(method string, c privacy.Calibration, s Settings) ([]Case, error) {
	p := fewRecords(2, 2, 60)
	weight := 20
	laplace := s.Mechanism == "laplace"
	if method == "balcan-edler" {
		// one coordinate's noise under all d coordinates of a small cluster's mean (T5)
		p = fewRecords(784, 1, 12)
		p.Name, p.About = "small cluster", "one cluster of twelve records in 784 dimensions, a record in the far corner joins it"
		weight = 12
	}
	if s.Pair != nil {
		p = *s.Pair
	}
	one, err := wholeRun(p, s, "outsider", weight, func(parts []dataset.Part, b privacy.Budget, seed *uint64) engine.Job {
		data := central.Data{Clients: parts, Bounds: box(p.D), NoQuality: true}
		switch method {
		case "lsf":
			return &central.LSF{Data: data, K: p.K, Budget: b, Laplace: laplace, Neighbours: s.Neighbours, Seed: seed}
		case "balcan":
			return &central.Balcan{Data: data, K: p.K, Budget: b, Laplace: laplace, Neighbours: s.Neighbours, Seed: seed}
		case "balcan-edler":
			return &central.Edler{Data: data, K: p.K, Budget: b, KMeans: 1, Seed: seed}
		}
		return &central.Hybrid{Data: data, K: p.K, Budget: b, Laplace: laplace, Neighbours: s.Neighbours, Seed: seed}
	})
	if err != nil {
		return nil, err
	}
	if method == "balcan-edler" {
		one.Law = Laplace
	}
	return []Case{*one}, nil
}

// Local are the cases of ind-lap and ldp-agg.
func Local(method string, c privacy.Calibration, s Settings) ([]Case, error) {
	p := fewRecords(2, 2, 40)
	if s.Pair != nil {
		p = *s.Pair
	}
	one, err := wholeRun(p, s, "server", 20, func(parts []dataset.Part, b privacy.Budget, seed *uint64) engine.Job {
		split := make(vertical.Split, 2)
		for h := range p.D {
			split[h*2/p.D] = append(split[h*2/p.D], h)
		}
		return &vertical.Job{Protocol: vertical.Protocol(method), Data: &dataset.Normalised{Points: parts[0].Points, Bounds: box(p.D), FractionBits: gridBits},
			Split: split, K: p.K, Budget: b, Calibration: c, Neighbours: s.Neighbours, Seed: seed, NoQuality: true}
	})
	if err != nil {
		return nil, err
	}
	return []Case{*one}, nil
}
