package sketch

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/parallel"
)

// plantedTables are the tables of all pairs of parties of classes of equal shares, in each of which every party is
// nearly always in one cluster, with noise of that deviation, and the parties' margins.
func plantedTables(rng *rand.Rand, parties, k, classes int, noise float64) (tables, margins, exact [][]float64) {
	const sure = 0.9
	chance := func(c, l, a int) float64 {
		if (c*(l+1)+l)%k == a {
			return sure
		}
		return (1 - sure) / float64(k-1)
	}
	for l1 := range parties {
		margin := make([]float64, k)
		for c := range classes {
			for a := range k {
				margin[a] += chance(c, l1, a) / float64(classes)
			}
		}
		margins = append(margins, margin)
		for l2 := l1 + 1; l2 < parties; l2++ {
			table := make([]float64, k*k)
			for i := range table {
				for c := range classes {
					table[i] += chance(c, l1, i/k) * chance(c, l2, i%k) / float64(classes)
				}
			}
			exact = append(exact, slices.Clone(table))
			for i := range table {
				table[i] = max(table[i]+noise*rng.NormFloat64(), 0)
			}
			tables = append(tables, table)
		}
	}
	return tables, margins, exact
}

// distance is the mean L1 distance of a grid's tables of pairs to others.
func distance(g *Grid, tables [][]float64) float64 {
	sum := 0.0
	for l1 := range g.Parties {
		for l2 := l1 + 1; l2 < g.Parties; l2++ {
			table := slices.Clone(tables[pairIndex(g.Parties, l1, l2)])
			for i, w := range g.Weights {
				table[g.pairCell(i, l1, l2)] -= w
			}
			for _, x := range table {
				sum += math.Abs(x)
			}
		}
	}
	return sum / float64(len(tables))
}

// TestMixture: classes that are in all tables are found under noise of which each table is full, and the cells drawn
// have the tables without it; where nothing stands above the noise, parties are independent.
func TestMixture(t *testing.T) {
	const parties, k = 8, 4
	rng := rand.New(rand.NewPCG(3, 4))
	for _, classes := range []int{2, 3, 5} {
		tables, margins, exact := plantedTables(rng, parties, k, classes, 0.01)
		m := fitMixture(tables, margins, 2*classes, 0.01)
		grid, own := m.grid(1), 0.0
		for i, table := range tables {
			for c, x := range table {
				own += math.Abs(x-exact[i][c]) / float64(len(tables))
			}
		}
		if off := distance(grid, exact); off > 0.9*own {
			t.Errorf("%d classes: tables are off by %.3f in all, those with noise by %.3f", classes, off, own)
		}
		if !slices.IsSortedFunc(slices.Collect(slices.Chunk(grid.Cells, parties)), slices.Compare) {
			t.Errorf("%d classes: the cells are not in order", classes)
		}
	}
	tables, margins, _ := plantedTables(rng, parties, k, 1, 0.001)
	if m := fitMixture(tables, margins, 6, 0.01); len(m.share) != 1 {
		t.Errorf("%d classes in noise", len(m.share))
	}
}

// plantedCenters are the local centres and the clusters of plantedTables, where a party has one column.
func plantedCenters(parties, k, classes int) (centers [][]float32, columns [][]int, s *synopsis.Solution) {
	s = &synopsis.Solution{D: parties, Weights: slices.Repeat([]float64{3}, classes)}
	for l := range parties {
		centers, columns = append(centers, nil), append(columns, []int{l})
		for a := range k {
			centers[l] = append(centers[l], float32(a)/float32(k))
		}
	}
	for c := range classes {
		for l := range parties {
			s.Centers = append(s.Centers, float64((c*(l+1)+l)%k)/float64(k))
		}
	}
	return centers, columns, s
}

