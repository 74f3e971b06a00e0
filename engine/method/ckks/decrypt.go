package ckks

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
)

// smallSecret is a secret of the aggregates' ring, or a share of one: its
// coefficients modulo each of the two primes.
type smallSecret [aggregateLevel + 1][]uint64

// newSmallSecret reads the coefficients of an embedded secret.
func newSmallSecret(p *parameters, sk secretRows) smallSecret {
	words := sk.factor(p.lattice, aggregateLevel+1)
	p.lattice.Unfactor(words, words)
	p.lattice.Inverse(words)
	var s smallSecret
	for j := range s {
		s[j] = make([]uint64, p.N()/p.stride)
		for i := range s[j] {
			s[j][i] = uint64(words[j][i*p.stride])
		}
	}
	p.lattice.Wipe(words)
	return s
}

// forget clears the secret.
func (s *smallSecret) forget() { clearRows(s[:]) }

// clearRows sets rows to zero.
func clearRows(rows [][]uint64) {
	for _, row := range rows {
		clear(row)
	}
}

// readAtOnce is how many coefficients of a total are read at a time, in whole bytes.
const readAtOnce = 512

// product is coefficient 0 of c1 s modulo each prime: c1_0 s_0 + 2 sum c1_i s_i
// in the conjugate-invariant ring, whose basis is 1 and X^i + X^-i.
func (s *smallSecret) product(p *parameters, t *receivedTotal) (out [aggregateLevel + 1]uint64, err error) {
	var words [readAtOnce]uint64
	for j, m := range p.aggregate {
		packed := t.c1[j]
		for rest := s[j]; len(rest) > 0; {
			c1 := words[:min(readAtOnce, len(rest))]
			size := packedSize(len(c1), m.q)
			if f := unpackRow(c1, packed[:size], m.q); f != "" {
				return out, unsound(kindAggregates, f)
			}
			sum := m.inner(c1, rest[:len(c1)])
			out[j] = m.add(out[j], m.add(sum, sum))
			if len(rest) == len(s[j]) {
				out[j] = m.add(out[j], m.q-m.multiply(c1[0], rest[0]))
			}
			packed, rest = packed[size:], rest[len(c1):]
		}
	}
	return out, nil
}

// crt joins residues modulo the aggregate's primes into a centred integer. The
// modulus is below 2^60, so the result fits an int64.
func crt(p *parameters, x [aggregateLevel + 1]uint64) int64 {
	m0, m1 := p.aggregate[0], p.aggregate[1]
	d := m1.add(x[1], m1.q-m1.reduce(x[0]))
	v := x[0] + m0.q*m1.multiply(m1.below(d), p.aggregateInverse)
	q := m0.q * m1.q
	// q is subtracted where v is above its half.
	return int64(v - q&-((q/2-v)>>63))
}

// splitInteger is z modulo each of the aggregate's primes.
func splitInteger(p *parameters, z int64) (out [aggregateLevel + 1]uint64) {
	for j, m := range p.aggregate {
		out[j] = m.signed(z)
	}
	return out
}

// encryption is that of one plaintext.
type encryption struct {
	// draws can be drawn at once, before there is a plaintext.
	draws []func()
	// finish encrypts the polynomial of integers m, which it spoils, when what it returns has been called, in any order
	// or at once.
	finish func(m []int64) (columnCipher, []func())
}

// beginning begins an encryption at a level.
type beginning func(level int, scale float64, purpose string, index int) encryption

// columnEncryption is that of a party's columns: its work item is one ciphertext, or where these are few, of two
// levels, a part of one.
type columnEncryption struct {
	p                  *parameters
	lay                layout
	pool               *engine.Pool
	columns            map[int][]float64
	topScale, lowScale float64
	rnd                entropy
	begin              beginning
	msgs               []*columnMessage
	embed              []*embedder // by worker, or by ciphertext where these are few; nil until one is needed
	count              int         // of ciphertexts
	// es, of few ciphertexts, have begun, and plain are what they encrypt.
	es    []encryption
	plain [][]int64
}

// newColumnEncryption is for columns in a given order.
func newColumnEncryption(pool *engine.Pool, p *parameters, lay layout, columns map[int][]float64, order []int,
	topScale, lowScale float64, rnd entropy, begin beginning, seeded bool) *columnEncryption {
	c := &columnEncryption{p: p, lay: lay, pool: pool, columns: columns, topScale: topScale, lowScale: lowScale, rnd: rnd,
		begin: begin, count: len(order) * (lay.tops() + lay.lows())}
	for _, h := range order {
		c.msgs = append(c.msgs, &columnMessage{Column: h, Seeded: seeded, Dither: rnd.key("dither", h),
			Tops: make([]columnCipher, lay.tops()), Lows: make([]columnCipher, lay.lows())})
	}
	c.embed = make([]*embedder, max(pool.Workers(), c.count))
	return c
}

