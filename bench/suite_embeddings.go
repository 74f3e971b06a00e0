package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/engine/step/seeding"
	"github.com/cohort-engine/cohort/kernels"
)

func embeddingSuites() []Suite {
	return []Suite{{
		Name: "embeddings", Group: groupPerformance, Title: "Lloyd iterations at many clusters and dimensions",
		About: "CPU time of one Lloyd iteration on one thread, every record looked at: centroids set, points assigned and " +
			"summed. The points are standard normal at a quarter of the range, which gives the filter the least to hold on " +
			"to, and k of them are the centroids. 'iteration' is what a run does late: of a hundred labels that points have " +
			"99 are right already, and the others' points are taken from sum to sum; points may have their narrow form " +
			"by then. 'iteration without labels' is what it " +
			"does at first, with sums of all points; 'multiply-adds' leaves the candidate filter out of that. " +
			"scikit-learn and FAISS run on the same points in turn where a Python has them (make peers installs them " +
			"on Debian); without them, and in quick runs, 'stored' stands for the better of both, as measured once on " +
			"another machine (Zen 4). Shares are of the limit that binds: float32 multiply-adds, or products of 8- or 16-bit " +
			"integers (with AMX: of tiles of bytes), or reading the points, at rates measured in the same run; 'at the limit' " +
			"is what a form at its limit would be over the same peer, so that a goal beyond is out of the machine's reach. " +
			"Peers have their share of the multiply-adds too, at their median. 'sums' is what an iteration takes beside " +
			"setting centroids and assigning. Sums of all points read points and sums from the first-level cache at " +
			"least, once points have labels; 'in turn at the limits' is what products and then such sums would be. The " +
			"loss is that of a run of five iterations, as a share of FAISS's after as many from the same centroids. Where a " +
			"goal is missed, the note says what takes the most of the time: what the limit is of, sums, or rounding and " +
			"selection, which is what assigning takes beside the limit.",
		Run: runEmbeddings,
	}}
}

// embeddingShapes are the shapes of the suite, with the goals over the better peer: of tiles of bytes (AMX), of
// products of small integers (VNNI), and without either.
var embeddingShapes = []struct {
	n, d, k            int
	amx, vnni, without float64
	// stored is the better peer on one thread, in ns a point: scikit-learn 1.2.1 of
	// Debian 12 on a server of the Zen 4 generation.
	stored float64
}{
	{200000, 64, 1000, 8, 5.5, 4, 2725},
	{50000, 128, 4096, 5, 4, 2.8, 20800},
	{20000, 768, 1000, 5, 4, 3, 19100},
	{100000, 100, 64, 5, 5, 4.5, 396},
	{70000, 784, 10, 5, 5, 4.5, 991},
	{1000000, 16, 64, 11, 11, 11, 129},
}

// goalOn chooses the goal of an iteration by the instruction set in use.
func goalOn(isa string, amx, vnni, without float64) float64 {
	switch isa {
	case "amx":
		return amx
	case "avx512vnni":
		return vnni
	}
	return without
}

func runEmbeddings(ctx context.Context, e *Env) {
	var limits kernels.Limits
	for _, s := range embeddingShapes {
		n := s.n
		if e.Quick {
			n = max(n/10, 4*s.k)
		}
		e.newCase(ctx, "", []Label{L("n", n), L("d", s.d), L("k", s.k), L("isa", kernels.ISA())},
			func(ctx context.Context, c *Case) error {
				unpin := pin()
				defer unpin()
				limits = limits.Best(kernels.MeasureLimits())
				it := newEmbeddingIteration(n, s.d, s.k)
				other, err := it.peers(ctx, c)
				if err != nil {
					return err
				}
				defer other.close()
				samples, err := it.measure(ctx, c, other)
				if err != nil {
					return err
				}
				if err := it.compareLosses(ctx, c, other); err != nil {
					return err
				}
				it.report(c, samples, limits, s.stored*float64(n),
					[2]float64{s.without, goalOn(kernels.ISA(), s.amx, s.vnni, s.without)})
				var most []Reference
				if s.d == 784 {
					most = atMost(20.0)
				}
				for _, with := range []string{"", " without labels"} {
					c.number("sums, of an iteration"+with, "%",
						100*(1-slices.Min(samples["assignment"+with])/slices.Min(samples["iteration"+with])), most...)
				}
				return nil
			})
	}
	runPlusPlus(ctx, e)
	runBounds(ctx, e)
	runManyClusters(ctx, e)
}

