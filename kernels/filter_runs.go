package kernels

import "math"

// Runs of words whose products of bytes are added in 16 bits (see the bound of the candidate filter) have one of a few
// lengths, which the centroids and the points together allow.
const (
	runLengths  = 4
	shortestRun = 4 // words, of four bytes; each length is twice the one before
)

// reaches are, for runs of each length, the largest square of the length of integers in a lane of a run: the first two
// bytes of each word, or the last two.
type reaches [runLengths]float32

// runSums are the squares of the length of a vector's part in the lanes of a run, for runs of each length, so far.
type runSums [runLengths][2]float32

// raise raises the squares to those of a panel of words whose bytes are stored plus zero. They are sums of integers
// that float32 holds.
func (r *reaches) raise(data []byte, zero int32, words int) {
	for l := range Lanes {
		var sums runSums
		for first := 0; first < words; first += shortestRun {
			var squares [2]int32
			for w := first; w < min(first+shortestRun, words); w++ {
				for i, x := range data[4*(w*Lanes+l):][:4] {
					x := int32(x) - zero
					squares[i/2] += x * x
				}
			}
			r.add(&sums, float32(squares[0]), float32(squares[1]), first+shortestRun, words)
		}
	}
}

// add adds the squares of the next part of a vector, up to word next of so many. Two copies of it would be large.
//
//go:noinline
func (r *reaches) add(sums *runSums, s, t float32, next, words int) {
	for level := range sums {
		part := &sums[level]
		part[0] += s
		part[1] += t
		if next >= words || next%(shortestRun<<level) == 0 {
			r[level] = max(r[level], part[0], part[1])
			*part = [2]float32{}
		}
	}
}

// ofRows raises the squares to those of rows of d coordinates, but for the roundings of float32, and returns the
// largest magnitude of the sum of two neighbours whose products an instruction adds.
func (r *reaches) ofRows(rows []float32, d int) float32 {
	const sign = 1 << 31
	var pairs uint32 // magnitudes are in the order of their bits
	words := (d + 3) / 4
	for ; len(rows) >= d; rows = rows[d:] {
		var sums runSums
		for first := 0; first < words; first += shortestRun {
			part := rows[4*first : min(4*(first+shortestRun), d)]
			var squares [2]float32
			for j := 0; j < len(part); j += 2 {
				x, y := part[j], float32(0)
				if j+1 < len(part) {
					y = part[j+1]
				}
				pairs = max(pairs, math.Float32bits(x+y)&^sign)
				squares[j/2%2] += float32(x*x) + float32(y*y)
			}
			r.add(&sums, squares[0], squares[1], first+shortestRun, words)
		}
	}
	return math.Float32frombits(pairs)
}

// setRun chooses the length of runs and returns the scale of centroids, none of whose coordinates exceed most. The
// longer a run, the less often 32 bits are taken, and the less precise are centroids: to half of what they could be, or
// to a third where a run holds all words, they take less time than the candidates that come with it.
func (f *filterCentroids) setRun(c *Centroids, most float64) float64 {
	if !(most > 0x1p-40 && most < 1<<15) { // squares would not fit, or it is not a number
		return 0
	}
	const widest, down = 1<<7 - 1, 1 - 0x1p-16 // for all that is rounded here
	var squares reaches
	pair := squares.ofRows(c.rows[:c.K*c.D], c.D)
	// Rounding moves each integer by 1/2 at most.
	finest := min(widest/most, float64((1<<15-1)/(2*f.zero-1)-1)/float64(pair))
	level, scale := runLengths-1, 0.0
	for ; ; level-- {
		run := shortestRun << level
		if level > 0 && run/2 >= f.words {
			continue
		}
		scale = min(finest, ((1<<15-1)/math.Sqrt(float64(f.reach[level]))-math.Sqrt(float64(2*run))/2)/
			math.Sqrt(float64(squares[level])))
		if level == 0 || scale >= finest/2 || scale >= finest/3 && run >= f.words {
			break
		}
	}
	if run := shortestRun << level; run != f.run {
		f.run = run
		clear(f.data) // what is between words and after the last stays 0
	}
	return float64(float32(max(0, min(scale*down, 1<<MaxFractionBits))))
}

// join raises the squares to others.
func (r *reaches) join(other *reaches) {
	for level, x := range other {
		r[level] = max(r[level], x)
	}
}

// covers says whether no other square is larger.
func (r *reaches) covers(other *reaches) bool {
	for level, x := range other {
		if x > r[level] {
			return false
		}
	}
	return true
}
