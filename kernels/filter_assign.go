package kernels

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"unsafe"
)

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
