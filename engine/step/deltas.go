package step

import (
	"math"

	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/kernels"
)

// Deltas lets a round of nearest assignment go on from the one before: only records whose
// label changes are taken from one sum to another, and blocks of records that
// cannot have changed, as the centroids have not moved far enough since the
// distances were last measured, are not looked at (after Hamerly, Making k-means
// even faster, SDM 2010). What comes out is the same, bit for bit. A nil *Deltas
// makes every round begin anew.
type Deltas struct {
	points  kernels.Panels
	centres *kernels.Centroids
	grid    []float32 // the centroids, as the caller keeps them
	labels  []uint16
	rounds  int

	mode Mode
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
	workers []workerDeltas
	sample  []uint16
	recent  float64 // the travel of the last round
	share   float64 // of the records that changed labels in the round before; -1: not known

	// Measurements that settled too little are followed by rounds without one:
	// those left of the present wait, and the length of the next.
	wait, next int
	measured   bool // the round before measured
}

// Mode is what a round makes of the round before.
type Mode int

// The modes.
const (
	Anew     Mode = iota // it begins anew
	Carried              // it goes on from the round before
	Measured             // it goes on, and measures how far centroids may move
)

// workerDeltas is one worker's memory, on a cache line of its own.
type workerDeltas struct {
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
	// change their labels, and marginBlocks that of those that show whether a measurement would spare any.
	sampleBlocks = 4
	marginBlocks = 8
	// calmShare is the share of the records, as 1/calmShare, that may change labels
	// in a round worth measuring, and settledShare the share that a measurement has
	// to spare the next round.
	calmShare    = 256
	settledShare = 8
)

// DeltaShape is what decides whether rounds gain from the ones before.
type DeltaShape struct {
	// Records is the public number of records of all parties.
	Records, Rounds int
	// Radius says that records beyond a radius are left out of the sums.
	Radius  bool
	Workers int
}

// NewDeltas returns nil where a round gains nothing from the one before: few
// rounds, few records, or distances that have no bounds. grid has the centroids of
// the round, centres the same for the kernels; labels are kept here, nil for new
// ones.
func NewDeltas(points kernels.Panels, centres *kernels.Centroids, grid []float32, labels []uint16,
	s DeltaShape) *Deltas {
	if s.Rounds < 3 || points.D >= ChainDims || s.Records*centres.K*points.D < leastTracked {
		return nil
	}
	blocks := (points.N + kernels.BoundPoints - 1) / kernels.BoundPoints
	h := &Deltas{points: points, centres: centres, grid: grid, labels: labels, rounds: s.Rounds,
		last: make([]float32, len(grid)), until: make([]float64, blocks),
		workers: make([]workerDeltas, s.Workers), sample: make([]uint16, kernels.BoundPoints), share: -1, next: 1}
	if s.Radius {
		h.reach = make([]float64, blocks)
	}
	if labels == nil {
		h.labels = NewLabels(points.N)
	}
	for i := range h.workers {
		h.workers[i].bounds = make([]kernels.Bound, runPoints/kernels.BoundPoints)
	}
	return h
}

// Labels are those of the round before, and of the present one as far as it is done.
func (h *Deltas) Labels() []uint16 { return h.labels }

// ChainDims is the number of dimensions from which kernels.Assign computes
// distances by |c|^2 - 2x.c, which cancel, instead of the sum of (x-c)^2.
const ChainDims = 16

// NewLabels returns n labels whose pages are there already, so that no round waits
// for them.
func NewLabels(n int) []uint16 {
	const page = 4096 / 2
	labels := make([]uint16, n)
	for at := 0; at < n; at += page {
		labels[at] = 0
	}
	return labels
}

// Mode is that of the round that began last.
func (h *Deltas) Mode() Mode { return h.mode }

// Forget makes the next round begin anew.
func (h *Deltas) Forget() { h.valid = false }

// Carries reports whether the round goes on from the one before.
func (h *Deltas) Carries() bool { return h != nil && h.mode >= Carried }

