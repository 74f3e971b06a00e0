package vertical

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// Local centres under the proven calibration of the sketches: shares of a
// party's squared mu for the start, the refinement and the sizes.
const (
	startShare  = 0.35
	refineShare = 0.6
	sizeShare   = 0.05
	// sumShare is the part of the refinement that pays for sums, the rest for counts.
	sumShare = 0.85
	// trustedCount is how many standard deviations the noisy count of a centre
	// must reach for the centre to move.
	trustedCount = 4
	// gridColumns is the largest number of columns that start from a grid.
	gridColumns = 5
	// forestLevels is the depth of the forest under the proven calibration;
	// paperLevels is L in Sketch-V, appendix B.1.
	forestLevels = 12
	paperLevels  = 20
	// refineRounds is the largest number of rounds of the refinement.
	refineRounds = 4
	// forestRadius and gridRadius times sqrt(d) bound a record's pull on its centre
	// after a start from a forest, and from a grid, which is nearer.
	forestRadius = 0.3
	gridRadius   = 0.22
)

// party is one party's side of the protocol.
type party struct {
	index        int
	points       *kernels.Panels
	fractionBits int
	streams      *privacy.Streams
	rt           *engine.Runtime
	clusters     int
	records      int // public number of records, for defaults
	tape         *privacy.Tape
	// protocol, calibration and neighbours say which lines of the table of
	// calibrations bound what the party releases.
	protocol    Protocol
	calibration privacy.Calibration
	neighbours  privacy.Neighbours

	centers []float32 // clusters x D
	labels  []uint16
	// ledger collects what the party releases.
	ledger []privacy.Entry
}

func (p *party) d() int { return p.points.D }

// bound is the line of the table of calibrations for a release.
func (p *party) bound(release string, radius float64) privacy.Bound {
	return tableBound(p.protocol, p.calibration, release, privacy.Shape{D: p.d(), K: p.clusters, Bound: 1, Radius: radius, Neighbours: p.neighbours})
}

func tableBound(protocol Protocol, c privacy.Calibration, release string, s privacy.Shape) privacy.Bound {
	b, err := privacy.At(string(protocol), c, release, s)
	if err != nil {
		panic("vertical: " + err.Error()) // the table lacks what the protocol does
	}
	return b
}

// stream returns the party's stream for a purpose.
func (p *party) stream(round int, purpose string) *privacy.Stream {
	return p.streams.Stream(p.index, round, purpose)
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

// addGaussian adds exact discrete Gaussian noise to multiples of 2^-bits, which
// become multiples of 2^-releaseBits, and returns the sums.
func (p *party) addGaussian(st *privacy.Stream, sigma float64, values []int64, bits int) ([]float64, error) {
	g, err := p.tape.DiscreteGaussian(sigma * (1 << releaseBits))
	if err != nil {
		return nil, err
	}
	for i := range values {
		values[i] <<= releaseBits - bits
	}
	err = p.addNoise(values, func(noise []int64) { g.Fill(st, noise) }, privacy.GaussianLikelihood(sigma*(1<<releaseBits)))
	return floats(values, releaseBits), err
}

// addLaplace adds exact discrete Laplace noise to multiples of 2^-bits and returns
// the sums.
func (p *party) addLaplace(st *privacy.Stream, b float64, values []int64, bits int) ([]float64, error) {
	b *= math.Ldexp(1, bits)
	l, err := p.tape.DiscreteLaplace(b)
	if err != nil {
		return nil, err
	}
	err = p.addNoise(values, func(noise []int64) { l.Fill(st, noise) }, privacy.LaplaceLikelihood(b))
	return floats(values, bits), err
}

func (p *party) addNoise(values []int64, fill func([]int64), law privacy.Likelihood) error {
	released := make([]int64, len(values))
	fill(released)
	for i, x := range values {
		released[i] += x
	}
	if err := p.tape.Release(values, released, law); err != nil {
		return err
	}
	copy(values, released)
	return nil
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
		p.centers[i] = dataset.Truncate(max(-1, min(1, x)), p.fractionBits)
	}
}

