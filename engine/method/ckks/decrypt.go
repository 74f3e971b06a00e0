package ckks

import (
	"context"
	"fmt"
	"math"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
)

// smallSecret is a secret of the aggregates' ring, or a share of one: its
// coefficients modulo each of the two primes.
type smallSecret [aggregateLevel + 1][]uint64

// newSmallSecret reads the coefficients of an embedded secret.
func newSmallSecret(p *parameters, sk *rlwe.SecretKey) smallSecret {
	r := p.rings.RingQ.AtLevel(aggregateLevel)
	c := r.NewPoly()
	r.IMForm(ring.Poly{Coeffs: sk.Value.Q.Coeffs[:aggregateLevel+1]}, c)
	words := p.lattice.FromWide(c.Coeffs)
	p.lattice.Inverse(words)
	var s smallSecret
	for j := range s {
		s[j] = make([]uint64, p.N()/p.stride)
		for i := range s[j] {
			s[j][i] = uint64(words[j][i*p.stride])
		}
	}
	rns.Clear(words)
	p.lattice.Free(words)
	return s
}

// product is coefficient 0 of c1 s modulo each prime: c1_0 s_0 + 2 sum c1_i s_i
// in the conjugate-invariant ring, whose basis is 1 and X^i + X^-i.
func (s *smallSecret) product(p *parameters, a *Aggregate) (out [aggregateLevel + 1]uint64) {
	for j := range out {
		m := p.aggregate[j]
		sum := m.inner(a.C1[j][1:], s[j][1:])
		out[j] = m.add(m.add(sum, sum), m.multiply(a.C1[j][0], s[j][0]))
	}
	return out
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

// encryption is that of one plaintext: what can be drawn at once and before there is one, and the rest.
type encryption struct {
	draws  []func()
	finish func(run region, m ring.Poly) columnCipher
}

// beginning begins an encryption at a level.
type beginning func(level int, scale float64, purpose string, index int) encryption

// columnTools are what the encryption of columns needs.
type columnTools struct {
	p                  *parameters
	lay                layout
	topScale, lowScale float64
	rnd                entropy
	begin              beginning
	embed              []*embedder // by worker, nil until it needs one
	values             [][]float64 // likewise
}

// its is a worker's embedder. The worker makes it when it first needs one.
func (c *columnTools) its(worker int) *embedder {
	if c.embed[worker] == nil {
		c.embed[worker], c.values[worker] = newEmbedder(c.p), make([]float64, c.p.slots())
	}
	return c.embed[worker]
}

// coefficients are those of ciphertext number at of a column: of those for comparisons and then those for aggregates.
func (c *columnTools) coefficients(worker int, column []float64, at int) ([]float64, error) {
	t := c.its(worker)
	values := c.values[worker]
	if at < c.lay.tops() {
		c.lay.fillTop(at, column, values)
	} else {
		c.lay.fillLow(at-c.lay.tops(), column, values)
	}
	out := make([]float64, c.p.N())
	return out, t.coefficients(values, out)
}

// start begins the encryption of ciphertext number at of m, number index of all.
func (c *columnTools) start(m *columnMessage, at, index int) encryption {
	column := fmt.Sprintf("column %d", m.Column)
	if at < c.lay.tops() {
		return c.begin(c.p.MaxLevel(), c.topScale, column, index)
	}
	return c.begin(aggregateLevel, c.lowScale, column, index)
}

// end ends it, given its coefficients.
func (c *columnTools) end(run region, worker int, m *columnMessage, at, index int, e encryption,
	coefficients []float64) {
	t := c.its(worker)
	if at < c.lay.tops() {
		t.roundBy(dither(m.Dither))
		t.drawn = uint64(at)
		m.Tops[at] = e.finish(run, t.wide(c.p, run, coefficients, c.p.MaxLevel(), c.topScale))
		return
	}
	t.roundBy(c.rnd.rounding(fmt.Sprintf("column %d: rounding", m.Column), index))
	m.Lows[at-c.lay.tops()] = e.finish(run, t.wide(c.p, run, coefficients, aggregateLevel, c.lowScale))
}

// encryptColumns encrypts a party's columns: the work item is one ciphertext, or where these are few, of two levels,
// a part of one.
func encryptColumns(ctx context.Context, pool *engine.Pool, p *parameters, lay layout, columns map[int][]float64,
	order []int, topScale, lowScale float64, rnd entropy, begin beginning, seeded bool) ([]*columnMessage, error) {
	msgs := make([]*columnMessage, len(order))
	per := lay.tops() + lay.lows()
	for i, h := range order {
		msgs[i] = &columnMessage{Column: h, Seeded: seeded, Dither: rnd.key("dither", h),
			Tops: make([]columnCipher, lay.tops()), Lows: make([]columnCipher, lay.lows())}
	}
	c := &columnTools{p: p, lay: lay, topScale: topScale, lowScale: lowScale, rnd: rnd, begin: begin,
		embed: make([]*embedder, pool.Workers()), values: make([][]float64, pool.Workers())}
	n := len(order) * per
	errs := make([]error, n)
	progress := &steps{pool: pool, what: "encryption", total: n}
	encode := func(worker, index int) (x []float64) {
		x, errs[index] = c.coefficients(worker, columns[order[index/per]], index%per)
		return x
	}
	end := func(run region, worker, index int, e encryption, coefficients []float64) {
		defer progress.one()
		if errs[index] == nil {
			c.end(run, worker, msgs[index/per], index%per, index, e, coefficients)
		}
	}
	if n >= 2*pool.Workers() {
		err := pool.Run(ctx, n, func(worker, index int) {
			e, x := c.start(msgs[index/per], index%per, index), encode(worker, index)
			for _, draw := range e.draws {
				draw()
			}
			end(alone, worker, index, e, x)
		})
		return msgs, firstError(err, errs)
	}
	var draws []func()
	var es []encryption
	for index := range n {
		es = append(es, c.start(msgs[index/per], index%per, index))
		draws = append(draws, es[index].draws...)
	}
	coefficients := make([][]float64, n)
	err := pool.Run(ctx, n+len(draws), func(worker, i int) {
		if i < n {
			coefficients[i] = encode(worker, i)
		} else {
			draws[i-n]()
		}
	})
	for index := range n {
		if err == nil {
			end(abreast(ctx, pool), 0, index, es[index], coefficients[index])
			err = ctx.Err()
		}
	}
	return msgs, firstError(err, errs)
}

// checkTotal compares the noisy decrypted counts with the public n: together they
// are about n, and no count or sum of features in [-1, 1] is larger than n or,
// for a count, negative. A comparison that left its domain or an overflow of
// the modulus is off by orders of magnitude and otherwise silent. Memberships
// sum to at most 1, and to less where several bisectors meet; what a sound round
// may lose is half of the records. It is a function of noisy values, and its error
// carries none of them.
func checkTotal(values []int64, units []float64, n, k, d int, noise noisePlan) error {
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
				lo, sigma = -float64(n)*signError, noise.count
			}
			if s := slack + deviations*spread*sigma; x < lo-s || x > hi+s {
				return fail("a total")
			}
		}
	}
	s := slack + deviations*spread*noise.count*math.Sqrt(float64(k))
	if total < float64(n)/2-s || total > hi+s {
		return fail("the sum of the counts")
	}
	return nil
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
