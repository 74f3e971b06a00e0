package ckks

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Numbers of period B over the slots are the polynomial of B equally spaced coefficients that sides gives, and a
// product with it multiplies slots, for every number of blocks.
func TestSidesAreSparsePolynomials(t *testing.T) {
	p := smallParameters(t)
	m, r := newEmbedder(p), rand.New(rand.NewPCG(1, 2))
	n := p.N()
	for blocks := 1; blocks <= mostBlocks; blocks *= 2 {
		numbers := make([]float64, blocks)
		for u := range numbers {
			numbers[u] = 2*r.Float64() - 1
		}
		s := newSides(blocks)
		sparse := s.coefficients(numbers)
		for u, v := range s.values(sparse) {
			if math.Abs(v-numbers[u]) > 1e-12 {
				t.Fatalf("%d blocks: block %d comes back as %g, not %g", blocks, u, v, numbers[u])
			}
		}
		x, product, slots := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range slots {
			slots[i] = numbers[i%blocks]
		}
		got, want, sum := make([]float64, n), make([]float64, n), make([]float64, n)
		m.coefficients(slots, got)
		for i, v := range got {
			expected := 0.0
			if i%(n/blocks) == 0 {
				expected = sparse[i/(n/blocks)]
			}
			if math.Abs(v-expected) > 1e-12 {
				t.Fatalf("%d blocks: coefficient %d is %g, not %g", blocks, i, v, expected)
			}
		}
		for i := range x {
			x[i] = 2*r.Float64() - 1
			product[i] = x[i] * slots[i]
		}
		m.coefficients(x, got)
		m.coefficients(product, want)
		addProduct(sum, 0, sparse, got)
		for i := range sum {
			if math.Abs(sum[i]-want[i]) > 1e-12 {
				t.Fatalf("%d blocks: coefficient %d of a product is %g, not %g", blocks, i, sum[i], want[i])
			}
		}
	}
}

// A comparison's input is its function of the columns as they were encrypted, less what they were rounded with, but for
// the rounding of the part in the clear: were the dither not subtracted, it would be off by many times that.
func TestInputsSubtractTheDither(t *testing.T) {
	pool := engine.NewPool(1)
	defer pool.Close()
	for _, n := range []int{60, 1000} { // side by side, and in two batches
		j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", n, 3, 3, 5).Table(), Columns: [][]int{{0}, {1, 2}},
			K: 3, Calibration: privacy.None, Seed: seed(2)}, chain: &smallChain}
		s, roles := setUp(t, j, pool)
		if s.lay.batches == 1 && s.lay.blocks == 1 {
			t.Fatalf("%d records lie in one batch, one by one", n)
		}
		r, err := planRound(s.params, s.cols, s.lay, s.start, true, pairSign)
		if err != nil {
			t.Fatal(err)
		}
		c, key, batch, group := roles.alice.computer, roles.key(s.params), s.lay.batches-1, r.groups[0]
		w := c.its(0)
		w.round(c.rnd.rounding("test", 0))
		got := decode(t, s.params, c.input(w, r, batch, group), key)
		var columns, dithers [3][]float64
		for h := range columns {
			dithers[h] = decode(t, s.params, plainCipher(s.params, w, c.slots[h][batch]), key)
			columns[h] = make([]float64, len(got))
			if h > 0 {
				columns[h] = decode(t, s.params, c.tops[h][batch], key)
			}
		}
		var off, without float64
		lo, hi := s.lay.rows(batch)
		for slot := range s.lay.blocks * (hi - lo) {
			if slot%s.lay.blocks >= len(group.pairs) {
				continue
			}
			q := group.pairs[slot%s.lay.blocks]
			v, subtracted := q.offset, 0.0
			for h, a := range q.gain {
				v += a * (columns[h][slot] + dithers[h][slot])
				if h > 0 {
					subtracted += a * dithers[h][slot]
				}
			}
			off, without = max(off, math.Abs(got[slot]-v)), max(without, math.Abs(subtracted))
		}
		if off > without/20 {
			t.Errorf("%d records: inputs are off by %g, where what was subtracted is %g", n, off, without)
		}
	}
}

