package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// The candidate filter ranks centroids by products of small integers, two of 16 bits
// or four of 8, and eight where it multiplies matrices, for each float32 of an instruction,
// or of tiles of bytes (AMX), and leaves to the exact chain of [Assign] only what the
// ranking cannot tell. Labels are the same, bit for bit.
//
// Bound. Let x be a point, c a centroid, h = |c|^2/2 as Assign has it, and s the
// chain that Assign compares. Points and centroids are rounded to integers,
// u = a x - e and v = b c - g, with any e and g, and the integer score is
//
//	S = round(a b h + o) - u.v,
//
// the same o for all centroids of a call. By Cauchy and Schwarz,
//
//	|x.c - u.v/(ab)| <= |e/a| |c| + (|x| + |e/a|) |g/b|,
//
// the chain of d roundings with partial sums of at most h + |x||c| is within
// 1.01 d 2^-24 (h + |x||c|) + d 2^-149 of h - x.c, and the rounding of the first
// term of S to an integer, in float64 before, is below 1. Let w be the sum
// of the three for the largest |c|, |g| and h, in units of 1/(ab). If j has the least
// chain and i the least integer score, then S_j <= s_j+w <= s_i+w <= S_i+2w: so j is
// among the candidates, the centroids of score at most S_i + 2w. A point with one
// candidate has its label; of several, the chains decide.
//
// Let w_j be that sum for |c_j| and |g_j| of one centroid, and r_j an integer of 0 to w - w_j. Then S_j + r_j, which is
// what is compared, serves as well as S_j: S_j <= s_j+w_j has S_j + r_j <= s_j+w, and of the least S_i + r_i,
// S_j + r_j <= s_j+w <= s_i+w <= S_i+w_i+w <= S_i+r_i+2w. So short centroids, which are most of the nearest ones, are
// among the candidates no more often than their own width asks for. The r_j are those of the shortest points.
//
// A centroid whose chain is known to be at most t leaves of these those of S_j <= t+w, which are about the square
// root of as many where it is the nearest: for s_j <= t if j has the least chain. So the product with a guess, the
// label that a point had, comes before all scores; where such labels are wrong, the one with the centroid of the least
// score comes after them.
//
// S needs 32 bits at the end only, as additions wrap: with o = |x|^2/2 for the
// longest x, S is between 0 and (|x|+|c|)^2/2, in units, but for w. Bytes of points
// are stored plus 128, as the instruction takes them unsigned; the sum of the
// centroid's bytes makes up for it.
//
// AVX2 adds products of bytes in 16 bits. A pair of them, of points stored plus z and so at most 2z-1, saturates
// unless (2z-1)(v+v') is within 16 bits for the two bytes of the centroid, or for one of them alone if their signs
// differ. Such pairs of one lane are added along a run of words, from -z times the sum of the centroid's bytes there
// on, before the run's sum of 32 bits is taken. These additions wrap too, so no more is asked of them than that the
// run's own product fits 16 bits: by Cauchy and Schwarz, the product of the lengths that the integers of a point and
// of a centroid have in a lane of a run is at most 2^15-1. With z = 91 the centroid's bytes may all be up to 90, and
// the scale b is the largest that both conditions allow, whatever the centroids are.
//
// Tiles of AMX hold state that the system saves where it switches threads and delivers
// signals, Go's own among them, whose stacks have room for it. A routine sets the tiles
// and releases them, and Go does not move a goroutine inside of one: so no state of tiles
// outlives a call.

// filterPoints is the integer form of points, made once.
type filterPoints struct {
	data  []byte  // [panels][words][16] words: integers of neighbouring dimensions
	group int     // integers in a word: 2 of 16 bits, 4 or 8 bytes
	zero  int32   // what is added to bytes, which are less in magnitude
	words int     // of a point
	chunk int     // words that centroids have together, a divisor of words
	runs  bool    // whether products are added in 16 bits
	reach reaches // of the points' integers
	scale float64 // a
	most  float64 // the largest coordinate's magnitude
	norm  float64 // at least the length of each point
	rough float64 // at least the length of each point's error, e/a
	// panels has, for each panel, at least the lengths of its points and of their
	// errors, and floor has at most what the panels have.
	panels [][2]float32
	floor  [2]float64
}