// TestMixtureSwaps: a class that holds two clusters, while two hold one, is not left by steps and is by a swap, which
// keeps what is right.
func TestMixtureSwaps(t *testing.T) {
	const parties, k, classes, noise = 8, 5, 5, 0.005
	rng := rand.New(rand.NewPCG(7, 8))
	tables, margins, exact := plantedTables(rng, parties, k, classes, noise)
	centers, columns, right := plantedCenters(parties, k, classes)
	wrong := &synopsis.Solution{D: parties, Weights: right.Weights, Centers: slices.Clone(right.Centers)}
	for h := range parties {
		c := wrong.Centers
		c[h] = (c[h] + c[parties+h]) / 2
		c[parties+h] = c[2*parties+h]
	}
	fitted := func(s *synopsis.Solution) *mixtureFit {
		m := fitMixture(tables, margins, 3, noise)
		m.restart(centers, columns, s)
		for range refitSteps {
			m.step()
		}
		return m
	}
	r := &Release{centers: centers, columns: columns}
	m := fitted(right)
	least := distance(m.grid(1), exact)
	swapped := func() *Grid {
		if err := m.swap(context.Background(), parallel.Serial{}, r, classNoise*noise); err != nil {
			t.Fatal(err)
		}
		return m.grid(1)
	}
	if distance(swapped(), exact) != least {
		t.Error("a swap of what is right")
	}
	m = fitted(wrong)
	if stays := distance(m.grid(1), exact); stays < 2*least {
		t.Errorf("without a swap tables are off by %.3f, from the right clusters by %.3f", stays, least)
	}
	if distance(swapped(), exact) > 1.1*least {
		t.Errorf("after a swap tables are off by %.3f, from the right clusters by %.3f", distance(m.grid(1), exact), least)
	}
}

// TestCollect compares what a class gets of a table with the same sums cell by cell, bit for bit.
func TestCollect(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for clusters := 1; clusters < 14; clusters++ {
		random := func(n int) []float64 {
			x := make([]float64, n)
			for i := range x {
				x[i] = rng.ExpFloat64()
			}
			return x
		}
		f := &mixtureFit{classMixture: &classMixture{parties: 2, clusters: clusters, share: []float64{0.3}},
			ratio: random(clusters * clusters), left: random(clusters)}
		want := [2][]float64{make([]float64, clusters), make([]float64, clusters)}
		for l := range 2 {
			f.chance = append(f.chance, [][]float64{random(clusters)})
			f.moved = append(f.moved, [][]float64{random(clusters)})
			copy(want[l], f.moved[l][0])
		}
		left := make([]float64, clusters)
		for a, p := range f.chance[0][0] {
			w, sum := float64(f.share[0]*p), 0.0
			for b, q := range f.chance[1][0] {
				z := float64(f.ratio[a*clusters+b] * q)
				sum += z
				left[b] += float64(w * z)
			}
			want[0][a] += float64(w * sum)
		}
		for b, z := range left {
			want[1][b] += z
		}
		f.collect(0, 0, 1)
		for l := range 2 {
			if !slices.Equal(f.moved[l][0], want[l]) {
				t.Errorf("%d clusters: party %d gets %v, want %v", clusters, l+1, f.moved[l][0], want[l])
			}
		}
	}
}

// TestMixtureFromCenters: a fit that has found too few classes is mended from the centres of all.
func TestMixtureFromCenters(t *testing.T) {
	const parties, k, classes = 8, 5, 5
	rng := rand.New(rand.NewPCG(5, 6))
	tables, margins, exact := plantedTables(rng, parties, k, classes, 0.02)
	m := fitMixture(tables, margins, 3, 0.02)
	before := distance(m.grid(1), exact)
	centers, columns, s := plantedCenters(parties, k, classes)
	m.restart(centers, columns, s)
	for range refitSteps {
		m.step()
	}
	if after := distance(m.grid(1), exact); len(m.share) != classes || after > 0.5*before {
		t.Errorf("%d classes, tables are off by %.3f, before by %.3f", len(m.share), after, before)
	}
	if near := nearby([]float32{0, 0, 1, 0, 0, 2}, []float64{0.1, 0}, 3); !slices.IsSortedFunc(near,
		func(a, b float64) int { return cmp.Compare(b, a) }) || math.Abs(total(near)-1) > 1e-12 {
		t.Errorf("parts %v", near)
	}
}

