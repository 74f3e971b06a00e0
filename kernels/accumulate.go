package kernels

import (
	"fmt"
	"math"
)

// MaxFractionBits is the finest grid: coordinates are multiples of 2^-22, so
// that a difference of two of them is exact in float32.
const MaxFractionBits = 22

// Accumulator collects the sums and counts of K clusters. Sums are exact
// integers in grid units of 2^-FractionBits, so they do not depend on the order
// of points, shards or workers. An accumulator belongs to one worker at a time.
type Accumulator struct {
	K, D         int
	FractionBits int
	Sums         []int64 // [K][D] in grid units
	Counts       []int64 // [K]
	scratch      accumulatorScratch
}

// NewAccumulator makes an empty accumulator for k clusters of d coordinates on
// the grid 2^-fractionBits. It panics unless 0 < k <= 65535, d > 0 and
// 0 <= fractionBits <= 22.
func NewAccumulator(k, d, fractionBits int) *Accumulator {
	return &NewAccumulators(1, k, d, fractionBits, true)[0]
}

// NewAccumulators makes n of them, which takes less room than one by one. They are apart, on pages of their own, where
// several workers write to them at the same time.
func NewAccumulators(n, k, d, fractionBits int, apart bool) []Accumulator {
	if k <= 0 || k > maxK || d <= 0 || fractionBits < 0 || fractionBits > MaxFractionBits {
		panic(fmt.Sprintf("kernels: NewAccumulator: k=%d, d=%d, fractionBits=%d, "+
			"want 0 < k <= %d, d > 0 and 0 <= fractionBits <= %d",
			k, d, fractionBits, maxK, MaxFractionBits))
	}
	lanes, table, tally := scratchSizes(k, d)
	boundary := lineBytes
	if apart {
		boundary = pageBytes
	}
	each := roomFor(boundary, 8*k*d, 8*k, 4*lanes, 4*table, 4*tally)
	all, list := newOwned(boundary, n*each), make([]Accumulator, n)
	for i := range list {
		memory := owned{part[int64](&all, each/8)}
		list[i] = Accumulator{
			K: k, D: d, FractionBits: fractionBits,
			Sums:   part[int64](&memory, k*d),
			Counts: part[int64](&memory, k),
			scratch: accumulatorScratch{
				lanes: part[float32](&memory, lanes),
				table: part[int32](&memory, table),
				tally: part[int32](&memory, tally),
			},
		}
	}
	return list
}

// Reset sets all sums and counts to zero.
func (a *Accumulator) Reset() {
	clear(a.Sums)
	clear(a.Counts)
}

// Merge adds the sums and counts of b, which must have the same K, D and
// FractionBits.
func (a *Accumulator) Merge(b *Accumulator) {
	if a.K != b.K || a.D != b.D || a.FractionBits != b.FractionBits {
		panic(fmt.Sprintf("kernels: Accumulator.Merge: (k, d, fractionBits) are (%d, %d, %d) and (%d, %d, %d), "+
			"want them equal",
			a.K, a.D, a.FractionBits, b.K, b.D, b.FractionBits))
	}
	for i, s := range b.Sums {
		a.Sums[i] += s
	}
	for i, n := range b.Counts {
		a.Counts[i] += n
	}
}

// check panics unless the accumulator fits the panels.
func (a *Accumulator) check(what string, p *Panels) {
	if a.D != p.D {
		panic(fmt.Sprintf("kernels: %s: accumulator has d=%d, panels have d=%d", what, a.D, p.D))
	}
}

// checkAssigned panics unless the accumulator fits the panels, the centroids and, where there are any, the labels.
func (a *Accumulator) checkAssigned(what string, p *Panels, c *Centroids, labels []uint16) {
	checkPair(what, p, c)
	if labels != nil {
		checkLength(what, "labels", len(labels), p.N)
	}
	a.check(what, p)
	checkClusters(what, a.K, c)
}

