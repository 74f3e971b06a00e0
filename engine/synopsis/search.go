package synopsis

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// SearchOptions says how hard to search. Zero fields mean the defaults.
type SearchOptions struct {
	// Starts is the number of k-means++ starts, default 10.
	Starts int
	// Candidates is the number of points that greedy k-means++ compares for
	// each centre, default 4.
	Candidates int
	// Swaps is the number of swaps tried in each chain, default max(200, 10k);
	// negative means none.
	Swaps int
	// SwapSteps is the number of Lloyd steps after a swap, default 2.
	SwapSteps int
	// Chains is the number of best starts that are improved by swaps, each on
	// its own, default 2.
	Chains int
	// Steps bounds the Lloyd steps of a descent, default 100.
	Steps int
	// Gain is the share of the loss that a Lloyd step of a start has to gain for another one to follow, default 0. The
	// starts that are improved go on to the end.
	Gain float64
	// Sample is the number of points from which on a search works on so many, drawn by weight, and only descends from
	// there on all. The default is to work on all.
	Sample int
}

func (o SearchOptions) withDefaults(k int) SearchOptions {
	fill := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	fill(&o.Starts, 10)
	fill(&o.Candidates, 4)
	fill(&o.Swaps, max(200, 10*k))
	fill(&o.SwapSteps, 2)
	fill(&o.Chains, 2)
	fill(&o.Steps, 100)
	o.Chains = min(o.Chains, o.Starts)
	return o
}

// Solution is a clustering of weighted points.
type Solution struct {
	D       int
	Centers []float64 // row-major, k x D
	Labels  []uint16  // of the points
	Weights []float64 // of the clusters
	Loss    float64   // sum of weight * squared distance
	// TopUp is the number of centres that are data-independent because there
	// were fewer than k points of positive weight.
	TopUp int
}

// grid of the centres and points that enter distances.
const searchFractionBits = 22

func toGrid(x float64) float32 {
	return float32(math.Round(math.Ldexp(x, searchFractionBits)) / (1 << searchFractionBits))
}

