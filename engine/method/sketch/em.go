package sketch

import (
	"cmp"
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
	// maxHeads is the largest number of heads (see likelihood): one bit each.
	maxHeads = kernels.MaxCells
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
// event's compatible set is a product of a set of heads, which is a bit each, and
// one of tails. Events with one set of tails share the sums of its weights by head
// (kernels.ShareCounts).
type likelihood struct {
	view     *View
	grid     *Grid
	exposure []float64
	heads    int // k'^h, the cells of the first h parties
	row      int // the length of a row of heads, with room for all
	tailSets []tailSet
	// The events, those of one set of tails after the other: the heads, how often they
	// occurred, and the phantoms in their sets, those of dropped cells included.
	sets                []uint64
	counts, backgrounds []float64
	// place is where a cell of the support is in weights and shares, a row for each
	// tail.
	place   []int
	weights []float64
	// The sets of tails are cut into shards of about equal work, fixed by the
	// problem; each has its own shares.
	shards []int
	shares [][]float64
}

// tailSet is a set of tails with its events, those from first to end.
type tailSet struct {
	tails      []int32 // places of their rows in weights
	first, end int
}

// headEvent is an event of a set of tails.
type headEvent struct {
	heads             uint64
	count, background float64
}

// newLikelihood sorts the events of v by their sets of tails.
func newLikelihood(ctx context.Context, run runner, v *View, grid *Grid) (*likelihood, error) {
	k, s := v.clusters(), v.parties()
	m := &likelihood{view: v, grid: grid, heads: k}
	h := 1
	for ; h+1 < s && m.heads*k <= maxHeads; h++ {
		m.heads *= k
	}
	tails := powInt(k, s-h)
	m.row = kernels.RowCells(m.heads)
	m.weights = make([]float64, tails*m.row)
	for i := range grid.len() {
		m.place = append(m.place, i%tails*m.row+i/tails)
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
		set := tailSet{first: len(m.sets)}
		visitCells(&rest, h, s, k, func(tail int) { set.tails = append(set.tails, int32(tail*m.row)) })
		for ; i < len(events) && events[i].sets.tail(h*k) == rest; i++ {
			e := headEvent{count: events[i].count}
			visitCells(&events[i].sets, 0, h, k, func(head int) { e.heads |= 1 << head })
			e.background = float64(bits.OnesCount64(e.heads)*len(set.tails)) * v.inCell()
			m.add(e)
		}
		set.end = len(m.sets)
		m.tailSets = append(m.tailSets, set)
	}
	m.share()
	return m, nil
}

// add appends an event.
func (m *likelihood) add(e headEvent) {
	m.sets, m.counts = append(m.sets, e.heads), append(m.counts, e.count)
	m.backgrounds = append(m.backgrounds, e.background)
}

// maxShards is the most shards that a step is cut into: each costs the sum of its shares.
const maxShards = 16

// share cuts the sets of tails into shards.
func (m *likelihood) share() {
	work := func(t *tailSet) int { return 2*m.row*len(t.tails) + 4*m.row*(t.end-t.first) }
	total := 0
	for i := range m.tailSets {
		total += work(&m.tailSets[i])
	}
	each, done := max(1<<17, total/maxShards+1), 0
	m.shards, m.shares = m.shards[:0], m.shares[:0]
	for i := range m.tailSets {
		if i == 0 || done >= each {
			m.shards, done = append(m.shards, i), 0
			m.shares = append(m.shares, make([]float64, len(m.weights)))
		}
		done += work(&m.tailSets[i])
	}
	m.shards = append(m.shards, len(m.tailSets))
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
	clear(m.weights)
	for i, w := range m.grid.Weights {
		m.weights[m.place[i]] = w
	}
	err := run.Run(ctx, len(m.shards)-1, func(_, shard int) {
		shares := m.shares[shard]
		clear(shares)
		for i := m.shards[shard]; i < m.shards[shard+1]; i++ {
			t := &m.tailSets[i]
			kernels.ShareCounts(m.weights, shares, m.row, t.tails, m.sets[t.first:t.end],
				m.counts[t.first:t.end], m.backgrounds[t.first:t.end])
		}
	})
	if err != nil {
		return err
	}
	w := m.grid.Weights
	for i, at := range m.place {
		sum := 0.0
		for _, s := range m.shares {
			sum += s[at]
		}
		w[i] *= sum / m.exposure[i]
	}
	return nil
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
		g.Weights[n], m.exposure[n], m.place[n] = w, m.exposure[i], m.place[i]
		n++
	}
	if n == 0 || n == g.len() {
		return false
	}
	g.Cells, g.Weights, m.exposure, m.place = g.Cells[:n*s], g.Weights[:n], m.exposure[:n], m.place[:n]
	m.restrict()
	return true
}