// runManyClusters runs hybrid at many clusters, where most of the time is the search on
// its synopsis.
func runManyClusters(ctx context.Context, e *Env) {
	const k = 200
	for _, s := range []struct {
		n, d int
		goal time.Duration
	}{{1000000, 2, 800 * time.Millisecond}, {100000, 20, 0}} {
		n, goal := s.n, []Reference(nil)
		if e.Quick {
			n /= 10
		} else {
			goal = atMost(s.goal)
		}
		e.newCase(ctx, "hybrid on blobs", []Label{L("n", n), L("d", s.d), L("k", k), L("workers", e.Pool.Workers())},
			func(ctx context.Context, c *Case) error {
				set, err := blobsOf(ctx, n, s.d, k)
				if err != nil {
					return err
				}
				return c.hybridOnBlobs(ctx, set, k, goal)
			})
	}
}

// hybridOnBlobs times runs without the quality of their result, which it then evaluates.
func (c *Case) hybridOnBlobs(ctx context.Context, set *Set, k int, goal []Reference) error {
	var wall, used, nicv []float64
	for run := range c.Env.reps(5, 2) {
		for _, quality := range []bool{false, true} {
			job, err := centralJob("hybrid", set, k, privacy.Budget{Epsilon: 1, Delta: -1}, run+1, quality)
			if err != nil {
				return err
			}
			from, cpu := time.Now(), processTime()
			res, err := c.Env.Engine.Run(ctx, job)
			if err != nil {
				return err
			}
			if quality {
				nicv = append(nicv, *res.NICV)
				continue
			}
			wall, used = append(wall, float64(time.Since(from))), append(used, float64(processTime()-cpu))
		}
	}
	c.durations("run", wall, goal...)
	c.durations("CPU", used)
	c.samples("NICV", unitPlain, nicv)
	return nil
}

// boundShapes are the blobs on which rounds leave records out.
var boundShapes = []struct{ n, d, k int }{{50000, 64, 256}, {20000, 128, 1000}, {100000, 16, 64}}

// runBounds compares the rounds of a run that leave records out, which bounds between
// rounds allow, with those that look at every record.
func runBounds(ctx context.Context, e *Env) {
	for _, s := range boundShapes {
		labels := []Label{L("n", s.n), L("d", s.d), L("k", s.k), L("workers", 1)}
		e.newCase(ctx, "rounds on blobs", labels,
			func(ctx context.Context, c *Case) error { return c.bounds(ctx, s.n, s.d, s.k) })
	}
}

// bounds measures one shape.
func (c *Case) bounds(ctx context.Context, n, d, k int) error {
	points := unevenBlobs(n, d, k)
	start := make([]float64, 0, k*d)
	for _, x := range firstRows(points, k) {
		start = append(start, float64(x))
	}
	var times cpuTimer
	eng, err := engine.New(engine.WithWorkers(1), engine.WithObserver(&times))
	if err != nil {
		return err
	}
	defer eng.Close()
	var all, late []float64
	share := 0.0
	for range c.Env.reps(5, 2) {
		_, err := eng.Run(ctx, &lloyd.Job{Method: lloyd.Lloyd, Problem: protocol.Problem{K: k, Start: start,
			Iterations: 40, NoQuality: true,
			Clients: []dataset.Part{{Points: points, FractionBits: dataset.DefaultFractionBits}}},
			Init: step.Sphere})
		if err != nil {
			return err
		}
		for t, one := range times.take() {
			ns := times.used[t]
			if one.Settled == 0 && t > 0 {
				all = append(all, ns)
			}
			if t >= 10 {
				late, share = append(late, ns), share+float64(one.Settled)/float64(n)
			}
		}
		times.used = times.used[:0]
	}
	if len(all) == 0 || len(late) == 0 {
		return fmt.Errorf("%d rounds look at all records and %d come after the tenth", len(all), len(late))
	}
	c.durations(allRecords, all)
	c.durations("after the tenth", late)
	c.number("left out after the tenth", "%", 100*share/float64(len(late)))
	c.Row.Note = "times are the CPU's"
	c.number("times as fast", "x", c.Row.value(allRecords).shown()/c.Row.value("after the tenth").shown(),
		aimedAt("goal", 3.0)...)
	return nil
}

