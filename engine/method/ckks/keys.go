package ckks

import (
	"context"
	"crypto/aes"
	stdcipher "crypto/cipher"
	"fmt"

	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/internal/secret"
	"github.com/cohort-engine/cohort/kernels/ntt"
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
	main secretRows
	// small is the secret of the aggregates' ring, embedded in the large one:
	// its coefficients are zero except at multiples of the stride.
	small secretRows
}

// forget clears the secrets, if there are any.
func (k *secretKey) forget() {
	if k != nil {
		rns.Clear(rns.Poly(k.main))
		rns.Clear(rns.Poly(k.small))
	}
}

// secretRows are a secret modulo all primes in the transform's domain, times 2^64, as Lattigo keeps secrets.
type secretRows rns.Poly

// factor returns the secret modulo the first primes as a factor for products.
func (s secretRows) factor(lattice *rns.Chain, primes int) rns.Poly {
	out := lattice.NewPoly(primes - 1)
	lattice.Unfactor(out, rns.Poly(s))
	return out
}

// newSecretKey samples two ternary secrets.
func newSecretKey(p *parameters, rnd entropy, run region) *secretKey {
	secrets := [...]*secretDraft{{prng: rnd.prng("secret", 0), stride: 1},
		{prng: rnd.prng("secret of the aggregates", 0), stride: p.stride}}
	sampleSecrets(p, run, secrets[:]...)
	return &secretKey{main: secrets[0].key, small: secrets[1].key}
}

// secretDraft is a ternary secret in the making, whose coefficients are zero except at multiples of the stride.
type secretDraft struct {
	prng   sampling.PRNG
	stride int
	key    secretRows
}

// sampleSecrets makes the keys of drafts.
func sampleSecrets(p *parameters, run region, drafts ...*secretDraft) {
	coefficients := newSmalls(p.lattice.Room(), len(drafts))
	run(len(drafts), func(d int) {
		drawn := coefficients.at(d)
		ternary(drawn, drafts[d].prng)
		for i := range drawn {
			if i%drafts[d].stride != 0 {
				drawn[i] = 0
			}
		}
		drafts[d].key = secretRows(p.lattice.NewPoly(len(p.primes(p.MaxLevel(), p.MaxLevelP())) - 1))
	})
	rows := len(p.Q()) + len(p.P())
	run(len(drafts)*rows, func(at int) {
		d, i := at/rows, at%rows
		p.lattice.SmallRow(i, drafts[d].key[i], coefficients.at(d))
	})
	coefficients.wipe()
}

// uniformRows expands a seed into a uniform polynomial of rows modulo Q and then modulo P, read as being in the
// transform's domain.
func uniformRows(p *parameters, prng sampling.PRNG, levelQ, levelP int) rns.Poly {
	a := p.lattice.NewPoly(levelQ + levelP + 1)
	p.fillUniform(prng, a[:levelQ+1], 0)
	p.fillUniform(prng, a[levelQ+1:], len(p.q))
	return a
}

// fillUniform draws each row's words below its prime, of those of Q and then P from the first one on, as Lattigo's
// sampler does from the same bytes, in blocks of which what is left at the end is lost.
func (p *parameters) fillUniform(prng sampling.PRNG, rows rns.Poly, first int) {
	var buffer [1024]byte
	rest := buffer[:0]
	for j, row := range rows {
		for len(row) > 0 {
			if len(rest) == 0 {
				_, _ = prng.Read(buffer[:]) // never fails
				rest = buffer[:]
			}
			drawn, used := p.lattice.Uniform(first+j, row, rest)
			row, rest = row[drawn:], rest[used:]
		}
	}
}

// region calls f(0) .. f(n-1), which are independent of each other.
type region func(n int, f func(i int))

// all calls all parts, which are independent of each other.
func (run region) all(parts []func()) { run(len(parts), func(i int) { parts[i]() }) }

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
// the gadget; the second is expanded from the seed. Rows are residues modulo Q and then modulo P, times 2^64.
type switchKey struct {
	gadget *rns.Gadget
	Seed   [32]byte
	Rows   []rns.Poly
}

// free keeps the rows of keys, which are not used any more, for later polynomials.
func (p *parameters) free(keys ...*switchKey) {
	for _, k := range keys {
		p.lattice.Free(k.Rows...)
	}
}

// levels are the levels of a key's rows.
func (k *switchKey) levels() (q, aux int) { return k.gadget.MaxLevel(), k.gadget.Auxiliary() - 1 }

// draft is a switching key in the making: what is drawn for it, digit by digit, and the two secrets.
type draft struct {
	p       *parameters
	key     *switchKey
	errs    sampling.PRNG
	secrets func() (from, to secretRows, made rns.Poly)
	a       []rns.Poly
	e       smalls // by digit
	from    secretRows
	to      secretRows
	made    rns.Poly // what of the two was made for this key alone
}

