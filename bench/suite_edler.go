package bench

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/balcan"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// edlerTable is a table of Thesis-B, with what shows or prints the same runs.
type edlerTable struct {
	number, title string
	also          []string
	about         string
	figure        *Figure
	generated     bool // it needs no set of the data folder
	run           func(context.Context, *Env)
}

// What the tables of Thesis-B have in common.
const (
	edlerOurs = "balcan-edler under its own claim. The thesis's figures are means of five runs; ours come with the " +
		"ratio of the means and its 95% interval, for which the thesis's runs are taken to deviate as much as ours do. "
	edlerBeside = "balcan-edler as in the thesis's chapter 5, with balcan and hybrid beside it: the thesis states " +
		"epsilon 1 for what costs about 95 on MNIST; balcan-edler reproduces it under that claim, balcan and hybrid keep " +
		"the epsilon that they state. "
	edlerBlobs = "Synthetic sets are make_blobs with centres in (0, 100)^d and standard deviation 1. "
	edlerGamma = "There a cluster's n/k records are near the threshold gamma, which decides the loss: so the thesis's " +
		"algorithm runs with the gamma of chapter 4, twice as large, too. Suite edler-starts reads its projection another " +
		"way, which explains the losses on blobs of chapter 4, too. "
	edlerSplit = "Chapter 4's options with the split of section 5.2. "
)

// edlerTables are those that come from runs of the thesis's algorithm alone.
func edlerTables() []edlerTable {
	chances := func(before float64) func(context.Context, *Env) {
		return func(ctx context.Context, e *Env) { e.edlerChances(ctx, before) }
	}
	return []edlerTable{
		{number: "2", title: "inertia by k on MNIST", also: []string{"Figure 4.3"},
			run:    edlerSweep("k", edlerKs, func(x *edlerInstance, k int) { x.k = k }),
			about:  edlerOurs + "Chapter 4's options, epsilon 1.",
			figure: &Figure{Title: "Inertia on MNIST by k", X: "k", Y: "inertia", LogX: true, LogY: true}},
		{number: "3", title: "inertia by k on 64 clusters", also: []string{"Figure 4.4"}, generated: true,
			run:   edlerSweep("k", edlerKs, func(x *edlerInstance, k int) { x.k, x.d, x.clusters = k, 100, 64 }),
			about: edlerOurs + edlerBlobs + "Chapter 4's options, epsilon 1."},
		{number: "4", title: "inertia by dimension", also: []string{"Figure 4.5"}, generated: true,
			run: edlerSweep("d", []int{5, 50, 500}, func(x *edlerInstance, d int) {
				x.k, x.epsilon, x.d, x.clusters = 32, 0.5, d, 32
			}),
			about: edlerOurs + edlerBlobs + "Chapter 4's options, k = 32, epsilon 0.5."},
		{number: "5.5", title: "inertia by swaps", about: edlerOurs + edlerSplit,
			run: edlerSplitSweep("T", []int{2, 4, 10, 20}, func(j *balcan.Edler, t int) { j.Swaps = t })},
		{number: "5.6", title: "chances of two swaps", run: chances(4.5e6), generated: true,
			about: "How often the exponential mechanism takes the better of two swaps, of losses 4 and 5 million, T = 10: a " +
				"million choices by the sampler of balcan-edler, beside the thesis's weights. The thesis's range is that of one " +
				"coordinate, which it calls a bug of its own (section 4.4); the last value is with the range of all, as " +
				"balcan-edler has it."},
		{number: "5.7", title: "chances of two sets of centres", run: chances(0), generated: true,
			about: "As Table 5.6, for the choice among sets of centres. The thesis rounds the weights at epsilon 2 before it " +
				"divides them: 0.003 to 0.00092 are 76%, unrounded 80%."},
		{number: "5.8", title: "inertia by iterations of private k-means", about: edlerOurs + edlerSplit,
			run: edlerSplitSweep("iterations", []int{3, 1, 20, 2, 4, 5, 6, 8, 10},
				func(j *balcan.Edler, n int) { j.Iterations = n })},
		{number: "5.9", title: "inertia by runs of the whole",
			run:   edlerSplitSweep("T", []int{1, 2, 3, 4, 5}, func(j *balcan.Edler, t int) { j.Rounds = t }),
			about: edlerOurs + edlerSplit + "The budget is divided among the T runs, of which the mechanism chooses one."},
		{number: "6", title: "inertia by budget, with and without private k-means", run: runEdlerTable6,
			also: []string{"Table 1", "Figure 4.2", "Figure 5.1"},
			about: edlerOurs + "k = 10 with the split, threshold, exponential mechanism and all candidates of the thesis's " +
				"chapter 4; 50 runs."},
		{number: "7", title: "inertia by intrinsic clusters", run: runEdlerTable7, generated: true,
			also: []string{"Table 5", "Figure 4.6", "Figure 5.2"},
			about: edlerOurs + edlerBlobs + "The appendix prints the Matlab column of Table 5 again in place of its figures " +
				"without k-means, so only those with k-means can be compared."},
		{number: "8", title: "inertia by split of the budget", run: runEdlerSplits,
			also: []string{"Table 5.1", "Table 5.2", "Table 5.3", "Table 5.4", "Table 9", "Table 10", "Table 11"},
			about: edlerOurs + "Chapter 4's options. Tables 5.1 and 5.2 have some of the splits (5.1 with other figures than " +
				"Table 8 prints for the same splits), the others average those with one share in common. Table 5.4's averages " +
				"are not those of the splits that Table 8 prints: the thesis took them before it had tried all."},
		{number: "12", title: "inertia and time by partitions", also: []string{"Figure 5.3"},
			run: edlerSplitSweep("T", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
				func(j *balcan.Edler, t int) { j.Partitions = t }),
			about: edlerOurs + edlerSplit},
	}
}

