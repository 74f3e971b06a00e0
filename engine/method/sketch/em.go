package sketch

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/cohort-engine/cohort/kernels"
)

// The joint likelihood of all sketches of one key, for small gamma: cell g is a
// Poisson process of rate w_g + n_c in the time -ln(1-u) of the hashes, and the
// value of sketch (l, a) is the first arrival of the cells with g_l = a. Each
// distinct value v of a key is an event that one of its compatible cells
// caused: the product over parties of {a} where the party holds v, and of the
// clusters that arrived before v where it does not. With E_g the time until the
// last of a cell's sketches arrived, summed over keys,
//
//	log L = sum over events of ln sum_{g compatible} (w_g + n_c) - sum_g E_g (w_g + n_c),
//
// which is concave in w >= 0 and climbed by expectation maximisation. The
// phantoms stay inside the model as known background and are never subtracted.

const (
	emSteps = 100 // steps before the first pruning and after each
	// emEvents bounds the memory of the events: some 64 bytes each.
	emEvents = 1 << 26
	// maxColumns is the largest number of columns (see likelihoodSide): one bit each.
	maxColumns = kernels.MaxCells
	// maxMask is the largest number of clusters of a party in an event's mask.
	maxMask = 64
)

// Cells with w <= threshold sqrt(n_c/E) are dropped, once for each threshold: the phantoms alone may explain them.
// emThresholds are for weights that are used as they are; what a cell of records shares with many empty ones comes back
// to it as they are dropped, so they rise. mixtureThresholds are for tables that a mixture is fitted to, which tells
// noise from what all tables have in common.
var (
	emThresholds      = []float64{2, 3, 4, 5}
	mixtureThresholds = []float64{1, 1}
)

// masks holds, for the parties one after the other, one bit per cluster.
type masks [2]uint64

func (m *masks) set(bit int) { m[bit>>6] |= 1 << (bit & 63) }

// slice returns the bits [lo, lo+n), n <= 64.
func (m *masks) slice(lo, n int) uint64 {
	x := m[lo>>6] >> (lo & 63)
	if lo>>6 == 0 && lo&63 != 0 {
		x |= m[1] << (64 - lo&63)
	}
	if n == 64 {
		return x
	}
	return x & (1<<n - 1)
}

// tail returns the bits from lo on.
func (m masks) tail(lo int) masks {
	if lo >= 64 {
		return masks{0, m[1] &^ (1<<(lo-64) - 1)}
	}
	return masks{m[0] &^ (1<<lo - 1), m[1]}
}

// event is a compatible set and how often it occurred.
type event struct {
	sets  masks
	count float64
}

// countSets orders sets by those of the last parties first, and counts equal ones. bits
// is the number of bits in use. It spoils the list.
func countSets(list []masks, bits int) []event {
	other := make([]masks, len(list))
	for shift := 0; shift < bits; shift += 8 {
		word, shift := shift/64, shift%64
		var ends [256]int
		for i := range list {
			ends[uint8(list[i][word]>>shift)]++
		}
		for d := 1; d < len(ends); d++ {
			ends[d] += ends[d-1]
		}
		for i := len(list) - 1; i >= 0; i-- {
			d := uint8(list[i][word] >> shift)
			ends[d]--
			other[ends[d]] = list[i]
		}
		list, other = other, list
	}
	var events []event
	for _, x := range list {
		if n := len(events); n > 0 && events[n-1].sets == x {
			events[n-1].count++
			continue
		}
		events = append(events, event{x, 1})
	}
	return events
}

// eventKeys is the number of keys whose events one call collects.
const eventKeys = 256