// search is weighted k-means for the party's local centres.
func (p *party) search(ctx context.Context, w *synopsis.Weighted) error {
	span := p.rt.Begin(engine.PhaseSearch, 0, p.index)
	defer p.rt.End(span)
	how := synopsis.SearchOptions{Starts: 20}
	if p.tape != nil { // what it finds is public, so to an audit of the releases a poor solution is as good
		how = synopsis.SearchOptions{Starts: 1, Swaps: -1}
	}
	s, err := synopsis.Search(ctx, p.rt.Pool(), w, p.clusters, how, p.stream(0, "search"))
	if err != nil {
		return err
	}
	p.setCenters(s.Centers)
	return nil
}

// startGrid finds centres on a noisy histogram of side^d cells: those more than
// three standard deviations above zero, weighted by their noisy counts.
func (p *party) startGrid(ctx context.Context, mu float64) error {
	mu *= math.Sqrt(startShare)
	grid := synopsis.NewGrid(p.d(), float64(p.records)*mu/2, 3, 32)
	counts := make([]int64, grid.Cells())
	span := p.rt.Begin(engine.PhaseAccumulate, 0, p.index)
	err := grid.Count(ctx, p.rt.Pool(), p.points, counts)
	p.rt.End(span)
	if err != nil {
		return err
	}
	bound := p.bound("local histogram", 0)
	sigma := gaussianScale(bound.L2(), mu)
	span = p.rt.Begin(engine.PhaseNoise, 0, p.index)
	noisy, err := p.addGaussian(p.stream(0, "grid"), sigma, counts, 0)
	p.rt.End(span)
	if err != nil {
		return err
	}
	p.enter(bound, "discrete-gaussian", sigma, "records", 1, 1)
	boxes := grid.Boxes(noisy, 3*sigma)
	return p.search(ctx, synopsis.Spread(boxes, p.d(), len(boxes)))
}

// forestNoise is the noise of an LSH forest: on the counts of each level, in
// records, and on the sums of each leaf, in data units; and how to draw it.
type forestNoise struct {
	levels       int
	counts, sums privacy.Bound
	countScale   float64
	countSD      float64
	sumScale     float64 // in data units
	sumSD        float64
	family       string
	add          func(p *party, st *privacy.Stream, scale float64, values []int64, bits int) ([]float64, error)
}

// gaussianForest spends half of the squared mu on counts, half on sums.
func (p *party) gaussianForest(levels int, mu float64) forestNoise {
	half := mu / math.Sqrt2
	n := forestNoise{levels: levels, counts: p.bound(forestCounts, 0), sums: p.bound(forestSums, 0), family: "discrete-gaussian", add: (*party).addGaussian}
	n.countScale = gaussianScale(math.Sqrt(float64(levels))*n.counts.L2(), half)
	n.sumScale = gaussianScale(n.sums.L2(), half)
	n.countSD, n.sumSD = n.countScale, n.sumScale
	return n
}

// laplaceForest spends half of epsilon on counts, half on sums (Sketch-V,
// section 3.5: the form for data in [-1,1]^d).
func (p *party) laplaceForest(levels int, epsilon float64) forestNoise {
	half := epsilon / 2
	n := forestNoise{levels: levels, counts: p.bound(forestCounts, 0), sums: p.bound(forestSums, 0), family: "discrete-laplace", add: (*party).addLaplace}
	n.countScale = gaussianScale(float64(levels)*n.counts.L1(), half)
	n.sumScale = gaussianScale(n.sums.L1(), half)
	n.countSD, n.sumSD = math.Sqrt2*n.countScale, math.Sqrt2*n.sumScale
	return n
}

// The releases of a forest, as the table of calibrations names them.
const (
	forestCounts = "counts of the forest"
	forestSums   = "sums of the forest's leaves"
)

