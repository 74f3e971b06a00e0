// Package seeding draws first centres from records: greedy k-means++ (Arthur and
// Vassilvitskii, k-means++: the advantages of careful seeding, SODA 2007, section
// 2.2; the greedy form that tries several records a step is their section 4). It
// shows records, so it serves runs without privacy only.
package seeding

import (
	"math"
	"sync"
	"unsafe"

	"github.com/cohort-engine/cohort/kernels"
)

// each runs task(0) to task(n-1), in any order and perhaps at the same time.
type each func(n int, task func(i int))

// chunkPoints is the number of points whose distances are summed in one go. It is
// part of the result: sums are taken over chunks first.
const chunkPoints = 1024

// directDims is the number of dimensions from which squared distances come from
// products; below, they are sums of squares, which do not cancel.
const directDims = 16

// Part is what k-means++ knows of one party's records: the squared distance of
// each to the nearest centre so far.
type Part struct {
	points    kernels.Panels
	each      each
	trials    int
	weights   []float64 // nil if all weigh the same
	norms     []float32 // squared lengths; nil in few dimensions
	nearest   []float32
	potential []float64       // by chunk
	dots      *kernels.Panels // products of the points with the candidates; nil in few dimensions
	rows      []float32       // candidates of the last Try
	tried     []float64       // [chunks][candidates]
	squares   []float32       // of the candidates
	owners    []int32         // by record, the nearest of the centres that Extend has added
	extended  int             // centres
	expected  int             // centres, where candidates are those of Candidates and steps those of Least; else 0
	begunWith int             // centres
	centres   int             // so far
	draws     draws           // of Candidates
	screening *screening      // of steps by bounds, once there was one
	// unscreened says that steps by bounds do not pay.
	unscreened bool
	rooms      chunkRooms
}

// chunkRoom is the memory for a pass over a chunk.
type chunkRoom struct {
	labels  [chunkPoints]uint16
	squares [chunkPoints]float32
	screen  *kernels.ScreenRoom
	dots    *kernels.Panels // of one column, -Inf
}

// chunkRooms are those that no pass has at the moment.
type chunkRooms struct {
	mu   sync.Mutex
	free []*chunkRoom
}

// borrow returns memory for a pass over a chunk, which goes back by giveBack.
func (r *chunkRooms) borrow() *chunkRoom {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.free) - 1
	if last < 0 {
		return new(chunkRoom)
	}
	room := r.free[last]
	r.free = r.free[:last]
	return room
}

func (r *chunkRooms) giveBack(room *chunkRoom) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, room)
}

// inChunks runs task for each chunk of records, [lo, hi), with memory for as many labels and squared distances, which
// have any values.
func (p *Part) inChunks(task func(i, lo, hi int, labels []uint16, squares []float32)) {
	p.each(p.chunks(), func(i int) {
		room := p.rooms.borrow()
		defer p.rooms.giveBack(room)
		lo, hi := p.chunk(i)
		task(i, lo, hi, room.labels[:hi-lo], room.squares[:hi-lo])
	})
}

// NewPart begins without a centre, for at most trials candidates at a time; points
// are shared. A nil each runs tasks in order.
func NewPart(points kernels.Panels, trials int, each each) *Part {
	if each == nil {
		each = inOrder
	}
	return &Part{points: points, each: each, trials: trials}
}

func inOrder(n int, task func(i int)) {
	for i := range n {
		task(i)
	}
}

// Weigh gives each record a weight, 0 or more: its squared distance counts so many times.
func (p *Part) Weigh(weights []float64) { p.weights = weights }

// room makes the memory for centres, which a caller may never ask for.
func (p *Part) room() {
	if p.nearest != nil {
		return
	}
	n := p.points.N
	p.nearest, p.potential = make([]float32, n), make([]float64, p.chunks())
	for i := range p.nearest {
		p.nearest[i] = float32(math.Inf(1))
	}
	if p.points.D >= directDims {
		p.norms = make([]float32, n)
		p.lengths(func(_, lo int, squares []float32) { copy(p.norms[lo:], squares) })
	}
}

// Yield gives up what it knows of the distances, and the memory of them for as many labels, nil if there is none. Begin
// and Forget make it anew.
func (p *Part) Yield() []uint16 {
	nearest := p.nearest
	p.nearest, p.screening = nil, nil
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(nearest))), len(nearest))
}

// Forget begins anew without a centre.
func (p *Part) Forget() {
	p.room()
	for i := range p.nearest {
		p.nearest[i] = float32(math.Inf(1))
	}
	clear(p.potential)
	p.extended = 0
	p.restart(0)
}

