package sketch

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// Local centres under the proven calibration of the sketches: shares of a
// party's squared mu for a tree or forest to start from, or a mean, for the distances from there, and for the sizes;
// the rest is for the rounds.
const (
	startShare = 0.35
	meanShare  = 0.03
	reachShare = 0.01
	sizeShare  = 0.05
	// A party with more than fewColumns starts from a tree only where that could halve each column treeHalvings times
	// on average. treeRounds are the rounds after a tree or forest.
	fewColumns   = 5
	mostLeaves   = 1 << 12
	treeHalvings = 0.75
	treeRounds   = 3
	// forestLevels is the depth of the forest under the proven calibration;
	// paperLevels is L in Sketch-V, appendix B.1.
	forestLevels = 12
	paperLevels  = 20
	// The reach of the rounds is a quantile of the distances from the centres, or from the mean: of separated clusters
	// most are wider than that apart. Centres start so many reaches from the mean.
	centreReach, meanReach = 0.4, 0.25
	startLength            = 0.3
)

// party is one party's side of a run: its columns and what it makes of them.
type party struct {
	*protocol.Party
	*run
	index    int
	releases partyReleases
	points   *kernels.Panels

	centers []float32 // clusters x D
	labels  []uint16
}

func (p *party) d() int { return p.points.D }

// span starts a span of this party.
func (p *party) span(phase engine.Phase) engine.Span { return p.Begin(phase, 0) }

// bound is the line of the table of calibrations for a release of a party with d
// columns.
func (r *run) bound(d int, release string) privacy.Bound {
	return tableBound(r.job.Method, r.job.Calibration, release,
		privacy.Shape{D: d, K: r.plan.clusters, Bound: 1, Neighbours: r.job.relation()})
}

func tableBound(protocol Method, c privacy.Calibration, release string, s privacy.Shape) privacy.Bound {
	b, err := privacy.At(string(protocol), c, release, s)
	if err != nil {
		panic("vertical: " + err.Error()) // the table lacks what the protocol does
	}
	return b
}

// gaussianScale returns the noise scale for sensitivity over mu, rounded up to
// a multiple of 2^-20 so that the last bit of a logarithm cannot matter, and at
// least minScale.
func gaussianScale(sensitivity, mu float64) float64 {
	return max(math.Ceil(sensitivity/mu*(1<<20))/(1<<20), minScale)
}

// Gaussian releases enter as multiples of 2^-releaseBits, whatever their own grid,
// and get discrete noise of at least minScale. It is then so close to continuous
// noise rounded to the grid (THEOREMS.md T6) that the exact losses of the latter
// (T8, T9) count, at the price of a slack far below delta.
const (
	releaseBits = 30
	minScale    = 1.0 / (1 << 10)
)

// noisy releases integers, multiples of 2^-bits, with noise, and returns multiples
// of a unit with it: Gaussian noise is drawn on the grid of 2^-releaseBits, Laplace
// noise on their own.
func noisy(p *protocol.Party, r *release, round int, stream string, bits int, fill func(words []int64) error, n int) (
	[]int64, int, error) {
	unit, shift := bits, 0
	if r.mechanism == protocol.Gaussian {
		unit, shift = releaseBits, releaseBits-bits
	}
	noise, err := protocol.NewDistribution(protocol.Noise{Mechanism: r.mechanism,
		Scale: math.Ldexp(r.scale, unit)}, p.Replay)
	if err != nil {
		return nil, 0, err
	}
	own := protocol.NewPrivate(n)
	if err := own.Fill(fill); err != nil {
		return nil, 0, err
	}
	out, err := p.Own(r.Release, round,
		[]protocol.Group{{Stream: stream, Values: n, Shift: uint(shift), Noise: noise}}, own)
	return out, unit, err
}

// noisyFloats is noisy in data units.
func (p *party) noisyFloats(r *release, round int, stream string, bits int, fill func(words []int64) error,
	n int) ([]float64, error) {
	x, unit, err := noisy(p.Party, r, round, stream, bits, fill, n)
	return floats(x, unit), err
}

// floats are the multiples x of 2^-bits.
func floats(x []int64, bits int) []float64 {
	f := make([]float64, len(x))
	for i, v := range x {
		f[i] = math.Ldexp(float64(v), -bits)
	}
	return f
}

