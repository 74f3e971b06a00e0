package sketch

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// A mixture stands for the weights of a grid with more cells than can be listed: given one of a few classes, the
// parties' clusters are independent. It is fitted to the tables of all pairs of parties by expectation maximisation
// of the composite likelihood, the sum of the tables' own (Lindsay 1988): a table of k'^2 cells costs as much for
// sixteen parties as for two, and noise, which no class explains in all tables, averages out over them.
const (
	// mostClasses bounds the classes, of which there are up to twice the clusters asked for.
	mostClasses = 128
	// A class is added where a table has more than classNoise deviations of a cell's noise above the mixture; so
	// many steps follow, and lastSteps at the end.
	classNoise, classSteps, lastSteps = 2, 20, 200
	// drawnCells is the number of cells that a mixture is drawn as.
	drawnCells = 1 << 13
)

// classMixture has the share of each class and the chances of a party's clusters in it, by party, class and cluster.
type classMixture struct {
	parties, clusters int
	share             []float64
	chance            [][][]float64
	moved             [][][]float64 // what each class gets of each cluster in a step
}

// mixtureFit is a mixture with the tables that it is fitted to, as parts of all records.
type mixtureFit struct {
	*classMixture
	pairs [][]float64
	// Of a step: a table over that of the mixture, and what one class gets of the second party's clusters.
	ratio, left []float64
}

// ratios fills in f.ratio for parties l1 < l2; it is 0 where the mixture has nothing.
func (f *mixtureFit) ratios(l1, l2 int) {
	clear(f.ratio)
	for c, share := range f.share {
		for a, p := range f.chance[l1][c] {
			row, w := f.ratio[a*f.clusters:(a+1)*f.clusters], float64(share*p)
			for b, q := range f.chance[l2][c] {
				row[b] += float64(w * q)
			}
		}
	}
	table := f.pairs[pairIndex(f.parties, l1, l2)]
	for i, p := range f.ratio {
		f.ratio[i] = 0
		if p > leastSum {
			f.ratio[i] = table[i] / p
		}
	}
}

// step is a step of the expectation maximisation.
func (f *mixtureFit) step() {
	f.begin()
	for l1 := range f.parties {
		for l2 := l1 + 1; l2 < f.parties; l2++ {
			f.ratios(l1, l2)
			for c := range f.share {
				f.collect(c, l1, l2)
			}
		}
	}
	f.end()
}

// begin begins a step with nothing moved.
func (m *classMixture) begin() {
	for _, classes := range m.moved {
		for _, x := range classes {
			clear(x)
		}
	}
}

// end makes shares and chances of what was moved.
func (m *classMixture) end() {
	total := 0.0
	for c := range m.share {
		m.share[c] = 0
		for l := range m.parties {
			sum := 0.0
			for _, x := range m.moved[l][c] {
				sum += x
			}
			m.share[c] += sum
			if sum > 0 {
				for a, x := range m.moved[l][c] {
					m.chance[l][c][a] = x / sum
				}
			}
		}
		total += m.share[c]
	}
	for c := range m.share {
		m.share[c] /= total
	}
}

// collect adds to moved what class c has of the table of parties l1 < l2.
func (f *mixtureFit) collect(c, l1, l2 int) {
	k, second, left := f.clusters, f.chance[l2][c], f.left
	clear(left)
	first, moved := f.chance[l1][c], f.moved[l1][c]
	for a := 0; a < k; a += 2 { // two sums that do not wait for each other
		x, y := f.ratio[a*k:][:k], f.ratio[min(a+1, k-1)*k:][:k]
		u, v := float64(f.share[c]*first[a]), 0.0
		if a+1 < k {
			v = float64(f.share[c] * first[a+1])
		}
		ofX, ofY := 0.0, 0.0
		for b, q := range second {
			p, r := float64(x[b]*q), float64(y[b]*q)
			ofX, ofY = ofX+p, ofY+r
			left[b] = (left[b] + float64(u*p)) + float64(v*r)
		}
		moved[a] += float64(u * ofX)
		if a+1 < k {
			moved[a+1] += float64(v * ofY)
		}
	}
	for b, z := range f.left {
		f.moved[l2][c][b] += z
	}
}

