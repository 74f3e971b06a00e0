package he

import (
	"context"
	"fmt"
	"math"
	"math/big"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"

	"github.com/cohort-engine/cohort/engine"
)

// computer is the state of the party that computes on ciphertexts (Alice): her
// own columns in the clear, the others' encrypted, and the public keys.
type computer struct {
	params *Parameters
	lay    layout
	cols   columns
	own    [][]float64 // by column; nil for a column that is encrypted
	ev     *evaluator
	work   []*scratch // by worker

	// tops[h] and lows[h] are the ciphertexts of column h in the layout's order.
	tops, lows [][]*cipher
	// packed[h] are the columns spread for comparison by rank.
	packed [][]*cipher
	// plain[h][batch] are own columns, and plain[d] the 0/1 mask of records, in
	// Montgomery form for the aggregates.
	plain      [][]ring.Poly
	plainScale float64

	// pk re-randomises aggregates, small switches them to the smaller ring.
	pkB, pkA ring.Poly
	small    *rlwe.GadgetCiphertext
	rnd      entropy
}

// newComputer prepares Alice's own columns. Keys and the others' columns come
// with the setup messages.
func newComputer(p *Parameters, lay layout, cols columns, own [][]float64, lowScale float64, workers int, rnd entropy) (*computer, error) {
	c := &computer{params: p, lay: lay, cols: cols, own: own, rnd: rnd}
	for range workers {
		c.work = append(c.work, newScratch(p))
	}
	c.plainScale = lowScale
	c.plain = make([][]ring.Poly, cols.d+1)
	c.tops, c.lows = make([][]*cipher, cols.d), make([][]*cipher, cols.d)
	w := c.work[0]
	r := p.RingQ().AtLevel(aggregateLevel)
	for h := range c.plain {
		if h < cols.d && cols.encrypted[h] {
			continue
		}
		var column []float64
		if h < cols.d {
			column = own[h]
		}
		for b := range lay.lows() {
			lay.fillLow(b, column, w.values)
			m, err := w.encode(w.values, aggregateLevel, c.plainScale)
			if err != nil {
				return nil, err
			}
			q := r.NewPoly()
			r.MForm(m, q)
			c.plain[h] = append(c.plain[h], q)
		}
	}
	return c, nil
}

// grouping is the number of ciphertexts of comparisons per batch, and how many
// comparisons each holds: as few ciphertexts as the blocks allow, equally full.
func (l layout) grouping(pairs int) (groups, per int) {
	groups = (pairs + l.blocks - 1) / l.blocks
	return groups, (pairs + groups - 1) / groups
}