// size is the number of bytes of a point.
func (f *filterPoints) size() int { return f.words * wordBytes(f.group) }

const (
	filterTile = 8
	// filterRange bounds the length of a vector in integers of 16 bits: the squares
	// of two of them fit 31 bits with some room.
	filterRange = 0.99 * (1 << 15)
	// filterUp makes an upper bound of a length that was computed in float64.
	filterUp = 1 + 0x1p-20
)

// wordBytes is the size of the words that an instruction multiplies, of group integers.
func wordBytes(group int) int { return max(4, group) }

// scaleFor returns the scale of integers, group to a word, for vectors of d
// coordinates that are at most norm long, none above most; 0 if there is none. For
// two it is the largest power of 2 in range, none finer than the finest grid; bytes
// are less than zero in magnitude.
func scaleFor(group int, zero int32, d int, norm, most float64) float64 {
	if group >= 4 {
		if !(most > 0 && most < 1<<15) {
			return 0
		}
		widest := float64(zero-1) * (1 - 0x1p-20)
		return float64(float32(min(widest/most, 1<<MaxFractionBits)))
	}
	room := (filterRange - math.Sqrt(float64(d))/2) / filterUp
	if !(norm*0x1p-14 <= room) { // too long, or not a number
		return 0
	}
	scale := float64(1 << MaxFractionBits)
	for norm*scale > room {
		scale /= 2
	}
	return scale
}

// PrepareFilter adds to points the integers that let [Assign] and the kernels that
// contain it rank centroids, where the path in use and the shape, for k centroids,
// gain from that; up to half as much memory again. Points of few dimensions, and those of
// many with few centroids, need none: of those it notes how long they are at most. Call it once the points are
// there, and [Centroids.PrepareFilter] before the centroids are set. each runs n
// tasks, perhaps at the same time; nil runs them in order. The results of kernels do
// not depend on it.
func (p *Panels) PrepareFilter(k int, each func(n int, task func(i int))) {
	p.filter, p.longest = nil, 0
	if each == nil {
		each = inOrder
	}
	if p.N == 0 {
		return
	}
	if filterPays(p.D, k) {
		if group := p.filterGroup(k); group > 0 {
			p.addFilter(group, each)
			return
		}
	}
	switch {
	case rankPays(p.D, k):
		p.prepareRank(each)
	case p.bounds == nil && !p.Mapped && p.N >= leastSlotted && boundsPay(p.D, k):
		p.addBounds(each)
	}
}

// Filters reports whether the points have a candidate filter.
func (p *Panels) Filters() bool { return p.filter != nil }

// FilterProducts says what the candidate filter, the ranking or the narrow form of the points, or [AssignAccumulate]
// by the bounds of one, multiplies for k centroids, as "8-bit products", empty where they have none of them.
func (p *Panels) FilterProducts(k int) string {
	switch {
	case p.Ranks(k), p.narrow != nil, p.bounds != nil && boundsPay(p.D, k):
		return "16-bit products"
	case p.filter == nil:
		return ""
	case p.filter.chunk > 1:
		return "8-bit products of tiles"
	}
	return fmt.Sprintf("%d-bit products", 8*wordBytes(p.filter.group)/p.filter.group)
}

// Ranks reports whether [Assign] ranks k centroids for these points by integers that it makes of the points as it reads
// them.
func (p *Panels) Ranks(k int) bool { return p.filter == nil && p.longest > 0 && rankPays(p.D, k) }

// RankSpeed is how many times as fast as by multiply-adds these points are assigned to k centroids where [Panels.Ranks]
// says so, else 1.
func (p *Panels) RankSpeed(k int) float64 {
	if p.Ranks(k) {
		return rankSpeed()
	}
	return 1
}