// excess is the cell of a table that holds most above the mixture, if more than noise.
type excess struct {
	share          float64
	l1, l2, a1, a2 int
}

// largest finds the largest excess.
func (f *mixtureFit) largest(noise float64) (best excess, found bool) {
	best.share = noise
	for l1 := range f.parties {
		for l2 := l1 + 1; l2 < f.parties; l2++ {
			f.ratios(l1, l2)
			for i, x := range f.pairs[pairIndex(f.parties, l1, l2)] {
				if r := f.ratio[i]; r > 0 {
					x -= x / r
				}
				if x > best.share {
					best, found = excess{x, l1, l2, i / f.clusters, i % f.clusters}, true
				}
			}
		}
	}
	return best, found
}

// add appends the class of an excess: nearly all of its two clusters, and of each other party's what the tables have
// beside both of them.
func (f *mixtureFit) add(x excess, noise float64) {
	beside := func(l, m, a int, chance []float64) { // cluster a of party m
		table, first, step := []float64(nil), a, f.clusters
		if l < m {
			table = f.pairs[pairIndex(f.parties, l, m)]
		} else {
			table, first, step = f.pairs[pairIndex(f.parties, m, l)], a*f.clusters, 1
		}
		for b := range chance {
			chance[b] *= table[first+b*step] + noise/20
		}
	}
	for l := range f.parties {
		chance := slices.Repeat([]float64{1}, f.clusters)
		for _, of := range [2][2]int{{x.l1, x.a1}, {x.l2, x.a2}} {
			if of[0] != l {
				beside(l, of[0], of[1], chance)
				continue
			}
			for b := range chance {
				if b != of[1] {
					chance[b] *= 0.1 / float64(f.clusters)
				}
			}
		}
		rescale(chance, 1)
		f.chance[l] = append(f.chance[l], chance)
		f.moved[l] = append(f.moved[l], make([]float64, f.clusters))
	}
	rescale(f.share, 1-x.share)
	f.share = append(f.share, x.share)
}

// fitMixture fits up to so many classes to tables of all pairs of parties, from the independence of margins on. All
// are parts of all records; noise is about the deviation of a cell. Where the tables have nothing above it, the
// parties stay independent.
func fitMixture(pairs, margins [][]float64, classes int, noise float64) *mixtureFit {
	parties, k := len(margins), len(margins[0])
	f := &mixtureFit{classMixture: &classMixture{parties: parties, clusters: k, share: []float64{1}}, pairs: pairs,
		ratio: make([]float64, k*k), left: make([]float64, k)}
	for _, m := range margins {
		f.chance = append(f.chance, [][]float64{slices.Clone(m)})
		f.moved = append(f.moved, [][]float64{make([]float64, k)})
	}
	for len(f.share) < classes {
		x, found := f.largest(classNoise * noise)
		if !found {
			break
		}
		f.add(x, classNoise*noise)
		for range classSteps {
			f.step()
		}
	}
	if len(f.share) > 1 {
		for range lastSteps {
			f.step()
		}
	}
	return f
}

// Of a mixture's cells the clusters are searched, and it is fitted again from these, refits times and by refitSteps
// steps: classes that noise has made go, and those that share clusters by chance come apart. A class starts with a
// chance of exp(-refitSharpness r^2) of a local cluster that is r from its centre, r = 1 being the distance of the
// nearest two local centres, in the mean.
const (
	refits, refitSteps = 3, 20
	refitSharpness     = 2
	refitStarts        = 5
)

