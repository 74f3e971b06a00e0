package bench

import (
	"context"
	"math/bits"
	"math/rand/v2"

	"github.com/cohort-engine/cohort/kernels"
	"github.com/cohort-engine/cohort/kernels/ntt"
)

const (
	// latticeWords is the degree of the ring of ckks, and latticePrime a prime that its conjugate-invariant ring has
	// transforms modulo.
	latticeWords = 1 << 14
	latticePrime = 1073479681
	// reduced is the number of products that a product modulo a prime takes: of the words, of what is left by the
	// inverse, and of that by the prime.
	reduced = 3
)

// latticeKernel is a kernel of lattice arithmetic: the products of words that it takes, at least, and the vectors that
// it reads and writes.
type latticeKernel struct {
	name     string
	products float64 // for each word
	vectors  int
	run      func()
}

// latticeKernels are the kernels of ckks on vectors of random words.
func latticeKernels() ([]latticeKernel, error) {
	p, err := ntt.NewPrime(latticePrime)
	if err != nil {
		return nil, err
	}
	ring, err := ntt.NewRing(ntt.ConjugateInvariant, bits.Len(latticeWords-1), latticePrime)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	v := make([][]uint32, 9)
	for i := range v {
		v[i] = make([]uint32, latticeWords)
		for j := range v[i] {
			v[i][j] = rng.Uint32N(latticePrime)
		}
	}
	index, random, key, one := make([]uint32, latticeWords), make([]byte, 5*latticeWords), ntt.NewKey(latticeWords, 4),
		ring.Constant(1)
	for i, j := range rng.Perm(latticeWords) {
		index[i] = uint32(j)
	}
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	for digit := range 4 {
		key.Set(digit, v[digit], v[digit+1])
	}
	// Half a product modulo the prime for each word and layer; the fold of this ring takes one layer more.
	layers := float64(bits.Len(latticeWords-1) + 1)
	return []latticeKernel{
		{"transform", reduced * layers / 2, 2, func() { ring.Forward(v[0], v[1]) }},
		{"inverse transform", reduced * layers / 2, 2, func() { ring.Inverse(v[0], v[1], one) }},
		{"sum", 0, 3, func() { p.Add(v[0], v[1], v[2]) }},
		{"product", reduced, 3, func() { p.Multiply(v[0], v[1], v[2]) }},
		{"product and sum", reduced, 3, func() { p.MultiplyAdd(v[0], v[1], v[2]) }},
		{"product of ciphertexts", 4 + 3*(reduced-1), 7, func() {
			p.Product((*[3][]uint32)(v), (*[2][]uint32)(v[3:]), (*[2][]uint32)(v[5:]), 1)
		}},
		{"conversion of three residues", 3 + reduced - 1, 4, func() { p.Convert(v[0], v[1:4], v[4][:3]) }},
		{"inner products with a key, four digits", 2 * (4 + 1 + reduced - 1), 2 + 4 + 8 + 2, func() {
			p.Inner(v[0], v[1], v[2:6], key, v[6], v[7], 77)
		}},
		{"permutation", 0, 3, func() { ntt.Permute(v[0], v[1], index) }},
		{"uniform residues", 0, 2, func() { p.Uniform(v[0], random) }},
	}, nil
}

// runLatticeKernels times the kernels of lattice arithmetic, with their share of what binds them: the ports that
// multiply, or reading and writing in the second-level cache.
func runLatticeKernels(ctx context.Context, e *Env, limits kernels.Limits) {
	all, err := latticeKernels()
	if err != nil {
		e.fail(err)
		return
	}
	for _, k := range all {
		e.newCase(ctx, "lattice", []Label{L("operation", k.name), L("N", latticeWords), L("isa", kernels.ISA())},
			func(ctx context.Context, c *Case) error {
				limits = limits.Best(kernels.MeasureLimits())
				timed := []Timed{{Name: "time", Fn: k.run}}
				if err := c.compare(ctx, timed); err != nil {
					return err
				}
				bytes := 4 * latticeWords * k.vectors
				limit, binds := binding(limits.WordSeconds(k.products*latticeWords), bytes, 1)
				if k.products == 0 {
					limit, binds = float64(bytes)/kernels.MeasureRead(bytes, 1), "bandwidth"
				}
				if limit > 0 {
					c.number("of the limit", "%", 100*limit/timed[0].Least)
					c.Row.Note = binds
				}
				return nil
			})
	}
}
