package ckks

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"sync"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels/ntt"
)

// signDepth is the number of levels that the composite sign polynomial takes:
// 3 for degree 5 or 7 and 4 for degree 15.
const signDepth = 7

// securityTable is the largest log2(QP) at which ring learning with errors in
// dimension 2^LogN with a ternary secret and error deviation 3.2 has 128-bit
// classical security (Homomorphic Encryption Standard, Albrecht et al. 2018,
// Table 1). The conjugate-invariant ring is used at its own dimension N.
var securityTable = map[int]float64{10: 27, 11: 54, 12: 109, 13: 218, 14: 438, 15: 881}

// Security is the outcome of the check against the Homomorphic Encryption
// Standard, which the lattice library leaves to its caller.
type Security struct {
	LogN  int     `json:"log_n"`
	LogQP float64 `json:"log_qp"`
	Limit float64 `json:"limit"`
	// SwitchLogN and SwitchLogQP describe the smaller ring that the aggregates
	// are switched to, 0 if they stay in the ring of the computation.
	SwitchLogN  int     `json:"switch_log_n,omitempty"`
	SwitchLogQP float64 `json:"switch_log_qp,omitempty"`
}

// String states the check in one line.
func (s Security) String() string {
	t := fmt.Sprintf("128-bit security by the Homomorphic Encryption Standard (ternary secret): LogN %d, log2(QP) "+
		"%.1f <= %.0f", s.LogN, s.LogQP, s.Limit)
	if s.SwitchLogN > 0 {
		t += fmt.Sprintf("; aggregates: LogN %d, log2(QP) %.1f <= %.0f", s.SwitchLogN, s.SwitchLogQP,
			securityTable[s.SwitchLogN])
	}
	return t
}

// checkSecurity refuses a modulus of logQP bits in dimension 2^logN that the
// standard's 128-bit row does not cover.
func checkSecurity(logN int, logQP float64) error {
	limit, ok := securityTable[logN]
	if !ok {
		return fault.Request("ckks parameters",
			fmt.Sprintf("ring degree 2^%d is not in the Homomorphic Encryption Standard's table", logN), "use 2^10 to 2^15")
	}
	if logQP > limit {
		return fault.Request("ckks parameters",
			fmt.Sprintf("log2(QP) = %.1f exceeds %.0f, the 128-bit limit at ring degree 2^%d", logQP, limit, logN),
			"use fewer clusters, fewer levels or a larger ring")
	}
	return nil
}

// Chain is a chain of primes: two of 30 bits for the last products and the
// aggregates, then one per level, then the auxiliary primes of key switching.
type Chain struct {
	LogN     int
	Levels   int // levels above the last two primes: signDepth and the product tree
	LogLevel int // bits of a level's prime, and of the scale
	LogP     []int
	// LogTop are the primes above the sign's levels, for what comes before the
	// comparison when it is found by rank.
	LogTop []int
}

// aggregateBits is the size of the two last primes. What is decrypted is an
// integer modulo their product.
const aggregateBits = 30

// chains has one entry for each depth of the product tree at LogN = 14: level primes of the most bits, and then the
// most auxiliary primes that stay under 438 bits. Digits have as many primes as there are auxiliary ones. These may be
// smaller than the digits': the noise of a relinearisation, of random digits, is divided by a level's prime too
// (rns.Workspace.Finish), and rotations take smaller digits. Products have the scale of a level: a bit more of it makes
// what roundings add to the totals a quarter.
var chains = map[int]Chain{
	0: {LogN: 14, Levels: signDepth, LogLevel: 30, LogP: []int{30, 30, 30}},
	1: {LogN: 14, Levels: signDepth + 1, LogLevel: 30, LogP: []int{30, 30, 30, 30}},
	2: {LogN: 14, Levels: signDepth + 2, LogLevel: 30, LogP: []int{27, 27, 27, 27}},
	3: {LogN: 14, Levels: signDepth + 3, LogLevel: 30, LogP: []int{26, 26, 26}},
	4: {LogN: 14, Levels: signDepth + 4, LogLevel: 30, LogP: []int{24, 24}},
}

// maxTreeDepth bounds the product tree, and with it the number of clusters
// that one cluster is compared with.
const maxTreeDepth = 7

// maxClusters is the largest number of clusters whose product trees fit any
// chain without relying on pruning.
const maxClusters = 1 << maxTreeDepth

// chooseChain returns the cheapest chain whose product tree has the given
// depth: LogN = 14 up to depth 4, LogN = 15 up to maxTreeDepth.
func chooseChain(depth int) (Chain, error) {
	if c, ok := chains[depth]; ok {
		return c, nil
	}
	if depth > maxTreeDepth {
		return Chain{}, fault.Request("k", fmt.Sprintf("a cluster has up to %d neighbours, the product tree allows %d",
			1<<depth, 1<<maxTreeDepth), "use fewer clusters")
	}
	return Chain{LogN: 15, Levels: signDepth + depth, LogLevel: 30, LogP: []int{30, 30, 30, 30}}, nil
}

