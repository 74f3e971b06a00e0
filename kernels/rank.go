package kernels

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// Points of few dimensions, or with few centroids, are ranked where they are: a routine rounds them to integers of 16
// bits as it reads them, so there is no integer form to keep, and adds their products to a word for each centroid.
// Labels are those of [Assign], bit for bit.
//
// Bound. As for the candidate filter (see there), u = a x - e and v = b c - g, and the score is
//
//	S = round(a b |c|^2/2 + o) - u.v.
//
// The errors of rounding take S off by at most a b (|e/a|_max |c|_1 + (|x|+|e/a|) |g/b|) + 1/2, with |e|_max <= 0.51,
// as the product a x is rounded before. Half the sum of (x-c)^2 by the chain of fewer than 16 dimensions, and
// |c|^2/2 - x.c by the other chain, which begins with the half that stands in S too, are off by at most
// (2d+3) 2^-24 (|x|+|c|)^2/2 and 1.01 d 2^-24 (|c|^2/2+|x||c|), and by d 2^-149. Let W be the sum of all that for a
// centroid, in units of S. A centroid with the least chain has S of at most the two largest W more than the least S, so
// where no second one has, the label is decided; the others' points go through the chain.
//
// a and b make the larger of the two terms of rounding least, as far as words of 32 bits and integers of 16 permit.
// Where rankPartner says so, two words, u1 and u2 of a point and v1 and v2 of a centroid with its sign turned, are
// multiplied crosswise, as (u1+v2).(u2+v1): then the sum has u1.u2 and v1.v2 beside the products. The second is taken
// off the word before; the first, at most |u|^2/2 of all, is the same for all centroids of a point and leaves
// differences as they are. a and b leave room for it, as they do for the sums of two integers in 16 bits.
//
// Only the upper halves H = floor(S/2^16) of words are compared, twice as many at a time as words. The difference of
// two H is less than that of their S over 2^16, plus 1, so where no second H is within ceil(B/2^16) of the least, no
// second S is within the band B of the least, and the label is decided. Where the second least is farther off than a
// half holds, it may seem near, which costs a chain.

// rankCentroids is the form of centroids that [Assign] ranks, made by Set.
type rankCentroids struct {
	longest float64 // point that the centroids go with
	widest  float64 // magnitude of its coordinates
	crosses bool    // whether there are words that are multiplied crosswise
	// words are [K][1+(D+1)/2], pairs of integers of 16 bits after the word that they are added to, or where
	// ranksLong says so [tiles][1+(D+1)/2][rankTile] and perhaps [1+(D+1)/2][rankLast], with words that are never
	// least beside the last centroid, and without coordinates there.
	words []int32
	scale float32 // a, 0 if the centroids have no such form
	band  int32   // the two largest W and more, in units of H
	// seen are points that were ranked since Set, and doubted those that the ranking has not decided.
	seen, doubted atomic.Int64
}

const (
	// rankTop bounds the magnitude of S but for the errors, and rankBand twice those.
	rankTop  = 0.98 * (1 << 31)
	rankBand = 0.03 * (1 << 31)
	// rankWidest bounds integers of 16 bits.
	rankWidest = 1<<15 - 1
	// mostDoubted is the share of the points, as 1/mostDoubted, that may be undecided: one costs as much as some four
	// that are ranked.
	mostDoubted = 8
)

// prepareRank notes how long points are at most, for PrepareFilter. each runs n tasks, perhaps at the same time.
func (p *Panels) prepareRank(each func(n int, task func(i int))) {
	origin := NewCentroids(1, p.D)
	tasks := (p.N + rankTask - 1) / rankTask
	longest, widest := make([]float64, tasks+1), make([]float64, tasks+1) // there may be no task
	each(tasks, func(i int) {
		var labels [chunkPoints]uint16
		var squares [chunkPoints]float32
		most := uint32(0) // the squares are in the order of their bits
		for lo := i * rankTask; lo < min((i+1)*rankTask, p.N); lo += chunkPoints {
			hi := min(lo+chunkPoints, p.N)
			part := p.Slice(lo, hi)
			assign(&part, origin, labels[:hi-lo], squares[:hi-lo], nil)
			for _, x := range squares[:hi-lo] {
				most = max(most, math.Float32bits(x))
			}
		}
		widest[i] = p.Slice(i*rankTask, min((i+1)*rankTask, p.N)).magnitude()
		longest[i] = math.Sqrt(float64(math.Float32frombits(most))) * filterUp * (1 + float64(p.D)*0x1p-24)
	})
	p.longest, p.widest = slices.Max(longest), slices.Max(widest)
}

