package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
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

// filterCentroids is the integer form of centroids, made where it is needed first after Set.
type filterCentroids struct {
	form lazy
	// data is [tiles][words/chunk][rows][chunk] words, of the opposite integers, in tiles of rows centroids.
	data         []byte
	shift        []int32 // [tiles][8], what makes up for what is added to bytes of points, but for runs
	tiles, group int     // tiles of 8
	zero         int32   // as of the points
	words, chunk int
	runs         bool
	run          int // words of a run, 0 if there are none
	rows         int
	scale        float64   // b, 0 if the centroids have no form
	longest      float64   // point that the centroids go with
	widest       float64   // coordinate of the points
	reach        reaches   // of the points
	norm         float64   // at least the length of each centroid
	rough        float64   // at least the length of each centroid's error
	roughs       []float64 // [K], at least those lengths one by one
	most         float64   // the largest half
	// short are the coordinates times fine, rounded to integers of 16 bits, row by row, for products with candidates
	// where these take less to read; fine is 0 if there are none. blur is at least the length of each one's error.
	short      []int16
	fine, blur float64
	// last is a call since Set, whose base serves others with the same units and offset.
	last atomic.Pointer[filterCall]
	// seen are points that were filtered since Set, and open the pairs of a point and a centroid that scores left.
	seen, open atomic.Int64
	// guessed are points whose labels were taken as guesses since Set, and right those that kept them.
	guessed, right atomic.Int64
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

// PrepareFilter makes room for the integer form of centroids that the filter of
// the points p compares; Set then fills it. Where p has no filter, it does
// nothing. For several sets of points, call it for each; those whose integers have
// another size than the first one's go without.
func (c *Centroids) PrepareFilter(p *Panels) {
	if c.D == p.D && p.Ranks(c.K) {
		c.prepareRank(p)
	}
	if c.D == p.D && p.bounds != nil {
		c.prepareNarrow(p.bounds)
	}
	f := p.filter
	if f == nil || c.D != p.D || c.filter != nil && c.filter.group != f.group {
		return
	}
	if c.filter == nil {
		rows := filterTile
		if f.chunk > 1 {
			rows = filterWideTile
		}
		c.filter = &filterCentroids{group: f.group, zero: f.zero, words: f.words, chunk: f.chunk, runs: f.runs,
			rows: rows}
		tiles := c.filter.tilesFor(c.K)
		c.filter.tiles, c.filter.shift = tiles, make([]int32, tiles*filterTile)
		c.filter.roughs = make([]float64, c.K)
		if f.runs {
			c.filter.run = shortestRun // the most room
		}
		c.filter.data = aligned[byte](tiles * filterTile * c.filter.size())
		if shortPays(c.D, c.K) {
			c.filter.short = aligned[int16](c.K * c.D)
		}
	}
	c.filter.longest, c.filter.widest = max(c.filter.longest, f.norm), max(c.filter.widest, f.most)
	c.filter.reach.join(&f.reach)
}

// width is the number of words of a centroid, with those that runs begin with.
func (f *filterCentroids) width() int {
	if f.run == 0 {
		return f.words
	}
	return f.words + (f.words+f.run-1)/f.run
}

// size is the number of bytes of a centroid.
func (f *filterCentroids) size() int { return f.width() * wordBytes(f.group) }

// tilesFor is the number of tiles that hold k centroids.
func (f *filterCentroids) tilesFor(k int) int { return (k + f.rows - 1) / f.rows * f.rows / filterTile }

// resize makes room for k centroids, no more than there was room for at first. What is in the last tile beside them is
// 0, so that its scores are beyond all limits.
func (f *filterCentroids) resize(k int) {
	f.tiles = f.tilesFor(k)
	for i := k; i < f.tiles*filterTile; i++ {
		f.shift[i] = 0
		for w := range f.width() {
			at := f.place(i, w) * wordBytes(f.group)
			clear(f.data[at : at+wordBytes(f.group)])
		}
	}
}

// word is the place of word w of centroid i, among words.
func (f *filterCentroids) word(i, w int) int {
	if f.run > 0 {
		w += w/f.run + 1
	}
	return f.place(i, w)
}

// place is word with the words that runs begin with, each before its run. Copies of its divisions would be large.
//
//go:noinline
func (f *filterCentroids) place(i, w int) int {
	return ((i/f.rows*(f.width()/f.chunk)+w/f.chunk)*f.rows+i%f.rows)*f.chunk + w%f.chunk
}

// set rounds the centroids.
func (f *filterCentroids) set(c *Centroids) {
	f.norm, f.most, f.rough = 0, 0, 0
	f.seen.Store(0)
	f.open.Store(0)
	f.guessed.Store(0)
	f.right.Store(0)
	f.last.Store(nil)
	for _, h := range c.half[:c.K] {
		f.most = max(f.most, float64(h))
	}
	f.norm = lengthOf(f.most, c.D)
	// Means are shorter than points, so their integers may be finer, as far as scores fit 32 bits.
	widest := magnitude(c.rows[:c.K*c.D])
	if f.runs {
		f.scale = f.setRun(c, max(widest, f.widest/4))
	} else {
		f.scale = scaleFor(f.group, f.zero, c.D, max(f.norm, f.longest), max(widest, f.widest/4))
	}
	if f.scale == 0 {
		return
	}
	f.shorten(c, widest)
	for i := range c.K {
		f.roughs[i] = math.Sqrt(f.setCentroid(i, c.Row(i))) * filterUp
		f.rough = max(f.rough, f.roughs[i])
	}
}

// lengthOf is at least the length of a centroid with the given half, a chain of d squares, off by d roundings at most.
func lengthOf(half float64, d int) float64 {
	return math.Sqrt(2*half*(1+float64(d)*0x1p-23)+float64(d)*0x1p-148) * filterUp
}

// shorten makes the short form of centroids, whose widest coordinate is given.
func (f *filterCentroids) shorten(c *Centroids, widest float64) {
	f.fine, f.blur = 0, 0
	if len(f.short) == 0 || !(widest > 0x1p-40 && widest < 0x1p40) {
		return
	}
	f.fine = float64(float32((rankWidest - 1) / widest))
	f.blur = 0.51*math.Sqrt(float64(c.D))/f.fine*(1+0x1p-8) + 0x1p-22*f.norm
	for i := range c.K {
		row, to := c.Row(i), f.short[i*c.D:(i+1)*c.D]
		for j := filterShorts(row, float32(f.fine), to); j < len(row); j++ {
			to[j] = int16(nearest16(row[j] * float32(f.fine)))
		}
	}
}

// setCentroid rounds centroid i and returns the square of the length of its error.
func (f *filterCentroids) setCentroid(i int, row []float32) (errors float64) {
	at, together := f.word(i, 0), len(row) // coordinates
	if f.runs {
		together = f.run * f.group
	}
	for ; len(row) > 0; at += (f.run + 1) * f.rows {
		part := row[:min(len(row), together)]
		row = row[len(part):]
		totals, more := f.setPart(at, part)
		errors += more
		if f.runs {
			begin := uint32(uint16(f.zero*totals[0])) | uint32(f.zero*totals[1])<<16
			binary.LittleEndian.PutUint32(f.data[4*(at-f.rows):], begin)
		} else if f.group >= 4 {
			f.shift[i] = f.zero * (totals[0] + totals[1])
		}
	}
	return errors
}

// setPart rounds coordinates of a centroid to words from word on, which has a place, and returns the totals of the
// integers in the first halves of words and in the others, and the square of the length of their error.
func (f *filterCentroids) setPart(word int, row []float32) (totals [2]int32, errors float64) {
	up, down := float32(f.scale), 1/f.scale
	size := wordBytes(f.group)
	done, totals, errors := f.integers(word, row)
	row = row[done:]
	step := f.rows * f.chunk * size
	for at := word*size + done/(f.chunk*f.group)*step; len(row) > 0; at += step {
		some := row[:min(len(row), f.chunk*f.group)]
		row = row[len(some):]
		to := f.data[at : at+f.chunk*size]
		if f.group == 4 && len(some) == 4 { // the same as below, several at a time
			x := (*[4]float32)(some)
			q0, q1, q2, q3 := nearest16(x[0]*up), nearest16(x[1]*up), nearest16(x[2]*up), nearest16(x[3]*up)
			i0, i1, i2, i3 := int32(q0), int32(q1), int32(q2), int32(q3)
			binary.LittleEndian.PutUint32(to,
				uint32(uint8(-i0))|uint32(uint8(-i1))<<8|uint32(uint8(-i2))<<16|uint32(uint8(-i3))<<24)
			totals[0] += i0 + i1
			totals[1] += i2 + i3
			e0, e1 := float64(x[0])-float64(float64(q0)*down), float64(x[1])-float64(float64(q1)*down)
			e2, e3 := float64(x[2])-float64(float64(q2)*down), float64(x[3])-float64(float64(q3)*down)
			errors += float64(e0*e0) + float64(e1*e1) + (float64(e2*e2) + float64(e3*e3))
			continue
		}
		for j, x := range some {
			q := nearest16(x * up)
			if f.group >= 4 {
				to[j] = byte(-int32(q))
			} else {
				binary.LittleEndian.PutUint16(to[2*j:], uint16(-int32(q)))
			}
			totals[j/2%2] += int32(q)
			e := float64(x) - float64(float64(q)*down)
			errors += float64(e * e)
		}
	}
	return totals, errors
}

// filterCall is what a call of the filter needs of points and centroids together.
type filterCall struct {
	units  float64 // ab
	offset float64 // o
	d      int
	c      *filterCentroids
	floor  [2]float64 // of the points, which base goes with
	base   []int32    // [tiles][8], what the scores' products are added to
}

// call returns false where the integers would not fit.
func (f *filterPoints) call(c *Centroids) (filterCall, bool) {
	g := c.filter
	g.form.need(func() { g.set(c) })
	call, ok := f.bounds(g, c.D)
	if last := g.last.Load(); ok && last != nil && last.units == call.units && last.offset == call.offset &&
		last.floor == call.floor {
		return *last, true
	}
	if ok {
		call.base = make([]int32, len(g.shift))
		call.begin(c)
		kept := call // so that the calls without are on the stack
		g.last.Store(&kept)
	}
	return call, ok
}

// begin works out what the scores' products are added to.
func (c *filterCall) begin(centroids *Centroids) {
	shifts := filterShifts(c.c.group)
	for i := range c.base[:c.c.tiles*filterTile] {
		c.base[i] = filterNone
		if i < centroids.K {
			score := math.RoundToEven(float64(float64(centroids.half[i])*c.units)+c.offset) + c.raise(centroids, i)
			c.base[i] = int32(min(score, filterNone))
			if shifts {
				c.base[i] += c.c.shift[i]
			}
		}
	}
}

// raise is what centroid i's score may be raised by: its width is as much less than the widest one's for all points.
func (c *filterCall) raise(centroids *Centroids, i int) float64 {
	norm := max(0, c.c.norm-lengthOf(float64(centroids.half[i]), c.d))
	rough := max(0, c.c.rough-c.c.roughs[i])
	return math.Floor((c.floor[1]*norm + (c.floor[0]+c.floor[1])*rough) * c.units * (1 - 0x1p-20))
}

// filterNone is the score of a centroid that is not there, beyond all limits.
const filterNone = 1<<31 - 1<<7

// bounds is call without what the products are added to.
func (f *filterPoints) bounds(g *filterCentroids, d int) (filterCall, bool) {
	call := filterCall{units: f.scale * g.scale, d: d, c: g, floor: f.floor}
	widest := call.band(f.norm, f.rough)
	call.offset = f.norm*f.norm/2*call.units + widest
	top := (f.norm+g.norm)*(f.norm+g.norm)/2*call.units + 2*widest
	return call, g.scale > 0 && g.group == f.group && g.chunk == f.chunk && g.reach.covers(&f.reach) && top <= 1<<31-1<<20
}

// band returns at least 2w for points of at most the given length, with errors of
// at most the given length.
func (c *filterCall) band(norm, rough float64) float64 {
	chain := float64(c.d) * (0x1.03p-24*(c.c.most+norm*c.c.norm) + 0x1p-149)
	w := rough*c.c.norm + (norm+rough)*c.c.rough + chain
	return math.Ceil(2*w*c.units*filterUp) + 2
}

const (
	filterPanels   = 3    // panels at a time at most
	filterWideTile = 16   // centroids in a tile of AMX
	filterTiles    = 128  // tiles whose scores are kept at most
	filterFew      = 32   // tiles whose scores stay in the first-level cache
	filterRoom     = 8192 // entries of a group's list at most
	// filterWork is the number of coordinates of centroids that a call visits at
	// most, so that it takes some tens of microseconds.
	filterWork = 1 << 18
)

// filterScratch is what the filter keeps of a group of points.
type filterScratch struct {
	scores         [filterTiles * filterTile * filterPanels * Lanes]int32
	least          [filterTiles * filterPanels * Lanes]int32
	best, before   [filterPanels * Lanes]int32
	labels, counts [filterPanels * Lanes]int32
	list           []uint64
	kept           [][Lanes]int32              // the scores of each entry
	limit          [filterPanels * Lanes]int32 // at least the score of the centroid of the least chain
	exact          [filterPanels * Lanes]float32
	pair           [4]uint64 // point<<32 | centroid
	points, with   [4]*float32
	chains         [4]float32
	found, waiting int
	// first is the least score of each point and, in the lowest 16 bits, its candidate, and firsts half less its product.
	first   [filterPanels * Lanes]int64
	firsts  [filterPanels * Lanes]float32
	guesses [filterPanels * Lanes]uint16 // candidates that firsts has at the start
	guessed [filterPanels * Lanes]int32  // the limits by these
	norms   [filterPanels]float64        // at least the length of each point, by panel
	bands   [filterPanels]float64        // 2w, by panel
	// rows are points by row, of the panels that have them: [panels][(D+15)/16] blocks of rowBlock.
	rows   []float32
	rowsOf [filterPanels]bool
	pairs  [filterPanels][]uint32 // point of a panel<<16 | centroid
	dots   []float32              // of one panel's pairs
}

// filterRooms are rooms of calls that have ended: one is as large as a part of the second-level cache.
var filterRooms = sync.Pool{New: func() any { return new(filterScratch) }}

// assignFiltered labels points by way of the candidate filter; it reports false,
// having done nothing, where there is none for these points and centroids.
func assignFiltered(p *Panels, c *Centroids, labels []uint16) bool {
	call, ok := filterCallOf(p, c)
	if ok {
		s := filterRooms.Get().(*filterScratch)
		s.assign(p, c, &call, labels, nil)
		filterRooms.Put(s)
	}
	return ok
}

// filterCallOf returns false where there is no filter for these points and centroids.
func filterCallOf(p *Panels, c *Centroids) (filterCall, bool) {
	if p.filter == nil || c.filter == nil {
		return filterCall{}, false
	}
	return p.filter.call(c)
}

// assign labels points by way of the candidate filter, and adds them to sums, which may be nil; the room serves any
// number of calls.
func (s *filterScratch) assign(p *Panels, c *Centroids, call *filterCall, labels []uint16, sums *sink) {
	if size := filterPanels * rowsSize(p.D); len(s.rows) < size {
		s.rows = alignedFloat32(size)
	}
	panels := panelCount(p.N)
	for at := 0; at < panels; {
		group := 1
		if most := filterGroupPanels(p.filter.chunk); panels-at >= most {
			group = most
		}
		lo := at * Lanes
		part := Panels{N: min(group*Lanes, p.N-lo), D: p.D, Data: p.Data[lo*p.D:]}
		of := labels[lo : lo+part.N]
		filtered := call.c.pays(c.K) && s.group(&part, p.filter, p.firstPanel+at, group, c, call, of)
		if !filtered {
			assignExact(&part, c, of, nil, nil)
		}
		switch {
		case sums == nil:
		case filtered && sumsRows(p.D) && sums.acc.scratch.table != nil:
			for q := range group {
				sums.addRows(s.byRow(&part, q), of[q*Lanes:min((q+1)*Lanes, part.N)])
			}
		default:
			sums.add(&part, of)
		}
		at += group
	}
}

// pays is the rule that says whether points go on to be filtered for these centroids. A pair that scores leave open
// takes as long as some ten pairs of the exact chains, and the scores of all a third of the chains: so no more than a
// sixteenth may stay open. A group that has more of them than there is room for counts as one that does not pay.
func (f *filterCentroids) pays(k int) bool {
	const pair, trial = 16, 8 * filterPanels * Lanes // trial are points that are filtered in any case
	return f.open.Load()*pair <= (f.seen.Load()+trial)*int64(k)
}

// guesses is the rule that says whether labels go on to be taken as guesses: where more than a quarter is wrong, the
// centroids of the least scores do better, though they are known only after the scores.
func (f *filterCentroids) guesses() bool {
	const trial = 8 * filterPanels * Lanes // guesses that are taken in any case
	return 4*(f.right.Load()+trial) > 3*f.guessed.Load()
}

// count notes what became of a group of points; open is below 0 where there was no room.
func (f *filterCentroids) count(points, open, k int) {
	if open < 0 {
		open = points * k / 4
	}
	f.seen.Add(int64(points))
	f.open.Add(int64(open))
}

// group labels the points of panels panels, the first of which is first in f. It
// reports false where there are more candidates than it has room for.
func (s *filterScratch) group(p *Panels, f *filterPoints, first, panels int, c *Centroids, call *filterCall,
	labels []uint16) bool {
	for i := range panels * Lanes {
		s.best[i], s.before[i], s.limit[i], s.counts[i] = math.MaxInt32, math.MaxInt32, math.MaxInt32, 0
	}
	s.rowsOf = [filterPanels]bool{}
	guessing := call.c.guesses()
	const top = 1<<31 - 1<<19
	for q := range panels {
		bounds := f.panels[first+q]
		s.norms[q] = float64(bounds[0])
		if s.bands[q] = call.band(float64(bounds[0]), float64(bounds[1])); s.bands[q] > top {
			return false
		}
		if guessing {
			s.guess(p, c, call, q, labels)
		}
	}
	size := f.size()
	x := &f.data[first*size*Lanes]
	wide := call.c.rows / filterTile
	most := filterTiles
	if wide == 1 && guessing {
		most = filterFew
	}
	step := min(most, max(1, filterWork/(filterTile*call.d))*wide)
	// What comes next may lie beyond the points: it is fetched, not read.
	own := panels * Lanes * p.D * int(unsafe.Sizeof(p.Data[0]))
	lines := (own + lineBytes*call.c.tiles - 1) / (lineBytes * call.c.tiles) // for each tile
	next := uintptr(unsafe.Pointer(unsafe.SliceData(p.Data))) + uintptr(own)
	s.found = 0
	for tile := 0; tile < call.c.tiles; tile += most {
		tiles := min(most, call.c.tiles-tile)
		for at := 0; at < tiles; at += step {
			ahead := next + uintptr((tile+at)*lines*lineBytes)
			filterScores(call, panels, x, tile, at, min(step, tiles-at), ahead, lines, s)
		}
		for q := range panels {
			if !s.reserve(tiles * filterTile) {
				call.c.count(len(labels), -1, c.K)
				return false
			}
			if !guessing {
				s.aim(p, c, call, q, tiles, panels, tile*filterTile)
			}
			band := int32(s.bands[q])
			s.found += s.candidates(tiles, panels, q, tile*filterTile, band, top-band)
		}
		s.before = s.best
	}
	undecided, open := [filterPanels]uint64{}, 0
	for i := range labels {
		labels[i] = uint16(s.labels[i])
		if s.counts[i] != 1 {
			undecided[i/Lanes] |= 1 << (i % Lanes)
			open++
		}
	}
	if undecided != [filterPanels]uint64{} {
		open += s.decide(p, c, call, &undecided, labels)
	}
	call.c.count(len(labels), open, c.K)
	if guessing {
		s.judge(call.c, labels)
	}
	return true
}

// judge notes how many of the guesses are the labels.
func (s *filterScratch) judge(f *filterCentroids, labels []uint16) {
	right := 0
	for i, label := range labels {
		if label == s.guesses[i] {
			right++
		}
	}
	f.guessed.Add(int64(len(labels)))
	f.right.Add(int64(right))
}

// reserve makes room for so many more entries; it reports false where there would be too many.
func (s *filterScratch) reserve(more int) bool {
	if s.found+more <= len(s.list) {
		return true
	}
	if s.prune(); s.found+more <= len(s.list) {
		return true
	}
	size := max(filterRoom/8, 2*len(s.list))
	if size > filterRoom || s.found+more > size {
		return false
	}
	s.list = append(make([]uint64, 0, size), s.list[:s.found]...)[:size]
	s.kept = append(make([][Lanes]int32, 0, size), s.kept[:s.found]...)[:size]
	return true
}

// prune drops what is beyond the limits by now.
func (s *filterScratch) prune() {
	if s.found > 0 {
		s.found = filterPrune(s.list[:s.found], s.kept[:s.found], &s.limit)
	}
}

// decide labels the points that undecided marks by panel: by their inner products with the candidates, and where these
// are as near as rounding, by the chains. It returns the number of pairs whose products it takes.
func (s *filterScratch) decide(p *Panels, c *Centroids, call *filterCall, undecided *[filterPanels]uint64,
	labels []uint16) (candidates int) {
	loose := [filterPanels]uint64{} // points whose limit is by another centroid than their guess
	for i := range s.limit {
		s.exact[i], s.first[i] = float32(math.Inf(1)), int64(s.guesses[i])
		switch bit := uint64(1) << (i % Lanes); {
		case undecided[i/Lanes]&bit == 0:
			s.limit[i] = math.MinInt32
		case s.limit[i] < s.guessed[i]:
			s.first[i] = math.MaxInt64
			loose[i/Lanes] |= bit
		}
	}
	s.waiting = 0
	s.prune()
	if loose != [filterPanels]uint64{} {
		s.findFirsts(&loose)
	}
	for panel, m := range loose {
		if m != 0 {
			s.narrow(p, c, call, panel, m)
		}
	}
	if loose != [filterPanels]uint64{} {
		s.prune()
	}
	s.pairUp()
	for panel, m := range undecided {
		candidates += len(s.pairs[panel])
		if m != 0 {
			s.refine(p, c, call, panel, m, labels)
		}
	}
	if s.waiting > 0 {
		for i := s.waiting; i < len(s.pair); i++ {
			s.points[i], s.with[i] = s.points[0], s.with[0]
		}
		s.chain(c.D, labels)
	}
	return candidates
}

// findFirsts finds the candidate of the least score of each point that loose marks by panel.
func (s *filterScratch) findFirsts(loose *[filterPanels]uint64) {
	for i, e := range s.list[:s.found] {
		panel := int(e>>16) & 0xffff
		first := (*[Lanes]int64)(s.first[panel*Lanes:])
		for m := uint16(e & loose[panel]); m != 0; m &= m - 1 {
			lane := bits.TrailingZeros16(m) & (Lanes - 1)
			first[lane] = min(first[lane], int64(s.kept[i][lane])<<16|int64(e>>32))
		}
	}
}

// pairUp lists the pairs of a point and a candidate that is not its first; one that is, is overwritten by the next.
func (s *filterScratch) pairUp() {
	var counts [filterPanels]int
	for panel := range s.pairs {
		s.pairs[panel] = slices.Grow(s.pairs[panel][:0], s.found*Lanes+1)[:s.found*Lanes+1]
	}
	for _, e := range s.list[:s.found] {
		panel, a := int(e>>16)&0xffff, uint32(e>>32)
		first, pairs, n := (*[Lanes]int64)(s.first[panel*Lanes:]), s.pairs[panel], counts[panel]
		for m := uint16(e); m != 0; m &= m - 1 {
			lane := bits.TrailingZeros16(m) & (Lanes - 1)
			pairs[n] = uint32(lane)<<16 | a
			if uint16(first[lane]) != uint16(a) {
				n++
			}
		}
		counts[panel] = n
	}
	for panel, n := range counts {
		s.pairs[panel] = s.pairs[panel][:n]
	}
}

// guess sets the limits of the points of a panel by their inner products with the centroids that labels names.
func (s *filterScratch) guess(p *Panels, c *Centroids, call *filterCall, panel int, labels []uint16) {
	pairs := s.pairs[panel][:0]
	for l, label := range labels[panel*Lanes : min((panel+1)*Lanes, len(labels))] {
		a := min(label, uint16(c.K-1))
		s.guesses[panel*Lanes+l] = a
		pairs = append(pairs, uint32(l)<<16|uint32(a))
	}
	s.pairs[panel] = pairs
	s.lower(p, c, call, panel)
	copy(s.guessed[panel*Lanes:(panel+1)*Lanes], s.limit[panel*Lanes:])
}

// aim sets the limits of the points of a panel whose least score has fallen by their inner products with the centroid
// that has it; the first of the tiles' centroids is number first.
func (s *filterScratch) aim(p *Panels, c *Centroids, call *filterCall, panel, tiles, panels, first int) {
	at := panel * Lanes
	if !s.nearest(tiles, panels, panel, first) {
		limits, counts := *(*[Lanes]int32)(s.limit[at:]), *(*[Lanes]int32)(s.counts[at:])
		s.candidates(tiles, panels, panel, first, 0, math.MaxInt32) // those of the least scores
		copy(s.limit[at:], limits[:])
		copy(s.counts[at:], counts[:])
	}
	pairs := s.pairs[panel][:0]
	for point := at; point < min(at+Lanes, p.N); point++ {
		if s.best[point] < s.before[point] {
			s.guesses[point] = min(uint16(s.labels[point]), uint16(c.K-1))
			pairs = append(pairs, uint32(point%Lanes)<<16|uint32(s.guesses[point]))
		}
	}
	s.pairs[panel] = pairs
	s.lower(p, c, call, panel)
	copy(s.guessed[at:at+Lanes], s.limit[at:])
}

// lower lowers the limits of the points of a panel by their pairs, one of each at most, which become the first.
func (s *filterScratch) lower(p *Panels, c *Centroids, call *filterCall, panel int) {
	pairs := s.pairs[panel]
	for i, score := range s.products(p, c, panel, pairs) {
		point := panel*Lanes + int(pairs[i]>>16)
		s.firsts[point] = score
		s.limit[point] = min(s.limit[point], s.ruled(call, point, score))
	}
}

// rowBlock is the room of a block of 16 dimensions of points by row, [16 points][16]: a line more than they take, as
// lines of a point that are a power of two apart would all share a few sets of the first-level cache.
const rowBlock = (Lanes + 1) * Lanes

// rowsSize is the room of a panel by row.
func rowsSize(d int) int { return (d + Lanes - 1) / Lanes * rowBlock }

// byRow is the points of a panel by row.
func (s *filterScratch) byRow(p *Panels, panel int) []float32 {
	size := rowsSize(p.D)
	rows := s.rows[panel*size : (panel+1)*size]
	if !s.rowsOf[panel] {
		s.rowsOf[panel] = true
		at := p.Data[panel*Lanes*p.D : (panel+1)*Lanes*p.D]
		filterRows(at, p.D/Lanes, rows)
		for j := p.D &^ (Lanes - 1); j < p.D; j++ {
			for l, x := range at[j*Lanes : (j+1)*Lanes] {
				rows[j/Lanes*rowBlock+l*Lanes+j%Lanes] = x
			}
		}
	}
	return rows
}

// ruled bounds the score of the centroid of the least chain, for a point, by half less the inner product of another.
func (s *filterScratch) ruled(call *filterCall, point int, score float32) int32 {
	t := float64(score) + s.slack(call, point)
	limit := t*call.units + call.offset + s.bands[point/Lanes]/2 + 1
	return int32(max(0, min(limit, math.MaxInt32)))
}

// slack is at least the sum of what a chain and an inner product of float32 in any order are off by, for a point.
//
// Inner products are within 1.01 d 2^-24 |x||c| + d 2^-149 of x.c, so that half less the product is within (d+1)/d of
// the chain's own bound. With the short form c+g for c they are within |x||g| more, and what is added to |g| is for
// roundings: of coordinates times fine, of these sums, and of their product with 1/fine.
func (s *filterScratch) slack(call *filterCall, point int) float64 {
	norm := s.norms[point/Lanes]
	return (2*float64(call.d+1)*(0x1.04p-24*(call.c.most+norm*call.c.norm)+0x1p-149) + norm*call.c.blur) * filterUp
}

// products returns half less the inner product of each pair of a panel.
func (s *filterScratch) products(p *Panels, c *Centroids, panel int, pairs []uint32) []float32 {
	if len(pairs) > len(s.dots) {
		s.dots = make([]float32, 2*len(pairs))
	}
	x, dots, step := s.byRow(p, panel), s.dots[:len(pairs)], max(1, filterWork/c.D)
	unit := float32(1)
	if c.filter.fine > 0 {
		unit = float32(1 / c.filter.fine)
	}
	for at := 0; at < len(pairs); at += step {
		if end := min(at+step, len(pairs)); c.filter.fine > 0 {
			filterShortDots(x, c, pairs[at:end], dots[at:end])
		} else {
			filterDots(x, c, pairs[at:end], dots[at:end])
		}
	}
	for i, pair := range pairs {
		dots[i] = c.half[pair&0xffff] - float32(dots[i]*unit)
	}
	return dots
}

// narrow lowers the limits of the points of a panel, those in the mask, by what their first candidates rule out.
func (s *filterScratch) narrow(p *Panels, c *Centroids, call *filterCall, panel int, mask uint64) {
	pairs := s.pairs[panel][:0]
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros64(m) & (Lanes - 1)
		pairs = append(pairs, uint32(lane)<<16|uint32(uint16(s.first[panel*Lanes+lane])))
	}
	s.pairs[panel] = pairs
	s.lower(p, c, call, panel)
}

