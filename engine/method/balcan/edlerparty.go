package balcan

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// edlerRun is the party's side of a run.
type edlerRun struct {
	*staged.Party
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
			centers, err = e.privateMeans(ctx, t, i+1, e.Records, toFloat32(centers), o.means[i+1])
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
	e.settle(chosen)
	return &protocol.Outcome{Centroids: chosen, Iterations: rounds * kmeans}, nil
}

// settle says what became of columns of unlike widths and of coordinates outside the
// bounds, and brings the latter in where that is asked for: released values alone.
func (e *edlerRun) settle(centroids []float64) {
	if e.plan.stretched {
		e.Note("columns of unlike widths are stretched to one, as the thesis has one range for all of them")
	}
	outside := 0
	for i, x := range centroids {
		if math.Abs(x) > 1 {
			outside++
			centroids[i] = e.plan.job.Post.Apply(x, -1, 1)
		}
	}
	switch {
	case outside > 0 && e.plan.job.Post == step.Truncate:
		e.Note("%d of %d coordinates of noisy means were moved to the nearest bound", outside, len(centroids))
	case outside > 0:
		e.Note("%d of %d coordinates of noisy means lie outside the bounds, where the thesis leaves them; "+
			"post truncate would bring them in at no cost", outside, len(centroids))
	}
}

