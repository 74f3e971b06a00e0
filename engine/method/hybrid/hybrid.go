package hybrid

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Job is the recommended private method, central (one client) or horizontal
// (several): a private synopsis, free search on it, relative refinement. The
// rule works from n, d, k and the budget alone.
//
// Low dimension: half of the budget goes to a midpoint tree of noisy counts
// made consistent by projection; k-means with restarts and swaps runs on its
// leaves for free; the other half goes to one or more rounds of relative sums
// and counts, with a radius for each cluster taken from the synopsis. Where the tree is coarse, the
// first of several rounds measures up to three times as many clusters, after which the leaves,
// moved accordingly, are searched again; where the signal is strong they are after further rounds, too,
// which may have shown that a heavy cell has more clusters than its records need. In one to three columns at a weak
// signal all of the budget goes to one grid of counts, with Laplace noise where that is less; in three to nine
// columns a private mean and the counts of a few cells about it say where the records may be. High
// dimension: a private mean, found in steps, a histogram of distances to it, at a clear signal both once more for
// offsets that are cut to these distances, as bounds may be much wider than the records, and up to twenty
// relative rounds, the last ones with James-Stein shrinkage, before some of which histograms of the
// distances within each cluster give radii and show which clusters are two; from a random start around the mean,
// where at a weak signal half of the clusters or more may be points around the others, or, at a strong signal in very
// many columns or in few enough that each could be halved, from a tree on a few random directions, where half as
// many clusters again are looked for and merged. Where the signal is enough for them, the first half of the rounds
// around a mean measures twice as many clusters, which are merged. Where the mean says that most
// records are in a corner of the box, half of the clusters start around its centre. Every
// released quantity is an additive integer, so several clients need one secure
// sum per tree level and per round.
type Job struct {
	// Problem's Iterations are the refinement rounds; 0 is the rule, negative means none.
	protocol.Problem
	// Branch forces "tree", "grid", "projected", "high-d" or "mean"; empty or "auto" is the rule.
	Branch string
	// Frame says whether the tree branch first finds where the records are, by counts of the cells of
	// each column: "on", "off", or empty or "auto" for the rule (staged.Plan.MarginalShare).
	Frame string
	// Balance, if at least 1, asks for clusters of n/(Balance k) to Balance n/k
	// records: the search on the synopsis is constrained by an exact flow, which
	// costs no budget, and all of the budget goes to the synopsis (tree branch), as
	// rounds on the records would undo it. The sizes hold on the synopsis, to one
	// part in 8192 of n, and Details has them as "synopsis_sizes"; the records that
	// are nearest to a centroid can be more or fewer, both for the noise and because
	// the flow does not send every weight to its nearest centroid.
	Balance float64
	// KLeast, if positive, leaves the number of clusters, from KLeast to K, to the synopsis:
	// the number of the best silhouette, or of the elbow of the loss with Elbow. That is
	// post-processing. The plan is that of a number between the two.
	KLeast int
	Elbow  bool
}

// name is what results call the method.
const name = "hybrid"

var takes = protocol.Takes{Private: true, Several: true, Iterations: true, Replay: true, Weights: true,
	Mechanisms: []protocol.Mechanism{protocol.Gaussian, protocol.Laplace}}

// check checks the fields.
func (j *Job) check() error {
	if err := j.Check(name, takes); err != nil {
		return err
	}
	if err := j.own().Check(); err != nil {
		return err
	}
	if j.Balance > float64(j.K)*1e6 {
		return fault.Range("balance", j.Balance, fmt.Sprintf("1 to %g", float64(j.K)*1e6))
	}
	if j.Balance != 0 && (j.Branch != "" && j.Branch != "auto" && j.Branch != "tree" || j.K > 4096) {
		return fault.Request("balance", "needs the tree branch and at most 4096 clusters", "leave the branch out")
	}
	switch {
	case j.KLeast > j.K:
		return fault.Range("k-least", j.KLeast, fmt.Sprintf("1 to k, which is %d", j.K))
	case j.KLeast > 0 && (j.Balance != 0 || j.Branch == "high-d" || j.Branch == "mean"):
		return fault.Request("k-least", "as the least of a range of k needs a synopsis of where records are, and no balance",
			"use the branch tree, grid or projected, or state k")
	case j.KLeast == 0 && j.Elbow:
		return fault.Request("k-rule", "is given and k is stated", "leave it out, or give a range as --k auto:2-30 does")
	}
	return nil
}

// plan is the plan of a run: the branch that public numbers choose, and what
// it releases.
type plan struct {
	*staged.Plan
	branch string
	// The tree branch; columns is nil where their counts would be lost in noise.
	columns *staged.Marginals
	tree    *staged.Tree
	rounds  []*staged.Release
	reach   float64 // of a round, in root mean square distances
	balance float64
	// overseed is how many times more clusters than asked for the first round measures, 0 where it is as many.
	overseed float64
	// least is the least number of clusters where the synopsis decides, 0 where it does not.
	least int
	elbow bool
	// The others.
	projected *projectedPlan
	high      *highPlan
	mean      *meanPlan
}