// cpuTimer are times with the CPU time of the process in each, in nanoseconds.
type cpuTimer struct {
	iterationTimer
	under bool
	from  float64
	used  []float64
}

// PhaseBegin implements engine.Observer.
func (l *cpuTimer) PhaseBegin(s engine.Span) {
	if !l.under {
		l.under, l.from = true, float64(processTime())
	}
	l.iterationTimer.PhaseBegin(s)
}

// IterationEnd implements engine.Observer.
func (l *cpuTimer) IterationEnd(it engine.Iteration) {
	l.used, l.under = append(l.used, float64(processTime())-l.from), false
	l.iterationTimer.IterationEnd(it)
}

// runPlusPlus times greedy k-means++ on all workers.
func runPlusPlus(ctx context.Context, e *Env) {
	n, d, k := 100000, 64, 1000
	if e.Quick {
		n = 20000
	}
	e.newCase(ctx, "k-means++", []Label{L("n", n), L("d", d), L("k", k), L("workers", e.Pool.Workers())},
		func(ctx context.Context, c *Case) error {
			it := newEmbeddingIteration(n, d, k)
			each := func(n int, task func(i int)) {
				// The tasks do not fail; a cancelled run is noticed after the draw.
				_ = e.Pool.Run(context.WithoutCancel(ctx), n, func(_, i int) { task(i) })
			}
			trials := seeding.Trials(k)
			var samples []float64
			for run := range uint64(e.reps(5, 2)) {
				if err := ctx.Err(); err != nil {
					return err
				}
				from := time.Now()
				seeding.PlusPlus([]*seeding.Part{seeding.NewPart(it.direct, trials, each)}, k, trials,
					rand.New(rand.NewPCG(run, 1)).Float64)
				samples = append(samples, float64(time.Since(from)))
			}
			var goal []Reference
			if !e.Quick {
				goal = aimedAt("goal", 0.8e9)
			}
			c.durations("greedy k-means++", samples, goal...)
			limits := kernels.MeasureLimits()
			rate, binds := limits.FMA, "multiply-adds"
			if kernels.NewScreen(it.direct, trials, k, each) != nil {
				rate, binds = limits.Dot, "16-bit products"
			}
			if rate > 0 {
				rate *= max(e.machine.Together, 1)
				c.number("greedy k-means++, of "+binds, "%",
					100*float64(n)*float64(d)*float64(k*trials)/rate*1e9/slices.Min(samples))
			}
			return nil
		})
}

// embeddingIteration is one iteration, with the filter and without.
type embeddingIteration struct {
	n, d, k         int
	rows, start     []float32
	direct, guided  kernels.Panels
	narrow          kernels.Panels // guided, with the narrow form that late iterations have
	plain, filtered *kernels.Centroids
	labels, stale   []uint16
	acc             *kernels.Accumulator
	lossRatio       float64 // of FAISS's loss, 0 where that is not known
}

func newEmbeddingIteration(n, d, k int) *embeddingIteration {
	const fractionBits, grid = 16, 1 << 16
	rng := rand.New(rand.NewPCG(1, uint64(n+d+k)))
	it := &embeddingIteration{n: n, d: d, k: k, rows: make([]float32, n*d), labels: make([]uint16, n),
		stale: make([]uint16, n),
		plain: kernels.NewCentroids(k, d), filtered: kernels.NewCentroids(k, d),
		acc: kernels.NewAccumulator(k, d, fractionBits)}
	for i := range it.rows {
		it.rows[i] = float32(int32(min(max(rng.NormFloat64()/4, -1), 1)*grid)) / grid
	}
	for j := range k {
		at := j * (n / k) * d
		it.start = append(it.start, it.rows[at:at+d]...)
	}
	points := kernels.NewPanels(n, d)
	kernels.Pack(points, it.rows)
	it.direct, it.guided = *points, *points
	it.guided.PrepareFilter(k, nil)
	it.narrow = it.guided
	it.narrow.PrepareNarrow(k, nil)
	it.filtered.PrepareFilter(&it.narrow)
	return it
}

