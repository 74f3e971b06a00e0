package sketch

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// Random tests here draw from fixed seeds, so their outcome is determined; the
// tolerances are at least six standard errors, a failure probability below
// 2e-9 each for a fresh seed.

func distribution(t testing.TB, gamma float64) *Geometric {
	g, err := newGeometric(gamma)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// drawSketches draws sketches by their distribution, without ids: per key and cell the
// minimum hash of truth[cell] + phantoms ids, per sketch that of its cells.
func drawSketches(rng *rand.Rand, g *Geometric, parties, clusters, keys int, truth []float64, phantoms float64) *View {
	v := &View{Distribution: g, Phantoms: phantoms, Shared: true}
	for range parties {
		v.Sketches = append(v.Sketches, newSketches(keys, clusters))
	}
	grid, err := newDenseGrid(parties, clusters)
	if err != nil {
		panic(err)
	}
	for i := range keys {
		for c := range grid.len() {
			rate := truth[c] + phantoms
			if rate <= 0 {
				continue
			}
			h := g.height(rng.ExpFloat64() / rate)
			for l, a := range grid.cell(c) {
				row := v.Sketches[l].Row(i)
				row[a] = max(row[a], h)
			}
		}
	}
	return v
}

// scattered puts n records into a few heavy cells and some stray ones.
func scattered(rng *rand.Rand, parties, clusters, n int) (truth []float64, margins [][]float64) {
	grid, err := newDenseGrid(parties, clusters)
	if err != nil {
		panic(err)
	}
	truth = make([]float64, grid.len())
	for range n {
		if rng.IntN(50) == 0 {
			truth[rng.IntN(len(truth))]++
		} else {
			truth[rng.IntN(5)*7919%len(truth)]++
		}
	}
	margins = make([][]float64, parties)
	for l := range margins {
		margins[l] = make([]float64, clusters)
		for i, w := range truth {
			margins[l][grid.cell(i)[l]] += w
		}
	}
	return truth, margins
}

func denseWeights(g *Grid) []float64 {
	w := make([]float64, powInt(g.Clusters, g.Parties))
	for i, x := range g.Weights {
		w[dense(g.cell(i), g.Clusters)] = x
	}
	return w
}

func relativeError(w, truth []float64) float64 {
	sum, n := 0.0, 0.0
	for i := range truth {
		sum += math.Abs(w[i] - truth[i])
		n += truth[i]
	}
	return sum / n
}

func TestHeightOfOneIsTheLeadingZeros(t *testing.T) {
	g := distribution(t, 1)
	if g.max() != 65 || g.bytes() != 1 {
		t.Fatalf("Max is %d and Bytes %d, want 65 and 1", g.max(), g.bytes())
	}
	for _, x := range []uint64{1<<8 + 1, 3, 1<<20 + 1<<8, 1<<63 + 1<<20, 1<<63 - 1<<20, math.MaxUint64 - 1<<20} {
		if h, want := int(g.height(-math.Log1p(-float64(x)*0x1p-64))), bits.LeadingZeros64(x)+1; h != want {
			t.Errorf("height of the arrival of hash %#x is %d, want %d", x, h, want)
		}
	}
	if least, most := g.height(math.Inf(1)), g.height(0); least != 1 || most != 65 {
		t.Errorf("heights are from %d to %d, want 1 to 65", least, most)
	}
}

// Heights against the definition: the smallest t with 1 - e^-v >= (1+gamma)^-t.
func TestHeightAgainstDefinition(t *testing.T) {
	for _, gamma := range []float64{16, 1, 0.25, 1.0 / 64, 1.0 / 1024, minGamma} {
		g := distribution(t, gamma)
		if g.max() > math.MaxUint16 {
			t.Fatalf("gamma %v: largest height %d does not fit 16 bits", gamma, g.max())
		}
		one := new(big.Float).SetPrec(2000).SetInt64(1)
		base := new(big.Float).SetPrec(2000).Add(one, big.NewFloat(gamma))
		power := new(big.Float).SetPrec(2000).Set(one)
		for h := 1; h < g.max(); h++ {
			power.Quo(power, base)
			x, _ := power.Float64()
			if want := -math.Log1p(-x); math.Abs(g.least[h]/want-1) > 1e-11 {
				t.Fatalf("gamma %v: least arrival of height %d is %v, want %v", gamma, h, g.least[h], want)
			}
			if at, below := g.height(g.least[h]), g.height(math.Nextafter(g.least[h], 0)); int(at) != h || int(below) != h+1 {
				t.Fatalf("gamma %v: at and below the least arrival of height %d are heights %d and %d", gamma, h, at, below)
			}
		}
	}
}

func TestCardinalityBiasAndError(t *testing.T) {
	const n, keys, trials = 1500, 256, 400
	for _, gamma := range []float64{1, 1.0 / 1024} {
		g := distribution(t, gamma)
		rng := rand.New(rand.NewPCG(1, 2))
		for _, e := range []struct {
			name     string
			estimate func(s *Sketches) float64
			// The relative standard error of one estimate in theory.
			want float64
		}{
			{"harmonic mean", func(s *Sketches) float64 { return g.harmonicMean(s, 0) },
				math.Sqrt(((2+gamma)*math.Log1p(gamma)/gamma - 1) / keys)},
			{"maximum likelihood", func(s *Sketches) float64 { return g.maximumLikelihood(s, 0, 0) },
				informationError(g, n, keys)},
		} {
			var x []float64
			for range trials {
				v := drawSketches(rng, g, 2, 1, keys, []float64{n}, 0)
				x = append(x, e.estimate(v.Sketches[0])/n)
			}
			mean := total(x) / trials
			sd := 0.0
			for _, y := range x {
				sd += (y - mean) * (y - mean) / (trials - 1)
			}
			sd = math.Sqrt(sd)
			// Both estimators have a bias of order 1/keys, at most 1.1/keys here.
			if limit := 6*e.want/math.Sqrt(trials) + 1.5/keys; math.Abs(mean-1) > limit {
				t.Errorf("gamma %v, %s: mean %.5f of the truth, want 1 +- %.5f", gamma, e.name, mean, limit)
			}
			// The standard deviation of a sample standard deviation is sd/sqrt(2 trials); tails are a little heavier
			// than normal.
			if limit := 8 / math.Sqrt(2*trials); math.Abs(sd/e.want-1) > limit {
				t.Errorf("gamma %v, %s: standard error %.5f, theory %.5f", gamma, e.name, sd, e.want)
			}
		}
	}
}

// informationError is 1/(n sqrt(keys I(n))), I the Fisher information of one
// maximum, by numerical differentiation of its distribution.
func informationError(g *Geometric, n float64, keys int) float64 {
	information := 0.0
	for t := 1; t <= g.max(); t++ {
		p := func(n float64) float64 { return math.Exp(n*g.logCDF[t]) - math.Exp(n*g.logCDF[t-1]) }
		if q := p(n); q > 1e-12 {
			d := (p(n*1.001) - p(n*0.999)) / (0.002 * n)
			information += d * d / q
		}
	}
	return 1 / (n * math.Sqrt(float64(keys)*information))
}

// With a floor the likelihood is censored, not biased.
func TestMaximumLikelihoodWithFloor(t *testing.T) {
	g := distribution(t, 1)
	rng := rand.New(rand.NewPCG(3, 4))
	const n, keys = 3000, 100_000
	v := drawSketches(rng, g, 2, 1, keys, []float64{n}, 0)
	const floor = 12
	for i, h := range v.Sketches[0].Heights {
		v.Sketches[0].Heights[i] = max(h, floor)
	}
	if x := g.maximumLikelihood(v.Sketches[0], 0, floor); math.Abs(x/n-1) > 6*1.2/math.Sqrt(keys) {
		t.Errorf("estimate %v of %v ids", x, float64(n))
	}
	if x := g.maximumLikelihood(v.Sketches[0], 0, 0); x < n*1.01 {
		t.Errorf("estimate %v without the floor: the test has no power", x)
	}
}

func TestPairLikelihoodBiasAndError(t *testing.T) {
	const na, nb, both, keys, trials = 4000.0, 5000.0, 1200.0, 1024, 60
	for _, gamma := range []float64{1, 1.0 / 1024} {
		g := distribution(t, gamma)
		rng := rand.New(rand.NewPCG(5, 6))
		var x []float64
		for range trials {
			// Cells of a 2 x 2 grid; cluster 0 of either party is of interest.
			v := drawSketches(rng, g, 2, 2, keys, []float64{both, na - both, nb - both, 0}, 0)
			p := pairLikelihood{na: na, nb: nb}
			p.load(v, 0, 0, make([]float64, 128*128))
			x = append(x, p.maximum())
		}
		mean, sd := total(x)/trials, 0.0
		for _, y := range x {
			sd += (y - mean) * (y - mean) / (trials - 1)
		}
		// Small gamma: the information on the intersection lies in which maxima
		// agree, sd about sqrt(both * union / keys); gamma = 1 does no better.
		theory := math.Sqrt(both * (na + nb - both) / keys)
		if math.Abs(mean-both) > 6*math.Sqrt(sd/trials) {
			t.Errorf("gamma %v: mean %v of %v, standard error %v", gamma, mean, both, math.Sqrt(sd/trials))
		}
		if gamma < 1 && math.Abs(math.Sqrt(sd)/theory-1) > 0.6 || math.Sqrt(sd) > 2.5*theory {
			t.Errorf("gamma %v: standard deviation %v, theory %v", gamma, math.Sqrt(sd), theory)
		}
	}
}

// basicEstimate corrects few cells per key; this is Algorithm 4 cell by cell.
func naiveBasic(v *View, records float64) []float64 {
	grid, _ := newDenseGrid(v.parties(), v.clusters())
	for c := range grid.Weights {
		sum := 0.0
		for i := range v.keys() {
			h := uint16(0)
			for l, s := range v.Sketches {
				for a, x := range s.Row(i) {
					if a != int(grid.cell(c)[l]) {
						h = max(h, x)
					}
				}
			}
			sum += v.Distribution.inverse[h]
		}
		grid.Weights[c] = records - (v.Distribution.harmonic(sum, v.keys()) - v.inUnion())
	}
	projectSimplex(grid.Weights, records)
	return grid.Weights
}

func TestBasicEstimateAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		parties, clusters := rapid.IntRange(2, 4).Draw(r, "parties"), rapid.IntRange(2, 4).Draw(r, "clusters")
		v := &View{Distribution: distribution(t, 1), Phantoms: 7, Shared: rapid.Bool().Draw(r, "shared")}
		for range parties {
			s := newSketches(5, clusters)
			for i := range s.Heights {
				s.Heights[i] = uint16(rapid.IntRange(1, 6).Draw(r, "height")) // many ties
			}
			v.Sketches = append(v.Sketches, s)
		}
		g, err := basicEstimate(v, 50)
		if err != nil {
			r.Fatal(err)
		}
		want := naiveBasic(v, 50)
		for i := range want {
			if math.Abs(g.Weights[i]-want[i]) > 1e-9 {
				r.Fatalf("cell %d: %v, want %v", i, g.Weights[i], want[i])
			}
		}
	})
}

