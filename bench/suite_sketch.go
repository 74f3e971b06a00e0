package bench

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/method/lsf"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/kernels"
)

// figureNotes says what all figures of Sketch-V have in common here.
const figureNotes = " k = 5, k' = 5 and, with the paper's estimators, M = 4096 where they do not vary, delta = 1/n, " +
	"means of ten runs with 95% intervals. \"claimed\" is the paper's own calibration and estimator, but that the " +
	"harmonic mean has the constant that makes it unbiased, where Algorithm 4 prints (1+gamma)^HarmonicMean, and that " +
	"2PEst visits the pairs in turn with step 1, where Algorithm 5 draws them, with steps eta_t. Without the word " +
	"stands the proven one. \"ldp-agg\" is the paper's LDP-AGG-2PEst, \"ldp-agg, all parties\" its LDP-AGG. The figure " +
	"prints no numbers and the paper no budgets or number of runs; columns of mixgauss, drawn independently, are split " +
	"in order."

// sketchSets are the sets of Sketch-V.
var sketchSets = []string{"mixgauss", "nyctaxi", "letter", "loan"}

// sketchSuites are the tables and figures of Sketch-V.
func sketchSuites() []Suite {
	return append(sketchTables(), sketchFigures()...)
}

// sketchTables are Tables 1 and 2, and Figure 14, which shows no method of the paper.
func sketchTables() []Suite {
	return []Suite{
		{
			Name: "sketch-table1", Group: groupSketch, Title: "Sketch-V Table 1: bytes and time of the grid",
			About: "Bytes that a party sends and the time of the weights of the grid, on mixgauss with the paper's " +
				"estimators; and the making of the sketches beside the least time of AES for a hash of each record under each " +
				"key on all workers, as they were made once.",
			Source: "Sketch-V, Table 1", Needs: []string{"mixgauss"}, Run: runSketchTable1,
		},
		{
			Name: "sketch-table2", Group: groupSketch, Title: "Sketch-V Table 2: loss and V-measure on a mixture of Gaussians",
			About: "k = k' = 5, M = 4096, delta = 1/n, ten runs. The paper drew its own mixture (20,000 records, five " +
				"Gaussians, eight columns) and gives neither spread nor runs; compare each column with its non-private rows. " +
				"lsf is the paper's DPLSF. Budgets 0.05 and 2 are ours.",
			Source: "Sketch-V, Table 2", Needs: []string{"mixgauss"}, Run: runSketchTable2,
		},
		{
			Name: "sketch-fig14", Group: groupSketch, Title: "Sketch-V Figure 14: silhouette by number of clusters",
			About: "Central k-means without noise, the best of ten starts, by which the paper chose k = 5. The silhouette is " +
				"exact up to 50,000 records and of a sample of them beyond. The figure prints no numbers; the loan set is not " +
				"public in full.",
			Source: "Sketch-V, figure 14", Needs: sketchSets,
			Figures: []Figure{{Title: "Silhouette by number of clusters", X: "k", Y: "silhouette", Series: []string{"set"}}},
			Run:     runSketchFigure14,
		},
	}
}