// magnitude is that of the coordinates, or more.
func (p Panels) magnitude() float64 {
	most, r := 0.0, NewRanges[float32](Lanes)
	if !Extend(r, p.Data) {
		return math.Inf(1)
	}
	for j := range Lanes {
		lo, hi := r.Column(j)
		most = max(most, -lo, hi)
	}
	return most
}

// InBox says that all coordinates are in [-1, 1], which is enough for [Assign] to rank centroids where points have few
// dimensions: for a single pass, without the one over the points that PrepareFilter makes. Call it once the points are
// there, and [Centroids.PrepareFilter] before the centroids are set.
func (p *Panels) InBox() { p.longest, p.widest = math.Sqrt(float64(p.D))*filterUp, 1 }

// rankTask is the number of points of a task of prepareRank.
const rankTask = 16 * chunkPoints

// prepareRank makes room for the form of centroids that points are ranked by.
func (c *Centroids) prepareRank(p *Panels) {
	if c.rank == nil {
		rows := c.K
		if ranksLong(c.D) {
			rows = rankRows(c.K, c.D)
		}
		words := (c.D + 1) / 2
		c.rank = &rankCentroids{words: aligned[int32](rows * (1 + words)), crosses: rankCrosses(c.D, c.K)}
	}
	c.rank.longest, c.rank.widest = max(c.rank.longest, p.longest), max(c.rank.widest, p.widest)
}

// set rounds the centroids.
func (r *rankCentroids) set(c *Centroids) {
	r.scale = 0
	r.seen.Store(0)
	r.doubted.Store(0)
	far := 0.0
	for j := range c.K {
		far = max(far, length(c.Row(j)))
	}
	far *= filterUp
	a, b := r.scales(far, magnitude(c.rows))
	if !(a > 0 && a < 1<<60 && b > 0 && b < 1<<60 && far < 1<<60) { // no numbers, or far from 1
		return
	}
	x, e := r.longest, 0.51/a
	most, next := 0.0, 0.0                          // errors
	offset := a * b * (x*x - far*far - 2*x*far) / 4 // which makes the least and the largest S opposite
	clear(r.words)
	beside := 0.0 // the most that crosswise products have of a point
	if u := a*x + 0.51*math.Sqrt(float64(c.D)); r.crosses {
		beside = u * u / 2
	}
	for j := c.K; ranksLong(c.D) && j < rankRows(c.K, c.D); j++ {
		r.words[rankWord(c.K, c.D, j, 0)] = math.MaxInt32 - int32(beside)
	}
	for j := range c.K {
		norm, sum, errors := r.setRow(c, j, b)
		length := math.Sqrt(norm) * filterUp
		off := e*sum + (x+e*math.Sqrt(float64(c.D)))*math.Sqrt(errors)
		if c.D < exactDims {
			off += (2*float64(c.D) + 3) * 0x1p-24 * (x + length) * (x + length) / 2
		} else {
			norm = 2 * float64(c.half[j])
			off += 1.01 * float64(c.D) * 0x1p-24 * (norm/2 + x*length)
		}
		r.words[rankWord(c.K, c.D, j, 0)] = int32(math.RoundToEven(a*b*norm/2+offset)) - r.crossed(c, j)
		most, next = max(most, off), max(next, min(most, off))
	}
	w := a*b*(most+next+float64(c.D)*0x1p-148)*filterUp + 2
	if band := math.Ceil(w + 1); band < rankBand {
		r.scale, r.band = float32(a), int32(math.Ceil(band/(1<<16)))
	}
}