func TestProjectSimplex(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := rapid.SliceOfN(rapid.Float64Range(-100, 100), 1, 20).Draw(r, "w")
		n := rapid.Float64Range(0.5, 300).Draw(r, "total")
		p := slices.Clone(w)
		projectSimplex(p, n)
		if math.Abs(total(p)-n) > 1e-9*(n+100) {
			r.Fatalf("sum %v, want %v", total(p), n)
		}
		// Optimality: positive cells moved by the same amount, the others further up.
		shift := math.Inf(-1)
		for i := range p {
			if p[i] > 0 {
				shift = w[i] - p[i]
			}
		}
		for i := range p {
			switch {
			case p[i] < 0:
				r.Fatalf("cell %d is %v", i, p[i])
			case p[i] > 0 && math.Abs(w[i]-p[i]-shift) > 1e-9*200, p[i] == 0 && w[i]-shift > 1e-9*200:
				r.Fatalf("cell %d: %v became %v, shift %v", i, w[i], p[i], shift)
			}
		}
	})
}

// Relative errors of the estimators where the truth is known; the bounds are
// what each is for: the likelihoods beat the paper's estimators by far.
func TestEstimatorsFindTheGrid(t *testing.T) {
	const n, keys = 20_000, 2048
	for _, c := range []struct {
		parties, clusters       int
		phantoms                float64
		basic, paper, pair, em2 float64
	}{
		{2, 5, 180, 0.2, 0.2, 0.05, 0.04},
		{4, 4, 44, 0.4, 1.3, 0.1, 0.06},
	} {
		rng := rand.New(rand.NewPCG(7, 8))
		truth, margins := scattered(rng, c.parties, c.clusters, n)
		v := drawSketches(rng, distribution(t, 1.0/1024), c.parties, c.clusters, keys, truth, c.phantoms)
		r := &Release{Parties: c.parties, Clusters: c.clusters, Joint: v, Records: n, Margins: margins}
		ctx := context.Background()
		for _, e := range []struct {
			estimator Estimator
			limit     float64
		}{{estimatorBasic, c.basic}, {EstimatorPaper, c.paper}, {EstimatorPair, c.pair}, {EstimatorEM, c.em2}} {
			g, err := r.estimate(ctx, inline{}, e.estimator)
			if err != nil {
				t.Fatal(err)
			}
			w := denseWeights(g)
			if math.Abs(total(w)-n) > 1 || slices.Min(w) < 0 {
				t.Errorf("S=%d %s: total %v, smallest %v", c.parties, e.estimator, total(w), slices.Min(w))
			}
			if x := relativeError(w, truth); x > e.limit {
				t.Errorf("S=%d %s: relative error %.3f, want at most %v", c.parties, e.estimator, x, e.limit)
			}
		}
	}
}