// sketchFigures are those that compare methods.
func sketchFigures() []Suite {
	figure := func(number int, title, about string, needs []string, y string, series []string, x string,
		run func(context.Context, *Env)) Suite {
		return Suite{Name: fmt.Sprintf("sketch-fig%d", number), Group: groupSketch,
			Title: fmt.Sprintf("Sketch-V Figure %d: %s", number, title), About: about + figureNotes,
			Source: fmt.Sprintf("Sketch-V, figure %d", number), Needs: needs,
			Figures: []Figure{{Title: title, X: x, Y: y, Series: series, Panel: "panel"}}, Run: run}
	}
	byEpsilon := func(c sketchCurves) func(context.Context, *Env) { return c.run }
	method := []string{"method"}
	withVMeasure := func(s Suite) Suite { // Figure 4 shows the runs of Figure 3
		s.Also, s.Source = []string{"sketch-fig4"}, "Sketch-V, figures 3 and 4"
		s.Figures = append(s.Figures, Figure{Title: "V-measure of the final centres", X: "epsilon", Y: "V-measure",
			Series: method, Panel: "panel"})
		return s
	}
	const sets = "The taxi set here has other columns than the paper's; its columns are split in contiguous ranges. " +
		"The loan set is not public in full. "
	return []Suite{
		withVMeasure(figure(3, "loss and V-measure of the final centres",
			sets+"Methods by budget; the V-measure is against the labels of mixgauss and against central k-means elsewhere.",
			sketchSets, "loss", method, "epsilon",
			byEpsilon(sketchCurves{sets: sketchSets, parties: []int{2, 4},
				methods: append(slices.Clone(comparedMethods), "lsf", "central")}))),
		figure(5, "uneven numbers of columns",
			"Two parties, epsilon 1, with the given share of the columns in eighths, even ones too. The paper's second set "+
				"is loan; letter stands beside it, with as many columns.", []string{"mixgauss", "loan", "letter"}, "loss",
			method, "columns",
			byEpsilon(sketchCurves{sets: []string{"mixgauss", "loan", "letter"}, parties: []int{2}, epsilons: []float64{1},
				uneven: true, methods: privateMethods})),
		figure(6, "number of parties",
			"Epsilon 1 and 2. The paper's set is loan; letter stands beside it, with as many columns.",
			[]string{"loan", "letter"}, "loss", method, "parties",
			byEpsilon(sketchCurves{sets: []string{"loan", "letter"}, parties: []int{2, 4, 8}, epsilons: []float64{1, 2},
				methods: privateMethods, byParties: true})),
		figure(7, "relative error of intersections",
			"Sum of |estimate - truth| over the cells of the grid, over n; k' = 5.", []string{"mixgauss"},
			"intersection error", method, "epsilon",
			byEpsilon(sketchCurves{sets: []string{"mixgauss"}, parties: []int{2, 4},
				methods: append(slices.Clone(privateMethods), "sketch-basic, claimed")})),
		figure(8, "which part costs what",
			"Exact local centres with private sketches, private local centres with exact counts, all private, and nothing "+
				"private.", []string{"mixgauss"}, "loss", method, "epsilon",
			byEpsilon(sketchCurves{sets: []string{"mixgauss"}, parties: []int{2, 4}, methods: ablations})),
		figure(9, "number of local clusters", "Loss by k' at several budgets.", []string{"mixgauss"}, "loss",
			[]string{"method", "epsilon"}, "k'",
			byEpsilon(sketchCurves{sets: []string{"mixgauss"}, parties: []int{2, 4}, epsilons: []float64{1, 2, 4},
				localKs: true, methods: []string{"sketch", "sketch, claimed"}})),
		figure(10, "relative error of intersections, real sets", sets+"As figure 7.", []string{"nyctaxi", "letter"},
			"intersection error", method, "epsilon",
			byEpsilon(sketchCurves{sets: []string{"nyctaxi", "letter"}, parties: []int{2, 4},
				methods: append(slices.Clone(privateMethods), "sketch-basic, claimed")})),
		figure(11, "which part costs what, real sets", sets+"As figure 8.", []string{"nyctaxi", "letter"}, "loss",
			method, "epsilon",
			byEpsilon(sketchCurves{sets: []string{"nyctaxi", "letter"}, parties: []int{2, 4}, methods: ablations})),
		figure(12, "number of local clusters, real sets", sets+"As figure 9.", []string{"nyctaxi", "letter", "loan"},
			"loss", []string{"method", "epsilon"}, "k'",
			byEpsilon(sketchCurves{sets: []string{"nyctaxi", "letter", "loan"}, parties: []int{2, 4},
				epsilons: []float64{1, 4}, localKs: true, methods: []string{"sketch", "sketch, claimed"}})),
		figure(13, "number of sketches", "Relative error of the intersections by M.", []string{"mixgauss"},
			"intersection error", []string{"method", "epsilon"}, "M",
			byEpsilon(sketchCurves{sets: []string{"mixgauss"}, parties: []int{2, 4}, epsilons: []float64{1, 4},
				sketches: []int{4096, 1024, 256, 2048, 512}, methods: []string{"sketch", "sketch, claimed"}})),
	}
}