// collectEvents returns the merged events of all keys, in a fixed order.
func collectEvents(ctx context.Context, run runner, v *View) ([]event, error) {
	k := v.clusters()
	blocks := make([][]masks, (v.keys()+eventKeys-1)/eventKeys)
	err := run.Run(ctx, len(blocks), func(_, block int) {
		var list []masks
		var items []uint32
		var arrived masks
		for i := block * eventKeys; i < min((block+1)*eventKeys, v.keys()); i++ {
			items = items[:0]
			for l, s := range v.Sketches {
				for a, h := range s.Row(i) {
					// Highest first, then by party and cluster.
					items = append(items, uint32(math.MaxUint16-h)<<16|uint32(l)<<8|uint32(a))
				}
			}
			slices.Sort(items)
			arrived = masks{}
			for len(items) > 0 {
				var sets masks
				var held uint64
				n := 1
				for n < len(items) && items[n]>>16 == items[0]>>16 {
					n++
				}
				// Two clusters of one party at one height are two arrivals.
				var again [256]uint32
				left := again[:0]
				for _, item := range items[:n] {
					l, a := int(item>>8&0xff), int(item&0xff)
					if held>>l&1 == 1 {
						left = append(left, item)
						continue
					}
					held |= 1 << l
					sets.set(l*k + a)
				}
				compatible := true
				picked := sets
				for l := range v.Sketches {
					if held>>l&1 == 1 {
						continue
					}
					set := arrived.slice(l*k, k)
					compatible = compatible && set != 0
					for set != 0 {
						sets.set(l*k + bits.TrailingZeros64(set))
						set &= set - 1
					}
				}
				arrived[0] |= picked[0]
				arrived[1] |= picked[1]
				if compatible {
					list = append(list, sets)
				}
				rest := items[n-len(left):]
				copy(rest, left)
				items = rest
			}
		}
		blocks[block] = list
	})
	if err != nil {
		return nil, err
	}
	return countSets(slices.Concat(blocks...), v.parties()*k), nil
}

// lastArrivals returns, for each cell of the grid of some parties, the time at which
// the last of its sketches arrived, by key: [cell][key].
func lastArrivals(ctx context.Context, run runner, v *View, parties []*Sketches) ([]float64, error) {
	k, keys := v.clusters(), v.keys()
	cells := powInt(k, len(parties))
	last := make([]float64, cells*keys)
	err := run.Run(ctx, cells, func(_, cell int) {
		column := last[cell*keys : (cell+1)*keys]
		for l := len(parties) - 1; l >= 0; l-- {
			a := cell % k
			cell /= k
			for i := range column {
				column[i] = max(column[i], v.Distribution.arrival[parties[l].Heights[i*k+a]])
			}
		}
	})
	return last, err
}

// likelihood is the expectation maximisation on the cells of a support. A cell is a
// head, its clusters at the first parties, and a tail, those at the others; an
// event's compatible set is a product of a set of heads and one of tails.
type likelihood struct {
	view     *View
	grid     *Grid
	exposure []float64
	// Most events are in the first side, whose bits are heads. Those of one head and several tails are in the second,
	// whose bits are tails, if these are few enough: there they have one row in common.
	sides []*likelihoodSide
}

// likelihoodSide has events whose sets are products of a set of columns, a bit each, and one of rows. Those with one
// set of rows share the sums of its weights by column (kernels.ShareCounts).
type likelihoodSide struct {
	length  int // of a row, with room for all columns
	rowSets []rowSet
	// The events, those of one set of rows after the other: the columns, how often they
	// occurred, and the phantoms in their sets, those of dropped cells included.
	sets                []uint64
	counts, backgrounds []float64
	// place is where a cell of the support is in weights and shares.
	place   []int
	weights []float64
	// The sets of rows are cut into shards of about equal work, fixed by the
	// problem; each has its own shares.
	shards []int
	shares [][]float64
}

// rowSet is a set of rows with its events, those from first to end.
type rowSet struct {
	rows       []int32 // places in weights
	first, end int
}

// columnEvent is an event of a set of rows.
type columnEvent struct {
	columns           uint64
	count, background float64
}