// newDraft is for a key that encrypts the secret `from`, modulo the primes of Q at least, under `to`: row
// d is -a s + e, plus P from modulo the primes of digit d. With a common seed the
// sum of the parties' keys, row by row, is the key for the sums of their secrets.
// The key is kept in Montgomery form, so its message and error are too.
func newDraft(p *parameters, g *rns.Gadget, seed [32]byte, rnd entropy, purpose string, index int,
	secrets func() (from, to secretRows, made rns.Poly)) *draft {
	return &draft{p: p, key: &switchKey{gadget: g, Seed: seed}, errs: rnd.prng(purpose+": errors", index),
		secrets: secrets}
}

// newSwitchKey is the key of such a draft.
func newSwitchKey(p *parameters, from, to secretRows, g *rns.Gadget, seed [32]byte, rnd entropy,
	purpose string, index int, run region) *switchKey {
	return newDraft(p, g, seed, rnd, purpose, index,
		func() (secretRows, secretRows, rns.Poly) { return from, to, nil }).make(run)
}

// draftParts are what can be drawn for a draft at once: each of the two streams is read in order.
const draftParts = 3

func (d *draft) draw(part int) {
	levelQ, levelP := d.key.levels()
	digits := d.key.gadget.Digits(levelQ)
	switch part {
	case 0:
		d.a = d.key.factors(d.p)
	case 1:
		d.e = newSmalls(d.p.lattice.Room(), digits)
		for digit := range digits {
			smallErrors(d.e.at(digit), d.errs)
		}
	default:
		d.from, d.to, d.made = d.secrets()
		for range digits {
			d.key.Rows = append(d.key.Rows, make(rns.Poly, levelQ+levelP+2))
		}
	}
}

// factors expands the seed.
func (k *switchKey) factors(p *parameters) (a []rns.Poly) {
	levelQ, levelP := k.levels()
	as := newPRNG(k.Seed[:])
	for range k.gadget.Digits(levelQ) {
		a = append(a, uniformRows(p, as, levelQ, levelP))
	}
	return a
}

// row makes row i of a digit: of those modulo Q and then modulo P.
func (d *draft) row(digit, i int) {
	out := d.p.lattice.NewPoly(0)[0]
	d.key.gadget.Encrypt(digit, i, out, d.a[digit][i], rns.Poly(d.to), rns.Poly(d.from),
		d.e.at(digit))
	d.key.Rows[digit][i] = out
}

func (d *draft) make(run region) *switchKey {
	makeKeys(run, []*draft{d})
	return d.key
}

// keysAtOnce bounds the keys that are made or expanded at the same time, which takes the memory of half of each.
const keysAtOnce = 4

// makeKeys makes the keys of at most keysAtOnce drafts. also are other things to do meanwhile.
func makeKeys(run region, drafts []*draft, also ...func()) {
	var parts []func()
	for part := range draftParts {
		if part == draftParts-1 { // the shortest
			parts = append(parts, also...)
		}
		for _, d := range drafts {
			parts = append(parts, func() { d.draw(part) })
		}
	}
	run.all(parts)
	runRows(run, len(drafts), func(key int) *rns.Gadget { return drafts[key].key.gadget },
		func(key, digit, i int) { drafts[key].row(digit, i) })
	for _, d := range drafts {
		d.p.lattice.Free(d.a...)
		d.p.lattice.Wipe(d.made)
		d.e.wipe()
	}
}

// runRows calls f for all rows of all digits of keys.
func runRows(run region, keys int, gadget func(key int) *rns.Gadget, f func(key, digit, i int)) {
	var rows [][3]int
	for key := range keys {
		g := gadget(key)
		for digit := range g.Digits(g.MaxLevel()) {
			for i := range g.Rows() {
				rows = append(rows, [3]int{key, digit, i})
			}
		}
	}
	run(len(rows), func(i int) { f(rows[i][0], rows[i][1], rows[i][2]) })
}

// expandKeys restores full keys, of which it takes over the rows. also are other things to do first, such as reading
// these.
func expandKeys(p *parameters, run region, keys []*switchKey, also ...func()) []*rns.Key {
	out := make([]*rns.Key, len(keys))
	for len(keys) > 0 {
		n := min(len(keys), keysAtOnce)
		done := out[len(out)-len(keys):]
		as := make([][]rns.Poly, n)
		run(2*n+len(also), func(i int) {
			switch {
			case i < n:
				as[i] = keys[i].factors(p)
			case i < 2*n:
				done[i-n] = keys[i-n].gadget.NewKey()
			default:
				also[i-2*n]()
			}
		})
		runRows(run, n, func(key int) *rns.Gadget { return keys[key].gadget }, func(key, digit, i int) {
			done[key].SetRow(digit, i, keys[key].Rows[digit][i], as[key][digit][i])
		})
		for i, a := range as {
			p.lattice.Free(a...)
			p.lattice.Free(keys[i].Rows...)
			keys[i].Rows = nil
		}
		keys, also = keys[n:], nil
	}
	return out
}