// restart makes classes with these centres, and shares as the weights.
func (m *classMixture) restart(centers [][]float32, columns [][]int, s *synopsis.Solution) {
	m.share = slices.Clone(s.Weights)
	rescale(m.share, 1)
	m.chance, m.moved = make([][][]float64, m.parties), make([][][]float64, m.parties)
	for l, local := range centers {
		d := len(columns[l])
		sharpness, own := refitSharpness/max(nearestSquares(local, d), leastSum), make([]float64, d)
		for c := range m.share {
			for h, column := range columns[l] {
				own[h] = s.Centers[c*(len(s.Centers)/len(m.share))+column]
			}
			m.chance[l] = append(m.chance[l], nearby(local, own, sharpness))
			m.moved[l] = append(m.moved[l], make([]float64, m.clusters))
		}
	}
}

// nearestSquares is the mean squared distance of d-dimensional centres to the nearest other.
func nearestSquares(centers []float32, d int) float64 {
	sum, n := 0.0, len(centers)/d
	for a := range n {
		nearest := math.Inf(1)
		for b := range n {
			if b != a {
				nearest = min(nearest, elementary.SquaredDistance(centers[a*d:(a+1)*d], centers[b*d:]))
			}
		}
		sum += nearest
	}
	return sum / float64(n)
}

// nearby are parts of 1 that fall with the squared distance of the centres to a point.
func nearby(centers []float32, point []float64, sharpness float64) []float64 {
	d := len(point)
	parts := make([]float64, len(centers)/d)
	for a := range parts {
		parts[a] = elementary.SquaredDistance(centers[a*d:(a+1)*d], point)
	}
	nearest := slices.Min(parts)
	for a, x := range parts {
		parts[a] = elementary.Exp(-sharpness * (x - nearest))
	}
	rescale(parts, 1)
	return parts
}

// grid draws cells: each class as often as its share asks for, and within it as often each cluster of a party, in a
// public order of each party's own.
func (m *classMixture) grid(records float64) *Grid {
	weights := make(map[string]float64)
	for c, share := range m.share {
		n := int(math.Round(share * drawnCells))
		cells := make([]byte, n*m.parties)
		for l := range m.parties {
			order, sum, from := mixedOrder(uint64(c*m.parties+l)<<32, n), 0.0, 0
			for a, p := range m.chance[l][c] {
				sum += p
				to := min(max(int(math.Round(sum*float64(n))), from), n)
				for _, i := range order[from:to] {
					cells[i*m.parties+l] = byte(a)
				}
				from = to
			}
		}
		for i := range n {
			weights[string(cells[i*m.parties:(i+1)*m.parties])] += share / float64(n)
		}
	}
	g := &Grid{Parties: m.parties, Clusters: m.clusters}
	for _, cell := range slices.Sorted(maps.Keys(weights)) {
		g.Cells = append(g.Cells, cell...)
		g.Weights = append(g.Weights, weights[cell])
	}
	rescale(g.Weights, records)
	return g
}

// mixedOrder is that of the first n numbers of a seed's public sequence.
func mixedOrder(seed uint64, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(mixed(seed, i), mixed(seed, j)) })
	return order
}

// mixtureEstimate is the grid of a mixture fitted to the tables of all pairs of parties. sizes are those of the
// parties' clusters; without them the tables' own are taken.
func mixtureEstimate(ctx context.Context, run runner, r *Release, tables, sizes [][]float64) (*Grid, error) {
	parts := func(x []float64) []float64 {
		x = slices.Clone(x)
		rescale(x, 1)
		return x
	}
	var shares, margins [][]float64
	for _, t := range tables {
		shares = append(shares, parts(t))
	}
	if sizes == nil {
		sizes = tableSizes(r.Parties, r.Clusters, tables)
	}
	for _, m := range sizes {
		margins = append(margins, parts(m))
	}
	noise := r.pairNoise() / r.Records
	f := fitMixture(shares, margins, r.Classes, noise)
	grid := f.grid(r.Records)
	if r.search == nil || len(f.share) == 1 {
		return grid, nil
	}
	for range refits {
		s, err := r.search(ctx, grid, refitStarts)
		if err != nil {
			return nil, err
		}
		f.restart(r.centers, r.columns, s)
		for range refitSteps {
			f.step()
		}
		if err := f.swap(ctx, run, r, classNoise*noise); err != nil {
			return nil, err
		}
		grid = f.grid(r.Records)
	}
	return grid, nil
}

