package kernels

// slotSums are sums of few clusters by dimension: each of the Lanes slots of a dimension belongs to a cluster, and
// larger clusters have several. One instruction brings a dimension of up to Lanes points of a pair of panels to slots
// of their clusters, where to add a point to the row of its cluster takes all of its dimensions out of a panel first.
// Pairs with so many points of a cluster that they go to slots in more than mostPasses passes are added by row.
type slotSums struct {
	sums []int32 // [D][Lanes], modulo 2^32
	// owners are the clusters of slots, and places where the n-th point of a pair and a cluster goes: Lanes times the
	// pass, and the slot.
	owners [Lanes]uint8
	places [Lanes][slotPoints]uint8
	seen   [Lanes]int // points of clusters since slots were dealt out
	points int        // as many of all
	missed int        // pairs that were added by row one after the other
	next   int        // points after which slots are dealt out anew
	filled bool       // whether there is something in sums
}

const (
	slotPoints = 2 * Lanes // of a pair of panels
	mostPasses = 7
	// mostMissed is the number of pairs that are added by row before slots are dealt out anew.
	mostMissed = 16
	// leastSlotted is the number of points from which on slots pay: their sums go to rows in the end, which takes as
	// long as dozens of points.
	leastSlotted = 1024
)

// slotsFor returns the slots of an accumulator for so many points, nil where they do not pay.
func slotsFor(acc *Accumulator, points int) *slotSums {
	if points < leastSlotted || !slotsPay(acc.D, acc.K) {
		return nil
	}
	return newSlots(acc)
}

// newSlots returns the slots of an accumulator.
func newSlots(acc *Accumulator) *slotSums {
	t := acc.scratch.slots
	if t == nil {
		memory := newOwned(pageBytes, 4*acc.D*Lanes)
		t = &slotSums{sums: part[int32](&memory, acc.D*Lanes)}
		acc.scratch.slots = t
	}
	t.next = 0
	return t
}

// deal gives each cluster a slot, and the others to those with the most of the points seen for each slot.
func (t *slotSums) deal(k int) {
	var slots [Lanes]int
	for i := range k {
		slots[i] = 1
	}
	for range Lanes - k {
		most := 0
		for i := range k {
			if t.seen[i]*slots[most] > t.seen[most]*slots[i] {
				most = i
			}
		}
		slots[most]++
	}
	first := 0
	for i, n := range slots[:k] {
		for slot := range n {
			t.owners[first+slot] = uint8(i)
		}
		for j := range t.places[i] {
			t.places[i][j] = uint8(min(j/n, mostPasses)*Lanes + first + j%n)
		}
		first += n
	}
	t.seen, t.points, t.missed = [Lanes]int{}, 0, 0
}

// slotOrder has for each pass and slot the number of a point, -1 for none; what mostPasses passes do not take is in the
// last row.
type slotOrder [(mostPasses + 1) * Lanes]int8

// noOrder is a slotOrder of no points.
var noOrder = func() (o slotOrder) {
	for i := range o {
		o[i] = -1
	}
	return o
}()

// arrange notes the points of a pair under their labels, and returns the number of passes; those with the label k go
// nowhere. counts are those by label.
func (t *slotSums) arrange(labels *[slotPoints]uint16, k int, order *slotOrder) (counts [Lanes]uint8, passes int) {
	*order = noOrder
	last := 0
	for i, l := range labels {
		if int(l) >= k {
			continue
		}
		n := counts[l%Lanes]
		counts[l%Lanes]++
		at := t.places[l%Lanes][n%slotPoints] % uint8(len(order))
		order[at] = int8(i)
		last = max(last, int(at))
	}
	return counts, last/Lanes + 1
}

// slotPair is a pair of panels that is to go to slots.
type slotPair struct {
	x      *float32
	passes int // 0 where there is none
	order  slotOrder
}

// from is where the pair is; x where there is none, of which nothing is added.
func (q *slotPair) from(x *float32) *float32 {
	if q.x == nil {
		return x
	}
	return q.x
}

