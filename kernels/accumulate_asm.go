package kernels

import "math"

func assignAccumulate(p *Panels, c *Centroids, labels []uint16, acc *Accumulator) {
	switch {
	case current == generic:
		assignAccumulatePortable(p, c, labels, acc)
	case fuses(acc):
		assignAccumulateFused(p, c, float32(math.Inf(1)), labels, acc)
	default:
		// Chunks whose points stay in the cache between the two steps.
		var scratch [chunkPoints]uint16
		step := min(chunkPoints, max(1, chunkBytes/4/Lanes/p.D/4)*4*Lanes)
		if p.filter != nil { // which works on groups of 48
			step = max(step, filterChunk)
		}
		sink := newSink(acc)
		for lo := 0; lo < p.N; lo += step {
			hi := min(lo+step, p.N)
			part := p.Slice(lo, hi)
			l := scratch[:hi-lo]
			if labels != nil {
				l = labels[lo:hi]
			}
			assign(&part, c, l, nil, nil)
			sink.add(&part, l, 4*step*p.D)
		}
		sink.fold()
	}
}

// chunkBytes is the size of the points that are accumulated right after their
// assignment; a fraction of the second-level cache.
const chunkBytes = 256 << 10

// filterChunk is a whole number of groups of the candidate filter.
const filterChunk = 6 * 48

func accumulate(p *Panels, labels []uint16, acc *Accumulator) {
	sink := newSink(acc)
	sink.add(p, labels, 0)
	sink.fold()
}

// sink adds points by label to the table of an accumulator, whose int32 sums it
// folds into Sums before one could overflow.
type sink struct {
	acc   *Accumulator
	bias  float32
	limit int // points a row may take
	since int // points since the last fold
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

// add adds points by label. Data that lie ahead bytes after them are fetched
// into the cache on the way: the chunk that is assigned next.
func (s *sink) add(p *Panels, labels []uint16, ahead int) {
	if current == generic || s.acc.scratch.table == nil {
		accumulatePortable(p, labels, s.acc)
		return
	}
	full := p.N / Lanes
	step := min(panelsPerCall(4*p.D), s.limit/Lanes)
	for at := 0; at < full; at += step {
		count := min(step, full-at)
		s.reserve(count * Lanes)
		scatter(&p.Data[at*Lanes*p.D], count, &labels[at*Lanes], s.acc, s.bias, ahead)
	}
	if base := full * Lanes; base < p.N {
		var l [Lanes]uint16
		for i := copy(l[:], labels[base:]); i < Lanes; i++ {
			l[i] = uint16(s.acc.K)
		}
		s.reserve(Lanes)
		scatter(&p.Data[base*p.D], 1, &l[0], s.acc, s.bias, ahead)
	}
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
	d, width := acc.D, tableWidth(acc.D)
	for i := range acc.K {
		n := acc.scratch.tally[i]
		if n == 0 {
			continue
		}
		acc.Counts[i] += int64(n)
		sums := acc.Sums[i*d : i*d+d]
		row := acc.scratch.table[i*width : (i+1)*width]
		whole := d &^ (Lanes - 1)
		if d < Lanes || !tableEndsAtD {
			whole = d
		}
		n *= bias
		blocks := whole / Lanes
		if blocks > 0 {
			asmFoldRow(&row[0], blocks, n, &sums[0])
		}
		done := blocks * Lanes
		for j, x := range row[done:whole] {
			sums[done+j] += int64(x - n)
		}
		for j, x := range row[width-(d-whole):] { // the last columns end at d
			sums[whole+j] += int64(x - n)
		}
	}
	clear(acc.scratch.table)
	clear(acc.scratch.tally)
}
