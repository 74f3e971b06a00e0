package kernels

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Points of many dimensions with few centroids are bound by the memory that they are read from. A narrow form beside
// them has two bytes of each coordinate, by which centroids are ranked, and the last byte apart, by point: only points
// that the ranking leaves in doubt, or that are taken from sum to sum, ask for it, and they are the same, bit for bit.
//
// Form. Coordinates are multiples of 2^-22 in [-1, 1], so X = 2^22 x is an integer. An origin m, of as many
// coordinates, is near the mean; M = 2^22 m are integers, of magnitudes below 2^22 - 2^14. Then
//
//	X - M = 256 u + r, |u| < 2^15, -128 <= r < 128.
//
// Bound. Let y = x - m and z = c - m, h = |c|^2/2 as [Assign] has it, e = 2^-22 r = y - u/a with a = 2^14, and
// v = b z - g with any g. The chain that Assign compares is near h - x.c = (h - m.z) - y.z - x.m, of which the last
// term is common to all centroids. The score is, in units of 1/(ab),
//
//	T = ab (h - m.z) - u.v.
//
// By Cauchy and Schwarz |y.z - u.v/(ab)| <= |e| |z| + (|y|+|e|) |g/b|. The chain is within
// 1.01 d 2^-24 (h + |x||c|) + d 2^-149 of h - x.c. Products of a chunk are added as integers, which fit 32 bits as
// |u||v| of a chunk does, and then as float32 to the first term: with n chunks, the rounding of that, those of the
// chunks' sums and the n of the additions are within 1.01 (n+3) 2^-24 (|h - m.z| + (|y|+|e|)(|z|+|g/b|)). Let w be
// the sum of all that for a centroid. If j has the least chain and i the least score, T_j <= s_j+w_j <= s_i+w_j <=
// T_i+w_i+w_j: where no second score is within the two largest w of the least, the label is decided. The others'
// points go through the chain.
//
// Points as they are. Where sums take all of the points, a form beside them does not pay, but its products do:
// x + (768 - m) is, as float32, 768 plus the multiple of 2^-14 next to y, ties to even, as numbers between 512 and
// 1024 are 2^-14 apart; the shift is exact, as m is a multiple of 2^-7, and the low half of the bits is u. |e| is that
// of the form above, u is at most 1/2 from ay there and here, which is all that the bound on the u of a chunk has of
// it, and nothing else above asks how ties go: the same w hold.

// narrowPoints is the narrow form of points.
type narrowPoints struct {
	*narrowBounds
	words []int32 // [panels][narrowChunk chunks][Lanes], two u each
	rest  []int32 // [panels][Lanes][narrowChunk/2 chunks], four r each
}

// narrowBounds is what centroids that rank points by u need to know of these. It suffices for points as they are, whose
// u, with the nearest even one where there are two, routines make as they read them.
type narrowBounds struct {
	origin []int32 // M, and 0 up to whole chunks
	// shifts are narrowShift - m: a coordinate plus its shift, as float32, has u in its low bits.
	shifts []float32
	chunks int
	// At least the lengths of y and e, and of the u of a chunk.
	length, rough, reach float64
}

// narrowCentroids is what ranks narrow points, made where it is needed first after Set.
type narrowCentroids struct {
	form   lazy
	points *narrowBounds
	// words are [tiles][1+narrowChunk chunks][narrowTile], the first as float32, and perhaps the same of narrowLast.
	words  []int32
	serves bool    // whether the numbers fit
	band   float32 // the two largest w
	// seen are points that were ranked since Set, and doubted those that the ranking has not decided.
	seen, doubted atomic.Int64
}

const (
	narrowChunk = 16              // words of a chunk
	narrowDims  = 2 * narrowChunk // dimensions of one
	narrowUnits = 1 << 14         // a
	narrowGrid  = 1 << MaxFractionBits
	narrowRest  = 256
	narrowShift = 3 << 22 / narrowUnits // numbers of this size are integers in units of 1/a
	narrowTile  = 10                    // centroids of a tile
	narrowLast  = 5                     // of the last one, where these suffice
)

