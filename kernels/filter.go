package kernels

import (
	"encoding/binary"
	"math"
	"slices"
)

// The candidate filter ranks centroids by products of small integers, two of 16 bits
// or four of 8 for each float32 of an instruction, and leaves to the exact chain of
// [Assign] only what the ranking cannot tell. Labels are the same, bit for bit.
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
// term of S, a float32 below 2^31 and then an integer, is below 129. Let w be the sum
// of the three for the largest |c|, |g| and h, in units of 1/(ab). If j has the least
// chain and i the least integer score, then S_j <= s_j+w <= s_i+w <= S_i+2w: so j is
// among the candidates, the centroids of score at most S_i + 2w. A point with one
// candidate has its label; of several, the chains decide.
//
// S needs 32 bits at the end only, as additions wrap: with o = |x|^2/2 for the
// longest x, S is between 0 and (|x|+|c|)^2/2, in units, but for w. Bytes of points
// are stored plus 128, as the instruction takes them unsigned; the sum of the
// centroid's bytes makes up for it.

// filterPoints is the integer form of points, made once.
type filterPoints struct {
	data  []byte  // [panels][words][16] words of 4 bytes: integers of neighbouring dimensions
	group int     // integers in a word: 2 or 4
	words int     // of a point
	scale float64 // a
	most  float64 // the largest coordinate's magnitude
	norm  float64 // at least the length of each point
	rough float64 // at least the length of each point's error, e/a
	// panels has, for each panel, at least the lengths of its points and of their
	// errors.
	panels [][2]float32
}

// filterCentroids is the integer form of centroids, made by Set.
type filterCentroids struct {
	data         []byte    // [tiles][words][8] words, of the opposite integers
	half         []float32 // [tiles][8], +Inf past K
	shift        []int32   // [tiles][8], what makes up for the 128 in bytes of points
	tiles, group int
	words        int
	scale        float64 // b, 0 if the centroids have no form
	longest      float64 // point that the centroids go with
	widest       float64 // coordinate of the points
	norm         float64 // at least the length of each centroid
	rough        float64 // at least the length of each centroid's error
	most         float64 // the largest half
}

const (
	filterTile = 8
	// filterRange bounds the length of a vector in integers of 16 bits: the squares
	// of two of them fit 31 bits with some room.
	filterRange = 0.99 * (1 << 15)
	// filterByte bounds coordinates in bytes.
	filterByte = 127 * (1 - 0x1p-20)
	// filterUp makes an upper bound of a length that was computed in float64.
	filterUp = 1 + 0x1p-20
	// wordBytes is the size of the words that an instruction multiplies.
	wordBytes = 4
)

// scaleFor returns the scale of integers, group to a word, for vectors of d
// coordinates that are at most norm long, none above most; 0 if there is none. For
// two it is the largest power of 2 in range, none finer than the finest grid.
func scaleFor(group, d int, norm, most float64) float64 {
	if group == 4 {
		if !(most > 0 && most < 1<<15) {
			return 0
		}
		return float64(float32(min(filterByte/most, 1<<MaxFractionBits)))
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
// gain from that; up to half as much memory again. Call it once the points are
// there, and [Centroids.PrepareFilter] before the centroids are set. each runs n
// tasks, perhaps at the same time; nil runs them in order. The results of kernels do
// not depend on it.
func (p *Panels) PrepareFilter(k int, each func(n int, task func(i int))) {
	p.filter = nil
	if p.N == 0 || !filterPays(p.D, k) {
		return
	}
	if group := p.filterGroup(k); group > 0 {
		p.addFilter(group, each)
	}
}

// FilterProducts is the number of products that an instruction of the candidate
// filter takes for each float32 of a vector: 2 of 16-bit integers or 4 of bytes; 0
// where the points have no filter.
func (p *Panels) FilterProducts() int {
	if p.filter == nil {
		return 0
	}
	return p.filter.group
}

// filterGroup chooses the number of integers in a word, 0 for no filter: the least
// cost for a point and dimension, where a vector instruction is 1: k/16 without a
// filter, k/32 or k/64 with it, and about 8 for each candidate of a point that has
// several, as measured at (d, k) from (64, 64) to (768, 1000).
// The number of candidates is that among a sample of the points themselves, which is
// more than there are once centroids have become means.
func (p *Panels) filterGroup(k int) int {
	best, least := 0, float64(k)/Lanes
	for _, group := range filterGroups() {
		if cost := float64(k)/float64(Lanes*group) + 8*p.sampledCandidates(group, k); cost < least {
			best, least = group, cost
		}
	}
	return best
}

// sampledCandidates estimates the candidates of a point that has several.
func (p *Panels) sampledCandidates(group, k int) float64 {
	const queries = 24
	d, sample := p.D, min(k, 256, max(p.N/2, 1))
	x, c := make([]float32, d), make([]float32, sample*d)
	norm, most := 0.0, 0.0
	for a := range sample {
		row := p.Point(a*(p.N/sample), c[a*d:(a+1)*d])
		norm, most = max(norm, length(row)), max(most, magnitude(row))
	}
	scale := scaleFor(group, d, norm, most)
	if scale == 0 {
		return math.Inf(1)
	}
	// The errors of rounding are uniform; both sides have them, and the band is twice
	// the sum.
	band := 4 * norm * math.Sqrt(float64(d)/12) / scale
	total := 0
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
			total += found
		}
	}
	return float64(total) / queries
}