// Begin chooses what round t makes of the round before, and returns the number of
// records that it has to look at. near is the squared radius.
func (h *Deltas) Begin(t int, near float32) int {
	if h == nil {
		return math.MaxInt
	}
	h.near = math.Sqrt(float64(near)) * (1 - 0x1p-17)
	for i := range h.workers {
		h.workers[i].moved = 0
	}
	n := h.points.N
	left := n
	if h.valid {
		h.move()
		left = h.Left()
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
	k, d := float64(h.centres.K), float64(h.centres.D)
	switch {
	case !h.valid || h.share > min(1./8, k*d/(50*(d+3))):
		h.mode, h.share, h.travel = Anew, -1, 0
		for b := range h.until {
			h.until[b] = -1
		}
		return n
	case h.share*calmShare > 1 || h.wait > 0 || t+1 >= h.rounds || !h.wide():
		h.mode = Carried
		h.wait = max(h.wait-1, 0)
	default:
		h.mode, h.measured = Measured, true
	}
	return left
}

// move adds the largest two movements of centroids to the travel, rounded up.
func (h *Deltas) move() {
	d := h.centres.D
	most, second := 0.0, 0.0
	for j := range h.centres.K {
		sum := elementary.SquaredDistance(h.grid[j*d:(j+1)*d], h.last[j*d:])
		most, second = max(most, sum), max(second, min(most, sum))
	}
	h.recent = (math.Sqrt(most) + math.Sqrt(second)) * (1 + 0x1p-40)
	h.travel += h.recent
}

// wide reports whether any of a few blocks would be left out of the next round if it were measured and centroids moved
// on by a quarter of their last way: the first ways, from the start to the clusters, are far longer than those after.
func (h *Deltas) wide() bool {
	blocks := len(h.until)
	for q := range min(marginBlocks, blocks) {
		lo := blocks * q / min(marginBlocks, blocks) * kernels.BoundPoints
		hi := min(lo+kernels.BoundPoints, h.points.N)
		bound := h.workers[0].bounds[:1]
		if kernels.MeasureBounds(h.points.Slice(lo, hi), h.centres, bound); 4*bound[0].Margin > h.recent {
			return true
		}
	}
	return false
}

// changing estimates the share of the records whose label changes, from a few
// blocks.
func (h *Deltas) changing(near float32) float64 {
	changed, looked, blocks := 0, 0, len(h.until)
	for q := range min(sampleBlocks, blocks) {
		lo := blocks * q / sampleBlocks * kernels.BoundPoints
		hi := min(lo+kernels.BoundPoints, h.points.N)
		kernels.AssignRadius(h.points.Slice(lo, hi), h.centres, near, h.sample[:hi-lo], nil)
		for l, label := range h.labels[lo:hi] {
			if label != h.sample[l] {
				changed++
			}
		}
		looked += hi - lo
	}
	return float64(changed) / float64(max(looked, 1))
}

// Left is the number of records in blocks that are not settled.
func (h *Deltas) Left() int {
	left, n := 0, h.points.N
	for lo := 0; lo < n; {
		from, to := h.Unsettled(lo, n)
		left += to - from
		lo = to
	}
	return left
}

// Unsettled returns the first run [from, to) of records in [lo, hi) that have to be
// looked at, an empty one at hi if there is none. lo is a multiple of
// kernels.BoundPoints.
func (h *Deltas) Unsettled(lo, hi int) (from, to int) {
	b, end := lo/kernels.BoundPoints, (hi+kernels.BoundPoints-1)/kernels.BoundPoints
	for b < end && h.settled(b) {
		b++
	}
	from = min(b*kernels.BoundPoints, hi)
	for end = min(end, b+runPoints/kernels.BoundPoints); b < end && !h.settled(b); b++ {
	}
	return from, min(b*kernels.BoundPoints, hi)
}

func (h *Deltas) settled(block int) bool {
	return h.travel <= h.until[block] && (h.reach == nil || h.reach[block]+h.travel <= h.near)
}

// Bounds is a worker's memory for the bounds of n records, nil if the round does
// not measure.
func (h *Deltas) Bounds(worker, n int) []kernels.Bound {
	if h.mode != Measured {
		return nil
	}
	return h.workers[worker].bounds[:(n+kernels.BoundPoints-1)/kernels.BoundPoints]
}

// Note keeps what reassigning records [from, to) has shown.
func (h *Deltas) Note(worker, from, to, moved int) {
	w := &h.workers[worker]
	w.moved += moved
	first := from / kernels.BoundPoints
	bounds := h.Bounds(worker, to-from)
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

// End closes a round.
func (h *Deltas) End() {
	if h == nil {
		return
	}
	copy(h.last, h.grid)
	h.valid = true
	if h.Carries() {
		moved := 0
		for i := range h.workers {
			moved += h.workers[i].moved
		}
		h.share = float64(moved) / float64(max(h.points.N, 1))
	}
}