// edlerComparisons are the tables that compare methods.
func edlerComparisons() []edlerTable {
	comparison := func(number string) func(context.Context, *Env) {
		return func(ctx context.Context, e *Env) { e.edlerComparison(ctx, number) }
	}
	return []edlerTable{
		{number: "13", title: "inertia by budget on MNIST", also: []string{"Figure 5.4"}, run: comparison("13"),
			about:  edlerBeside,
			figure: &Figure{Title: "Inertia on MNIST by epsilon", X: "epsilon", Y: "balcan"}},
		{number: "14", title: "inertia by k on MNIST", also: []string{"Figure 5.5"}, run: comparison("14"),
			about:  edlerBeside,
			figure: &Figure{Title: "Inertia on MNIST by k", X: "k", Y: "balcan", LogX: true, LogY: true}},
		{number: "15", title: "inertia by k on 64 clusters", also: []string{"Figure 5.6"}, run: comparison("15"),
			generated: true,
			about:     edlerBeside + edlerBlobs + edlerGamma,
			figure: &Figure{Title: "Inertia by k, synthetic set with 64 clusters", X: "k", Y: "balcan", LogX: true,
				LogY: true}},
		{number: "16", title: "inertia by dimension", also: []string{"Figure 5.7"}, run: comparison("16"), generated: true,
			about: edlerBeside + edlerBlobs + edlerGamma},
		{number: "17", title: "inertia by intrinsic clusters", also: []string{"Figure 5.8"}, run: comparison("17"),
			generated: true,
			about:     edlerBeside + edlerBlobs + edlerGamma},
	}
}

// edlerSuites are the tables and figures of Thesis-B. Where a figure shows what a table of
// the appendix prints, it is another name of that table's suite.
func edlerSuites() []Suite {
	out := []Suite{{Name: "edler-fig4.1", Group: groupThesisB, Title: "Thesis-B Figure 4.1: time by T",
		Source: "Thesis-B, Figure 4.1",
		About: "The time of a run on MNIST, k = 10, epsilon 1, by the number of partitions and of swaps (chapter 4's " +
			"options). The figure prints no numbers; the text says that a run takes over 48 minutes at T = 30.",
		Needs: []string{"mnist"}, Run: runEdlerTime,
		Figures: []Figure{{Title: "Time of a run by T", X: "T", Y: "run", Series: []string{"T of"}, LogY: true}}}}
	for _, t := range append(edlerTables(), edlerComparisons()...) {
		s := Suite{Name: "edler-table" + t.number, Group: groupThesisB, Title: "Thesis-B Table " + t.number + ": " + t.title,
			About: t.about, Source: "Thesis-B, Table " + t.number, Run: t.run}
		for _, place := range t.also {
			s.Also = append(s.Also, "edler-"+strings.NewReplacer("Table ", "table", "Figure ", "fig").Replace(place))
			s.Source += ", " + place
		}
		if !t.generated {
			s.Needs = []string{"mnist"}
		}
		if t.figure != nil {
			s.Figures = []Figure{*t.figure}
		}
		out = append(out, s)
	}
	return append(out, edlerStarts())
}

