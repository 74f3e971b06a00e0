package step

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/kernels"
)

// PointBounds lets a round of nearest assignment go on from the one before: only records
// whose label changes are taken from sum to sum, and records whose label cannot have
// changed are not looked at where that pays, by Hamerly's bounds (Making k-means even
// faster, SDM 2010), one for each record. It serves where a record costs much,
// from [ChainDims] dimensions on; [Deltas] has bounds for blocks of records below. What
// comes out is the same, bit for bit. A nil *PointBounds makes every round begin anew.
//
// A record was at distance d1 of its centroid l and d2 of the next one. While l has
// moved by at most p and no centroid by more than q since, all others are at least
// d2-q away and l at most d1+p. Kernels compare scores, half the squared distances
// less what all have in common, that are off by E at most (errors of one chain, see
// slack), so the label is the same as long as
//
//	(d2-q)^2 - (d1+p)^2 > 4 E,
//
// for which p+q < min(d2/2, d2 - d1 - 8 E/d2) is enough: then d2-q > d2/2.
//
// A few centroids often move long after the others rest. The most restless of a round
// are compared with all records, and their moves are not in q: with its distance from
// them as d2, and d1+p as d1, each record has a bound for them from there on (two groups
// of Yinyang k-means, Ding and others, ICML 2015, drawn anew in each round).
type PointBounds struct {
	points  kernels.Panels
	centres *kernels.Centroids
	grid    []float32 // the centroids, as the caller keeps them
	labels  []uint16
	dearer  float64 // what a record costs here, in records of a round anew

	valid  bool      // labels and sums are those of the round before
	carry  bool      // the round goes on from the one before
	bound  bool      // and leaves records out
	fresh  bool      // but for the first time, when none has a key
	share  float64   // of the records whose label changed in the last round, as far as known
	last   []float32 // centroids of the round before
	moved  []float64 // by centroid: how far it has come
	ways   []float64 // by centroid: its last move
	most   float64   // the sum of the largest moves of each round, of those that are not restless
	recent float64   // the last of them
	tried  float64   // what it was when bounds were last tried
	limits []float32 // by label: a record whose key is larger stays
	// keys are, by record, the slack and what moved and most were then; none if not known.
	keys []float32
	// far is, by record with a key, at least its distance from its centroid, less what moved
	// was then.
	far       []float32
	restless  *kernels.Centroids    // that the round compares with all records, nil for none
	distances kernels.DistanceBound // of those that need no look at it
	rooms     []*kernels.Centroids  // for 1, 2, 4, ... of them
	ranking   []int

	farthest float64 // length of a record at most
	reach    float64 // length of a centroid up to which keys hold
	error    float64 // E at that length
	// off is what a square that the kernel gives, max(0, |x|^2 + 2s), is off by at most: by 2E,
	// by the chain of |x|^2, and by one rounding of at most u (|x|+|c|)^2 < E + u |x|^2.
	off float64

	wait, next int // rounds anew before the next try, and after it fails
	each       func(n int, task func(i int))
	whole      int // rounds that went on from the one before and looked at all records
	batches    []batch
	sample     batch
}

const (
	// batchPoints is the number of records that are measured at a time.
	batchPoints = 256
	// sampledShare is 1 over the share of the records that show at most whether
	// bounds would pay.
	sampledShare = 256
	// A record that is looked at is copied, a cache line for each coordinate, which
	// takes as long as about so many products for a coordinate and for the record.
	// Rounds anew that rank centroids in small integers first are faster by filterSpeed, or by Panels.RankSpeed where
	// the integers are made as points are read.
	copyProducts   = 60
	recordProducts = 700
	filterSpeed    = 2.8
	// mostDear is how dear that may be for bounds to pay at all: without them runs took a tenth to a quarter less
	// time at (k, d) from (4, 20) to (5, 50) and (4, 784), and as long at (12, 32). From (26, 16) and (16, 20) to
	// (10, 100) and (10, 784) they took a tenth to a fifth more.
	mostDear = 8.5
	// mostChanged is the share of the records whose label may change in a round that
	// goes on from the sums of the one before: to take a record from sum to sum costs as
	// much as to sum a dozen.
	mostChanged = 1. / 24
	// longestWait is the most rounds between two tries, but there is one as soon as the
	// largest moves have fallen to a share calmer of what they were at the last.
	longestWait = 8
	calmer      = 0.6
	// restlessShare is the share of the centroids that may be restless, where the others
	// move less by restlessBy: to compare them with all records takes so much of a round.
	// There are no more of them than make the others move fewMore times as far as the least.
	// Where rounds anew rank centroids there are none: to read all records would take a third of one.
	restlessShare = 1. / 16
	restlessBy    = 2
	fewMore       = 1.25
	stalePoints   = 1024
	// So many runs of stalePoints tell how many records are left.
	leftRuns = 16
	// narrowAfter is the number of rounds that look at all records and go on from the one before, after which records
	// get a narrow form: it costs as much as some nine of them save, and more where its memory is new to the system.
	narrowAfter = 32
)

