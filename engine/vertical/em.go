package vertical

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/cohort-engine/cohort/engine/fault"
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
	// emPrunings is how often cells with w <= emThreshold sqrt(n_c/E) are dropped.
	emPrunings  = 2
	emThreshold = 4
	// emEntries bounds the memory of the compatible sets: two bytes each.
	emEntries = 1 << 28
	// maxMask is the largest number of clusters of a party in an event's mask.
	maxMask = 64
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

// event is a compatible set and how often it occurred.
type event struct {
	sets  masks
	count float64
}

func compareEvents(a, b event) int {
	return cmp.Or(cmp.Compare(a.sets[1], b.sets[1]), cmp.Compare(a.sets[0], b.sets[0]))
}

// mergeEvents sorts events by their sets and adds the counts of equal ones.
func mergeEvents(e []event) []event {
	slices.SortFunc(e, compareEvents)
	out := e[:0]
	for _, x := range e {
		if n := len(out); n > 0 && out[n-1].sets == x.sets {
			out[n-1].count += x.count
			continue
		}
		out = append(out, x)
	}
	return out
}

// eventKeys is the number of keys whose events one call collects.
const eventKeys = 256

// collectEvents returns the merged events of all keys, in a fixed order.
func collectEvents(ctx context.Context, run Runner, v *View) ([]event, error) {
	k := v.clusters()
	blocks := make([][]event, (v.keys()+eventKeys-1)/eventKeys)
	err := run.Run(ctx, len(blocks), func(_, block int) {
		var list []event
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
					list = append(list, event{sets, 1})
				}
				rest := items[n-len(left):]
				copy(rest, left)
				items = rest
			}
		}
		blocks[block] = mergeEvents(list)
	})
	if err != nil {
		return nil, err
	}
	return mergeEvents(slices.Concat(blocks...)), nil
}

// exposures returns E_g for the cells of grid: the sum over keys of the time at
// which the last of the cell's sketches arrived.
func exposures(ctx context.Context, run Runner, v *View, grid *Grid) ([]float64, error) {
	k, keys := v.clusters(), v.keys()
	times := make([]float64, len(v.Sketches)*k*keys) // [party][cluster][key]
	err := run.Run(ctx, len(v.Sketches)*k, func(_, index int) {
		s, a := v.Sketches[index/k], index%k
		column := times[index*keys : (index+1)*keys]
		for i := range column {
			column[i] = v.Law.arrival[s.Heights[i*k+a]]
		}
	})
	if err != nil {
		return nil, err
	}
	e := make([]float64, grid.Len())
	const block = 16
	err = run.Run(ctx, (len(e)+block-1)/block, func(_, b int) {
		last := make([]float64, keys)
		for g := b * block; g < min((b+1)*block, len(e)); g++ {
			cell := grid.Cell(g)
			copy(last, times[int(cell[0])*keys:])
			for l := 1; l < len(cell); l++ {
				column := times[(l*k+int(cell[l]))*keys:][:keys]
				for i, t := range column {
					if t > last[i] {
						last[i] = t
					}
				}
			}
			sum := 0.0
			for _, t := range last {
				sum += t
			}
			e[g] = sum
		}
	})
	return e, err
}

// likelihood is the expectation maximisation on the cells of a support.
type likelihood struct {
	view     *View
	grid     *Grid
	events   []event
	exposure []float64
	// The compatible cells of event e are index[offset[e]:offset[e+1]];
	// background[e] is the phantoms in its set, dropped cells included.
	offset     []int
	index      []uint16
	background []float64
	// Events are cut into shards of about equal work, fixed by the problem.
	shards  []int
	partial [][]float64
}

