package ckks

import (
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/internal/pages"
)

// room counts the memory of a run in one process, in rows: the residues of a polynomial modulo one prime, 4 N bytes.
// Resident are keys and, of each batch of N records, the encrypted columns, the computing party's own as factors and as
// coefficients, and the memberships of a round. Comparisons, a ciphertext for each pair, come and go in runs of batches
// (liveCiphertexts); those by rank with what they need, a packed ciphertext on each worker. With five clusters in the
// plane a batch takes 75 rows, 4.9 MB: 10^5 records 130 MB in all, 10^6 430. Encrypted columns are a third of it. Half
// of them could be drawn again from seeds in each round, a tenth of the peak for a hundredth of the time, which is not
// done.
type room struct {
	*run
	primes int // of ciphertexts
	all    int // with the auxiliary ones
	// kept stays to the end, pool is what polynomials take that come and go, at most at a time, and left what messages
	// and rounds leave behind.
	kept, pool, left int
	// worker is what a worker has for itself, polynomials those of it that come and go.
	worker, polynomials int
}

// memory is what a run takes in one process at most, if pruning leaves all pairs that the chain has room for. Where a
// run leaves much behind the heap is collected when it has doubled.
func (s *run) memory() *engine.Memory {
	r := &room{run: s, primes: len(s.params.Q())}
	r.all = r.primes + len(s.params.P())
	r.tables()
	setup := r.keys()
	r.columns()
	r.rounds()
	// Polynomials of keys serve again in rounds, at one worker at least.
	r.pool = max(r.pool, setup-r.polynomials)
	const other = 6 << 20 // the noise's tables, stacks, pages of the program
	row := int64(4 * s.params.N())
	live := int64(r.kept+r.pool)*row + 8*int64(s.N)*int64(s.D) + other
	live += live / 32 // the heap's own
	const late = 1.35 // times what a heap has doubled by when its collection ends, on a busy machine
	return &engine.Memory{Bytes: live + min(int64(r.left)*row, int64(late*float64(live+pages.Floor))),
		PerWorker: int64(r.worker) * row}
}

// tables are those of transforms and of the encoder.
func (r *room) tables() {
	const transform, encoder = 5, 18
	r.kept += transform*r.all + encoder
}

// keyRows are the rows of a key's first components.
func keyRows(g *rns.Gadget) int { return g.Digits(g.MaxLevel()) * g.Rows() }

// keys are secrets, keys and the messages that carry them. It returns what polynomials take meanwhile.
func (r *room) keys() (setup int) {
	p, rotations := r.params, len(r.lay.shifts())
	own := keyRows(p.relin) + keyRows(p.small) + rotations*keyRows(p.rotation)
	r.kept += 2 * own // expanded
	const errors = 2  // rows of those of a key
	if r.job.mode() != Multiparty {
		r.kept += 2 * r.all
		r.left += own
		drawn := keyRows(p.relin) + keyRows(p.small) + min(rotations, keysAtOnce-2)*keyRows(p.rotation)
		turned := r.primes + min(rotations, keysAtOnce)*r.all // the secret's square, turned secrets
		return own + max(drawn, min(rotations, keysAtOnce)*keyRows(p.rotation)) + turned + errors*keysAtOnce
	}
	holders := len(r.job.Columns) - 1
	share := own + keyRows(p.relin) // with both halves of the relinearisation key
	r.kept += 2 * holders * r.all
	r.left += (holders + 1) * share // messages
	if t := r.job.threshold(); t < holders {
		// Polynomials and shares of each in words of 64 bits, and the library's tables.
		const tables = 24
		r.left += holders * (tables + (t+4*holders)*2*(aggregateLevel+1)/p.stride)
	}
	// All have the sum of the shares, with the public key, and an ephemeral secret, and two of them factors of secrets.
	return share + holders*(share+r.primes+1+r.all) + 2*(2*r.all+errors)
}

