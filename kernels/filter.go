package kernels

import "math"

// The candidate filter ranks centroids by 16-bit integer products, twice as many
// of which fit an instruction as of float32, and leaves to the exact chain of
// [Assign] only what the ranking cannot tell. Labels are the same, bit for bit.
//
// Bound. Let x be a point, c a centroid, h = |c|^2/2 as Assign has it, and s the
// chain that Assign compares. Points and centroids are rounded to integers,
// x = (u+e) 2^-a and c = (v+g) 2^-b with |e_j|, |g_j| <= 1/2, and the integer score is
//
//	S = round(h 2^(a+b) + o) - u.v,
//
// the same o for all centroids of a call. By Cauchy and Schwarz,
//
//	|x.c - u.v 2^-(a+b)| <= |e| 2^-a |c| + (|x| + |e| 2^-a) |g| 2^-b,
//
// the chain of d roundings with partial sums of at most h + |x||c| is within
// 1.01 d 2^-24 (h + |x||c|) + d 2^-149 of h - x.c, and the rounding of the first
// term of S, a float32 below 2^31 and then an integer, is below 129. Let w be the sum
// of the three for the largest |c|, |g| and h, in units of 2^-(a+b). If j has the least chain
// and i the least integer score, then S_j <= s_j+w <= s_i+w <= S_i+2w: so j is among
// the candidates, the centroids of score at most S_i + 2w. A point with one
// candidate has its label; of several, the chains decide.
//
// S needs 32 bits at the end only, as additions wrap: with o = |x|^2/2 for the
// longest x, S is between 0 and (|x|+|c|)^2/2, in units, but for w.

// filterPoints is the integer form of points, made once.
type filterPoints struct {
	data     []int16 // [panels][pairs][16][2], the dimensions in pairs
	pairs    int
	exponent int     // a: integers are coordinates times 2^exponent, rounded
	norm     float64 // at least the length of each point
	rough    float64 // at least the length of each point's error
	// panels has, for each panel, at least the lengths of its points and of their
	// errors.
	panels [][2]float32
}

// filterCentroids is the integer form of centroids, made by Set.
type filterCentroids struct {
	data     []int16   // [tiles][pairs][8][2], with the opposite sign
	half     []float32 // [tiles][8], +Inf past K
	tiles    int
	exponent int // b
	points   float64
	norm     float64 // at least the length of each centroid
	rough    float64 // at least the length of each centroid's error
	most     float64 // the largest half
}

const (
	filterTile = 8
	// filterRange bounds the length of a point in integers: the squares of two of
	// them fit 31 bits with some room.
	filterRange = 0.99 * (1 << 15)
	// filterExponent is the finest grid there is a use for.
	filterExponent = MaxFractionBits
	// filterUp makes an upper bound of a length that was computed in float64.
	filterUp = 1 + 0x1p-20
)

// exponentFor returns the largest exponent at which a vector of d coordinates
// and the given length is in range, rounding included.
func exponentFor(norm float64, d int) int {
	room := (filterRange - math.Sqrt(float64(d))/2) / filterUp
	if !(norm*0x1p-14 <= room) { // too long, or not a number
		return -1
	}
	exponent := filterExponent
	for math.Ldexp(norm, exponent) > room {
		exponent--
	}
	return exponent
}

// PrepareFilter adds to points the integers that let [Assign] and the kernels that
// contain it rank centroids, where the path in use and the shape, for k centroids,
// gain from that; half as much memory again. Call it once the points are there,
// and [Centroids.PrepareFilter] before the centroids are set. each runs n tasks,
// perhaps at the same time; nil runs them in order. The results of kernels do not
// depend on it.
func (p *Panels) PrepareFilter(k int, each func(n int, task func(i int))) {
	p.filter = nil
	if filterPays(p.D, k) {
		p.addFilter(each)
	}
}

// Filtered reports whether the points have the integers of the candidate filter.
func (p *Panels) Filtered() bool { return p.filter != nil }

// addFilter is PrepareFilter for every shape.
func (p *Panels) addFilter(each func(n int, task func(i int))) {
	if each == nil {
		each = func(n int, task func(i int)) {
			for i := range n {
				task(i)
			}
		}
	}
	panels := panelCount(p.N)
	tasks := (panels + filterTaskPanels - 1) / filterTaskPanels
	norms := make([]float64, tasks)
	each(tasks, func(i int) {
		for at := i * filterTaskPanels; at < min((i+1)*filterTaskPanels, panels); at++ {
			norms[i] = max(norms[i], longest(p.Data[at*Lanes*p.D:(at+1)*Lanes*p.D]))
		}
	})
	f := &filterPoints{pairs: (p.D + 1) / 2}
	for _, x := range norms {
		f.norm = max(f.norm, x)
	}
	f.norm *= filterUp
	f.exponent = exponentFor(f.norm, p.D)
	if f.exponent < 0 {
		return
	}
	f.data = aligned[int16](panels * f.pairs * 2 * Lanes)
	f.panels = make([][2]float32, panels)
	each(tasks, func(i int) {
		norms[i] = 0
		for at := i * filterTaskPanels; at < min((i+1)*filterTaskPanels, panels); at++ {
			norms[i] = max(norms[i], f.fill(p, at))
		}
	})
	for _, x := range norms {
		f.rough = max(f.rough, x)
	}
	p.filter = f
}

