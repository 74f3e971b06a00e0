package central

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/elementary"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// Split is the share of the budget of each stage of the pipeline of Balcan et
// al.: candidates, local swap, recovery, private k-means, choice of a run.
type Split struct{ Candidates, Swap, Recover, KMeans, Choice float64 }

// The splits of Thesis-B: its own (section 5.2) and the corrected one of the
// Matlab code (section 4.3).
var (
	EdlerSplit  = Split{0.7, 0.01, 0.04, 0.2, 0.05}
	MatlabSplit = Split{4. / 9, 1. / 18, 1. / 9, 1. / 3, 1. / 18}
)

// Edler is Thesis-B's pipeline as it stands, under its own claim: project to
// ln(n)/2 dimensions, partition shifted cubes privately into candidate centres,
// swap, recover the centres in all dimensions and refine them by private
// k-means (Algorithms 8 to 13; 1 to 6 by the options). The claimed epsilon is
// not what it costs: the mean of every cluster is released with noise for one
// coordinate, so recovery and k-means cost about (d+1)/2 times as much
// (THEOREMS.md T5). The ledger states both.
//
// The choices are made by permute-and-flip or the exponential mechanism with the
// best score subtracted and the loss as a cost, as the library that the thesis
// calls does; its listings omit the one and have the sign of the other wrong. A
// cluster without records keeps the middle of the box for its mean.
type Edler struct {
	Data
	K int
	// Budget is what the run claims; a negative Delta means 1/(n ln n), and the
	// method uses no delta.
	Budget privacy.Budget
	// Options of the thesis; zero fields mean its Algorithms 8 to 13.
	GammaFactor float64 // gamma = factor/epsilon' ln(n/failure probability): 20, 2 or 1 (default)
	Failure     float64 // failure probability, default 0.1 (the thesis's delta)
	Rounds      int     // T of Algorithm 8, default 1
	Partitions  int     // T of Algorithm 9, default 3
	Swaps       int     // T of Algorithm 11, default min(k, 20)
	KMeans      int     // iterations of private k-means, default 3; negative: none
	Exponential bool    // the exponential mechanism in place of permute-and-flip
	AllCubes    bool    // no reduction of the candidates (Listing 5.3)
	Split       Split   // default EdlerSplit
	Projection  Projection
	// Seed makes the run a simulation; nil takes noise from the system.
	Seed *uint64
}

// Method is "balcan-edler".
func (j *Edler) Method() string { return "balcan-edler" }

// Plan implements engine.Job.
func (j *Edler) Plan() (engine.Plan, error) { return j, j.Validate() }

// Validate checks the fields.
func (j *Edler) Validate() error {
	if err := j.validate(j.K); err != nil {
		return err
	}
	switch {
	case len(j.Clients) != 1:
		return fault.Range("clients", len(j.Clients), "1: balcan-edler is a central method")
	case j.GammaFactor < 0 || math.IsInf(j.GammaFactor, 1) || math.IsNaN(j.GammaFactor):
		return fault.Range("gamma-factor", j.GammaFactor, "positive; the thesis has 20, 2 and 1")
	case !(j.Failure >= 0 && j.Failure < 1):
		return fault.Range("failure-probability", j.Failure, "in (0, 1)")
	case j.Rounds < 0 || j.Partitions < 0 || j.Swaps < 0:
		return fault.Range("rounds", min(j.Rounds, j.Partitions, j.Swaps), "at least 1")
	}
	s := j.split()
	if sum := s.Candidates + s.Swap + s.Recover + s.KMeans + s.Choice; !(sum > 0 && sum < 1+1e-9) ||
		min(s.Candidates, s.Swap, s.Recover, s.KMeans, s.Choice) < 0 || s.Candidates == 0 || s.Swap == 0 || s.Recover == 0 {
		return fault.Range("split", fmt.Sprintf("%v", s), "five shares of at most 1 together, the first three positive")
	}
	if err := j.Projection.validate(); err != nil {
		return err
	}
	return validateBudget(j.Budget, j.records())
}

func (j *Edler) split() Split {
	if j.Split == (Split{}) {
		return EdlerSplit
	}
	return j.Split
}