// setCenters clips rows to the box and puts them on the grid.
func (p *party) setCenters(rows []float64) {
	p.centers = make([]float32, len(rows))
	for i, x := range rows {
		p.centers[i] = dataset.Truncate(max(-1, min(1, x)), p.bits)
	}
}

// search is weighted k-means for the party's local centres. Few starts and swaps do: what noise leaves of the leaves
// has few good solutions, and the records are told apart by all parties' centres together.
func (p *party) search(ctx context.Context, w *synopsis.Weighted) error {
	span := p.span(engine.PhaseSearch)
	defer p.End(span)
	how := synopsis.SearchOptions{Starts: 5, Swaps: 50, Chains: 1}
	if p.Replay != nil { // what it finds is public, so to an audit of the releases a poor solution is as good
		how = synopsis.SearchOptions{Starts: 1, Swaps: -1}
	}
	s, err := synopsis.Search(ctx, p.Pool(), w, p.plan.clusters, how, p.Streams().Stream(p.index, 0, "search"))
	if err != nil {
		return err
	}
	p.setCenters(s.Centers)
	return nil
}

// startTree finds centres on the leaves of a midpoint tree, whose counts are made consistent with the
// number of records.
func (p *party) startTree(ctx context.Context) error {
	r, pool, d := p.releases.tree, p.Pool(), p.d()
	span := p.span(engine.PhaseAccumulate)
	order := synopsis.InTurn(d, r.bits*r.levels)
	paths, err := synopsis.PathsAlong(ctx, pool, p.points, p.bits, r.bits, order, nil)
	if err != nil {
		p.End(span)
		return err
	}
	w := synopsis.NewWalker(paths)
	g := synopsis.Growing{Bits: r.bits, Levels: r.levels, Threshold: func(float64) float64 { return 0 },
		Count: func(level, cells int) ([]float64, float64, error) {
			noisy, err := p.noisyFloats(&r.counts, level, "tree counts", 0,
				func(words []int64) error { return w.Count(ctx, pool, words) }, cells)
			return noisy, r.counts.deviation() * r.counts.deviation(), err
		}}
	trie, err := g.Grow(nil, w)
	p.End(span)
	if err != nil {
		return err
	}
	trie.Estimate(float64(p.job.PublicRecords()))
	boxes := trie.BoxesAlong(d, order)
	if len(order) < 2*d {
		boxes = synopsis.Significant(boxes, trie.LeafNoise(), float64(p.job.PublicRecords())/float64(p.plan.clusters))
	}
	return p.search(ctx, synopsis.Spread(boxes, d, 3000))
}

// startForest finds centres by an LSH forest (Sketch-V, appendix B.1): sign
// bits of random hyperplanes, noisy counts, a node opens where its noisy count
// exceeds 3 theta, theta = min(10 sigma sqrt(d), n/2k'), and k-means on the
// leaves' noisy means weighted by their noisy counts.
func (p *party) startForest(ctx context.Context) error {
	r := p.releases.forest
	pool := p.Pool()
	planes := synopsis.NewHyperplanes(p.d(), r.levels, p.Public.Stream(p.index, 0, "hyperplanes"))
	span := p.span(engine.PhaseAccumulate)
	paths, err := synopsis.HyperplanePaths(ctx, pool, p.points, planes)
	if err != nil {
		p.End(span)
		return err
	}
	theta := min(10*r.sums.deviation()*math.Sqrt(float64(p.d())),
		math.Floor(float64(p.job.PublicRecords())/float64(2*p.plan.clusters)))
	forest := synopsis.Forest{
		Threshold: 3 * theta,
		Counts: func(level, cells int, w *synopsis.Walker) ([]float64, float64, error) {
			noisy, err := p.noisyFloats(&r.counts, level, "forest counts", 0,
				func(words []int64) error { return w.Count(ctx, pool, words) }, cells)
			return noisy, r.counts.deviation() * r.counts.deviation(), err
		},
		Sums: func(leaves int, w *synopsis.Walker) ([]float64, error) {
			return p.noisyFloats(&r.sums, 0, "forest sums", p.bits, func(words []int64) error {
				return w.LeafSums(ctx, pool, p.points, p.bits, 0, words)
			}, leaves*p.d())
		},
	}
	points, err := forest.Release(paths, p.d())
	p.End(span)
	if err != nil {
		return err
	}
	return p.search(ctx, points)
}