// batch is one worker's memory.
type batch struct {
	points         *kernels.Panels
	which          []int32
	before, now    []uint16
	dist, second   []float32
	keys, far      []float32
	restlessLabels []uint16
	squares        []float32
	masks          []uint32
	moved          int // records whose label changed in the round
	_              [64]byte
}

func newBatch(d int) batch {
	return batch{points: kernels.NewPanels(batchPoints, d), which: make([]int32, 0, batchPoints),
		before: make([]uint16, batchPoints),
		now:    make([]uint16, batchPoints), dist: make([]float32, batchPoints), second: make([]float32, batchPoints),
		keys: make([]float32, batchPoints), far: make([]float32, batchPoints),
		restlessLabels: make([]uint16, stalePoints), squares: make([]float32, stalePoints),
		masks: make([]uint32, stalePoints/32)}
}

// NewPointBounds returns nil where a round gains nothing from the one before. grid has
// the centroids of the round, centres the same for the kernels. A filter of points has
// been prepared by now.
// each runs n tasks, perhaps at the same time.
func NewPointBounds(points kernels.Panels, centres *kernels.Centroids, grid []float32, s DeltaShape,
	each func(n int, task func(i int))) *PointBounds {
	if s.Rounds < 3 || s.Radius || points.D < ChainDims || centres.K < 2 || points.N < 4*sampledShare ||
		s.Records*centres.K*points.D < leastTracked || dearer(centres.K, points.D) > mostDear {
		return nil
	}
	b := &PointBounds{share: 1, points: points, centres: centres, grid: grid, labels: NewLabels(points.N),
		last:  make([]float32, len(grid)),
		moved: make([]float64, centres.K), ways: make([]float64, centres.K), limits: make([]float32, centres.K),
		keys: make([]float32, points.N), far: make([]float32, points.N), next: 1, each: each,
		sample: newBatch(points.D)}
	for some := 1; float64(some) <= float64(centres.K)*restlessShare && !points.Ranks(centres.K); some *= 2 {
		b.rooms, b.ranking = append(b.rooms, kernels.NewCentroids(some, points.D)), make([]int, centres.K)
	}
	b.dearer = dearer(centres.K, points.D)
	if b.dearer *= points.RankSpeed(centres.K); points.Filters() {
		b.dearer *= filterSpeed
	}
	for range s.Workers {
		b.batches = append(b.batches, newBatch(points.D))
	}
	b.farthest = farthest(points, each)
	return b
}

// dearer is what a record costs that is looked at, in records of a round anew.
func dearer(k, d int) float64 { return 1 + float64(copyProducts*d+recordProducts)/float64(k*d) }

// farthest is at least the largest length of a record.
func farthest(points kernels.Panels, each func(n int, task func(i int))) float64 {
	const chunk, run = 1024, 16
	chunks := (points.N + chunk - 1) / chunk
	origin, most := kernels.NewCentroids(1, points.D), make([]float32, (chunks+run-1)/run)
	points = kernels.Panels{N: points.N, D: points.D, Data: points.Data} // integer forms give no distances
	each(len(most), func(i int) {
		labels, squares := make([]uint16, chunk), make([]float32, chunk)
		for lo := i * run * chunk; lo < min((i+1)*run*chunk, points.N); lo += chunk {
			hi := min(lo+chunk, points.N)
			kernels.Assign(points.Slice(lo, hi), origin, labels[:hi-lo], squares[:hi-lo])
			most[i] = max(most[i], slices.Max(squares[:hi-lo]))
		}
	})
	return math.Sqrt(float64(slices.Max(most))) * (1 + 0x1p-10)
}

