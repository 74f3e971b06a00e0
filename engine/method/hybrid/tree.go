package hybrid

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/kernels"
)

// coarseTree says that the tree halves an axis less than twice on average: a
// cluster lies in few cells, and a cell may hold parts of several.
func coarseTree(halvings float64, d int) bool { return halvings < float64(2*d) }

// refinement is the number of relative rounds after a tree and the radius in
// units of a cluster's root mean square distance: one or two rounds while noise
// decides, more as Lloyd's slow convergence does. Where the tree is coarse, its
// centres are far off and the distances contain the size of a cell: then at
// least three rounds with a smaller radius, unless the signal is too weak.
func refinement(snr, halvings float64, d int) (rounds int, radius float64) {
	rounds, radius = min(int(math.Round(elementary.Pow(snr, 0.3))), 10), min(max(0.9*elementary.Pow(snr/10, 0.3), 0.9), 3)
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

// treeOverseed is how many times more clusters than asked for are looked for on a coarse tree, 0
// where its own search decides: that shows badly which cells belong together, and no round leaves a
// wrong choice. The first of several rounds measures the clusters; the tree, moved to what it has
// measured, is searched again (measured.search). More clusters have fewer records each, so that the
// signal decides, and none are looked for where an average cluster stands less than nine deviations
// above the noise of a count. A round costs the same whatever its number of clusters (THEOREMS.md T2);
// the searches are post-processing.
func (h *plan) treeOverseed(rounds int) float64 {
	if rounds < 2 || !coarseTree(h.halvings(), h.D) || h.Signal(h.Share) < float64(9*h.K) {
		return 0
	}
	return min(max(overseed, h.SNR()/10), 3)
}

// oneLevelMost is the most columns in which a coarse tree may have one level.
const oneLevelMost = 3

// oneLevel is how many halvings a coarse tree of one level has, 0 where the tree has levels: those that are coarser
// than the cells that the signal asks for would tell little and take their part of the budget. It halves each axis
// twice: wider cells would not tell how wide clusters are, nor would those of more columns, which records fill less.
func oneLevel(halvings float64, d int) int {
	if !coarseTree(halvings, d) || d > oneLevelMost || halvings < float64(1.75*float64(d)) {
		return 0
	}
	return 2 * d
}

// addTree plans the tree with the whole of l.
func (h *plan) addTree(l staged.Share) *staged.Tree {
	if cuts := oneLevel(h.halvings(), h.D); cuts > 0 {
		return h.AddGrid(l, h.D, min(cuts, h.D*h.FractionBits))
	}
	return h.AddTree(l, h.D)
}

func (h *plan) addTreeBranch(j *Job) {
	f, l := h.Plan, h.Share
	share := f.MarginalShare()
	switch {
	case j.Frame == "off":
		share = 0
	case j.Frame == "on" && share == 0:
		share = staged.MarginalMost
	}
	if share > 0 {
		h.columns = f.AddMarginals(l.Part(share))
		l = l.Part(1 - share)
	}
	rounds, c := refinement(f.SNR(), h.halvings(), f.D)
	if j.Iterations != 0 {
		rounds = max(j.Iterations, 0)
	}
	if j.Balance != 0 {
		rounds = 0
	}
	synopsisShare := 0.5
	if rounds == 0 {
		synopsisShare = 1
	}
	h.reach, h.tree = c, h.addTree(l.Part(synopsisShare))
	h.overseed = h.treeOverseed(rounds)
	for r := range rounds {
		k := j.K
		if r == 0 && h.overseed > 0 {
			k = overseeds(h.overseed, k, f.N)
		}
		h.rounds = append(h.rounds, f.AddRound(fmt.Sprintf("round %d", r+1), l.Part((1-synopsisShare)/float64(rounds)),
			k))
	}
}

// ground is the tree of a run, with what it stands on: the order of its cuts, and the frame
// that it divides, nil for the whole box. All of it is public.
type ground struct {
	trie  *synopsis.Trie
	order []int
	frame *staged.Frame
}

// releaseTree releases the tree: of the box, cut in turn, or of the frame that holds the
// records, of which the widest side is cut.
func (h *plan) releaseTree(ctx context.Context, p *staged.Party) (*ground, error) {
	g := &ground{order: synopsis.InTurn(p.D, h.tree.Cuts())}
	var image func(int, []float32, []float32)
	var err error
	if h.columns != nil {
		if g.frame, err = p.ReleaseFrame(ctx, h.columns); err != nil {
			return nil, err
		}
	}
	if g.frame.Whole() {
		g.frame = nil
	} else {
		g.order = synopsis.Widest(g.frame.Widths(), h.tree.Cuts(), p.FractionBits)
		image = g.frame.Image(p.FractionBits)
	}
	g.trie, err = p.ReleaseTreeAlong(ctx, h.tree, p.Records, g.order, image)
	return g, err
}

// leafSearch is what the search on a tree's leaves found: k clusters, or more that are to be measured.
type leafSearch struct {
	boxes []synopsis.Box
	curve []engine.KFit
	k     int
	// points are what was searched.
	points *synopsis.Weighted
	*synopsis.Solution
}

// unseen is how many of n records, beside a cell that has most of them, are in cells too light to be told from noise,
// which a coarse tree drops: a tenth of the records, spread over the box, can have most of the loss, and all clusters
// would start in the one cell. It is 0 where the cells that are kept are as many as clusters, or have more of what is
// beside the heavy one, or where all of that is no more than the noise of a count makes of so many leaves.
func unseen(kept []synopsis.Box, n float64, k int, noise float64, leaves int) float64 {
	heaviest, seen := 0.0, 0.0
	for _, b := range kept {
		heaviest, seen = max(heaviest, b.Weight), seen+b.Weight
	}
	rest, beside := n-seen, n-heaviest
	if len(kept) >= k || heaviest < beside || rest < beside/2 ||
		beside < float64(noise*math.Sqrt(2*elementary.Log(float64(leaves)))) {
		return 0
	}
	return rest
}

// whole is a box of all that a tree divides, with so many records.
func (g *ground) whole(d int, weight float64) synopsis.Box {
	b := synopsis.Box{Weight: weight}
	for range d {
		b.Lo, b.Hi = append(b.Lo, -1), append(b.Hi, 1)
	}
	if g.frame != nil {
		g.frame.Place([]synopsis.Box{b})
	}
	return b
}

// spreadPoints is the number of points that the leaves of a tree are searched as, if they are not more.
const spreadPoints = 3000

func (h *plan) searchLeaves(ctx context.Context, p *staged.Party, ground *ground) (*leafSearch, error) {
	span := p.Begin(engine.PhaseSearch, p.Released)
	defer p.End(span)
	trie := ground.trie
	found := &leafSearch{boxes: trie.BoxesAlong(p.D, ground.order)}
	leaves := len(found.boxes)
	if ground.frame != nil {
		ground.frame.Place(found.boxes)
	}
	if h.balance == 0 && (h.branch == "grid" || coarseTree(h.halvings(), p.D)) {
		found.boxes = h.significant(found.boxes, trie.LeafNoise(), float64(p.N), float64(p.K))
	}
	searched := found.boxes
	if rest := unseen(found.boxes, float64(p.N), p.K, trie.LeafNoise(), trie.Leaves()); rest > 0 {
		searched = append(slices.Clip(searched), ground.whole(p.D, rest))
	}
	points := synopsis.Spread(searched, p.D, spreadPoints)
	number := &numbered{k: p.K}
	var err error
	if h.least > 0 {
		if number, err = h.chooseK(ctx, p, points); err != nil {
			return nil, err
		}
	}
	found.curve, found.k, found.points = number.curve, number.k, points
	stream := p.Public.Stream(int(protocol.Server), 0, "search")
	found.Solution, err = h.searchPoints(ctx, p, points, number.k, stream)
	if err == nil && len(found.boxes) < leaves && h.branch == "tree" {
		err = h.gather(ctx, p, ground, found, stream)
	}
	return found, err
}

// searchPoints looks for k clusters of points, or for as many as are to be measured.
func (h *plan) searchPoints(ctx context.Context, p *staged.Party, points *synopsis.Weighted, k int,
	stream synopsis.Source) (*synopsis.Solution, error) {
	searching := p.Searching
	if h.balance != 0 {
		even := 1 / float64(p.K)
		return synopsis.SearchBalanced(ctx, p.Pool(), points, p.K, even/h.balance, min(even*h.balance, 1), searching, stream)
	}
	if h.overseed > 0 {
		// Where there are more than enough clusters a few starts do, without swaps, of which each takes longer.
		k = overseeds(h.overseed, k, p.N)
		searching.Starts, searching.Swaps, searching.Gain = cmp.Or(searching.Starts, 5), -1, startGain
	}
	return synopsis.Search(ctx, p.Pool(), points, k, searching, stream)
}

// gatherGain is the part of the loss of what was found that clusters of the gathered leaves have at most to take its
// place.
const gatherGain = 0.8

// gather searches all leaves, the light ones gathered, where these have been dropped, and takes what it finds if that
// is clearly better for all leaves: then a cluster is in light ones alone, as one that the middles of several columns
// cut is in many cells of few records each, and no round would find it. Else what was found has less noise in it. It
// is post-processing.
func (h *plan) gather(ctx context.Context, p *staged.Party, g *ground, found *leafSearch,
	stream synopsis.Source) error {
	boxes := g.trie.GatheredAlong(p.D, g.order)
	if g.frame != nil {
		g.frame.Place(boxes)
	}
	points := synopsis.Spread(boxes, p.D, spreadPoints)
	all, err := h.searchPoints(ctx, p, points, found.k, stream)
	if err != nil {
		return err
	}
	if all.Loss < float64(gatherGain*lossOf(points, staged.GridRow(found.Centers, p.FractionBits))) {
		found.boxes, found.points, found.Solution = boxes, points, all
	}
	return nil
}

// treeFound is what the tree branch ends with: public values.
type treeFound struct {
	centroids []float32
	sizes     []float64
	cells     []engine.Cell
	curve     []engine.KFit
	loss      float64 // mean squared distance to the centroids, see lossEstimate
}

func (h *plan) searchTree(ctx context.Context, p *staged.Party) (*treeFound, error) {
	ground, err := h.releaseTree(ctx, p)
	if err != nil {
		return nil, err
	}
	var sizes []float64
	found, err := protocol.Once(p.Party, "search", 0,
		func() (*leafSearch, error) { return h.searchLeaves(ctx, p, ground) })
	if err != nil {
		return nil, err
	}
	p = h.chosen(p, found.curve, found.k)
	p.NoteTopUp(found.Solution)
	if h.branch == "grid" {
		sizes = found.Weights
	}
	if h.balance != 0 && found.TopUp == 0 {
		sizes = found.Weights
		p.Note("the sizes hold on the private synopsis, %.0f to %.0f records a cluster there; "+
			"the records nearest to a centroid can be more or fewer", slices.Min(sizes), slices.Max(sizes))
	}
	centroids := staged.GridRow(found.Centers, p.FractionBits)
	least := make([]float64, p.K) // variance of the noise in a centroid's columns
	o := staged.NewOffsets(p.Pool(), len(found.Weights), p.D, p.FractionBits)
	boxes := sync.OnceValue(func() *leaves { return newLeaves(found.boxes, p.D) })
	points, settled := found.points, false
	for r, s := range h.rounds {
		var m *measured
		if m, least, err = h.treeRound(ctx, p, r, o, boxes, centroids, sizes); err != nil {
			return nil, err
		}
		sizes = m.counts
		overseeded := r == 0 && h.overseed > 0
		if overseeded || !settled && h.again(p, points.Len(), r) {
			next, err := m.search(ctx, p, r, points, h.sure(p))
			if err != nil {
				return nil, err
			}
			centroids, sizes, points, settled = slices.Clone(next.centroids), next.sizes, next.points, next.settled
		}
		if overseeded {
			o = staged.NewOffsets(p.Pool(), p.K, p.D, p.FractionBits)
		} else {
			p.Show(s.Release, staged.Widen(centroids), math.NaN())
		}
		if err := p.EndRound(ctx, r, len(h.rounds)); err != nil {
			return nil, err
		}
	}
	return protocol.Once(p.Party, "summary", 0, func() (*treeFound, error) {
		var loss float64
		var failed error
		if len(found.boxes)*p.K*p.D <= lossMost {
			loss = lossEstimate(found.boxes, centroids, p.K, p.D, ground.trie.LeafNoise(), ground.trie.EmptyWeight(), least,
				func(n int, task func(i int)) {
					failed = cmp.Or(failed, p.Pool().Run(ctx, n, func(_, i int) { task(i) }))
				})
		} else { // as if records filled their boxes, of which there are many
			loss = boxes().spread(centroids, p.N, p.K).loss
		}
		return &treeFound{centroids, sizes, heaviest(found.boxes), found.curve, loss}, failed
	})
}

// treeRound is a relative round of the clusters that there are, which it moves, with the
// radii that the leaves tell. sizes are what is known of their sizes, nil for nothing. It returns what it has measured,
// and the variance of the noise in each one's columns.
func (h *plan) treeRound(ctx context.Context, p *staged.Party, r int, o *staged.Offsets, boxes func() *leaves,
	centroids []float32, sizes []float64) (m *measured, least []float64, err error) {
	s, k := h.rounds[r], len(centroids)/p.D
	spread, err := protocol.Once(p.Party, "spread", r,
		func() (*clusterSpread, error) { return boxes().spread(centroids, p.N, k), nil })
	if err != nil {
		return nil, nil, err
	}
	if sizes == nil {
		sizes = spread.weights
	}
	radius, scales := make([]float64, k), make([]staged.Scales, k)
	for i := range radius {
		radius[i] = p.CutRadius(s.Share, h.reach*spread.rms[i])
		scales[i] = p.RelativeScales(s.Share, radius[i], max(sizes[i], float64(p.N)/float64(10*k)))
	}
	m = &measured{from: slices.Clone(centroids), to: centroids, noise: make([]float64, k)}
	sums, counts, err := p.RelativeRound(ctx, o, s, centroids, radius, scales)
	if err != nil {
		return nil, nil, err
	}
	m.counts = counts
	staged.Move(s.Share, centroids, sums, counts, radius, scales, p.D, p.FractionBits, true)
	least = make([]float64, k)
	for i := range least {
		m.noise[i] = math.Sqrt(s.Share.Variance(scales[i].Counts))
		least[i] = s.Share.Variance(scales[i].Sums) / max(float64(counts[i]*counts[i]), 1)
		least[i] = min(least[i], float64(radius[i]*radius[i])/float64(p.D)) // as Move cuts
	}
	return m, least, nil
}

// shownCells is the number of cells of a synopsis that a result keeps.
const shownCells = 1000

// heaviest are the heaviest of the boxes, for people to look at.
func heaviest(boxes []synopsis.Box) []engine.Cell {
	order := make([]int, len(boxes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(boxes[b].Weight, boxes[a].Weight), a-b) })
	cells := make([]engine.Cell, min(len(order), shownCells))
	for i := range cells {
		b := &boxes[order[i]]
		cells[i] = engine.Cell{Lo: b.Lo, Hi: b.Hi, Weight: b.Weight}
	}
	return cells
}

