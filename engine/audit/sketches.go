package audit

import (
	"context"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// sketchKeys is how many keys the sketches of a case have. The leak of the claimed calibration does not
// depend on it: as many more keys as need that many more phantoms for each.
const sketchKeys = 64

// sketchCases are the cases of the sketch protocols: no record against one, which every party puts into
// its cluster 0 (T3).
func sketchCases(method string, c privacy.Calibration, s Settings) ([]Case, error) {
	b := privacy.Budget{Epsilon: s.Epsilon, Delta: s.Delta}
	if b.Epsilon == 0 {
		b.Epsilon = 0.5
	}
	if b.Delta == 0 {
		b.Delta = 5e-5
	}
	var cases []Case
	for _, k := range []struct {
		name, about string
		gamma       float64
		parties     int
		value       func([]*sketch.Sketches) float64
	}{
		{"equal heights", "an empty cell in which a record appears; the greatest height on which two parties' " +
			"sketches agree", 0.05, 2, func(s []*sketch.Sketches) float64 { return float64(sketch.EqualHeight(s)) }},
		{"sum of heights", "an empty cell in which a record appears; the sum over the keys of the least height of its " +
			"clusters", 1, 2, heightSum},
		{"three parties", "an empty cell of three parties in which a record appears; the greatest height on which " +
			"all agree", 0.05, 3, func(s []*sketch.Sketches) float64 { return float64(sketch.EqualHeight(s)) }},
	} {
		cases = append(cases, Case{Name: k.name, About: k.about, Watched: "the messages of all parties", Epsilon: b.Epsilon,
			Delta: b.Delta, Unbounded: c == privacy.Claimed, Distribution: direct, Weight: 4,
			Draw: sketchDraw(sketch.WorstCase{Calibration: c, Budget: b, Parties: k.parties, Clusters: 2, Sketches: sketchKeys,
				Gamma: k.gamma}, k.value)})
	}
	if c == privacy.Proven && method == string(sketch.Sketch) {
		returned, err := returnedCases(b)
		if err != nil {
			return nil, err
		}
		cases = append(cases, returned...)
	}
	one, err := untold(method, c, Settings{Epsilon: b.Epsilon, Delta: b.Delta})
	if err != nil {
		return nil, err
	}
	cases = append(cases, *one)
	// fail now rather than in the trials if the budget has no phantoms
	_, err = sketch.NewWorstCase(sketch.WorstCase{Calibration: c, Budget: b, Parties: 2, Clusters: 2,
		Sketches: sketchKeys, Gamma: 1})
	return cases, err
}

// returnedCases are what holders of the keys see of sketches with a noised return, two of them and three with keys for
// each pair.
func returnedCases(b privacy.Budget) ([]Case, error) {
	var cases []Case
	for _, k := range []struct {
		name    string
		parties int
		pairs   bool
	}{{"returned to holders of the keys", 2, false}, {"returned to three holders of pairs' keys", 3, true}} {
		w := sketch.WorstCase{Calibration: privacy.Proven, Budget: b, Parties: k.parties, Clusters: 2,
			Sketches: sketchKeys, Gamma: sketch.DefaultGamma, PairKeys: k.pairs, Returned: true}
		one, err := sketch.NewWorstCase(w)
		if err != nil {
			return nil, err
		}
		ledger := &privacy.Ledger{Delta: b.Delta}
		if err := ledger.Add(one.ReturnedEntry()); err != nil {
			return nil, err
		}
		c := Case{Name: k.name,
			About:        "an empty cell in which a record appears, seen by a party, which knows keys and phantoms",
			Watched:      "the drawn cells that are returned, by their likelihood ratio on the pair",
			Distribution: direct, Ratio: true,
			Weight: 6 * (k.parties - 1)}
		if err := c.state(ledger, privacy.Clients); err != nil {
			return nil, err
		}
		workers := newPerWorker(func() (*sketch.WorstCase, error) { return sketch.NewWorstCase(w) })
		c.Draw = func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
			worst, err := workers.of(rt)
			if err != nil {
				return nil, err
			}
			ratio, _, err := worst.DrawReturned(ctx, rt, st, present)
			return []float64{ratio}, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// sketchDraw draws from a worst case of its own for each worker.
func sketchDraw(w sketch.WorstCase, value func([]*sketch.Sketches) float64) func(context.Context, *engine.Runtime,
	*privacy.Stream, bool) ([]float64, error) {
	workers := newPerWorker(func() (*sketch.WorstCase, error) { return sketch.NewWorstCase(w) })
	return func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
		c, err := workers.of(rt)
		if err != nil {
			return nil, err
		}
		sketches, err := c.Draw(ctx, rt, st, present)
		if err != nil {
			return nil, err
		}
		return []float64{value(sketches)}, nil
	}
}

// heightSum adds, over the keys, the least height of cluster 0 among the parties.
func heightSum(sketches []*sketch.Sketches) float64 {
	var sum float64
	for i := range sketches[0].Keys {
		h := sketches[0].Row(i)[0]
		for _, s := range sketches[1:] {
			h = min(h, s.Row(i)[0])
		}
		sum += float64(h)
	}
	return sum
}