// narrowTiles is the number of tiles of k centroids, and whether one of narrowLast follows, as 0 or 1.
func narrowTiles(k int) (tiles, last int) {
	tiles = k / narrowTile
	switch rest := k % narrowTile; {
	case rest > narrowLast:
		return tiles + 1, 0
	case rest > 0:
		return tiles, 1
	}
	return tiles, 0
}

// PrepareNarrow adds to points that many passes go over what lets [Assign] and [Reassign] read half of their bytes,
// where the path in use and the shape, for k centroids, gain from that; three quarters as much memory again. Points
// off the grid, out of [-1, 1] or in a file go without. Call [Centroids.PrepareFilter] after it. each is as for
// [Panels.PrepareFilter].
func (p *Panels) PrepareNarrow(k int, each func(n int, task func(i int))) {
	if p.narrow != nil || p.Mapped || p.N == 0 || p.filter != nil || !narrowPays(p.D, k) {
		return
	}
	if each == nil {
		each = inOrder
	}
	p.addNarrow(each)
}

// Narrow reports whether the points have a narrow form.
func (p *Panels) Narrow() bool { return p.narrow != nil }

// AssignBytes is the number of bytes of coordinates that [Assign] reads of the points at least: two of each in their
// narrow form, else four.
func (p *Panels) AssignBytes() int {
	if p.narrow != nil {
		return 2 * p.N * p.D
	}
	return 4 * p.N * p.D
}

// size is the number of words of a panel.
func (f *narrowBounds) size() int { return f.chunks * narrowChunk * Lanes }

// addNarrow is PrepareNarrow for every shape.
func (p *Panels) addNarrow(each func(n int, task func(i int))) {
	panels, b := panelCount(p.N), p.bounds
	if b == nil {
		b = newNarrowBounds(p)
	}
	f := &narrowPoints{narrowBounds: b,
		words: aligned[int32](panels * b.size()), rest: aligned[int32](panels * b.size() / 2)}
	var off atomic.Bool
	most := eachPanel(panels, each, func(at int, tail []float32, most *[4]float64) {
		if !off.Load() && !f.pack(p, at, tail, most) {
			off.Store(true)
		}
	})
	if off.Load() {
		return
	}
	if p.bounds == nil {
		b.set(p.D, most, narrowGrid)
		p.bounds = b
	}
	p.narrow = f
}

// addBounds is addNarrow without the narrow form, for points on the grid of an even number of dimensions.
func (p *Panels) addBounds(each func(n int, task func(i int))) {
	b := newNarrowBounds(p)
	most := eachPanel(panelCount(p.N), each, func(at int, _ []float32, most *[4]float64) {
		var sums [4 * Lanes]float32
		narrowLengths(p.Data[at*Lanes*p.D:(at+1)*Lanes*p.D], b.shifts, &sums)
		for i, x := range sums {
			if x != x {
				x = float32(math.Inf(1))
			}
			most[i/Lanes] = max(most[i/Lanes], float64(x))
		}
	})
	if most[3] < 2-1./narrowUnits { // so that u fits
		b.set(p.D, most, 1)
		p.bounds = b
	}
}

// eachPanel lets task raise the largest numbers, for each panel, and returns these. tail is room for the dimensions of
// a chunk, which are 0 at first.
func eachPanel(panels int, each func(n int, task func(i int)),
	task func(at int, tail []float32, most *[4]float64)) (most [4]float64) {
	tasks := (panels + filterTaskPanels - 1) / filterTaskPanels
	parts := make([][4]float64, tasks)
	each(tasks, func(i int) {
		tail := alignedFloat32(narrowDims * Lanes)
		for at := i * filterTaskPanels; at < min((i+1)*filterTaskPanels, panels); at++ {
			task(at, tail, &parts[i])
		}
	})
	for _, m := range parts {
		for i, x := range m {
			most[i] = max(most[i], x)
		}
	}
	return most
}