// filterTaskPanels is the number of panels that a task prepares.
const filterTaskPanels = 64

// longest returns the greatest length of the points of a panel.
func longest(panel []float32) float64 {
	var squares [Lanes]float64
	for ; len(panel) > 0; panel = panel[Lanes:] {
		for l, x := range panel[:Lanes] {
			squares[l] += float64(float64(x) * float64(x))
		}
	}
	most := 0.0
	for _, s := range squares {
		most = max(most, s) // also keeps a NaN
	}
	return math.Sqrt(most)
}

// fill rounds panel at and returns the length of its longest error.
func (f *filterPoints) fill(p *Panels, at int) float64 {
	d := p.D
	panel := p.Data[at*Lanes*d : (at+1)*Lanes*d]
	to := f.data[at*f.pairs*2*Lanes : (at+1)*f.pairs*2*Lanes]
	up, down := float32(math.Ldexp(1, f.exponent)), math.Ldexp(1, -f.exponent)
	var squares [Lanes]float64
	for j := range d {
		from := panel[j*Lanes : (j+1)*Lanes]
		row := to[j/2*2*Lanes : (j/2+1)*2*Lanes]
		for l, x := range from {
			q := nearest16(x * up)
			row[2*l+j%2] = int16(q)
			e := float64(x) - float64(q)*down
			squares[l] += float64(e * e)
		}
	}
	rough := 0.0
	for _, s := range squares {
		rough = max(rough, s)
	}
	rough = math.Sqrt(rough) * filterUp
	f.panels[at] = [2]float32{upper32(longest(panel)), upper32(rough)}
	return rough
}

// nearest16 rounds x, below 2^15 in magnitude, to the nearest integer, ties to even.
func nearest16(x float32) float32 {
	const shift = 3 << 22
	return (x + shift) - shift
}

// upper32 returns a float32 of at least x.
func upper32(x float64) float32 { return float32(x*filterUp) + math.SmallestNonzeroFloat32 }

// PrepareFilter makes room for the integer form of centroids that the filter of
// the points p compares; Set then fills it. Where p has no filter, it does
// nothing. For several sets of points, call it for each.
func (c *Centroids) PrepareFilter(p *Panels) {
	if p.filter == nil || c.D != p.D {
		return
	}
	if c.filter == nil {
		tiles := (c.K + filterTile - 1) / filterTile
		c.filter = &filterCentroids{tiles: tiles, half: alignedFloat32(tiles * filterTile),
			data: aligned[int16](tiles * filterTile * 2 * p.filter.pairs)}
	}
	c.filter.points = max(c.filter.points, p.filter.norm)
}

// set rounds the centroids.
func (f *filterCentroids) set(c *Centroids) {
	f.norm, f.most, f.rough = 0, 0, 0
	for i := range f.half {
		f.half[i] = float32(math.Inf(1))
	}
	copy(f.half, c.half)
	for i := range c.K {
		sum := 0.0
		for _, x := range c.Row(i) {
			sum += float64(float64(x) * float64(x))
		}
		f.norm, f.most = max(f.norm, sum), max(f.most, float64(c.half[i]))
	}
	f.norm = math.Sqrt(f.norm) * filterUp
	f.exponent = exponentFor(max(f.norm, f.points), c.D)
	if f.exponent < 0 {
		return
	}
	up, down := float32(math.Ldexp(1, f.exponent)), math.Ldexp(1, -f.exponent)
	words := 2 * ((c.D + 1) / 2) * filterTile // of a tile
	for i := range c.K {
		tile := f.data[i/filterTile*words:][:words]
		sum := 0.0
		for j, x := range c.Row(i) {
			q := nearest16(x * up)
			tile[j/2*2*filterTile+i%filterTile*2+j%2] = -int16(q)
			e := float64(x) - float64(q)*down
			sum += float64(e * e)
		}
		f.rough = max(f.rough, sum)
	}
	f.rough = math.Sqrt(f.rough) * filterUp
}

// filterCall is what a call of the filter needs of points and centroids together.
type filterCall struct {
	units  float64 // 2^(a+b)
	offset float64 // o
	d      int
	c      *filterCentroids
}

// call returns false where the integers would not fit.
func (f *filterPoints) call(c *Centroids) (filterCall, bool) {
	g := c.filter
	call := filterCall{units: math.Ldexp(1, f.exponent+g.exponent), d: c.D, c: g}
	widest := call.band(f.norm, f.rough)
	call.offset = f.norm*f.norm/2*call.units + widest
	top := (f.norm+g.norm)*(f.norm+g.norm)/2*call.units + 2*widest
	return call, g.exponent >= 0 && top <= 1<<31-1<<20
}

// band returns at least 2w for points of at most the given length, with errors of
// at most the given length.
func (c *filterCall) band(norm, rough float64) float64 {
	chain := float64(c.d) * (0x1.03p-24*(c.c.most+norm*c.c.norm) + 0x1p-149)
	w := rough*c.c.norm + (norm+rough)*c.c.rough + chain
	return math.Ceil(2*w*c.units*filterUp) + 260
}