// edlerEpsilons are the budgets of Tables 6 and 13.
var edlerEpsilons = []float64{1, 0.1, 0.3, 0.5, 0.7, 0.9}

// edlerJob is a job of balcan-edler for options that the catalogue does not have.
func edlerJob(s *Set, k int, epsilon float64, run int) *balcan.Edler {
	return &balcan.Edler{Problem: s.problem(k, privacy.Budget{Epsilon: epsilon}, run)}
}

// blobs is a draw of make_blobs in the bounds that the thesis declares, kept until
// another one is asked for. The tables' own suites take the first.
func (e *Env) blobs(ctx context.Context, d, k int, draw uint64) (*Set, error) {
	name := fmt.Sprintf("box-blobs d=%d k=%d draw %d", d, k, draw)
	if s, ok := e.sets.loaded[name]; ok {
		return s, nil
	}
	t, err := dataset.Generate(ctx, "box-blobs", dataset.Generator{N: 100000, D: d, K: k, Seed: draw})
	if err != nil {
		return nil, err
	}
	declared := func(t *dataset.Table) (dataset.Bounds, error) { return dataset.ParseBounds("-5:105", t.D) }
	s, err := newSet(name, t, declared, k)
	if err != nil {
		return nil, err
	}
	for old := range e.sets.loaded {
		if strings.HasPrefix(old, "box-blobs") {
			delete(e.sets.loaded, old)
		}
	}
	e.sets.loaded[name] = s
	return s, nil
}

// edlerRuns is the number of runs behind each figure of the thesis.
// edlerMoreRuns is that of its algorithm here, in the tables by epsilon: enough
// for the run-to-run deviation, which also says how far the mean of the thesis's
// runs may be off; edlerSomeRuns is that of the other tables.
const edlerRuns, edlerSomeRuns, edlerMoreRuns = 5, 10, 50

// againstThesis records runs of the thesis's algorithm, and the ratio of their mean
// to the thesis's with the half width of its 95% interval, the thesis's runs taken
// to deviate as ours do.
func (c *Case) againstThesis(name string, inertia []float64) error {
	c.samples(name, unitPlain, inertia)
	refs, err := c.Env.printedFor(c.Row.file(), c.Row.Labels, name)
	if err != nil {
		return err
	}
	if c.toThesis(name, inertia, refs, edlerRuns); len(inertia) > 1 && len(refs) > 0 {
		c.deviation("run", inertia)
	}
	return nil
}

// toThesis records the ratio of the mean of samples to the thesis's figure, with its 95% interval, where that is the
// mean of so many like them; nothing if there is no such figure, or one sample.
func (c *Case) toThesis(name string, samples []float64, refs []Reference, behind int) {
	if len(samples) < 2 || len(refs) == 0 {
		return
	}
	published, count := float64(refs[0].Value), len(samples)
	mean, deviation := stat.MeanStdDev(samples, nil)
	c.add(Value{Name: name + " / thesis", Mean: Number(mean / published), Median: Number(mean / published),
		P99:  Number(mean / published),
		Half: Number(student(count) * deviation * math.Sqrt(1/float64(count)+1/float64(behind)) / published), N: count})
}

// deviation records the standard deviation of samples, each that of one run or draw, as a share of their mean.
func (c *Case) deviation(of string, samples []float64) {
	mean, deviation := stat.MeanStdDev(samples, nil)
	c.number("deviation of a "+of, "%", 100*deviation/mean)
}

// edlerCase measures balcan-edler with options on a set, whose columns have that width.
func (e *Env) edlerCase(ctx context.Context, table string, at Label, x edlerInstance) {
	e.newCase(ctx, table, []Label{at}, func(ctx context.Context, c *Case) error {
		s, width, err := x.records(ctx, c.Env)
		if err != nil {
			return err
		}
		r, err := c.runs(ctx, c.Env.reps(x.runs, 1), func(run int) (engine.Job, error) {
			job := edlerJob(s, x.k, x.epsilon, run)
			x.edit(job)
			return job, nil
		})
		if err != nil {
			return err
		}
		c.durations("run", r.wall)
		return c.againstThesis("inertia", rawInertia(r.wcss, width))
	})
}

// edlerInstance is what edlerCase runs: by default on MNIST, else on make_blobs of
// that many dimensions and clusters.
type edlerInstance struct {
	runs, k     int
	epsilon     float64
	edit        func(*balcan.Edler)
	d, clusters int
}

func (x *edlerInstance) records(ctx context.Context, e *Env) (s *Set, width float64, err error) {
	if x.d == 0 {
		s, err = e.set(ctx, "mnist")
		return s, 255, err
	}
	s, err = e.blobs(ctx, x.d, x.clusters, 1)
	return s, blobsWidth, err
}