// compare evaluates h for every batch and kept pair: out[batch][pair], block 0.
func (c *computer) compare(ctx context.Context, pool *engine.Pool, r *roundPlan) ([][]*cipher, error) {
	out := make([][]*cipher, c.lay.batches)
	for b := range out {
		out[b] = make([]*cipher, len(r.pairs))
	}
	groups, per := c.lay.grouping(len(r.pairs))
	errs := make([]error, c.lay.batches*groups)
	err := pool.Run(ctx, len(errs), func(worker, index int) {
		w := c.work[worker]
		b, g := index/groups, index%groups
		pairs := r.pairs[g*per : min((g+1)*per, len(r.pairs))]
		in, err := c.input(w, r, b, pairs)
		if err != nil {
			errs[index] = err
			return
		}
		h := c.ev.halfSign(w, in)
		shifted := make([]*cipher, len(pairs))
		for u := range pairs {
			if u == 0 {
				shifted[u] = h
			} else {
				// From the block with the highest bit of u removed, one rotation.
				top := 1
				for top*2 <= u {
					top *= 2
				}
				if shifted[u], err = c.ev.rotate(w, shifted[u-top], top*c.lay.n); err != nil {
					errs[index] = err
					return
				}
			}
			out[b][g*per+u] = shifted[u]
		}
	})
	return out, firstError(err, errs)
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

// input is the linear step: sum_h gainInt_h X_h over the encrypted columns,
// re-labelled with the scale of the comparison, plus Alice's part in the clear.
func (c *computer) input(w *scratch, r *roundPlan, batch int, pairs []pair) (*cipher, error) {
	top := topLevel(r.depth)
	scale := math.Exp2(r.scales.in)
	in := c.ev.newCipher(top)
	in.scale = scale
	for u, p := range pairs {
		for h, enc := range c.cols.encrypted {
			if enc && p.gainInt[h] != 0 {
				c.ev.addScaled(w, top, float64(p.gainInt[h]), c.tops[h][batch*c.lay.blocks+u], in.c0, in.c1)
			}
		}
	}
	lo, hi := c.lay.rows(batch)
	clear(w.values)
	for u, p := range pairs {
		at := w.values[u*c.lay.n:]
		for i := lo; i < hi; i++ {
			t := p.offset
			for h, enc := range c.cols.encrypted {
				if !enc {
					t += float64(p.gain[h] * c.own[h][i])
				}
			}
			at[i-lo] = t
		}
	}
	m, err := w.encode(w.values, top, scale)
	if err != nil {
		return nil, err
	}
	c.params.RingQ().AtLevel(top).Add(in.c0, m, in.c0)
	return in, nil
}

// winners multiplies each cluster's comparisons: out[cluster][batch] is the
// soft membership at the aggregate level.
func (c *computer) winners(ctx context.Context, pool *engine.Pool, r *roundPlan, h [][]*cipher) ([][]*cipher, error) {
	k := len(r.factors)
	out := make([][]*cipher, k)
	for i := range out {
		out[i] = make([]*cipher, c.lay.batches)
	}
	err := pool.Run(ctx, k*c.lay.batches, func(worker, index int) {
		w := c.work[worker]
		b, i := index/k, index%k
		var fs []*cipher
		for _, f := range r.factors[i] {
			fs = append(fs, c.ev.side(h[b][f.pair], f.side))
		}
		top := c.ev.tree(w, fs)
		m := c.ev.newCipher(aggregateLevel)
		m.c0.CopyLvl(aggregateLevel, top.c0)
		m.c1.CopyLvl(aggregateLevel, top.c1)
		m.scale = top.scale
		out[i][b] = m
	})
	return out, err
}

// Aggregate is one encrypted total, reduced to what its decryption needs: the
// coefficient 0 of the plaintext is C0 + (c1 s')_0, so c1 is sent with only its
// coefficients at multiples of the stride and c0 with only its coefficient 0.
type Aggregate struct {
	// C1[i] has the coefficients modulo prime i, C0[i] is coefficient 0 of c0.
	C1 [aggregateLevel + 1][]uint64
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
// coefficient 0.
func (c *computer) totals(ctx context.Context, pool *engine.Pool, round int, member [][]*cipher) ([]total, error) {
	width := c.cols.d + 1
	out := make([]total, len(member)*width)
	err := pool.Run(ctx, len(out), func(worker, index int) {
		w := c.work[worker]
		i, h := index/width, index%width-1
		if h < 0 {
			h = c.cols.d
		}
		out[index] = c.total(w, member[i], h, round*len(out)+index)
	})
	return out, err
}

func (c *computer) total(w *scratch, member []*cipher, h, index int) total {
	r := c.params.RingQ().AtLevel(aggregateLevel)
	scale := member[0].scale
	acc := c.ev.newCipher(aggregateLevel)
	if h == c.cols.d || !c.cols.encrypted[h] {
		for b, m := range member {
			r.MulCoeffsMontgomeryThenAdd(m.c0, c.plain[h][b], acc.c0)
			r.MulCoeffsMontgomeryThenAdd(m.c1, c.plain[h][b], acc.c1)
			w.ops.Plaintexts++
		}
		scale *= c.plainScale
	} else {
		for b, m := range member {
			if b == 0 {
				c.ev.product(w, aggregateLevel, m, c.lows[h][b], 1)
			} else {
				c.ev.addProduct(w, aggregateLevel, m, c.lows[h][b], 1)
			}
		}
		scale *= c.lows[h][0].scale
		c.ev.keySwitch(w, aggregateLevel, w.c2, c.ev.relin)
		c.ev.divideP(w.k0, acc.c0)
		c.ev.divideP(w.k1, acc.c1)
		r.Add(acc.c0, w.c0, acc.c0)
		r.Add(acc.c1, w.c1, acc.c1)
		w.ops.Relins++
	}
	c.rerandomise(w, acc, index)
	c.switchRing(w, acc)
	return total{Aggregate: c.extract(acc), unit: scale / float64(c.params.N())}
}

// rerandomise adds an encryption of zero under the public key: without it c1
// would be a function of Alice's data that the holder of the secret could test.
func (c *computer) rerandomise(w *scratch, a *cipher, index int) {
	p := c.params
	r := p.RingQ().AtLevel(aggregateLevel)
	rnd := c.rnd.prng("re-randomisation", index)
	u := ternary(p, rnd, aggregateLevel)
	r.NTT(u, u)
	r.MForm(u, u)
	r.MulCoeffsMontgomeryThenAdd(u, c.pkB, a.c0)
	r.MulCoeffsMontgomeryThenAdd(u, c.pkA, a.c1)
	r.Add(a.c0, gaussian(p, rnd, aggregateLevel, -1).Q, a.c0)
	r.Add(a.c1, gaussian(p, rnd, aggregateLevel, -1).Q, a.c1)
	w.ops.Encryptions++
}

// switchRing re-encrypts under the secret of the smaller ring. The modulus and
// the one auxiliary prime stay below that ring's limit.
func (c *computer) switchRing(w *scratch, a *cipher) {
	r := c.params.RingQ().AtLevel(aggregateLevel)
	k0 := ringqp.Poly{Q: w.k0.Q, P: ring.Poly{Coeffs: w.k0.P.Coeffs[:1]}}
	k1 := ringqp.Poly{Q: w.k1.Q, P: ring.Poly{Coeffs: w.k1.P.Coeffs[:1]}}
	ct := &rlwe.Element[ringqp.Poly]{MetaData: &rlwe.MetaData{CiphertextMetaData: rlwe.CiphertextMetaData{IsNTT: true}}, Value: []ringqp.Poly{k0, k1}}
	if err := c.ev.rlwe.GadgetProductLazy(aggregateLevel, a.c1, c.small, ct); err != nil {
		panic(fmt.Sprintf("he: ring switching: %v", err))
	}
	c.ev.divideP(k1, a.c1)
	c.ev.divideP(k0, w.c0)
	r.Add(a.c0, w.c0, a.c0)
	w.ops.Switches++
}

// extract keeps coefficient 0 of c0, the mean of its values at the roots of
// unity, and the coefficients of c1 that meet the secret's.
func (c *computer) extract(a *cipher) Aggregate {
	p := c.params
	r := p.RingQ().AtLevel(aggregateLevel)
	r.INTT(a.c1, a.c1)
	var out Aggregate
	n := new(big.Int).SetInt64(int64(p.N()))
	for i, s := range r.SubRings[:aggregateLevel+1] {
		q := new(big.Int).SetUint64(s.Modulus)
		sum := new(big.Int)
		var acc uint64
		for _, x := range a.c0.Coeffs[i] {
			// Below 2^30 each, 2^15 of them.
			acc += x
		}
		sum.SetUint64(acc)
		sum.Mul(sum, new(big.Int).ModInverse(n, q))
		out.C0[i] = sum.Mod(sum, q).Uint64()
		out.C1[i] = make([]uint64, p.N()/p.stride)
		for j := range out.C1[i] {
			out.C1[i][j] = a.c1.Coeffs[i][j*p.stride]
		}
	}
	return out
}

// addInteger adds z to the plaintext's coefficient 0.
func (a *Aggregate) addInteger(p *Parameters, z int64) {
	for j, x := range splitInteger(p, z) {
		a.C0[j] = (a.C0[j] + x) % p.Q()[j]
	}
}

// operations returns the operations since the last call.
func (c *computer) operations() Operations {
	var o Operations
	for _, w := range c.work {
		o.add(w.ops)
		w.ops = Operations{}
	}
	return o
}