// toFloat32 narrows centres for the distance kernels.
func toFloat32(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// projectRaw is the JL transform of the raw data, divided by sqrt d. The
// transform, normal entries divided by the root of the dimension that it
// projects to, keeps distances on average: so the losses of the projected
// centres on MNIST are the 4 to 5 million that the thesis reports (section 5.3);
// without that root they would be twice as large. The thesis's losses on blobs
// are those without it, where a part of the records lies outside the cubes.
func (e *edlerRun) projectRaw(ctx context.Context, round int) (*kernels.Panels, error) {
	span := e.Begin(engine.PhaseEncode, round)
	defer e.End(span)
	q, d := staged.LowDimension(e.N, e.D), e.D
	kind := e.plan.job.Projection
	if kind == "" {
		kind = staged.Dense
	}
	scale := 1 / math.Sqrt(float64(q*d))
	if e.plan.job.Undivided {
		scale = 1 / math.Sqrt(float64(d))
	}
	g := staged.RandomProjection(kind, q, d, scale,
		e.Public.Stream(int(protocol.Server), round, "projection"))
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
	m, y := kernels.NewMatrix(q, d, g), kernels.NewPanels(e.Records.N, q)
	err := e.Pool().Scan(ctx, e.Records, func(_ int, s engine.Shard) {
		part := y.Slice(s.Lo, s.Hi)
		kernels.Project(e.Records.Slice(s.Lo, s.Hi), m, part)
		for at := range part.Data {
			part.Data[at] += offset[at/kernels.Lanes%q]
		}
	})
	return y, err
}

// candidates is Algorithm 9: partitions of cubes of side 2r that are shifted at
// random.
func (e *edlerRun) candidates(ctx context.Context, round int, y *kernels.Panels,
	partitions []*edlerStage) ([]float32, error) {
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
	if have := len(all) / y.D; have < e.K && !e.plan.job.Repeats {
		e.Note("the partitions found %s for %s: topped up with data-independent ones", fault.Count(have, "candidate"),
			fault.Count(e.K, "cluster"))
		for _, x := range synopsis.Independent(e.K-have, y.D) {
			all = append(all, float32(2*x*r))
		}
	}
	return all, nil
}

// partition is Algorithm 10: cubes are halved along all axes; a cube whose
// count, with the noise that the thesis writes as a probability (a count plus
// Laplace noise against gamma), passes gamma is a candidate and is cut again.
func (e *edlerRun) partition(ctx context.Context, at int, y *kernels.Panels, lo []float64, side float64, s *edlerStage,
	failure float64) ([]float32, error) {
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
		if !e.plan.job.AllCubes && len(out)/y.D >= e.K {
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
func (e *edlerRun) localSwap(ctx context.Context, round int, y *kernels.Panels, candidates []float32,
	s *edlerStage) ([]float32, error) {
	span := e.Begin(engine.PhaseSearch, round)
	defer e.End(span)
	q, count, swaps, at := y.D, len(candidates)/y.D, e.plan.swaps(), round
	// r sqrt(d) squared, as Algorithm 8 hands it down; twice that, as Algorithm 11
	// says.
	selection := privacy.Selection{Epsilon: s.epsilon / float64(2*(swaps+1)),
		Sensitivity: e.plan.claim("scores of swaps").L1()}
	pick := func(scores []float64) (int, error) {
		at++
		return e.Choose(s.Release, at, "", selection, e.plan.job.Exponential, protocol.NewPrivateReals(scores))
	}
	current := e.firstCentres(round, count)
	used, free := make([]int, count), count // by how many centres
	centers := make([]float32, e.K*q)
	for j, c := range current {
		if used[c]++; used[c] == 1 {
			free--
		}
		copy(centers[j*q:], candidates[c*q:(c+1)*q])
	}
	w := newSwapper(e.Pool(), y, candidates, e.K, lossKind{})
	after := make([]float64, count*e.K)
	sets, losses := [][]float32{append([]float32(nil), centers...)}, []float64{w.set(centers)}
	for range swaps {
		if free == 0 {
			break // nothing to swap with
		}
		if err := w.losses(ctx, after); err != nil {
			return nil, err
		}
		scores, index := make([]float64, 0, len(after)), make([]int, 0, len(after))
		for i, loss := range after {
			if used[i/e.K] == 0 {
				scores, index = append(scores, -loss), append(index, i)
			}
		}
		i, err := pick(scores)
		if err != nil {
			return nil, err
		}
		in, out := index[i]/e.K, index[i]%e.K
		used[in], free = 1, free-1
		if used[current[out]]--; used[current[out]] == 0 {
			free++
		}
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

// firstCentres draws the k candidates that local swap starts from, and begins the stream of its choices.
func (e *edlerRun) firstCentres(round, count int) []int {
	order := e.Shuffle(round, "swap", count)
	if !e.plan.job.Repeats {
		return order[:e.K]
	}
	stream, drawn := e.Public.Stream(int(protocol.Server), round, "first centres"), make([]int, e.K)
	for j := range drawn {
		drawn[j] = stream.IntN(count)
	}
	return drawn
}

// privateMeans is Algorithms 12 and 13: the exact mean of the records of each
// cluster plus Laplace noise of scale 2r/(epsilon n'), n' the noisy count. The
// clusters are those of the centres in the space of points. Step 0 is the
// recovery.
func (e *edlerRun) privateMeans(ctx context.Context, round, step int, points *kernels.Panels, centers []float32,
	s *edlerStage) ([]float64, error) {
	at := round*1000 + step
	span := e.Begin(engine.PhaseAssign, at)
	prepared := kernels.NewCentroids(e.K, points.D)
	prepared.Set(centers)
	labels := make([]uint16, points.N)
	err := e.Pool().Assign(ctx, points, prepared, labels, nil)
	e.End(span)
	if err != nil {
		return nil, err
	}
	span = e.Begin(engine.PhaseAccumulate, at)
	counts, sums := make([]int64, e.K), make([]int64, e.K*e.D)
	err = staged.SumByLabel(ctx, e.Pool(), e.Records, labels, e.K, e.FractionBits, sums, counts)
	e.End(span)
	if err != nil {
		return nil, err
	}
	claim, mean := e.plan.claim("cluster counts"),
		e.plan.claim("cluster means") // of one record, divided by the noisy count
	out, exact := make([]float64, 0, e.K*e.D), make([]float64, e.D)
	stream := "means" // of all clusters
	for c, n := range counts {
		noisy, err := e.OwnReals(s.Release, at+2*c, stream, 2*claim.L1()/s.epsilon,
			protocol.NewPrivateReals([]float64{float64(n)}))
		if err != nil {
			return nil, err
		}
		stream = ""
		for h, w := range e.plan.width {
			exact[h] = 0
			if n > 0 {
				exact[h] = math.Ldexp(float64(sums[c*e.D+h])/float64(n), -e.FractionBits) * w / 2
			}
		}
		row, err := e.OwnReals(s.Release, at+2*c+1, "", 2*mean.L1()/(s.epsilon*max(noisy[0], 1)),
			protocol.NewPrivateReals(exact))
		if err != nil {
			return nil, err
		}
		for h, w := range e.plan.width {
			out = append(out, 2*row[h]/w)
		}
	}
	return out, nil
}

// choose is the last step of Algorithm 8: one of the runs by its loss.
func (e *edlerRun) choose(ctx context.Context, sets [][]float64) ([]float64, error) {
	if len(sets) == 1 {
		return sets[0], nil
	}
	scores, n, r := make([]float64, len(sets)), e.Records.N, e.plan.r
	for i, centers := range sets {
		prepared := kernels.NewCentroids(e.K, e.D)
		prepared.Set(toFloat32(centers))
		labels, dist := make([]uint16, n), make([]float32, n)
		if err := e.Pool().Assign(ctx, e.Records, prepared, labels, dist); err != nil {
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