// Labels are those of the round before, and of the present one as far as it is done.
func (b *PointBounds) Labels() []uint16 { return b.labels }

// Carries reports whether the round goes on from the one before.
func (b *PointBounds) Carries() bool { return b != nil && b.carry }

// Begin chooses what the round makes of the round before, and returns how many records
// it has to look at.
func (b *PointBounds) Begin() int {
	if b == nil {
		return math.MaxInt
	}
	n := b.points.N
	if !b.valid {
		b.carry = false
		return n
	}
	b.move()
	b.wait = max(b.wait-1, 0)
	left := n
	switch {
	case b.bound:
		if left = b.left(); float64(left)*b.dearer > float64(n) {
			b.bound, left = false, n
			b.pause()
		}
	case b.wait == 0 || b.recent < calmer*b.tried:
		b.tried = b.recent
		if b.bound = b.stay(); b.bound {
			b.forget()
		} else {
			b.pause()
		}
	}
	b.carry = b.bound || b.share < mostChanged
	if b.carry && !b.bound {
		b.narrow()
	}
	return left
}

// narrow gives records their narrow form once there have been so many rounds that gain from it.
func (b *PointBounds) narrow() {
	if b.whole++; b.whole == narrowAfter {
		b.points.PrepareNarrow(b.centres.K, b.each)
		b.centres.PrepareFilter(&b.points)
	}
}

// pause puts off the next try.
func (b *PointBounds) pause() {
	b.wait, b.next = b.next, min(2*b.next, longestWait)
}

// move notes how far centroids have come since the last round.
func (b *PointBounds) move() {
	d := b.centres.D
	length := 0.0 // of those that reach may not cover
	for j := range b.moved {
		row := b.grid[j*d : (j+1)*d]
		if b.ways[j] = 0; b.reach > 0 && slices.Equal(row, b.last[j*d:(j+1)*d]) {
			continue
		}
		b.ways[j] = math.Sqrt(elementary.SquaredDistance(row, b.last[j*d:])) * (1 + 0x1p-40)
		b.moved[j] += b.ways[j]
		length = max(length, elementary.SquaredLength(row))
	}
	b.rank()
	b.most += b.recent
	for j, way := range b.moved {
		b.limits[j] = float32((way + b.most) * (1 + 0x1p-20))
	}
	if length = math.Sqrt(length) * (1 + 0x1p-40); length > b.reach {
		b.bound = false
		b.setReach(1.25*length + 0x1p-20)
	}
	b.setDistances()
}

// rank chooses the restless, if the others move so much less, and sets recent to the
// largest move of the others.
func (b *PointBounds) rank() {
	b.recent, b.restless = slices.Max(b.ways), nil
	if b.rooms == nil || b.recent == 0 {
		return
	}
	for j := range b.ranking {
		b.ranking[j] = j
	}
	slices.SortFunc(b.ranking, func(x, y int) int { return cmp.Compare(b.ways[y], b.ways[x]) })
	rest := func(room *kernels.Centroids) float64 { return b.ways[b.ranking[room.K]] }
	least := rest(b.rooms[len(b.rooms)-1])
	if b.recent <= restlessBy*least {
		return
	}
	for _, room := range b.rooms {
		if b.restless = room; rest(room) <= fewMore*least {
			break
		}
	}
	b.recent = rest(b.restless)
	rows := make([]float32, 0, b.restless.K*b.points.D)
	for _, j := range b.ranking[:b.restless.K] {
		rows = append(rows, b.centres.Row(j)...)
	}
	b.restless.Set(rows)
}

// setReach sets the length of centroids that keys allow for, and E: a score is a chain
// of D fused steps from |c|^2/2, itself a chain of D, so with u = 2^-24 and
// g = (2D+2) u/(1-(2D+2) u) it is off by at most g (|c|^2/2 + |x| |c|).
func (b *PointBounds) setReach(reach float64) {
	b.reach = reach
	u := float64(2*b.centres.D+2) * 0x1p-24
	b.error = u / (1 - u) * (reach*reach/2 + b.farthest*reach) * (1 + 0x1p-20)
	b.off = 8*b.error + float64(b.centres.D+4)*0x1p-23*b.farthest*b.farthest
}

