package kernels

import "fmt"

// weightedChains is the number of chains of a weighted sum: point i of a call is
// a term of chain i modulo 8, so that points of one cluster seldom wait for each
// other.
const weightedChains = 8

// maxWeightedTable is the number of rows times columns up to which a weighted
// accumulator has all chains (1 MiB); above, a sum is one chain.
const maxWeightedTable = 1 << 14

// WeightedPoints are points with weights in the form that the weighted kernels
// read. They are read-only for the kernels, so workers may share them.
type WeightedPoints struct {
	Points  Panels
	Weights []float64 // [N]
	// rows holds, for each point, the products of its weight with the
	// coordinates, each rounded to float64, the weight, and zeros: [N][width].
	rows  []float64
	width int
}

// NewWeightedPoints joins points, which it shares, with their weights, which it
// copies. Weights are finite. It panics unless len(weights) = p.N.
func NewWeightedPoints(p Panels, weights []float64) *WeightedPoints {
	p.check("NewWeightedPoints")
	checkLength("NewWeightedPoints", "weights", len(weights), p.N)
	w := &WeightedPoints{Points: p, Weights: aligned[float64](p.N), width: weightedWidth(p.D)}
	w.rows = aligned[float64](p.N * w.width)
	copy(w.Weights, weights)
	for i, weight := range weights {
		row := w.rows[i*w.width : (i+1)*w.width]
		base := i/Lanes*p.D*Lanes + i%Lanes
		for j := range p.D {
			row[j] = float64(weight * float64(p.Data[base+j*Lanes]))
		}
		row[p.D] = weight
	}
	return w
}

// weightedWidth is the length of a row for d coordinates and a weight.
func weightedWidth(d int) int {
	if d < 4 {
		return 4
	}
	return (d + 8) &^ 7
}

// WeightedAccumulator collects weighted sums, total weights and the cost of K
// clusters in float64. A kernel adds the sum of its call to each, and that sum
// has one order of operations on every path: products are rounded, point i of
// the call is added to chain i modulo 8 in point order, and the chains are added
// as ((0+1)+(2+3))+((4+5)+(6+7)). Where K and D are so large that the chains
// would leave the caches, (K+1)(D+1) above some 16384, Sums and Weights have one
// chain. An accumulator belongs to one worker at a time.
type WeightedAccumulator struct {
	K, D    int
	Sums    []float64 // [K][D]
	Weights []float64 // [K]
	Cost    float64   // sum of weight times squared distance, of AssignAccumulateWeighted
	// table holds the chains of a call, [K+1][chains][width], with a row for the
	// label K; it is zero between calls.
	table         []float64
	chains, width int
	costs         [weightedChains]float64
}

// NewWeightedAccumulator makes an empty accumulator. It panics unless
// 0 < k <= 65535 and d > 0.
func NewWeightedAccumulator(k, d int) *WeightedAccumulator {
	if k <= 0 || k > maxK || d <= 0 {
		panic(fmt.Sprintf("kernels: NewWeightedAccumulator: k=%d, d=%d, want 0 < k <= %d and d > 0", k, d, maxK))
	}
	a := &WeightedAccumulator{K: k, D: d, chains: weightedChains, width: weightedWidth(d)}
	if (k+1)*a.width > maxWeightedTable {
		a.chains = 1
	}
	table := (k + 1) * a.chains * a.width
	memory := newOwned(pageBytes, 8*k*d, 8*k, 8*table)
	a.Sums, a.Weights, a.table = part[float64](&memory, k*d), part[float64](&memory, k), part[float64](&memory, table)
	return a
}

// Reset sets all sums, weights and the cost to zero.
func (a *WeightedAccumulator) Reset() {
	clear(a.Sums)
	clear(a.Weights)
	a.Cost = 0
}

// check panics unless the accumulator fits the points.
func (a *WeightedAccumulator) check(what string, w *WeightedPoints) {
	if a.D != w.Points.D {
		panic(fmt.Sprintf("kernels: %s: accumulator has d=%d, points have d=%d", what, a.D, w.Points.D))
	}
}

// AssignAccumulateWeighted assigns each point to its nearest centroid, as
// [Assign2] does, and adds the weighted point to the sums, the weight to the
// weight, and the weight times the squared distance to the cost, in one pass over
// the points. labels, dist and second may be nil.
func AssignAccumulateWeighted(w *WeightedPoints, c *Centroids, labels []uint16, dist, second []float32,
	acc *WeightedAccumulator) {
	const what = "AssignAccumulateWeighted"
	p := w.Points
	checkPair(what, &p, c)
	if labels != nil {
		checkLength(what, "labels", len(labels), p.N)
	}
	if dist != nil {
		checkLength(what, "dist", len(dist), p.N)
	}
	if second != nil {
		checkLength(what, "second", len(second), p.N)
	}
	acc.check(what, w)
	checkClusters(what, acc.K, c)
	var labelBlock [chunkPoints]uint16
	var distBlock [chunkPoints]float32
	for lo := 0; lo < p.N; lo += chunkPoints {
		hi := min(lo+chunkPoints, p.N)
		part := p.Slice(lo, hi)
		l, x, s := labelBlock[:hi-lo], distBlock[:hi-lo], second
		if labels != nil {
			l = labels[lo:hi]
		}
		if dist != nil {
			x = dist[lo:hi]
		}
		if second != nil {
			s = second[lo:hi]
		}
		assign(&part, c, l, x, s)
		addWeighted(w.rows[lo*w.width:hi*w.width], w.width, l, acc.table, acc.chains)
		addCosts(w.Weights[lo:hi], x, &acc.costs)
	}
	acc.fold()
}