// Pairs with keys of their own: the same truth, each pair's sketches drawn anew.
func TestPairwiseKeys(t *testing.T) {
	const n, keys, parties, clusters = 20_000, 2048, 3, 4
	rng := rand.New(rand.NewPCG(9, 10))
	truth, margins := scattered(rng, parties, clusters, n)
	grid, _ := newDenseGrid(parties, clusters)
	r := &Release{Parties: parties, Clusters: clusters, Records: n, Margins: margins}
	for l1 := range parties {
		for l2 := l1 + 1; l2 < parties; l2++ {
			pair := make([]float64, clusters*clusters)
			for i, w := range truth {
				pair[int(grid.cell(i)[l1])*clusters+int(grid.cell(i)[l2])] += w
			}
			r.Pairs = append(r.Pairs, drawSketches(rng, distribution(t, 1.0/1024), 2, clusters, keys, pair, 120))
		}
	}
	for e, limit := range map[Estimator]float64{EstimatorPair: 0.1, EstimatorEM: 0.1} {
		g, err := r.estimate(context.Background(), inline{}, e)
		if err != nil {
			t.Fatal(err)
		}
		if x := relativeError(denseWeights(g), truth); x > limit {
			t.Errorf("%s: relative error %.3f, want at most %v", e, x, limit)
		}
	}
}