// set notes the lengths that the largest squares give, in so many units.
func (b *narrowBounds) set(d int, most [4]float64, units float64) {
	up := 1 + float64(d+2)*0x1p-24 // the squares are sums of float32
	b.length = math.Sqrt(most[0]) / units * up
	b.reach = math.Sqrt(most[1])/units*narrowUnits*up + math.Sqrt(narrowDims)/2
	b.rough = math.Sqrt(most[2]) / units * up
}

// newNarrowBounds returns those of points with their origin alone.
func newNarrowBounds(p *Panels) *narrowBounds {
	b := &narrowBounds{chunks: (p.D + narrowDims - 1) / narrowDims}
	b.setOrigin(p)
	b.shifts = make([]float32, p.D)
	for j := range b.shifts {
		b.shifts[j] = narrowShift - float32(b.origin[j])/narrowGrid
	}
	return b
}

// setOrigin takes the mean of some points for the origin.
func (f *narrowBounds) setOrigin(p *Panels) {
	const sample, step = 256, 1 << 15
	const most = narrowGrid/step - 1
	f.origin = make([]int32, f.chunks*narrowDims)
	sums, row, count := make([]float64, p.D), make([]float32, p.D), min(p.N, sample)
	for i := range count {
		for j, x := range p.Point(i*(p.N/count), row) {
			sums[j] += float64(x)
		}
	}
	for j, s := range sums {
		if m := math.RoundToEven(s / float64(count) * (narrowGrid / step)); m == m {
			f.origin[j] = int32(max(-most, min(m, most))) * step
		}
	}
}

// pack makes the narrow form of a panel and raises the largest squares; it reports false where it has none. tail is
// room for the dimensions of a chunk, of which those that no panel has are 0.
func (f *narrowPoints) pack(p *Panels, at int, tail []float32, most *[4]float64) bool {
	panel, size, whole := p.Data[at*Lanes*p.D:(at+1)*Lanes*p.D], f.size(), p.D/narrowDims
	words, rest := f.words[at*size:(at+1)*size], f.rest[at*size/2:(at+1)*size/2]
	var sums [2][4 * Lanes]float32 // of the whole chunks, and of the last one
	if whole > 0 {
		narrowPack(panel, whole, f.origin, words, rest, f.chunks, &sums[0])
	}
	if whole < f.chunks {
		copy(tail, panel[whole*narrowDims*Lanes:])
		narrowPack(tail, 1, f.origin[whole*narrowDims:], words[whole*narrowChunk*Lanes:], rest[whole*narrowChunk/2:],
			f.chunks, &sums[1])
	}
	for l := range Lanes {
		a, b := &sums[0], &sums[1]
		most[0] = max(most[0], float64(a[l])+float64(b[l]))
		most[1] = max(most[1], float64(a[Lanes+l]), float64(b[Lanes+l]))
		most[2] = max(most[2], float64(a[2*Lanes+l])+float64(b[2*Lanes+l]))
		if max(math.Float32bits(a[3*Lanes+l]), math.Float32bits(b[3*Lanes+l])) > narrowGrid {
			return false
		}
	}
	return true
}

// point writes the coordinates of a point to a row that has room for whole chunks.
func (f *narrowPoints) point(i int, row []float32) {
	panel, lane := i/Lanes, i%Lanes
	words := f.words[panel*f.size()+lane:]
	each := f.chunks * narrowChunk / 2
	rest := f.rest[(panel*Lanes+lane)*each:][:each]
	narrowRow(words, rest, f.origin, f.chunks, row)
}

// prepareNarrow makes room for the form of centroids that ranks narrow points; those of other points go without.
func (c *Centroids) prepareNarrow(f *narrowBounds) {
	if c.narrow != nil {
		return
	}
	tiles, last := narrowTiles(c.K)
	c.narrow = &narrowCentroids{points: f,
		words: aligned[int32]((tiles*narrowTile + last*narrowLast) * (1 + f.chunks*narrowChunk))}
}

