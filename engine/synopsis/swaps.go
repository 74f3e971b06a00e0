package synopsis

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// swaps improves a state by swaps: a point drawn by D^2 replaces the centre whose
// removal then costs least, some Lloyd steps follow, and what is better stays. A swap
// looks only at what it may change: by the triangle inequality, a point at most r from
// its centre does not go to a centre at least 2r from that one. In a Lloyd step only
// those centres move whose points have changed.
type swaps struct {
	s *descent // the state

	// Of the state: the points, cluster by cluster, and where each cluster's begin.
	members, begin []int32
	// radius and reach are, by cluster, at least the distances of its members from their
	// nearest and second nearest centre, and removal is what its removal costs.
	radius, reach, removal []float64
	upTo                   []float64 // [n+1], running sums of weight times squared distance
	middles                *kernels.Panels
	tried                  []bool // points whose swap is not better

	// The state after the swap, which differs at the centres moved, and at most at the
	// points looked at.
	centers []float32
	moved   []int32
	labels  []uint16
	dist    []float32
	loss    float64
	looked  []int32

	found, all []int32                    // points to look at, and all of them
	touched    []bool                     // clusters whose members are looked at
	prepare    map[int]*kernels.Centroids // by number of centres
	rows       []float32                  // of the centres to compare with
	gaps       []float32                  // by centre, the squared distance to the nearest of them
	which      []uint16
	points     *kernels.Panels // room for the points looked at,
	near       []uint16        // the nearest of the centres in rows,
	far        []float32       // the squared distance from it,
	own        [2][]float32    // from their nearest and second nearest before,
	weights    []float64       // and their weights
	lost       []int32         // points whose nearest centre is any
	row        []int32         // by centre: its place in moved, or -1
	sums       []float64       // of centres that moved, as rows of kernels.AddMembers
	cost       *kernels.Exchanges
	rough      *descent // the same swap on all points, nil for more than roughMost centres
}

func newSwaps(s *descent) *swaps {
	n, k, d := s.n, s.k, s.d
	w := &swaps{s: s, members: make([]int32, n), begin: make([]int32, k+1), radius: make([]float64, k),
		tried: make([]bool, n), reach: make([]float64, k), removal: make([]float64, k), upTo: make([]float64, n+1),
		middles: kernels.NewPanels(k, d), centers: make([]float32, k*d), labels: make([]uint16, n),
		dist: make([]float32, n), found: make([]int32, 0, n), gaps: make([]float32, k), which: make([]uint16, k),
		points: kernels.NewPanels(n, d), near: make([]uint16, n), far: make([]float32, n),
		own: [2][]float32{make([]float32, n), make([]float32, n)}, weights: make([]float64, n),
		row: make([]int32, k), touched: make([]bool, k), looked: make([]int32, 0, n), all: make([]int32, n),
		prepare: map[int]*kernels.Centroids{}, sums: make([]float64, k*s.weighted.Width()),
		cost: kernels.NewExchanges(k)}
	for i := range w.all {
		w.all[i] = int32(i)
	}
	if k <= roughMost {
		w.rough = s.newDescent(k)
	}
	s.assign(true)
	w.settle()
	return w
}

// slack bounds by how much a squared distance, or the difference of two that are
// compared, may be off: distances are chains of d rounded terms with a relative error
// below (d+3) 2^-24, and from 16 dimensions on they are products, off by that of
// squared lengths of points and centres, which are at most d each.
func (s *descent) slack() float64 { return math.Ldexp(float64(4*s.d*(s.d+8)), -22) }

// settle takes what the swaps need to know of the state, once its labels and distances are there.
func (w *swaps) settle() {
	s := w.s
	copy(w.centers, s.centers)
	copy(w.labels, s.labels)
	copy(w.dist, s.dist)
	w.looked = w.looked[:0]
	kernels.Pack(w.middles, s.centers)
	clear(w.begin)
	clear(w.radius)
	clear(w.reach)
	clear(w.removal)
	clear(w.tried)
	for i, j := range s.labels {
		near, next, weight := float64(s.dist[i]), float64(s.second[i]), s.weights[i]
		w.begin[j+1]++
		w.radius[j] = max(w.radius[j], near)
		w.reach[j] = max(w.reach[j], next)
		w.removal[j] += float64(weight * (next - near))
		w.upTo[i+1] = w.upTo[i] + float64(weight*near)
	}
	at := make([]int32, s.k)
	for j := range s.k {
		at[j] = w.begin[j]
		w.begin[j+1] += w.begin[j]
		w.radius[j] = math.Sqrt(w.radius[j] + s.slack())
		w.reach[j] = math.Sqrt(w.reach[j] + s.slack())
	}
	for i, j := range s.labels {
		w.members[at[j]] = int32(i)
		at[j]++
	}
}

// of are the members of a cluster.
func (w *swaps) of(j int) []int32 { return w.members[w.begin[j]:w.begin[j+1]] }