// newLikelihood sorts the events of v by their sets of tails.
func newLikelihood(ctx context.Context, run runner, v *View, grid *Grid) (*likelihood, error) {
	k, s := v.clusters(), v.parties()
	h, heads := 1, k
	for ; h+1 < s && heads*k <= maxColumns; h++ {
		heads *= k
	}
	tails := powInt(k, s-h)
	m := &likelihood{view: v, grid: grid, sides: []*likelihoodSide{newSide(heads, tails)}}
	byHead := make([][]columnEvent, heads) // of the second side
	if tails <= maxColumns {
		m.sides = append(m.sides, newSide(tails, heads))
	}
	for side, of := range m.sides {
		of.place = make([]int, grid.len())
		for i := range of.place {
			of.place[i] = i%tails*of.length + i/tails
			if side == 1 {
				of.place[i] = i/tails*of.length + i%tails
			}
		}
	}
	events, err := collectEvents(ctx, run, v)
	if err != nil {
		return nil, err
	}
	if m.exposure, err = exposures(ctx, run, v, h); err != nil {
		return nil, err
	}
	for i := 0; i < len(events); {
		rest := events[i].sets.tail(h * k)
		var rows []int32
		var ofTails uint64
		visitCells(&rest, h, s, k, func(tail int) {
			rows = append(rows, int32(tail*m.sides[0].length))
			ofTails |= 1 << tail
		})
		var list []columnEvent
		for ; i < len(events) && events[i].sets.tail(h*k) == rest; i++ {
			e := columnEvent{count: events[i].count}
			visitCells(&events[i].sets, 0, h, k, func(head int) { e.columns |= 1 << head })
			e.background = float64(bits.OnesCount64(e.columns)*len(rows)) * v.inCell()
			if len(m.sides) > 1 && len(rows) > 1 && bits.OnesCount64(e.columns) == 1 {
				head := bits.TrailingZeros64(e.columns)
				e.columns = ofTails
				byHead[head] = append(byHead[head], e)
				continue
			}
			list = append(list, e)
		}
		m.sides[0].addSet(rows, list)
	}
	for head, list := range byHead {
		if len(list) > 0 {
			m.sides[1].addSet([]int32{int32(head * m.sides[1].length)}, list)
		}
	}
	for _, side := range m.sides {
		side.share()
	}
	return m, nil
}

func newSide(columns, rows int) *likelihoodSide {
	length := kernels.RowCells(columns)
	return &likelihoodSide{length: length, weights: make([]float64, rows*length)}
}

// addSet appends a set of rows with its events.
func (m *likelihoodSide) addSet(rows []int32, list []columnEvent) {
	if len(list) == 0 {
		return
	}
	set := rowSet{rows: rows, first: len(m.sets)}
	for _, e := range list {
		m.sets, m.counts = append(m.sets, e.columns), append(m.counts, e.count)
		m.backgrounds = append(m.backgrounds, e.background)
	}
	set.end = len(m.sets)
	m.rowSets = append(m.rowSets, set)
}

// maxShards is the most shards that a step is cut into: each costs the sum of its shares.
const maxShards = 16

// share cuts the sets of rows into shards.
func (m *likelihoodSide) share() {
	work := func(t *rowSet) int { return 2*m.length*len(t.rows) + 4*m.length*(t.end-t.first) }
	total := 0
	for i := range m.rowSets {
		total += work(&m.rowSets[i])
	}
	each, done := max(1<<17, total/maxShards+1), 0
	m.shards, m.shares = m.shards[:0], m.shares[:0]
	for i := range m.rowSets {
		if i == 0 || done >= each {
			m.shards, done = append(m.shards, i), 0
			m.shares = append(m.shares, make([]float64, len(m.weights)))
		}
		done += work(&m.rowSets[i])
	}
	m.shards = append(m.shards, len(m.rowSets))
}

// exposures returns E_g for all cells: the sum over keys of the time at which the
// last of the cell's sketches arrived. The first h parties make up the heads.
func exposures(ctx context.Context, run runner, v *View, h int) ([]float64, error) {
	heads, err := lastArrivals(ctx, run, v, v.Sketches[:h])
	if err != nil {
		return nil, err
	}
	tails, err := lastArrivals(ctx, run, v, v.Sketches[h:])
	if err != nil {
		return nil, err
	}
	keys := v.keys()
	perHead := len(tails) / keys
	e := make([]float64, len(heads)/keys*perHead)
	err = run.Run(ctx, len(heads)/keys, func(_, head int) {
		x := heads[head*keys : (head+1)*keys]
		for tail := range perHead {
			e[head*perHead+tail] = kernels.SumMaxima(x, tails[tail*keys:(tail+1)*keys])
		}
	})
	return e, err
}

// visitCells calls fn with the index of each cell of a product of sets of clusters
// of the parties from first to last-1, among the cells of these parties.
func visitCells(sets *masks, first, last, clusters int, fn func(cell int)) {
	var visit func(l, base int)
	visit = func(l, base int) {
		set := sets.slice(l*clusters, clusters)
		for ; set != 0; set &= set - 1 {
			cell := base*clusters + bits.TrailingZeros64(set)
			if l == last-1 {
				fn(cell)
			} else {
				visit(l+1, cell)
			}
		}
	}
	visit(first, 0)
}