// Width is the length of the rows that [AddMembers] adds, more than D.
func (w *WeightedPoints) Width() int { return w.width }

// AddMembers adds the row of each of the points that which names, in that order, to the row
// of sums that its label names: the products of its weight with its coordinates, each
// rounded to float64, its weight, and zeros. A row of sums has Width values and
// len(labels) = N. It panics where a point or the row of a label does not exist.
func AddMembers(w *WeightedPoints, which []int32, labels []uint16, sums []float64) {
	const what = "AddMembers"
	checkLength(what, "labels", len(labels), w.Points.N)
	checkPoints(what, which, w.Points.N)
	if len(which) > 0 {
		checkLabels(what, labels, len(sums)/w.width-1)
	}
	addMembers(w, which, labels, sums)
}

// WeightedCost is the sum of weight times squared distance, in the order of the cost of
// a [WeightedAccumulator]. It panics unless len(dist) = len(weights).
func WeightedCost(weights []float64, dist []float32) float64 {
	checkLength("WeightedCost", "dist", len(dist), len(weights))
	var costs [weightedChains]float64
	addCosts(weights, dist, &costs)
	return tree(&costs)
}

// fold adds the chains to the sums and clears them.
func (a *WeightedAccumulator) fold() {
	if a.chains > 1 {
		foldWeighted(a.table, a.K, a.width)
	}
	for j := range a.K {
		row := a.table[j*a.chains*a.width:][:a.width]
		sums := a.Sums[j*a.D : (j+1)*a.D]
		for h := range sums {
			sums[h] += row[h]
		}
		a.Weights[j] += row[a.D]
		clear(row)
	}
	clear(a.table[a.K*a.chains*a.width:])
	a.Cost += tree(&a.costs)
	clear(a.costs[:])
}

// tree adds the chains of a sum.
func tree(c *[weightedChains]float64) float64 {
	return ((c[0] + c[1]) + (c[2] + c[3])) + ((c[4] + c[5]) + (c[6] + c[7]))
}

// addWeightedPortable adds each row to the chain of its point in the row of
// table that its label names. The first point is one of chain 0.
func addWeightedPortable(rows []float64, width int, labels []uint16, table []float64, chains int) {
	for i, label := range labels {
		to := table[(int(label)*chains+i%chains)*width:][:width]
		for j, x := range rows[i*width : (i+1)*width] {
			to[j] += x
		}
	}
}

// addMembersPortable is the reference form of [AddMembers].
func addMembersPortable(w *WeightedPoints, which []int32, labels []uint16, sums []float64) {
	for _, i := range which {
		to := sums[int(labels[i])*w.width:][:w.width]
		for j, x := range w.rows[int(i)*w.width:][:w.width] {
			to[j] += x
		}
	}
}

// addCostsPortable adds weight times distance to the chain of each point. The
// first point is one of chain 0.
func addCostsPortable(weights []float64, dist []float32, costs *[weightedChains]float64) {
	for i, w := range weights {
		costs[i%weightedChains] += float64(w * float64(dist[i]))
	}
}

// foldWeightedPortable replaces the first chain of each row by the sum of all,
// and clears the others.
func foldWeightedPortable(table []float64, clusters, width int) {
	for j := range clusters {
		row := table[j*weightedChains*width:][:weightedChains*width]
		for h := range width {
			var c [weightedChains]float64
			for r := range c {
				c[r] = row[r*width+h]
				row[r*width+h] = 0
			}
			row[h] = tree(&c)
		}
	}
}

func addWeighted(rows []float64, width int, labels []uint16, table []float64, chains int) {
	const block = weightedChains
	if current == generic {
		addWeightedPortable(rows, width, labels, table, chains)
		return
	}
	most := max(1, callBudget/block/width)
	for len(labels) >= block {
		n := min(len(labels)/block, most)
		switch {
		case chains == 1:
			asmAddWeighted(&rows[0], n, width, &labels[0], &table[0], 8*width, 0)
		case width <= weightedChains: // 4 or 8
			asmAddWeightedN(width, &rows[0], n, &labels[0], &table[0])
		default:
			asmAddWeighted(&rows[0], n, width, &labels[0], &table[0], 8*width*chains, 8*width)
		}
		rows, labels = rows[n*block*width:], labels[n*block:]
	}
	addWeightedPortable(rows, width, labels, table, chains)
}

func addCosts(weights []float64, dist []float32, costs *[weightedChains]float64) {
	if blocks := len(weights) / weightedChains; current != generic && blocks > 0 {
		asmWeightedCosts(&weights[0], &dist[0], blocks, &costs[0])
		weights, dist = weights[blocks*weightedChains:], dist[blocks*weightedChains:]
	}
	addCostsPortable(weights, dist, costs)
}

func foldWeighted(table []float64, clusters, width int) {
	if current == generic {
		foldWeightedPortable(table, clusters, width)
		return
	}
	asmFoldWeighted(&table[0], clusters, width)
}