// Search is weighted k-means in [-1,1]^D: starts of greedy k-means++ and Lloyd,
// then swaps on the best of them (draw a point by D^2, let it replace the
// centre whose removal costs least, two Lloyd steps, keep if better), then
// Lloyd to the end. The result depends on src and the options, not on the
// number of workers. Points of weight 0 or less are ignored for the search but
// get a label. It needs 1 <= k <= 65535.
func Search(ctx context.Context, r Runner, w *Weighted, k int, o SearchOptions, src Source) (*Solution, error) {
	if k < 1 || k > math.MaxUint16 {
		return nil, fmt.Errorf("synopsis: k is %d, must be 1 to %d", k, math.MaxUint16)
	}
	o = o.withDefaults(k)
	if w.Len() == 0 {
		return &Solution{D: w.D, Centers: Independent(k, w.D), Weights: make([]float64, k), TopUp: k}, nil
	}
	if positiveWeights(w) <= k {
		return fewPoints(w, k), nil
	}
	if o.Sample > 0 && w.Len() > o.Sample {
		return searchSample(ctx, r, w, k, o, src)
	}
	p := newProblem(w)
	r = parallel.Or(r)
	states := make([]*descent, o.Starts)
	seeds := make([]*rand.Rand, o.Starts+o.Chains)
	for i := range seeds {
		seeds[i] = rand.New(rand.NewPCG(src.Uint64(), src.Uint64()))
	}
	report := reporter(r)
	var started, swapped atomic.Int64
	err := r.Run(ctx, o.Starts, func(_, i int) {
		s := p.newDescent(k)
		s.seed(o.Candidates, seeds[i])
		s.lloyd(o.Steps, o.Gain)
		states[i] = s
		report("search, starts", int(started.Add(1)), o.Starts)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(states, func(a, b *descent) int { return cmp.Compare(a.loss, b.loss) })
	err = r.Run(ctx, o.Chains, func(_, i int) {
		w := newSwaps(states[i])
		for n := 0; n < o.Swaps && ctx.Err() == nil; n++ {
			if w.try(o.SwapSteps, seeds[o.Starts+i]) {
				w.keep()
			}
			report("search, swaps", int(swapped.Add(1)), o.Chains*o.Swaps)
		}
		states[i].assign(false)
		states[i].lloyd(o.Steps, 0)
	})
	if err != nil {
		return nil, err
	}
	best := states[0]
	for _, s := range states[1:o.Chains] {
		if s.loss < best.loss {
			best = s
		}
	}
	return best.solution(), nil
}

// searchSample is Search on a sample, and Lloyd steps on all points from what it finds: the loss of the centres of n
// drawn points is k/n above that of the same clusters' means, which the steps undo.
func searchSample(ctx context.Context, r Runner, w *Weighted, k int, o SearchOptions, src Source) (*Solution, error) {
	found, err := Search(ctx, r, w.sample(o.Sample, src), k, o, src)
	if err != nil {
		return nil, err
	}
	s := newProblem(w).newDescent(k)
	for i, x := range found.Centers {
		s.centers[i] = toGrid(x)
	}
	s.assign(false)
	s.lloyd(o.Steps, 0)
	return s.solution(), ctx.Err()
}

// sample draws n points by weight, one of each n-th part of the total in the order of the points, so that it is spread
// as they are. They weigh an n-th of the total each.
func (w *Weighted) sample(n int, src Source) *Weighted {
	s := &Weighted{D: w.D, Points: make([]float64, 0, n*w.D), Weights: make([]float64, 0, n)}
	total := w.positiveTotal()
	part, upTo, last := total/float64(n), 0.0, 0
	at := uniform(src)
	for i, x := range w.Weights {
		if x <= 0 {
			continue
		}
		upTo, last = upTo+x, i
		for len(s.Weights) < n && float64((float64(len(s.Weights))+at)*part) < upTo {
			s.Append(w.Points[i*w.D:(i+1)*w.D], part)
			at = uniform(src)
		}
	}
	for len(s.Weights) < n { // rounding has left over
		s.Append(w.Points[last*w.D:(last+1)*w.D], part)
	}
	return s
}

func positiveWeights(w *Weighted) int {
	n := 0
	for _, x := range w.Weights {
		if x > 0 {
			n++
		}
	}
	return n
}

// fewPoints makes every point of positive weight a centre and tops up with
// data-independent ones.
func fewPoints(w *Weighted, k int) *Solution {
	s := &Solution{D: w.D, Centers: make([]float64, 0, k*w.D), Labels: make([]uint16, w.Len()),
		Weights: make([]float64, k)}
	found := 0
	for i, x := range w.Weights {
		if x > 0 {
			s.Centers = append(s.Centers, w.Points[i*w.D:(i+1)*w.D]...)
			s.Weights[found] = x
			found++
		}
	}
	s.TopUp = k - found
	s.Centers = append(s.Centers, Independent(k, w.D)[:s.TopUp*w.D]...)
	for i := range s.Labels {
		best := math.Inf(1)
		for j := range k {
			if d := elementary.SquaredDistance(w.Points[i*w.D:(i+1)*w.D], s.Centers[j*w.D:(j+1)*w.D]); d < best {
				best, s.Labels[i] = d, uint16(j)
			}
		}
		if w.Weights[i] > 0 {
			s.Loss += float64(w.Weights[i] * best)
		}
	}
	return s
}

// Independent returns k well-spread points of the inner half of [-1,1]^d that
// depend on k and d alone: a Kronecker sequence.
func Independent(k, d int) []float64 {
	p := make([]float64, k*d)
	for h, prime := range primes(d) {
		_, alpha := math.Modf(math.Sqrt(float64(prime)))
		for i := range k {
			_, u := math.Modf(0.5 + float64(float64(i)*alpha))
			p[i*d+h] = u - 0.5
		}
	}
	return p
}

// problem is what all descents of a search share.
type problem struct {
	n, d     int
	panels   *kernels.Panels
	points   []float64 // the points on the search grid, row-major
	weights  []float64 // 0 where the weight is not positive
	weighted *kernels.WeightedPoints
}

func newProblem(w *Weighted) *problem {
	p := &problem{n: w.Len(), d: w.D, panels: kernels.NewPanels(w.Len(), w.D)}
	rows := make([]float32, len(w.Points))
	p.points = make([]float64, len(w.Points))
	p.weights = make([]float64, p.n)
	for i, x := range w.Weights {
		p.weights[i] = max(x, 0)
		for h := i * p.d; h < (i+1)*p.d; h++ {
			rows[h] = toGrid(w.Points[h])
			p.points[h] = float64(rows[h])
		}
	}
	kernels.Pack(p.panels, rows)
	p.weighted = kernels.NewWeightedPoints(*p.panels, p.weights)
	return p
}

// descent is one clustering on its way down.
type descent struct {
	*problem
	k            int
	centers      []float32
	prepared     *kernels.Centroids
	labels       []uint16
	dist, second []float32
	acc          *kernels.WeightedAccumulator // of the last assignment
	loss         float64
}

func (p *problem) newDescent(k int) *descent {
	return &descent{problem: p, k: k, centers: make([]float32, k*p.d), prepared: kernels.NewCentroids(k, p.d),
		labels: make([]uint16, p.n), dist: make([]float32, p.n), second: make([]float32, p.n),
		acc: kernels.NewWeightedAccumulator(k, p.d)}
}

// row is point i.
func (p *problem) row(i int) []float32 {
	row := make([]float32, p.d)
	for h := range row {
		row[h] = float32(p.points[i*p.d+h])
	}
	return row
}

// draw draws an index with the probability of its term in running sums: upTo[i+1] is
// the sum of the terms up to i.
func draw(upTo []float64, src Source) int {
	n, at := len(upTo)-1, uniform(src)*upTo[len(upTo)-1]
	return sort.Search(n, func(i int) bool { return upTo[i+1] > at || upTo[i+1] == upTo[n] })
}

// running fills upTo with the running sums of the weights times dist, or of the weights
// where that is nil.
func (p *problem) running(upTo []float64, dist []float32) {
	sum := 0.0
	for i, w := range p.weights {
		if dist != nil {
			w = float64(w * float64(dist[i]))
		}
		sum += w
		upTo[i+1] = sum
	}
}

// seed is greedy k-means++: each centre is the best of some points drawn by
// D^2 (Arthur and Vassilvitskii 2007).
func (s *descent) seed(candidates int, src Source) {
	upTo, best, trial := make([]float64, s.n+1), make([]float32, s.n), make([]float32, s.n)
	s.running(upTo, nil)
	for i := range s.dist {
		s.dist[i] = math.MaxFloat32
	}
	for j := range s.k {
		bestLoss, tries := math.Inf(1), candidates
		if j == 0 {
			tries = 1
		}
		for range tries {
			row := s.row(draw(upTo, src))
			copy(trial, s.dist)
			kernels.Nearer(*s.panels, row, trial)
			if loss := kernels.WeightedCost(s.weights, trial); loss < bestLoss {
				bestLoss, best, trial = loss, trial, best
				copy(s.centers[j*s.d:], row)
			}
		}
		copy(s.dist, best)
		s.running(upTo, s.dist)
	}
	s.assign(false)
}

// assign finds the nearest centre of every point, the loss, and the weighted sums
// that update needs; and the distances to the second nearest when asked.
func (s *descent) assign(second bool) {
	s.prepared.Set(s.centers)
	s.acc.Reset()
	var next []float32
	if second {
		next = s.second
	}
	kernels.AssignAccumulateWeighted(s.weighted, s.prepared, s.labels, s.dist, next, s.acc)
	s.loss = s.acc.Cost
}

// update moves every centre to the weighted mean of its points. A centre
// without weight moves to the point that costs most.
func (s *descent) update() {
	for j, w := range s.acc.Weights {
		center := s.centers[j*s.d : (j+1)*s.d]
		if w > 0 {
			for h := range center {
				center[h] = toGrid(s.acc.Sums[j*s.d+h] / w)
			}
			continue
		}
		far, most := 0, -1.0
		for i, w := range s.weights {
			if c := float64(w * float64(s.dist[i])); c > most {
				far, most = i, c
			}
		}
		s.dist[far] = 0
		for h := range center {
			center[h] = float32(s.points[far*s.d+h])
		}
	}
}

// lloyd runs Lloyd steps until the loss stops falling, or falls by less than the share gain of it, at most `steps`. It
// needs assign before and leaves the assignment of the last centres.
func (s *descent) lloyd(steps int, gain float64) {
	before := make([]float32, len(s.centers))
	for range steps {
		loss := s.loss
		copy(before, s.centers)
		s.update()
		s.assign(false)
		if s.loss >= loss {
			if s.loss > loss {
				copy(s.centers, before)
				s.assign(false)
			}
			return
		}
		if loss-s.loss < float64(gain*loss) {
			return
		}
	}
}

func (s *descent) solution() *Solution {
	out := &Solution{D: s.d, Centers: make([]float64, len(s.centers)), Labels: s.labels, Weights: make([]float64, s.k),
		Loss: s.loss}
	for i, x := range s.centers {
		out.Centers[i] = float64(x)
	}
	for i, j := range s.labels {
		out.Weights[j] += s.weights[i]
	}
	return out
}