// set rounds the centroids.
func (n *narrowCentroids) set(c *Centroids) {
	f := n.points
	n.serves = false
	n.seen.Store(0)
	n.doubted.Store(0)
	origin, far := make([]float64, c.D), 0.0
	for j := range origin {
		origin[j] = float64(f.origin[j]) / narrowGrid
		far += float64(origin[j] * origin[j])
	}
	far = math.Sqrt(far) * filterUp
	widest, reach := 0.0, 0.0
	for i := range c.K {
		part := 0.0
		for j, y := range c.Row(i) {
			if j%narrowDims == 0 {
				part = 0
			}
			z := float64(y) - origin[j]
			part += float64(z * z)
			widest, reach = max(widest, math.Abs(z)), max(reach, part)
		}
	}
	reach = math.Sqrt(reach) * filterUp
	// Rounding makes the integers of a chunk at most sqrt(32)/2 longer.
	b := min((1<<15-2)/widest, ((1<<31-1)/f.reach-math.Sqrt(narrowDims)/2)/reach) * (1 - 0x1p-20)
	if !(b > 0x1p-20 && b < 0x1p60) {
		return
	}
	clear(n.words)
	for i := range len(n.words) / (1 + f.chunks*narrowChunk) {
		at, _ := n.place(i)
		n.words[at] = int32(math.Float32bits(math.MaxFloat32)) // of no centroid
	}
	most, next := 0.0, 0.0
	for i := range c.K {
		w := n.setRow(c, i, b, origin, far)
		most, next = max(most, w), max(next, min(most, w))
	}
	n.band = upper32((most + next) * narrowUnits * b)
	n.serves = n.band < math.MaxFloat32/4
}

// tiles are the tiles that words has room for.
func (n *narrowCentroids) tiles() (tiles, last int) {
	return narrowTiles(len(n.words) / (1 + n.points.chunks*narrowChunk))
}

// place is the first word of centroid i, and how far the next ones are apart.
func (n *narrowCentroids) place(i int) (at, step int) {
	first, width := i/narrowTile*narrowTile, narrowTile
	if tiles, _ := n.tiles(); first == tiles*narrowTile {
		width = narrowLast
	}
	return first*(1+n.points.chunks*narrowChunk) + i - first, width
}

// setRow rounds centroid i and returns its w.
func (n *narrowCentroids) setRow(c *Centroids, i int, b float64, origin []float64, far float64) float64 {
	const nearest = 3 << 51 // numbers of this size are integers
	f, down := n.points, 1/b
	at, step := n.place(i)
	common, squares, errors := 0.0, 0.0, 0.0
	for j, y := range c.Row(i) {
		z := float64(y) - origin[j]
		v := float64(b*z) + nearest - nearest
		g := float64(v*down) - z
		common, squares, errors = common+float64(origin[j]*z), squares+float64(z*z), errors+float64(g*g)
		n.words[at+(1+j/2)*step] |= int32(uint32(uint16(-int32(v))) << (j % 2 * 16))
	}
	half := float64(c.half[i])
	long, off := math.Sqrt(squares)*filterUp, math.Sqrt(errors)*filterUp
	first, d := half-common, float64(c.D)
	n.words[at] = int32(math.Float32bits(float32(first * narrowUnits * b)))
	w := f.rough*long + (f.length+f.rough)*off
	w += 1.02 * float64(f.chunks+3) * 0x1p-24 * (math.Abs(first) + (f.length+f.rough)*(long+off))
	w += 1.02*d*0x1p-24*(half+(f.length+far)*lengthOf(half, c.D)) + d*0x1p-148
	return (w + d*0x1p-50*(half+far*long)) * filterUp // with the roundings of common
}

// ready says whether points with these bounds are ranked for the centroids; n may be nil.
func (n *narrowCentroids) ready(b *narrowBounds, c *Centroids) bool {
	if n == nil || n.points != b {
		return false
	}
	n.form.need(func() { n.set(c) })
	return n.serves && n.decides()
}

// decides says whether few enough of the points that were ranked have been in doubt.
func (n *narrowCentroids) decides() bool { return n.doubted.Load()*mostDoubted <= n.seen.Load() }