// A step of the expectation maximisation is what its formula says, event by event
// and cell by cell, on all cells and on those that pruning leaves, and never lowers
// the likelihood.
func TestStepsOfTheJointLikelihood(t *testing.T) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(11, 12))
	for _, shape := range [][2]int{{3, 4}, {2, 9}, {5, 3}, {4, 5}} { // parties and clusters
		truth, _ := scattered(rng, shape[0], shape[1], 5000)
		v := drawSketches(rng, distribution(t, 1.0/1024), shape[0], shape[1], 300, truth, 20)
		grid, err := newDenseGrid(shape[0], shape[1])
		if err != nil {
			t.Fatal(err)
		}
		for i := range grid.Weights {
			grid.Weights[i] = 5000.0 / float64(grid.len())
		}
		m, err := newLikelihood(ctx, inline{}, v, grid)
		if err != nil {
			t.Fatal(err)
		}
		events, err := collectEvents(ctx, inline{}, v)
		if err != nil {
			t.Fatal(err)
		}
		for pruned := range 2 {
			last := math.Inf(-1)
			for step := range 20 {
				next, value := stepByCells(m, events)
				if value < last-1e-9*math.Abs(last) {
					t.Fatalf("%v, step %d: log likelihood fell from %v to %v", shape, step, last, value)
				}
				last = value
				if err := m.step(ctx, inline{}); err != nil {
					t.Fatal(err)
				}
				for i, w := range grid.Weights {
					if math.Abs(w-next[i]) > 1e-9*(1+next[i]) {
						t.Fatalf("%v, step %d: cell %v has weight %v, want %v", shape, step, grid.cell(i), w, next[i])
					}
				}
			}
			if pruned == 0 && !m.prune(emThresholds[0]) {
				t.Fatalf("%v: nothing is pruned", shape)
			}
		}
	}
}