// link lists the compatible cells of each event within the present support.
func (m *likelihood) link(ctx context.Context, run Runner) error {
	k, s := m.view.clusters(), m.view.parties()
	place := make([]int32, powInt(k, s))
	for i := range place {
		place[i] = -1
	}
	for i := range m.grid.Len() {
		place[dense(m.grid.Cell(i), k)] = int32(i)
	}
	m.offset = make([]int, len(m.events)+1)
	m.background = make([]float64, len(m.events))
	full := m.grid.Len() == len(place)
	const block = 512
	blocks := (len(m.events) + block - 1) / block
	err := run.Run(ctx, blocks, func(_, b int) {
		for e := b * block; e < min((b+1)*block, len(m.events)); e++ {
			size := 1
			for l := range s {
				size *= bits.OnesCount64(m.events[e].sets.slice(l*k, k))
			}
			m.background[e] = float64(size) * m.view.inCell()
			if full {
				m.offset[e+1] = size
				continue
			}
			n := 0
			visitCells(&m.events[e].sets, s, k, func(cell int) {
				if place[cell] >= 0 {
					n++
				}
			})
			m.offset[e+1] = n
		}
	})
	if err != nil {
		return err
	}
	for e := range m.events {
		m.offset[e+1] += m.offset[e]
	}
	total := m.offset[len(m.events)]
	if total > emEntries {
		return fault.Request("local-k", fmt.Sprintf("the joint likelihood of %d sketches of %d parties with %d clusters has %d terms and would need %.1f GiB",
			m.view.keys(), s, k, total, float64(total)*2/(1<<30)), "use fewer sketches, a smaller local-k, or --estimator pair-mle")
	}
	m.index = slices.Grow(m.index[:0], total)[:total]
	err = run.Run(ctx, blocks, func(_, b int) {
		for e := b * block; e < min((b+1)*block, len(m.events)); e++ {
			list := m.index[m.offset[e]:m.offset[e]:m.offset[e+1]]
			visitCells(&m.events[e].sets, s, k, func(cell int) {
				if p := place[cell]; p >= 0 {
					list = append(list, uint16(p))
				}
			})
		}
	})
	if err != nil {
		return err
	}
	const work = 1 << 17
	m.shards = m.shards[:0]
	for e, last := 0, -work; e < len(m.events); e++ {
		if m.offset[e]-last >= work {
			m.shards = append(m.shards, e)
			last = m.offset[e]
		}
	}
	for len(m.partial) < len(m.shards) {
		m.partial = append(m.partial, make([]float64, len(place)))
	}
	m.shards = append(m.shards, len(m.events))
	return nil
}

// visitCells calls fn with the dense index of each cell of a product of sets.
func visitCells(sets *masks, parties, clusters int, fn func(cell int)) {
	if parties == 2 {
		rows, columns := sets.slice(0, clusters), sets.slice(clusters, clusters)
		for ; rows != 0; rows &= rows - 1 {
			base := bits.TrailingZeros64(rows) * clusters
			for c := columns; c != 0; c &= c - 1 {
				fn(base + bits.TrailingZeros64(c))
			}
		}
		return
	}
	var visit func(l, base int)
	visit = func(l, base int) {
		set := sets.slice(l*clusters, clusters)
		for ; set != 0; set &= set - 1 {
			cell := base*clusters + bits.TrailingZeros64(set)
			if l == parties-1 {
				fn(cell)
			} else {
				visit(l+1, cell)
			}
		}
	}
	visit(0, 0)
}

func powInt(base, exponent int) int {
	p := 1
	for range exponent {
		p *= base
	}
	return p
}

// step is one step of the expectation maximisation.
func (m *likelihood) step(ctx context.Context, run Runner) error {
	w := m.grid.Weights
	err := run.Run(ctx, len(m.shards)-1, func(_, shard int) {
		share := m.partial[shard][:len(w)]
		clear(share)
		for e := m.shards[shard]; e < m.shards[shard+1]; e++ {
			list := m.index[m.offset[e]:m.offset[e+1]]
			sum := m.background[e]
			for _, g := range list {
				sum += w[g]
			}
			if sum <= 0 {
				continue
			}
			x := m.events[e].count / sum
			for _, g := range list {
				share[g] += x
			}
		}
	})
	if err != nil {
		return err
	}
	for g := range w {
		sum := 0.0
		for _, p := range m.partial[:len(m.shards)-1] {
			sum += p[g]
		}
		w[g] *= sum / m.exposure[g]
	}
	return nil
}