// staleShare is the share of the points, as 1/staleShare, whose label changes in a late iteration.
const staleShare = 100

// late does one iteration that goes on from the sums of the one before, as rounds of a run do, and returns its CPU time
// in nanoseconds.
func (it *embeddingIteration) late() float64 {
	copy(it.stale, it.labels)
	for i := 0; i < it.n; i += staleShare {
		it.stale[i] = uint16((int(it.stale[i]) + 1) % it.k)
	}
	kernels.UpdateSums(it.narrow, it.labels, it.stale, it.n, it.acc)
	start := processTime()
	it.filtered.Set(it.start)
	kernels.Reassign(it.narrow, it.filtered, float32(math.Inf(1)), it.labels, it.acc, nil)
	return float64(processTime() - start)
}

// once does one iteration with sums of all points, or its assignment alone, and returns its CPU time in nanoseconds.
func (it *embeddingIteration) once(p kernels.Panels, c *kernels.Centroids, sums bool) float64 {
	start := processTime()
	if c.Set(it.start); sums {
		it.acc.Reset()
		kernels.AssignAccumulate(p, c, it.labels, it.acc)
	} else {
		kernels.Assign(p, c, it.labels, nil)
	}
	return float64(processTime() - start)
}

// peers starts the peers on one thread, but not in quick runs.
func (it *embeddingIteration) peers(ctx context.Context, c *Case) (*peers, error) {
	if c.Env.Quick {
		return nil, nil
	}
	return startPeers(ctx, it.rows, it.start, it.n, it.d, it.k, 1)
}

// measure lets the forms and the peers, which may be nil, take turns.
func (it *embeddingIteration) measure(ctx context.Context, c *Case, other *peers) (map[string][]float64, error) {
	samples := map[string][]float64{}
	for range c.Env.reps(5, 3) {
		for range 3 {
			samples["multiply-adds"] = append(samples["multiply-adds"], it.once(it.direct, it.plain, true))
			clear(it.labels)
			first := it.once(it.guided, it.filtered, true)
			samples["iteration without labels"] = append(samples["iteration without labels"], first)
			samples["iteration"] = append(samples["iteration"], it.late())
			samples["assignment"] = append(samples["assignment"], it.once(it.narrow, it.filtered, false))
			clear(it.labels)
			first = it.once(it.guided, it.filtered, false)
			samples["assignment without labels"] = append(samples["assignment without labels"], first)
		}
		for _, name := range []string{"sklearn", "faiss"} {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if other == nil {
				continue
			}
			ns, ok, err := other.iteration(name)
			if err != nil {
				return nil, err
			}
			if ok {
				samples[name] = append(samples[name], ns)
			}
		}
	}
	return samples, nil
}

// lossIterations is the number of iterations after which losses are compared.
const lossIterations = 5

// compareLosses writes the loss of a run of so many iterations beside that of FAISS from the same centroids.
func (it *embeddingIteration) compareLosses(ctx context.Context, c *Case, other *peers) error {
	if other == nil {
		return nil
	}
	theirs, err := other.faiss(lossIterations, it.k, it.d)
	if theirs == nil || err != nil {
		return err
	}
	start := make([]float64, len(it.start))
	for i, x := range it.start {
		start[i] = float64(x)
	}
	points := it.direct
	res, err := c.Env.Engine.Run(ctx, &lloyd.Job{Method: lloyd.Lloyd, Problem: protocol.Problem{K: it.k, Start: start,
		Iterations: lossIterations, NoQuality: true,
		Clients: []dataset.Part{{Points: &points, FractionBits: dataset.DefaultFractionBits}}}, Init: step.Sphere})
	if err != nil {
		return err
	}
	it.lossRatio = it.loss(slices.Concat(res.Centroids...)) / it.loss(theirs)
	return nil
}