// restrict leaves out of all sets the heads and tails that no cell of the support
// has, and merges what is the same then.
func (m *likelihood) restrict() {
	var heads uint64
	alive := make([]bool, len(m.weights)/m.row)
	for _, at := range m.place {
		heads |= 1 << (at % m.row)
		alive[at/m.row] = true
	}
	for i := range m.tailSets {
		set := &m.tailSets[i]
		set.tails = slices.DeleteFunc(set.tails, func(place int32) bool { return !alive[int(place)/m.row] })
	}
	sort.SliceStable(m.tailSets, func(a, b int) bool {
		return slices.Compare(m.tailSets[a].tails, m.tailSets[b].tails) < 0
	})
	old := *m
	m.tailSets, m.sets, m.counts, m.backgrounds = nil, nil, nil, nil
	var events []headEvent
	for i := 0; i < len(old.tailSets); {
		set := tailSet{tails: old.tailSets[i].tails, first: len(m.sets)}
		events = events[:0]
		for ; i < len(old.tailSets) && slices.Equal(old.tailSets[i].tails, set.tails); i++ {
			for j := old.tailSets[i].first; j < old.tailSets[i].end; j++ {
				if left := old.sets[j] & heads; left != 0 && len(set.tails) > 0 {
					events = append(events, headEvent{left, old.counts[j], old.backgrounds[j]})
				}
			}
		}
		for _, e := range events[:mergeHeads(events)] {
			m.add(e)
		}
		set.end = len(m.sets)
		m.tailSets = append(m.tailSets, set)
	}
	m.share()
}

// mergeHeads sorts events of one set of tails and adds the counts of equal ones. It
// returns how many are left.
func mergeHeads(e []headEvent) int {
	sort.Slice(e, func(a, b int) bool {
		x, y := &e[a], &e[b]
		return cmp.Or(cmp.Compare(x.heads, y.heads), cmp.Compare(x.background, y.background),
			cmp.Compare(x.count, y.count)) < 0
	})
	n := 0
	for _, x := range e {
		if n > 0 && e[n-1].heads == x.heads && e[n-1].background == x.background {
			e[n-1].count += x.count
			continue
		}
		e[n] = x
		n++
	}
	return n
}

// fitMargins scales the cells of each cluster to its released size. A cluster
// without cells loses its margin.
func fitMargins(g *Grid, margins [][]float64, sums []float64) {
	for l, target := range margins {
		g.margin(l, sums)
		for a := range sums {
			sums[a] = target[a] / max(sums[a], 1e-3)
		}
		for i := range g.Weights {
			g.Weights[i] *= sums[g.Cells[i*g.Parties+l]]
		}
	}
}

// jointEstimate maximises the joint likelihood of all sketches of v's parties.
// records is the number of records; margins, if not nil, are the released sizes
// of the clusters by party, to which the cells are scaled after every step.
// Cells with w_g <= threshold sqrt(n_c/E_g), so many standard deviations of the
// background, are dropped on the way, once for each threshold. Heights must come from a small
// gamma: equal heights of two parties are taken for one arrival. The plan keeps clusters,
// cells and events within their limits (plan.checkJoint).
func jointEstimate(ctx context.Context, run runner, v *View, records float64, margins [][]float64,
	thresholds []float64) (*Grid, error) {
	k := v.clusters()
	grid, err := newDenseGrid(v.parties(), k)
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
	sums := make([]float64, k)
	for round := -1; round < len(thresholds); round++ {
		if round >= 0 && !m.prune(thresholds[round]) {
			continue
		}
		for range emSteps {
			if err := m.step(ctx, run); err != nil {
				return nil, err
			}
			fitMargins(grid, margins, sums)
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
			g, err := jointEstimate(ctx, run, r.pair(l1, l2), r.Records, margins, thresholds)
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