func orDefault(x, d int) int {
	if x == 0 {
		return d
	}
	return x
}

// edlerRun is the state of a run. Everything is in the data's own units,
// measured from the lower bounds.
type edlerRun struct {
	*session
	job     *Edler
	records *kernels.Panels
	width   []float64 // of the bounds, per column
	r       float64   // range of the data: the largest width
	failure float64
	factor  float64
}

// Run runs the method.
func (j *Edler) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	budget := budgetFor(j.Budget, j.records())
	s := newSession(ctx, rt, &j.Data, j.K, j.Seed, 0)
	e := &edlerRun{session: s, job: j, records: j.Clients[0].Points, width: make([]float64, s.d), failure: j.Failure, factor: j.GammaFactor}
	if e.failure == 0 {
		e.failure = 0.1
	}
	if e.factor == 0 {
		e.factor = 1
	}
	for h := range e.width {
		e.width[h] = j.Bounds.Hi[h] - j.Bounds.Lo[h]
		e.r = max(e.r, e.width[h])
	}
	rounds, split := orDefault(j.Rounds, 1), j.split()
	epsilon := budget.Epsilon / float64(rounds)
	var sets [][]float64
	kmeans := max(orDefault(j.KMeans, 3), 0)
	for t := range rounds {
		y, err := e.projectRaw(t)
		if err != nil {
			return nil, err
		}
		candidates, err := e.candidates(t, y, epsilon*split.Candidates)
		if err != nil {
			return nil, err
		}
		low, err := e.localSwap(t, y, candidates, epsilon*split.Swap)
		if err != nil {
			return nil, err
		}
		centers, err := e.privateMeans(t, 0, y, low, epsilon*split.Recover)
		if err != nil {
			return nil, err
		}
		for i := range kmeans {
			centers, err = e.privateMeans(t, i+1, e.records, toFloat32(centers), epsilon*split.KMeans/float64(kmeans))
			if err != nil {
				return nil, err
			}
			rt.IterationEnd(t*kmeans+i, rounds*kmeans)
		}
		sets = append(sets, centers)
	}
	chosen, err := e.choose(sets, epsilon*split.Choice)
	if err != nil {
		return nil, err
	}
	s.ledger.Note("the thesis's failure probability (0.1) is no privacy parameter: the claim is pure epsilon")
	s.ledger.Delta = budget.Delta
	res, err := s.result(j.Method(), privacy.Claimed, chosen, budget, rounds*kmeans)
	return res, err
}

