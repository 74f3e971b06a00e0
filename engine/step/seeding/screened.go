package seeding

import (
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// A step of k-means++ asks only for the best of its candidates. Where a centre takes few records, products of small
// integers bound what each candidate leaves, and the sum is made for those alone that may leave the least: the same
// numbers as [Part.Try] has, so that the centres are the same.

// screening is what a part keeps for steps by bounds.
type screening struct {
	screen *kernels.Screen
	wait   int  // steps that are taken by Try, before the next one by bounds
	stale  bool // the screen's limits are older than the distances
	begun  bool // the potentials are sums as Try makes them
	back   bool // the last pass went through the chunks backwards, so that what the cache has comes first
	whole  bool // the last step was one of Try
	chunks []pairs
}

// pairs are the records of a chunk that candidates may be nearer to.
type pairs struct {
	near     [][]kernels.ScreenPair // by proposal, as the last pass found them
	which    [][]int32              // by candidate of the step, of those that were not ruled out
	products [][]float32            // likewise
	gains    []gain                 // by candidate of the step
}

// gain bounds by how much a candidate lowers the potential.
type gain struct{ least, most float64 }

const (
	// screenWait is the number of steps after which a candidate takes few enough records, about one of as many.
	screenWait = 20
	// screenDense is the share of the records, as 1/screenDense, in the pairs of a step beyond which Try is as fast.
	screenDense = 2
	// screenSlack covers the roundings of sums, relative to the potential.
	screenSlack = 1e-9
)

// Expect, after Weigh, says that Least will take some k steps, which lets them go by bounds where that pays.
func (p *Part) Expect(k int) {
	if p.weights == nil && p.points.D >= directDims {
		p.expected = k
	}
}

// restart notes that the centres are other ones, of which there are so many.
func (p *Part) restart(centres int) {
	p.centres, p.begunWith = centres, centres
	p.draws.forget()
	if s := p.screening; s != nil {
		s.wait, s.stale, s.begun, s.whole = max(0, screenWait-centres), true, false, true
	}
}

// bounded returns what steps by bounds keep, nil where they do not pay.
func (p *Part) bounded() *screening {
	if p.screening == nil && p.expected > 0 && !p.unscreened {
		if screen := kernels.NewScreen(p.points, max(p.trials, drawnMost), p.expected, p.each); screen != nil {
			p.screening = &screening{screen: screen, chunks: make([]pairs, p.chunks()), stale: true, whole: true,
				wait: max(0, screenWait-p.begunWith)}
		} else {
			p.unscreened = true
		}
	}
	return p.screening
}

// Least is [Part.Try] for a step that no other part has a share in: candidates that leave more than another one may
// have +Inf for what they leave.
func (p *Part) Least(rows []float32) []float64 {
	s := p.bounded()
	if s == nil || s.wait > 0 || !s.begun || len(rows) != p.trials*p.points.D {
		if s != nil {
			s.wait--
		}
		return p.Try(rows)
	}
	p.draws.adopt(rows, p.points.D)
	if !p.draws.scanned && !p.scanAll() {
		return p.Try(rows)
	}
	return p.leastByBounds(rows)
}

// scanAll lists the pairs of all proposals; it reports false where these have no integers.
func (p *Part) scanAll() bool {
	s := p.screening
	fits, stale := s.screen.Set(p.draws.rows)
	if s.stale = s.stale || stale; !fits {
		return false
	}
	s.back = !s.back
	p.each(p.chunks(), func(i int) {
		if s.back {
			i = p.chunks() - 1 - i
		}
		room := p.rooms.borrow()
		defer p.rooms.giveBack(room)
		p.scan(i, room)
	})
	s.stale, p.draws.scanned = false, true
	count, proposals := 0, len(p.draws.rows)/p.points.D
	for i := range s.chunks {
		for _, near := range s.chunks[i].near[:proposals] {
			count += len(near)
		}
	}
	if count*p.trials > p.points.N/screenDense*proposals {
		s.wait = screenWait / 4
	}
	return true
}

// scan lists the pairs of a chunk.
func (p *Part) scan(i int, room *chunkRoom) {
	s := p.screening
	lo, hi := p.chunk(i)
	if s.stale {
		s.screen.Limit(lo, p.norms[lo:hi], p.nearest[lo:hi])
	}
	if room.screen == nil {
		room.screen = new(kernels.ScreenRoom)
	}
	c := &s.chunks[i]
	if c.near == nil {
		c.near = make([][]kernels.ScreenPair, max(p.trials, drawnMost))
		c.which, c.products, c.gains = make([][]int32, p.trials), make([][]float32, p.trials), make([]gain, p.trials)
	}
	for a := range c.near {
		c.near[a] = c.near[a][:0]
	}
	s.screen.Scan(lo, hi, p.norms[lo:hi], room.screen, func(pair kernels.ScreenPair) {
		c.near[pair.Candidate] = append(c.near[pair.Candidate], pair)
	})
}

// leastByBounds is Least by the pairs of the last pass, which are all that may be nearer: distances have only fallen
// since.
func (p *Part) leastByBounds(rows []float32) []float64 {
	s, q := p.screening, p.trials
	p.rows, s.whole = append(p.rows[:0], rows...), false
	p.setSquares(q)
	left, gains := make([]float64, q), p.gains()
	sure := 0.0
	for _, g := range gains {
		sure = max(sure, g.least)
	}
	sure -= p.Potential() * screenSlack
	for a, g := range gains {
		if g.most < sure {
			left[a] = math.Inf(1)
		}
	}
	p.tried = make([]float64, p.chunks()*q)
	p.each(p.chunks(), func(i int) {
		room := p.rooms.borrow()
		defer p.rooms.giveBack(room)
		p.settle(i, left, room)
	})
	for i := range p.tried {
		left[i%q] += p.tried[i]
	}
	return left
}

// gains bounds what the candidates of the step gain.
func (p *Part) gains() []gain {
	chunks := p.screening.chunks
	p.each(len(chunks), func(i int) {
		c := &chunks[i]
		clear(c.gains)
		for a, at := range p.draws.step {
			g := &c.gains[a]
			for _, pair := range c.near[at] {
				near := float64(p.nearest[pair.Point])
				g.least += max(0, near-float64(pair.Most))
				g.most += max(0, near-float64(pair.Least))
			}
		}
	})
	gains := make([]gain, p.trials)
	for i := range chunks {
		for a, g := range chunks[i].gains {
			gains[a].least, gains[a].most = gains[a].least+g.least, gains[a].most+g.most
		}
	}
	return gains
}

// settle makes the sums of a chunk for the candidates that leave less than +Inf.
func (p *Part) settle(i int, left []float64, room *chunkRoom) {
	c, q := &p.screening.chunks[i], len(left)
	lo, hi := p.chunk(i)
	for a, at := range p.draws.step {
		which := c.which[a][:0]
		if !math.IsInf(left[a], 1) {
			for _, pair := range c.near[at] {
				if pair.Least < p.nearest[pair.Point] {
					which = append(which, pair.Point)
				}
			}
		}
		if c.which[a] = which; len(which) == 0 { // ruled out, or nearer to no record
			p.tried[i*q+a] = p.potential[i]
			continue
		}
		c.products[a] = slices.Grow(c.products[a][:0], len(which))[:len(which)]
		p.screening.screen.Products(at, which, c.products[a])
		p.tried[i*q+a] = room.sum(which, c.products[a], lo, p.norms[lo:hi], p.nearest[lo:hi], p.squares[a])
	}
}

// sum is what Try adds up for a chunk, lo its first record, and a candidate: those that which names have such products
// with it, the others are farther from it than they have.
func (r *chunkRoom) sum(which []int32, products []float32, lo int, norms, nearest []float32, square float32) float64 {
	if r.dots == nil {
		r.dots = kernels.NewPanels(chunkPoints, 1)
		for i := range r.dots.Data {
			r.dots.Data[i] = float32(math.Inf(-1))
		}
	}
	for i, at := range which {
		r.dots.Data[int(at)-lo] = products[i]
	}
	var sums [1]float64
	kernels.Potentials(r.dots.Slice(0, len(norms)), norms, nearest, []float32{square}, sums[:])
	for _, at := range which {
		r.dots.Data[int(at)-lo] = float32(math.Inf(-1))
	}
	return sums[0]
}

// addByBounds is Add for chunk i after a step by bounds.
func (p *Part) addByBounds(i, a int) {
	c := &p.screening.chunks[i]
	for at, point := range c.which[a] {
		norm := p.norms[point]
		if x := kernels.DotSquare(c.products[a][at], norm+p.squares[a]); x < p.nearest[point] {
			p.nearest[point] = x
			p.screening.screen.Lowered(int(point), norm, x)
		}
	}
}