// columns are the columns, encrypted and not.
func (r *room) columns() {
	tops, lows, encrypted := r.lay.tops(), r.lay.lows(), r.cols.count()
	const low, wide = aggregateLevel + 1, 2
	column := tops*r.primes + lows*low // half of its ciphertexts
	r.pool += 2*encrypted*column + (r.D-encrypted+1)*lows*low
	r.left += encrypted * column // messages
	if r.lay.rank == nil {
		r.kept += wide * r.D * tops // coefficients for comparisons
	}
	if r.job.mode() == ServerAided {
		encrypted -= len(r.job.Columns[1]) // those that the key holder encrypts
	}
	if r.job.mode() != TwoParty {
		const drawn = 2 // rows of integers that an encryption under a public key leaves behind
		r.left += encrypted * (column + drawn*(tops+lows))
	}
}

// rounds are the memberships and totals of a round, and what computes them.
func (r *room) rounds() {
	p, k := r.params, r.job.K
	if r.lay.rank == nil {
		r.pairs()
	} else {
		r.ranks()
	}
	r.pool += membership * masksAhead
	totals := k * (1 + r.D)
	r.kept += 2 * totals * (aggregateLevel + 1) / p.stride // with their message
	r.left += r.Rounds * r.streams()
	workspace, encoder, encoders := 4*r.primes+2*len(p.P())+3*rns.MaxDigits+14, 9, 1
	if r.job.mode() != TwoParty {
		encoders += len(r.job.Columns) - 1 // those who encrypt columns have their own
	}
	r.worker = workspace + encoders*encoder + r.polynomials
}

// streams are what generators of roundings leave behind in a round, at most: one for each digit and half of a product.
func (r *room) streams() int {
	const bytes = 560
	k, perProduct := r.job.K, r.params.relin.Digits(r.params.MaxLevel())+2
	sign, signs := pairSign, r.lay.batches*(k*min(k-1, 1<<r.params.maxDepth())/2+r.lay.blocks-1)/r.lay.blocks
	if r.lay.rank != nil {
		sign, signs = rankSignFor(k), r.lay.batches
	}
	products := signs*sign.stages() + r.lay.batches*k*k + 2*k*(1+r.D)
	return products * perProduct * bytes / (4 * r.params.N())
}

// membership is the rows of one, and of a mask.
const membership = 2 * (aggregateLevel + 1)

// pairs are comparisons of pairs and the memberships that are made of them.
func (r *room) pairs() {
	k, batches := r.job.K, r.lay.batches
	level := membership + 2*r.params.maxDepth() // of a comparison
	pairs := k * min(k-1, 1<<r.params.maxDepth()) / 2
	run := min(batches, max(1, liveCiphertexts/pairs))
	sign, tree := 2*pairSign.rows(r.primes), level*(k-1)
	// Memberships of the last run come when its signs are done.
	r.pool += level*pairs*run + max(membership*k*(batches-run), membership*k*batches-max(sign-tree, 0))
	r.polynomials = max(sign, tree)
}

// ranks are encrypted columns as they are spread over the slots, and memberships by rank, a packed ciphertext after the
// other on each worker.
func (r *room) ranks() {
	k, batches, encrypted, sign := r.job.K, r.lay.batches, r.cols.count(), rankSignFor(r.job.K)
	spread := r.primes - 1 // rows of half a column
	input := spread - 1    // of a sign's
	rank := input - sign.depth()
	r.pool += 2*spread*encrypted*batches + membership*k*batches
	// A column that is spread has two copies; the indicator has a factor for each rank and their sum.
	r.polynomials = 2 * max(3*spread, sign.rows(input), k*rank)
}

// rows are the most that halves of ciphertexts have at a time in an evaluation of s on a half of so many rows, with it.
func (s *composite) rows(input int) (most int) {
	at, kept := input, 0
	for i := range s.polynomials {
		p := &s.polynomials[i]
		// T1, T2, on each level below two products, or one where T4 is not needed, and the result.
		alive := kept + at + at - 1 + at - p.depth()
		for down := 2; down < p.depth(); down++ {
			alive += 2 * (at - down)
		}
		if len(p.odd) == 3 {
			alive -= at - 2
		}
		most, at, kept = max(most, alive), at-p.depth(), input
	}
	return most
}
