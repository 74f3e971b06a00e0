// Package seeding draws first centres from records: greedy k-means++ (Arthur and
// Vassilvitskii, k-means++: the advantages of careful seeding, SODA 2007, section
// 2.2; the greedy form that tries several records a step is their section 4). It
// shows records, so it serves runs without privacy only.
package seeding

import (
	"math"

	"github.com/cohort-engine/cohort/kernels"
)

// Each runs task(0) to task(n-1), in any order and perhaps at the same time.
type Each func(n int, task func(i int))

// chunkPoints is the number of points whose distances are summed in one go. It is
// part of the result: sums are taken over chunks first.
const chunkPoints = 2048

// directDims is the number of dimensions from which squared distances come from
// products; below, they are sums of squares, which do not cancel.
const directDims = 16

// Part is what k-means++ knows of one party's records: the squared distance of
// each to the nearest centre so far.
type Part struct {
	points    kernels.Panels
	each      Each
	norms     []float32 // squared lengths; nil in few dimensions
	nearest   []float32
	potential []float64       // by chunk
	dots      *kernels.Panels // products of the points with the candidates; nil in few dimensions
	rows      []float32       // candidates of the last Try
	tried     []float64       // [chunks][candidates]
	squares   []float32       // of the candidates
}

// NewPart begins without a centre, for at most trials candidates at a time; points
// are shared. A nil each runs tasks in order.
func NewPart(points kernels.Panels, trials int, each Each) *Part {
	if each == nil {
		each = func(n int, task func(i int)) {
			for i := range n {
				task(i)
			}
		}
	}
	p := &Part{points: points, each: each, nearest: make([]float32, points.N)}
	p.potential = make([]float64, p.chunks())
	p.Forget()
	if points.D >= directDims {
		p.dots, p.norms = kernels.NewPanels(points.N, trials), make([]float32, points.N)
		p.each(p.chunks(), func(i int) {
			lo, hi := p.chunk(i)
			lengths(points.Slice(lo, hi), p.norms[lo:hi])
		})
	}
	return p
}

// Forget begins anew without a centre.
func (p *Part) Forget() {
	for i := range p.nearest {
		p.nearest[i] = float32(math.Inf(1))
	}
	clear(p.potential)
}

// Begin begins anew with these centres.
func (p *Part) Begin(centres *kernels.Centroids) {
	p.each(p.chunks(), func(i int) {
		lo, hi := p.chunk(i)
		points, labels := p.points.Slice(lo, hi), make([]uint16, hi-lo)
		kernels.Assign(points, centres, labels, nil)
		kernels.Distances(points, centres, labels, p.nearest[lo:hi])
		p.potential[i] = total(p.nearest[lo:hi])
	})
}

// Squares returns the sum of the squared lengths of the records.
func (p *Part) Squares() float64 {
	chunks := make([]float64, p.chunks())
	p.each(len(chunks), func(i int) {
		lo, hi := p.chunk(i)
		norms := make([]float32, hi-lo)
		lengths(p.points.Slice(lo, hi), norms)
		chunks[i] = total(norms)
	})
	sum := 0.0
	for _, x := range chunks {
		sum += x
	}
	return sum
}

func total(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v)
	}
	return sum
}

// lengths sets norms to the squared lengths of points.
func lengths(points kernels.Panels, norms []float32) {
	origin := kernels.NewCentroids(1, points.D)
	kernels.Distances(points, origin, make([]uint16, points.N), norms)
}

func (p *Part) chunks() int { return (p.points.N + chunkPoints - 1) / chunkPoints }

func (p *Part) chunk(i int) (lo, hi int) {
	return i * chunkPoints, min((i+1)*chunkPoints, p.points.N)
}

// Records returns the number of records.
func (p *Part) Records() int { return p.points.N }

// Record copies record i to dst.
func (p *Part) Record(i int, dst []float32) []float32 { return p.points.Point(i, dst) }

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
	d := p.points.D
	q := len(rows) / d
	p.rows = append(p.rows[:0], rows...)
	p.tried = make([]float64, p.chunks()*q)
	p.each(p.chunks(), p.trial(q))
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
	p.squares = make([]float32, q)
	for a := range q {
		for _, x := range p.rows[a*d : (a+1)*d] {
			p.squares[a] = float32(math.FMA(float64(x), float64(x), float64(p.squares[a])))
		}
	}
	dots := p.products(q)
	return func(i int) {
		lo, hi := p.chunk(i)
		part := dots.Slice(lo, hi)
		kernels.Project(p.points.Slice(lo, hi), m, part)
		kernels.Potentials(part, p.norms[lo:hi], p.nearest[lo:hi], p.squares, p.tried[i*q:(i+1)*q])
	}
}

