package horizontal

import (
	"math"

	"github.com/cohort-engine/cohort/kernels"
)

// history lets a round of nearest go on from the one before: only records whose
// label changes are taken from one sum to another, and blocks of records that
// cannot have changed, as the centroids have not moved far enough since the
// distances were last measured, are not looked at (after Hamerly, Making k-means
// even faster, SDM 2010). What comes out is the same, bit for bit. A nil history
// makes every round begin anew.
type history struct {
	c    *client
	mode carry
	// valid says that labels and sums are those of the round before.
	valid bool

	// travel is how far any two centroids together can have moved since a round began
	// anew.
	travel float64
	last   []float32 // centroids of the round before
	near   float64   // the radius of the round, a little shortened

	// until is, by block of records, the travel up to which its labels hold, -1 for
	// none.
	until []float64
	// reach plus the travel bounds the distance of a block's records from their
	// centroids; nil where there is no radius.
	reach   []float64
	workers []workerHistory
	sample  []uint16
	share   float64 // of the records that changed labels in the round before; -1: not known

	// Measurements that settled too little are followed by rounds without one:
	// those left of the present wait, and the length of the next.
	wait, next int
	measured   bool // the round before measured
}

// carry is what a round makes of the round before.
type carry int

const (
	begins   carry = iota // begins anew
	carries               // goes on from the round before
	measures              // goes on, and measures how far centroids may move
)

// workerHistory is one worker's memory, on a cache line of its own.
type workerHistory struct {
	bounds []kernels.Bound
	moved  int // records whose label changed in the round
	_      [32]byte
}

const (
	// leastTracked is the work of a round from which a history pays.
	leastTracked = 1 << 18
	// runPoints is the number of points that are reassigned at a time at most.
	runPoints = 1 << 14
	// sampleBlocks is the number of blocks that show how many records
	// change their labels.
	sampleBlocks = 4
	// calmShare is the share of the records, as 1/calmShare, that may change labels
	// in a round worth measuring, and settledShare the share that a measurement has
	// to spare the next round.
	calmShare    = 256
	settledShare = 8
)

// newHistory returns nil where a round gains nothing from the one before: few
// rounds, few records, or distances that have no bounds.
func newHistory(c *client) *history {
	if c.rounds < 3 || c.d >= chainDims || c.n*c.k*c.d < leastTracked {
		return nil
	}
	blocks := (c.points.N + kernels.BoundPoints - 1) / kernels.BoundPoints
	h := &history{c: c, last: make([]float32, c.k*c.d), until: make([]float64, blocks), workers: make([]workerHistory, c.party.Pool().Workers()),
		sample: make([]uint16, kernels.BoundPoints), share: -1, next: 1}
	if c.job.Algorithm == Relative {
		h.reach = make([]float64, blocks)
	}
	if c.labels == nil {
		c.labels = newLabels(c.points.N)
	}
	for i := range h.workers {
		h.workers[i].bounds = make([]kernels.Bound, runPoints/kernels.BoundPoints)
	}
	return h
}

// newLabels returns n labels whose pages are there already, so that no round waits
// for them.
func newLabels(n int) []uint16 {
	const page = 4096 / 2
	labels := make([]uint16, n)
	for at := 0; at < n; at += page {
		labels[at] = 0
	}
	return labels
}

// carries reports whether the round goes on from the one before.
func (h *history) carries() bool { return h != nil && h.mode >= carries }

// begin chooses what round t makes of the round before, and returns the number of
// records that it has to look at. near is the squared radius.
func (h *history) begin(t int, near float32) int {
	if h == nil {
		return math.MaxInt
	}
	h.near = math.Sqrt(float64(near)) * (1 - 0x1p-17)
	for i := range h.workers {
		h.workers[i].moved = 0
	}
	n := h.c.points.N
	left := n
	if h.valid {
		h.move()
		left = h.left()
		if h.measured && n-left < n/settledShare {
			h.wait, h.next = h.next, 2*h.next
		} else if h.measured {
			h.next = 1
		}
		if h.share < 0 {
			h.share = h.changing(near)
		}
	}
	h.measured = false
	// Taking a record from sum to sum costs about as much as summing this many.
	k, d := float64(h.c.k), float64(h.c.d)
	switch {
	case !h.valid || h.share > min(1./8, k*d/(50*(d+3))):
		h.mode, h.share, h.travel = begins, -1, 0
		for b := range h.until {
			h.until[b] = -1
		}
		return n
	case h.share*calmShare > 1 || h.wait > 0 || t+1 >= h.c.rounds:
		h.mode = carries
		h.wait = max(h.wait-1, 0)
	default:
		h.mode, h.measured = measures, true
	}
	return left
}