// stepByCells is the step of m by its formula, and the log likelihood before it, from
// events as they were collected.
func stepByCells(m *likelihood, events []event) (next []float64, value float64) {
	g, k := m.grid, m.view.clusters()
	share := make([]float64, g.len())
	for i, w := range g.Weights {
		value -= m.exposure[i] * w
	}
	for _, e := range events {
		size := 1
		for l := range g.Parties {
			size *= bits.OnesCount64(e.sets.slice(l*k, k))
		}
		var compatible []int
		rate := float64(size) * m.view.inCell()
		for i, w := range g.Weights {
			in := true
			for l, a := range g.cell(i) {
				in = in && e.sets.slice(l*k, k)>>a&1 == 1
			}
			if in {
				rate += w
				compatible = append(compatible, i)
			}
		}
		for _, i := range compatible {
			share[i] += e.count / rate
		}
		value += e.count * math.Log(rate)
	}
	for i, w := range g.Weights {
		next = append(next, w*share[i]/m.exposure[i])
	}
	return next, value
}

// The events of one key by hand: S = 2, three clusters each. Heights in order of
// arrival: 90 at (a0, b1), 70 at a2 alone, 50 at (a1, b0), 30 at b2 alone.
func TestEventsOfOneKey(t *testing.T) {
	v := &View{Distribution: distribution(t, 1.0/1024), Sketches: []*Sketches{
		{Keys: 1, Clusters: 3, Heights: []uint16{90, 50, 70}},
		{Keys: 1, Clusters: 3, Heights: []uint16{50, 90, 30}},
	}}
	events, err := collectEvents(context.Background(), inline{}, v)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, e := range events {
		got[fmt.Sprintf("%03b %03b", e.sets.slice(0, 3), e.sets.slice(3, 3))] = e.count
	}
	want := map[string]float64{
		"001 010": 1, // the first arrival is in both of its clusters
		"100 010": 1, // a2 with what party 1 had: b1
		"010 001": 1, // both hold the height
		"111 100": 1, // b2 with all of party 0
	}
	if len(got) != len(want) {
		t.Fatalf("events %v, want %v", got, want)
	}
	for k := range want {
		if got[k] != want[k] {
			t.Errorf("events %v, want %v", got, want)
		}
	}
}

// Without noise margins are kept to; with it the factor of each cluster is where what it maximises is flat.
func TestMarginsAreKeptToAsFarAsTheirNoiseAllows(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, variance := range []float64{0, 1e-6, 30, 2500, 1e9} {
		margin := []float64{400, 1, 350, 249}
		g := &Grid{Parties: 1, Clusters: 4}
		m := &likelihood{grid: g}
		for i := range 16 {
			g.Cells, g.Weights = append(g.Cells, uint8(i/4)), append(g.Weights, 200*rng.Float64())
			m.exposure = append(m.exposure, 0.01+rng.Float64())
		}
		before := slices.Clone(g.Weights)
		m.fitMargins([][]float64{margin}, variance)
		for a, target := range margin {
			events, sum, factor := 0.0, 0.0, g.Weights[a*4]/before[a*4]
			for b := range 4 {
				events += before[a*4+b] * m.exposure[a*4+b]
				sum += before[a*4+b]
			}
			slope := variance*(events/factor-events) - sum*(factor*sum-target)
			if math.Abs(slope) > 1e-9*(sum*target+variance*events) {
				t.Errorf("variance %v, cluster %d: the factor %v of %v records has the slope %v", variance, a, factor, sum, slope)
			}
		}
	}
}

func TestEstimatesDoNotDependOnWorkers(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	truth, margins := scattered(rng, 3, 5, 8000)
	v := drawSketches(rng, distribution(t, 1.0/1024), 3, 5, 700, truth, 30)
	r := &Release{Parties: 3, Clusters: 5, Joint: v, Records: 8000, Margins: margins}
	pool := engine.NewPool(3)
	defer pool.Close()
	for _, e := range []Estimator{EstimatorPair, EstimatorEM} {
		var runs [][]float64
		for _, run := range []runner{inline{}, pool, pool} {
			var g *Grid
			var err error
			if e == EstimatorEM {
				g, err = jointEstimate(context.Background(), run, v, r.Records, margins, 0, emThresholds)
			} else {
				g, err = pairEstimate(context.Background(), run, r)
			}
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, g.Weights)
		}
		if !slices.Equal(runs[0], runs[1]) || !slices.Equal(runs[1], runs[2]) {
			t.Errorf("%s: results differ between runs on 1 and 3 workers", e)
		}
	}
}