// setRow rounds centroid j, and returns the squares of its length and of that of the errors, and the sum of its
// coordinates' magnitudes.
func (r *rankCentroids) setRow(c *Centroids, j int, b float64) (norm, sum, errors float64) {
	const nearest = 3 << 51 // numbers of this size are integers
	at, down := rankWord(c.K, c.D, j, 1), 1/b
	step := rankWord(c.K, c.D, j, 2) - at
	for h, y := range c.Row(j) {
		y := float64(y)
		v := float64(b*y) + nearest - nearest
		g := float64(v*down) - y
		norm, sum, errors = norm+float64(y*y), sum+math.Abs(y), errors+float64(g*g)
		r.words[at] |= int32(uint32(uint16(-int32(v))) << (h % 2 * 16))
		at += h % 2 * step
	}
	return norm, sum, errors
}

// crossed is what the crosswise products of centroid j have beside those with a point.
func (r *rankCentroids) crossed(c *Centroids, j int) (sum int32) {
	for w := range (c.D + 1) / 2 {
		if other := rankPartner(w, c.D, c.K); other > w {
			u, v := r.words[rankWord(c.K, c.D, j, 1+w)], r.words[rankWord(c.K, c.D, j, 1+other)]
			sum += int32(int16(u))*int32(int16(v)) + (u>>16)*(v>>16)
		}
	}
	return sum
}

// scales returns a, a float32, and b for centroids of length far at most and coordinates of magnitude most at most,
// at most. The larger of the errors of rounding, |c|/a and |x|/b, is least where they are equal.
func (r *rankCentroids) scales(far, most float64) (a, b float64) {
	x := r.longest
	if r.crosses {
		ratio := max(far, x/16) / x // of a and b
		b = math.Sqrt(rankTop / (ratio * ((x+far)*(x+far)/4 + ratio*x*x/2)))
		b = min(b, (rankWidest-2)/(ratio*r.widest+most))
		return float64(float32(ratio * b)), b
	}
	room := rankTop / ((x + far) * (x + far) / 4) // of ab
	finest := (rankWidest - 1) / x
	a = min(math.Sqrt(room*max(far, x/16)/x), finest)
	b = min(room/a, (rankWidest-1)/max(most, x*0x1p-20))
	return float64(float32(min(room/b, finest))), b
}

// serves says whether points are ranked for the centroids; r may be nil.
func (r *rankCentroids) serves(p *Panels) bool {
	return r != nil && r.scale != 0 && p.filter == nil && p.longest != 0 && p.longest <= r.longest &&
		p.widest <= r.widest && r.doubted.Load()*mostDoubted <= r.seen.Load()
}

// assignRanked labels points by way of the ranking; it reports false, having done nothing, where there is none for
// these points and centroids.
func assignRanked(p *Panels, c *Centroids, labels []uint16) bool {
	if !c.rank.serves(p) {
		return false
	}
	r := newRanker(c)
	r.rank(p, c, 0, p.N, labels)
	r.settle(c, 0, labels)
	rankRooms.Put(r.room)
	return true
}

// assignAccumulateRanked is assignAccumulate by way of the ranking; it reports false, having done nothing, where there
// is none for these points and centroids. Points that wait for the chain wait for as many as it takes together, beyond
// the others of their chunk, and are added by themselves.
func assignAccumulateRanked(p *Panels, c *Centroids, labels []uint16, acc *Accumulator) bool {
	if !c.rank.serves(p) {
		return false
	}
	r := newRanker(c)
	r.before = labels
	assignAccumulateChunks(p, c, labels, acc, rankGroup()*Lanes, &r)
	rankRooms.Put(r.room)
	return true
}

// rankWords is the number of words of points that may stay in registers.
const rankWords = 8