// expand restores the full key.
func (k *switchKey) expand(p *parameters, run region) *rns.Key {
	return expandKeys(p, run, []*switchKey{k})[0]
}

// newRelinearisation makes the key that brings s^2 back to s.
func newRelinearisation(p *parameters, sk *secretKey, rnd entropy) *draft {
	return newDraft(p, p.relin, rnd.key("relinearisation key: seed", 0), rnd, "relinearisation key", 0,
		func() (from, to secretRows, made rns.Poly) {
			square := sk.main.factor(p.lattice, len(p.Q()))
			p.lattice.Multiply(square, rns.Poly(sk.main), square)
			return secretRows(square), sk.main, square
		})
}

// newRotation makes the key for rotations by `by` slots.
func newRotation(p *parameters, sk *secretKey, by int, seed [32]byte, rnd entropy) *draft {
	return newDraft(p, p.rotation, seed, rnd, "rotation key", by, func() (from, to secretRows, made rns.Poly) {
		// A rotated ciphertext is first switched to the inverse image of s.
		index, err := p.turn(-by)
		if err != nil {
			panic(fmt.Sprintf("he: rotation by %d: %v", by, err))
		}
		out := p.lattice.NewPoly(len(sk.main) - 1)
		for i, row := range sk.main {
			ntt.Permute(out[i], row, index)
		}
		return sk.main, secretRows(out), out
	})
}

// newSmallRing makes the key that switches aggregates to the smaller ring.
func newSmallRing(p *parameters, sk *secretKey, seed [32]byte, rnd entropy) *draft {
	return newDraft(p, p.small, seed, rnd, "ring switching key", 0,
		func() (from, to secretRows, made rns.Poly) { return sk.main, sk.small, nil })
}

// publicKey is a seeded public key (b, a) with b = -a s + e. With LevelP < 0
// it serves only to re-randomise aggregates.
type publicKey struct {
	LevelQ, LevelP int
	Seed           [32]byte
	B              rns.Poly // rows modulo Q and then modulo P: all of Q, or none of P
}

// newPublicKey makes a public key modulo the given primes.
func newPublicKey(p *parameters, sk *secretKey, levelQ, levelP int, seed [32]byte, rnd entropy) *publicKey {
	k := &publicKey{LevelQ: levelQ, LevelP: levelP, Seed: seed}
	a := uniformRows(p, newPRNG(k.Seed[:]), levelQ, levelP)
	errs := newSmalls(p.lattice.Room(), 1)
	smallErrors(errs.at(0), rnd.prng("public key: error", levelQ))
	k.B = transformed(p.lattice.Room(), errs.at(0), a.Level())
	errs.wipe()
	s := sk.main.factor(p.lattice, len(a))
	p.lattice.Multiply(s, a, s)
	p.lattice.Sub(k.B, k.B, s)
	p.lattice.Free(a)
	p.lattice.Wipe(s)
	return k
}

// expand returns (b, a).
func (k *publicKey) expand(p *parameters) (b, a rns.Poly) {
	return k.B, uniformRows(p, newPRNG(k.Seed[:]), k.LevelQ, k.LevelP)
}

// SeededCipher is a ciphertext made with the secret key: c0 = m + e - c1 s and
// the seed of c1.
type SeededCipher struct {
	Scale float64
	Seed  [32]byte
	C0    rns.Poly
}

// beginSeeded begins the encryption of a plaintext of a level with the secret key.
func beginSeeded(p *parameters, level int, scale float64, sk *secretKey, rnd entropy, purpose string,
	index int) encryption {
	c := SeededCipher{Scale: scale, Seed: rnd.key(purpose+": seed", index)}
	var a rns.Poly
	var errs smalls
	draws := []func(){func() { a = uniformRows(p, newPRNG(c.Seed[:]), level, -1) },
		func() {
			errs = newSmalls(p.lattice.Room(), 1)
			smallErrors(errs.at(0), rnd.prng(purpose+": error", index))
		}}
	return encryption{draws, func(m []int64) (columnCipher, []func()) {
		c.C0 = p.lattice.NewPoly(level)
		for i, e := range errs.at(0) {
			m[i] += int64(e)
		}
		errs.wipe()
		var rows []func()
		for j := range c.C0 {
			rows = append(rows, func() {
				p.lattice.Encrypt(j, c.C0[j], m, a[j], sk.main[j])
				p.lattice.Free(a[j : j+1])
			})
		}
		return columnCipher{SeededCipher: c}, rows
	}}
}

// expand restores the ciphertext, which takes over the polynomial.
func (c *SeededCipher) expand(p *parameters) *cipher {
	a := uniformRows(p, newPRNG(c.Seed[:]), c.C0.Level(), -1)
	return &cipher{c: [2]rns.Poly{c.C0, a}, scale: c.Scale, room: p.lattice.Room()}
}