// Begin begins anew with these centres.
func (p *Part) Begin(centres *kernels.Centroids) {
	p.room()
	p.restart(centres.K)
	p.inChunks(func(i, lo, hi int, labels []uint16, _ []float32) {
		points := p.points.Slice(lo, hi)
		kernels.Assign(points, centres, labels, nil)
		kernels.Distances(points, centres, labels, p.nearest[lo:hi])
		p.potential[i] = p.total(p.nearest[lo:hi], lo)
	})
}

// Squares returns the sum of the squared lengths of the records.
func (p *Part) Squares() float64 {
	chunks := make([]float64, p.chunks())
	p.lengths(func(i, lo int, squares []float32) { chunks[i] = p.total(squares, lo) })
	sum := 0.0
	for _, x := range chunks {
		sum += x
	}
	return sum
}

// total adds up what the records from first on have, each times its weight.
func (p *Part) total(x []float32, first int) float64 {
	sum := 0.0
	for i, v := range x {
		sum += p.weighted(first+i, v)
	}
	return sum
}

// weighted is x of record i times its weight.
func (p *Part) weighted(i int, x float32) float64 {
	if p.weights == nil {
		return float64(x)
	}
	return float64(p.weights[i] * float64(x))
}

// lengths gives take the squared lengths of the records of each chunk, of which lo is the first: the squared distances
// from a centroid of zeros, which do not cancel.
func (p *Part) lengths(take func(i, lo int, squares []float32)) {
	origin := kernels.NewCentroids(1, p.points.D)
	p.inChunks(func(i, lo, hi int, labels []uint16, squares []float32) {
		kernels.Assign(p.points.Slice(lo, hi), origin, labels, squares)
		take(i, lo, squares)
	})
}

func (p *Part) chunks() int { return (p.points.N + chunkPoints - 1) / chunkPoints }

func (p *Part) chunk(i int) (lo, hi int) {
	return i * chunkPoints, min((i+1)*chunkPoints, p.points.N)
}

// Weight returns the sum of the weights, the number of records where there are none.
func (p *Part) Weight() float64 {
	if p.weights == nil {
		return float64(p.points.N)
	}
	sum := 0.0
	for _, w := range p.weights {
		sum += w
	}
	return sum
}

// atWeight returns the record at which the running sum of the weights first exceeds x, at least 0 and below Weight.
func (p *Part) atWeight(x float64) int {
	if p.weights == nil {
		return int(x)
	}
	sum, last := 0.0, 0
	for i, w := range p.weights {
		if w > 0 {
			last = i
		}
		if sum += w; sum > x {
			return i
		}
	}
	return last
}

// recordAt copies record i to dst.
func (p *Part) recordAt(i int, dst []float32) []float32 { return p.points.Point(i, dst) }

// Potential returns the sum of the squared distances to the nearest centre.
func (p *Part) Potential() float64 {
	sum := 0.0
	for _, x := range p.potential {
		sum += x
	}
	return sum
}

// Try returns, for each of the candidates (row by row), what the potential would be
// with it as a further centre.
func (p *Part) Try(rows []float32) []float64 {
	p.room()
	d := p.points.D
	q := len(rows) / d
	if p.screening != nil {
		p.screening.whole = true
	}
	p.rows = append(p.rows[:0], rows...)
	p.tried = make([]float64, p.chunks()*q)
	trial := p.trial(q)
	p.inChunks(func(i, lo, hi int, _ []uint16, near []float32) {
		if trial(i); p.weights != nil {
			p.weigh(i, q, lo, near)
		}
	})
	sums := make([]float64, q)
	for i := range p.tried {
		sums[i%q] += p.tried[i]
	}
	return sums
}

// trial returns the function that tries the q candidates in a chunk.
func (p *Part) trial(q int) func(i int) {
	d := p.points.D
	if d < directDims {
		return func(i int) {
			lo, hi := p.chunk(i)
			kernels.NearestSums(p.points.Slice(lo, hi), p.rows, p.nearest[lo:hi], p.tried[i*q:(i+1)*q])
		}
	}
	m := kernels.NewMatrix(q, d, p.rows)
	p.setSquares(q)
	dots := p.products(q)
	return func(i int) {
		lo, hi := p.chunk(i)
		part := dots.Slice(lo, hi)
		kernels.Project(p.points.Slice(lo, hi), m, part)
		kernels.Potentials(part, p.norms[lo:hi], p.nearest[lo:hi], p.squares, p.tried[i*q:(i+1)*q])
	}
}

// setSquares takes the squared lengths of the q candidates.
func (p *Part) setSquares(q int) {
	d := p.points.D
	p.squares = make([]float32, q)
	for a := range q {
		for _, x := range p.rows[a*d : (a+1)*d] {
			p.squares[a] = float32(math.FMA(float64(x), float64(x), float64(p.squares[a])))
		}
	}
}

// weigh sets what the candidates leave of chunk i, of which lo is the first record, to the weighted sums.
func (p *Part) weigh(i, q, lo int, near []float32) {
	for a := range q {
		copy(near, p.nearest[lo:])
		p.take(near, lo, q, a)
		p.tried[i*q+a] = p.total(near, lo)
	}
}