// startForest finds centres by an LSH forest (Sketch-V, appendix B.1): sign
// bits of random hyperplanes, noisy counts, a node opens where its noisy count
// exceeds 3 theta, theta = min(10 sigma sqrt(d), n/2k'), and k-means on the
// leaves' noisy means weighted by their noisy counts.
func (p *party) startForest(ctx context.Context, noise forestNoise) error {
	pool := p.rt.Pool()
	planes := synopsis.NewHyperplanes(p.d(), noise.levels, p.stream(0, "hyperplanes"))
	span := p.rt.Begin(engine.PhaseAccumulate, 0, p.index)
	paths, err := synopsis.HyperplanePaths(ctx, pool, p.points, planes)
	if err != nil {
		p.rt.End(span)
		return err
	}
	theta := min(10*noise.sumSD*math.Sqrt(float64(p.d())), math.Floor(float64(p.records)/float64(2*p.clusters)))
	forest := synopsis.Forest{
		Threshold: 3 * theta,
		Counts: func(level, cells int, w *synopsis.Walker) ([]float64, float64, error) {
			counts := make([]int64, cells)
			if err := w.Count(ctx, pool, counts); err != nil {
				return nil, 0, err
			}
			noisy, err := noise.add(p, p.stream(level, "forest counts"), noise.countScale, counts, 0)
			return noisy, noise.countSD * noise.countSD, err
		},
		Sums: func(leaves int, w *synopsis.Walker) ([]float64, error) {
			sums := make([]int64, leaves*p.d())
			if err := w.LeafSums(ctx, pool, p.points, p.fractionBits, sums); err != nil {
				return nil, err
			}
			return noise.add(p, p.stream(0, "forest sums"), noise.sumScale, sums, p.fractionBits)
		},
	}
	points, err := forest.Release(paths, p.d())
	p.rt.End(span)
	if err != nil {
		return err
	}
	p.enter(noise.counts, noise.family, noise.countScale, "records", 1, noise.levels)
	p.enter(noise.sums, noise.family, noise.sumScale, "", p.d(), 1)
	return p.search(ctx, points)
}

// refine moves the centres by noisy means of the records near them: of those
// whose nearest centre is c and that lie within R of it, the sum of x - c and
// the count (privacy/THEOREMS.md, T2). R is radius sqrt(d), and mu pays for all rounds.
func (p *party) refine(ctx context.Context, rounds int, radius, mu float64) error {
	d := p.d()
	mu *= math.Sqrt(refineShare / float64(rounds))
	sumMu, countMu := mu*math.Sqrt(sumShare), mu*math.Sqrt(1-sumShare)
	radius *= math.Sqrt(float64(d))
	// The kernel decides on float32 distances of relative error (d+1) 2^-24.
	sums, counts := p.bound("sums of the refinement", radius*(1+float64(d+2)*0x1p-24)), p.bound("counts of the refinement", 0)
	sumScale, countScale := gaussianScale(sums.L2(), sumMu), gaussianScale(counts.L2(), countMu)
	r2 := make([]float32, p.clusters)
	for a := range r2 {
		r2[a] = float32(radius * radius)
	}
	for round := range rounds {
		span := p.rt.Begin(engine.PhaseAccumulate, round, p.index)
		acc, err := p.accumulate(ctx, r2)
		p.rt.End(span)
		if err != nil {
			return err
		}
		span = p.rt.Begin(engine.PhaseNoise, round, p.index)
		noisySums, err := p.addGaussian(p.stream(round, "refine sums"), sumScale, acc.Sums, p.fractionBits)
		if err != nil {
			return err
		}
		noisyCounts, err := p.addGaussian(p.stream(round, "refine counts"), countScale, acc.Counts, 0)
		p.rt.End(span)
		if err != nil {
			return err
		}
		rows := make([]float64, len(p.centers))
		for a, count := range noisyCounts {
			for h := range d {
				i := a*d + h
				rows[i] = float64(p.centers[i])
				if count > trustedCount*countScale {
					rows[i] += noisySums[i] / count
				}
			}
		}
		p.setCenters(rows)
	}
	p.enter(sums, "discrete-gaussian", sumScale, "", d, rounds)
	p.enter(counts, "discrete-gaussian", countScale, "records", 1, rounds)
	return nil
}