// TestJointMixture: of more clusters than a party has, each with few records in a cell, the joint estimate has nearer
// weights where a mixture is fitted to it from the clusters' centres, and with released sizes nearer sizes, too.
func TestJointMixture(t *testing.T) {
	const parties, k, classes, records, keys, phantoms = 4, 5, 12, 3000, 512, 20
	rng := rand.New(rand.NewPCG(7, 8))
	truth := make([]float64, powInt(k, parties))
	s := &synopsis.Solution{Weights: slices.Repeat([]float64{1}, classes)}
	for c := range classes {
		at := [parties]int{c % k, (2*c + c/k) % k, (3*c + 2*(c/k)) % k, (c*c + c/k) % k}
		for range records / classes {
			cell := make([]uint8, parties)
			for l, a := range at {
				cell[l] = uint8(a)
				if rng.IntN(3) == 0 {
					cell[l] = uint8((a + 1) % k)
				}
			}
			truth[dense(cell, k)]++
		}
		for _, a := range at {
			s.Centers = append(s.Centers, float64(a)/k)
		}
	}
	r := &Release{Parties: parties, Clusters: k, Records: records,
		Joint:  drawSketches(rng, distribution(t, DefaultGamma), parties, k, keys, truth, phantoms),
		search: func(context.Context, *Grid, int) (*synopsis.Solution, error) { return s, nil }}
	for l := range parties {
		r.centers, r.columns = append(r.centers, nil), append(r.columns, []int{l})
		for a := range k {
			r.centers[l] = append(r.centers[l], float32(a)/k)
		}
	}
	sizesOf := func(weights []float64) [][]float64 {
		sizes := make([][]float64, parties)
		for l := range sizes {
			sizes[l] = make([]float64, k)
			for cell, x := range weights {
				sizes[l][cell/powInt(k, parties-1-l)%k] += x
			}
		}
		return sizes
	}
	sizes := sizesOf(truth)
	var off, sizesOff [3]float64
	for i := range off {
		r.refit = i > 0
		if i == 2 {
			r.Margins, r.SizeVariance = sizes, 400
		}
		g, err := r.estimate(t.Context(), inline{}, EstimatorEM)
		if err != nil {
			t.Fatal(err)
		}
		off[i] = relativeError(denseWeights(g), truth)
		for l, of := range sizesOf(denseWeights(g)) {
			sizesOff[i] += relativeError(of, sizes[l])
		}
		if sum := total(g.Weights); math.Abs(sum-records) > 1e-6*records {
			t.Errorf("weights add up to %v", sum)
		}
	}
	if off[1] > 0.7*off[0] {
		t.Errorf("weights are off by %.3f with a mixture, by %.3f without", off[1], off[0])
	}
	if off[2] > off[1] || sizesOff[2] > 0.7*sizesOff[1] {
		t.Errorf("with sizes weights are off by %.3f, sizes by %.3f; without by %.3f, %.3f", off[2], sizesOff[2], off[1],
			sizesOff[1])
	}
}

// TestSmallClustersFarFromLargeOnes: of four parties' records of which nine of ten lie in a corner, sketch finds
// clusters of less loss than sketch-basic.
func TestSmallClustersFarFromLargeOnes(t *testing.T) {
	const n, d, parties, k = 1000, 8, 4, 5
	data := separated(t, n, d, k)
	row, squeezed := make([]float32, d), make([]float32, d)
	for i := range n {
		if i%10 == 0 {
			continue
		}
		for h, x := range data.Points.Point(i, row) {
			squeezed[h] = dataset.Truncate((float64(x)+1)/8-1, data.FractionBits)
		}
		data.Points.Set(i, squeezed)
	}
	loss := make(map[Method]float64)
	for run := range uint64(5) {
		for _, method := range []Method{Sketch, SketchBasic} {
			r := runJob(t, 2, &Job{Method: method, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
				Columns: EqualSplit(d, parties), K: k, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-3}, Seed: &run}})
			loss[method] += *r.NICV
		}
	}
	if ratio := loss[Sketch] / loss[SketchBasic]; !(ratio < 0.8) {
		t.Errorf("sketch loses %.3f of what sketch-basic does", ratio)
	}
}

