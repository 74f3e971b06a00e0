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

// encryptColumns encrypts a party's columns: the work item is one ciphertext, or where these are few, of two levels,
// a part of one.
func encryptColumns(ctx context.Context, pool *engine.Pool, p *parameters, lay layout, columns map[int][]float64,
	order []int, topScale, lowScale float64, rnd entropy,
	encrypt func(run region, m ring.Poly, scale float64, purpose string, index int) columnCipher,
	seeded bool) ([]*columnMessage, error) {
	msgs := make([]*columnMessage, len(order))
	per := lay.tops() + lay.lows()
	for i, h := range order {
		msgs[i] = &columnMessage{Column: h, Seeded: seeded, Dither: rnd.key("dither", h),
			Tops: make([]columnCipher, lay.tops()), Lows: make([]columnCipher, lay.lows())}
	}
	type tool struct {
		*embedder
		values []float64
	}
	tools := make([]*tool, pool.Workers())
	its := func(worker int) *tool {
		if tools[worker] == nil {
			tools[worker] = &tool{newEmbedder(p), make([]float64, p.slots())}
		}
		return tools[worker]
	}
	errs, coefficients := make([]error, len(order)*per), make([][]float64, len(order)*per)
	progress := &steps{pool: pool, what: "encryption", total: len(errs)}
	encode := func(worker, index int) {
		t, values, at := its(worker), columns[order[index/per]], index%per
		if at < lay.tops() {
			lay.fillTop(at, values, t.values)
		} else {
			lay.fillLow(at-lay.tops(), values, t.values)
		}
		coefficients[index] = make([]float64, p.N())
		errs[index] = t.coefficients(t.values, coefficients[index])
	}
	finish := func(run region, worker, index int) {
		defer progress.one()
		if errs[index] != nil {
			return
		}
		t, m, at := its(worker), msgs[index/per], index%per
		column := fmt.Sprintf("column %d", m.Column)
		if at < lay.tops() {
			t.roundBy(dither(m.Dither))
			t.drawn = uint64(at)
			m.Tops[at] = encrypt(run, t.wide(p, run, coefficients[index], p.MaxLevel(), topScale), topScale, column, index)
		} else {
			t.roundBy(rnd.rounding(column+": rounding", index))
			m.Lows[at-lay.tops()] = encrypt(run, t.wide(p, run, coefficients[index], aggregateLevel, lowScale), lowScale,
				column, index)
		}
		coefficients[index] = nil
	}
	if len(errs) >= 2*pool.Workers() {
		err := pool.Run(ctx, len(errs), func(worker, index int) {
			encode(worker, index)
			finish(alone, worker, index)
		})
		return msgs, firstError(err, errs)
	}
	err := pool.Run(ctx, len(errs), encode)
	for index := range errs {
		if err == nil {
			finish(abreast(ctx, pool), 0, index)
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
