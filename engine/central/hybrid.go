package central

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Hybrid is the recommended private method, central (one client) or horizontal
// (several): a private synopsis, free search on it, relative refinement. The
// rule works from n, d, k and the budget alone.
//
// Low dimension: half of the budget goes to a midpoint tree of noisy counts
// made consistent by projection; k-means with restarts and swaps runs on its
// leaves for free; the other half goes to one or more rounds of relative sums
// and counts, with a radius for each cluster taken from the synopsis. High
// dimension: a private mean, a histogram of distances to it, and up to twenty
// relative rounds with a common radius and James-Stein shrinkage, from a tree on
// a few random directions, where half as many clusters again are looked for and
// merged, or, at a weak signal, from a random start. Every
// released quantity is an additive integer, so several clients need one secure
// sum per tree level and per round.
type Hybrid struct {
	Data
	K int
	// Budget is what the run may spend; a negative Delta means 1/(n ln n).
	Budget privacy.Budget
	// Laplace asks for pure epsilon; it is also chosen when Budget.Delta is 0.
	Laplace    bool
	Neighbours privacy.Neighbours // default add-remove
	// Branch forces "tree" or "high-d"; empty or "auto" is the rule.
	Branch string
	// Balance, if at least 1, asks for clusters of n/(Balance k) to Balance n/k
	// records: the search on the synopsis is constrained by an exact flow, which
	// costs no budget, and all of the budget goes to the synopsis (tree branch), as
	// rounds on the records would undo it. The sizes hold on the synopsis, to one
	// part in 8192 of n, and Details has them as "synopsis_sizes"; the records that
	// are nearest to a centroid can be more or fewer, both for the noise and because
	// the flow does not send every weight to its nearest centroid.
	Balance float64
	// Rounds fixes the number of refinement rounds; 0 is the rule, negative none.
	Rounds int
	// Seed makes the run a simulation; nil takes noise from the system.
	Seed *uint64
}

// Method is "hybrid".
func (j *Hybrid) Method() string { return "hybrid" }

// check checks the fields.
func (j *Hybrid) check() error {
	if err := j.validate(j.K); err != nil {
		return err
	}
	if err := validateBudget(j.Budget, j.records()); err != nil {
		return err
	}
	if j.Balance != 0 && !(j.Balance >= 1 && j.Balance <= float64(j.K)*1e6) {
		return fault.Range("balance", j.Balance, "at least 1")
	}
	if j.Balance != 0 && (j.Branch != "" && j.Branch != "auto" && j.Branch != "tree" || j.K > 4096) {
		return fault.Request("balance", "needs the tree branch and at most 4096 clusters", "leave the branch out")
	}
	switch j.Branch {
	case "", "auto", "tree", "projected", "high-d":
	default:
		return fault.Range("branch", j.Branch, "auto, tree, projected or high-d")
	}
	return nil
}

// hybridPlan is a hybrid's plan: the branch that public numbers choose, and what
// it releases.
type hybridPlan struct {
	*frame
	branch string
	// The tree branch.
	tree    *treePlan
	rounds  []*stage
	reach   float64 // of a round, in root mean square distances
	balance float64
	// The others.
	projected *projectedPlan
	high      *highPlan
}

// Plan implements engine.Job.
func (j *Hybrid) Plan() (engine.Plan, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	h, err := j.plan()
	if err != nil {
		return nil, err
	}
	if err := h.planQuality(&j.Data, 1); err != nil {
		return nil, err
	}
	return planned{h.frame, &j.Data, h.run}, nil
}

func (j *Hybrid) plan() (*hybridPlan, error) {
	budget := budgetFor(j.Budget, j.records())
	// A record influences one cell of each of at most 62 levels, or the sum of
	// all records and one bin, and d+1 values a round.
	f, err := newFrame(j.Method(), &j.Data, j.K, budget, j.Laplace || budget.Delta == 0, j.Neighbours,
		62+(max(j.Rounds, mostRounds)+2)*(j.Clients[0].Points.D+1), j.Seed)
	if err != nil {
		return nil, err
	}
	h := &hybridPlan{frame: f, branch: j.Branch, balance: j.Balance}
	if h.branch == "" || h.branch == "auto" {
		h.branch = f.branch(f.law)
		if j.Balance != 0 {
			h.branch = "tree"
		}
	}
	switch h.branch {
	case "tree":
		h.addTreeBranch(j)
		f.Rounds = len(h.rounds)
	case "projected":
		h.projected = f.addProjected(f.law, j.Rounds)
		f.Rounds = len(h.projected.rounds)
	default:
		h.high = f.addHigh(f.law, j.Rounds)
		f.Rounds = len(h.high.rounds)
	}
	return h, nil
}

