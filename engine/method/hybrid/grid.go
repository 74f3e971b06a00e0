package hybrid

import (
	"math"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// A grid takes the place of a tree and rounds in up to gridColumns columns while all records stand less than gridSignal
// deviations above the noise of a count for each cluster: beyond, rounds pay. It halves the axes at least gridTimes
// times on average, as it sees nothing within a cell, and records may be in a small part of the box.
const (
	gridColumns, gridSignal, gridTimes = 3, 25, 2.5
	// gridBits bounds the cells.
	gridBits = 20
)

// chooseGrid is the rule for a grid in place of a tree, from public numbers only. Its counts have all of the budget,
// so that none goes to levels that are coarser than the noise asks for, or to rounds that it would hide; and of one
// count Laplace noise is mostly less than Gaussian noise, which is better for many releases. With Gaussian noise a tree
// is as good.
func (h *plan) chooseGrid(j *Job) error {
	auto := (j.Branch == "" || j.Branch == "auto") && h.branch == "tree" && j.Balance == 0 && j.Iterations == 0 &&
		j.Frame != "on"
	if h.branch != "grid" && !auto {
		return nil
	}
	single := h.Plan
	if j.Mechanism == "" && h.Share.Gaussian {
		pure, err := j.begin(protocol.Laplace)
		if err != nil {
			return err
		}
		if pure.CountNoise(pure.Share) < h.CountNoise(h.Share) {
			single = pure
		}
	}
	signal := float64(h.N) / single.CountNoise(single.Share)
	cuts := gridCuts(signal, h.D, h.K, h.FractionBits)
	if auto && (single.Share.Gaussian || h.D > gridColumns || signal > gridSignal*float64(h.K) ||
		float64(cuts) < gridTimes*float64(h.D)) {
		return nil
	}
	h.branch, h.Plan, h.tree = "grid", single, single.AddGrid(single.Share, h.D, cuts)
	return nil
}

// gridCuts is how many halvings make a grid of about sqrt(6.5 k signal) cells, where all records stand signal
// deviations above the noise of a count: more would have more noise together, fewer would be wider than what parts the
// clusters. Three columns and more are cut alike.
func gridCuts(signal float64, d, k, fractionBits int) int {
	cuts := max(elementary.Log2(6.5*float64(k)*signal)/2, 1)
	if d > 2 {
		cuts = float64(d) * max(math.Round(cuts/float64(d)), 1)
	}
	return min(int(math.Round(cuts)), d*fractionBits, gridBits)
}

// gridDropped is the part of the records that a grid's light cells have at most where they are dropped. It comes from
// lsun, s1 and generated sets of two and three columns.
const gridDropped = 0.12

// significant are the cells that are searched for k clusters of n records: the light ones are dropped, as most of them
// are empty, unless they are of a grid and have too many of the records for that. What noise they have is then all
// around, and without them centres would go to the cells that noise happens to have made heavy. It is
// post-processing.
func (h *plan) significant(cells []synopsis.Box, noise, n, k float64) []synopsis.Box {
	kept, weight := synopsis.Significant(cells, noise, n/k), 0.0
	for _, c := range kept {
		weight += c.Weight
	}
	if h.branch == "grid" && weight < float64((1-gridDropped)*n) {
		return cells
	}
	return kept
}