// products is the room for products with q candidates.
func (p *Part) products(q int) kernels.Panels {
	n := p.points.N
	return kernels.Panels{N: n, D: q, Data: p.dots.Data[:(n+kernels.Lanes-1)/kernels.Lanes*kernels.Lanes*q]}
}

// Add makes candidate a of the last Try a centre.
func (p *Part) Add(a int) {
	d := p.points.D
	q := len(p.rows) / d
	p.each(p.chunks(), func(i int) {
		lo, hi := p.chunk(i)
		if d < directDims {
			kernels.Nearer(p.points.Slice(lo, hi), p.rows[a*d:(a+1)*d], p.nearest[lo:hi])
		} else {
			p.nearer(lo, hi, q, a)
		}
		p.potential[i] = p.tried[i*q+a]
	})
}

// nearer takes the records [lo, hi) to candidate a of q by their products.
func (p *Part) nearer(lo, hi, q, a int) {
	square := p.squares[a]
	for ; lo < hi; lo += kernels.Lanes {
		dots := (*[kernels.Lanes]float32)(p.dots.Data[lo*q+a*kernels.Lanes:])
		n := min(kernels.Lanes, hi-lo)
		norms, nearest := p.norms[lo:lo+n], p.nearest[lo:lo+n]
		for l, norm := range norms {
			// The product is exact, so that fused or not the result is the same.
			nearest[l] = min(nearest[l], max(0, norm+square-2*dots[l]))
		}
	}
}

// Find returns the record at which the running sum of squared distances first
// exceeds x, at least 0 and below the potential.
func (p *Part) Find(x float64) int {
	sum, last := 0.0, 0
	for i, more := range p.potential {
		if sum+more <= x && i < len(p.potential)-1 {
			sum += more
			continue
		}
		lo, hi := p.chunk(i)
		for r := lo; r < hi; r++ {
			if p.nearest[r] == 0 {
				continue
			}
			last = r
			if sum += float64(p.nearest[r]); sum > x {
				return r
			}
		}
		break
	}
	return last // sums over chunks round otherwise
}

// Trials is the number of records that a greedy step tries for k centres: the
// choice of Arthur and Vassilvitskii's own code.
func Trials(k int) int { return 2 + int(math.Log(float64(k))) }

// PlusPlus draws k centres from the records of all parts, row by row: the first
// uniformly, each further one as the best of trials records drawn in proportion to
// their squared distances. uniform returns numbers in [0, 1). Every part needs room
// for the trials. The result depends neither on each nor on the instruction set.
func PlusPlus(parts []*Part, k, trials int, uniform func() float64) []float32 {
	d, n := parts[0].points.D, 0
	for _, p := range parts {
		n += p.Records()
	}
	centres := make([]float32, 0, k*d)
	anyRecord := func(dst []float32) []float32 {
		i := min(int(float64(n)*uniform()), n-1)
		for _, p := range parts {
			if i < p.Records() {
				return append(dst, p.Record(i, nil)...)
			}
			i -= p.Records()
		}
		return dst
	}
	var rows []float32
	for len(centres) < k*d {
		rows = rows[:0]
		total := 0.0
		for _, p := range parts {
			total += p.Potential()
		}
		if len(centres) == 0 || total == 0 { // fewer distinct records than centres
			rows = anyRecord(rows)
		} else {
			for range trials {
				rows = append(rows, draw(parts, float64(uniform()*total))...)
			}
		}
		chosen := best(parts, rows)
		for _, p := range parts {
			p.Add(chosen)
		}
		centres = append(centres, rows[chosen*d:(chosen+1)*d]...)
	}
	return centres
}

// draw returns the record at which the running sum over all parts first exceeds x.
func draw(parts []*Part, x float64) []float32 {
	from := 0
	for q, p := range parts {
		share := p.Potential()
		if share == 0 {
			continue
		}
		from = q
		if x < share {
			break
		}
		x -= share
	}
	return parts[from].Record(parts[from].Find(x), nil)
}

// best tries candidates in all parts and returns the one that leaves the least
// potential, the first of several.
func best(parts []*Part, rows []float32) int {
	q := len(rows) / parts[0].points.D
	sums := make([]float64, q)
	for _, p := range parts {
		for a, x := range p.Try(rows) {
			sums[a] += x
		}
	}
	least := 0
	for a, x := range sums {
		if x < sums[least] {
			least = a
		}
	}
	return least
}