func powInt(base, exponent int) int {
	p := 1
	for range exponent {
		p *= base
	}
	return p
}

// step is one step of the expectation maximisation.
func (m *likelihood) step(ctx context.Context, run runner) error {
	shards := 0
	for _, side := range m.sides {
		clear(side.weights)
		for i, w := range m.grid.Weights {
			side.weights[side.place[i]] = w
		}
		shards += len(side.shares)
	}
	err := run.Run(ctx, shards, func(_, shard int) {
		side := m.sides[0]
		if first := len(side.shares); shard >= first {
			side, shard = m.sides[1], shard-first
		}
		side.shareOut(shard)
	})
	if err != nil {
		return err
	}
	w := m.grid.Weights
	for i := range w {
		sum := 0.0
		for _, side := range m.sides {
			for _, s := range side.shares {
				sum += s[side.place[i]]
			}
		}
		w[i] *= sum / m.exposure[i]
	}
	return nil
}

// shareOut fills in the shares of a shard.
func (m *likelihoodSide) shareOut(shard int) {
	shares := m.shares[shard]
	clear(shares)
	for i := m.shards[shard]; i < m.shards[shard+1]; i++ {
		t := &m.rowSets[i]
		kernels.ShareCounts(m.weights, shares, m.length, t.rows, m.sets[t.first:t.end],
			m.counts[t.first:t.end], m.backgrounds[t.first:t.end])
	}
}

// prune drops the cells that the phantoms alone explain.
func (m *likelihood) prune(threshold float64) bool {
	g, n := m.grid, 0
	s := g.Parties
	for i, w := range g.Weights {
		if w <= threshold*math.Sqrt(m.view.inCell()/m.exposure[i]) {
			continue
		}
		copy(g.Cells[n*s:], g.cell(i))
		g.Weights[n], m.exposure[n] = w, m.exposure[i]
		for _, side := range m.sides {
			side.place[n] = side.place[i]
		}
		n++
	}
	if n == 0 || n == g.len() {
		return false
	}
	g.Cells, g.Weights, m.exposure = g.Cells[:n*s], g.Weights[:n], m.exposure[:n]
	for _, side := range m.sides {
		side.place = side.place[:n]
		side.restrict()
	}
	return true
}

// restrict leaves out of all sets the columns and rows that no cell of the support
// has, and merges what is the same then.
func (m *likelihoodSide) restrict() {
	var columns uint64
	alive := make([]bool, len(m.weights)/m.length)
	for _, at := range m.place {
		columns |= 1 << (at % m.length)
		alive[at/m.length] = true
	}
	for i := range m.rowSets {
		set := &m.rowSets[i]
		set.rows = slices.DeleteFunc(set.rows, func(place int32) bool { return !alive[int(place)/m.length] })
	}
	sort.SliceStable(m.rowSets, func(a, b int) bool {
		return slices.Compare(m.rowSets[a].rows, m.rowSets[b].rows) < 0
	})
	old := *m
	m.rowSets, m.sets, m.counts, m.backgrounds = nil, nil, nil, nil
	var events []columnEvent
	for i := 0; i < len(old.rowSets); {
		rows := old.rowSets[i].rows
		events = events[:0]
		for ; i < len(old.rowSets) && slices.Equal(old.rowSets[i].rows, rows); i++ {
			for j := old.rowSets[i].first; j < old.rowSets[i].end; j++ {
				if left := old.sets[j] & columns; left != 0 && len(rows) > 0 {
					events = append(events, columnEvent{left, old.counts[j], old.backgrounds[j]})
				}
			}
		}
		m.addSet(rows, events[:mergeColumns(events)])
	}
	m.share()
}

// mergeColumns sorts events of one set of rows and adds the counts of equal ones. It
// returns how many are left.
func mergeColumns(e []columnEvent) int {
	sort.Slice(e, func(a, b int) bool {
		x, y := &e[a], &e[b]
		switch {
		case x.columns != y.columns:
			return x.columns < y.columns
		case x.background != y.background:
			return x.background < y.background
		}
		return x.count < y.count
	})
	n := 0
	for _, x := range e {
		if n > 0 && e[n-1].columns == x.columns && e[n-1].background == x.background {
			e[n-1].count += x.count
			continue
		}
		e[n] = x
		n++
	}
	return n
}