// run is what every party does.
func (h *hybridPlan) run(ctx context.Context, p *party) (*protocol.Outcome, error) {
	details := map[string]any{"branch": h.branch}
	o := new(protocol.Outcome)
	var centroids []float32
	var sizes []float64
	var err error
	switch h.branch {
	case "tree":
		var found *treeFound
		if found, err = p.treeBranch(ctx, h); err == nil {
			centroids, sizes = found.centroids, found.sizes
			o.Synopsis, o.LossEstimate = found.cells, &found.loss
		}
		if err == nil && h.balance != 0 {
			details["synopsis_sizes"] = sizes
		}
	case "projected":
		centroids, sizes, err = p.projected(ctx, h.projected)
	default:
		centroids, sizes, err = p.high(ctx, h.high)
	}
	if err != nil {
		return nil, err
	}
	o.Centroids, o.Sizes, o.Iterations, o.Details = widen(centroids), sizes, h.Rounds, details
	return o, nil
}

// branch is the rule, from public numbers only: a tree while every axis can be
// halved about once; else, where the signal is strong, a tree on a few random
// directions, which finds separated clusters; else, where it is not too weak or
// a tree would be hopeless, relative rounds from a random start.
func (f *frame) branch(l law) string {
	halvings, snr, d := f.halvings(l), f.snr(l), float64(f.d)
	switch {
	case d >= max(8, 0.8*halvings) && snr >= 10:
		return "projected"
	case d > halvings && snr >= 5, d >= max(8, 1.5*halvings):
		return "high-d"
	}
	return "tree"
}

// halvings is how often a tree on half of l can halve the box before the cells
// get as small as the noise.
func (f *frame) halvings(l law) float64 { return log2(float64(f.N) * l.share(0.5).mu()) }

// snr is the signal to noise ratio of a cluster: n mu / (k sqrt d).
func (f *frame) snr(l law) float64 {
	return float64(f.N) * l.mu() / (float64(f.k) * math.Sqrt(float64(f.d)))
}

// coarseTree says that the tree halves an axis less than twice on average: a
// cluster lies in few cells, and a cell may hold parts of several.
func coarseTree(halvings float64, d int) bool { return halvings < float64(2*d) }

// refinement is the number of relative rounds after a tree and the radius in
// units of a cluster's root mean square distance: one or two rounds while noise
// decides, more as Lloyd's slow convergence does. Where the tree is coarse, its
// centres are far off and the distances contain the size of a cell: then at
// least three rounds with a smaller radius, unless the signal is too weak.
func refinement(snr, halvings float64, d int) (rounds int, radius float64) {
	rounds, radius = min(int(math.Round(pow(snr, 0.3))), 10), min(max(0.9*pow(snr/10, 0.3), 0.9), 3)
	switch {
	case snr < 50:
		rounds = 1
	case snr < 150:
		rounds = 2
	}
	if coarseTree(halvings, d) && snr >= 4 {
		rounds, radius = max(rounds, 3), 0.6*radius
	}
	return rounds, radius
}

// significant drops the leaves of a coarse tree that are lighter than one
// standard deviation of their noise: the consistent estimate leaves positive
// noise in the empty part of the space, which is most of it. It keeps all where
// a cluster of average size stands less than five deviations above the noise, as
// too much of the clusters would go.
func significant(boxes []synopsis.Box, noise, cluster float64) []synopsis.Box {
	if cluster < 5*noise {
		return boxes
	}
	kept := slices.DeleteFunc(slices.Clone(boxes), func(b synopsis.Box) bool { return b.Weight < noise })
	if len(kept) == 0 {
		return boxes
	}
	return kept
}

func (h *hybridPlan) addTreeBranch(j *Hybrid) {
	f, l := h.frame, h.law
	rounds, c := refinement(f.snr(l), f.halvings(l), f.d)
	if j.Rounds != 0 {
		rounds = max(j.Rounds, 0)
	}
	if j.Balance != 0 {
		rounds = 0
	}
	synopsisShare := 0.5
	if rounds == 0 {
		synopsisShare = 1
	}
	h.reach, h.tree = c, f.addTree(l.share(synopsisShare), f.d)
	for r := range rounds {
		h.rounds = append(h.rounds, f.addRound(fmt.Sprintf("round %d", r+1), l.share((1-synopsisShare)/float64(rounds))))
	}
}

// leafSearch is what the search on a tree's leaves found.
type leafSearch struct {
	boxes []synopsis.Box
	*synopsis.Solution
}

func (p *party) searchLeaves(ctx context.Context, h *hybridPlan, trie *synopsis.Trie) (*leafSearch, error) {
	span := p.Begin(engine.PhaseSearch, p.released)
	defer p.End(span)
	found := &leafSearch{boxes: trie.Boxes(p.d)}
	if h.balance == 0 && coarseTree(p.halvings(p.law), p.d) {
		found.boxes = significant(found.boxes, trie.LeafNoise(), float64(p.N)/float64(p.k))
	}
	points := synopsis.Spread(found.boxes, p.d, 3000)
	stream := p.Public.Stream(int(protocol.Server), 0, "search")
	var err error
	if h.balance != 0 {
		even := 1 / float64(p.k)
		found.Solution, err = synopsis.SearchBalanced(ctx, p.Pool(), points, p.k, even/h.balance, min(even*h.balance, 1), p.searching, stream)
	} else {
		found.Solution, err = synopsis.Search(ctx, p.Pool(), points, p.k, p.searching, stream)
	}
	return found, err
}