// runSketchFigure14 measures the silhouette of central k-means.
func runSketchFigure14(ctx context.Context, e *Env) {
	for _, k := range []int{5, 2, 10, 3, 7, 4, 6, 8, 9} {
		for _, name := range []string{"mixgauss", "letter", "nyctaxi", "loan"} {
			e.on(ctx, name, "", []Label{L("set", name), L("k", k)}, func(ctx context.Context, c *Case, s *Set) error {
				r, err := centralKMeans(ctx, e.Engine, s, nil, k, 1)
				if err != nil {
					return err
				}
				separation, err := engine.MeasureSeparation(ctx, c.Env.Pool, s.Norm.Table()[0], slices.Concat(r.Centroids...), k)
				if err != nil {
					return err
				}
				if separation.Silhouette == nil {
					return fmt.Errorf("%s with k = %d has no silhouette: all records are in one cluster", name, k)
				}
				c.number("silhouette", unitPlain, *separation.Silhouette)
				c.Row.Seeds = "1"
				return nil
			})
		}
	}
}

// Methods of the comparisons. "sketch, claimed" is the paper's own calibration
// and estimator (DPFMPS-2PEst).
var (
	privateMethods  = []string{"sketch", "sketch, claimed", "ind-lap", "ldp-agg"}
	comparedMethods = append(slices.Clone(privateMethods), "ldp-agg, all parties", "sketch-basic, claimed",
		"vertical-plain")
	ablations = []string{"sketch", "sketch, exact centres", "sketch, exact counts", "sketch, claimed",
		"sketch, claimed, exact centres", "sketch, claimed, exact counts", "vertical-plain"}
)

// editMethod turns a job into one of the named methods.
func editMethod(j *sketch.Job, name string) {
	switch name {
	case "ind-lap":
		j.Method = sketch.Independent
	case "ldp-agg":
		j.Method, j.Calibration = sketch.LocalReports, privacy.Claimed
	case "ldp-agg, all parties":
		j.Method, j.Calibration, j.Estimator = sketch.LocalReports, privacy.Claimed, sketch.EstimatorReports
	case "vertical-plain":
		j.Method, j.Budget = sketch.Plain, privacy.Budget{}
	case "sketch-basic":
		j.Method = sketch.SketchBasic
	case "sketch-basic, claimed":
		j.Method, j.Calibration = sketch.SketchBasic, privacy.Claimed
	case "sketch, claimed":
		j.Calibration = privacy.Claimed
	case "sketch, exact centres":
		j.ExactCenters = true
	case "sketch, exact counts":
		j.ExactWeights = true
	case "sketch, claimed, exact centres":
		j.Calibration, j.ExactCenters = privacy.Claimed, true
	case "sketch, claimed, exact counts":
		j.Calibration, j.ExactWeights = privacy.Claimed, true
	}
}

// sketchSample is what one run of any method gives.
type sketchSample struct{ loss, vMeasure, intersection float64 }

const paperK = 5 // k and k' of the paper's experiments

// sampleVertical runs a method once.
func sampleVertical(ctx context.Context, eng *engine.Engine, s *Set, labels []int32, method string,
	j *sketch.Job) (sketchSample, error) {
	var job engine.Job = j
	switch method {
	case "central":
		r, err := centralKMeans(ctx, eng, s, labels, paperK, *j.Seed)
		if err != nil {
			return sketchSample{}, err
		}
		return newSketchSample(r), nil
	case "lsf":
		b := privacy.Budget{Epsilon: j.Budget.Epsilon, Delta: 1 / float64(s.N)}
		central := &lsf.Job{Problem: s.problem(j.K, b, int(*j.Seed))}
		central.Labels = labels
		job = central
	default:
		editMethod(j, method)
	}
	r, err := eng.Run(ctx, job)
	if err != nil {
		return sketchSample{}, err
	}
	return newSketchSample(r), nil
}

func newSketchSample(r *engine.Result) sketchSample {
	x := sketchSample{loss: *r.NICV, vMeasure: math.NaN(), intersection: math.NaN()}
	if r.VMeasure != nil {
		x.vMeasure = *r.VMeasure
	}
	if e, ok := r.Details["relative_intersection_error"].(float64); ok {
		x.intersection = e
	}
	return x
}

