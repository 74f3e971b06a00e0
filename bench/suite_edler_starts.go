package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/balcan"
)

// edlerStarts looks for the reason why the thesis's losses are above ours.
func edlerStarts() Suite {
	return Suite{
		Name: "edler-starts", Group: groupThesisB, Title: "Thesis-B Tables 2 to 17: other readings of its algorithms",
		About: "Two sentences of the thesis have two readings. Algorithms 4 and 11 choose k of the candidates uniformly: " +
			"under the tables' own suites these are distinct; \"repeated\" draws them with replacement, as choice and choices " +
			"of Python and NumPy do unless they are told otherwise, so that some candidates stand twice and k may be above " +
			"their number. And the entries of its projection are normal: under the tables' own suites they are divided by the " +
			"root of the dimension that it projects to, which keeps distances; \"undivided\" leaves that out, so that a " +
			"part of the records lies outside the cubes. The ratio to the thesis's loss comes with its 95% interval, as in " +
			"the tables' own suites. Rows on blobs have means of five runs on each of ten draws of the set, as the thesis has " +
			"them on one that is not ours.",
		Source: "Thesis-B, Tables 2 to 17", Needs: []string{"mnist"}, Run: runEdlerStarts,
	}
}

// edlerReadings are how sentences of the thesis with two meanings can be read.
var edlerReadings = []struct {
	name string
	edit func(*balcan.Edler)
}{
	{"undivided", func(j *balcan.Edler) { j.Undivided = true }},
	{"repeated", func(j *balcan.Edler) { j.Repeats = true }},
	{"both", func(j *balcan.Edler) { j.Undivided, j.Repeats = true, true }},
}

// edlerStart is a row of a table of the thesis.
type edlerStart struct {
	file, value string // of the printed figure
	at          Label
	instance    edlerInstance
}

// edlerStartRows are the rows, those of blobs first.
func edlerStartRows() []edlerStart {
	var rows []edlerStart
	add := func(file, value string, at Label, k int, epsilon float64, d, clusters int, edit func(*balcan.Edler)) {
		rows = append(rows, edlerStart{file, value, at,
			edlerInstance{k: k, epsilon: epsilon, d: d, clusters: clusters, edit: edit}})
	}
	for _, k := range []int{8, 32, 16, 64} {
		add("edler-table7", "with k-means", L("k", k), k, 1, 100, k, chapter4)
	}
	for _, d := range []int{50, 5, 500} {
		add("edler-table4", "inertia", L("d", d), 32, 0.5, d, 32, chapter4)
	}
	for _, k := range []int{64, 32, 16, 8, 4, 2} {
		add("edler-table3", "inertia", L("k", k), k, 1, 100, 64, chapter4)
	}
	for _, epsilon := range []float64{0.3, 0.5, 1, 0.1, 0.7, 0.9} {
		add("edler-table6_with k-means", "inertia", L("epsilon", epsilon), 10, epsilon, 0, 0, chapter4)
	}
	for _, epsilon := range []float64{0.1, 0.7, 0.5, 1, 0.3, 0.9} {
		add("edler-table6_without k-means", "inertia", L("epsilon", epsilon), 10, epsilon, 0, 0, withoutKMeans)
	}
	chapter5 := func(*balcan.Edler) {}
	for _, k := range []int{64, 32, 16, 8} {
		add("edler-table17", "balcan-edler", L("k", k), k, 1, 100, k, chapter5)
	}
	for _, d := range []int{50, 5, 500} {
		add("edler-table16", "balcan-edler", L("d", d), 32, 0.5, d, 32, chapter5)
	}
	for _, k := range []int{64, 32, 16, 8, 4, 2} {
		add("edler-table15", "balcan-edler", L("k", k), k, 1, 100, 64, chapter5)
	}
	for _, split := range [][5]float64{{.025, .9, .025, .025, .025}, {.025, .025, .025, .9, .025},
		{.025, .025, .025, .025, .9}} {
		add("edler-table8", "inertia", L("split", strings.Trim(fmt.Sprint(split), "[]")), 10, 1, 0, 0,
			func(j *balcan.Edler) {
				chapter4(j)
				j.Split = splitOf(split)
			})
	}
	for _, epsilon := range []float64{0.5, 0.7, 1, 0.1, 0.3, 0.9} {
		add("edler-table13", "balcan-edler", L("epsilon", epsilon), 10, epsilon, 0, 0, chapter5)
	}
	for _, k := range []int{16, 4, 32, 2, 8, 64} {
		add("edler-table14", "balcan-edler", L("k", k), k, 1, 0, 0, chapter5)
	}
	for _, k := range []int{4, 2, 8, 16, 32, 64} {
		add("edler-table2", "inertia", L("k", k), k, 1, 0, 0, chapter4)
	}
	return rows
}