// A class takes the place of another where that gains swapGain, in each table and of a cluster's share, of the
// likelihood's logarithm: ten times what equal clusterings differ in. Which class goes is seen after swapSteps, which
// only the mostTrials make that are the likeliest after firstSteps.
const (
	swapGain   = 0.005
	firstSteps = 4
	swapSteps  = 20
	mostTrials = 4
)

// swapTrial is a mixture without one of its classes, and how likely it is by now.
type swapTrial struct {
	fit     *mixtureFit
	reached float64
}

// swap fits the mixture again from clusters of which one is where the largest excess over the mixture is, instead of
// the class that is missed least, as long as that makes it likelier: a class that holds two clusters, while two hold
// one, is a maximum of the likelihood that steps do not leave. It is post-processing. The workers try a class each.
func (f *mixtureFit) swap(ctx context.Context, run runner, r *Release, noise float64) error {
	worthwhile := swapGain * float64(len(f.pairs)) / float64(len(f.share))
	for before := f.likelihood(); ; {
		x, found := f.largest(noise)
		if !found {
			return nil
		}
		trials := make([]*swapTrial, len(f.share))
		for c := range trials {
			trials[c] = &swapTrial{fit: f.without(c)}
			trials[c].fit.add(x, noise)
		}
		for _, steps := range [2]int{firstSteps, swapSteps - firstSteps} {
			err := run.Run(ctx, len(trials), func(_, c int) {
				for range steps {
					trials[c].fit.step()
				}
				trials[c].reached = trials[c].fit.likelihood()
			})
			if err != nil {
				return err
			}
			slices.SortStableFunc(trials, func(a, b *swapTrial) int { return cmp.Compare(b.reached, a.reached) })
			trials = trials[:min(len(trials), mostTrials)]
		}
		best := trials[0].fit
		best.restart(r.centers, r.columns, best.solution(r.centers, r.columns))
		for range refitSteps {
			best.step()
		}
		after := best.likelihood()
		if after < before+worthwhile {
			return nil
		}
		f.classMixture, before = best.classMixture, after
	}
}

// solution has the means of the classes as centres.
func (m *classMixture) solution(centers [][]float32, columns [][]int) *synopsis.Solution {
	d := 0
	for _, of := range columns {
		d += len(of)
	}
	s := &synopsis.Solution{D: d, Centers: make([]float64, d*len(m.share)), Weights: m.share}
	for l, local := range centers {
		for c := range m.share {
			for a, p := range m.chance[l][c] {
				for h, column := range columns[l] {
					s.Centers[c*d+column] += float64(p * float64(local[a*len(columns[l])+h]))
				}
			}
		}
	}
	return s
}

// without is a copy without class c.
func (f *mixtureFit) without(c int) *mixtureFit {
	drop := func(of [][]float64) (out [][]float64) {
		for i, x := range of {
			if i != c {
				out = append(out, slices.Clone(x))
			}
		}
		return out
	}
	m := &classMixture{parties: f.parties, clusters: f.clusters, share: slices.Delete(slices.Clone(f.share), c, c+1)}
	for l := range f.chance {
		m.chance, m.moved = append(m.chance, drop(f.chance[l])), append(m.moved, drop(f.moved[l]))
	}
	rescale(m.share, 1)
	return &mixtureFit{classMixture: m, pairs: f.pairs, ratio: make([]float64, len(f.ratio)),
		left: make([]float64, len(f.left))}
}

