package ckks

import "math"

// group is the comparisons that lie side by side in one ciphertext. Their coefficients for a column are numbers of
// period B over the slots, the same for all records: a polynomial in Y + 1/Y, Y = X^(N/B), with B coefficients. So a
// product with it costs an encrypted column no more of its scale than one with a number does.
type group struct {
	pairs []pair
	first int // index of the first one among the round's
	// whole[h] has the integer coefficients of an encrypted column's gains, times the round's unit.
	whole [][]int64
	// plain[h] has the coefficients of a column's gains, offset those of the offsets.
	plain  [][]float64
	offset []float64
}

// newGroup rounds the gains of pairs, which it changes, for encrypted columns: the comparison that is evaluated is
// the one with the rounded gains, and vanishes between the centroids as the exact one does.
func newGroup(pairs []pair, first, blocks int, cols columns, unit float64) *group {
	g := &group{pairs: pairs, first: first, whole: make([][]int64, cols.d), plain: make([][]float64, cols.d)}
	s := newSides(blocks)
	exact := make([][]float64, cols.d) // gains by column and block
	for h := range exact {
		exact[h] = make([]float64, blocks)
		for u, p := range pairs {
			exact[h][u] = p.gain[h]
		}
	}
	for shrink := 1.0; ; shrink *= 1 - 1.0/128 {
		factors := s.factors(exact, cols, shrink*unit, len(pairs))
		beside := make([]float64, blocks) // what gains of no comparison are rounded to
		for h, enc := range cols.encrypted {
			gains := make([]float64, blocks)
			for u := range pairs {
				gains[u] = shrink * factors[u] * exact[h][u]
			}
			g.plain[h] = s.coefficients(gains)
			if enc {
				g.whole[h] = make([]int64, blocks)
				for j, c := range g.plain[h] {
					c = math.RoundToEven(c * unit)
					g.whole[h][j], g.plain[h][j] = int64(c), c/unit
				}
				gains = s.values(g.plain[h])
			}
			for u := range gains {
				if u < len(pairs) {
					pairs[u].gain[h] = gains[u]
				} else {
					beside[u] += math.Abs(gains[u])
				}
			}
		}
		inside := true
		offsets := make([]float64, blocks)
		for u := range beside {
			if u < len(pairs) {
				pairs[u].setOffset()
				offsets[u], beside[u] = pairs[u].offset, pairs[u].size()
			}
			inside = inside && beside[u] <= cols.domain()
		}
		if inside {
			g.offset = s.coefficients(offsets)
			return g
		}
	}
}

// sides is the transform between numbers of period B over the slots and their coefficients, in the order of slots:
// slot u is the value at the power 5^u of a root of order 4B.
type sides struct{ cos [][]float64 } // by block and coefficient

func newSides(blocks int) *sides {
	// Halves of angles and sums of multiples, so that all machines have the same bits.
	c := 0.0 // the cosine of a quarter of a turn
	for b := 1; b < blocks; b *= 2 {
		c = math.Sqrt((1 + c) / 2)
	}
	all := []float64{1, c}
	for m := 2; m < 4*blocks; m++ {
		all = append(all, float64(2*c*all[m-1])-all[m-2])
	}
	s := &sides{}
	for u, power := 0, 1; u < blocks; u, power = u+1, power*5%(4*blocks) {
		s.cos = append(s.cos, make([]float64, blocks))
		for j := range blocks {
			s.cos[u][j] = all[power*j%(4*blocks)]
		}
	}
	return s
}

// coefficients are those of 1, Y + 1/Y, Y^2 + 1/Y^2, ...
func (s *sides) coefficients(values []float64) []float64 {
	out := make([]float64, len(values))
	for u, v := range values {
		for j, c := range s.cos[u] {
			out[j] += float64(v*c) / float64(len(values))
		}
	}
	return out
}

// values is the inverse.
func (s *sides) values(coefficients []float64) []float64 {
	out := make([]float64, len(coefficients))
	for u, cos := range s.cos {
		out[u] = coefficients[0]
		for j := 1; j < len(cos); j++ {
			out[u] += float64(2 * coefficients[j] * cos[j])
		}
	}
	return out
}

// factors chooses a factor between 15/16 and 1 for each of the first comparisons, one after the other, so that the
// coefficients of encrypted columns, times unit, are near integers.
func (s *sides) factors(exact [][]float64, cols columns, unit float64, count int) []float64 {
	const steps = 64
	var coefficients [][]float64
	for h, enc := range cols.encrypted {
		if enc {
			coefficients = append(coefficients, s.coefficients(exact[h]))
		}
	}
	out := make([]float64, count)
	for u := range out {
		best, add := math.Inf(1), 0
		for step := range steps + 1 {
			var err float64
			i := 0
			for h, enc := range cols.encrypted {
				if enc {
					by := float64(exact[h][u]*float64(step)) / (16 * steps * float64(len(s.cos)))
					for j, c := range coefficients[i] {
						a := (c - float64(by*s.cos[u][j])) * unit
						err += math.Abs(a - math.RoundToEven(a))
					}
					i++
				}
			}
			if err < best-1e-9 {
				best, add = err, step
			}
		}
		out[u] = 1 - float64(add)/(16*steps)
		i := 0
		for h, enc := range cols.encrypted {
			if enc {
				for j := range coefficients[i] {
					coefficients[i][j] -= float64((1 - out[u]) * exact[h][u] * s.cos[u][j] / float64(len(s.cos)))
				}
				i++
			}
		}
	}
	return out
}

// addProduct adds to dst, the coefficients from lo on of a polynomial, those of the product of x with one in Y + 1/Y
// with the given coefficients.
func addProduct(dst []float64, lo int, coefficients, x []float64) {
	n, hi := len(x), lo+len(dst)
	for j, f := range coefficients {
		if j == 0 {
			addMultiple(dst, f, x[lo:hi])
			continue
		}
		// (X^i + X^-i)(X^s + X^-s) has the powers i + s and i - s; X^-i is X^i there, and X^(2N) = -1.
		s := j * n / len(coefficients)
		if from := max(lo, s); from < hi {
			addMultiple(dst[from-lo:], f, x[from-s:hi-s])
		}
		if to := min(hi, n-s); lo < to {
			addMultiple(dst[:to-lo], f, x[lo+s:to+s])
		}
		for k := lo; k < min(hi, s); k++ {
			dst[k-lo] += float64(f * x[s-k])
		}
		for k := max(lo, n-s+1); k < hi; k++ {
			dst[k-lo] -= float64(f * x[2*n-s-k])
		}
	}
}

// addMultiple adds f x to dst.
func addMultiple(dst []float64, f float64, x []float64) {
	for i, v := range x {
		dst[i] += float64(f * v)
	}
}