// forget makes all records unknown.
func (b *PointBounds) forget() {
	b.fresh, b.most, b.restless = true, 0, nil
	for j := range b.limits {
		b.moved[j], b.limits[j] = 0, 0
	}
}

// between is at most and at least what two distances are that the kernel gives as
// squares.
func (b *PointBounds) between(dist, second float32) (near, far float64) {
	return math.Sqrt(float64(dist) + b.off), math.Sqrt(max(0, float64(second)-b.off))
}

// slack is how far centroids may move, by a record's distance from its own, at most, and
// from the next one, at least.
func (b *PointBounds) slack(near, far float64) float64 {
	if far == 0 {
		return 0
	}
	return max(0, min(far/2, far-near-8*b.error/far)*(1-0x1p-30))
}

// key is that of a record with label j at such distances, as kernels.BoundKeys makes them.
func (b *PointBounds) key(j uint16, near, far float64) float32 {
	if slack := b.slack(near, far); slack > 0 {
		return float32((slack + b.moved[j] + b.most) * (1 - 0x1p-20))
	}
	return kernels.NoKey
}

// stay estimates from a few records how many change their label, and whether most would
// be left out if centroids moved on as in the last round.
func (b *PointBounds) stay() bool {
	s, n := &b.sample, b.points.N
	s.which = s.which[:0]
	size := min(batchPoints, n/sampledShare)
	for q := range size {
		s.which = append(s.which, int32(q*(n/size)))
	}
	kernels.Assign2(b.gather(s), b.centres, s.now[:len(s.which)], s.dist[:len(s.which)], s.second[:len(s.which)])
	staying, changed := 0, 0
	for i, at := range s.which {
		if s.now[i] != b.labels[at] {
			changed++
		}
		if b.slack(b.between(s.dist[i], s.second[i])) > b.recent+b.ways[s.now[i]] {
			staying++
		}
	}
	b.share = float64(changed) / float64(len(s.which))
	left := 1 - float64(staying)/float64(len(s.which))
	return left*b.dearer+restlessShare < 0.75
}

// left estimates the number of records that are not left out, from runs all over.
func (b *PointBounds) left() int {
	n, left, seen := b.points.N, 0, 0
	runs := (n + stalePoints - 1) / stalePoints
	for q := range min(runs, leftRuns) {
		lo := q * runs / min(runs, leftRuns) * stalePoints
		hi := min(lo+stalePoints, n)
		for _, m := range b.stale(&b.sample, lo, hi) {
			left += bits.OnesCount32(m)
		}
		seen += hi - lo
	}
	return left * n / seen
}

// stale marks those of the records [lo, hi), at most stalePoints, that are not left out.
func (b *PointBounds) stale(w *batch, lo, hi int) []uint32 {
	masks := w.masks[:(hi-lo+31)/32]
	kernels.Stale(b.keys[lo:hi], b.labels[lo:hi], b.limits, masks)
	return masks
}

// Reassign finds the labels of the records [lo, hi), takes those that have changed from
// sum to sum, and returns how many it has looked at.
func (b *PointBounds) Reassign(worker, lo, hi int, acc *kernels.Accumulator) int {
	w := &b.batches[worker]
	if !b.bound {
		w.moved += kernels.Reassign(b.points.Slice(lo, hi), b.centres, float32(math.Inf(1)), b.labels[lo:hi], acc,
			nil).Moved
		return hi - lo
	}
	w.which = w.which[:0]
	looked := 0
	for ; lo < hi; lo += stalePoints {
		end := min(lo+stalePoints, hi)
		if b.fresh {
			looked += end - lo
			b.reassignAll(w, lo, end, acc)
			continue
		}
		if b.restless != nil {
			b.staleByDistance(w, lo, end)
		}
		for at, m := range b.stale(w, lo, end) {
			for looked += bits.OnesCount32(m); m != 0; m &= m - 1 {
				w.which = append(w.which, int32(lo+32*at+bits.TrailingZeros32(m)))
				if len(w.which) == batchPoints {
					b.reassign(w, acc)
				}
			}
		}
	}
	b.reassign(w, acc)
	return looked
}

