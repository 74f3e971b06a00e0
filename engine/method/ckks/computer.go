package ckks

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync/atomic"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
)

// computer is the state of the party that computes on ciphertexts (Alice): her
// own columns in the clear, the others' encrypted, and the public keys.
type computer struct {
	params *parameters
	lay    layout
	cols   columns
	own    [][]float64 // by column; nil for a column that is encrypted
	ev     *evaluator
	work   []*scratch // by worker, nil until it needs some
	ops    Operations // of computations on all workers at once
	steps  *steps     // of the phase under way
	items  int        // work items so far, each of which rounds with randomness of its own

	// tops[h] and lows[h] are the ciphertexts of column h in the layout's order.
	tops, lows [][]*cipher
	// packed[h] are the columns spread for comparison by rank.
	packed [][]*cipher
	// slots[h] are coefficients in the layout's order for comparisons: of own columns, and of what
	// encrypted ones were rounded with, to be subtracted.
	slots [][][]float64
	// plain[h][batch] are own columns, and plain[d] the 0/1 mask of records, as
	// factors for the aggregates.
	plain      [][]rns.Poly
	plainScale float64

	// pk re-randomises aggregates, small switches them to the smaller ring.
	pk    [2]rns.Poly
	small *rns.Key
	rnd   entropy

	// last are the totals of a round, in whose memory those of the next come.
	last []total
	// perRound is the number of totals of a round. Masks of the first of them are drawn in the round before, by workers
	// that have nothing else left to do.
	rounds, perRound int
	masks            masks
	ahead            []func() // of the first round's masks, what is left to do beside the expansion of keys
}

// newComputer prepares Alice's own columns for rounds with k clusters. Keys and the others' columns come
// with the setup messages.
func newComputer(ctx context.Context, pool *engine.Pool, p *parameters, lay layout, cols columns, own [][]float64,
	lowScale float64, rnd entropy, k, rounds int) (*computer, error) {
	c := &computer{params: p, lay: lay, cols: cols, own: own, rnd: rnd, rounds: rounds, perRound: k * (1 + cols.d)}
	c.work = make([]*scratch, pool.Workers())
	c.plainScale = lowScale
	var items []func(w *scratch)
	c.plain, c.slots = make([][]rns.Poly, cols.d+1), make([][][]float64, cols.d)
	c.tops, c.lows = make([][]*cipher, cols.d), make([][]*cipher, cols.d)
	for h := range c.plain {
		if h < cols.d && cols.encrypted[h] {
			continue
		}
		var column []float64
		if h < cols.d {
			column = own[h]
		}
		c.plain[h] = make([]rns.Poly, lay.lows())
		for b := range c.plain[h] {
			items = append(items, func(w *scratch) {
				lay.fillLow(b, column, w.values)
				c.plain[h][b] = w.encode(w.values, aggregateLevel, c.plainScale)
				p.lattice.Factor(c.plain[h][b])
			})
		}
		if h < cols.d && lay.rank == nil {
			c.slots[h] = make([][]float64, lay.tops())
			for i := range c.slots[h] {
				items = append(items, func(w *scratch) {
					lay.fillTop(i, column, w.values)
					c.slots[h][i] = make([]float64, len(w.values))
					w.embed.coefficients(w.values, c.slots[h][i])
				})
			}
		}
	}
	// Most of an encoding runs on one worker, so none is for all of them.
	c.items = len(items)
	masks := c.drawAhead(0)
	for _, mask := range masks[len(masks)/2:] {
		c.ahead = append(c.ahead, func() { mask(p.lattice.Room()) })
	}
	masks = masks[:len(masks)/2]
	order := deal(len(items)+len(masks), pool.Workers())
	return c, pool.Run(ctx, len(order), func(worker, i int) {
		if i = order[i]; i >= len(items) {
			masks[i-len(items)](c.its(worker).Room())
			return
		}
		w := c.its(worker)
		w.round(c.rnd.rounding("roundings", i))
		items[i](w)
	})
}

// its is a worker's memory. The worker makes it when it first needs some.
func (c *computer) its(worker int) *scratch {
	if c.work[worker] == nil {
		c.work[worker] = newScratch(c.params)
		c.work[worker].Own(worker)
	}
	return c.work[worker]
}

// each runs f for all indices below n, which take equally long.
func (c *computer) each(ctx context.Context, pool *engine.Pool, n int, f func(w *scratch, i int) error) error {
	return c.eachOf(ctx, pool, make([]int, n), f)
}