// blobsWidth is that of the columns of blobs, in the bounds that the thesis declares.
const blobsWidth = 110

// onMNIST is an instance with k = 10 at epsilon 1.
func onMNIST(runs int, edit func(*balcan.Edler)) edlerInstance {
	return edlerInstance{runs: runs, k: 10, epsilon: 1, edit: edit}
}

// edlerSweep measures chapter 4's algorithm by one number, the most telling first; set gives it to an instance.
func edlerSweep(label string, at []int, set func(x *edlerInstance, v int)) func(context.Context, *Env) {
	return func(ctx context.Context, e *Env) {
		for _, v := range at {
			x := onMNIST(edlerSomeRuns, chapter4)
			set(&x, v)
			e.edlerCase(ctx, "", L(label, v), x)
		}
	}
}

// edlerSplitSweep is edlerSweep of an option, on the options of section53.
func edlerSplitSweep(label string, at []int, option func(j *balcan.Edler, v int)) func(context.Context, *Env) {
	return edlerSweep(label, at, func(x *edlerInstance, v int) {
		x.edit = func(j *balcan.Edler) {
			section53(j)
			option(j, v)
		}
	})
}

// chapter4 sets the options of the thesis's first algorithm (its sections 4.1
// and 4.2).
func chapter4(j *balcan.Edler) {
	j.GammaFactor, j.Exponential, j.AllCubes, j.Split = 2, true, true, balcan.MatlabSplit
}

// section53 is chapter4 with the split that section 5.2 finds.
func section53(j *balcan.Edler) {
	chapter4(j)
	j.Split = balcan.EdlerSplit
}

// withoutKMeans is chapter 4's algorithm with its last stage's share given to the
// others.
func withoutKMeans(j *balcan.Edler) {
	chapter4(j)
	j.Iterations = -1
	j.Split = balcan.Split{Candidates: 68. / 99, Swap: 17. / 198, Recover: 17. / 99, Choice: 1. / 18}
}

// edlerKs are the numbers of clusters of Tables 2 and 3, the most telling first.
var edlerKs = []int{8, 64, 2, 4, 16, 32}

// runEdlerTime is Figure 4.1.
func runEdlerTime(ctx context.Context, e *Env) {
	edits := map[string]func(*balcan.Edler, int){
		"partitions": func(j *balcan.Edler, t int) { j.Partitions = t },
		"swaps":      func(j *balcan.Edler, t int) { j.Swaps = t },
	}
	for _, t := range []int{30, 1, 10, 20, 5, 15, 25} {
		for _, of := range []string{"partitions", "swaps"} {
			e.on(ctx, "mnist", "", []Label{L("T of", of), L("T", t)}, func(ctx context.Context, c *Case, s *Set) error {
				r, err := c.runs(ctx, c.Env.reps(edlerRuns, 1), func(run int) (engine.Job, error) {
					job := edlerJob(s, 10, 1, run)
					chapter4(job)
					edits[of](job, t)
					job.NoQuality = true
					return job, nil
				})
				if err != nil {
					return err
				}
				c.durations("run", r.wall)
				c.durations("CPU", r.cpu)
				return nil
			})
		}
	}
}

// runEdlerTable6 is Tables 1 and 6.
func runEdlerTable6(ctx context.Context, e *Env) {
	for _, form := range []struct {
		table string
		edit  func(*balcan.Edler)
	}{{"with k-means", chapter4}, {"without k-means", withoutKMeans}} {
		for _, epsilon := range edlerEpsilons {
			x := onMNIST(edlerMoreRuns, form.edit)
			x.epsilon = epsilon
			e.edlerCase(ctx, form.table, L("epsilon", epsilon), x)
		}
	}
}