// staleByDistance compares the records [lo, hi) that have keys with the restless centroids.
func (b *PointBounds) staleByDistance(w *batch, lo, hi int) {
	n := hi - lo
	kernels.Assign(b.points.Slice(lo, hi), b.restless, w.restlessLabels[:n], w.squares[:n])
	masks := w.masks[:(n+31)/32]
	kernels.StaleByDistance(b.keys[lo:hi], b.far[lo:hi], w.squares[:n], b.distances, masks)
	for word, m := range masks {
		for ; m != 0; m &= m - 1 {
			i := 32*word + bits.TrailingZeros32(m)
			at := lo + i
			if b.keys[at] == kernels.NoKey {
				continue
			}
			l := b.labels[at]
			near := (float64(b.far[at]) + b.moved[l]) * (1 + 0x1p-40)
			_, far := b.between(0, w.squares[i])
			b.keys[at] = min(b.keys[at], b.key(l, near, far))
		}
	}
}

// setDistances prepares the test of records that have keys against the restless centroids. With what a key has left,
// rest = key - moved - most, and the distance of the own centroid, near = far + moved, a distance
//
//	g >= f + 8E/f, f = (key - most) + max(key - most, far) >= max(2 rest, near + rest)
//
// from the restless leaves a slack of rest or more. As squares, without a root, where (8E/f)^2 <= E, that is
// g^2 >= f^2 + 17E. Up makes up for the roundings to float32.
func (b *PointBounds) setDistances() {
	const up = 1 + 0x1p-17
	b.distances = kernels.DistanceBound{Most: math.Nextafter32(float32(b.most), -1), Least: float32(64 * b.error * up),
		Up: up, More: float32((17*b.error + b.off) * up)}
}

// reassignAll looks at all of the records [lo, hi), where they are.
func (b *PointBounds) reassignAll(w *batch, lo, hi int, acc *kernels.Accumulator) {
	b.reassign(w, acc)
	for ; lo < hi; lo += batchPoints {
		end := min(lo+batchPoints, hi)
		for at := lo; at < end; at++ {
			w.which = append(w.which, int32(at))
		}
		view := b.points.Slice(lo, end)
		b.settle(w, kernels.Panels{N: end - lo, D: view.D, Data: view.Data}, acc)
	}
}

func (b *PointBounds) reassign(w *batch, acc *kernels.Accumulator) {
	if len(w.which) > 0 {
		b.settle(w, b.gather(w), acc)
	}
}

// settle finds labels and keys of the records of a batch, which are those of a view.
func (b *PointBounds) settle(w *batch, view kernels.Panels, acc *kernels.Accumulator) {
	n := len(w.which)
	kernels.Assign2(view, b.centres, w.now[:n], w.dist[:n], w.second[:n])
	kernels.BoundKeys(w.dist[:n], w.second[:n], w.now[:n], b.moved,
		kernels.KeyBound{Off: b.off, Error: 8 * b.error, Most: b.most}, w.keys[:n], w.far[:n])
	for i, at := range w.which {
		w.before[i] = b.labels[at]
		b.labels[at], b.keys[at], b.far[at] = w.now[i], w.keys[i], w.far[i]
	}
	w.moved += kernels.UpdateSums(view, w.before[:n], w.now[:n], n, acc)
	w.which = w.which[:0]
}

// gather copies the records of a batch. Distances need no integer forms.
func (b *PointBounds) gather(w *batch) kernels.Panels {
	all := kernels.Panels{N: b.points.N, D: b.points.D, Data: b.points.Data}
	return kernels.Gather(w.points, &all, w.which)
}

// End closes a round.
func (b *PointBounds) End() {
	if b == nil {
		return
	}
	copy(b.last, b.grid)
	b.fresh = false
	moved := 0
	for i := range b.batches {
		moved += b.batches[i].moved
		b.batches[i].moved = 0
	}
	if b.carry {
		b.share = float64(moved) / float64(b.points.N)
	}
	b.valid = true
}