// move adds the largest two movements of centroids to the travel, rounded up.
func (h *history) move() {
	d := h.c.d
	most, second := 0.0, 0.0
	for j := range h.c.k {
		sum := 0.0
		for i := j * d; i < (j+1)*d; i++ {
			x := float64(h.c.grid[i]) - float64(h.last[i])
			sum += float64(x * x)
		}
		most, second = max(most, sum), max(second, min(most, sum))
	}
	h.travel += (math.Sqrt(most) + math.Sqrt(second)) * (1 + 0x1p-40)
}

// changing estimates the share of the records whose label changes, from a few
// blocks.
func (h *history) changing(near float32) float64 {
	c := h.c
	changed, looked, blocks := 0, 0, len(h.until)
	for q := range min(sampleBlocks, blocks) {
		lo := blocks * q / sampleBlocks * kernels.BoundPoints
		hi := min(lo+kernels.BoundPoints, c.points.N)
		kernels.AssignRadius(c.points.Slice(lo, hi), c.centres, near, h.sample[:hi-lo], nil)
		for l, label := range c.labels[lo:hi] {
			if label != h.sample[l] {
				changed++
			}
		}
		looked += hi - lo
	}
	return float64(changed) / float64(max(looked, 1))
}

// left is the number of records in blocks that are not settled.
func (h *history) left() int {
	left, n := 0, h.c.points.N
	for lo := 0; lo < n; {
		from, to := h.unsettled(lo, n)
		left += to - from
		lo = to
	}
	return left
}

// unsettled returns the first run [from, to) of records in [lo, hi) that have to be
// looked at, an empty one at hi if there is none. lo is a multiple of
// kernels.BoundPoints.
func (h *history) unsettled(lo, hi int) (from, to int) {
	b, end := lo/kernels.BoundPoints, (hi+kernels.BoundPoints-1)/kernels.BoundPoints
	for b < end && h.settled(b) {
		b++
	}
	from = min(b*kernels.BoundPoints, hi)
	for end = min(end, b+runPoints/kernels.BoundPoints); b < end && !h.settled(b); b++ {
	}
	return from, min(b*kernels.BoundPoints, hi)
}

func (h *history) settled(block int) bool {
	return h.travel <= h.until[block] && (h.reach == nil || h.reach[block]+h.travel <= h.near)
}

// bounds is a worker's memory for the bounds of n records, nil if the round does
// not measure.
func (h *history) bounds(worker, n int) []kernels.Bound {
	if h.mode != measures {
		return nil
	}
	return h.workers[worker].bounds[:(n+kernels.BoundPoints-1)/kernels.BoundPoints]
}

// note keeps what reassigning records [from, to) has shown.
func (h *history) note(worker, from, to, moved int) {
	w := &h.workers[worker]
	w.moved += moved
	first := from / kernels.BoundPoints
	bounds := h.bounds(worker, to-from)
	if bounds == nil {
		for b := first; b*kernels.BoundPoints < to; b++ {
			h.until[b] = -1
		}
		return
	}
	for i, b := range bounds {
		h.until[first+i] = -1
		if b.Margin > 0 {
			h.until[first+i] = h.travel + b.Margin
		}
		if h.reach != nil {
			h.reach[first+i] = b.Reach - h.travel
		}
	}
}

// end closes a round.
func (h *history) end() {
	if h == nil {
		return
	}
	copy(h.last, h.c.grid)
	h.valid = true
	if h.carries() {
		moved := 0
		for i := range h.workers {
			moved += h.workers[i].moved
		}
		h.share = float64(moved) / float64(max(h.c.points.N, 1))
	}
}