// edlerChances is Tables 5.6 and 5.7: two choices of losses 4 and 5 million, the loss
// before them, if there is one, subtracted from both.
func (e *Env) edlerChances(ctx context.Context, before float64) {
	const good, bad, choices, times, width, columns = 4e6, 5e6, 1000000, 10, 255.0, 784
	for _, epsilon := range []float64{0.01, 0.1, 1, 2} {
		e.newCase(ctx, "", []Label{L("epsilon", epsilon)}, func(ctx context.Context, c *Case) error {
			share := epsilon / (times + 1)
			weight := func(loss float64) float64 { return math.Exp(-share * (loss - before) / (2 * width * width)) }
			c.number("good weight", unitPlain, weight(good))
			c.number("bad weight", unitPlain, weight(bad))
			seed := uint64(1)
			stream := privacy.NewStreams(&seed).Stream(0, 0, "chances")
			for _, range2 := range []struct {
				name  string
				value float64
			}{{"good share", width * width}, {"good share, all columns", width * width * columns}} {
				selection := privacy.Selection{Epsilon: share, Sensitivity: range2.value}
				chosen := 0
				for range choices {
					at, err := selection.ExponentialMechanism(stream, []float64{-good, -bad})
					if err != nil {
						return err
					}
					chosen += 1 - at
				}
				p := float64(chosen) / choices
				c.add(Value{Name: range2.name, Mean: Number(p), Median: Number(p), P99: Number(p), N: choices,
					Half: Number(1.96 * math.Sqrt(p*(1-p)/choices))})
			}
			return nil
		})
	}
}

// runEdlerTable7 is private k-means by intrinsic clusters.
func runEdlerTable7(ctx context.Context, e *Env) {
	for _, k := range []int{8, 16, 32, 64} {
		e.newCase(ctx, "", []Label{L("k", k)}, func(ctx context.Context, c *Case) error {
			s, err := c.Env.blobs(ctx, 100, k, 1)
			if err != nil {
				return err
			}
			for _, form := range []struct {
				name string
				edit func(*balcan.Edler)
			}{{"with k-means", chapter4}, {"without k-means", withoutKMeans}} {
				runs, err := c.runs(ctx, c.Env.reps(edlerSomeRuns, 1), func(run int) (engine.Job, error) {
					job := edlerJob(s, k, 1, run)
					form.edit(job)
					return job, nil
				})
				if err != nil {
					return err
				}
				if err := c.againstThesis(form.name, rawInertia(runs.wcss, 110)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// splitOf are shares in the order of the thesis.
func splitOf(x [5]float64) balcan.Split {
	return balcan.Split{Candidates: x[0], Swap: x[1], Recover: x[2], KMeans: x[3], Choice: x[4]}
}

// edlerFirst is the table of the splits that give one stage nearly all, and the others
// nearly nothing; the thesis prints it twice, with other figures.
const edlerFirst = "Table 5.1"

// runEdlerSplits is Table 8, all splits of the budget, Table 5.1, and the averages of
// Table 8 by the share of one stage.
func runEdlerSplits(ctx context.Context, e *Env) {
	for _, table := range []string{edlerFirst, ""} {
		file := (&Row{Suite: e.suite.Name, Table: table}).file()
		for _, line := range e.printed[file].lines {
			var x [5]float64
			for i, share := range strings.Fields(line[0]) {
				x[i] = chart.ParseNumber(share)
			}
			e.edlerCase(ctx, table, L("split", line[0]), onMNIST(edlerRuns, func(j *balcan.Edler) {
				chapter4(j)
				j.Split = splitOf(x)
			}))
		}
	}
	for _, t := range []struct {
		table, stage string
		column       int
		fixed        string // the share of candidates, empty for any
	}{
		{"Table 5.3", "candidates", 0, ""}, {"Table 5.4", "kmeans", 3, "0.7"},
		{"Table 9", "swap", 1, ""}, {"Table 10", "recover", 2, ""}, {"Table 11", "kmeans", 3, ""},
	} {
		file := (&Row{Suite: e.suite.Name, Table: t.table}).file()
		for _, line := range e.printed[file].lines {
			share := line[0]
			e.newCase(ctx, t.table, []Label{L(t.stage, share)}, func(_ context.Context, c *Case) error {
				means := c.Env.splitsWith(t.column, share, t.fixed)
				if len(means) == 0 {
					return fmt.Errorf("no split of Table 8 with %s %s was measured", t.stage, share)
				}
				c.samples("average inertia", unitPlain, means)
				return nil
			})
		}
	}
}

// splitsWith returns the mean inertia of the splits of Table 8 that have a share in a
// column and, if it is not empty, that share of candidates.
func (e *Env) splitsWith(column int, share, candidates string) []float64 {
	var means []float64
	for i := range e.rows {
		row := &e.rows[i]
		split := strings.Fields(row.label("split"))
		if row.Table == "" && len(split) == 5 && strings.HasPrefix(split[column], share) &&
			chart.ParseNumber(split[column])-chart.ParseNumber(share) < 1e-4 && (candidates == "" || split[0] == candidates) {
			if v := row.value("inertia"); v != nil {
				means = append(means, float64(v.Mean))
			}
		}
	}
	return means
}
