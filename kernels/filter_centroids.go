package kernels

import (
	"encoding/binary"
	"math"
	"sync/atomic"
)

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