// try makes one swap with some Lloyd steps, and reports whether the state is better. Of a point that was drawn before
// in the same state it is known.
func (w *swaps) try(steps int, src Source) bool {
	s, point := w.s, draw(w.upTo, src)
	if w.tried[point] {
		return false
	}
	w.tried[point] = true
	row := s.row(point)
	out := w.cheapest(row)
	copy(w.centers, s.centers)
	copy(w.centers[out*s.d:], row)
	w.moved = append(w.moved[:0], int32(out))
	if w.hopeless(out, steps) {
		return false
	}
	for range steps {
		w.assign()
		w.update()
	}
	w.assign()
	return w.loss < s.loss
}

// A swap of few centres changes much of the whole, which is sooner gone through than told apart: with up to roughMost
// it is first made on all points. There sums have another order, so that what is not worse by more than a share
// roughly of the loss, above what rounding comes to and below what nearly all swaps lose, is made again.
const (
	roughMost = 16
	roughly   = 1e-9
)

// hopeless tells whether putting the centre out where it is now, and some Lloyd steps, leave the state or make it
// worse.
func (w *swaps) hopeless(out, steps int) bool {
	s, t := w.s, w.rough
	if t == nil {
		return false
	}
	copy(t.centers, w.centers)
	clear(w.touched) // those that have moved
	w.touched[out] = true
	for range steps {
		t.assign(false)
		for i, before := range s.labels {
			after := t.labels[i]
			if before == after || w.touched[before] && w.touched[after] {
				continue
			}
			w.touched[before], w.touched[after] = true, true
			if !slices.Contains(w.touched, false) {
				break
			}
		}
		for j, moved := range w.touched {
			if weight := t.acc.Weights[j]; moved && weight > 0 {
				for h := j * s.d; h < (j+1)*s.d; h++ {
					t.centers[h] = toGrid(t.acc.Sums[h] / weight)
				}
			}
		}
	}
	if slices.Equal(t.centers, s.centers) {
		return true
	}
	t.prepared.Set(t.centers)
	kernels.Assign(*s.panels, t.prepared, t.labels, t.dist)
	return kernels.WeightedCost(s.weights, t.dist) > float64((1+roughly)*s.loss)
}

// keep makes the state after the swap the state, but for the sums of its last assignment. Points whose nearest and
// second nearest centres stay, and are nearer than where any centre was or is that moved, have what they had.
func (w *swaps) keep() {
	s, d, slack := w.s, w.s.d, w.s.slack()
	w.rows = w.rows[:0]
	for _, j := range w.moved {
		at, end := int(j)*d, int(j+1)*d
		w.rows = append(append(w.rows, s.centers[at:end]...), w.centers[at:end]...)
	}
	for j := range w.row {
		w.row[j] = -1
	}
	for at, j := range w.moved {
		w.row[j] = int32(at)
	}
	copy(s.centers, w.centers)
	if !w.touch(w.prepared(), func(j int, gap float64) bool { return w.row[j] >= 0 || w.reaches(j, gap, slack) }) {
		s.assign(true)
		w.settle()
		return
	}
	n, next := len(w.found), w.own[0]
	s.prepared.Set(s.centers)
	kernels.Assign2(kernels.Gather(w.points, s.panels, w.found), s.prepared, w.near[:n], w.far[:n], next[:n])
	for at, i := range w.found {
		s.labels[i], s.dist[i], s.second[i] = w.near[at], w.far[at], next[at]
	}
	s.loss = kernels.WeightedCost(s.weights, s.dist)
	w.settle()
}

// reaches says whether a centre that is gap from cluster j's may be nearer to one of its members than their second
// nearest: a member is at least own = gap - radius from it, and at most reach from its second nearest.
func (w *swaps) reaches(j int, gap, slack float64) bool {
	own, next := gap-w.radius[j], w.reach[j]
	return own <= next || float64((own-next)*(own+next)) <= slack
}

// prepared are the centres in rows as the kernels read them; the first fills up to one of a few
// numbers, an eighth more at most.
func (w *swaps) prepared() *kernels.Centroids {
	d, count := w.s.d, len(w.rows)/w.s.d
	step := max(1<<bits.Len(uint(count-1))/16, 1)
	count = min((count+step-1)/step*step, math.MaxUint16)
	c := w.prepare[count]
	if c == nil {
		c = kernels.NewCentroids(count, d)
		w.prepare[count] = c
	}
	for len(w.rows) < d*count {
		w.rows = append(w.rows, w.rows[:d]...)
	}
	c.Set(w.rows)
	return c
}

// touch finds the members of all clusters that the centres c touch, given how far from the nearest of them a cluster's
// centre is. It reports false where they are more than half of the points, which takes longer to gather.
func (w *swaps) touch(c *kernels.Centroids, touch func(j int, gap float64) bool) bool {
	kernels.Assign(*w.middles, c, w.which, w.gaps)
	w.found = w.found[:0]
	for j, gap := range w.gaps {
		w.touched[j] = touch(j, math.Sqrt(float64(gap)))
		if w.touched[j] {
			w.found = append(w.found, w.of(j)...)
		}
	}
	return len(w.found) <= w.s.n/2
}