// Columns are rounded with the dither that is subtracted, ciphertext by ciphertext.
func TestColumnsAreRoundedWithTheirDither(t *testing.T) {
	pool := engine.NewPool(1)
	defer pool.Close()
	j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", 1000, 2, 3, 5).Table(), Columns: [][]int{{0}, {1}},
		K: 3, Calibration: privacy.None, Seed: seed(2)}, chain: &smallChain}
	s := planned(t, j)
	column := make([]float64, 1000)
	for i := range column {
		column[i] = float64(j.Clients[0].Points.Point(i, nil)[1])
	}
	encoded := make([][]int64, s.lay.tops()+s.lay.lows())
	columns := newColumnEncryption(pool, s.params, s.lay, map[int][]float64{1: column}, []int{1},
		s.topScale, s.lowScale, testEntropy(4), func(_ int, _ float64, _ string, index int) encryption {
			return encryption{finish: func(m []int64) (columnCipher, []func()) {
				encoded[index] = slices.Clone(m)
				return columnCipher{}, nil
			}}
		}, true)
	region(alone).all(columns.early())
	msgs, err := columns.finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	m := newEmbedder(s.params)
	n := s.params.N()
	values, exact, subtracted := make([]float64, n), make([]float64, n), make([]float64, n)
	for at := range s.lay.tops() {
		s.lay.fillTop(at, column, values)
		m.coefficients(values, exact)
		m.subtractDither(dither(msgs[0].Dither), at, s.topScale, subtracted)
		for i, x := range encoded[at] {
			left := float64(x) + (subtracted[i]-exact[i])*s.topScale
			if math.Abs(left) > 0.5+1e-6 {
				t.Fatalf("ciphertext %d: %g is left of the rounding of coefficient %d", at, left, i)
			}
		}
	}
}

// plainCipher is a ciphertext, with no error but that of rounding to 2^-45, of the given coefficients.
func plainCipher(p *parameters, w *scratch, coefficients []float64) *cipher {
	const scale = 1 << 45
	c := &cipher{c: [2]rns.Poly{w.lift(coefficients, p.MaxLevel(), scale), p.lattice.NewPoly(p.MaxLevel())}, scale: scale}
	rns.Clear(c.c[1])
	return c
}

// What is left of a column's rounding when its dither is subtracted is uniform whatever the column is: that no record
// steers it is what lets T4 leave it out of the errors that mix records.
func TestWhatDitherLeavesDoesNotDependOnTheColumn(t *testing.T) {
	p := smallParameters(t)
	m, n := newEmbedder(p), p.N()
	const bins, scale = 16, 1 << 10
	for _, fraction := range []float64{0, 0.1, 0.5, 0.93} {
		x, subtracted := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = (float64(i%7) + fraction) / scale
		}
		var counts [bins]float64
		var mean float64
		for index := range 8 {
			m.roundBy(dither(testEntropy(1).key("dither", 0)))
			m.drawn = uint64(index)
			whole := m.round(x, scale)
			m.subtractDither(dither(testEntropy(1).key("dither", 0)), index, scale, subtracted)
			for i, z := range whole {
				left := float64(z) + (subtracted[i]-x[i])*scale
				if !(math.Abs(left) <= 0.5+1e-9) {
					t.Fatalf("%g is left of a rounding", left)
				}
				counts[min(int((left+0.5)*bins), bins-1)]++
				mean += left / float64(8*n)
			}
		}
		var chi2 float64
		want := float64(8*n) / bins
		for _, c := range counts {
			chi2 += (c - want) * (c - want) / want
		}
		// Fifteen degrees of freedom: one in a million is above 55.
		if chi2 > 55 || math.Abs(mean) > 5/math.Sqrt(12*8*float64(n)) {
			t.Errorf("fraction %g: bins %v, mean %g: what is left of a rounding depends on the column", fraction, counts, mean)
		}
	}
}