// refine labels the points of a panel, those in the mask, by the inner products of their pairs, or leaves them to the
// chains of the centroids that may have the least: it is at most twice the slack from the least inner product.
func (s *filterScratch) refine(p *Panels, c *Centroids, call *filterCall, panel int, mask uint64, labels []uint16) {
	pairs := s.pairs[panel]
	least := *(*[Lanes]float32)(s.firsts[panel*Lanes:])
	scores := s.products(p, c, panel, pairs)
	for i, pair := range pairs {
		lane := pair >> 16 & (Lanes - 1)
		least[lane] = min(least[lane], scores[i])
	}
	var limits [Lanes]float64
	var near [Lanes]int // candidates within the limit
	slack := 2 * s.slack(call, panel*Lanes)
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros64(m) & (Lanes - 1)
		point := panel*Lanes + lane
		limits[lane] = float64(least[lane]) + slack
		if float64(s.firsts[point]) <= limits[lane] {
			near[lane], labels[point] = 1, uint16(s.first[point])
		}
	}
	several := false
	for i, pair := range pairs {
		if lane := pair >> 16 & (Lanes - 1); float64(scores[i]) <= limits[lane] {
			near[lane]++
			several = several || near[lane] > 1
			labels[panel*Lanes+int(lane)] = uint16(pair)
		}
	}
	if !several {
		return
	}
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros64(m) & (Lanes - 1)
		if point := panel*Lanes + lane; near[lane] > 1 && float64(s.firsts[point]) <= limits[lane] {
			s.wait(p, c, point, int(uint16(s.first[point])), labels)
		}
	}
	for i, pair := range pairs {
		if lane := pair >> 16 & (Lanes - 1); near[lane] > 1 && float64(scores[i]) <= limits[lane] {
			s.wait(p, c, panel*Lanes+int(lane), int(pair&0xffff), labels)
		}
	}
}

// wait takes the chain of a point and a centroid, together with others.
func (s *filterScratch) wait(p *Panels, c *Centroids, point, a int, labels []uint16) {
	s.pair[s.waiting] = uint64(point)<<32 | uint64(a)
	s.points[s.waiting] = &p.Data[point/Lanes*Lanes*p.D+point%Lanes]
	s.with[s.waiting] = &c.rows[a*c.D]
	s.chains[s.waiting] = c.half[a]
	if s.waiting++; s.waiting == len(s.pair) {
		s.chain(c.D, labels)
	}
}

// chain takes the chains of the pairs that wait. Ties go to the smaller index.
func (s *filterScratch) chain(d int, labels []uint16) {
	asmFilterExact(&s.points, &s.with, d, &s.chains)
	for i, pair := range s.pair[:s.waiting] {
		point, v := pair>>32, s.chains[i]
		if v < s.exact[point] || v == s.exact[point] && uint16(pair) < labels[point] {
			s.exact[point], labels[point] = s.chains[i], uint16(pair)
		}
	}
	s.waiting = 0
}
