package ckks

import (
	"github.com/cohort-engine/cohort/kernels/ntt"
)

// SecretOperation is a function that handles secrets, for being timed on some.
type SecretOperation struct {
	Name string
	// Load takes the secret: SecretWords canonical residues modulo SecretPrime.
	Load func(secret []uint32)
	Run  func()
}

// SecretWords and SecretPrime are the size of the secrets of [SecretOperations],
// and the prime below which their residues are.
const (
	SecretWords = 1 << ntt.MinLogN
	SecretPrime = 1073479681
)

// SecretOperations prepares the kernels and functions through which keys, columns
// and decrypted totals go.
func SecretOperations() ([]SecretOperation, error) {
	r, err := ntt.NewRing(ntt.ConjugateInvariant, ntt.MinLogN, SecretPrime)
	if err != nil {
		return nil, err
	}
	var x, y, z, public [SecretWords]uint32
	for i := range public {
		public[i] = uint32(uint64(i) * 2654435761 % SecretPrime)
	}
	constant, one := r.Constant(12345), r.Constant(1)
	load := func(secret []uint32) { copy(x[:], secret) }
	key := ntt.NewKey(SecretWords, 1)
	key.Set(0, public[:], public[:])
	pair, other := [2][]uint32{x[:], x[:]}, [2][]uint32{public[:], public[:]}
	var product [3][]uint32
	for i := range product {
		product[i] = make([]uint32, SecretWords)
	}
	src, factor := [][]uint32{x[:]}, []uint32{constant}
	fraction := []uint32{r.Fraction(58)}
	ops := []SecretOperation{
		{"transform", load, func() { r.Forward(y[:], x[:]) }},
		{"inverse transform", load, func() { r.Inverse(y[:], x[:], one) }},
		{"sum", load, func() { r.Add(y[:], x[:], public[:]) }},
		{"difference", load, func() { r.Sub(y[:], x[:], public[:]) }},
		{"sum with a constant", load, func() { r.AddScalar(y[:], x[:], 12345) }},
		{"multiple", load, func() { r.Scale(y[:], x[:], constant) }},
		{"sum with a multiple", load, func() { r.ScaleAdd(y[:], x[:], constant) }},
		{"multiple of a difference", load, func() { r.SubScale(y[:], x[:], public[:], constant) }},
		{"product", load, func() { r.Multiply(y[:], x[:], public[:]) }},
		{"sum of products", load, func() { r.MultiplyAdd(y[:], x[:], public[:]) }},
		{"product of ciphertexts", load, func() { r.Product(&product, &pair, &other, 2) }},
		{"sum of products of ciphertexts", load, func() { r.ProductAdd(&product, &pair, &other, 1) }},
		{"base conversion", load, func() { r.Convert(y[:], src, factor) }},
		{"rounded quotient", load, func() { ntt.Whole(y[:], src, fraction, 58) }},
		{"inner product with a key", load, func() { r.Inner(y[:], z[:], src, key, nil, nil, 0) }},
	}
	return append(ops, scalarOperations()...), nil
}

// scalarOperations are the functions on single residues: what decryption and noise
// go through.
func scalarOperations() []SecretOperation {
	m := newModulus(SecretPrime)
	var wide [SecretWords]uint64
	load := func(secret []uint32) {
		for i, v := range secret {
			wide[i] = uint64(v)
		}
	}
	var sum uint64
	return []SecretOperation{
		{"decryption's product", load, func() {
			for i, v := range wide {
				sum = m.add(sum, m.multiply(v, uint64(i)))
			}
		}},
		{"residue of a signed integer", load, func() {
			for _, v := range wide {
				sum = m.add(sum, m.signed(int64(v<<33)))
			}
		}},
		{"secret of a random byte", load, func() {
			var digits [5]int8
			for _, v := range wide {
				ternaryDigits(digits[:], byte(v))
				sum += uint64(digits[0])
			}
		}},
		{"error of a random word", load, func() {
			for _, v := range wide {
				sum += uint64(smallError(v << 34))
			}
		}},
	}
}