// separated are clusters six deviations apart.
func separated(t *testing.T, n, d, k int) *dataset.Normalised {
	t.Helper()
	data, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: n, D: d, K: k, Separation: 6, Seed: 1})
	return data
}

// TestManyParties: eight parties, whose grid is too large for the joint likelihood, end, with fewer local clusters
// than clusters are asked for where there are too few records, and find separated clusters.
func TestManyParties(t *testing.T) {
	const parties, k = 8, 3
	for _, c := range []struct {
		n, localK int
		most      float64
	}{{3000, k, 0.08}, {60, 2, math.Inf(1)}} {
		data := mixture(t, c.n, parties)
		r := runJob(t, 2, &Job{Method: Sketch, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
			Columns: EqualSplit(parties, parties), K: k, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-4}, Seed: seed(5)}})
		if got := r.Details["local_k"]; got != c.localK || !(*r.NICV < c.most) {
			t.Errorf("%d records: %v local clusters, loss %.3g", c.n, got, *r.NICV)
		}
	}
}

// TestFewPartiesManyClusters: three and four parties, whose grid of k clusters is too large for the joint likelihood,
// have fewer local clusters, or a mixture; and find many clusters of few records.
func TestFewPartiesManyClusters(t *testing.T) {
	job := func(n, d, k, parties int) *Job {
		data := separated(t, n, d, k)
		return &Job{Method: Sketch, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
			Columns: EqualSplit(d, parties), K: k, Budget: privacy.Budget{Epsilon: 1, Delta: 2e-4}, Seed: seed(1)}}
	}
	for _, c := range []struct {
		n, d, k, parties, least, most int
		pairs                         bool
	}{
		{5000, 8, 20, 4, 6, 6, false}, {20_000, 6, 26, 3, 18, 18, false}, {5000, 16, 20, 4, 12, 24, true},
		{5000, 9, 20, 3, 9, 16, true}, {5000, 8, 20, 8, 3, 3, false}, {5000, 8, 5, 8, 5, 6, true},
		{100, 8, 20, 4, 2, 2, false}, {5000, 8, 5, 4, 4, 4, false}, {10_000, 8, 5, 4, 5, 5, false},
	} {
		r, err := job(c.n, c.d, c.k, c.parties).prepare()
		if err != nil {
			t.Fatal(err)
		}
		if p := r.plan; p.clusters < c.least || p.clusters > c.most || p.pairKeys != c.pairs || p.mixture != c.pairs {
			t.Errorf("%+v: %d local clusters, keys for pairs %t, mixture %t", c, p.clusters, p.pairKeys, p.mixture)
		}
	}
	for _, c := range []struct {
		n, k, parties int
		want          bool
	}{{5000, 20, 4, true}, {5000, 20, 8, true}, {1000, 5, 4, false}, {1000, 5, 8, false}} {
		if r, err := job(c.n, 8, c.k, c.parties).prepare(); err != nil || !r.plan.crowded(r.job) ||
			r.plan.refits(r.job) != c.want {
			t.Errorf("%+v: %v, a mixture is fitted: %t", c, err, !c.want)
		}
	}
	// A mixture of many clusters in more cells than records needs more keys, and of a column each more of the budget.
	for _, c := range []struct {
		n, d, parties, sketches int
		share                   float64
	}{{5000, 8, 8, mostRefitted, columnsShare}, {5000, 32, 16, mostRefitted / 2, manyShare},
		{5000, 32, 8, mostRefitted, pairsShare}} {
		p, err := newPlan(job(c.n, c.d, 20, c.parties).withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		if p.share != c.share || p.sketches != c.sketches {
			t.Errorf("%+v: a share of %v and %d sketches", c, p.share, p.sketches)
		}
	}
	for _, c := range []struct {
		n, d, k, parties int
		most             float64
	}{
		{5000, 8, 20, 4, 0.4}, // .22 without noise, .68 with twenty local clusters
		{1000, 6, 4, 6, 0.35}, // .22 without noise, .7 with four local clusters
	} {
		if r := runJob(t, 2, job(c.n, c.d, c.k, c.parties)); !(*r.NICV < c.most) {
			t.Errorf("%+v: loss %.3g", c, *r.NICV)
		}
	}
}
