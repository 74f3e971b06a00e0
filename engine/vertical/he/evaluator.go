package he

import (
	"fmt"
	"math"
	"math/big"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// cipher is a ciphertext (c0, c1) of degree 1 in the NTT domain: the message
// at scale `scale` plus a small error is c0 + c1 s.
type cipher struct {
	c0, c1 ring.Poly
	scale  float64
}

func (c *cipher) level() int { return c.c0.Level() }

// at returns c seen at a lower level, without copying.
func (c *cipher) at(level int) *cipher {
	return &cipher{c0: ring.Poly{Coeffs: c.c0.Coeffs[:level+1]}, c1: ring.Poly{Coeffs: c.c1.Coeffs[:level+1]}, scale: c.scale}
}

// Operations counts the homomorphic operations of a round.
type Operations struct {
	Signs       int `json:"signs"`
	Products    int `json:"products"`
	Relins      int `json:"relinearisations"`
	Rescales    int `json:"rescales"`
	Rotations   int `json:"rotations"`
	Plaintexts  int `json:"plaintext_products"`
	Scalars     int `json:"scalar_products"`
	Encryptions int `json:"encryptions_of_zero"`
	Switches    int `json:"ring_switches"`
}

func (o *Operations) add(p Operations) {
	o.Signs += p.Signs
	o.Products += p.Products
	o.Relins += p.Relins
	o.Rescales += p.Rescales
	o.Rotations += p.Rotations
	o.Plaintexts += p.Plaintexts
	o.Scalars += p.Scalars
	o.Encryptions += p.Encryptions
	o.Switches += p.Switches
}

// evaluator computes on ciphertexts. It is shared by all workers; the mutable
// state is in scratch.
type evaluator struct {
	params *Parameters
	rlwe   *rlwe.Evaluator
	relin  *rlwe.GadgetCiphertext
	// drop divides by the auxiliary primes and by the prime of level l at once:
	// drop[l] extends from {P, q_l} to {q_0 .. q_{l-1}}.
	drop []*ring.BasisExtender
}

func newEvaluator(p *Parameters, relin *rlwe.GadgetCiphertext, rotations []*rlwe.GaloisKey) *evaluator {
	e := &evaluator{params: p, relin: relin, drop: make([]*ring.BasisExtender, p.MaxLevel()+1)}
	e.rlwe = rlwe.NewEvaluator(p, rlwe.NewMemEvaluationKeySet(nil, rotations...))
	q, aux := p.RingQ(), p.RingP()
	for l := 1; l <= p.MaxLevel(); l++ {
		joint := &ring.Ring{SubRings: append(append([]*ring.SubRing(nil), aux.SubRings...), q.SubRings[l])}
		m := big.NewInt(1)
		for _, s := range joint.SubRings {
			m = new(big.Int).Mul(m, new(big.Int).SetUint64(s.Modulus))
			joint.ModulusAtLevel = append(joint.ModulusAtLevel, m)
		}
		low := &ring.Ring{SubRings: q.SubRings[:l], ModulusAtLevel: q.ModulusAtLevel[:l]}
		e.drop[l] = ring.NewBasisExtender(low.AtLevel(l-1), joint.AtLevel(len(joint.SubRings)-1))
	}
	return e
}

// scratch is the memory of one worker: an unfinished product (c0, c1, c2) and
// the operands in Montgomery form.
type scratch struct {
	c0, c1, c2 ring.Poly
	m0, m1     ring.Poly
	k0, k1     ringqp.Poly
	encoder    *ckks.Encoder
	values     []float64
	plain      *rlwe.Plaintext
	ops        Operations
}

func newScratch(p *Parameters) *scratch {
	rq := p.RingQ()
	return &scratch{
		c0: rq.NewPoly(), c1: rq.NewPoly(), c2: rq.NewPoly(), m0: rq.NewPoly(), m1: rq.NewPoly(),
		k0: p.RingQP().NewPoly(), k1: p.RingQP().NewPoly(),
		encoder: ckks.NewEncoder(p.Parameters), values: make([]float64, p.Slots()), plain: ckks.NewPlaintext(p.Parameters, p.MaxLevel()),
	}
}

func (e *evaluator) newCipher(level int) *cipher {
	n := e.params.N()
	return &cipher{c0: ring.NewPoly(n, level), c1: ring.NewPoly(n, level)}
}

// product sets the unfinished product at level l to times * a * b, where times
// is 1, -1 or 2. Its scale is the product of the two scales.
func (e *evaluator) product(w *scratch, l int, a, b *cipher, times int) {
	r := e.params.RingQ().AtLevel(l)
	e.montgomery(w, r, a, times)
	r.MulCoeffsMontgomery(w.m0, b.c0, w.c0)
	r.MulCoeffsMontgomery(w.m1, b.c1, w.c2)
	r.MulCoeffsMontgomery(w.m0, b.c1, w.c1)
	if a == b {
		r.Add(w.c1, w.c1, w.c1)
	} else {
		r.MulCoeffsMontgomeryThenAdd(w.m1, b.c0, w.c1)
	}
	w.ops.Products++
}

// addProduct adds times * a * b to the unfinished product.
func (e *evaluator) addProduct(w *scratch, l int, a, b *cipher, times int) {
	r := e.params.RingQ().AtLevel(l)
	e.montgomery(w, r, a, times)
	r.MulCoeffsMontgomeryThenAdd(w.m0, b.c0, w.c0)
	r.MulCoeffsMontgomeryThenAdd(w.m1, b.c1, w.c2)
	r.MulCoeffsMontgomeryThenAdd(w.m0, b.c1, w.c1)
	r.MulCoeffsMontgomeryThenAdd(w.m1, b.c0, w.c1)
	w.ops.Products++
}

func (e *evaluator) montgomery(w *scratch, r *ring.Ring, a *cipher, times int) {
	r.MForm(a.c0, w.m0)
	r.MForm(a.c1, w.m1)
	switch times {
	case 1:
	case 2:
		r.Add(w.m0, w.m0, w.m0)
		r.Add(w.m1, w.m1, w.m1)
	case -1:
		r.Neg(w.m0, w.m0)
		r.Neg(w.m1, w.m1)
	default:
		panic(fmt.Sprintf("he: product times %d", times))
	}
}

// residue returns x, rounded to an integer, modulo q.
func residue(x float64, q uint64) uint64 {
	i, acc := new(big.Float).SetFloat64(math.RoundToEven(x)).Int(nil)
	if acc != big.Exact {
		panic("he: residue of a number that is not finite")
	}
	return i.Mod(i, new(big.Int).SetUint64(q)).Uint64()
}

// addScaled adds f * a, with f rounded to an integer, to (d0, d1) at level l.
func (e *evaluator) addScaled(w *scratch, l int, f float64, a *cipher, d0, d1 ring.Poly) {
	for i, s := range e.params.RingQ().SubRings[:l+1] {
		m := ring.MForm(residue(f, s.Modulus), s.Modulus, s.BRedConstant)
		s.MulScalarMontgomeryThenAdd(a.c0.Coeffs[i], m, d0.Coeffs[i])
		s.MulScalarMontgomeryThenAdd(a.c1.Coeffs[i], m, d1.Coeffs[i])
	}
	w.ops.Scalars++
}

// addConstant adds the constant x, times scale, in every slot to d0 at level l.
func (e *evaluator) addConstant(l int, x, scale float64, d0 ring.Poly) {
	for i, s := range e.params.RingQ().SubRings[:l+1] {
		s.AddScalar(d0.Coeffs[i], residue(x*scale, s.Modulus), d0.Coeffs[i])
	}
}

// finish relinearises the unfinished product of level l and divides it by the
// prime of that level, in one step: the key-switching result is divided by P
// and by q_l with a single rounding, which saves a rescaling and keeps the
// noise of key switching below that of the rounding even where P is smaller
// than a decomposition digit.
func (e *evaluator) finish(w *scratch, l int, scale float64) *cipher {
	e.keySwitch(w, l, w.c2, e.relin)
	r := e.params.RingQ().AtLevel(l)
	p := e.params.RingP().Modulus()
	r.MulScalarBigintThenAdd(w.c0, p, w.k0.Q)
	r.MulScalarBigintThenAdd(w.c1, p, w.k1.Q)
	out := e.newCipher(l - 1)
	e.divide(l, w.k0, out.c0)
	e.divide(l, w.k1, out.c1)
	out.scale = scale / float64(r.SubRings[l].Modulus)
	w.ops.Relins++
	w.ops.Rescales++
	return out
}

// divide returns x / (P q_l) modulo the primes below level l.
func (e *evaluator) divide(l int, x ringqp.Poly, dst ring.Poly) {
	joint := ring.Poly{Coeffs: append(append(make([][]uint64, 0, len(x.P.Coeffs)+1), x.P.Coeffs...), x.Q.Coeffs[l])}
	e.drop[l].ModDownQPtoQNTT(l-1, len(joint.Coeffs)-1, ring.Poly{Coeffs: x.Q.Coeffs[:l]}, joint, dst)
}

// keySwitch sets (k0, k1) to the product of c with a gadget ciphertext, modulo
// QP at level l.
func (e *evaluator) keySwitch(w *scratch, l int, c ring.Poly, key *rlwe.GadgetCiphertext) {
	ct := &rlwe.Element[ringqp.Poly]{MetaData: &rlwe.MetaData{CiphertextMetaData: rlwe.CiphertextMetaData{IsNTT: true}}}
	ct.Value = []ringqp.Poly{w.k0, w.k1}
	if err := e.rlwe.GadgetProductLazy(l, ring.Poly{Coeffs: c.Coeffs[:l+1]}, key, ct); err != nil {
		panic(fmt.Sprintf("he: key switching: %v", err))
	}
}

// divideP divides x by its auxiliary primes.
func (e *evaluator) divideP(x ringqp.Poly, dst ring.Poly) {
	e.rlwe.ModDownQPtoQNTT(dst.Level(), x.LevelP(), x.Q, x.P, dst)
}

// rescale divides a by the prime of its level.
func (e *evaluator) rescale(w *scratch, a *cipher) *cipher {
	l := a.level()
	r := e.params.RingQ().AtLevel(l)
	out := e.newCipher(l - 1)
	r.DivRoundByLastModulusNTT(a.c0, out.c0)
	r.DivRoundByLastModulusNTT(a.c1, out.c1)
	out.scale = a.scale / float64(r.SubRings[l].Modulus)
	w.ops.Rescales++
	return out
}

// seven evaluates a polynomial of degree 7 with plan p on t1; it returns the
// result with the intermediate ciphertexts that degree 15 needs.
func (e *evaluator) seven(w *scratch, t1 *cipher, p signPlan) (out, u, t4 *cipher) {
	l := t1.level()
	e.product(w, l, t1, t1, 2)
	s := t1.scale * t1.scale
	e.addConstant(l, -1, s, w.c0)
	t2 := e.finish(w, l, s)

	l--
	low := t1.at(l)
	e.product(w, l, low, t2, 2)
	s = t1.scale * t2.scale
	e.addScaled(w, l, p.r*t2.scale, low, w.c0, w.c1)
	u = e.finish(w, l, s)

	e.product(w, l, t2, t2, 2)
	s = t2.scale * t2.scale
	e.addConstant(l, -1, s, w.c0)
	t4 = e.finish(w, l, s)

	l--
	times := 1
	if p.a < 0 {
		times = -1
	}
	e.product(w, l, t4, u, times)
	s = t4.scale * u.scale / math.Abs(p.a)
	e.addScaled(w, l, p.b*s/t1.scale, t1, w.c0, w.c1)
	e.addScaled(w, l, p.c*s/u.scale, u, w.c0, w.c1)
	return e.finish(w, l, s), u, t4
}

// fifteen evaluates a polynomial of degree 15 with plan p on t1.
func (e *evaluator) fifteen(w *scratch, t1 *cipher, p signPlan) *cipher {
	q, u, t4 := e.seven(w, t1, p)
	l := t1.level() - 2
	e.product(w, l, t4, t4, 2)
	s := t4.scale * t4.scale
	e.addConstant(l, -1, s, w.c0)
	t8 := e.finish(w, l, s)

	s = t8.scale * q.scale
	// The leaf d T1 + e u must arrive at scale s/t4 after its own rescaling.
	leaf := e.newCipher(l)
	leaf.scale = s / t4.scale * float64(e.params.RingQ().SubRings[l].Modulus)
	e.addScaled(w, l, p.d*leaf.scale/t1.scale, t1, leaf.c0, leaf.c1)
	e.addScaled(w, l, p.e*leaf.scale/u.scale, u, leaf.c0, leaf.c1)
	v := e.rescale(w, leaf)

	l--
	e.product(w, l, t8, q, 1)
	e.addProduct(w, l, t4.at(l), v, 1)
	e.addScaled(w, l, p.f*s/t1.scale, t1, w.c0, w.c1)
	e.addScaled(w, l, p.g*s/u.scale, u, w.c0, w.c1)
	return e.finish(w, l, s)
}

// halfSign evaluates h on t, signDepth levels down.
func (e *evaluator) halfSign(w *scratch, t *cipher) *cipher {
	mid, _, _ := e.seven(w, t, innerPlan)
	w.ops.Signs++
	return e.fifteen(w, mid, outerPlan)
}

// side turns h(t_ij) into a comparison: side 0 is the chance 1/2 - h that i
// wins, side 1 the chance 1/2 + h that j does.
func (e *evaluator) side(h *cipher, side int) *cipher {
	l := h.level()
	r := e.params.RingQ().AtLevel(l)
	out := e.newCipher(l)
	out.scale = h.scale
	if side == 0 {
		r.Neg(h.c0, out.c0)
		r.Neg(h.c1, out.c1)
	} else {
		out.c0.CopyLvl(l, h.c0)
		out.c1.CopyLvl(l, h.c1)
	}
	e.addConstant(l, 0.5, h.scale, out.c0)
	return out
}

// rotate returns a with slot i+by moved to slot i.
func (e *evaluator) rotate(w *scratch, a *cipher, by int) (*cipher, error) {
	out := e.newCipher(a.level())
	meta := &rlwe.MetaData{CiphertextMetaData: rlwe.CiphertextMetaData{IsNTT: true}}
	in := &rlwe.Ciphertext{Element: rlwe.Element[ring.Poly]{MetaData: meta, Value: []ring.Poly{a.c0, a.c1}}}
	dst := &rlwe.Ciphertext{Element: rlwe.Element[ring.Poly]{MetaData: meta.CopyNew(), Value: []ring.Poly{out.c0, out.c1}}}
	if err := e.rlwe.Automorphism(in, e.params.GaloisElement(by), dst); err != nil {
		return nil, fmt.Errorf("rotation by %d slots: %w", by, err)
	}
	out.scale = a.scale
	w.ops.Rotations++
	return out, nil
}

// tree multiplies ciphertexts of one level in a balanced tree, and returns the
// product with the scale it ends at.
func (e *evaluator) tree(w *scratch, factors []*cipher) *cipher {
	f := append([]*cipher(nil), factors...)
	for len(f) > 1 {
		var next []*cipher
		l := f[0].level()
		for i := 0; i+1 < len(f); i += 2 {
			e.product(w, l, f[i], f[i+1], 1)
			next = append(next, e.finish(w, l, f[i].scale*f[i+1].scale))
		}
		if len(f)%2 == 1 {
			next = append(next, f[len(f)-1].at(l-1))
		}
		f = next
	}
	return f[0]
}

// encode writes values into an NTT polynomial at the given level and scale.
// The result is valid until the next call.
func (w *scratch) encode(values []float64, level int, scale float64) (ring.Poly, error) {
	w.plain.Resize(0, level)
	w.plain.Scale = rlwe.NewScale(scale)
	if err := w.encoder.Encode(values, w.plain); err != nil {
		return ring.Poly{}, fmt.Errorf("encoding: %w", err)
	}
	return w.plain.Value, nil
}
