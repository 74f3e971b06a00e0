package ckks

import (
	"math"
	"strconv"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/internal/secret"
	"github.com/cohort-engine/cohort/kernels/ntt"
)

// Operation is one operation of a round in the arithmetic of this package and in
// Lattigo's, with the same primes and on one core.
type Operation struct {
	Name          string
	Ours, Lattigo func()
}

// MeasuredOperations prepares the operations of a round on the chain of product trees of
// depth 2 for being timed. The error of Lattigo's evaluator, if any, is found when
// all have run.
func MeasuredOperations() (ops []Operation, failure func() error, err error) {
	c, err := chooseChain(2)
	if err != nil {
		return nil, nil, err
	}
	p, err := newParameters(c)
	if err != nil {
		return nil, nil, err
	}
	rnd := entropy{secret.Simulated(0, "measurement")}
	sk := newSecretKey(p, rnd, alone)
	ev, err := newEvaluator(p, newRelinearisation(p, sk, rnd).make(alone).expand(p, alone), nil)
	if err != nil {
		return nil, nil, err
	}
	full, err := p.full()
	if err != nil {
		return nil, nil, err
	}
	kgen := rlwe.NewKeyGenerator(full)
	theirs := ckks.NewEvaluator(full, rlwe.NewMemEvaluationKeySet(kgen.GenRelinearizationKeyNew(kgen.GenSecretKeyNew())))
	m := &measurement{p: p, full: full, ev: ev, w: newScratch(p), theirs: theirs, rnd: rnd}
	if err := m.transforms(); err != nil {
		return nil, nil, err
	}
	top := topLevel(2, pairSign)
	m.product(top)
	for _, l := range []int{top, 5, 2} {
		m.finish(l)
	}
	m.sign(top)
	return m.ops, func() error { return m.err }, nil
}

// measurement holds both evaluators.
type measurement struct {
	p      *parameters
	full   ckks.Parameters
	ev     *evaluator
	w      *scratch
	theirs *ckks.Evaluator
	rnd    entropy
	ops    []Operation
	err    error // of Lattigo's evaluator
}

func (m *measurement) add(name string, ours, lattigo func()) {
	m.ops = append(m.ops, Operation{name, ours, lattigo})
}

func (m *measurement) try(err error) {
	if m.err == nil {
		m.err = err
	}
}

// pair makes a ciphertext of uniform residues for both.
func (m *measurement) pair(level int) (*cipher, *rlwe.Ciphertext) {
	k := m.rnd.key("measurement", level)
	rnd := newPRNG(k[:])
	ours := [2]rns.Poly{uniformRows(m.p, rnd, level, -1), uniformRows(m.p, rnd, level, -1)}
	ct := ckks.NewCiphertext(m.full, 1, level)
	for i, a := range ours {
		ct.Value[i].Coeffs = m.p.lattice.ToWide(a)
	}
	return &cipher{c: ours, scale: math.Exp2(float64(m.p.Chain.LogLevel))}, ct
}

func (m *measurement) transforms() error {
	level := m.p.MaxLevel()
	r, err := ntt.NewRing(ntt.ConjugateInvariant, m.p.LogN(), uint32(m.p.Q()[level]))
	if err != nil {
		return err
	}
	theirs := m.full.RingQ().SubRings[level]
	k := m.rnd.key("transform", 0)
	x, y, z := uniformRows(m.p, newPRNG(k[:]), level, -1)[level], make([]uint32, r.N()), make([]uint64, r.N())
	wide := m.p.lattice.ToWide(rns.Poly{x})[0]
	one := r.Constant(1)
	m.add("transform", func() { r.Forward(y, x) }, func() { theirs.NTT(wide, z) })
	m.add("inverse transform", func() { r.Inverse(y, x, one) }, func() { theirs.INTT(wide, z) })
	return nil
}

func (m *measurement) product(level int) {
	a, b := m.pair(level)
	out := ckks.NewCiphertext(m.full, 2, level)
	m.add("product of ciphertexts, level "+strconv.Itoa(level), func() {
		m.ev.product(m.w, a, a, 1)
		m.w.Make(level)
	}, func() { m.try(m.theirs.Mul(b, b, out)) })
}

func (m *measurement) finish(level int) {
	a, b := m.pair(level)
	square := ckks.NewCiphertext(m.full, 2, level)
	relinearised := ckks.NewCiphertext(m.full, 1, level)
	out := ckks.NewCiphertext(m.full, 1, level-1)
	m.try(m.theirs.Mul(b, b, square))
	m.ev.product(m.w, a, a, 1)
	m.w.Make(level)
	m.add("relinearise and rescale, level "+strconv.Itoa(level),
		func() { m.ev.free(m.ev.finish(m.w, unfinished{level, 1 << 40})) }, func() {
			m.try(m.theirs.Relinearize(square, relinearised))
			m.try(m.theirs.Rescale(relinearised, out))
		})
}

// sign times one evaluation of the sign; Lattigo's side has its products,
// relinearisations and rescalings alone.
func (m *measurement) sign(top int) {
	a, _ := m.pair(top)
	a.scale = math.Exp2(pairSign.plan(m.p, aggregateLevel, 2, 1).in)
	type step struct{ in, product, out *rlwe.Ciphertext }
	var steps []step
	for _, below := range []int{0, 1, 2, 3, 4, 4, 5, 5, 6} {
		_, b := m.pair(top - below)
		steps = append(steps, step{b, ckks.NewCiphertext(m.full, 1, top-below),
			ckks.NewCiphertext(m.full, 1, top-below-1)})
	}
	m.add("one sign, depth 2", func() { m.ev.free(m.ev.sign(m.w, a, pairSign)) }, func() {
		for _, x := range steps {
			m.try(m.theirs.MulRelin(x.in, x.in, x.product))
			m.try(m.theirs.Rescale(x.product, x.out))
		}
	})
}
