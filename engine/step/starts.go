package step

import "math"

// Init is the choice of the first centroids.
type Init string

// The initialisations that look at no data.
const (
	Sphere Init = "sphere"
	Random Init = "random"
)

// Source yields uniform numbers of [0, 1), multiples of 2^-53; privacy streams are
// sources.
type Source interface{ Float64() float64 }

// sphereRetries is the number of rejected candidates in a row after which a radius
// counts as too large.
const sphereRetries = 100

// spherePrecision is how close the search comes to the largest radius, as a ratio;
// for more than sphereMany centres, where a packing takes seconds, sphereRough.
const (
	spherePrecision = 1.01
	sphereMany      = 4096
	sphereRough     = 1.2
)

// SpherePacking returns k centres of [-1,1]^d, row-major, that are at least a
// away from every face of the box and at least 2a away from each other, for the
// largest radius a at which they find their places, to a hundredth (FastLloyd
// §5.2.1, Thesis-H §4.2.2): by bisection from what halving finds. Centres depend on r
// alone, never on data, so they cost no budget.
func SpherePacking(k, d int, r Source) []float64 {
	centres, fits := halve(k, d, r)
	trial, precision := make([]float64, len(centres)), spherePrecision
	if k > sphereMany {
		precision = sphereRough
	}
	for high := min(2*fits, 1); high > precision*fits; {
		if a := math.Sqrt(fits * high); pack(trial, k, d, a, r) {
			fits, centres, trial = a, trial, centres
		} else {
			high = a
		}
	}
	return centres
}

// HalvedPacking is SpherePacking with the search of the published figures, which
// starts from radius 1 and halves it until k centres find their places. A finer search
// changes where those figures start from.
func HalvedPacking(k, d int, r Source) []float64 {
	centres, _ := halve(k, d, r)
	return centres
}

// halve returns the packing of the first power of 1/2 at which all centres find
// their places, and that radius.
func halve(k, d int, r Source) (centres []float64, a float64) {
	centres = make([]float64, k*d)
	for a = 1; !pack(centres, k, d, a, r); {
		a /= 2
	}
	return centres, a
}

// pack draws k centres for radius a and reports whether all found a place.
func pack(centres []float64, k, d int, a float64, r Source) bool {
	g := newGrid(centres, k, d, a)
	retries := 0
	for g.placed < k {
		c := centres[g.placed*d : g.placed*d+d]
		for h := range c {
			c[h] = float64(r.Float64()*(2-2*a)) + (a - 1)
		}
		if g.clear(c) {
			g.place(c)
			retries = 0
			continue
		}
		if retries++; retries == sphereRetries {
			return false
		}
	}
	return true
}

const (
	// gridAxes is how many axes a grid cuts: beyond, its cells grow so wide that all are neighbours.
	gridAxes = 4
	// gridLeast is for how many centres it cuts any: fewer are looked at sooner than their cells.
	gridLeast = 16
)

// grid finds the centres of radius a near a candidate: it cuts the first axes of the box into cells at least 2a wide,
// so that whoever is nearer than 2a stands in the same cell or one beside it.
type grid struct {
	centres   []float64
	d, placed int
	apart     float64 // the square of 2a
	low, side float64
	axes      int
	cells     int     // along an axis
	first     []int32 // by cell: 1 + the last that was placed there
	next      []int32 // by centre: 1 + the one before it in its cell
}

func newGrid(centres []float64, k, d int, a float64) *grid {
	g := &grid{centres: centres, d: d, apart: 4 * a * a, low: a - 1}
	if k < gridLeast {
		return g
	}
	g.next = make([]int32, k)
	g.axes = min(d, gridAxes)
	most := math.Pow(float64(4*k), 1/float64(g.axes))
	g.cells = max(1, int(min((1-a)/a*(1-1e-9), most))) // a cell is wider than 2a by more than any rounding
	g.side = (2 - 2*a) / float64(g.cells)
	size := 1
	for range g.axes {
		size *= g.cells
	}
	g.first = make([]int32, size)
	return g
}

// along is a coordinate's cell on its axis.
func (g *grid) along(x float64) int {
	if g.cells == 1 { // a box of radius 1 is a point
		return 0
	}
	return min(g.cells-1, int((x-g.low)/g.side))
}

// place adds c, the row after those that are placed.
func (g *grid) place(c []float64) {
	if g.axes == 0 {
		g.placed++
		return
	}
	cell := 0
	for _, x := range c[:g.axes] {
		cell = cell*g.cells + g.along(x)
	}
	g.next[g.placed] = g.first[cell]
	g.placed++
	g.first[cell] = int32(g.placed)
}

// clear tells whether no centre is nearer to c than 2a.
func (g *grid) clear(c []float64) bool {
	if g.axes > 0 {
		return g.clearFrom(c, 0, 0)
	}
	rows := g.centres[:g.placed*g.d]
	if g.d == 2 { // nearer without its loops, which take three times as long
		x, y := c[0], c[1]
		for ; len(rows) >= 2; rows = rows[2:] {
			s, t := x-rows[0], y-rows[1]
			if float64(s*s)+float64(t*t) < g.apart {
				return false
			}
		}
		return true
	}
	for ; len(rows) > 0; rows = rows[g.d:] {
		if nearer(rows, c, g.apart) {
			return false
		}
	}
	return true
}

// clearFrom looks into the cells beside c's along the axes from axis on, in the given cell of those before: into c's
// own first, where who stands near is the likeliest.
func (g *grid) clearFrom(c []float64, axis, cell int) bool {
	if axis < g.axes {
		at := g.along(c[axis])
		for _, i := range [...]int{at, at - 1, at + 1} {
			if i >= 0 && i < g.cells && !g.clearFrom(c, axis+1, cell*g.cells+i) {
				return false
			}
		}
		return true
	}
	for i := g.first[cell]; i > 0; i = g.next[i-1] {
		if nearer(g.centres[int(i-1)*g.d:], c, g.apart) {
			return false
		}
	}
	return true
}

// nearer tells whether the squared distance between row and c is below apart. A sum of squares never falls, so that
// it ends once it is not, which is looked at now and then.
func nearer(row, c []float64, apart float64) bool {
	s := 0.0
	for len(c) > 8 && s < apart {
		s = squares(s, row[:8], c[:8])
		row, c = row[8:], c[8:]
	}
	return squares(s, row, c) < apart
}

// squares adds the squared distance between the first columns of row and c to s.
func squares(s float64, row, c []float64) float64 {
	row = row[:len(c)]
	for h, x := range c {
		t := x - row[h]
		s += float64(t * t)
	}
	return s
}

// RandomCentres returns k independent uniform points of [-1,1]^d, row-major
// (Thesis-H §4.2.2, random initialisation in the domain).
func RandomCentres(k, d int, r Source) []float64 {
	centres := make([]float64, k*d)
	for i := range centres {
		centres[i] = 2*r.Float64() - 1
	}
	return centres
}