// narrowRoom is the memory of a call.
type narrowRoom struct {
	sums   []float32 // [narrowTile][2][Lanes]
	rows   []float32 // points in doubt, and what is left of the last one's chunk
	points []float32 // panels of them
	which  [doubtPoints]int32
	labels [2 * Lanes]uint16
}

// narrowRooms are rooms of calls that have ended.
var narrowRooms = sync.Pool{New: func() any {
	return &narrowRoom{sums: alignedFloat32(2 * narrowTile * Lanes)}
}}

// reserve makes room for points in doubt.
func (r *narrowRoom) reserve(d int) {
	if size := doubtPoints * d; size > len(r.points) {
		r.points, r.rows = alignedFloat32(size), alignedFloat32(size+narrowDims)
	}
}

// assignNarrow labels points by way of their narrow form; it reports false, having done nothing, where there is none
// for these points and centroids.
func assignNarrow(p *Panels, c *Centroids, labels []uint16) bool {
	n := c.narrow
	if p.narrow == nil || !n.ready(p.bounds, c) {
		return false
	}
	room := narrowRooms.Get().(*narrowRoom)
	room.reserve(c.D)
	f := p.narrow
	tiles, last := n.tiles()
	waiting, total := 0, 0
	for lo := 0; lo < p.N; lo += 2 * Lanes {
		hi, stride := min(lo+2*Lanes, p.N), 4*f.size()
		if hi <= lo+Lanes {
			stride = 0 // the same panel again
		}
		var doubts [2]uint16
		narrowAssign(&f.words[(p.firstPanel+lo/Lanes)*f.size()], stride, f.chunks, n.words, tiles, last, n.band,
			room.sums, &room.labels, &doubts)
		copy(labels[lo:hi], room.labels[:])
		for m := (uint32(doubts[0]) | uint32(doubts[1])<<Lanes) & (1<<(hi-lo) - 1); m != 0; m &= m - 1 {
			i := lo + bits.TrailingZeros32(m)
			f.point(p.firstPanel*Lanes+i, room.rows[waiting*c.D:])
			room.which[waiting] = int32(i)
			if waiting++; waiting == doubtPoints {
				room.settle(c, waiting, labels)
				total, waiting = total+waiting, 0
			}
		}
	}
	if waiting > 0 {
		room.settle(c, waiting, labels)
	}
	narrowRooms.Put(room)
	n.seen.Add(int64(p.N))
	n.doubted.Add(int64(total + waiting))
	return true
}

// settle labels the points in doubt by the chain.
func (r *narrowRoom) settle(c *Centroids, waiting int, labels []uint16) {
	n := panelCount(waiting) * Lanes // the last ones are of before
	points := Panels{N: n, D: c.D, Data: r.points[:n*c.D]}
	pack(&points, r.rows[:n*c.D])
	var found [doubtPoints]uint16
	assignPanels(&r.points[0], n/Lanes, c, &found[0], nil, nil)
	for i, at := range r.which[:waiting] {
		labels[at] = found[i]
	}
}

// narrowPoint reads a point from its narrow form, nil where there is none.
func (a *Accumulator) narrowPoint(p *Panels, i int) []float32 {
	if p.narrow == nil {
		return nil
	}
	if size := p.narrow.chunks * narrowDims; len(a.scratch.point) < size {
		a.scratch.point = alignedFloat32(size)
	}
	p.narrow.point(p.firstPanel*Lanes+i, a.scratch.point)
	return a.scratch.point[:a.D]
}

// moveRow is move of a point by row.
func (a *Accumulator) moveRow(x []float32, from, to int, scale float32) {
	d, done := a.D, a.D/Lanes*Lanes
	if from == a.K || to == a.K || done == 0 {
		a.move(x, 1, from, to, scale)
		return
	}
	a.Counts[from]--
	a.Counts[to]++
	old, sums := a.Sums[from*d:from*d+d], a.Sums[to*d:to*d+d]
	narrowMove(x[:done], scale, old, sums)
	for j := done; j < d; j++ {
		v := int64(int32(x[j] * scale))
		old[j] -= v
		sums[j] += v
	}
}