// eachOf runs f for as many indices as there are costs, what they take, in their order: most of them each on one
// worker, some one after the other on all workers. also are little things to do behind them, with which workers end
// about together; then none is for all workers.
func (c *computer) eachOf(ctx context.Context, pool *engine.Pool, costs []int, f func(w *scratch, i int) error,
	also ...func(room rns.Room)) error {
	n := len(costs)
	errs := make([]error, n)
	order, wide := schedule(costs, pool.Workers(), len(also))
	first := c.items
	c.items += n
	item := func(w *scratch, i int) error {
		w.round(c.rnd.rounding("roundings", first+i))
		return f(w, i)
	}
	err := pool.Run(ctx, len(order)-wide, func(worker, i int) {
		if i = order[i]; i >= n {
			also[i-n](c.its(worker).Room())
			return
		}
		errs[i] = item(c.its(worker), i)
		c.steps.one()
	})
	if err == nil && wide > 0 {
		for i := range c.work {
			c.its(i)
		}
		w := c.work[0].wide(ctx, pool, c.work)
		for _, i := range order[n-wide:] {
			if ctx.Err() == nil {
				errs[i] = item(w, i)
				c.steps.one()
			}
		}
		c.ops.add(w.ops)
		err = ctx.Err()
	}
	return firstError(err, errs)
}