// Plan implements engine.Job.
func (j *Job) Plan() (engine.Plan, error) { return staged.Make(j, (*Job).plan) }

func (j *Job) plan() (*plan, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	f, err := j.begin(j.NoiseOf(protocol.Gaussian))
	if err != nil {
		return nil, err
	}
	h := &plan{Plan: f, branch: j.Branch, balance: j.Balance, least: j.KLeast,
		elbow: j.Elbow}
	defer func() { h.K = j.K }()
	if h.branch == "" || h.branch == "auto" {
		h.branch = h.chooseBranch()
		switch {
		case j.Balance != 0:
			h.branch = "tree"
		case h.least > 0 && h.branch == "high-d":
			h.branch = "projected" // which has a synopsis
		}
	}
	if err := h.chooseGrid(j); err != nil {
		return nil, err
	}
	f = h.Plan
	f.Does(1, h.run)
	if h.branch == "projected" && h.elbow {
		return nil, fault.Request("k-rule", "elbow needs the losses of a tree on all columns, and the branch is projected",
			"use silhouette")
	}
	switch h.branch {
	case "grid":
		f.Rounds = 0 // it is planned
	case "tree":
		h.addTreeBranch(j)
		f.Rounds = len(h.rounds)
	case "projected":
		h.projected = h.addProjected(j.Iterations, j.K)
		f.Rounds = h.projected.rounds.Rounds()
	case "mean":
		h.mean = h.addMean()
		f.Rounds = 1
	default:
		h.high = h.addHigh(j.Iterations, j.K)
		f.Rounds = h.high.rounds.Rounds()
	}
	for _, r := range f.Releases { // fewer clusters than K make shorter rounds
		r.AtMost = r.AtMost || j.KLeast > 0
	}
	return h, nil
}

// begin begins the plan of a run with a kind of noise: a record influences one cell of each of at most 62 levels, or
// the sum of all records and one bin, and d+1 values a round; four rounds more have room for what else there is.
func (j *Job) begin(mechanism protocol.Mechanism) (*staged.Plan, error) {
	f, err := staged.New(name, &j.Problem, mechanism, 62+(max(j.Iterations, staged.MostRounds)+4)*(j.D()+1))
	if err != nil {
		return nil, err
	}
	f.AddTotal()
	if j.KLeast > 0 { // shares, rounds and branch are those of a number between
		f.K = int(math.Ceil(math.Sqrt(float64(j.KLeast * j.K))))
	}
	return f, nil
}

// run is what every party does.
func (h *plan) run(ctx context.Context, p *staged.Party) (*protocol.Outcome, error) {
	details := map[string]any{"branch": h.branch}
	o := new(protocol.Outcome)
	var centroids []float32
	var sizes []float64
	var err error
	switch h.branch {
	case "tree", "grid":
		var found *treeFound
		if found, err = h.searchTree(ctx, p); err == nil {
			centroids, sizes = found.centroids, found.sizes
			o.Synopsis, o.LossEstimate, o.KCurve = found.cells, &found.loss, found.curve
		}
		if err == nil && h.balance != 0 {
			details["synopsis_sizes"] = sizes
		}
	case "projected":
		centroids, sizes, o.KCurve, err = h.runProjected(ctx, p)
	case "mean":
		if h.least > 0 {
			p = p.WithClusters(h.least) // there is nothing to choose by
		}
		centroids, err = h.mean.run(ctx, p)
	default:
		centroids, sizes, err = h.high.run(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	o.Centroids, o.Sizes, o.Iterations, o.Details = staged.Widen(centroids), sizes, h.Rounds, details
	return o, nil
}

// chooseBranch is the rule, from public numbers only: one mean where the signal is too
// weak for clusters; a tree below ten dimensions, and beyond where every axis can be
// halved about once and the signal is very strong; relative rounds from a tree on a few random
// directions where the signal is strong and it was to be a tree, or in very many columns, where it
// finds clusters that hardly stand apart; else relative rounds around a mean.
func (h *plan) chooseBranch() string {
	halved := float64(h.D) <= h.halvings()
	switch {
	case h.tooWeak():
		return "mean"
	case h.D < manyColumns, halved && h.SNR() >= halvedSNR:
		return "tree"
	case (halved || h.D >= projectedColumns) && h.SNR() >= projectedSNR:
		return "projected"
	}
	return "high-d"
}

// From how many columns on random directions tell more than rounds around a mean, and from which signal to noise ratios
// on they do, and a tree that halves each of manyColumns or more about once tells more than they. The last comes from
// generated sets of 5,000 to 200,000 records in 10 to 14 columns, under bounds as wide as the records and 10 and 100
// times as wide.
const projectedColumns, projectedSNR, halvedSNR = 50, 25, 250

// halvings is how often a tree on half of the budget can halve the box before the cells
// get as small as the noise.
func (h *plan) halvings() float64 { return elementary.Log2(float64(h.N) * h.Share.Part(0.5).Mu()) }