// checkClusters panics unless an accumulator of k clusters has one for each centroid.
func checkClusters(what string, k int, c *Centroids) {
	if k != c.K {
		panic(fmt.Sprintf("kernels: %s: accumulator has k=%d, centroids have k=%d", what, k, c.K))
	}
}

// AssignAccumulate assigns each point to its nearest centroid, as [Assign] does,
// and adds it to the sums and counts of that cluster, in one pass over the
// points. labels may be nil.
func AssignAccumulate(p Panels, c *Centroids, labels []uint16, acc *Accumulator) {
	acc.checkAssigned("AssignAccumulate", &p, c, labels)
	assignAccumulate(&p, c, labels, acc)
}

// Accumulate adds each point to the sums and counts of the cluster its label
// names; points with the label K are skipped.
func Accumulate(p Panels, labels []uint16, acc *Accumulator) {
	p.check("Accumulate")
	checkLength("Accumulate", "labels", len(labels), p.N)
	acc.check("Accumulate", &p)
	checkLabels("Accumulate", labels, acc.K)
	accumulate(&p, labels, acc)
}

// accumulatorScratch is the private memory of an accumulator's kernels. All of
// it is zero between calls.
type accumulatorScratch struct {
	// lanes holds a vector of exact float32 sums per cluster and coordinate when
	// K and D are small enough for masked adds.
	lanes []float32
	// table holds rows of sums modulo 2^32 by label, with a row for the label K:
	// four replicas of [K+1][4] for D <= 3, else [K+1][tablePitch] and tally [K+1].
	table []int32
	tally []int32
	// point, of a narrow form, and offsets, of a panel, are not zero afterwards.
	point, offsets []float32
	slots          *slotSums // made when they are needed first, as words are
	words          *wordSums
}

const (
	maxNarrowD    = 3       // coordinates of the table with four replicas at most
	maxTableWords = 1 << 22 // 16 MiB; above, sums go to Sums one by one
)

// tableWidth is the row length of the table for d coordinates.
func tableWidth(d int) int { return (d + Lanes - 1) &^ (Lanes - 1) }

// tablePitch is how far rows of the table for d > maxNarrowD coordinates are apart. Those a multiple of 2 KiB apart
// would have the same few sets of the first-level cache.
func tablePitch(d int) int {
	width := tableWidth(d)
	if width%512 == 0 {
		width += Lanes
	}
	return width
}

// scratchSizes returns the lengths of the tables of accumulatorScratch.
func scratchSizes(k, d int) (lanes, table, tally int) {
	lanes = laneWords(k, d)
	switch words := (k + 1) * tablePitch(d); {
	case words > maxTableWords:
	case d <= maxNarrowD:
		table = 4 * (k + 1) * 4
	default:
		table, tally = words, k+1
	}
	return lanes, table, tally
}

// assignAccumulatePortable is the reference form of [AssignAccumulate].
func assignAccumulatePortable(p *Panels, c *Centroids, labels []uint16, acc *Accumulator) {
	var scratch [chunkPoints]uint16
	for lo := 0; lo < p.N; lo += chunkPoints {
		hi := min(lo+chunkPoints, p.N)
		part := p.Slice(lo, hi)
		l := scratch[:hi-lo]
		if labels != nil {
			l = labels[lo:hi]
		}
		assignPortable(&part, c, l, nil, nil)
		accumulatePortable(&part, l, acc)
	}
}

// accumulatePortable is the reference form of [Accumulate].
func accumulatePortable(p *Panels, labels []uint16, acc *Accumulator) {
	d := p.D
	scale := float32(math.Ldexp(1, acc.FractionBits))
	for i, label := range labels {
		if int(label) == acc.K {
			continue
		}
		acc.Counts[label]++
		sums := acc.Sums[int(label)*d : int(label)*d+d]
		base := i/Lanes*d*Lanes + i%Lanes
		for j := range sums {
			sums[j] += int64(int32(p.Data[base+j*Lanes] * scale))
		}
	}
}

