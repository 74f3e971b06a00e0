package kernels

import "math/bits"

// assignAccumulateNarrow is assignAccumulate for points whose u are made as they are read: a pair of panels goes to
// slots while the next one is ranked, so that the memory is busy all the time. Points in doubt have no label until
// enough of them wait, and are added by themselves. It reports false, having done nothing, where points and centroids
// are not prepared for that.
func assignAccumulateNarrow(p *Panels, c *Centroids, labels []uint16, acc *Accumulator) bool {
	if p.N < leastSlotted || !boundsPay(p.D, c.K) || !c.narrow.ready(p.bounds, c) {
		return false
	}
	room := narrowRooms.Get().(*narrowRoom)
	room.reserve(c.D)
	s := narrowSink{sink: newSink(acc), c: c, room: room, labels: labels}
	s.slots = newSlots(acc)
	at := 0
	for ; at+slotPoints <= p.N && (at%leastSlotted > 0 || c.narrow.decides()); at += slotPoints {
		s.rank(p, at)
	}
	s.put(&s.pair)
	s.settle()
	s.fold()
	narrowRooms.Put(room)
	if at < p.N {
		rest := p.Slice(at, p.N)
		if labels != nil {
			labels = labels[at:]
		}
		assignAccumulateChunks(&rest, c, labels, acc, 4*Lanes, nil)
	}
	return true
}

// narrowSink ranks points and adds them.
type narrowSink struct {
	sink
	c       *Centroids
	room    *narrowRoom
	labels  []uint16 // of all points, or nil
	pair    slotPair // that was ranked last
	waiting int      // points in doubt
}

// rank labels the pair of panels from point number lo on.
func (s *narrowSink) rank(p *Panels, lo int) {
	n, room, x := s.c.narrow, s.room, &p.Data[lo*p.D]
	var doubts [2]uint16
	narrowSum(x, n.points.shifts, n.words, n.band, room.sums, &room.labels, &doubts, &s.pair, s.bias, s.slots.sums)
	if s.waiting > doubtPoints-slotPoints {
		s.settle()
	}
	m := uint32(doubts[0]) | uint32(doubts[1])<<Lanes
	n.seen.Add(slotPoints)
	n.doubted.Add(int64(bits.OnesCount32(m)))
	first := s.waiting
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		room.which[s.waiting] = int32(lo + i)
		room.labels[i] = uint16(s.c.K)
		s.waiting++
	}
	gather(room.points, first, p.Data, room.which[first:s.waiting], 0, p.D)
	if s.labels != nil {
		copy(s.labels[lo:], room.labels[:])
	}
	s.take(&s.pair, x, room.labels[:])
}

// settle labels and adds the points in doubt.
func (s *narrowSink) settle() {
	if s.waiting == 0 {
		return
	}
	var found [doubtPoints]uint16
	assignPanels(&s.room.points[0], panelCount(s.waiting), s.c, &found[0], nil, nil)
	if s.labels != nil {
		for i, at := range s.room.which[:s.waiting] {
			s.labels[at] = found[i]
		}
	}
	s.add(&Panels{N: s.waiting, D: s.c.D, Data: s.room.points}, found[:s.waiting])
	s.waiting = 0
}