// refine moves the centres, which start around a private mean if nowhere else, by relative rounds: sums of the
// offsets of their records, cut to one length (privacy/THEOREMS.md, T2).
func (p *party) refine(ctx context.Context) error {
	r, from, quantile := p.releases.refinement, p.centers, centreReach
	q := &staged.Party{Party: p.Party, Plan: r.part, Records: p.points}
	var mean []float64
	if r.mean != nil {
		var err error
		if mean, err = q.PrivateMean(ctx, r.mean); err != nil {
			return err
		}
		from, quantile = staged.GridRow(mean, p.bits), meanReach
	}
	reach, err := q.DistanceQuantile(ctx, r.distances, from, 2*math.Sqrt(float64(p.d())), quantile)
	if err != nil {
		return err
	}
	if r.mean != nil {
		p.centers = staged.Directions(p.Public.Stream(p.index, 0, "start"), mean, startLength*reach, p.plan.clusters, p.bits)
	}
	_, err = q.EqualRounds(ctx, r.rounds, p.centers, reach)
	return err
}

// copied fills in values.
func copied(values []int64) func(words []int64) error {
	return func(words []int64) error {
		copy(words, values)
		return nil
	}
}

// accumulate sums the records nearest to each centre, and counts them.
func (p *party) accumulate(ctx context.Context) (*kernels.Accumulator, error) {
	c := kernels.NewCentroids(p.plan.clusters, p.d())
	c.Set(p.centers)
	pool := p.Pool()
	partial := make([]*kernels.Accumulator, pool.Workers())
	err := pool.Scan(ctx, p.points, func(worker int, s engine.Shard) {
		if partial[worker] == nil {
			partial[worker] = kernels.NewAccumulator(p.plan.clusters, p.d(), p.bits)
		}
		kernels.AssignAccumulate(p.points.Slice(s.Lo, s.Hi), c, nil, partial[worker])
	})
	if err != nil {
		return nil, err
	}
	total := kernels.NewAccumulator(p.plan.clusters, p.d(), p.bits)
	for _, a := range partial {
		if a != nil {
			total.Merge(a)
		}
	}
	return total, nil
}

// assign labels every record with its nearest centre and returns the sizes.
func (p *party) assign(ctx context.Context) ([]int64, error) {
	span := p.span(engine.PhaseAssign)
	defer p.End(span)
	c := kernels.NewCentroids(p.plan.clusters, p.d())
	c.Set(p.centers)
	p.labels = make([]uint16, p.points.N)
	if err := p.Pool().Assign(ctx, p.points, c, p.labels, nil); err != nil {
		return nil, err
	}
	sizes := make([]int64, p.plan.clusters)
	for _, a := range p.labels {
		sizes[a]++
	}
	return sizes, nil
}

// plainCenters is k-means without noise: a search on a sample, then Lloyd steps
// on all records.
func (p *party) plainCenters(ctx context.Context) error {
	const sample, steps = 20_000, 50
	w := &synopsis.Weighted{D: p.d()}
	row := make([]float64, p.d())
	point := make([]float32, p.d())
	n := min(sample, p.points.N)
	for i := range n {
		for h, x := range p.points.Point(i*p.points.N/n, point) {
			row[h] = float64(x)
		}
		w.Append(row, 1)
	}
	span := p.span(engine.PhaseSearch)
	s, err := synopsis.Search(ctx, p.Pool(), w, p.plan.clusters, synopsis.SearchOptions{Starts: 10, Swaps: -1},
		p.Streams().Stream(p.index, 0, "search"))
	p.End(span)
	if err != nil {
		return err
	}
	p.setCenters(s.Centers)
	unit := math.Ldexp(1, p.bits)
	for range steps {
		acc, err := p.accumulate(ctx)
		if err != nil {
			return err
		}
		before := p.centers
		rows := make([]float64, len(before))
		for a, count := range acc.Counts {
			for h := range p.d() {
				i := a*p.d() + h
				rows[i] = float64(before[i])
				if count > 0 {
					rows[i] = float64(acc.Sums[i]) / unit / float64(count)
				}
			}
		}
		p.setCenters(rows)
		moved := false
		for i, c := range p.centers {
			moved = moved || c != before[i]
		}
		if !moved {
			break
		}
	}
	return nil
}