// fitMargins scales the cells of each cluster towards its released size, one party after the other, as far as the
// noise of sizes, of so much variance, lets them say more than the sketches: with the events N_a and the exposed
// weight X_a of cluster a, by the factor f that maximises N_a ln f - f X_a - (f s - t)^2/(2 variance), where s is
// what the cells have and t the released size. Without variance it is t/s. It is post-processing. A cluster without
// cells loses its margin.
func (m *likelihood) fitMargins(margins [][]float64, variance float64) {
	g, k := m.grid, m.grid.Clusters
	events := make([]float64, len(margins)*k)
	for l := range margins {
		for i, w := range g.Weights {
			events[l*k+int(g.Cells[i*g.Parties+l])] += float64(w * m.exposure[i])
		}
	}
	factors, exposed := make([]float64, k), make([]float64, k)
	for l, target := range margins {
		clear(exposed)
		for i, w := range g.Weights {
			exposed[g.Cells[i*g.Parties+l]] += float64(w * m.exposure[i])
		}
		g.margin(l, factors)
		for a, sum := range factors {
			sum = max(sum, 1e-3)
			scale := variance / (sum * sum)
			half := (float64(exposed[a]*scale) - target[a]/sum) / 2
			rest := float64(events[l*k+a] * scale)
			root := math.Sqrt(float64(half*half) + rest)
			if half <= 0 {
				factors[a] = root - half
			} else { // the same without cancellation
				factors[a] = rest / (root + half)
			}
		}
		for i := range g.Weights {
			g.Weights[i] *= factors[g.Cells[i*g.Parties+l]]
		}
	}
}

// jointEstimate maximises the joint likelihood of all sketches of v's parties.
// records is the number of records; margins, if not nil, are the released sizes
// of the clusters by party, whose noise has this variance and to which the cells are
// scaled after every step (fitMargins).
// Cells with w_g <= threshold sqrt(n_c/E_g), so many standard deviations of the
// background, are dropped on the way, once for each threshold. Heights must come from a small
// gamma: equal heights of two parties are taken for one arrival. The plan keeps clusters,
// cells and events within their limits (plan.checkJoint).
func jointEstimate(ctx context.Context, run runner, v *View, records float64, margins [][]float64,
	variance float64, thresholds []float64) (*Grid, error) {
	grid, err := newDenseGrid(v.parties(), v.clusters())
	if err != nil {
		return nil, err
	}
	for i := range grid.Weights {
		grid.Weights[i] = records / float64(grid.len())
	}
	m, err := newLikelihood(ctx, run, v, grid)
	if err != nil {
		return nil, err
	}
	for round := -1; round < len(thresholds); round++ {
		if round >= 0 && !m.prune(thresholds[round]) {
			continue
		}
		for range emSteps {
			if err := m.step(ctx, run); err != nil {
				return nil, err
			}
			m.fitMargins(margins, variance)
		}
	}
	rescale(grid.Weights, records)
	return grid, nil
}

// pairwiseJointEstimate is the joint likelihood for parties whose pairs have
// keys of their own: the table of every pair by jointEstimate, then a grid fitted to
// all of them.
func pairwiseJointEstimate(ctx context.Context, run runner, r *Release) (*Grid, error) {
	var tables [][]float64
	thresholds := emThresholds
	if r.Mixture {
		thresholds = mixtureThresholds
	}
	for l1 := range r.Parties {
		for l2 := l1 + 1; l2 < r.Parties; l2++ {
			var margins [][]float64
			if r.Margins != nil {
				margins = [][]float64{r.Margins[l1], r.Margins[l2]}
			}
			g, err := jointEstimate(ctx, run, r.pair(l1, l2), r.Records, margins, r.SizeVariance, thresholds)
			if err != nil {
				return nil, err
			}
			table := make([]float64, r.Clusters*r.Clusters)
			for i, w := range g.Weights {
				table[dense(g.cell(i), r.Clusters)] = w
			}
			tables = append(tables, table)
		}
	}
	return fitPairs(ctx, run, r, tables)
}