func assignAccumulate(p *Panels, c *Centroids, labels []uint16, acc *Accumulator) {
	switch {
	case current == generic:
		assignAccumulatePortable(p, c, labels, acc)
	case fuses(acc):
		assignAccumulateFused(p, c, float32(math.Inf(1)), labels, acc)
	case assignAccumulateRanked(p, c, labels, acc), assignAccumulateFiltered(p, c, labels, acc),
		assignAccumulateNarrow(p, c, labels, acc), assignAccumulateSlots(p, c, labels, acc):
	default:
		assignAccumulateChunks(p, c, labels, acc, 4*Lanes, nil)
	}
}

// assignAccumulateFiltered is assignAccumulate by way of the candidate filter; it reports false, having done nothing,
// where there is none for these points and centroids.
func assignAccumulateFiltered(p *Panels, c *Centroids, labels []uint16, acc *Accumulator) bool {
	call, ok := filterCallOf(p, c)
	if !ok {
		return false
	}
	s := filterRooms.Get().(*filterScratch)
	sink := newSink(acc)
	var scratch [chunkPoints]uint16
	group := filterGroupPanels(p.filter.chunk) * Lanes
	step := chunkPoints / group * group
	for lo := 0; lo < p.N; lo += step {
		part := p.Slice(lo, min(lo+step, p.N))
		l := scratch[:part.N]
		if labels != nil {
			l = labels[lo : lo+part.N]
		}
		s.assign(&part, c, &call, l, &sink)
	}
	sink.fold()
	filterRooms.Put(s)
	return true
}

// assignAccumulateChunks is assignAccumulate of as many points at a time, in groups of group, as stay in the cache
// between the two steps; with r by way of the ranking.
func assignAccumulateChunks(p *Panels, c *Centroids, labels []uint16, acc *Accumulator, group int, r *ranker) {
	var scratch [chunkPoints]uint16
	step := min(chunkPoints/group, max(1, chunkBytes/4/group/p.D)) * group
	own := newSink(acc)
	own.slots = slotsFor(acc, p.N)
	sink := &own
	if r != nil { // which fetches points by itself
		own.words = wordSumsFor(acc, p.N)
		r.sink = own
		sink = &r.sink
	} else {
		sink.ahead = 4 * step * p.D
	}
	for lo := 0; lo < p.N; lo += step {
		hi := min(lo+step, p.N)
		part := p.Slice(lo, hi)
		l := scratch[:hi-lo]
		if labels != nil {
			l = labels[lo:hi]
		}
		added := 0
		if r != nil && c.rank.serves(p) {
			added = r.rank(p, c, lo, hi, l)
		} else {
			assignExact(&part, c, l, nil, nil)
		}
		rest := part.Slice(added, part.N)
		sink.add(&rest, l[added:])
	}
	if r != nil {
		r.settle(c, p.N, nil)
	}
	sink.fold()
}

// chunkBytes is the size of the points that are accumulated right after their
// assignment; a fraction of the second-level cache.
const chunkBytes = 256 << 10

func accumulate(p *Panels, labels []uint16, acc *Accumulator) {
	sink := newSink(acc)
	sink.add(p, labels)
	sink.fold()
}

// sink adds points by label to the table of an accumulator, whose int32 sums it
// folds into Sums before one could overflow.
type sink struct {
	acc   *Accumulator
	bias  float32
	limit int       // points a row may take
	since int       // points since the last fold
	ahead int       // bytes from the points that are added to those that are assigned next, 0 where none are
	slots *slotSums // of points that a cache holds, nil where they do not pay
	words *wordSums // of points that a routine adds as it ranks others, nil where they do not pay
}

func newSink(acc *Accumulator) sink {
	return sink{
		acc: acc,
		// x + bias is an integer in grid units in the low bits of the float32:
		// integers between 2^23 and 2^24 are spaced by one.
		bias:  float32(math.Ldexp(1.5, 23-acc.FractionBits)),
		limit: 1<<(31-acc.FractionBits) - Lanes,
	}
}