// centralKMeans is k-means on all columns without noise, the best of ten starts.
func centralKMeans(ctx context.Context, eng *engine.Engine, s *Set, labels []int32, k int,
	seed uint64) (*engine.Result, error) {
	return eng.Run(ctx, &lloyd.Job{Method: lloyd.Lloyd, Problem: protocol.Problem{K: k,
		Clients: s.Norm.Table(), Seed: &seed, Labels: labels}, NInit: 10})
}

// addSamples records what several runs gave.
func addSamples(c *Case, samples []sketchSample, loss, vMeasure []Reference) {
	column := func(f func(sketchSample) float64) (x []float64) {
		for _, s := range samples {
			if v := f(s); !math.IsNaN(v) {
				x = append(x, v)
			}
		}
		return x
	}
	c.samples("loss", unitPlain, column(func(s sketchSample) float64 { return s.loss }), loss...)
	if x := column(func(s sketchSample) float64 { return s.vMeasure }); len(x) > 0 {
		c.samples("V-measure", unitPlain, x, vMeasure...)
	}
	if x := column(func(s sketchSample) float64 { return s.intersection }); len(x) > 0 {
		c.samples("intersection error", unitPlain, x)
	}
	c.Row.Seeds = fmt.Sprintf("1 to %d", len(samples))
}

// sampleRuns runs a method several times with seeds 1, 2, ....
func sampleRuns(ctx context.Context, c *Case, s *Set, method string, parties int, epsilon float64,
	edit func(*sketch.Job)) ([]sketchSample, error) {
	eng := c.Env.Engine
	labels, err := classesOf(ctx, eng, s)
	if err != nil {
		return nil, err
	}
	var samples []sketchSample
	for run := 1; run <= c.Env.reps(10, 2); run++ {
		j := sketchJob(s.Norm, labels, parties, paperK, epsilon, run)
		if edit != nil {
			edit(j)
		}
		x, err := sampleVertical(ctx, eng, s, labels, method, j)
		if err != nil {
			return nil, err
		}
		samples = append(samples, x)
	}
	return samples, nil
}

// classesOf are the labels of a mixture, or the clusters of central k-means, as
// in the paper.
func classesOf(ctx context.Context, eng *engine.Engine, s *Set) ([]int32, error) {
	if s.Name == "mixgauss" && s.Labels != nil {
		return s.Labels, nil
	}
	if s.classes != nil {
		return s.classes, nil
	}
	r, err := centralKMeans(ctx, eng, s, nil, paperK, 1)
	if err != nil {
		return nil, err
	}
	rows := make([]float32, 0, paperK*s.D)
	for _, c := range r.Centroids {
		for _, x := range c {
			rows = append(rows, dataset.Truncate(max(-1, min(1, x)), s.Norm.FractionBits))
		}
	}
	centroids := kernels.NewCentroids(paperK, s.D)
	centroids.Set(rows)
	near := make([]uint16, s.N)
	kernels.Assign(*s.Norm.Points, centroids, near, nil)
	labels := make([]int32, s.N)
	for i, a := range near {
		labels[i] = int32(a)
	}
	s.classes = labels
	return labels, nil
}

// sketchCurves is a family of curves of one figure.
type sketchCurves struct {
	sets      []string
	parties   []int
	epsilons  []float64 // default .5, 1, 2, 4
	methods   []string
	localKs   bool  // vary k'
	sketches  []int // vary M
	uneven    bool  // vary the numbers of columns of two parties
	byParties bool
}

// point is one abscissa of a curve.
type sketchPoint struct {
	labels []Label
	edit   func(*sketch.Job)
}