// treeDepth is the depth of a product of n comparisons.
func treeDepth(n int) int {
	if n <= 1 {
		return 0
	}
	return int(math.Ceil(math.Log2(float64(n))))
}

// columnBits is the scale, in bits, of the columns that enter the aggregates.
const columnBits = 26

// switchLogN is the degree of the ring that the aggregates are switched to.
const switchLogN = 12

// parameters are checked lattice parameters and what follows from them. They
// are immutable and shared by all parties.
type parameters struct {
	Chain Chain
	q, p  []uint64
	// full are Lattigo's parameters, to compare with, which are made where they are asked for.
	full     func() (ckks.Parameters, error)
	Security Security
	// stride is N divided by the degree of the aggregates' ring.
	stride int
	// aggregate computes modulo the aggregates' primes, and aggregateInverse is the
	// first one's inverse modulo the second.
	aggregate        [aggregateLevel + 1]modulus
	aggregateInverse uint64
	// embedding serves all workers. It is made where it is asked for.
	embedding func() embedding
	// lattice computes modulo the primes; relin, rotation and small are the digits
	// of its three kinds of keys.
	lattice                *rns.Chain
	relin, rotation, small *rns.Gadget
	// fingerprint stands for all of them in every message.
	fingerprint uint64
}

// aggregateLevel is the level at which the last products are taken and the
// aggregates are decrypted: two primes.
const aggregateLevel = 1

// newParameters builds the primes of a chain for the conjugate-invariant ring
// and checks 128-bit security of the computation and of the aggregates' ring.
func newParameters(c Chain) (*parameters, error) {
	p, err := buildParameters(c)
	if err != nil {
		return nil, err
	}
	if err := checkSecurity(c.LogN, p.Security.LogQP); err != nil {
		return nil, err
	}
	if err := checkSecurity(p.Security.SwitchLogN, p.Security.SwitchLogQP); err != nil {
		return nil, err
	}
	return p, nil
}

// buildParameters is newParameters without the security check, which lets the
// package's tests use small rings.
func buildParameters(c Chain) (*parameters, error) {
	primes := primeSource{order: 4 << c.LogN, last: map[int]int64{}}
	q := primes.next(aggregateBits, aggregateBits)
	for range c.Levels {
		q = append(q, primes.next(c.LogLevel)...)
	}
	q = append(q, primes.next(c.LogTop...)...)
	aux := primes.next(c.LogP...)
	if primes.err != nil {
		return nil, fault.Failed("ckks parameters", primes.err.Error(), "", primes.err)
	}
	lattice, err := rns.NewChain(ntt.ConjugateInvariant, c.LogN, q, aux)
	if err != nil {
		return nil, fault.Failed("ckks parameters", err.Error(), "", err)
	}
	small := min(switchLogN, c.LogN)
	p := &parameters{Chain: c, q: q, p: aux, stride: 1 << (c.LogN - small), lattice: lattice,
		embedding: sync.OnceValue(func() embedding { return newEmbedding(1 << c.LogN) })}
	p.full = sync.OnceValues(func() (ckks.Parameters, error) {
		return ckks.NewParametersFromLiteral(ckks.ParametersLiteral{LogN: c.LogN, Q: q, P: aux,
			LogDefaultScale: c.LogLevel, RingType: ring.ConjugateInvariant})
	})
	p.Security = Security{
		LogN: c.LogN, LogQP: logProduct(q) + logProduct(aux), Limit: securityTable[c.LogN],
		SwitchLogN: small, SwitchLogQP: logProduct(q[:aggregateLevel+1]) + logProduct(aux[:1]),
	}
	for j := range p.aggregate {
		p.aggregate[j] = newModulus(q[j])
	}
	p.aggregateInverse = new(big.Int).ModInverse(new(big.Int).SetUint64(q[0]), new(big.Int).SetUint64(q[1])).Uint64()
	p.relin = p.lattice.NewGadget(len(aux), len(aux), len(aux), p.MaxLevel())
	p.small = p.lattice.NewGadget(1, 1, 1, aggregateLevel)
	p.rotation = p.rotationGadget()
	p.fingerprint = p.hash()
	return p, nil
}

// turn is the permutation of values that moves slot i+by to slot i, or with by below 0 its inverse: the automorphism of
// X to the power generator^by.
func (p *parameters) turn(by int) ([]uint32, error) {
	order := p.rootOrder()
	index, err := ring.AutomorphismNTTIndex(p.N(), order, ring.ModExp(rlwe.GaloisGen, uint64(by)&(order-1), order))
	out := make([]uint32, len(index))
	for i, x := range index {
		out[i] = uint32(x)
	}
	return out, err
}