// prune drops the cells that the phantoms alone explain.
func (m *likelihood) prune() bool {
	g, n := m.grid, 0
	s := g.Parties
	for i, w := range g.Weights {
		if w <= emThreshold*math.Sqrt(m.view.inCell()/m.exposure[i]) {
			continue
		}
		copy(g.Cells[n*s:], g.Cell(i))
		g.Weights[n], m.exposure[n] = w, m.exposure[i]
		n++
	}
	if n == 0 || n == g.Len() {
		return false
	}
	g.Cells, g.Weights, m.exposure = g.Cells[:n*s], g.Weights[:n], m.exposure[:n]
	return true
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

// JointEstimate maximises the joint likelihood of all sketches of v's parties.
// records is the number of records; margins, if not nil, are the released sizes
// of the clusters by party, to which the cells are scaled after every step.
// Cells with w_g <= 4 sqrt(n_c/E_g), four standard deviations of the
// background, are dropped twice on the way. Heights must come from a small
// gamma: equal heights of two parties are taken for one arrival.
func JointEstimate(ctx context.Context, run Runner, v *View, records float64, margins [][]float64) (*Grid, error) {
	k := v.clusters()
	if _, ok := product(k, v.parties(), 1<<16); k > maxMask || v.parties()*k > 128 || !ok {
		return nil, fault.Request("local-k", fmt.Sprintf("is %d for %d parties, beyond the joint likelihood's limit of %d clusters and %d cells",
			k, v.parties(), maxMask, 1<<16), "use a smaller local-k or --estimator pair-mle")
	}
	grid, err := newDenseGrid(v.parties(), k)
	if err != nil {
		return nil, err
	}
	for i := range grid.Weights {
		grid.Weights[i] = records / float64(grid.Len())
	}
	m := &likelihood{view: v, grid: grid}
	if m.events, err = collectEvents(ctx, run, v); err != nil {
		return nil, err
	}
	if m.exposure, err = exposures(ctx, run, v, grid); err != nil {
		return nil, err
	}
	if err := m.link(ctx, run); err != nil {
		return nil, err
	}
	sums := make([]float64, k)
	for round := 0; ; round++ {
		for range emSteps {
			if err := m.step(ctx, run); err != nil {
				return nil, err
			}
			fitMargins(grid, margins, sums)
		}
		if round == emPrunings || !m.prune() {
			break
		}
		if err := m.link(ctx, run); err != nil {
			return nil, err
		}
	}
	rescale(grid.Weights, records)
	return grid, nil
}

// PairwiseJointEstimate is the joint likelihood for parties whose pairs have
// keys of their own: the table of every pair by JointEstimate, then the full
// grid by iterative proportional fitting on the cells that no pair excludes.
func PairwiseJointEstimate(ctx context.Context, run Runner, r *Release) (*Grid, error) {
	var tables [][]float64
	for l1 := range r.Parties {
		for l2 := l1 + 1; l2 < r.Parties; l2++ {
			var margins [][]float64
			if r.Margins != nil {
				margins = [][]float64{r.Margins[l1], r.Margins[l2]}
			}
			g, err := JointEstimate(ctx, run, r.Pair(l1, l2), r.Records, margins)
			if err != nil {
				return nil, err
			}
			table := make([]float64, r.Clusters*r.Clusters)
			for i, w := range g.Weights {
				table[dense(g.Cell(i), r.Clusters)] = w
			}
			tables = append(tables, table)
		}
	}
	return proportionalFit(ctx, run, r, tables)
}