// points are the abscissae for a set and a number of parties.
func (f sketchCurves) points(parties int, epsilon float64) []sketchPoint {
	switch {
	case f.localKs:
		var p []sketchPoint
		for _, k := range map[int][]int{2: {5, 10, 3, 15, 8}, 4: {5, 3, 6, 4, 7}}[parties] {
			p = append(p, sketchPoint{[]Label{L("epsilon", epsilon), L("k'", k)}, func(j *sketch.Job) { j.LocalK.N = k }})
		}
		return p
	case len(f.sketches) > 0:
		var p []sketchPoint
		for _, m := range f.sketches {
			p = append(p, sketchPoint{[]Label{L("epsilon", epsilon), L("M", m)}, func(j *sketch.Job) { j.Sketches = m }})
		}
		return p
	case f.uneven:
		var p []sketchPoint
		for _, first := range []int{4, 3, 2} {
			p = append(p, sketchPoint{[]Label{L("columns", fmt.Sprintf("%d:%d", first, 8-first))},
				func(j *sketch.Job) { j.Columns = unevenSplit(j.Clients[0].Points.D, first) }})
		}
		return p
	}
	return []sketchPoint{{[]Label{L("epsilon", epsilon)}, nil}}
}

// unevenSplit gives the first party `first` of 8 shares of the columns.
func unevenSplit(columns, first int) sketch.Split {
	cut := columns * first / 8
	s := sketch.Split{nil, nil}
	for c := range columns {
		l := 0
		if c >= cut {
			l = 1
		}
		s[l] = append(s[l], c)
	}
	return s
}

func (f sketchCurves) run(ctx context.Context, e *Env) {
	epsilons := f.epsilons
	if epsilons == nil {
		epsilons = []float64{1, 4, 2, 0.5}
	}
	done := make(map[sketchRun][]sketchSample)
	for _, epsilon := range epsilons {
		for _, parties := range f.parties {
			for _, name := range f.sets {
				for _, p := range f.points(parties, epsilon) {
					for _, method := range f.methods {
						panel := fmt.Sprintf("%s S=%d", name, parties)
						labels := []Label{L("panel", panel), L("method", method)}
						if f.byParties {
							labels = []Label{L("panel", fmt.Sprintf("%s eps=%v", name, epsilon)), L("method", method), L("parties", parties)}
						} else {
							labels = append(labels, p.labels...)
						}
						e.newCase(ctx, "", labels, func(ctx context.Context, c *Case) error {
							return f.measure(ctx, c, sketchRun{name, method, parties, epsilon}, p.edit, done)
						})
					}
				}
			}
		}
	}
}

// sketchRun is what runs of a curve depend on.
type sketchRun struct {
	set, method string
	parties     int
	epsilon     float64
}

// reduced leaves out what the runs of its method do not depend on.
func (r sketchRun) reduced() sketchRun {
	if r.method == "central" || r.method == "lsf" {
		r.parties = 0
	}
	if r.method == "central" || r.method == "vertical-plain" {
		r.epsilon = 0
	}
	return r
}

// measure records the runs of a point; without an edit it keeps them in done, or takes them
// from there.
func (f sketchCurves) measure(ctx context.Context, c *Case, r sketchRun, edit func(*sketch.Job),
	done map[sketchRun][]sketchSample) error {
	s, err := c.Env.set(ctx, r.set)
	if err != nil {
		return err
	}
	samples := done[r.reduced()]
	if samples == nil || edit != nil {
		samples, err = sampleRuns(ctx, c, s, r.method, r.parties, r.epsilon, func(j *sketch.Job) {
			if r.set == "letter" && (r.parties == 2 || r.parties == 4) {
				j.Columns, _ = sketch.ParseSplit("letter", r.parties, s.D, nil)
			}
			if edit != nil {
				edit(j)
			}
		})
		if err != nil {
			return err
		}
	}
	if edit == nil {
		done[r.reduced()] = samples
	}
	var loss, vMeasure []Reference
	if r.set == "mixgauss" && edit == nil {
		if loss, vMeasure, err = c.Env.publishedTable2(r.method, r.parties, r.epsilon); err != nil {
			return err
		}
	}
	addSamples(c, samples, loss, vMeasure)
	return nil
}