// rootOrder is the order of the roots of unity at which a polynomial has its values.
func (p *parameters) rootOrder() uint64 { return 4 << p.LogN() }

// N is the degree, 2^LogN.
func (p *parameters) N() int { return 1 << p.Chain.LogN }

// LogN is that of the chain.
func (p *parameters) LogN() int { return p.Chain.LogN }

// Q are the primes of ciphertexts.
func (p *parameters) Q() []uint64 { return p.q }

// P are the auxiliary primes.
func (p *parameters) P() []uint64 { return p.p }

// primes are those of Q up to a level and those of P up to another, -1 for none.
func (p *parameters) primes(levelQ, levelP int) []uint64 {
	return slices.Concat(p.q[:levelQ+1], p.p[:levelP+1])
}

// MaxLevel is the index of the last prime of ciphertexts.
func (p *parameters) MaxLevel() int { return len(p.q) - 1 }

// MaxLevelP is the index of the last auxiliary prime.
func (p *parameters) MaxLevelP() int { return len(p.p) - 1 }

// primeSource hands out primes downward from powers of two, each once.
type primeSource struct {
	order int64
	last  map[int]int64 // by bits
	err   error
}

// next returns primes of the given bits, 1 modulo the order.
func (s *primeSource) next(logs ...int) []uint64 {
	var out []uint64
	for _, bits := range logs {
		q, ok := s.last[bits]
		if !ok {
			q = 1<<bits + 1
		}
		least := math.Exp2(float64(bits) - 0.5) // rounded, they have the given bits
		for q -= s.order; float64(q) > least && !ntt.IsPrime(uint32(q)); {
			q -= s.order
		}
		if bits > ntt.MaxBits || float64(q) <= least {
			s.err = fmt.Errorf("there are not that many primes of %d bits that are 1 modulo %d", bits, s.order)
		}
		s.last[bits] = q
		out = append(out, uint64(q))
	}
	return out
}

// rotationSlack is the number of bits by which the auxiliary primes of rotations
// exceed their digits. A rotation is not followed by a division: the noise of its
// key, about 2^8 digit/P, has to stay below that of a rounding.
const rotationSlack = 5

// rotationGadget chooses the digits of rotation keys with the fewest bits that leave
// the slack, or those with the most slack.
func (p *parameters) rotationGadget() *rns.Gadget {
	level := p.rotationLevel()
	var best [3]int
	least, most := math.Inf(1), math.Inf(-1)
	for aux := 1; aux <= len(p.P()); aux++ {
		extra := logProduct(p.P()[:aux])
		for size := 1; size <= len(p.P()); size++ {
			for first := 1; first <= size; first++ {
				digits, widest := 0, 0.0
				for from, count := 0, first; from <= level; from, count = from+count, size {
					digits++
					widest = max(widest, logProduct(p.Q()[from:min(from+count, level+1)]))
				}
				bits := float64(digits) * (logProduct(p.Q()[:level+1]) + extra)
				slack := min(extra-widest, rotationSlack)
				if digits <= rns.MaxDigits && (slack > most || slack == most && bits < least) {
					best, least, most = [3]int{first, size, aux}, bits, slack
				}
			}
		}
	}
	return p.lattice.NewGadget(best[0], best[1], best[2], level)
}

func logProduct(primes []uint64) float64 {
	var s float64
	for _, q := range primes {
		s += math.Log2(float64(q))
	}
	return s
}

// slots is the number of records in one ciphertext.
func (p *parameters) slots() int { return p.N() }

// topLevel is the level at which a round with product trees of the given depth and a sign starts.
func topLevel(depth int, sign *composite) int { return aggregateLevel + depth + sign.depth() }

// columnScale is the scale of columns in the aggregates: 2^26, less when the
// sum of n records would come near the 60-bit modulus, or when noise of
// standard deviation sigma, in records, would leave the exact sampler's range.
func columnScale(p *parameters, n int, sigma float64) float64 {
	bits := columnBits
	// A record is worth 2^(bits + LogLevel - LogN) in the aggregate.
	record := func() float64 { return float64(bits + p.Chain.LogLevel - p.Chain.LogN) }
	for bits > minColumnBits && (math.Log2(float64(n)+100*sigma)+record()+2 > 2*aggregateBits-1 || math.Log2(sigma)+
		record()+1 > math.Log2(privacy.MaxScale)) {
		bits--
	}
	return math.Exp2(float64(bits))
}

// minColumnBits is where the rounding of encoded columns begins to show.
const minColumnBits = 14