// likelihood is the logarithm of the composite likelihood, over that of the tables themselves.
func (f *mixtureFit) likelihood() (sum float64) {
	for l1 := range f.parties {
		for l2 := l1 + 1; l2 < f.parties; l2++ {
			f.ratios(l1, l2)
			for i, x := range f.pairs[pairIndex(f.parties, l1, l2)] {
				r := f.ratio[i]
				if r == 0 {
					r = x / leastSum
				}
				if x > 0 {
					sum -= float64(x * elementary.Log(r))
				}
			}
		}
	}
	return sum
}

// visit gives each cell of a grid of so many records the weights that the classes have there, or, with a ratio for each
// cell, moves what a class has of a cell, so many times, to it.
func (m *classMixture) visit(g *Grid, records float64, ratio []float64) {
	for i := range g.Weights {
		sum, cell := 0.0, g.cell(i)
		for c, share := range m.share {
			part := float64(share * records)
			for l, a := range cell {
				part *= m.chance[l][c][a]
			}
			sum += part
			if ratio == nil {
				continue
			}
			for l, a := range cell {
				m.moved[l][c][a] += float64(part * ratio[i])
			}
		}
		if ratio == nil {
			g.Weights[i] = sum
		}
	}
}

// jointStep is a step of the expectation maximisation, by a mixture, of the joint likelihood and of the released sizes.
func (m *classMixture) jointStep(ctx context.Context, run runner, l *likelihood, r *Release) error {
	m.visit(l.grid, r.Records, nil)
	before := slices.Clone(l.grid.Weights)
	if err := l.step(ctx, run); err != nil {
		return err
	}
	l.fitMargins(r.Margins, r.SizeVariance)
	for i, w := range before {
		before[i] = l.grid.Weights[i] / max(w, leastSum)
	}
	m.begin()
	m.visit(l.grid, r.Records, before)
	m.end()
	return nil
}

// refitJoint fits a mixture to the joint likelihood of all sketches and sizes, from the clusters found in the cells
// that it leaves: where there are more clusters than a party has, most cells of few records are lost in noise, and what
// a cluster has of each party's is not. It is post-processing.
func refitJoint(ctx context.Context, run runner, r *Release, grid *Grid) (*Grid, error) {
	dense, err := newDenseGrid(r.Parties, r.Clusters)
	if err != nil {
		return nil, err
	}
	l, err := newLikelihood(ctx, run, r.Joint, dense)
	if err != nil {
		return nil, err
	}
	m := &classMixture{parties: r.Parties, clusters: r.Clusters}
	for range refits {
		s, err := r.search(ctx, grid, refitStarts)
		if err != nil {
			return nil, err
		}
		m.restart(r.centers, r.columns, s)
		for range refitSteps {
			if err := m.jointStep(ctx, run, l, r); err != nil {
				return nil, err
			}
		}
		m.visit(dense, r.Records, nil)
		grid = dense
	}
	return grid, nil
}

// tableSizes adds up the tables of pairs by the clusters of each party.
func tableSizes(parties, k int, tables [][]float64) [][]float64 {
	sizes := make([][]float64, parties)
	for l := range sizes {
		sizes[l] = make([]float64, k)
	}
	for l1 := range parties {
		for l2 := l1 + 1; l2 < parties; l2++ {
			for i, x := range tables[pairIndex(parties, l1, l2)] {
				sizes[l1][i/k] += x
				sizes[l2][i%k] += x
			}
		}
	}
	return sizes
}

// pairNoise is about the deviation of the weight of a cell of two parties: its phantoms are told from the records and
// phantoms of its two clusters under so many keys (see enoughSketches). Phantoms that parties do not share hide it
// among those of the whole union.
func (r *Release) pairNoise() float64 {
	v, k := r.pair(0, 1), float64(r.Clusters)
	if !v.Shared {
		return (r.Records + v.inUnion()) / math.Sqrt(float64(v.keys()))
	}
	n := v.inCell()
	return math.Sqrt(n * (2*r.Records/k + 2*k*n) / float64(v.keys()))
}