// Comparisons stay in the polynomial's domain however coarsely their gains round, and so do blocks without one.
func TestRoundedComparisonsStayInTheirDomain(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for trial := range 500 {
		d, blocks, unit := 2+r.IntN(12), 1<<r.IntN(5), float64(8+r.IntN(60))
		cols := columns{d: d, encrypted: make([]bool, d), spare: 0.01}
		for h := 1; h < d; h++ {
			cols.encrypted[h] = true
		}
		var ps []pair
		for range 1 + r.IntN(blocks) {
			cs := make([][]float64, 2)
			for i := range cs {
				for range d {
					cs[i] = append(cs[i], 2*r.Float64()-1)
				}
			}
			ps = append(ps, newPair(0, 1, cs[0], cs[1], cols, undecided, unit))
		}
		g := newGroup(ps, 0, blocks, cols, unit)
		s := newSides(blocks)
		size := make([]float64, blocks)
		for u, v := range s.values(g.offset) {
			size[u] = math.Abs(v)
		}
		for h := range d {
			for u, v := range s.values(g.plain[h]) {
				size[u] += math.Abs(v)
				if u < len(ps) && math.Abs(v-ps[u].gain[h]) > 1e-12 {
					t.Fatalf("trial %d: the gain of comparison %d for column %d is %g, and %g is said", trial, u, h+1, v,
						ps[u].gain[h])
				}
			}
			for j, z := range g.whole[h] {
				if math.Abs(float64(z)/unit-g.plain[h][j]) > 1e-12 {
					t.Fatalf("trial %d: column %d has the integer %d and the coefficient %g", trial, h+1, z, g.plain[h][j])
				}
			}
		}
		for u, v := range size {
			if v > cols.domain()+1e-12 {
				t.Errorf("trial %d, %d blocks: comparison %d of %d reaches %g of its domain", trial, blocks, u, len(ps), v)
			}
		}
	}
}

// Rounding moves comparisons, and with them the regions that pruning asks about: wherever two clusters are not clearly
// beaten by what is compared they are compared with each other, however coarsely gains round.
func TestRoundingKeepsWhatPruningPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	cols := columns{d: 2, encrypted: []bool{true, true}, spare: inputSpare}
	restored := 0
	for range 60 {
		const k = 8
		cs := make([][]float64, k)
		for i := range cs {
			cs[i] = []float64{2*r.Float64() - 1, 2*r.Float64() - 1}
		}
		plan := &roundPlan{sign: pairSign, unit: 24}
		plan.choose(cols, layout{blocks: mostBlocks}, cs, true)
		for _, kept := range prune(allPairs(cols, cs, undecided, plan.unit), cs) {
			if kept {
				restored--
			}
		}
		restored += len(plan.pairs)
		for range 1000 {
			x := []float64{2*r.Float64() - 1, 2*r.Float64() - 1}
			var compared [k][k]bool
			beaten := make([]bool, k)
			for _, q := range plan.pairs {
				compared[q.i][q.j] = true
				v := q.offset + q.gain[0]*x[0] + q.gain[1]*x[1]
				beaten[q.i] = beaten[q.i] || v > q.width
				beaten[q.j] = beaten[q.j] || v < -q.width
			}
			for i := range k {
				for j := i + 1; j < k; j++ {
					if !beaten[i] && !beaten[j] && !compared[i][j] {
						t.Fatalf("at %v neither cluster %d nor %d is beaten, and they are not compared", x, i, j)
					}
				}
			}
		}
	}
	if restored == 0 {
		t.Error("no rounding asked for a pair that was pruned: nothing was tested")
	}
}

// TestScheduleSharesCosts: dear items are divided among workers, and what is left for all of them at once is cheap.
// Little ones come behind the others.
func TestScheduleSharesCosts(t *testing.T) {
	for _, c := range []struct {
		costs   []int
		workers int
		little  int
		order   []int
		wide    int
	}{
		{[]int{1, 1, 1, 1, 1}, 2, 0, []int{0, 3, 1, 2, 4}, 1},
		{[]int{0, 0, 1, 0, 0, 1}, 2, 0, []int{2, 1, 3, 5, 0, 4}, 0},
		{[]int{1, 3, 2, 4, 2}, 2, 0, []int{3, 4, 1, 2, 0}, 1},
		{[]int{1, 2}, 4, 0, []int{1, 0}, 2},
		{[]int{1, 2}, 1, 0, []int{1, 0}, 0},
		{[]int{0, 1, 2}, 2, 4, []int{2, 3, 4, 6, 1, 0, 5}, 0},
	} {
		if order, wide := schedule(c.costs, c.workers, c.little); !slices.Equal(order, c.order) || wide != c.wide {
			t.Errorf("costs %v on %d workers: %v, %d for all; want %v, %d", c.costs, c.workers, order, wide, c.order, c.wide)
		}
	}
}