// add adds points by label.
func (s *sink) add(p *Panels, labels []uint16) {
	if current == generic || s.acc.scratch.table == nil {
		accumulatePortable(p, labels, s.acc)
		return
	}
	full, from := p.N/Lanes, 0
	if s.slots != nil {
		from = s.addSlots(p, labels) / Lanes
	}
	step := min(panelsPerCall(4*p.D), s.limit/Lanes)
	for at := from; at < full; at += step {
		count := min(step, full-at)
		s.reserve(count * Lanes)
		scatter(&p.Data[at*Lanes*p.D], count, &labels[at*Lanes], s.acc, s.bias, s.ahead)
	}
	if base := full * Lanes; base < p.N {
		var l [Lanes]uint16
		for i := copy(l[:], labels[base:]); i < Lanes; i++ {
			l[i] = uint16(s.acc.K)
		}
		s.reserve(Lanes)
		scatter(&p.Data[base*p.D], 1, &l[0], s.acc, s.bias, s.ahead)
	}
}

// addRows adds the points of a panel, which are by row (see filterScratch), by label.
func (s *sink) addRows(rows []float32, labels []uint16) {
	var l [Lanes]uint16
	for i := copy(l[:], labels); i < Lanes; i++ {
		l[i] = uint16(s.acc.K)
	}
	s.reserve(Lanes)
	scatterByRow(rows, &l, s.acc, s.bias)
}

// reserve makes room for n more points.
func (s *sink) reserve(n int) {
	if s.since+n > s.limit {
		s.fold()
	}
	s.since += n
}

// fold moves the table to Sums and Counts and clears it.
func (s *sink) fold() {
	if s.since == 0 {
		return
	}
	s.since = 0
	acc := s.acc
	if s.slots != nil {
		s.slots.empty(acc)
	}
	if s.words != nil {
		s.words.empty(acc, s.bias)
	}
	bias := int32(math.Float32bits(s.bias))
	if d := acc.D; d <= maxNarrowD {
		rows := acc.K + 1
		for i := range acc.K {
			sums := acc.Sums[i*d : i*d+d]
			for r := range 4 {
				row := (*[4]int32)(acc.scratch.table[(r*rows+i)*4:])
				for j := range sums {
					sums[j] += int64(row[j] - bias*row[3])
				}
				acc.Counts[i] += int64(row[3])
			}
		}
		clear(acc.scratch.table)
		return
	}
	width, pitch := tableWidth(acc.D), tablePitch(acc.D)
	for i, n := range acc.scratch.tally {
		if n == 0 {
			continue
		}
		row := acc.scratch.table[i*pitch : i*pitch+width]
		if i < acc.K {
			acc.foldRow(i, n, n*bias, row)
		}
		clear(row)
	}
	clear(acc.scratch.tally)
}

// foldRow adds the row of the table of cluster i, of n points, to its sums: shift is n times the bias.
func (a *Accumulator) foldRow(i int, n, shift int32, row []int32) {
	d := a.D
	a.Counts[i] += int64(n)
	if tableEndsAtD && d < Lanes && i*d+Lanes <= len(a.Sums) { // columns past d are 0 but for the bias
		asmFoldRow(&row[0], 1, shift, &a.Sums[i*d])
		return
	}
	sums := a.Sums[i*d : i*d+d]
	whole := d &^ (Lanes - 1)
	if d < Lanes || !tableEndsAtD {
		whole = d
	}
	blocks := whole / Lanes
	if blocks > 0 {
		asmFoldRow(&row[0], blocks, shift, &sums[0])
	}
	done := blocks * Lanes
	for j, x := range row[done:whole] {
		sums[done+j] += int64(x - shift)
	}
	for j, x := range row[len(row)-(d-whole):] { // the last columns end at d
		sums[whole+j] += int64(x - shift)
	}
}