// Exact counts are those of every tuple by itself, on any number of workers.
func TestExactGrid(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	for _, shape := range [][3]int{{1, 2, 3}, {1000, 2, 15}, {200_000, 3, 7}, {5000, 4, 30}, {300, 20, 2}} {
		n, parties, k := shape[0], shape[1], shape[2]
		labels := make([][]uint16, parties)
		for l := range labels {
			labels[l] = make([]uint16, n)
			for i := range labels[l] {
				labels[l][i] = uint16(rng.IntN(1 + rng.IntN(k)))
			}
		}
		want := exactSparse(labels, k)
		pool := engine.NewPool(3)
		for _, run := range []runner{inline{}, pool} {
			g, err := exactGrid(context.Background(), run, labels, k)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(g.Cells, want.Cells) || !slices.Equal(g.Weights, want.Weights) {
				t.Errorf("%d records of %d parties with %d clusters: %d cells, want %d", n, parties, k, g.len(), want.len())
			}
		}
		pool.Close()
	}
}

// tablesOf are the tables of all pairs of parties of which each cell of a grid holds 500.
func tablesOf(cells [][]uint8, clusters int) [][]float64 {
	var pairs [][]float64
	for l1 := range cells[0] {
		for l2 := l1 + 1; l2 < len(cells[0]); l2++ {
			table := make([]float64, clusters*clusters)
			for _, c := range cells {
				table[int(c[l1])*clusters+int(c[l2])] += 500
			}
			pairs = append(pairs, table)
		}
	}
	return pairs
}

// fitted is the grid of some tables as it follows sketches of 4096 keys, with its release.
func fitted(t *testing.T, parties, clusters int, records float64, pairs [][]float64) (*Grid, *Release) {
	t.Helper()
	view := &View{Sketches: []*Sketches{newSketches(4096, clusters), newSketches(4096, clusters)}, Phantoms: 1,
		Shared: true}
	r := &Release{Parties: parties, Clusters: clusters, Records: records, Classes: 8,
		Pairs: slices.Repeat([]*View{view}, len(pairs))}
	g, err := fitPairs(context.Background(), inline{}, r, pairs)
	if err != nil {
		t.Fatal(err)
	}
	if sum := total(g.Weights); math.Abs(sum-records) > 1e-6 || slices.Min(g.Weights) < 0 {
		t.Errorf("weights from %v, %v in all", slices.Min(g.Weights), sum)
	}
	return g, r
}

// A grid of 6^9 = 1e7 cells is never built: a mixture has the two cells that the tables come from.
func TestTablesOfALargeGrid(t *testing.T) {
	cells := [][]uint8{{0, 1, 2, 3, 4, 5, 0, 1, 2}, {5, 4, 3, 2, 1, 0, 5, 4, 3}}
	g, r := fitted(t, 9, 6, 1000, tablesOf(cells, 6))
	for i, w := range g.Weights {
		if c := slices.IndexFunc(cells, func(c []uint8) bool { return slices.Equal(c, g.cell(i)) }); c >= 0 {
			if math.Abs(w-500) > 1 {
				t.Errorf("cell %v holds %v, want 500", cells[c], w)
			}
		}
	}
	if len(r.doubts) > 0 {
		t.Error(r.doubts)
	}
}

// Tables that no weights agree with, as noise can make them, have an answer that is doubted: parties 1 and 2 are in the
// same cluster, 1 and 3, too, and 2 and 3 never.
func TestTablesThatContradictEachOther(t *testing.T) {
	same, other := []float64{500, 0, 0, 500}, []float64{0, 500, 500, 0}
	g, r := fitted(t, 3, 2, 1000, [][]float64{same, same, other})
	if len(r.doubts) != 1 {
		t.Errorf("%d doubts about weights %v", len(r.doubts), g.Weights)
	}
	if _, r := fitted(t, 3, 2, 1000, [][]float64{same, same, same}); len(r.doubts) > 0 {
		t.Error(r.doubts)
	}
}