// take takes records from lo on, with such squared distances, to candidate a of q.
func (p *Part) take(nearest []float32, lo, q, a int) {
	d := p.points.D
	if d < directDims {
		kernels.Nearer(p.points.Slice(lo, lo+len(nearest)), p.rows[a*d:(a+1)*d], nearest)
		return
	}
	hi := lo + len(nearest)
	dots := p.products(q)
	kernels.Lower(dots.Slice(lo, hi), a, p.norms[lo:hi], nearest, p.squares[a])
}

// products is the room for products with q candidates.
func (p *Part) products(q int) kernels.Panels {
	n := p.points.N
	if p.dots == nil {
		p.dots = kernels.NewPanels(n, p.trials)
	}
	return kernels.Panels{N: n, D: q, Data: p.dots.Data[:(n+kernels.Lanes-1)/kernels.Lanes*kernels.Lanes*q]}
}

// Add makes candidate a of the last Try or Least a centre.
func (p *Part) Add(a int) {
	q := len(p.rows) / p.points.D
	p.centres++
	s := p.screening
	byBounds := s != nil && !s.whole
	task := func(i int) {
		if byBounds {
			p.addByBounds(i, a)
		} else {
			lo, hi := p.chunk(i)
			p.take(p.nearest[lo:hi], lo, q, a)
		}
		p.potential[i] = p.tried[i*q+a]
	}
	if byBounds { // few records
		inOrder(p.chunks(), task)
	} else {
		p.each(p.chunks(), task)
	}
	if s != nil {
		s.begun, s.stale = true, s.stale || s.whole
	}
}

// findGroup is the number of records whose squared distances [Part.find] adds up before it goes on.
const findGroup = 8

// find returns the record at which the running sum of squared distances first
// exceeds x, at least 0 and below the potential.
func (p *Part) find(x float64) int {
	sum, at := 0.0, 0
	for at < len(p.potential)-1 && sum+p.potential[at] <= x {
		sum += p.potential[at]
		at++
	}
	lo, hi := p.chunk(at)
	for r := lo; r+findGroup <= hi; r += findGroup {
		more := p.groupSum(r)
		if sum+more > x {
			break
		}
		sum += more
		lo = r + findGroup
	}
	for r := lo; r < hi; r++ {
		if sum += p.weighted(r, p.nearest[r]); sum > x {
			return r
		}
	}
	// Sums over chunks and groups round otherwise.
	for hi--; hi > 0 && p.weighted(hi, p.nearest[hi]) == 0; hi-- {
	}
	return hi
}

// groupSum is the weighted sum of the squared distances of findGroup records from r on, added two by two, so that
// no addition waits for many.
func (p *Part) groupSum(r int) float64 {
	var x [findGroup]float64
	for i, v := range p.nearest[r : r+findGroup] {
		x[i] = float64(v)
	}
	if p.weights != nil {
		for i, w := range p.weights[r : r+findGroup] {
			x[i] = float64(x[i] * w)
		}
	}
	return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]))
}

// Trials is the number of records that a greedy step tries for k centres: the
// choice of Arthur and Vassilvitskii's own code.
func Trials(k int) int { return 2 + int(math.Log(float64(k))) }

// PlusPlus draws k centres from the records of all parts, row by row: the first by
// weight alone, each further one as the best of trials records drawn in proportion to
// weight and squared distance. uniform returns numbers in [0, 1). Every part needs room
// for the trials. The result depends neither on each nor on the instruction set.
func PlusPlus(parts []*Part, k, trials int, uniform func() float64) []float32 {
	d := parts[0].points.D
	centres := make([]float32, 0, k*d)
	weights, potentials := make([]float64, len(parts)), make([]float64, len(parts))
	whole := true
	for q, p := range parts {
		weights[q], potentials[q], whole = p.Weight(), p.Potential(), whole && p.weights == nil
	}
	if len(parts) == 1 {
		parts[0].Expect(k)
	}
	for len(centres) < k*d {
		var rows []float32
		var picks []Pick
		if len(parts) == 1 {
			picks = parts[0].Candidates(uniform)
		} else {
			picks = Picks(potentials, weights, whole, trials, uniform)
		}
		for _, pick := range picks {
			rows = append(rows, parts[pick.Party].Picked(pick)...)
		}
		var left []float64
		if len(parts) == 1 {
			left = parts[0].Least(rows)
		} else {
			for _, p := range parts {
				left = append(left, p.Try(rows)...)
			}
		}
		chosen := Best(left, potentials)
		for _, p := range parts {
			p.Add(chosen)
		}
		centres = append(centres, rows[chosen*d:(chosen+1)*d]...)
	}
	return centres
}
