package kernels

import "math"

// wordSums are sums of points of up to Lanes dimensions that are added while others are ranked, two dimensions in a
// word of 64 bits. The first one of n points is n times the bits of a bias and a sum of 32 bits with its sign, and its
// carries are in the second one: both come out once the biases are taken off all 64 bits.
type wordSums struct {
	words  []int64 // two of [K+1][Lanes/2], which are added up
	counts []int32 // [K+1]
}

// wordSumsFor returns the word sums of an accumulator for so many ranked points, nil where they do not pay.
func wordSumsFor(acc *Accumulator, points int) *wordSums {
	if points < leastWorded*acc.K || !wordSumsPay(acc.D, acc.K) {
		return nil
	}
	if acc.scratch.words == nil {
		rows := acc.K + 1
		words, counts := rows*Lanes, rows
		memory := newOwned(pageBytes, roomFor(pageBytes, 8*words, 4*counts))
		acc.scratch.words = &wordSums{words: part[int64](&memory, words), counts: part[int32](&memory, counts)}
	}
	return acc.scratch.words
}

// leastWorded is the number of points for each cluster from which on word sums pay: they go to rows in the end.
const leastWorded = 16

// empty moves the sums to those of the accumulator.
func (t *wordSums) empty(acc *Accumulator, bias float32) {
	d, one := acc.D, uint64(math.Float32bits(bias))*(1<<32+1)
	for i, n := range t.counts[:acc.K] {
		if n == 0 {
			continue
		}
		acc.Counts[i] += int64(n)
		sums := acc.Sums[i*d : i*d+d]
		words, others := t.words[i*Lanes/2:][:Lanes/2], t.words[(acc.K+1+i)*Lanes/2:][:Lanes/2]
		for j := 0; j < d; j += 2 {
			both := words[j/2] + others[j/2] - int64(uint64(n)*one)
			first := int64(int32(both))
			if sums[j] += first; j+1 < d {
				sums[j+1] += (both - first) >> 32
			}
		}
	}
	clear(t.words)
	clear(t.counts)
}