// look finds the nearest of the centres in rows for the members of all clusters that they touch, or all points.
func (w *swaps) look(touch func(j int, gap float64) bool) {
	c := w.prepared()
	points, n := *w.s.panels, w.s.n
	if !w.touch(c, touch) {
		copy(w.found[:n], w.all)
		w.found = w.found[:n]
	} else {
		points, n = kernels.Gather(w.points, &points, w.found), len(w.found)
	}
	kernels.Assign(points, c, w.near[:n], w.far[:n])
}

// cheapest is the centre whose removal costs least once there is one more at row.
func (w *swaps) cheapest(row []float32) int {
	s, slack := w.s, w.s.slack()
	w.rows = append(w.rows[:0], row...)
	w.look(func(j int, gap float64) bool { return w.reaches(j, gap, slack) })
	n := len(w.found)
	near, own, second, weights := s.labels, s.dist, s.second, s.weights
	if n < s.n {
		near, own, second, weights = w.near[:n], w.own[0][:n], w.own[1][:n], w.weights[:n]
		for at, i := range w.found {
			near[at], own[at], second[at], weights[at] = s.labels[i], s.dist[i], s.second[i], s.weights[i]
		}
	}
	w.cost.Reset()
	kernels.Exchange(w.far[:n], own, second, near, weights, w.cost)
	out, least := 0, math.Inf(1)
	for j, gain := range w.removal {
		if w.touched[j] {
			gain = w.cost.Gains[j]
		}
		if gain < least {
			out, least = j, gain
		}
	}
	return out
}

// assign finds the nearest centres, and the loss, after some have moved.
func (w *swaps) assign() {
	s, d, slack := w.s, w.s.d, w.s.slack()
	if len(w.looked) == s.n {
		copy(w.labels, s.labels)
		copy(w.dist, s.dist)
	} else {
		for _, i := range w.looked {
			w.labels[i], w.dist[i] = s.labels[i], s.dist[i]
		}
	}
	w.rows = w.rows[:0]
	for j := range w.row {
		w.row[j] = -1
	}
	for at, j := range w.moved {
		w.rows = append(w.rows, w.centers[int(j)*d:int(j+1)*d]...)
		w.row[j] = int32(at)
	}
	w.look(func(j int, gap float64) bool {
		// A member is at least gap - radius from a centre that moved: its squares differ
		// by at least gap (gap - 2 radius).
		return w.row[j] >= 0 || float64(gap*(gap-2*w.radius[j])) <= slack
	})
	w.looked, w.found = w.found, w.looked
	w.loss = w.take()
}

// take sets the labels, distances and loss of the points looked at, and returns the loss of all.
func (w *swaps) take() float64 {
	s := w.s
	w.lost = w.lost[:0]
	loss, labels, dist, weights := s.loss, s.labels, s.dist, s.weights
	far, near := w.far[:len(w.looked)], w.near[:len(w.looked)]
	for at, i := range w.looked {
		j, x := labels[i], far[at]
		switch {
		case w.row[j] < 0:
			if x >= dist[i] {
				continue
			}
		case x > s.second[i]:
			w.lost = append(w.lost, i)
			continue
		}
		w.labels[i], w.dist[i] = uint16(w.moved[near[at]]), x
		loss += float64(weights[i] * (float64(x) - float64(dist[i])))
	}
	if len(w.lost) == 0 {
		return loss
	}
	n := len(w.lost)
	s.prepared.Set(w.centers)
	kernels.Assign(kernels.Gather(w.points, s.panels, w.lost), s.prepared, w.near[:n], w.far[:n])
	for at, i := range w.lost {
		w.labels[i], w.dist[i] = w.near[at], w.far[at]
		loss += float64(weights[i] * (float64(w.far[at]) - float64(dist[i])))
	}
	return loss
}

// update moves the centres whose points have changed to the weighted means of their
// points. One without weight stays.
func (w *swaps) update() {
	s, d := w.s, w.s.d
	add := func(j uint16) {
		if w.row[j] < 0 {
			w.row[j] = int32(len(w.moved))
			w.moved = append(w.moved, int32(j))
		}
	}
	for _, i := range w.looked {
		if w.labels[i] != s.labels[i] {
			add(s.labels[i])
			add(w.labels[i])
		}
	}
	width := s.weighted.Width()
	w.found = w.found[:0]
	for _, j := range w.moved { // whose members no other centre has gained
		w.found = append(w.found, w.of(int(j))...)
		clear(w.sums[int(j)*width:][:width])
	}
	kernels.AddMembers(s.weighted, w.found, w.labels, w.sums)
	for _, j := range w.moved {
		if sum := w.sums[int(j)*width:][:d+1]; sum[d] > 0 {
			for h := range d {
				w.centers[int(j)*d+h] = toGrid(sum[h] / sum[d])
			}
		}
	}
}