func runEdlerStarts(ctx context.Context, e *Env) {
	for _, x := range edlerStartRows() {
		labels := []Label{L("rows of", x.file), x.at}
		if x.instance.d > 0 {
			e.newCase(ctx, edlerBlobStarts, labels, func(ctx context.Context, c *Case) error { return c.edlerDraws(ctx, x) })
			continue
		}
		e.on(ctx, "mnist", "", labels, func(ctx context.Context, c *Case, s *Set) error {
			for _, reading := range edlerReadings {
				losses, err := c.edlerStart(ctx, x, reading.edit, s, 255, c.Env.reps(edlerSomeRuns, 1), 1)
				if err == nil {
					err = c.edlerExplained(x, reading.name, losses, edlerRuns)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// edlerBlobStarts is the table of the rows on blobs.
const edlerBlobStarts = "blobs"

// edlerDraws measures a row on ten draws of its set, with five runs on each, as the thesis has on one: so its
// figure is one more mean of that kind.
func (c *Case) edlerDraws(ctx context.Context, x edlerStart) error {
	runs, draws := c.Env.reps(edlerRuns, 1), c.Env.reps(10, 2)
	means := make([][]float64, len(edlerReadings))
	for draw := range draws {
		s, err := c.Env.blobs(ctx, x.instance.d, x.instance.clusters, uint64(draw+1))
		if err != nil {
			return err
		}
		for i, reading := range edlerReadings {
			losses, err := c.edlerStart(ctx, x, reading.edit, s, blobsWidth, runs, draw*runs+1)
			if err != nil {
				return err
			}
			means[i] = append(means[i], stat.Mean(losses, nil))
		}
	}
	for i, reading := range edlerReadings {
		if err := c.edlerExplained(x, reading.name, means[i], 1); err != nil {
			return err
		}
	}
	c.Row.Note = fmt.Sprintf("means of %d runs on each of %d draws of the set", runs, draws)
	c.Row.Seeds = fmt.Sprintf("1 to %d", runs*draws)
	return nil
}

// edlerStart are the losses of runs on a set under one reading.
func (c *Case) edlerStart(ctx context.Context, x edlerStart, reading func(*balcan.Edler), s *Set, width float64,
	runs, first int) ([]float64, error) {
	r, err := c.runs(ctx, runs, func(run int) (engine.Job, error) {
		job := edlerJob(s, x.instance.k, x.instance.epsilon, first+run-1)
		x.instance.edit(job)
		reading(job)
		return job, nil
	})
	if err != nil {
		return nil, err
	}
	return rawInertia(r.wcss, width), nil
}

// edlerExplained records losses under a reading beside the thesis's, behind whose figure stand so many like them.
func (c *Case) edlerExplained(x edlerStart, reading string, losses []float64, behind int) error {
	refs, err := c.edlerPrinted(x)
	if err != nil {
		return err
	}
	c.samples(reading, unitPlain, losses, refs...)
	c.toThesis(reading, losses, refs, behind)
	return nil
}

// edlerPrinted is what the thesis prints for a row.
func (c *Case) edlerPrinted(x edlerStart) ([]Reference, error) {
	refs, err := c.Env.printedFor(x.file, []Label{x.at}, x.value)
	refs = slices.DeleteFunc(refs, func(r Reference) bool { return r.Other })
	for i := range refs {
		refs[i].Apart = "counted by the table's own suite"
	}
	return refs, err
}
