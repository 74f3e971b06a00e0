package ckks

import (
	"context"
	"crypto/aes"
	stdcipher "crypto/cipher"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/internal/secret"
)

// entropy is a party's source of randomness for keys and encryptions. What it gives
// follows from the party's root, the purpose and the index, so no two draws may have
// both in common.
type entropy struct{ root secret.Root }

// key returns 32 bytes for a purpose and an index.
func (e entropy) key(purpose string, index int) [32]byte {
	return e.root.Derive(fmt.Sprintf("%s/%d", purpose, index)).Key()
}

// prng returns the generator for a purpose and an index. Not for concurrent use.
func (e entropy) prng(purpose string, index int) sampling.PRNG {
	k := e.key(purpose, index)
	return newPRNG(k[:])
}

// stream is the key stream of AES-256 in counter mode, from counter 0 under a key
// that is used once.
type stream struct{ stdcipher.Stream }

func newPRNG(key []byte) sampling.PRNG {
	return stream{stdcipher.NewCTR(newBlock(key), make([]byte, aes.BlockSize))}
}

func newBlock(key []byte) stdcipher.Block {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(fmt.Sprintf("he: pseudo-random generator: %v", err))
	}
	return block
}

// Read fills b.
func (s stream) Read(b []byte) (int, error) {
	clear(b)
	s.XORKeyStream(b, b)
	return len(b), nil
}

// secretKey holds a party's secret: the key of the computation's ring and the
// key of the aggregates' ring. It never enters a message.
type secretKey struct {
	main *rlwe.SecretKey
	// small is the secret of the aggregates' ring, embedded in the large one:
	// its coefficients are zero except at multiples of the stride.
	small *rlwe.SecretKey
}

// newSecretKey samples two ternary secrets.
func newSecretKey(p *parameters, rnd entropy) *secretKey {
	return &secretKey{
		main:  sampleSecret(p, rnd.prng("secret", 0), 1),
		small: sampleSecret(p, rnd.prng("secret of the aggregates", 0), p.stride),
	}
}

func sampleSecret(p *parameters, prng sampling.PRNG, stride int) *rlwe.SecretKey {
	sk := &rlwe.SecretKey{Value: p.rings.NewPoly()}
	sk.Value.Q = wideRows(p, ternary(p.N(), prng), p.MaxLevel())
	if stride > 1 {
		for _, row := range sk.Value.Q.Coeffs {
			for i := range row {
				if i%stride != 0 {
					row[i] = 0
				}
			}
		}
	}
	qp := p.rings
	qp.ExtendBasisSmallNormAndCenter(sk.Value.Q, p.MaxLevelP(), sk.Value.Q, sk.Value.P)
	p.lattice.ForwardWide(sk.Value.Q.Coeffs, sk.Value.P.Coeffs)
	qp.MForm(sk.Value, sk.Value)
	return sk
}

// gaussian samples an error polynomial modulo QP in the NTT domain. With
// levelP < 0 the auxiliary part is left out.
func gaussian(p *parameters, prng sampling.PRNG, levelQ, levelP int) ringqp.Poly {
	qp := p.rings.AtLevel(levelQ, levelP)
	e := qp.NewPoly()
	e.Q = wideRows(p, smallErrors(p.N(), prng), levelQ)
	if levelP >= 0 {
		qp.ExtendBasisSmallNormAndCenter(e.Q, levelP, e.Q, e.P)
	}
	p.lattice.ForwardWide(e.Q.Coeffs, e.P.Coeffs)
	return e
}

// uniform expands a seed into a uniform polynomial modulo QP, read as being in
// the NTT domain.
func uniform(p *parameters, prng sampling.PRNG, levelQ, levelP int) ringqp.Poly {
	a := ringqp.NewPoly(p.N(), levelQ, levelP)
	fillUniform(prng, a.Q.Coeffs, p.Q())
	fillUniform(prng, a.P.Coeffs, p.P())
	return a
}

// uniformRows is uniform in one polynomial of the rows modulo Q and then those modulo P.
func uniformRows(p *parameters, prng sampling.PRNG, levelQ, levelP int) rns.Poly {
	a := p.lattice.NewPoly(levelQ + levelP + 1)
	fillUniform(prng, a[:levelQ+1], p.Q())
	fillUniform(prng, a[levelQ+1:], p.P())
	return a
}

