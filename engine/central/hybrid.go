package central

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/synopsis"
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

// Plan implements engine.Job.
func (j *Hybrid) Plan() (engine.Plan, error) { return j, j.Validate() }

// Validate checks the fields.
func (j *Hybrid) Validate() error {
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

// Run runs the protocol.
func (j *Hybrid) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	budget := budgetFor(j.Budget, j.records())
	laplace := j.Laplace || budget.Delta == 0
	s := newSession(ctx, rt, &j.Data, j.K, j.Seed, budget.Delta)
	s.method = j.Method()
	// A record influences one cell of each of at most 62 levels, or the sum of
	// all records and one bin, and d+1 values a round.
	l, err := newLaw(budget, laplace, j.Neighbours, 62+(max(j.Rounds, mostRounds)+2)*(s.d+1))
	if err != nil {
		return nil, fault.Request("hybrid", err.Error(), "raise --delta, or give --delta 0 for Laplace noise")
	}
	branch := j.Branch
	if branch == "" || branch == "auto" {
		branch = s.branch(l)
		if j.Balance != 0 {
			branch = "tree"
		}
	}
	var centroids []float32
	var rounds int
	switch branch {
	case "tree":
		centroids, rounds, err = s.treeBranch(j, l)
	case "projected":
		centroids, rounds, err = s.projectedBranch(j, l)
	default:
		centroids, rounds, err = s.highBranch(j, l)
	}
	if err != nil {
		return nil, err
	}
	res, err := s.result(j.Method(), privacy.Proven, widen(centroids), budget, rounds)
	if err != nil {
		return nil, err
	}
	res.Details = map[string]any{"branch": branch}
	if j.Balance != 0 {
		res.Details["synopsis_sizes"] = s.sizes
	}
	return res, nil
}

// branch is the rule, from public numbers only: a tree while every axis can be
// halved about once; else, where the signal is strong, a tree on a few random
// directions, which finds separated clusters; else, where it is not too weak or
// a tree would be hopeless, relative rounds from a random start.
func (s *session) branch(l law) string {
	halvings, snr, d := s.halvings(l), s.snr(l), float64(s.d)
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
func (s *session) halvings(l law) float64 { return log2(float64(s.n) * l.share(0.5).mu()) }

// snr is the signal to noise ratio of a cluster: n mu / (k sqrt d).
func (s *session) snr(l law) float64 {
	return float64(s.n) * l.mu() / (float64(s.k) * math.Sqrt(float64(s.d)))
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

func (s *session) treeBranch(j *Hybrid, l law) ([]float32, int, error) {
	rounds, c := refinement(s.snr(l), s.halvings(l), s.d)
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
	trie, err := s.tree(l.share(synopsisShare), s.panels())
	if err != nil {
		return nil, 0, err
	}
	span := s.rt.Begin(engine.PhaseSearch, s.rounds, engine.Server)
	boxes := trie.Boxes(s.d)
	if j.Balance == 0 && coarseTree(s.halvings(l), s.d) {
		boxes = significant(boxes, trie.LeafNoise(), float64(s.n)/float64(s.k))
	}
	points := synopsis.Spread(boxes, s.d, 3000)
	var found *synopsis.Solution
	stream := s.streams.Stream(engine.Server, 0, "search")
	if j.Balance != 0 {
		even := 1 / float64(s.k)
		found, err = synopsis.SearchBalanced(s.ctx, s.rt.Pool(), points, s.k, even/j.Balance, min(even*j.Balance, 1), s.searching(), stream)
	} else {
		found, err = synopsis.Search(s.ctx, s.rt.Pool(), points, s.k, s.searching(), stream)
	}
	s.rt.End(span)
	if err != nil {
		return nil, 0, err
	}
	s.noteTopUp(found)
	if j.Balance != 0 && found.TopUp == 0 {
		s.sizes = found.Weights
		s.note("the sizes hold on the private synopsis, %.0f to %.0f records a cluster there; the records nearest to a centroid can be more or fewer", slices.Min(s.sizes), slices.Max(s.sizes))
	}
	centroids := gridRow(found.Centers, s.bits)
	o := newOffsets(s.rt.Pool(), s.k, s.d, s.bits)
	var sizes []float64
	for r := range rounds {
		weights, rms := leafSpread(boxes, centroids, s.n, s.k, s.d)
		if sizes == nil {
			sizes = weights
		}
		own := l.share((1 - synopsisShare) / float64(rounds))
		radius, scales := make([]float64, s.k), make([]roundScales, s.k)
		for i := range radius {
			radius[i] = min(c*rms[i], 2*math.Sqrt(float64(s.d)))
			scales[i] = s.relativeScales(own, radius[i], max(sizes[i], float64(s.n)/float64(10*s.k)))
		}
		sums, counts, err := s.relativeRound(o, roundName(r), own, centroids, radius, scales)
		if err != nil {
			return nil, 0, err
		}
		moved(own, centroids, sums, counts, radius, scales, s.d, s.bits)
		sizes = counts
		s.rt.IterationEnd(r, rounds)
	}
	return centroids, rounds, nil
}

// leafSpread returns, for each centroid, the weight of the leaf boxes nearest to
// it and the root mean square distance to it, box variance included, shrunk a
// little toward the pooled value.
func leafSpread(boxes []synopsis.Box, centroids []float32, n, k, d int) (weights, rms []float64) {
	weights, rms = make([]float64, k), make([]float64, k)
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
	return weights, rms
}
