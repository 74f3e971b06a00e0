package kernels

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// Screen tells, of the candidates of a step of k-means++, which points they may be nearer to than the centres so far,
// by products of small integers, those of the candidate filter (see there). Only the pairs that it names need the
// squared distances of [Potentials].
//
// Bound. Let r be what a point has, a float32, t its product with a candidate, X and C at least their lengths, q and p
// their squared lengths as float32, and u = 2^-24. [Potentials] computes D = max(0, round(round(q+p) - 2 t')), where
// the chain t' is within 1.01 d u X C + d 2^-149 of t. With h, w, a, b and o as for the filter, whose w holds with the
// half h of Assign, within 2.02 (d+1) u h of p/2, and |S - o - ab (h - t)| <= w:
//
//	round(q+p) - 2 t' >= q + 2 (S-o-w)/(ab) - 2 s,  s = 3 (d+1) 1.03 u (h + X C) + u X^2 + (d+1) 2^-146.
//
// So S >= o + ab (r-q)/2 + B with B = w + ab s leaves a number of at least r before the last rounding, which keeps
// order and r: the candidate is not nearer. In the same way D is within 2 B/(ab) of q + 2 (S-o)/(ab), but for its
// rounding.
type Screen struct {
	points  Panels
	centres *Centroids
	call    filterCall
	scale   float64   // of the candidates that the limits go with
	limits  []int32   // by point, the largest scores that need a product; below 0 where none does
	bounds  []float64 // B, by panel
	rows    []*Matrix // the candidates, one by one
}

// ScreenPair is a point that a candidate may be nearer to.
type ScreenPair struct {
	Point, Candidate int32
	Least, Most      float32 // the squared distance is between them
}

// screenLimit is more than any score, and less than the score of a candidate that is not there.
const screenLimit = 1<<31 - 1<<19

// belowScores is less than any score.
const belowScores = -1

// NewScreen makes a screen of points for so many candidates at a time, at most, and for k steps; nil where the path in
// use and the shape gain nothing from it. It takes half as much memory again as the points, none where they have
// integers of 16 bits for the filter: bytes leave so many pairs open that they gain nothing. each is as for
// [Panels.PrepareFilter].
func NewScreen(points Panels, candidates, k int, each func(n int, task func(i int))) *Screen {
	if points.N == 0 || !screenPays(points.D, k) {
		return nil
	}
	if each == nil {
		each = inOrder
	}
	if points.filter != nil && points.filter.group != 2 {
		points.filter, points.firstPanel = nil, 0
	}
	return newScreen(points, candidates, each)
}

// newScreen is NewScreen for every shape.
func newScreen(points Panels, candidates int, each func(n int, task func(i int))) *Screen {
	if points.filter == nil {
		groups := filterGroups()
		if len(groups) == 0 {
			return nil
		}
		if points.addFilter(groups[len(groups)-1], each); points.filter == nil {
			return nil
		}
	}
	s := &Screen{points: points, centres: NewCentroids(candidates, points.D)}
	if s.centres.PrepareFilter(&points); s.centres.filter == nil {
		return nil
	}
	panels := panelCount(points.N)
	s.limits, s.bounds = make([]int32, panels*Lanes), make([]float64, panels)
	for a := range candidates {
		s.rows = append(s.rows, NewMatrix(1, points.D, s.centres.Row(a)))
	}
	return s
}

// Set takes other candidates (row by row). fits is false where they have no integers; stale says that the limits
// of all points are to be set anew. It panics if there is none, or more than [NewScreen] was told.
func (s *Screen) Set(rows []float32) (fits, stale bool) {
	before, f, g := s.call, s.points.filter, s.centres.filter
	norm, rough, most := g.norm, g.rough, g.most
	if k := len(rows) / s.centres.D; k == 0 || k > len(s.rows) {
		panic(fmt.Sprintf("kernels: Screen.Set: %d candidates, want 1 to %d", k, len(s.rows)))
	}
	s.centres.resize(len(rows) / s.centres.D)
	s.centres.Set(rows)
	g.form.need(func() { g.set(s.centres) })
	for a := range s.centres.K {
		s.rows[a].set(s.centres.Row(a))
	}
	if g.norm <= norm && g.rough <= rough && g.most <= most && g.scale == s.scale && before.c != nil {
		g.norm, g.rough, g.most = norm, rough, most // bounds may be larger than they need
		s.call.begin(s.centres)
		return true, false
	}
	const room = 1 + 0x1p-8 // so that the next candidates do not need more again
	g.norm, g.rough = max(g.norm, norm, f.norm)*room, max(g.rough, rough, f.rough)*room
	g.most = max(g.most, most, g.norm*g.norm/2)
	s.scale = g.scale
	if s.call, fits = f.call(s.centres); !fits {
		s.call.c = nil
	}
	return fits, true
}