// take arranges the pair of panels at x, whose labels the first ones are; one that slots do not take is added by row.
// Nothing else is added before the pair is.
func (s *sink) take(q *slotPair, x *float32, labels []uint16) {
	t, acc := s.slots, s.acc
	if t.points >= t.next || t.missed == mostMissed {
		s.redeal(labels)
	}
	s.reserve(slotPoints)
	var counts [Lanes]uint8
	counts, q.passes = t.arrange((*[slotPoints]uint16)(labels), acc.K, &q.order)
	for i, n := range counts[:acc.K] {
		t.seen[i] += int(n)
	}
	t.points += slotPoints
	if q.passes > mostPasses {
		t.missed++
		scatter(x, slotPoints/Lanes, &labels[0], acc, s.bias, s.ahead)
		q.passes = 0
		return
	}
	for i, n := range counts[:acc.K] {
		acc.scratch.tally[i] += int32(n)
	}
	t.filled, t.missed, q.x = true, 0, x
}

// put adds a pair to slots.
func (s *sink) put(q *slotPair) {
	if q.passes > 0 {
		sumSlots(q.x, s.acc.D, &q.order, q.passes, s.bias, s.slots.sums)
		q.passes = 0
	}
}

// addSlots adds the pairs of whole panels of points by label, and returns how many points these are.
func (s *sink) addSlots(p *Panels, labels []uint16) int {
	var q slotPair
	at := 0
	for ; at+slotPoints <= p.N; at += slotPoints {
		s.take(&q, &p.Data[at*p.D], labels[at:])
		s.put(&q)
	}
	return at
}

// assignAccumulateSlots is assignAccumulate by the one tile of a few centroids: a pair of panels goes to slots while
// the next one is assigned, so that multiply-adds and the memory are busy all the time. It reports false, having done
// nothing, where there is no such tile, or where that does not pay.
func assignAccumulateSlots(p *Panels, c *Centroids, labels []uint16, acc *Accumulator) bool {
	if p.N < leastSlotted || c.tiling.width != oneTile || oneTile*c.D > maxBlock(c.D) {
		return false
	}
	c.tile()
	s := newSink(acc)
	s.slots = newSlots(acc)
	var pair slotPair
	var found [slotPoints]uint16
	at := 0
	for ; at+slotPoints <= p.N; at += slotPoints {
		x := &p.Data[at*p.D]
		assignDotSum(x, c, &found, &pair, s.bias, s.slots.sums)
		if labels != nil {
			copy(labels[at:], found[:])
		}
		s.take(&pair, x, found[:])
	}
	s.put(&pair)
	if rest := p.Slice(at, p.N); rest.N > 0 {
		assign(&rest, c, found[:rest.N], nil, nil)
		if labels != nil {
			copy(labels[at:], found[:rest.N])
		}
		s.add(&rest, found[:rest.N])
	}
	s.fold()
	return true
}

// redeal deals out slots by the points seen since that was done last; at first, and where these are of no use, by
// labels to come.
func (s *sink) redeal(labels []uint16) {
	t := s.slots
	if t.next == 0 || t.missed == mostMissed {
		t.next = leastSlotted / 4
		t.seen = [Lanes]int{}
		for _, l := range labels[:min(len(labels), leastSlotted)] {
			if int(l) < s.acc.K {
				t.seen[l]++
			}
		}
	}
	t.next *= 4
	t.empty(s.acc)
	t.deal(s.acc.K)
}

// empty moves the sums of slots to the table of the accumulator.
func (t *slotSums) empty(acc *Accumulator) {
	if !t.filled {
		return
	}
	t.filled = false
	width, pitch, whole := tableWidth(acc.D), tablePitch(acc.D), acc.D/Lanes*Lanes
	for slot, owner := range t.owners {
		row := acc.scratch.table[int(owner)*pitch:][:width]
		sums := t.sums[slot:]
		for j := range row[:whole] {
			row[j] += sums[j*Lanes]
		}
		for j := whole; j < acc.D; j++ {
			row[width-acc.D+j] += sums[j*Lanes]
		}
	}
	clear(t.sums)
}