// clusterSpread is the weight of each cluster on the leaves of a tree and its root
// mean square distance; loss is the mean squared distance of all weight.
type clusterSpread struct {
	weights, rms []float64
	loss         float64
}

// leaves are the boxes of a tree's leaves, with their middles as kernels read them.
type leaves struct {
	boxes   []synopsis.Box
	middles []float64 // row-major
	panels  *kernels.Panels
}

func newLeaves(boxes []synopsis.Box, d int) *leaves {
	l := &leaves{boxes: boxes, middles: make([]float64, 0, len(boxes)*d), panels: kernels.NewPanels(len(boxes), d)}
	rows := make([]float32, 0, len(boxes)*d)
	for _, b := range boxes {
		for h := range d {
			x := (b.Lo[h] + b.Hi[h]) / 2
			l.middles, rows = append(l.middles, x), append(rows, float32(x))
		}
	}
	kernels.Pack(l.panels, rows)
	return l
}

// spread returns, for each centroid, the weight of the leaf boxes nearest to
// it and the root mean square distance to it, box variance included, shrunk a
// little toward the pooled value.
func (l *leaves) spread(centroids []float32, n, k int) *clusterSpread {
	boxes, d := l.boxes, l.panels.D
	weights, rms, spread := make([]float64, k), make([]float64, k), 0.0
	prepared, nearest := kernels.NewCentroids(k, d), make([]uint16, len(boxes))
	prepared.Set(centroids)
	kernels.Assign(*l.panels, prepared, nearest, nil)
	for i, b := range boxes {
		at := int(nearest[i])
		best := elementary.SquaredDistance(l.middles[i*d:(i+1)*d], centroids[at*d:])
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