// place is where ciphertext number index is: in which message, and its number in a column, of those for comparisons and
// then those for aggregates.
func (c *columnEncryption) place(index int) (m *columnMessage, at int) {
	per := c.lay.tops() + c.lay.lows()
	return c.msgs[index/per], index % per
}

// encode returns the integers of ciphertext number index, in the memory of an embedder.
func (c *columnEncryption) encode(embedder, index int) []int64 {
	if c.embed[embedder] == nil {
		c.embed[embedder] = newEmbedder(c.p)
	}
	t := c.embed[embedder]
	m, at := c.place(index)
	values, column, scale := t.values, c.columns[m.Column], c.topScale
	if at < c.lay.tops() {
		c.lay.fillTop(at, column, values)
		t.roundBy(dither(m.Dither))
		t.drawn = uint64(at)
	} else {
		c.lay.fillLow(at-c.lay.tops(), column, values)
		t.roundBy(c.rnd.rounding(fmt.Sprintf("column %d: rounding", m.Column), index))
		scale = c.lowScale
	}
	t.coefficients(values, values)
	return t.round(values, scale)
}

// start begins the encryption of ciphertext number index.
func (c *columnEncryption) start(index int) encryption {
	m, at := c.place(index)
	purpose := fmt.Sprintf("column %d", m.Column)
	if at < c.lay.tops() {
		return c.begin(c.p.MaxLevel(), c.topScale, purpose, index)
	}
	return c.begin(aggregateLevel, c.lowScale, purpose, index)
}

// end puts ciphertext number index in its place and returns what is left to do for it.
func (c *columnEncryption) end(index int, e encryption, plain []int64) (rows []func()) {
	m, at := c.place(index)
	if at < c.lay.tops() {
		m.Tops[at], rows = e.finish(plain)
	} else {
		m.Lows[at-c.lay.tops()], rows = e.finish(plain)
	}
	return rows
}

// early returns what can be done beside other things before finish: nothing where there are many ciphertexts.
func (c *columnEncryption) early() (parts []func()) {
	n := c.count
	if n >= 2*c.pool.Workers() {
		return nil
	}
	c.plain = make([][]int64, n)
	for index := range n {
		c.es = append(c.es, c.start(index))
		parts = append(parts, func() { c.plain[index] = c.encode(index, index) })
		parts = append(parts, c.es[index].draws...)
	}
	return parts
}