// Limit notes what the points from number first on, a multiple of [Lanes], have: their squared lengths, and the squared
// distances to the nearest centre.
func (s *Screen) Limit(first int, norms, nearest []float32) {
	limits := s.limits[first:]
	for i := len(nearest); i%Lanes > 0; i++ {
		limits[i] = belowScores
	}
	for i, r := range nearest {
		if i%Lanes == 0 {
			s.bounds[(first+i)/Lanes] = s.bound((first + i) / Lanes)
		}
		limits[i] = s.limit(first+i, norms[i], r)
	}
}

// bound is B for a panel.
func (s *Screen) bound(panel int) float64 {
	f, c, d := s.points.filter, &s.call, float64(s.points.D)
	b := f.panels[s.points.firstPanel+panel]
	x := float64(b[0])
	slack := 3*(d+1)*(0x1.08p-24*(c.c.most+x*c.c.norm)) + 0x1p-24*x*x + (d+1)*0x1p-146
	return (c.band(x, float64(b[1]))/2+slack*c.units)*filterUp + 2
}

// limit is the largest score that needs a product.
func (s *Screen) limit(point int, norm, r float32) int32 {
	if r <= 0 {
		return belowScores
	}
	t := s.call.offset + s.call.units*(float64(r)-float64(norm))/2 + s.bounds[point/Lanes]
	return int32(min(math.Ceil(max(t, 0)), screenLimit)) - 1
}

// Lowered notes that a point has less now.
func (s *Screen) Lowered(point int, norm, r float32) { s.limits[point] = s.limit(point, norm, r) }

// ScreenRoom is memory for [Screen.Scan].
type ScreenRoom struct{ scratch filterScratch }

// Scan gives take the pairs of the points from first, a multiple of [Lanes], to last with candidates that may be
// nearer, in the order of the points for each candidate; norms are their squared lengths.
func (s *Screen) Scan(first, last int, norms []float32, room *ScreenRoom, take func(ScreenPair)) {
	f, g := s.points.filter, s.call.c
	size := f.size() * Lanes
	lines := (size + lineBytes*g.tiles - 1) / (lineBytes * g.tiles) // of the next panel, for each tile
	scratch := &room.scratch
	for panel := first / Lanes; panel*Lanes < last; panel++ {
		x := &f.data[(s.points.firstPanel+panel)*size]
		next := uintptr(unsafe.Pointer(x)) + uintptr(size) // fetched, not read
		filterScores(&s.call, 1, x, 0, 0, g.tiles, next, lines, scratch)
		limits := (*[Lanes]int32)(s.limits[panel*Lanes:])
		*(*[Lanes]int32)(scratch.best[:]), *(*[Lanes]int32)(scratch.limit[:]) = *limits, *limits
		scratch.found = 0
		scratch.reserve(g.tiles * filterTile)
		found := scratch.candidates(g.tiles, 1, 0, 0, 0, math.MaxInt32)
		for i, e := range scratch.list[:found] {
			for m := e & 0xffff; m != 0; m &= m - 1 {
				l := bits.TrailingZeros64(m) & (Lanes - 1)
				take(s.pair(panel, l, int(e>>32), scratch.kept[i][l], norms[panel*Lanes+l-first]))
			}
		}
	}
}

// pair is what a score tells of a point and a candidate.
func (s *Screen) pair(panel, lane, a int, score int32, norm float32) ScreenPair {
	const up = 1 + 0x1p-20 // roundings of this and of the squared distance
	middle := float64(norm) + 2*(float64(score)-s.call.offset)/s.call.units
	off := 2 * s.bounds[panel] / s.call.units * filterUp
	return ScreenPair{Point: int32(panel*Lanes + lane), Candidate: int32(a),
		Least: float32(max(0, middle-off) / up), Most: float32(max(0, middle+off)*up) + math.SmallestNonzeroFloat32}
}

// Products writes the products of a candidate with the points that which names, in rising order: those of [Project],
// bit for bit. A panel that has one of them is read whole, as it comes in lines of memory that all its points share.
func (s *Screen) Products(candidate int, which []int32, products []float32) {
	p := &s.points
	var out [Lanes]float32
	panel := -1
	for i, at := range which {
		if to := int(at) / Lanes; to != panel {
			panel = to
			part := Panels{N: min(Lanes, p.N-to*Lanes), D: p.D, Data: p.Data[to*Lanes*p.D : (to+1)*Lanes*p.D]}
			project(&part, s.rows[candidate], &Panels{N: part.N, D: 1, Data: out[:]})
		}
		products[i] = out[at%Lanes]
	}
}
