package sketch

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// grids are small grids of cells with so many ids, phantoms included, of which a record comes into cell 0.
var grids = []struct {
	parties, clusters, phantoms int
	gamma                       float64
	records                     []int // by cell, the last party's clusters next to each other; of other cells none
}{
	{2, 2, 1, 16, nil}, {2, 2, 1, 4, nil}, {2, 2, 1, 2, nil}, {2, 2, 5, 4, nil}, {2, 3, 1, 16, nil}, {3, 2, 1, 16, nil},
	{3, 2, 3, 16, nil}, {2, 2, 1, 4, []int{1, 0, 0, 3}}, {2, 2, 2, 4, []int{0, 2, 1, 0}}, {2, 3, 2, 16, []int{2, 0, 1}},
}

// rarest is the least probability that law follows up.
const rarest = 1e-9

// law is the distribution of all heights under one key, of which extra more ids are in cell 0: of each cell the
// greatest height is at most h with probability F(h)^ids, up to the top.
func law(parties, clusters, phantoms, extra int, records []int, g *Geometric) map[string]float64 {
	cells := powInt(clusters, parties)
	out, heights := make(map[string]float64), make([]byte, parties*clusters)
	var add func(cell int, p float64)
	add = func(cell int, p float64) {
		if cell == cells {
			out[string(heights)] += p
			return
		}
		ids := float64(phantoms)
		if cell < len(records) {
			ids += float64(records[cell])
		}
		if cell == 0 {
			ids += float64(extra)
		}
		before, below := slices.Clone(heights), 0.0
		for h := 1; h <= g.max(); h++ {
			atMost := 1.0
			if h < g.max() {
				atMost = math.Pow(-math.Expm1(-float64(h)*math.Log1p(g.Gamma)), ids)
			}
			for l, rest := parties-1, cell; l >= 0; l, rest = l-1, rest/clusters {
				at := l*clusters + rest%clusters
				heights[at] = max(before[at], byte(h))
			}
			if q := p * (atMost - below); q > rarest {
				add(cell+1, q)
			}
			below = atMost
			copy(heights, before)
		}
	}
	add(0, 1)
	return out
}

// missing is the probability that law has not followed up, and rounding.
func missing(law map[string]float64) float64 {
	rest := 1 + 1e-12
	for _, p := range law {
		rest -= p
	}
	return rest
}

// hockeyStick is the least delta of two laws at epsilon, of the dearer order.
func hockeyStick(p, q map[string]float64, epsilon float64) (delta float64) {
	for _, order := range [][2]map[string]float64{{p, q}, {q, p}} {
		sum := 0.0
		for x, a := range order[0] {
			sum += max(a-math.Exp(epsilon)*order[1][x], 0)
		}
		delta = max(delta, sum)
	}
	return delta
}

// All heights of all parties, whose exact laws with and without a record are enumerated, are no further apart than what
// is charged, whatever records there are: at every epsilon, also where a cell has one phantom.
func TestHeightsAreChargedForMore(t *testing.T) {
	least := 1.0
	for _, c := range grids {
		g, err := newGeometric(c.gamma)
		if err != nil {
			t.Fatal(err)
		}
		without := law(c.parties, c.clusters, c.phantoms, 0, c.records, g)
		with := law(c.parties, c.clusters, c.phantoms, 1, c.records, g)
		for _, epsilon := range []float64{0, 0.01, 0.1, 0.3, 0.5, 0.69, 1, 2, 4} {
			a := &privacy.PLDAccountant{}
			a.Compose(privacy.FM{Gamma: c.gamma, Phantoms: c.phantoms, Parties: c.parties, Cells: c.clusters}, 1)
			charged, shown := a.Delta(epsilon), hockeyStick(without, with, epsilon)
			if left := math.Exp(epsilon) * (missing(without) + missing(with)); shown > charged+left {
				t.Errorf("%+v: delta(%v) is %v, charged is %v, and %v is not followed up", c, epsilon, shown, charged, left)
			}
			if len(c.records) == 0 && epsilon < 0.5 {
				least = min(least, shown/charged)
			}
		}
	}
	if t.Logf("at least %.3f of what is charged is shown", least); least < 0.5 {
		t.Errorf("of what is charged %.3f is shown", least)
	}
}

// The parties' heights have those laws: of many keys as many have some heights as the law says, within six deviations,
// and none has heights that it says no key has.
func TestHeightsHaveTheirLaw(t *testing.T) {
	pool := engine.NewPool(1)
	defer pool.Close()
	rt, seeds := engine.NewRuntime(pool), uint64(11)
	for _, c := range grids {
		const keys = 1 << 14
		w, err := NewWorstCase(WorstCase{Calibration: privacy.Proven, Budget: privacy.Budget{Epsilon: 100, Delta: 0.1},
			Parties: c.parties, Clusters: c.clusters, Sketches: keys, Gamma: c.gamma})
		if err != nil {
			t.Fatal(err)
		}
		w.run.plan.phantoms = float64(c.phantoms)
		labels := make([][]uint16, c.parties)
		put := func(cell int) {
			for l := c.parties - 1; l >= 0; l, cell = l-1, cell/c.clusters {
				labels[l] = append(labels[l], uint16(cell%c.clusters))
			}
		}
		for cell, n := range c.records {
			for range n {
				put(cell)
			}
		}
		for extra := range 2 {
			if extra == 1 {
				put(0)
			}
			seeds++
			views, err := w.Put(t.Context(), rt, privacy.NewStreams(seed(seeds)).Stream(0, 0, "heights"), labels)
			if err != nil {
				t.Fatal(err)
			}
			want, got := law(c.parties, c.clusters, c.phantoms, extra, c.records, w.run.plan.distribution), map[string]float64{}
			for i := range keys {
				var heights []byte
				for _, s := range views[0].Sketches {
					for _, h := range s.Row(i) {
						heights = append(heights, byte(h))
					}
				}
				got[string(heights)]++
			}
			if err := unlike(got, want, keys); err != nil {
				t.Errorf("%+v and %d more: %v", c, extra, err)
			}
		}
	}
}

// unlike tells where counts of n draws are not those of a law.
func unlike(counts, law map[string]float64, n float64) error {
	square, cells, rare, rareMean := 0.0, 0.0, 0.0, 0.0
	for x, p := range law {
		mean := n * p
		if mean < 10 { // together
			rare, rareMean = rare+counts[x], rareMean+mean
			continue
		}
		d := (counts[x] - mean) / math.Sqrt(mean*(1-p))
		if math.Abs(d) > 6 {
			return fmt.Errorf("heights %v are there %v times, want %.1f", []byte(x), counts[x], mean)
		}
		square, cells = square+d*d, cells+1
	}
	for x, count := range counts {
		if law[x] == 0 {
			rare += count
		}
	}
	if math.Abs(rare-rareMean) > 6*math.Sqrt(rareMean+1) {
		return fmt.Errorf("rare heights are there %v times, want %.1f", rare, rareMean)
	}
	if math.Abs(square-cells) > 6*math.Sqrt(2*cells)+18 {
		return fmt.Errorf("the sum of squares over %v heights is %.1f", cells, square)
	}
	return nil
}