// fillUniform draws each row's words below its prime, itself below 2^31, as Lattigo's sampler does from the same
// bytes: the low bits of eight at a time, again where they are not below, from blocks of which what is left is lost.
func fillUniform[T uint32 | uint64](prng sampling.PRNG, rows [][]T, primes []uint64) {
	var buffer [1024]byte
	rest := buffer[:0]
	for j, row := range rows {
		q := uint32(primes[j])
		mask := uint32(1)<<bits.Len32(q-1) - 1
		for i := 0; i < len(row); {
			if len(rest) == 0 {
				_, _ = prng.Read(buffer[:]) // never fails
				rest = buffer[:]
			}
			count := min(len(rest)/8, len(row)-i)
			for b := rest[:8*count]; len(b) >= 8; b = b[8:] {
				x := binary.BigEndian.Uint32(b[4:]) & mask
				row[i] = T(x)
				i += int((x - q) >> 31) // the next one takes its place
			}
			rest = rest[8*count:]
		}
	}
}

// region calls f(0) .. f(n-1), which are independent of each other.
type region func(n int, f func(i int))

// alone is the region of one worker.
func alone(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// abreast is the region of all workers of a pool. When ctx is cancelled calls may be left out: the caller asks ctx.
func abreast(ctx context.Context, pool *engine.Pool) region {
	return func(n int, f func(i int)) { _ = pool.Run(ctx, n, func(_, i int) { f(i) }) }
}

// switchKey is a seeded key-switching key: the first component of each row of
// the gadget; the second is expanded from the seed. Rows are in Montgomery form.
type switchKey struct {
	gadget *rns.Gadget
	Seed   [32]byte
	Rows   []ringqp.Poly
}

// levels are the levels of a key's rows.
func (k *switchKey) levels() (q, aux int) { return k.gadget.MaxLevel(), k.gadget.Auxiliary() - 1 }

// newSwitchKey encrypts the secret `from` (in Montgomery NTT form) under `to`: row
// d is -a s + e, plus P from modulo the primes of digit d. With a common seed the
// sum of the parties' keys, row by row, is the key for the sums of their secrets.
// The key is kept in Montgomery form, so its message and error are too.
func newSwitchKey(p *parameters, from ring.Poly, to *rlwe.SecretKey, g *rns.Gadget, seed [32]byte, rnd entropy,
	purpose string, index int, run region) *switchKey {
	k := &switchKey{gadget: g, Seed: seed}
	errs, as := rnd.prng(purpose+": errors", index), newPRNG(k.Seed[:])
	levelQ, levelP := k.levels()
	type draws struct {
		a rns.Poly
		e []int8
	}
	draw := func() draws { return draws{uniformRows(p, as, levelQ, levelP), smallErrors(p.N(), errs)} }
	digits, next := g.Digits(levelQ), draw()
	for d := range digits {
		now, row := next, ringqp.NewPoly(p.N(), levelQ, levelP)
		// What is drawn comes from one stream: the next digit's meanwhile.
		run(1+g.Rows(), func(i int) {
			if i == 0 {
				if d+1 < digits {
					next = draw()
				}
				return
			}
			i--
			out, secret := row.Q.Coeffs, to.Value.Q.Coeffs
			place := i
			if i > levelQ {
				out, secret, place = row.P.Coeffs, to.Value.P.Coeffs, i-levelQ-1
			}
			words := p.lattice.NewPoly(2)
			rns.Narrow(words[1], secret[place])
			if i <= levelQ {
				rns.Narrow(words[2], from.Coeffs[place])
			}
			g.Encrypt(d, i, words[0], now.a[i], words[1], words[2], now.e)
			rns.Widen(out[place], words[0])
			p.lattice.Free(words)
		})
		p.lattice.Free(now.a)
		k.Rows = append(k.Rows, row)
	}
	return k
}

// expand restores the full key.
func (k *switchKey) expand(p *parameters, run region) *rns.Key {
	levelQ, levelP := k.levels()
	out, as := k.gadget.NewKey(), newPRNG(k.Seed[:])
	next := uniformRows(p, as, levelQ, levelP)
	for d, b := range k.Rows {
		a := next
		run(1+k.gadget.Rows(), func(i int) {
			if i == 0 {
				if d+1 < len(k.Rows) {
					next = uniformRows(p, as, levelQ, levelP)
				}
				return
			}
			i--
			rows, place := b.Q.Coeffs, i
			if i > levelQ {
				rows, place = b.P.Coeffs, i-levelQ-1
			}
			words := p.lattice.NewPoly(0)
			rns.Narrow(words[0], rows[place])
			out.SetRow(d, i, words[0], a[i])
			p.lattice.Free(words)
		})
		p.lattice.Free(a)
	}
	return out
}

// newRelinearisation makes the key that brings s^2 back to s.
func newRelinearisation(p *parameters, sk *secretKey, rnd entropy, run region) *switchKey {
	sq := p.rings.RingQ.NewPoly()
	p.rings.RingQ.MulCoeffsMontgomery(sk.main.Value.Q, sk.main.Value.Q, sq)
	return newSwitchKey(p, sq, sk.main, p.relin, rnd.key("relinearisation key: seed", 0), rnd, "relinearisation key", 0,
		run)
}

// newRotation makes the key for rotations by `by` slots.
func newRotation(p *parameters, sk *secretKey, by int, seed [32]byte, rnd entropy, run region) *switchKey {
	// A rotated ciphertext is first switched to the inverse image of s.
	inverse := p.first.ModInvGaloisElement(p.first.GaloisElement(by))
	out := &rlwe.SecretKey{Value: p.rings.NewPoly()}
	index, err := ring.AutomorphismNTTIndex(p.N(), uint64(p.first.NthRoot()), inverse)
	if err != nil {
		panic(fmt.Sprintf("he: rotation by %d: %v", by, err))
	}
	p.rings.AutomorphismNTTWithIndex(sk.main.Value, index, out.Value)
	return newSwitchKey(p, sk.main.Value.Q, out, p.rotation, seed, rnd, "rotation key", by, run)
}

// newSmallRing makes the key that switches aggregates to the smaller ring.
func newSmallRing(p *parameters, sk *secretKey, seed [32]byte, rnd entropy, run region) *switchKey {
	return newSwitchKey(p, sk.main.Value.Q, sk.small, p.small, seed, rnd, "ring switching key", 0, run)
}

// publicKey is a seeded public key (b, a) with b = -a s + e. With LevelP < 0
// it serves only to re-randomise aggregates.
type publicKey struct {
	LevelQ, LevelP int
	Seed           [32]byte
	B              ringqp.Poly
}

// newPublicKey makes a public key modulo the given primes.
func newPublicKey(p *parameters, sk *secretKey, levelQ, levelP int, seed [32]byte, rnd entropy) *publicKey {
	k := &publicKey{LevelQ: levelQ, LevelP: levelP, Seed: seed}
	a := uniform(p, newPRNG(k.Seed[:]), levelQ, levelP)
	k.B = gaussian(p, rnd.prng("public key: error", levelQ), levelQ, levelP)
	qp := p.rings.AtLevel(levelQ, levelP)
	s := ringqp.Poly{Q: ring.Poly{Coeffs: sk.main.Value.Q.Coeffs[:levelQ+1]}}
	if levelP >= 0 {
		s.P = ring.Poly{Coeffs: sk.main.Value.P.Coeffs[:levelP+1]}
	}
	qp.MulCoeffsMontgomeryThenSub(a, s, k.B)
	return k
}

// expand returns (b, a).
func (k *publicKey) expand(p *parameters) (b, a ringqp.Poly) {
	return k.B, uniform(p, newPRNG(k.Seed[:]), k.LevelQ, k.LevelP)
}

// SeededCipher is a ciphertext made with the secret key: c0 = m + e - c1 s and
// the seed of c1.
type SeededCipher struct {
	Scale float64
	Seed  [32]byte
	C0    ring.Poly
}

// encryptSeeded encrypts an NTT plaintext at its level.
func encryptSeeded(p *parameters, m ring.Poly, scale float64, sk *secretKey, rnd entropy, purpose string,
	index int) *SeededCipher {
	l := m.Level()
	c := &SeededCipher{Scale: scale, Seed: rnd.key(purpose+": seed", index)}
	a := uniform(p, newPRNG(c.Seed[:]), l, -1)
	c.C0 = gaussian(p, rnd.prng(purpose+": error", index), l, -1).Q
	r := p.rings.RingQ.AtLevel(l)
	r.Add(c.C0, m, c.C0)
	r.MulCoeffsMontgomeryThenSub(a.Q, ring.Poly{Coeffs: sk.main.Value.Q.Coeffs[:l+1]}, c.C0)
	return c
}

// expand restores the ciphertext.
func (c *SeededCipher) expand(p *parameters) *cipher {
	a := uniform(p, newPRNG(c.Seed[:]), c.C0.Level(), -1).Q
	return newCipherOf(p, c.C0, a, c.Scale)
}

// newCipherOf takes over a ciphertext of 64-bit residues.
func newCipherOf(p *parameters, c0, c1 ring.Poly, scale float64) *cipher {
	return &cipher{c: [2]rns.Poly{p.lattice.FromWide(c0.Coeffs), p.lattice.FromWide(c1.Coeffs)}, scale: scale}
}