// publishedTable2 returns the paper's loss and V-measure; our sketch stands
// beside the paper's.
func (e *Env) publishedTable2(method string, parties int, epsilon float64) (loss, vMeasure []Reference, err error) {
	if method == "sketch" {
		method = "sketch, claimed"
	}
	labels := []Label{L("epsilon", epsilon), L("method", method), L("parties", parties)}
	if loss, err = e.printedFor("sketch-table2", labels, "loss"); err != nil {
		return nil, nil, err
	}
	vMeasure, err = e.printedFor("sketch-table2", labels, "V-measure")
	return loss, vMeasure, err
}

// lossGoals are what sketch is to reach on mixgauss, by parties and epsilon.
var lossGoals = map[[2]float64]float64{{2, 1}: 0.0763, {4, 1}: 0.0765, {2, 0.05}: 0.078, {4, 0.05}: 0.080}

func runSketchTable2(ctx context.Context, e *Env) {
	rows := []struct {
		epsilon float64
		methods []string
	}{
		{1, []string{"sketch"}},
		{0.05, []string{"sketch"}},
		{1, []string{"sketch, claimed", "ind-lap", "ldp-agg", "lsf"}},
		{4, []string{"sketch", "sketch, claimed", "ind-lap", "ldp-agg", "lsf"}},
		{0, []string{"vertical-plain", "central"}},
		{2, []string{"sketch"}},
	}
	for _, row := range rows {
		for _, method := range row.methods {
			for _, parties := range []int{2, 4} {
				epsilon := fmt.Sprint(row.epsilon)
				if row.epsilon == 0 {
					epsilon = "none"
				}
				e.on(ctx, "mixgauss", "", []Label{L("epsilon", epsilon), L("method", method), L("parties", parties)},
					func(ctx context.Context, c *Case, s *Set) error {
						samples, err := sampleRuns(ctx, c, s, method, parties, row.epsilon, nil)
						if err != nil {
							return err
						}
						var loss, vMeasure []Reference
						if method == "sketch" { // the others' stand in the file for this table
							if loss, vMeasure, err = c.Env.publishedTable2(method, parties, row.epsilon); err != nil {
								return err
							}
							loss = append(loss, atMost(lossGoals[[2]float64{float64(parties), row.epsilon}])...)
						}
						addSamples(c, samples, loss, vMeasure)
						return nil
					})
			}
		}
	}
}

// sketchTable1 are the rows of Sketch-V's Table 1, for two and four parties each; 0
// sketches: not a sketch method.
var sketchTable1 = []struct {
	localK   int
	method   string
	sketches int
}{
	{5, "sketch", 2048}, {5, "sketch", 4096}, {5, "ind-lap", 0}, {5, "ldp-agg", 0}, {5, "vertical-plain", 0},
	{8, "sketch", 2048}, {8, "sketch", 4096}, {8, "ind-lap", 0}, {8, "ldp-agg", 0}, {8, "vertical-plain", 0},
}

func runSketchTable1(ctx context.Context, e *Env) {
	for _, row := range sketchTable1 {
		for _, parties := range []int{2, 4} {
			labels := []Label{L("k'", row.localK), L("method", row.method), L("parties", parties)}
			if row.sketches > 0 {
				labels = append(labels, L("M", row.sketches))
			}
			e.on(ctx, "mixgauss", "", labels, func(ctx context.Context, c *Case, s *Set) error {
				var times, making []float64
				var bytes int64
				for run := range c.Env.reps(20, 3) + 1 {
					j := sketchJob(s.Norm, nil, parties, paperK, 1, run)
					editMethod(j, row.method)
					if row.method == "sketch" {
						editMethod(j, "sketch, claimed")
						j.Sketches = row.sketches
					}
					j.LocalK.N, j.NoQuality = row.localK, true
					r, err := c.Env.Engine.Run(ctx, j)
					if err != nil {
						return err
					}
					bytes = slices.Max(r.Comm.BytesSent)
					if run > 0 { // the first warms up
						times = append(times, float64(r.Timings["weights"].TotalNS))
						making = append(making, float64(r.Timings["sketch"].TotalNS))
					}
				}
				c.durations("weights", times)
				if row.sketches > 0 {
					c.durations("sketches of all parties", making, oneHashPerKey(c.Env.Pool, s.N, parties, row.sketches)...)
				}
				c.number("bytes per party", unitBytes, float64(bytes))
				return nil
			})
		}
	}
}