// rankTiles is the number of tiles of k centroids, not 0, and whether one of rankLast follows, as 0 or 1.
func rankTiles(k, d int) (tiles, last int) {
	rankTile, rankLast := rankTile(d, k)
	tiles = k / rankTile
	switch rest := k % rankTile; {
	case rest > rankLast, k < rankTile:
		return tiles + 1, 0
	case rest > 0:
		return tiles, 1
	}
	return tiles, 0
}

// rankRows is the number of centroids in the tiles of k.
func rankRows(k, d int) int {
	tiles, last := rankTiles(k, d)
	rankTile, rankLast := rankTile(d, k)
	return tiles*rankTile + last*rankLast
}

// rankWord is the place of word w of centroid j of k.
func rankWord(k, d, j, w int) int {
	if ranksLong(d) {
		return rankLongWord(k, d, j, w)
	}
	return j*(1+(d+1)/2) + w
}

// rankLongWord is rankWord where centroids are in tiles.
func rankLongWord(k, d, j, w int) int {
	rankTile, rankLast := rankTile(d, k)
	width, first := rankTile, j/rankTile*rankTile
	if tiles, _ := rankTiles(k, d); j >= tiles*rankTile {
		width = rankLast
	}
	return first*(1+(d+1)/2) + w*width + j - first
}

// rankLongRoom is the number of words that the ranking of k centroids takes where ranksLong says so: the integers of a
// group, [(D+1)/2][rankGroup][Lanes], and perhaps least sums.
func rankLongRoom(k, d int) int {
	tiles, last := rankTiles(k, d)
	return (d+1)/2*rankGroup()*Lanes + rankLeast(tiles+last)
}

// rankRoom is the memory of a call.
type rankRoom struct {
	words  []int32   // of a group, where ranksLong says so
	points []float32 // that wait for the chain
}

// rankRooms are rooms of calls that have ended.
var rankRooms = sync.Pool{New: func() any { return new(rankRoom) }}

// ranker ranks points, of which some wait for the chain. Where there is a sink or an accumulator, they may wait longer
// than the other points of their chunk, and are then added or moved by themselves.
type ranker struct {
	room     *rankRoom
	before   []uint16 // labels of all points, nil where only their sums are asked for
	sink     sink
	acc      *Accumulator // that has the points under the labels before, with its scale
	scale    float32
	moved    int // points that waited longer, and whose label is another than before
	which    [doubtPoints]int32
	gathered int // of those that wait
	waiting  int
}

// doubtPoints is the number of points that go through the chain together.
const doubtPoints = 4 * Lanes

func newRanker(c *Centroids) ranker {
	room := rankRooms.Get().(*rankRoom)
	if size := doubtPoints * c.D; size > len(room.points) {
		room.points = alignedFloat32(size)
	}
	if size := rankLongRoom(c.K, c.D); ranksLong(c.D) && size > len(room.words) {
		room.words = aligned[int32](size)
	}
	return ranker{room: room}
}

// rank labels the points from number lo to hi. The last ones that wait go on waiting: where there is a sink they have
// the label of none, and where there is an accumulator that of before. It returns how many of the points, the first
// ones, the sink has or will have without being given them.
func (r *ranker) rank(p *Panels, c *Centroids, lo, hi int, labels []uint16) (added int) {
	const panels = chunkPoints / Lanes
	var doubts [panels]uint16
	f, long, step, total := c.rank, ranksLong(c.D), panels, 0
	group := rankGroup()
	full := (hi - lo) / Lanes / group * group
	if long {
		step = min(panels, max(callBudget/Lanes*2/(c.K*c.D)/group, 1)*group)
	}
	words, first := r.sink.words, lo // of points that are given their labels here
	if words != nil {
		added, first, step = full*Lanes, p.N, min(panels, r.sink.limit/(2*Lanes)*2)
	}
	for at := 0; at < full; at += step {
		count := min(step, full-at)
		x := &p.Data[(lo+at*Lanes)*p.D]
		switch {
		case long:
			rankLong(x, count/group, c.D, &f.words[0], c.K, f.scale, f.band,
				&r.room.words[0], &labels[at*Lanes], &doubts[0])
		case words != nil:
			r.sink.reserve(count * Lanes)
			rankSum(x, count/2, c.D, &f.words[0], c.K, f.scale, f.band, &labels[at*Lanes], &doubts[0], words, r.sink.bias)
		default:
			rankPairs(x, count/2, c.D, &f.words[0], c.K, f.scale, f.band, &labels[at*Lanes], &doubts[0])
		}
		for q, m := range doubts[:count] {
			total += bits.OnesCount16(m)
			for ; m != 0; m &= m - 1 {
				r.which[r.waiting] = int32(lo + (at+q)*Lanes + bits.TrailingZeros16(m))
				if r.waiting++; r.waiting == len(r.which) {
					r.gather(p)
					r.settle(c, first, labels)
				}
			}
		}
	}
	r.gather(p)
	for _, i := range r.which[:r.waiting] {
		switch {
		case int(i) < lo:
		case r.acc != nil:
			labels[int(i)-lo] = r.before[i]
		case r.sink.acc != nil:
			labels[int(i)-lo] = uint16(c.K)
		}
	}
	f.seen.Add(int64(full * Lanes))
	f.doubted.Add(int64(total))
	if base := lo + full*Lanes; base < hi {
		rest := p.Slice(base, hi)
		assignExact(&rest, c, labels[full*Lanes:], nil, nil)
	}
	return added
}

