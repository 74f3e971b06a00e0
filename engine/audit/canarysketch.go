package audit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// sketchMu is that of a Gaussian mechanism that spends the budget of sketches.
func sketchMu(s Settings) (b privacy.Budget, mu float64, err error) {
	b = privacy.Budget{Epsilon: s.epsilon(), Delta: cmp.Or(s.Delta, 1e-5)}
	mu, err = privacy.MuOf(b, 0)
	return b, mu, err
}

// sketchPairs are no record against one in a grid of two clusters a party, seen by a server that weighs all heights. It
// is told there which cell is whose as well as anywhere: the claim is that of who sees the greatest height of each
// cell, and with more clusters a height is one of more cells (T3).
func sketchPairs(s Settings) ([]Case, error) {
	budget, mu, err := sketchMu(s)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, x := range []struct {
		name    string
		parties int
		pairs   bool
	}{{"an empty cell, two clusters", 2, false}, {"an empty cell, two clusters, pair keys", 3, true}} {
		w := sketch.WorstCase{Calibration: privacy.Proven, Budget: budget, Parties: x.parties, Clusters: 2,
			Sketches: sketch.DefaultSketches, Gamma: sketch.DefaultGamma, PairKeys: x.pairs}
		c := Case{Name: x.name, Distribution: direct, Ratio: true, Weight: 10,
			Epsilon: budget.Epsilon, Delta: budget.Delta, Mu: mu,
			About: fmt.Sprintf("%d parties of two clusters, which share %d keys; an empty cell in which a record appears",
				x.parties, w.Sketches),
			Watched: "the sketches in all messages, as the server reads them; Gaussian but for what many keys leave"}
		workers := newPerWorker(func() (*sketch.WorstCase, error) { return sketch.NewWorstCase(w) })
		c.Draw = func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
			worst, err := workers.of(rt)
			if err != nil {
				return nil, err
			}
			views, err := worst.Put(ctx, rt, st, slices.Repeat([][]uint16{make([]uint16, sideOf(present))}, x.parties))
			ratio := 0.0
			for _, v := range views {
				ratio += cellScores(v)[0]
			}
			return []float64{ratio}, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// sketchFields are sketches with a canary in each cell of the grid of two parties with the same keys, and of three
// parties with keys for each pair in cells of which no two canaries share one.
func sketchFields(s Settings) ([]*field, error) {
	budget, mu, err := sketchMu(s)
	if err != nil {
		return nil, err
	}
	var all []*field
	for _, x := range []struct {
		parties, clusters int
		pairs             bool
	}{{2, 64, false}, {3, 64, true}} {
		w, err := sketch.NewWorstCase(sketch.WorstCase{Calibration: privacy.Proven, Budget: budget,
			Parties: x.parties, Clusters: x.clusters, Sketches: sketch.DefaultSketches,
			Gamma: sketch.DefaultGamma, PairKeys: x.pairs})
		if err != nil {
			return nil, err
		}
		c := &sketchCrowd{worst: w, pairs: x.pairs}
		m := x.clusters * x.clusters
		f := &field{canaries: m, runs: (enough + m - 1) / m, play: c.play}
		f.Name = "a canary in each cell"
		f.About = fmt.Sprintf("%d parties of %d clusters, which share %d keys; a canary in each cell",
			x.parties, x.clusters, w.Sketches)
		if x.pairs {
			f.Name = "pair keys"
			f.About = fmt.Sprintf("%d parties of %d clusters, each pair with %d keys of its own; "+
				"a canary in each cell of each pair",
				x.parties, x.clusters, w.Sketches)
		}
		f.About += "; what is charged has each cell's height, of which a server with so many clusters sees half (T3)"
		f.Watched = "the sketches in all messages, as the server reads them; Gaussian but for what many keys leave"
		f.Epsilon, f.Delta, f.Mu = budget.Epsilon, budget.Delta, mu
		all = append(all, f)
	}
	return all, nil
}

// sketchCrowd puts canary i into clusters i / k, i mod k, and their sum modulo k.
type sketchCrowd struct {
	worst *sketch.WorstCase
	pairs bool
}

func (c *sketchCrowd) cluster(i, party int) int {
	k := c.worst.Clusters
	return [...]int{i / k, i % k, (i/k + i%k) % k}[party]
}

func (c *sketchCrowd) play(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, in []bool) (
	[]float64, int, error) {
	labels := make([][]uint16, c.worst.Parties)
	for i, there := range in {
		for l := range labels {
			if there {
				labels[l] = append(labels[l], uint16(c.cluster(i, l)))
			}
		}
	}
	views, err := c.worst.Put(ctx, rt, st, labels)
	if err != nil {
		return nil, 0, err
	}
	scores, numbers, n := make([]float64, len(in)), 0, 0
	for a := range c.worst.Parties {
		for b := a + 1; b < c.worst.Parties; b++ {
			cells := cellScores(views[n])
			n++
			for i := range scores {
				scores[i] += cells[c.cluster(i, a)*c.worst.Clusters+c.cluster(i, b)]
			}
		}
	}
	for _, v := range views {
		for _, s := range v.Sketches {
			numbers += len(s.Heights)
		}
	}
	return scores, numbers, nil
}

// register is what the heights of one party's clusters under a key tell of a cell.
type register struct {
	height uint16
	// below is the log of the probability that an id is no higher, higher how many of the other party's clusters are, and
	// met that one of them is as high: its cell has the id.
	below  float64
	higher int
	met    bool
}

// cellScores are, by cell of two parties' clusters, the log ratio of how likely their heights are with one more id in
// the cell and without (THEOREMS.md T3). Where both have the same height the cell's greatest is seen. Else the lesser
// height is that of one cell of its cluster: of none whose other cluster is lower; and no id of the cell is higher.
func cellScores(v *sketch.View) []float64 {
	k, n, step := v.Sketches[0].Clusters, v.Phantoms, math.Log1p(v.Distribution.Gamma)
	log := func(h uint16) float64 { return math.Log(-math.Expm1(-float64(h) * step)) }
	scores := make([]float64, k*k)
	var sides [2][]register
	for key := range v.Sketches[0].Keys {
		for side := range sides {
			sides[side] = sides[side][:0]
			for _, h := range v.Sketches[side].Row(key) {
				r := register{height: h, below: log(h)}
				for _, o := range v.Sketches[1-side].Row(key) {
					if o > h {
						r.higher++
					}
					r.met = r.met || o == h
				}
				sides[side] = append(sides[side], r)
			}
		}
		for a, x := range sides[0] {
			for b, y := range sides[1] {
				least := &x
				if y.height < x.height {
					least = &y
				}
				s := least.below
				switch {
				case x.height == y.height:
					s += math.Log1p(1 / n)
				case !least.met:
					s += math.Log1p(1 / (n * float64(least.higher)))
				}
				scores[a*k+b] += s
			}
		}
	}
	return scores
}