// filterGroup chooses the number of integers in a word, 0 for no filter: the least cost for a point and dimension,
// where a vector instruction on 16 points is 1. That is k/16 without a filter, rankSpeed times less where points are
// ranked instead, and filterCost with one. The candidates are those within w of the least among a sample of the points
// themselves, which are more than there are once centroids have become means and most guesses are right.
func (p *Panels) filterGroup(k int) int {
	best, least := 0, float64(k)/Lanes
	if rankPays(p.D, k) {
		least /= rankSpeed()
	}
	for _, group := range filterGroups() {
		undecided, candidates := p.sampledCandidates(group, k)
		if cost := filterCost(group, float64(p.D), float64(k), undecided, candidates); cost < least {
			best, least = group, cost
		}
	}
	return best
}

// sampledCandidates estimates the share of points that have several candidates, and the number of these per point.
func (p *Panels) sampledCandidates(group, k int) (undecided, candidates float64) {
	const queries = 24
	d, sample := p.D, min(k, 256, max(p.N/2, 1))
	x, c := make([]float32, d), make([]float32, sample*d)
	norm, most := 0.0, 0.0
	for a := range sample {
		row := p.Point(a*(p.N/sample), c[a*d:(a+1)*d])
		norm, most = max(norm, length(row)), max(most, magnitude(row))
	}
	scale := scaleFor(group, filterZero(), d, norm, most)
	if scale == 0 {
		return 1, math.Inf(1)
	}
	// The errors of rounding are uniform, and both sides have them.
	band := 2 * norm * math.Sqrt(float64(d)/12) / scale
	several, total := 0, 0
	scores := make([]float64, sample)
	for q := range queries {
		i := (q*2 + 1) * p.N / (2 * queries)
		p.Point(i, x)
		for a := range scores {
			score := 0.0
			for j, y := range c[a*d : (a+1)*d] {
				score += float64(float64(y) * float64(y/2-x[j]))
			}
			scores[a] = score
		}
		if i%(p.N/sample) == 0 && i/(p.N/sample) < sample { // the point itself
			scores[i/(p.N/sample)] = math.Inf(1)
		}
		limit, found := slices.Min(scores)+band, 0
		for _, s := range scores {
			if s <= limit {
				found++
			}
		}
		if found > 1 {
			several++
			total += found
		}
	}
	return float64(several) / queries, float64(total) / queries
}

// length is the length of a row.
func length(row []float32) float64 {
	sum := 0.0
	for _, x := range row {
		sum += float64(float64(x) * float64(x))
	}
	return math.Sqrt(sum)
}

// magnitude is the largest magnitude of a row's coordinates, NaN if there is one: magnitudes are in the order of their
// bits.
func magnitude(row []float32) float64 {
	const sign = 1 << 31
	var a, b, c, d uint32 // several at a time
	for ; len(row) >= 4; row = row[4:] {
		x := (*[4]float32)(row)
		a, b = max(a, math.Float32bits(x[0])&^sign), max(b, math.Float32bits(x[1])&^sign)
		c, d = max(c, math.Float32bits(x[2])&^sign), max(d, math.Float32bits(x[3])&^sign)
	}
	for _, x := range row {
		a = max(a, math.Float32bits(x)&^sign)
	}
	return float64(math.Float32frombits(max(a, b, c, d)))
}

// inOrder runs n tasks.
func inOrder(n int, task func(i int)) {
	for i := range n {
		task(i)
	}
}