// gather copies the points that wait while the caches hold them.
func (r *ranker) gather(p *Panels) {
	gather(r.room.points, r.gathered, p.Data, r.which[r.gathered:r.waiting], 0, p.D)
	r.gathered = r.waiting
}

// settle labels the points that wait by the chain: those from number lo on in labels; the others have waited longer.
func (r *ranker) settle(c *Centroids, lo int, labels []uint16) {
	if r.waiting == 0 {
		return
	}
	var found [doubtPoints]uint16
	assignPanels(&r.room.points[0], panelCount(r.waiting), c, &found[0], nil, nil)
	longer := 0
	for i, at := range r.which[:r.waiting] {
		if int(at) >= lo {
			labels[int(at)-lo] = found[i]
			continue
		}
		longer++
	}
	switch {
	case longer == 0:
	case r.acc != nil:
		r.move(found[:longer])
	default:
		if r.before != nil {
			for i, at := range r.which[:longer] {
				r.before[at] = found[i]
			}
		}
		r.sink.add(&Panels{N: longer, D: c.D, Data: r.room.points}, found[:longer])
	}
	r.gathered, r.waiting = 0, 0
}

// move takes the first points that wait to the sums of the labels that were found.
func (r *ranker) move(found []uint16) {
	for i, to := range found {
		at := r.which[i]
		if from := r.before[at]; from != to {
			r.acc.move(r.room.points[i/Lanes*Lanes*r.acc.D+i%Lanes:], Lanes, int(from), int(to), r.scale)
			r.before[at] = to
			r.moved++
		}
	}
}

// reassignRanked is Reassign without a cut and bounds, by way of the ranking; it reports false, having done nothing,
// where there is none for these points and centroids.
func reassignRanked(p *Panels, c *Centroids, labels []uint16, acc *Accumulator) (moved int, ok bool) {
	if !c.rank.serves(p) {
		return 0, false
	}
	r := newRanker(c)
	r.before, r.acc, r.scale = labels, acc, float32(math.Ldexp(1, acc.FractionBits))
	var label [chunkPoints]uint16
	var masks [chunkPoints / 32]uint32
	for lo := 0; lo < p.N; lo += chunkPoints {
		hi := min(lo+chunkPoints, p.N)
		part, now, used := p.Slice(lo, hi), label[:hi-lo], masks[:(hi-lo+31)/32]
		if c.rank.serves(p) {
			r.rank(p, c, lo, hi, now)
		} else {
			assignExact(&part, c, now, nil, nil)
		}
		changed(labels[lo:hi], now, used)
		moved += marked(used)
		acc.carry(&part, used, labels[lo:hi], now, r.scale)
	}
	r.settle(c, p.N, nil)
	rankRooms.Put(r.room)
	return moved + r.moved, true
}
