package central

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
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

// check checks the fields.
func (j *Edler) check() error {
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

// edlerPlan is what a run releases. Everything is in the data's own units,
// measured from the lower bounds.
type edlerPlan struct {
	*frame
	job            *Edler
	width          []float64 // of the bounds, per column
	r              float64   // range of the data: the largest width
	failure        float64
	factor         float64
	rounds, kmeans int
	runs           []edlerStages
	choice         *edlerStage
}

// edlerStages are the releases of one of the T runs of Algorithm 8.
type edlerStages struct {
	partitions []*edlerStage
	swap       *edlerStage
	means      []*edlerStage // recovery, then private k-means
}

// edlerStage is a planned release with what it is claimed to cost.
type edlerStage struct {
	*protocol.Release
	epsilon float64
}

// farOutside bounds the coordinates of the thesis's noisy means in a measurement.
const farOutside = 1 << 16

// Plan implements engine.Job.
func (j *Edler) Plan() (engine.Plan, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	e, err := j.plan()
	if err != nil {
		return nil, err
	}
	if err := e.planQuality(&j.Data, farOutside); err != nil {
		return nil, err
	}
	return planned{e.frame, &j.Data, func(ctx context.Context, p *party) (*protocol.Outcome, error) { return (&edlerRun{p, e}).run(ctx) }}, nil
}

func (j *Edler) plan() (*edlerPlan, error) {
	budget := budgetFor(j.Budget, j.records())
	f, err := newFrame(j.Method(), &j.Data, j.K, budget, true, privacy.AddRemove, 1, j.Seed)
	if err != nil {
		return nil, err
	}
	f.Calibration = privacy.Claimed
	f.Notes = append([]string{"the thesis's failure probability (0.1) is no privacy parameter: the claim is pure epsilon"}, f.Notes...)
	e := &edlerPlan{frame: f, job: j, width: make([]float64, f.d), failure: j.Failure, factor: j.GammaFactor,
		rounds: orDefault(j.Rounds, 1), kmeans: max(orDefault(j.KMeans, 3), 0)}
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
	split, epsilon := j.split(), budget.Epsilon/float64(e.rounds)
	for t := range e.rounds {
		var o edlerStages
		times := orDefault(j.Partitions, 3)
		for i := range times {
			o.partitions = append(o.partitions, e.addPartition(t*times+i, epsilon*split.Candidates/float64(times)))
		}
		o.swap = e.addSwap(t, epsilon*split.Swap)
		o.means = append(o.means, e.addMeans(0, epsilon*split.Recover))
		for i := range e.kmeans {
			o.means = append(o.means, e.addMeans(i+1, epsilon*split.KMeans/float64(e.kmeans)))
		}
		e.runs = append(e.runs, o)
	}
	if e.rounds > 1 {
		claim := e.claim("scores of runs")
		entry := claim.Entry(fmt.Sprintf("choice among %d runs", e.rounds), e.selectionName(), "L1")
		entry.Unit = "loss"
		e.choice = e.add(entry, epsilon*split.Choice)
	}
	f.Rounds = e.rounds * e.kmeans
	return e, nil
}

// add plans a release that is claimed to be epsilon-private.
func (e *edlerPlan) add(entry privacy.Entry, epsilon float64) *edlerStage {
	entry.Viewers, entry.Cost = e.audience, privacy.Spec{Family: "pure", Epsilon: epsilon}
	return &edlerStage{e.Add(&protocol.Release{Name: entry.What, Makers: protocol.Holder, Entries: []privacy.Entry{entry}}), epsilon}
}

// passes is the number of levels that a partition of Algorithm 10 examines, of
// which the decisions of the last are never used; own is what one costs.
func (e *edlerPlan) passes(epsilon float64) (passes int, own float64) {
	logN := max(elementary.Log(float64(e.N)), 1) // of one or two records, nothing is cut
	return min(int(elementary.Log(float64(e.N)))+1, 64/lowDimension(e.N, e.d)), epsilon / (2 * logN)
}

func (e *edlerPlan) addPartition(at int, epsilon float64) *edlerStage {
	passes, own := e.passes(epsilon)
	if passes == 1 {
		return &edlerStage{epsilon: epsilon}
	}
	entry := e.claim("cubes that pass").Entry(fmt.Sprintf("partition %d: which cubes pass gamma, %d levels", at+1, passes-1), "laplace", "L1")
	entry.Scale, entry.Unit = 1/own, "records"
	entry.True = &privacy.Spec{Family: "pure", Epsilon: own * float64(passes-1)}
	return e.add(entry, epsilon)
}

// swaps is T of Algorithm 11.
func (e *edlerPlan) swaps() int { return orDefault(e.job.Swaps, min(e.k, 20)) }

func (e *edlerPlan) addSwap(round int, epsilon float64) *edlerStage {
	entry := e.claim("scores of swaps").Entry(fmt.Sprintf("local swap %d: %d swaps and a choice", round+1, e.swaps()), e.selectionName(), "L1")
	entry.Unit = "loss"
	return e.add(entry, epsilon)
}

func (e *edlerPlan) addMeans(step int, epsilon float64) *edlerStage {
	what := "recovery: the mean of each cluster in all dimensions"
	if step > 0 {
		what = fmt.Sprintf("private k-means %d: the mean of each cluster", step)
	}
	// The count costs epsilon/2, the mean d epsilon/2 n'/(n+1), about d epsilon/2.
	claim, mean := e.claim("cluster counts"), e.claim("cluster means")
	entry := claim.Entry(what, "laplace", "L1")
	entry.Scale, entry.Unit = 2*claim.L1()/epsilon, "records for the count"
	entry.True = &privacy.Spec{Family: "pure", Epsilon: epsilon / 2 * float64(e.d+1)}
	entry.Beside = &mean
	entry.Remark = "the means are released with noise for one coordinate and with a noisy count in the denominator: the true cost is about (d+1)/2 times the claim, and more where a cluster is small"
	return e.add(entry, epsilon)
}

// edlerRun is the party's side of a run.
type edlerRun struct {
	*party
	plan *edlerPlan
}

func (e *edlerRun) run(ctx context.Context) (*protocol.Outcome, error) {
	var sets [][]float64
	rounds, kmeans := e.plan.rounds, e.plan.kmeans
	for t, o := range e.plan.runs {
		y, err := e.projectRaw(ctx, t)
		if err != nil {
			return nil, err
		}
		candidates, err := e.candidates(ctx, t, y, o.partitions)
		if err != nil {
			return nil, err
		}
		low, err := e.localSwap(ctx, t, y, candidates, o.swap)
		if err != nil {
			return nil, err
		}
		centers, err := e.privateMeans(ctx, t, 0, y, low, o.means[0])
		if err != nil {
			return nil, err
		}
		for i := range kmeans {
			centers, err = e.privateMeans(ctx, t, i+1, e.records, gridless(centers), o.means[i+1])
			if err != nil {
				return nil, err
			}
			if err := e.EndRound(ctx, t*kmeans+i, rounds*kmeans); err != nil {
				return nil, err
			}
		}
		sets = append(sets, centers)
	}
	chosen, err := e.choose(ctx, sets)
	if err != nil {
		return nil, err
	}
	return &protocol.Outcome{Centroids: chosen, Iterations: rounds * kmeans}, nil
}

// gridless narrows centres for the distance kernels.
func gridless(x []float64) []float32 {
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
func (e *edlerRun) projectRaw(ctx context.Context, round int) (*kernels.Panels, error) {
	span := e.Begin(engine.PhaseEncode, round)
	defer e.End(span)
	q, d := lowDimension(e.N, e.d), e.d
	kind := e.plan.job.Projection
	if kind == "" {
		kind = Dense
	}
	g := randomProjection(kind, q, d, 1/math.Sqrt(float64(q*d)), e.Public.Stream(int(protocol.Server), round, "projection"))
	// x = (u+1)/2 width for the normalised u, so G x = (G width/2) u + G width/2.
	offset := make([]float32, q)
	for a := range q {
		sum := 0.0
		for h, w := range e.plan.width {
			half := float64(float64(g[a*d+h]) * w / 2)
			sum += half
			g[a*d+h] = float32(half)
		}
		offset[a] = float32(sum)
	}
	m, y := kernels.NewMatrix(q, d, g), kernels.NewPanels(e.records.N, q)
	shards := engine.Shards([]int{e.records.N}, d)
	err := e.Pool().Run(ctx, len(shards), func(_, i int) {
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
func (e *edlerRun) candidates(ctx context.Context, round int, y *kernels.Panels, partitions []*edlerStage) ([]float32, error) {
	shift, r := e.Public.Stream(int(protocol.Server), round, "cube shift"), e.plan.r
	var all []float32
	for t, s := range partitions {
		lo := make([]float64, y.D)
		for h := range lo {
			lo[h] = float64(float64(2*shift.Float64()-1)*r) - r
		}
		cubes, err := e.partition(ctx, round*len(partitions)+t, y, lo, 2*r, s, e.plan.failure/float64(len(partitions)))
		if err != nil {
			return nil, err
		}
		all = append(all, cubes...)
	}
	// Every partition yields its initial cube at least, so there may be fewer
	// candidates than clusters.
	if have := len(all) / y.D; have < e.k {
		e.Note("the partitions found %d candidates for %d clusters: topped up with data-independent ones", have, e.k)
		for _, x := range synopsis.Independent(e.k-have, y.D) {
			all = append(all, float32(2*x*r))
		}
	}
	return all, nil
}

// partition is Algorithm 10: cubes are halved along all axes; a cube whose
// count, with the noise that the thesis writes as a probability (a count plus
// Laplace noise against gamma), passes gamma is a candidate and is cut again.
func (e *edlerRun) partition(ctx context.Context, at int, y *kernels.Panels, lo []float64, side float64, s *edlerStage, failure float64) ([]float32, error) {
	passes, own := e.plan.passes(s.epsilon)
	gamma := e.plan.factor / own * elementary.Log(float64(e.N)/failure)
	span := e.Begin(engine.PhaseSketch, at)
	defer e.End(span)
	paths, err := synopsis.CubePaths(ctx, e.Pool(), y, lo, side, passes)
	if err != nil {
		return nil, err
	}
	walker, trie := synopsis.NewWalker(paths), synopsis.NewTrie(y.D)
	depths, corners := [][]float32{middle(lo, side)}, [][]float64{lo}
	stream := "partition" // of all passes; the decisions of the last are never used
	for pass := 0; pass < passes-1 && trie.Open() > 0; pass++ {
		counts := make([]int64, trie.Open()<<y.D)
		if err := walker.Count(ctx, e.Pool(), counts); err != nil {
			return nil, err
		}
		exact := make([]float64, len(counts))
		for c, n := range counts {
			exact[c] = float64(n)
		}
		noisy, err := e.OwnReals(s.Release, at+pass, stream, 1/own, protocol.NewPrivateReals(exact))
		if err != nil {
			return nil, err
		}
		stream = ""
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
			centers = append(centers, middle(corner, side)...)
		}
		if len(opened) > 0 {
			depths = append(depths, centers)
		}
		corners = opened
		walker.Descend(next)
	}
	var out []float32
	for d := len(depths) - 1; d >= 0; d-- {
		out = append(out, depths[d]...)
		if !e.plan.job.AllCubes && len(out)/y.D >= e.k {
			break
		}
	}
	return out, nil
}

// middle is the centre of a cube.
func middle(corner []float64, side float64) []float32 {
	c := make([]float32, len(corner))
	for h, x := range corner {
		c[h] = float32(x + side/2)
	}
	return c
}

// localSwap is Algorithm 11 on the unsquared loss of the projected data.
func (e *edlerRun) localSwap(ctx context.Context, round int, y *kernels.Panels, candidates []float32, s *edlerStage) ([]float32, error) {
	span := e.Begin(engine.PhaseSearch, round)
	defer e.End(span)
	q, count, swaps, at := y.D, len(candidates)/y.D, e.plan.swaps(), round
	// r sqrt(d) squared, as Algorithm 8 hands it down; twice that, as Algorithm 11
	// says.
	selection := privacy.Selection{Epsilon: s.epsilon / float64(2*(swaps+1)), Sensitivity: e.plan.claim("scores of swaps").L1()}
	pick := func(scores []float64) (int, error) {
		at++
		return e.Choose(s.Release, at, "", selection, e.plan.job.Exponential, protocol.NewPrivateReals(scores))
	}
	current := e.Shuffle(round, "swap", count)[:e.k]
	used := make([]bool, count)
	centers := make([]float32, e.k*q)
	for j, c := range current {
		used[c] = true
		copy(centers[j*q:], candidates[c*q:(c+1)*q])
	}
	w := newSwapper(e.Pool(), y, candidates, e.k, lossKind{})
	after := make([]float64, count*e.k)
	sets, losses := [][]float32{append([]float32(nil), centers...)}, []float64{w.set(centers)}
	for range swaps {
		if count == e.k {
			break // nothing to swap with
		}
		if err := w.losses(ctx, after); err != nil {
			return nil, err
		}
		scores, index := make([]float64, 0, len(after)), make([]int, 0, len(after))
		for i, loss := range after {
			if !used[i/e.k] {
				scores, index = append(scores, -loss), append(index, i)
			}
		}
		i, err := pick(scores)
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
	chosen, err := pick(losses)
	if err != nil {
		return nil, err
	}
	return sets[chosen], nil
}

func (e *edlerPlan) selectionName() string {
	if e.job.Exponential {
		return "exponential"
	}
	return "permute-and-flip"
}

// privateMeans is Algorithms 12 and 13: the exact mean of the records of each
// cluster plus Laplace noise of scale 2r/(epsilon n'), n' the noisy count. The
// clusters are those of the centres in the space of points. Step 0 is the
// recovery.
func (e *edlerRun) privateMeans(ctx context.Context, round, step int, points *kernels.Panels, centers []float32, s *edlerStage) ([]float64, error) {
	at := round*1000 + step
	span := e.Begin(engine.PhaseAssign, at)
	prepared := kernels.NewCentroids(e.k, points.D)
	prepared.Set(centers)
	labels := make([]uint16, points.N)
	shards := engine.Shards([]int{points.N}, points.D)
	err := e.Pool().Run(ctx, len(shards), func(_, i int) {
		lo, hi := shards[i].Lo, shards[i].Hi
		kernels.Assign(points.Slice(lo, hi), prepared, labels[lo:hi], nil)
	})
	e.End(span)
	if err != nil {
		return nil, err
	}
	span = e.Begin(engine.PhaseAccumulate, at)
	counts, sums := make([]int64, e.k), make([]int64, e.k*e.d)
	err = sumByLabel(ctx, e.Pool(), e.records, labels, e.k, e.bits, sums, counts)
	e.End(span)
	if err != nil {
		return nil, err
	}
	claim, mean := e.plan.claim("cluster counts"), e.plan.claim("cluster means") // of one record, divided by the noisy count
	out, exact := make([]float64, 0, e.k*e.d), make([]float64, e.d)
	stream := "means" // of all clusters
	for c, n := range counts {
		noisy, err := e.OwnReals(s.Release, at+2*c, stream, 2*claim.L1()/s.epsilon, protocol.NewPrivateReals([]float64{float64(n)}))
		if err != nil {
			return nil, err
		}
		stream = ""
		for h, w := range e.plan.width {
			exact[h] = 0
			if n > 0 {
				exact[h] = math.Ldexp(float64(sums[c*e.d+h])/float64(n), -e.bits) * w / 2
			}
		}
		row, err := e.OwnReals(s.Release, at+2*c+1, "", 2*mean.L1()/(s.epsilon*max(noisy[0], 1)), protocol.NewPrivateReals(exact))
		if err != nil {
			return nil, err
		}
		for h, w := range e.plan.width {
			out = append(out, 2*row[h]/w)
		}
	}
	return out, nil
}

// claim is the line of the table of calibrations for a release of the thesis's
// method, on data in [0, r]^d.
func (e *edlerPlan) claim(release string) privacy.Bound {
	b, err := privacy.At(e.Method, privacy.Claimed, release, privacy.Shape{D: e.d, K: e.k, Bound: e.r})
	if err != nil {
		panic("central: " + err.Error()) // the table lacks what the method does
	}
	return b
}

// choose is the last step of Algorithm 8: one of the runs by its loss.
func (e *edlerRun) choose(ctx context.Context, sets [][]float64) ([]float64, error) {
	if len(sets) == 1 {
		return sets[0], nil
	}
	scores, n, r := make([]float64, len(sets)), e.records.N, e.plan.r
	for i, centers := range sets {
		prepared := kernels.NewCentroids(e.k, e.d)
		prepared.Set(gridless(centers))
		labels, dist := make([]uint16, n), make([]float32, n)
		shards := engine.Shards([]int{n}, e.d)
		err := e.Pool().Run(ctx, len(shards), func(_, s int) {
			lo, hi := shards[s].Lo, shards[s].Hi
			kernels.Assign(e.records.Slice(lo, hi), prepared, labels[lo:hi], dist[lo:hi])
		})
		if err != nil {
			return nil, err
		}
		for _, d2 := range dist {
			scores[i] -= float64(float64(d2) * r * r / 4)
		}
	}
	s := e.plan.choice
	selection := privacy.Selection{Epsilon: s.epsilon, Sensitivity: e.plan.claim("scores of runs").L1()}
	chosen, err := e.Choose(s.Release, 0, "choice", selection, e.plan.job.Exponential, protocol.NewPrivateReals(scores))
	if err != nil {
		return nil, err
	}
	return sets[chosen], nil
}