// treeFound is what the tree branch ends with: public values.
type treeFound struct {
	centroids []float32
	sizes     []float64
	cells     []engine.Cell
	loss      float64 // mean squared distance to the centroids, as the leaves have it
}

func (p *party) treeBranch(ctx context.Context, h *hybridPlan) (*treeFound, error) {
	trie, err := p.tree(ctx, h.tree, p.records)
	if err != nil {
		return nil, err
	}
	var sizes []float64
	found, err := protocol.Once(p.Party, "search", 0, func() (*leafSearch, error) { return p.searchLeaves(ctx, h, trie) })
	if err != nil {
		return nil, err
	}
	p.noteTopUp(found.Solution)
	if h.balance != 0 && found.TopUp == 0 {
		sizes = found.Weights
		p.Note("the sizes hold on the private synopsis, %.0f to %.0f records a cluster there; the records nearest to a centroid can be more or fewer", slices.Min(sizes), slices.Max(sizes))
	}
	centroids := gridRow(found.Centers, p.bits)
	o := newOffsets(p.Pool(), p.k, p.d, p.bits)
	for r, s := range h.rounds {
		spread, err := protocol.Once(p.Party, "spread", r, func() (*clusterSpread, error) { return leafSpread(found.boxes, centroids, p.N, p.k, p.d), nil })
		if err != nil {
			return nil, err
		}
		if sizes == nil {
			sizes = spread.weights
		}
		radius, scales := make([]float64, p.k), make([]roundScales, p.k)
		for i := range radius {
			radius[i] = min(h.reach*spread.rms[i], 2*math.Sqrt(float64(p.d)))
			scales[i] = p.relativeScales(s.law, radius[i], max(sizes[i], float64(p.N)/float64(10*p.k)))
		}
		sums, counts, err := p.relativeRound(ctx, o, s, centroids, radius, scales)
		if err != nil {
			return nil, err
		}
		moved(s.law, centroids, sums, counts, radius, scales, p.d, p.bits)
		sizes = counts
		p.Show(s.Release, widen(centroids), math.NaN())
		if err := p.EndRound(ctx, r, len(h.rounds)); err != nil {
			return nil, err
		}
	}
	return protocol.Once(p.Party, "summary", 0, func() (*treeFound, error) {
		spread := leafSpread(found.boxes, centroids, p.N, p.k, p.d)
		return &treeFound{centroids, sizes, heaviest(found.boxes), spread.loss}, nil
	})
}

// shownCells is the number of cells of a synopsis that a result keeps.
const shownCells = 1000

// heaviest are the heaviest of the boxes, for people to look at.
func heaviest(boxes []synopsis.Box) []engine.Cell {
	sorted := slices.Clone(boxes)
	slices.SortStableFunc(sorted, func(a, b synopsis.Box) int { return cmp.Compare(b.Weight, a.Weight) })
	cells := make([]engine.Cell, min(len(sorted), shownCells))
	for i := range cells {
		cells[i] = engine.Cell{Lo: sorted[i].Lo, Hi: sorted[i].Hi, Weight: sorted[i].Weight}
	}
	return cells
}

// clusterSpread is the weight of each cluster on the leaves of a tree and its root
// mean square distance; loss is the mean squared distance of all weight.
type clusterSpread struct {
	weights, rms []float64
	loss         float64
}

// leafSpread returns, for each centroid, the weight of the leaf boxes nearest to
// it and the root mean square distance to it, box variance included, shrunk a
// little toward the pooled value.
func leafSpread(boxes []synopsis.Box, centroids []float32, n, k, d int) *clusterSpread {
	weights, rms := make([]float64, k), make([]float64, k)
	spread := 0.0
	for _, b := range boxes {
		best, at := math.Inf(1), 0
		for j := range k {
			sum := 0.0
			for h := range d {
				t := (b.Lo[h]+b.Hi[h])/2 - float64(centroids[j*d+h])
				sum += float64(t * t)
			}
			if sum < best {
				best, at = sum, j
			}
		}
		for h := range d {
			side := b.Hi[h] - b.Lo[h]
			best += float64(side*side) / 12
		}
		weights[at] += b.Weight
		rms[at] += float64(b.Weight * best)
		spread += float64(b.Weight * best)
	}
	prior := float64(n) / float64(2*k)
	for j := range rms {
		rms[j] = math.Sqrt((rms[j] + float64(spread*prior)/float64(n)) / (weights[j] + prior))
	}
	total := 0.0
	for _, w := range weights {
		total += w
	}
	return &clusterSpread{weights, rms, spread / max(total, 1)}
}