// Expected support counts, by the dense transition matrix, invert to the truth.
func TestFrequencyInversion(t *testing.T) {
	for _, c := range []struct {
		clusters, parties int
		eps               float64
		hashing           bool
	}{{4, 2, 1, false}, {5, 3, 2, false}, {12, 2, 0.3, true}, {9, 3, 0.5, true}} {
		f, err := newFrequency(c.clusters, c.eps)
		if err != nil {
			t.Fatal(err)
		}
		if f.Range > 0 != c.hashing {
			t.Fatalf("%+v: hash range %d", c, f.Range)
		}
		rng := rand.New(rand.NewPCG(15, 16))
		truth, _ := scattered(rng, c.parties, c.clusters, 3000)
		grid, _ := newDenseGrid(c.parties, c.clusters)
		counts := make([]float64, len(truth))
		for i := range counts {
			for g := range truth {
				p := 1.0
				for l := range c.parties {
					if grid.cell(i)[l] == grid.cell(g)[l] {
						p *= f.Keep
					} else {
						p *= f.Support
					}
				}
				counts[i] += p * truth[g]
			}
		}
		f.invert(counts, c.parties)
		if e := relativeError(counts, truth); e > 1e-8 {
			t.Errorf("%+v: relative error %v", c, e)
		}
	}
}

// A report is never more than e^eps times as likely from one value as from another, in
// exact arithmetic on the integers that decide, and hardly less.
func TestReportsKeepEpsilonExactly(t *testing.T) {
	const bits = 400
	exp := func(x float64) *big.Float { // by its series at 2^-12 of it, all terms positive
		small := new(big.Float).SetPrec(bits).SetMantExp(big.NewFloat(x), -12)
		sum, term := big.NewFloat(1).SetPrec(bits), big.NewFloat(1).SetPrec(bits)
		for i := 1; i < 80; i++ {
			term.Mul(term, small).Quo(term, big.NewFloat(float64(i)))
			sum.Add(sum, term)
		}
		for range 12 {
			sum.Mul(sum, sum)
		}
		return sum
	}
	whole := new(big.Int).Lsh(big.NewInt(1), 64)
	for _, size := range []int{1, 2, 3, 4, 9, 30, 255} {
		for _, eps := range []float64{1e-9, 1e-3, 0.1, math.Ln2, 1, 3, 11, 30, 44, 45, 60, 700} {
			keep := new(big.Int).SetUint64(keepUnits(size, math.Exp(eps)))
			lie := new(big.Int).Sub(whole, keep)
			if size == 1 {
				continue // there is nothing else to report
			}
			ratio := new(big.Float).SetPrec(bits).SetInt(new(big.Int).Mul(keep, big.NewInt(int64(size-1))))
			ratio.Quo(ratio, new(big.Float).SetPrec(bits).SetInt(lie))
			if ratio.Cmp(exp(eps)) > 0 {
				t.Errorf("%d values, epsilon %v: a value is %v times as likely", size, eps, ratio)
			}
			if got, _ := ratio.Float64(); eps < 30 && math.Log(got) < eps-1e-9 {
				t.Errorf("%d values, epsilon %v: only %v is spent", size, eps, math.Log(got))
			}
		}
	}
}

// Reports support the true cluster and others with the probabilities that the
// inversion assumes, and the ratio of report probabilities is e^eps.
func TestFrequencyReports(t *testing.T) {
	for _, clusters := range []int{4, 30} {
		const eps, n = 0.7, 200_000
		f, err := newFrequency(clusters, eps)
		if err != nil {
			t.Fatal(err)
		}
		if ratio := f.truth() / ((1 - f.truth()) / float64(f.size-1)); math.Abs(math.Log(ratio)-eps) > 1e-9 {
			t.Errorf("k'=%d: log ratio %v, want %v", clusters, math.Log(ratio), eps)
		}
		seeded := uint64(17)
		st := privacy.NewStreams(&seeded).Stream(0, clusters, "reports")
		hits := make([]float64, clusters)
		for i := range n {
			value, seed := 2, reportSeed(0, i)
			if f.Range > 0 {
				value = f.hash(seed, 2)
			}
			r := f.report(value, st)
			for a := range hits {
				if f.supports(seed, r, a) {
					hits[a]++
				}
			}
		}
		for a, h := range hits {
			want := f.Support
			if a == 2 {
				want = f.Keep
			}
			if math.Abs(h/n-want) > 6*math.Sqrt(want*(1-want)/n) {
				t.Errorf("k'=%d: cluster %d is supported with frequency %v, want %v", clusters, a, h/n, want)
			}
		}
	}
}

// inline runs everything in the calling goroutine.
type inline struct{}

func (inline) Workers() int { return 1 }

func (inline) Run(ctx context.Context, n int, fn func(worker, index int)) error {
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		fn(0, i)
	}
	return nil
}