// schedule orders items of given costs, and as many little ones behind them: the last, as many as the workers do not
// divide evenly, are for all workers at once where there are no little ones, the others for one each.
func schedule(costs []int, workers, little int) (order []int, wide int) {
	n := len(costs)
	sorted := make([]int, n+little)
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortStableFunc(sorted[:n], func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	if little == 0 {
		wide = n % workers
	}
	for _, at := range deal(len(sorted)-wide, workers) {
		order = append(order, sorted[at])
	}
	return append(order, sorted[len(sorted)-wide:]...), wide
}

// deal orders n items in the runs that a pool hands out, one for each worker: the first items go round the workers, the
// next ones back, and so on.
func deal(n, workers int) []int {
	order, each, more := make([]int, n), n/workers, n%workers
	for i := range order {
		lap, worker := i/workers, i%workers
		if lap%2 == 1 && lap < each {
			worker = workers - 1 - worker
		}
		order[worker*each+min(worker, more)+lap] = i
	}
	return order
}

// liveCiphertexts bounds the comparisons that are held at a time.
const liveCiphertexts = 128

// members computes the soft memberships for a round, out[cluster][batch], at the
// aggregate level. Batches follow each other in runs whose comparisons fit the
// bound on what is held.
func (c *computer) members(ctx context.Context, pool *engine.Pool, r *roundPlan) ([][]*cipher, error) {
	out := make([][]*cipher, len(r.factors))
	for i := range out {
		out[i] = make([]*cipher, c.lay.batches)
	}
	run := max(1, liveCiphertexts/len(r.pairs))
	for lo := 0; lo < c.lay.batches; lo += run {
		hi := min(lo+run, c.lay.batches)
		h, err := c.compare(ctx, pool, r, lo, hi)
		if err == nil {
			err = c.memberships(ctx, pool, r, h, lo, out)
		}
		if err != nil {
			return nil, err
		}
		for _, batch := range h {
			c.ev.free(batch...)
		}
	}
	return out, nil
}

// compare evaluates h for every kept pair in batches lo .. hi-1: out[batch-lo][pair],
// block 0.
func (c *computer) compare(ctx context.Context, pool *engine.Pool, r *roundPlan, lo, hi int) ([][]*cipher, error) {
	out := make([][]*cipher, hi-lo)
	for b := range out {
		out[b] = make([]*cipher, len(r.pairs))
	}
	err := c.each(ctx, pool, len(out)*len(r.groups), func(w *scratch, index int) error {
		b, g := index/len(r.groups), r.groups[index%len(r.groups)]
		in := c.input(w, r, lo+b, g)
		h := c.ev.sign(w, in, r.sign)
		c.ev.free(in)
		shifted := out[b][g.first:][:len(g.pairs)]
		shifted[0] = h
		for u := 1; u < len(shifted); u++ {
			// From the block with the highest bit of u removed, one rotation.
			top := 1
			for top*2 <= u {
				top *= 2
			}
			var err error
			if shifted[u], err = c.ev.rotate(w, shifted[u-top], top); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

func firstError(err error, errs []error) error {
	if err != nil {
		return err
	}
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

// input is the linear step: the sum over the encrypted columns of their products with the group's integers,
// re-labelled with the scale of the comparison, plus Alice's part in the clear.
func (c *computer) input(w *scratch, r *roundPlan, batch int, g *group) *cipher {
	top := topLevel(r.depth, r.sign)
	in := w.newCipher(top)
	in.scale = math.Exp2(r.scales.in)
	add := false
	for h, enc := range c.cols.encrypted {
		if enc {
			c.ev.sparse(w, in, c.tops[h][batch], g.whole[h], add)
			add = true
		}
	}
	w.LiftAdd(in.c[0], w.embed.roundParts(in.scale, w.Parts, func(lo, hi int) []float64 {
		part := w.values[lo:hi]
		clear(part)
		for h, f := range g.plain {
			addProduct(part, lo, f, c.slots[h][batch])
		}
		for j, x := range g.offset {
			if at := j * len(w.values) / len(g.offset); lo <= at && at < hi {
				w.values[at] += x
			}
		}
		return part
	}))
	return in
}

// memberships multiplies each cluster's comparisons: out[cluster][batch] is the
// soft membership at the aggregate level. h begins with batch lo.
func (c *computer) memberships(ctx context.Context, pool *engine.Pool, r *roundPlan, h [][]*cipher, lo int,
	out [][]*cipher) error {
	k := len(r.factors)
	var costs []int
	for range h {
		for _, fs := range r.factors {
			costs = append(costs, len(fs))
		}
	}
	return c.eachOf(ctx, pool, costs, func(w *scratch, index int) error {
		b, i := index/k, index%k
		var fs []*cipher
		for _, f := range r.factors[i] {
			fs = append(fs, c.ev.side(w, h[b][f.pair], f.side))
		}
		out[i][lo+b] = c.ev.lower(c.ev.tree(w, fs), aggregateLevel)
		return nil
	})
}

// Aggregate is one encrypted total, reduced to what its decryption needs: the
// coefficient 0 of the plaintext is C0 + (c1 s')_0, so c1 is sent with only its
// coefficients at multiples of the stride and c0 with only its coefficient 0.
type Aggregate struct {
	// C1[i] has the coefficients modulo prime i, C0[i] is coefficient 0 of c0.
	C1 [aggregateLevel + 1][]uint32
	C0 [aggregateLevel + 1]uint64
}

// total is an aggregate with what Alice knows about it.
type total struct {
	Aggregate
	// unit is the value of one record: the integer that a membership of 1 adds.
	unit float64
}

// totals computes the k (1 + d) encrypted totals of a round, in the order
// count, sum of column 0, ... of cluster 0, then cluster 1: each re-randomised
// under the public key, switched to the smaller ring and reduced to
// coefficient 0. It frees the memberships.
func (c *computer) totals(ctx context.Context, pool *engine.Pool, round int, member [][]*cipher) ([]total, error) {
	width := c.cols.d + 1
	if c.last == nil {
		c.last = make([]total, len(member)*width)
	}
	out := c.last
	costs := make([]int, len(out))
	column := func(index int) int {
		if h := index%width - 1; h >= 0 {
			return h
		}
		return c.cols.d
	}
	for index := range costs {
		if h := column(index); h < c.cols.d && c.cols.encrypted[h] {
			costs[index] = 1 // a relinearisation more
		}
	}
	drawn := c.masks
	err := c.eachOf(ctx, pool, costs, func(w *scratch, index int) error {
		c.total(w, &out[index], member[index/width], column(index), c.maskOf(w.Room(), drawn, round*len(out)+index))
		return nil
	}, c.drawAhead(round+1)...)
	for _, ms := range member {
		c.ev.free(ms...)
	}
	return out, err
}

func (c *computer) total(w *scratch, out *total, member []*cipher, h int, m *mask) {
	scale, lattice := member[0].scale, c.params.lattice
	acc := w.newZero(aggregateLevel)
	var heads [][]uint32 // what is added to coefficient 0 of the first half, all of it that is sent
	if h == c.cols.d || !c.cols.encrypted[h] {
		for b, m := range member {
			lattice.MultiplyAdd(acc.c[0], m.c[0], c.plain[h][b])
			lattice.MultiplyAdd(acc.c[1], m.c[1], c.plain[h][b])
			w.ops.Plaintexts++
		}
		scale *= c.plainScale
	} else {
		for b, m := range member {
			if b == 0 {
				c.ev.product(w, m, c.lows[h][b], 1)
			} else {
				c.ev.addProduct(w, m, c.lows[h][b], 1)
			}
		}
		scale *= c.lows[h][0].scale
		heads = append(heads, w.RelineariseHead(aggregateLevel, c.ev.relin, acc.c[1]))
		w.ops.Relins++
	}
	heads = append(heads, c.rerandomise(w, acc, m))
	heads = append(heads, w.SwitchHead(aggregateLevel, c.small, acc.c[1], acc.c[1]), lattice.Head(acc.c[0]))
	w.ops.Switches++
	c.extract(&out.Aggregate, acc.c[1], heads)
	out.unit = scale / float64(c.params.N())
	c.ev.free(acc)
}

// mask is what an encryption of zero under the public key is made of: its secret, as a factor, the second half's error,
// and coefficient 0 of the first half's.
type mask struct {
	u, e  rns.Poly
	first int8
	room  rns.Room // of u and e
}

// maskDraft is a mask as it is drawn: u and e, in small coefficients.
type maskDraft struct {
	smalls
	first int8
}

// draftMask draws the mask of total number index of all rounds.
func (c *computer) draftMask(room rns.Room, index int) maskDraft {
	rnd := c.rnd.prng("re-randomisation", index)
	d := maskDraft{smalls: newSmalls(room, 2)}
	ternary(d.at(0), rnd)
	var first [1]int8
	smallErrors(first[:], rnd)
	d.first = first[0]
	smallErrors(d.at(1), rnd)
	return d
}

// mask is the draft's, which it clears.
func (d *maskDraft) mask(room rns.Room) *mask {
	m := &mask{transformed(room, d.at(0), aggregateLevel), transformed(room, d.at(1), aggregateLevel), d.first, room}
	d.wipe()
	room.Chain().Factor(m.u)
	return m
}

// drawMask is both.
func (c *computer) drawMask(room rns.Room, index int) *mask {
	d := c.draftMask(room, index)
	return d.mask(room)
}

// masks are those of some totals that follow each other, from number first of all rounds on.
type masks struct {
	first int
	drawn []*mask
}

// take returns the mask of total number index of all rounds, once; nil where there is none.
func (m masks) take(index int) (out *mask) {
	if i := index - m.first; 0 <= i && i < len(m.drawn) {
		out, m.drawn[i] = m.drawn[i], nil
	}
	return out
}

// forget clears those that nobody has taken.
func (m masks) forget() {
	for i, x := range m.drawn {
		if x != nil {
			x.room.Wipe(x.u, x.e)
		}
		m.drawn[i] = nil
	}
}

// maskOf takes the mask of total number index of all rounds, drawn ahead or now.
func (c *computer) maskOf(room rns.Room, drawn masks, index int) *mask {
	if m := drawn.take(index); m != nil {
		return m
	}
	return c.drawMask(room, index)
}

// masksAhead bounds the masks that are drawn ahead.
const masksAhead = 16

// drawAhead returns what makes masks of a round, from 0, each once: a part for each that draws it, and then one for
// each that transforms it, unless it is being drawn: then who draws it does.
func (c *computer) drawAhead(round int) (parts []func(room rns.Room)) {
	c.masks = masks{}
	if round < c.rounds {
		c.masks = masks{round * c.perRound, make([]*mask, min(c.perRound, masksAhead))}
	}
	m := c.masks
	drafts, come := make([]maskDraft, len(m.drawn)), make([]atomic.Int32, len(m.drawn))
	second := func(room rns.Room, i int) {
		if come[i].Add(1) == 2 {
			m.drawn[i] = drafts[i].mask(room)
		}
	}
	for i := range drafts {
		parts = append(parts, func(room rns.Room) {
			drafts[i] = c.draftMask(room, m.first+i)
			second(room, i)
		})
	}
	for i := range drafts {
		parts = append(parts, func(room rns.Room) { second(room, i) })
	}
	return parts
}

// rerandomise adds an encryption of zero under the public key: without it c1
// would be a function of Alice's data that the holder of the secret could test.
// Of the first half's error it returns coefficient 0, which alone is sent.
func (c *computer) rerandomise(w *scratch, a *cipher, m *mask) []uint32 {
	lattice := c.params.lattice
	for i := range a.c {
		lattice.MultiplyAdd(a.c[i], c.pk[i], m.u)
	}
	lattice.Add(a.c[1], a.c[1], m.e)
	m.room.Wipe(m.u, m.e)
	w.ops.Encryptions++
	return splitSmall(lattice, m.first, aggregateLevel)
}

// extract adds up coefficient 0 of the first half and keeps the coefficients of the second, c1, that meet the secret's.
func (c *computer) extract(out *Aggregate, c1 rns.Poly, heads [][]uint32) {
	p := c.params
	for i, m := range p.aggregate {
		out.C0[i] = 0
		for _, h := range heads {
			out.C0[i] = m.add(out.C0[i], uint64(h[i]))
		}
		if out.C1[i] == nil {
			out.C1[i] = make([]uint32, p.N()/p.stride)
		}
		for j := range out.C1[i] {
			out.C1[i][j] = c1[i][j*p.stride]
		}
	}
}

// addInteger adds z to the plaintext's coefficient 0.
func (a *Aggregate) addInteger(p *parameters, z int64) {
	for j, x := range splitInteger(p, z) {
		a.C0[j] = p.aggregate[j].add(a.C0[j], x)
	}
}

// operations returns the operations since the last call.
func (c *computer) operations() Operations {
	o := c.ops
	c.ops = Operations{}
	for _, w := range c.work {
		if w != nil {
			o.add(w.ops)
			w.ops = Operations{}
		}
	}
	return o
}