// addFilter is PrepareFilter with so many integers in a word, for every shape.
func (p *Panels) addFilter(group int, each func(n int, task func(i int))) {
	panels := panelCount(p.N)
	tasks := (panels + filterTaskPanels - 1) / filterTaskPanels
	partial := make([][2]float64, tasks)
	task := func(fn func(i, panel int)) {
		each(tasks, func(i int) {
			for at := i * filterTaskPanels; at < min((i+1)*filterTaskPanels, panels); at++ {
				fn(i, at)
			}
		})
	}
	task(func(i, at int) {
		panel := p.Data[at*Lanes*p.D : (at+1)*Lanes*p.D]
		partial[i] = [2]float64{max(partial[i][0], longest(panel)), max(partial[i][1], magnitude(panel))}
	})
	f := &filterPoints{group: group, zero: filterZero(), words: filterWords(group, (p.D+group-1)/group), chunk: 1}
	if most := filterWordsTogether(group); most > 1 {
		chunks := (f.words + most - 1) / most
		f.chunk = (f.words + chunks - 1) / chunks
		f.words = chunks * f.chunk
	}
	f.runs = filterRuns(group)
	for i, x := range partial {
		f.norm, f.most = max(f.norm, x[0]*filterUp), max(f.most, x[1])
		partial[i][0] = 0
	}
	if f.scale = scaleFor(group, f.zero, p.D, f.norm, f.most); f.scale == 0 {
		return
	}
	f.data = aligned[byte](panels * f.size() * Lanes)
	f.panels = make([][2]float32, panels)
	reach := make([]reaches, tasks)
	task(func(i, at int) { partial[i][0] = max(partial[i][0], f.fill(p, at, &reach[i])) })
	for i, x := range partial {
		f.rough = max(f.rough, x[0])
		f.reach.join(&reach[i])
	}
	f.floor = [2]float64{f.norm, f.rough}
	for _, b := range f.panels {
		f.floor[0], f.floor[1] = min(f.floor[0], float64(b[0])), min(f.floor[1], float64(b[1]))
	}
	p.filter = f
}

// filterTaskPanels is the number of panels that a task prepares.
const filterTaskPanels = 64

// longest returns the greatest length of the points of a panel.
func longest(panel []float32) float64 {
	var squares [Lanes]float64
	for ; len(panel) > 0; panel = panel[Lanes:] {
		for l, x := range panel[:Lanes] {
			squares[l] += float64(float64(x) * float64(x))
		}
	}
	return math.Sqrt(slices.Max(squares[:])) // also of a NaN
}

// fill rounds panel at, raises the reach of its task, and returns the length of the panel's longest error.
func (f *filterPoints) fill(p *Panels, at int, reach *reaches) float64 {
	d := p.D
	panel := p.Data[at*Lanes*d : (at+1)*Lanes*d]
	word := wordBytes(f.group)
	size := f.size() * Lanes
	to := f.data[at*size : (at+1)*size]
	if f.group >= 4 {
		for i := range to {
			to[i] = byte(f.zero)
		}
	}
	up, down := float32(f.scale), 1/f.scale
	var squares [Lanes]float64
	for j := range d {
		to := to[j/f.group*word*Lanes:][:word*Lanes]
		part := j % f.group
		for l, x := range panel[j*Lanes : (j+1)*Lanes] {
			q := nearest16(x * up)
			if f.group >= 4 {
				to[word*l+part] = byte(int32(q) + f.zero)
			} else {
				binary.LittleEndian.PutUint16(to[word*l+2*part:], uint16(int32(q)))
			}
			e := float64(x) - float64(float64(q)*down)
			squares[l] += float64(e * e)
		}
	}
	if f.runs {
		reach.raise(to, f.zero, f.words)
	}
	rough := math.Sqrt(slices.Max(squares[:])) * filterUp
	f.panels[at] = [2]float32{upper32(longest(panel)), upper32(rough)}
	return rough
}

// nearest16 rounds x, below 2^15 in magnitude, to the nearest integer, ties to even.
func nearest16(x float32) float32 {
	const shift = 3 << 22
	return (x + shift) - shift
}

// upper32 returns a float32 of at least x.
func upper32(x float64) float32 { return float32(x*filterUp) + math.SmallestNonzeroFloat32 }