// loss is the mean squared distance of the points from their nearest centroid.
func (it *embeddingIteration) loss(centroids []float64) float64 {
	rows, dist, sum := make([]float32, len(centroids)), make([]float32, it.n), 0.0
	for i, x := range centroids {
		rows[i] = float32(x)
	}
	it.plain.Set(rows)
	kernels.Assign(it.direct, it.plain, it.labels, nil)
	kernels.Distances(it.direct, it.plain, it.labels, dist)
	for _, x := range dist {
		sum += float64(x)
	}
	return sum / float64(it.n)
}

// sumSeconds is the least time of the sums of all points: each coordinate of a point, and the sum that it is added to,
// come from the first-level cache.
func (it *embeddingIteration) sumSeconds() float64 {
	return float64(2*4*it.n*it.d) / kernels.MeasureRead(16<<10, 1)
}

// report writes times, ratios to the better peer, and shares of limits; goals are
// those without the filter and with it.
func (it *embeddingIteration) report(c *Case, samples map[string][]float64, limits kernels.Limits, stored float64,
	goals [2]float64) {
	arithmetic, peer, source := limits.AssignSeconds(it.n, it.d, it.k), math.Inf(1), ""
	for _, name := range []string{"sklearn", "faiss"} {
		if s := samples[name]; len(s) > 0 {
			c.durations(name, s)
			median := c.Row.value(name).shown()
			if median < peer {
				peer, source = median, name
			}
			if arithmetic > 0 { // the least is a difference of two runs, and may be anything
				c.number(name+", of multiply-adds", "%", 100*arithmetic*1e9/median)
			}
		}
	}
	if source == "" && stored > 0 {
		peer, source = stored, "stored"
	}
	c.Row.Note = "times are the CPU's; medians are compared, and the least with limits"
	for i, name := range []string{"multiply-adds", "iteration", "iteration without labels"} {
		c.durations(name, samples[name])
		ratio, goal := peer/c.Row.value(name).shown(), goals[min(i, 1)]
		if source != "" {
			c.number(name+", over "+source, "x", ratio, aimedAt("goal", goal)...)
		}
		products, binds, points := arithmetic, "multiply-adds", &it.guided
		if name == "iteration" {
			points = &it.narrow
		}
		if x := limits.FilterSeconds(points, it.k); i > 0 && x > 0 {
			products, binds = x, points.FilterProducts(it.k)
		}
		limit, which := binding(products, points.AssignBytes(), 1)
		if limit == 0 {
			continue
		}
		if which == "bandwidth" {
			binds = which
		}
		c.number(name+", of "+binds, "%", 100*limit*1e9/slices.Min(samples[name]))
		if source != "" {
			c.number(name+" at the limit, over "+source, "x", peer/(limit*1e9))
			if ratio < goal {
				c.Row.Note += "; " + name + ": " + bindsMost(samples, name, limit*1e9, binds)
			}
		}
		if name == "iteration" { // which takes few points from sum to sum
			continue
		}
		sums := it.sumSeconds()
		if name == "iteration without labels" {
			c.number("sums, of first-level cache", "%",
				100*sums*1e9/(slices.Min(samples[name])-slices.Min(samples["assignment without labels"])))
		}
		if source != "" {
			c.number(name+" in turn at the limits, over "+source, "x", peer/((limit+sums)*1e9))
		}
	}
	if it.lossRatio > 0 {
		c.number("loss, of FAISS's", "x", it.lossRatio, atMost(1+1e-5)...)
	}
}

// bindsMost names what takes the most of a form's least time: its limit, of what it is said to be, the sums, or what
// assigning takes beside the limit. Sums of all points are the same with the filter and without.
func bindsMost(samples map[string][]float64, name string, limit float64, of string) string {
	with := strings.TrimPrefix(name, "iteration")
	if name == "multiply-adds" {
		with = " without labels"
	}
	sums := slices.Min(samples["iteration"+with]) - slices.Min(samples["assignment"+with])
	rest := slices.Min(samples[name]) - sums - limit
	switch {
	case sums > max(limit, rest):
		return "sums"
	case rest > limit:
		return "rounding and selection"
	case of == "multiply-adds":
		return "FMA ports"
	case strings.HasSuffix(of, "tiles"):
		return "tile unit"
	case strings.HasSuffix(of, "products"):
		return "integer multiply ports"
	}
	return of
}