// toFloat32 narrows centres for the distance kernels.
func toFloat32(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// lowDimension is ln(n)/2, at least 1 and at most d.
func lowDimension(n, d int) int { return min(max(int(elementary.Log(float64(n))/2), 1), d) }

// projectRaw is the JL transform of the raw data, divided by sqrt d. The
// transform, normal entries divided by the root of the dimension that it
// projects to, keeps distances on average: so the losses of the projected
// centres on MNIST are the 4 to 5 million that the thesis reports (section 5.3);
// without that root they would be twice as large.
func (e *edlerRun) projectRaw(round int) (*kernels.Panels, error) {
	span := e.rt.Begin(engine.PhaseEncode, round, 0)
	defer e.rt.End(span)
	q := lowDimension(e.n, e.d)
	kind := e.job.Projection
	if kind == "" {
		kind = Dense
	}
	g := randomProjection(kind, q, e.d, 1/math.Sqrt(float64(q*e.d)), e.streams.Stream(engine.Server, round, "projection"))
	// x = (u+1)/2 width for the normalised u, so G x = (G width/2) u + G width/2.
	offset := make([]float32, q)
	for a := range q {
		sum := 0.0
		for h, w := range e.width {
			half := float64(float64(g[a*e.d+h]) * w / 2)
			sum += half
			g[a*e.d+h] = float32(half)
		}
		offset[a] = float32(sum)
	}
	m, y := kernels.NewMatrix(q, e.d, g), kernels.NewPanels(e.n, q)
	shards := engine.Shards([]int{e.n}, e.d)
	err := e.rt.Pool().Run(e.ctx, len(shards), func(_, i int) {
		part := y.Slice(shards[i].Lo, shards[i].Hi)
		kernels.Project(e.records.Slice(shards[i].Lo, shards[i].Hi), m, part)
		for at := range part.Data {
			part.Data[at] += offset[at/kernels.Lanes%q]
		}
	})
	return y, err
}

// candidates is Algorithm 9: partitions of cubes of side 2r that are shifted at
// random.
func (e *edlerRun) candidates(round int, y *kernels.Panels, epsilon float64) ([]float32, error) {
	times := orDefault(e.job.Partitions, 3)
	shift := e.streams.Stream(engine.Server, round, "cube shift")
	var all []float32
	for t := range times {
		lo := make([]float64, y.D)
		for h := range lo {
			lo[h] = float64(float64(2*shift.Float64()-1)*e.r) - e.r
		}
		cubes, err := e.partition(round*times+t, y, lo, 2*e.r, epsilon/float64(times), e.failure/float64(times))
		if err != nil {
			return nil, err
		}
		all = append(all, cubes...)
	}
	// Every partition yields its initial cube at least, so there may be fewer
	// candidates than clusters.
	if have := len(all) / y.D; have < e.k {
		e.note("the partitions found %d candidates for %d clusters: topped up with data-independent ones", have, e.k)
		for _, x := range synopsis.Independent(e.k-have, y.D) {
			all = append(all, float32(2*x*e.r))
		}
	}
	return all, nil
}

// partition is Algorithm 10: cubes are halved along all axes; a cube whose
// count, with the noise that the thesis writes as a probability (a count plus
// Laplace noise against gamma), passes gamma is a candidate and is cut again.
func (e *edlerRun) partition(at int, y *kernels.Panels, lo []float64, side, epsilon, failure float64) ([]float32, error) {
	logN := max(elementary.Log(float64(e.n)), 1) // of one or two records, nothing is cut
	own := epsilon / (2 * logN)
	gamma := e.factor / own * elementary.Log(float64(e.n)/failure)
	passes := min(int(elementary.Log(float64(e.n)))+1, 64/y.D)
	span := e.rt.Begin(engine.PhaseSketch, at, 0)
	defer e.rt.End(span)
	paths, err := synopsis.CubePaths(e.ctx, e.rt.Pool(), y, lo, side, passes)
	if err != nil {
		return nil, err
	}
	walker, trie := synopsis.NewWalker(paths), synopsis.NewTrie(y.D)
	stream := e.streams.Stream(engine.Server, at, "partition")
	centre := func(corner []float64, side float64) []float32 {
		c := make([]float32, len(corner))
		for h, x := range corner {
			c[h] = float32(x + side/2)
		}
		return c
	}
	depths := [][]float32{centre(lo, side)}
	corners := [][]float64{lo}
	for pass := range passes {
		if trie.Open() == 0 || pass == passes-1 {
			break // the decisions of the last pass are never used
		}
		counts := make([]int64, trie.Open()<<y.D)
		if err := walker.Count(e.ctx, e.rt.Pool(), counts); err != nil {
			return nil, err
		}
		noisy := make([]float64, len(counts))
		stream.FillLaplace(1/own, noisy)
		for c, n := range counts {
			noisy[c] += float64(n)
		}
		next := trie.Add(noisy, 2/(own*own), gamma)
		side /= 2
		var opened [][]float64
		var centers []float32
		for c, node := range next {
			if node < 0 {
				continue
			}
			corner := append([]float64(nil), corners[c>>y.D]...)
			for h := range corner {
				if c>>(y.D-1-h)&1 == 1 {
					corner[h] += side
				}
			}
			opened = append(opened, corner)
			centers = append(centers, centre(corner, side)...)
		}
		if len(opened) > 0 {
			depths = append(depths, centers)
		}
		corners = opened
		walker.Descend(next)
	}
	if passes > 1 {
		entry := e.claim("cubes that pass").Entry(fmt.Sprintf("partition %d: which cubes pass gamma, %d levels", at+1, passes-1), "laplace", "L1")
		entry.Scale, entry.Unit = 1/own, "records"
		entry.True = &privacy.Spec{Family: "pure", Epsilon: own * float64(passes-1)}
		err = e.enter(entry, epsilon)
	}
	if err != nil {
		return nil, err
	}
	var out []float32
	for d := len(depths) - 1; d >= 0; d-- {
		out = append(out, depths[d]...)
		if !e.job.AllCubes && len(out)/y.D >= e.k {
			break
		}
	}
	return out, nil
}

// localSwap is Algorithm 11 on the unsquared loss of the projected data.
func (e *edlerRun) localSwap(round int, y *kernels.Panels, candidates []float32, epsilon float64) ([]float32, error) {
	span := e.rt.Begin(engine.PhaseSearch, round, 0)
	defer e.rt.End(span)
	q, count := y.D, len(candidates)/y.D
	swaps := orDefault(e.job.Swaps, min(e.k, 20))
	stream := e.streams.Stream(engine.Server, round, "swap")
	// r sqrt(d) squared, as Algorithm 8 hands it down; twice that, as Algorithm 11
	// says.
	claim := e.claim("scores of swaps")
	selection := privacy.Selection{Epsilon: epsilon / float64(2*(swaps+1)), Sensitivity: claim.L1()}
	order := stream.Perm(count)
	current := order[:e.k]
	used := make([]bool, count)
	centers := make([]float32, e.k*q)
	for j, c := range current {
		used[c] = true
		copy(centers[j*q:], candidates[c*q:(c+1)*q])
	}
	w := e.newSwapper(y, candidates, e.k, lossKind{})
	after := make([]float64, count*e.k)
	sets, losses := [][]float32{append([]float32(nil), centers...)}, []float64{w.set(centers)}
	for range swaps {
		if count == e.k {
			break // nothing to swap with
		}
		if err := w.losses(after); err != nil {
			return nil, err
		}
		scores, index := make([]float64, 0, len(after)), make([]int, 0, len(after))
		for i, loss := range after {
			if !used[i/e.k] {
				scores, index = append(scores, -loss), append(index, i)
			}
		}
		i, err := e.pick(selection, stream, scores)
		if err != nil {
			return nil, err
		}
		in, out := index[i]/e.k, index[i]%e.k
		used[current[out]], used[in] = false, true
		current[out] = in
		copy(centers[out*q:], candidates[in*q:(in+1)*q])
		sets, losses = append(sets, append([]float32(nil), centers...)), append(losses, w.set(centers))
	}
	for i := range losses {
		losses[i] = -losses[i]
	}
	chosen, err := e.pick(selection, stream, losses)
	if err != nil {
		return nil, err
	}
	entry := claim.Entry(fmt.Sprintf("local swap %d: %d swaps and a choice", round+1, swaps), e.selectionName(), "L1")
	entry.Unit = "loss"
	return sets[chosen], e.enter(entry, epsilon)
}

func (e *edlerRun) selectionName() string {
	if e.job.Exponential {
		return "exponential"
	}
	return "permute-and-flip"
}

func (e *edlerRun) pick(selection privacy.Selection, st *privacy.Stream, scores []float64) (int, error) {
	if e.job.Exponential {
		return selection.ExponentialMechanism(st, scores)
	}
	return selection.PermuteAndFlip(st, scores)
}

// privateMeans is Algorithms 12 and 13: the exact mean of the records of each
// cluster plus Laplace noise of scale 2r/(epsilon n'), n' the noisy count. The
// clusters are those of the centres in the space of points. Step 0 is the
// recovery.
func (e *edlerRun) privateMeans(round, step int, points *kernels.Panels, centers []float32, epsilon float64) ([]float64, error) {
	at := round*1000 + step
	span := e.rt.Begin(engine.PhaseAssign, at, 0)
	prepared := kernels.NewCentroids(e.k, points.D)
	prepared.Set(centers)
	labels := make([]uint16, points.N)
	shards := engine.Shards([]int{points.N}, points.D)
	err := e.rt.Pool().Run(e.ctx, len(shards), func(_, i int) {
		lo, hi := shards[i].Lo, shards[i].Hi
		kernels.Assign(points.Slice(lo, hi), prepared, labels[lo:hi], nil)
	})
	e.rt.End(span)
	if err != nil {
		return nil, err
	}
	span = e.rt.Begin(engine.PhaseAccumulate, at, 0)
	counts := make([]int64, e.k)
	sums, err := e.sumByLabel(e.records, labels, e.k, counts)
	e.rt.End(span)
	if err != nil {
		return nil, err
	}
	span = e.rt.Begin(engine.PhaseNoise, at, 0)
	defer e.rt.End(span)
	stream := e.streams.Stream(engine.Server, at, "means")
	claim, mean := e.claim("cluster counts"), e.claim("cluster means") // of one record, divided by the noisy count
	grid := math.Ldexp(1, e.bits)
	out, noise := make([]float64, e.k*e.d), make([]float64, e.d)
	smallest := int64(math.MaxInt64)
	for c, n := range counts {
		smallest = min(smallest, n)
		noisy := max(float64(n)+float64(2*claim.L1()/epsilon*stream.Laplace()), 1)
		stream.FillLaplace(2*mean.L1()/(epsilon*noisy), noise)
		for h, z := range noise {
			mean := 0.0
			if n > 0 {
				mean = float64(sums[c*e.d+h]) / grid / float64(n)
			}
			out[c*e.d+h] = mean + 2*z/e.width[h]
		}
	}
	what := "recovery: the mean of each cluster in all dimensions"
	if step > 0 {
		what = fmt.Sprintf("private k-means %d: the mean of each cluster", step)
	}
	// The count costs epsilon/2, the mean d epsilon/2 n'/(n+1), about d epsilon/2.
	entry := claim.Entry(what, "laplace", "L1")
	entry.Scale, entry.Unit = 2*claim.L1()/epsilon, "records for the count"
	entry.True = &privacy.Spec{Family: "pure", Epsilon: epsilon / 2 * float64(e.d+1)}
	entry.Beside = &mean
	entry.Remark = "the means are released with noise for one coordinate and with a noisy count in the denominator: the true cost is about (d+1)/2 times the claim, and more where a cluster is small"
	return out, e.enter(entry, epsilon)
}

// claim is the line of the table of calibrations for a release of the thesis's
// method, on data in [0, r]^d.
func (e *edlerRun) claim(release string) privacy.Bound {
	b, err := privacy.At(e.job.Method(), privacy.Claimed, release, privacy.Shape{D: e.d, K: e.k, Bound: e.r})
	if err != nil {
		panic("central: " + err.Error()) // the table lacks what the method does
	}
	return b
}

// enter adds a release that is claimed to be epsilon-private to the ledger.
func (e *edlerRun) enter(entry privacy.Entry, epsilon float64) error {
	entry.Viewers, entry.Cost = e.viewers(), privacy.Spec{Family: "pure", Epsilon: epsilon}
	return e.ledger.Add(entry)
}

// choose is the last step of Algorithm 8: one of the runs by its loss.
func (e *edlerRun) choose(sets [][]float64, epsilon float64) ([]float64, error) {
	if len(sets) == 1 {
		return sets[0], nil
	}
	scores := make([]float64, len(sets))
	for i, centers := range sets {
		prepared := kernels.NewCentroids(e.k, e.d)
		prepared.Set(toFloat32(centers))
		labels, dist := make([]uint16, e.n), make([]float32, e.n)
		shards := engine.Shards([]int{e.n}, e.d)
		err := e.rt.Pool().Run(e.ctx, len(shards), func(_, s int) {
			lo, hi := shards[s].Lo, shards[s].Hi
			kernels.Assign(e.records.Slice(lo, hi), prepared, labels[lo:hi], dist[lo:hi])
		})
		if err != nil {
			return nil, err
		}
		for _, d2 := range dist {
			scores[i] -= float64(float64(d2) * e.r * e.r / 4)
		}
	}
	claim := e.claim("scores of runs")
	i, err := e.pick(privacy.Selection{Epsilon: epsilon, Sensitivity: claim.L1()}, e.streams.Stream(engine.Server, 0, "choice"), scores)
	if err != nil {
		return nil, err
	}
	entry := claim.Entry(fmt.Sprintf("choice among %d runs", len(sets)), e.selectionName(), "L1")
	entry.Unit = "loss"
	return sets[i], e.enter(entry, epsilon)
}