// finish returns the messages. What early has returned has been done.
func (c *columnEncryption) finish(ctx context.Context) ([]*columnMessage, error) {
	progress := &steps{pool: c.pool, what: "encryption", total: c.count}
	if c.es == nil {
		err := c.pool.Run(ctx, c.count, func(worker, index int) {
			e := c.start(index)
			for _, draw := range e.draws {
				draw()
			}
			for _, row := range c.end(index, e, c.encode(worker, index)) {
				row()
			}
			progress.one()
		})
		c.forget()
		return c.msgs, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var rows []func()
	for index, e := range c.es {
		rows = append(rows, c.end(index, e, c.plain[index])...)
		progress.one()
	}
	err := c.pool.Run(ctx, len(rows), func(_, i int) { rows[i]() })
	c.forget()
	return c.msgs, err
}

// forget clears what has been encrypted, with its errors: the difference to a ciphertext is a multiple of the secret.
func (c *columnEncryption) forget() {
	for _, t := range c.embed {
		if t != nil {
			clear(t.values)
			clear(t.complex)
			clear(t.whole)
		}
	}
}

// checkTotal compares the noisy decrypted counts with the public n: together they
// are about n, and no count or sum of features in [-1, 1] is larger than n or,
// for a count, negative by more than a membership is at least. A comparison that left its domain or an overflow of
// the modulus is off by orders of magnitude and otherwise silent. Memberships
// sum to about 1, and to less where several bisectors meet: what the sum is at least and at most is public, too.
// It is a function of noisy values, and its error carries none of them. It returns the sum of the counts.
func checkTotal(values []int64, units []float64, n, k, d int, bounds memberships, noise noisePlan) (float64, error) {
	const deviations = 8 // of the noise: 1e-15
	spread := math.Sqrt(noise.surplus())
	slack := noise.error() + 1
	hi := float64(n) * (1 + float64(k)*signError)
	fail := func(what string) error {
		return fault.Failed("ckks check total", fmt.Sprintf("%s of the round is none that %d records can have", what, n),
			"start again; if it persists the records lie mostly on bisectors (tighten --bounds) or the ciphertexts are wrong",
			nil)
	}
	var total float64
	for j := range k {
		for h := range 1 + d {
			x := float64(values[j*(1+d)+h]) / units[j*(1+d)+h]
			lo, sigma := -hi, noise.sum
			if h == 0 {
				total += x
				lo, sigma = float64(n)*bounds.one, noise.count
			}
			if s := slack + deviations*spread*sigma; x < lo-s || x > hi+s {
				return 0, fail("a total")
			}
		}
	}
	s := slack + deviations*spread*noise.count*math.Sqrt(float64(k))
	if total < float64(n)*bounds.sum-s || total > hi+float64(n)*bounds.more+s {
		return 0, fail("the sum of the counts")
	}
	return total, nil
}

// follow checks the totals of a round that has begun with the current centroids, and returns those that follow.
func (q *peer) follow(round int, current [][]float64, values []int64, units []float64,
	average *averager) ([][]float64, error) {
	n, k := q.run.lay.n, q.job.K
	total, err := checkTotal(values, units, n, k, q.cols.d, q.job.memberships(), q.noise)
	if err != nil {
		return nil, err
	}
	next := divide(average.add(inRecords(values, units), q.noise, n, k), current, q.noise, q.job.post())
	if q.job.argmin() == Rank && total < float64(n)*mostLost {
		if !q.tied {
			q.Note("round %d: most records were between centroids that no comparison tells apart, and count for little; "+
				"of later rounds this is not said again", round)
			q.tied = true
		}
		if round < q.job.rounds() {
			q.breakTies(round, current, next)
		}
	}
	return q.settle(round, current, next), nil
}

// breakTies moves centroids that stay where they are, each a little in a public direction: where most records are
// equally far from three of them or more, none would ever have any. Which ones stay follows from released totals.
func (q *peer) breakTies(round int, current, next [][]float64) {
	const most = 1.0 / 16
	st := q.Public.Stream(int(protocol.Server), round, "ties")
	for j, c := range next {
		if !slices.Equal(c, current[j]) {
			continue
		}
		for h := range c {
			c[h] = min(max(c[h]+most*(2*st.Float64()-1), -1), 1)
		}
	}
}

// averager smooths a run's totals once the centroids have settled: from the
// third round on each new total is averaged with the ones before, whose weights
// halve every round. It is post-processing of what was released, and pays where
// the noise is more than a fiftieth of a cluster.
type averager struct {
	totals []float64
	weight float64
	rounds int
}

func (a *averager) add(totals []float64, noise noisePlan, n, k int) []float64 {
	a.rounds++
	keep := 0.0
	if a.rounds > 2 && noise.count > float64(n)/float64(50*k) {
		keep = 0.5
	}
	a.weight = keep*a.weight + 1
	if a.totals == nil {
		a.totals = make([]float64, len(totals))
	}
	out := make([]float64, len(totals))
	for i, x := range totals {
		a.totals[i] = float64(keep*a.totals[i]) + x
		out[i] = a.totals[i] / a.weight
	}
	return out
}

// inRecords expresses a round's decrypted integers in records.
func inRecords(values []int64, units []float64) []float64 {
	out := make([]float64, len(values))
	for i := range values {
		out[i] = float64(values[i]) / units[i]
	}
	return out
}

// divide turns noisy counts and sums into centroids. A cluster whose count is
// lost in the noise keeps its centroid. Coordinates outside the box are folded
// back, truncated, or (post "none") clamped as the next comparison needs.
func divide(totals []float64, old [][]float64, noise noisePlan, post step.Post) [][]float64 {
	d := len(old[0])
	floor := 1.0
	if noise.active() {
		floor = max(floor, 2*noise.count)
	}
	next := make([][]float64, len(old))
	for j := range next {
		t := totals[j*(1+d):]
		next[j] = append([]float64(nil), old[j]...)
		if t[0] < floor {
			continue
		}
		for h := range d {
			x := t[1+h] / t[0]
			if post == step.Fold {
				x = fold(x)
			}
			next[j][h] = min(max(x, -1), 1)
		}
	}
	return next
}

// fold reflects x at the borders of [-1, 1] until it is inside (Thesis-H,
// section 7.4).
func fold(x float64) float64 {
	y := math.Mod(x+1, 4)
	if y < 0 {
		y += 4
	}
	if y > 2 {
		y = 4 - y
	}
	return y - 1
}