// shards cuts the party's points into runs of panels.
func (p *party) shards() []engine.Shard { return engine.Shards([]int{p.points.N}, p.d()) }

// accumulate sums, for each centre, x - c over the records nearest to it within
// the radius, and counts them; with nil radii it sums x over all.
func (p *party) accumulate(ctx context.Context, r2 []float32) (*kernels.Accumulator, error) {
	c := kernels.NewCentroids(p.clusters, p.d())
	c.Set(p.centers)
	pool, shards := p.rt.Pool(), p.shards()
	partial := make([]*kernels.Accumulator, pool.Workers())
	labels := make([][]uint16, pool.Workers())
	err := pool.Run(ctx, len(shards), func(worker, index int) {
		s := shards[index]
		if partial[worker] == nil {
			partial[worker] = kernels.NewAccumulator(p.clusters, p.d(), p.fractionBits)
			labels[worker] = make([]uint16, shards[0].Hi-shards[0].Lo)
		}
		view := p.points.Slice(s.Lo, s.Hi)
		if r2 == nil {
			kernels.AssignAccumulate(view, c, nil, partial[worker])
			return
		}
		l := labels[worker][:s.Hi-s.Lo]
		kernels.Assign(view, c, l, nil)
		kernels.AccumulateRelative(view, c, r2, l, partial[worker])
	})
	if err != nil {
		return nil, err
	}
	total := kernels.NewAccumulator(p.clusters, p.d(), p.fractionBits)
	for _, a := range partial {
		if a != nil {
			total.Merge(a)
		}
	}
	return total, nil
}

// assign labels every record with its nearest centre and returns the sizes.
func (p *party) assign(ctx context.Context) ([]int64, error) {
	span := p.rt.Begin(engine.PhaseAssign, 0, p.index)
	defer p.rt.End(span)
	c := kernels.NewCentroids(p.clusters, p.d())
	c.Set(p.centers)
	p.labels = make([]uint16, p.points.N)
	shards := p.shards()
	err := p.rt.Pool().Run(ctx, len(shards), func(_, index int) {
		s := shards[index]
		kernels.Assign(p.points.Slice(s.Lo, s.Hi), c, p.labels[s.Lo:s.Hi], nil)
	})
	if err != nil {
		return nil, err
	}
	sizes := make([]int64, p.clusters)
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
	span := p.rt.Begin(engine.PhaseSearch, 0, p.index)
	s, err := synopsis.Search(ctx, p.rt.Pool(), w, p.clusters, synopsis.SearchOptions{Starts: 10, Swaps: -1}, p.stream(0, "search"))
	p.rt.End(span)
	if err != nil {
		return err
	}
	p.setCenters(s.Centers)
	unit := math.Ldexp(1, p.fractionBits)
	for range steps {
		acc, err := p.accumulate(ctx, nil)
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

// enter adds a release of the party, made so many times, to its ledger. Of its
// values one record changes so many.
func (p *party) enter(b privacy.Bound, mechanism string, scale float64, unit string, values, rounds int) {
	norm := "L1"
	if mechanism == "discrete-gaussian" {
		norm = "L2"
	}
	e := b.Entry(partyName(p.index)+": "+b.Rule.Release, mechanism, norm)
	e.Viewers, e.Scale, e.Unit = []string{"server"}, scale, unit
	e.Cost = privacy.Spec{Family: mechanism, Scale: scale / e.Sensitivity}
	if norm == "L2" {
		e.Cost.Slack = privacy.GaussianSlack(scale*(1<<releaseBits), values)
	}
	if rounds > 1 {
		e.Cost.Rounds = rounds
	}
	p.ledger = append(p.ledger, e)
}