// length is the length of a row.
func length(row []float32) float64 {
	sum := 0.0
	for _, x := range row {
		sum += float64(float64(x) * float64(x))
	}
	return math.Sqrt(sum)
}

// magnitude is the largest magnitude of a row's coordinates.
func magnitude(row []float32) float64 {
	most := 0.0
	for _, x := range row {
		most = max(most, math.Abs(float64(x)))
	}
	return most
}

// addFilter is PrepareFilter with so many integers in a word, for every shape.
func (p *Panels) addFilter(group int, each func(n int, task func(i int))) {
	if each == nil {
		each = func(n int, task func(i int)) {
			for i := range n {
				task(i)
			}
		}
	}
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
	f := &filterPoints{group: group, words: (p.D + group - 1) / group}
	for i, x := range partial {
		f.norm, f.most = max(f.norm, x[0]*filterUp), max(f.most, x[1])
		partial[i][0] = 0
	}
	if f.scale = scaleFor(group, p.D, f.norm, f.most); f.scale == 0 {
		return
	}
	f.data = aligned[byte](panels * f.words * wordBytes * Lanes)
	f.panels = make([][2]float32, panels)
	task(func(i, at int) { partial[i][0] = max(partial[i][0], f.fill(p, at)) })
	for _, x := range partial {
		f.rough = max(f.rough, x[0])
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

// fill rounds panel at and returns the length of its longest error.
func (f *filterPoints) fill(p *Panels, at int) float64 {
	d := p.D
	panel := p.Data[at*Lanes*d : (at+1)*Lanes*d]
	size := f.words * wordBytes * Lanes
	to := f.data[at*size : (at+1)*size]
	if f.group == 4 {
		for i := range to {
			to[i] = 128
		}
	}
	up, down := float32(f.scale), 1/f.scale
	var squares [Lanes]float64
	for j := range d {
		word := to[j/f.group*wordBytes*Lanes:][:wordBytes*Lanes]
		part := j % f.group
		for l, x := range panel[j*Lanes : (j+1)*Lanes] {
			q := nearest16(x * up)
			if f.group == 4 {
				word[wordBytes*l+part] = byte(int32(q) + 128)
			} else {
				binary.LittleEndian.PutUint16(word[wordBytes*l+2*part:], uint16(int32(q)))
			}
			e := float64(x) - float64(float64(q)*down)
			squares[l] += float64(e * e)
		}
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
	f := p.filter
	if f == nil || c.D != p.D || c.filter != nil && c.filter.group != f.group {
		return
	}
	if c.filter == nil {
		tiles := (c.K + filterTile - 1) / filterTile
		c.filter = &filterCentroids{tiles: tiles, group: f.group, words: f.words, half: alignedFloat32(tiles * filterTile),
			shift: aligned[int32](tiles * filterTile), data: aligned[byte](tiles * filterTile * wordBytes * f.words)}
	}
	c.filter.longest, c.filter.widest = max(c.filter.longest, f.norm), max(c.filter.widest, f.most)
}

// set rounds the centroids.
func (f *filterCentroids) set(c *Centroids) {
	f.norm, f.most, f.rough = 0, 0, 0
	for i := range f.half {
		f.half[i] = float32(math.Inf(1))
	}
	copy(f.half, c.half)
	for i := range c.K {
		f.norm, f.most = max(f.norm, length(c.Row(i))), max(f.most, float64(c.half[i]))
	}
	f.norm *= filterUp
	f.scale = scaleFor(f.group, c.D, max(f.norm, f.longest), max(magnitude(c.rows), f.widest))
	if f.scale == 0 {
		return
	}
	up, down := float32(f.scale), 1/f.scale
	size := f.words * wordBytes * filterTile
	for i := range c.K {
		tile := f.data[i/filterTile*size:][:size]
		sum, total := 0.0, int32(0)
		for j, x := range c.Row(i) {
			q := nearest16(x * up)
			at := j/f.group*wordBytes*filterTile + i%filterTile*wordBytes
			if f.group == 4 {
				tile[at+j%4] = byte(-int32(q))
			} else {
				binary.LittleEndian.PutUint16(tile[at+j%2*2:], uint16(-int32(q)))
			}
			total += int32(q)
			e := float64(x) - float64(float64(q)*down)
			sum += float64(e * e)
		}
		if f.group == 4 {
			f.shift[i] = 128 * total
		}
		f.rough = max(f.rough, sum)
	}
	f.rough = math.Sqrt(f.rough) * filterUp
}

// filterCall is what a call of the filter needs of points and centroids together.
type filterCall struct {
	units  float64 // ab
	offset float64 // o
	d      int
	c      *filterCentroids
}

// call returns false where the integers would not fit.
func (f *filterPoints) call(c *Centroids) (filterCall, bool) {
	g := c.filter
	call := filterCall{units: f.scale * g.scale, d: c.D, c: g}
	widest := call.band(f.norm, f.rough)
	call.offset = f.norm*f.norm/2*call.units + widest
	top := (f.norm+g.norm)*(f.norm+g.norm)/2*call.units + 2*widest
	return call, g.scale > 0 && g.group == f.group && top <= 1<<31-1<<20
}

// band returns at least 2w for points of at most the given length, with errors of
// at most the given length.
func (c *filterCall) band(norm, rough float64) float64 {
	chain := float64(c.d) * (0x1.03p-24*(c.c.most+norm*c.c.norm) + 0x1p-149)
	w := rough*c.c.norm + (norm+rough)*c.c.rough + chain
	return math.Ceil(2*w*c.units*filterUp) + 260
}
