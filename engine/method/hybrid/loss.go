package hybrid

import (
	"math"
	"math/bits"

	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/kernels"
)

// lossEstimate estimates the mean squared distance of the records to centroids from the boxes of a tree alone.
// Boxes can be much wider than clusters, so where in a box its records are is taken from a mixture of normal
// distributions around the centroids, which the weights of all boxes are fitted to: what does not reach beyond the
// sides of its box is narrow. Of each box, weight that the mixture does not explain is noise, up to two deviations of
// it. Of all widths that explain the boxes about as well as the best one does, it takes the largest, so the estimate
// is rather too high than too low. empty is how much of all weight is noise, and noise its deviation in a box; least
// are the variances of the centroids' own noise in a column, which records are no nearer than. each runs n tasks,
// perhaps at the same time; the estimate does not depend on it.
func lossEstimate(boxes []synopsis.Box, centroids []float32, k, d int, noise, empty float64, least []float64,
	each func(n int, task func(i int))) float64 {
	m := newLossMixture(boxes, centroids, k, d, noise, empty, least)
	m.each = each
	if m.total <= 0 {
		return 0
	}
	m.narrow()
	for range lossSteps {
		m.step()
		m.renew()
	}
	m.step()
	return m.loss()
}

const (
	// lossSteps is the number of steps of the fit once all widths together are chosen.
	lossSteps = 4
	// lossFactor is the ratio of widths that are compared, lossFactors how many there are.
	lossFactor, lossFactors = 0.75, 14
	// lossDoubt is by how much the logarithm of a likelihood may differ for widths to explain the boxes as well.
	lossDoubt = 3.0
	// lossFar is by how many times that narrower widths must be worse for no more to be tried.
	lossFar = 20
	// lossMost is the most products of boxes, clusters and columns: a second of work where all clusters reach all boxes.
	lossMost = 1 << 26
	// lossLeftOut is the share of a sum that clusters of hardly any probability may have in it without being added.
	lossLeftOut = 1e-4
	// lossParts is the most parts of the boxes, or of their sides, that are looked at at the same time. Each has sums of
	// its own, so that one has lossBoxes boxes at least: then the sums of all take less than 20 MB.
	lossParts, lossBoxes = 16, 64
	// lossPooled is the share of what is common to all columns in a cluster's widths.
	lossPooled = 0.5
)

// lossMixture is a mixture of k normal distributions with independent columns, and noise that all boxes have alike.
type lossMixture struct {
	boxes        []synopsis.Box
	k, d         int
	noise, total float64
	edges        [][2]float64 // the sides of boxes, column by column
	from         []int        // where those of a column begin
	side         []int32      // [box][column] of edges
	centers      []float64    // [cluster][column]
	least        []float64    // variance of the centroids' own noise in a column, [cluster]
	share        []float64    // of the clusters
	variance     []float64    // [cluster][column]
	empty        float64      // weight of all boxes that is noise

	floor        float64   // the least mass, so that products are not 0
	mass, moment []float64 // of a side under a cluster, [side][cluster]; moment where the mass is above the floor
	reached      []uint64  // the clusters whose mass in a side is above the floor, [side][words] bits
	words        int
	sideMass     []float64 // of a side under the mixture
	last         lossSums  // of the last step, where far weight is no noise
	each         func(n int, task func(i int))
	parts        []lossPart
}

// lossSums are what a step adds up.
type lossSums struct {
	weight     []float64 // [cluster]
	squares    []float64 // [cluster][column]
	far        float64   // unexplained weight
	farSquares float64
}

func (s *lossSums) reset() {
	clear(s.weight)
	clear(s.squares)
	s.far, s.farSquares = 0, 0
}

func newLossSums(k, d int) lossSums {
	return lossSums{weight: make([]float64, k), squares: make([]float64, k*d)}
}

// lossPart is what one part of the boxes has.
type lossPart struct {
	lossSums
	likely float64
	which  []int32   // clusters that explain a box
	p      []float64 // by each of them, and their sum
	sum    float64
}

func newLossMixture(boxes []synopsis.Box, centroids []float32, k, d int, noise, empty float64,
	least []float64) *lossMixture {
	m := &lossMixture{boxes: boxes, least: least, k: k, d: d, noise: noise, empty: max(empty, 1e-9),
		side: make([]int32, len(boxes)*d), centers: make([]float64, k*d), share: make([]float64, k),
		variance: make([]float64, k*d), parts: make([]lossPart, min(max(len(boxes)/lossBoxes, 1), lossParts)),
		floor: max(1e-9, elementary.Pow(1e-250, 1/float64(d))), words: (k + 63) / 64}
	for i := range m.parts {
		m.parts[i].lossSums = newLossSums(k, d)
	}
	m.last = newLossSums(k, d)
	for i, x := range centroids {
		m.centers[i] = float64(x)
	}
	for h := range d {
		m.from = append(m.from, len(m.edges))
		seen := map[[2]float64]int32{}
		for i := range boxes {
			edge := [2]float64{boxes[i].Lo[h], boxes[i].Hi[h]}
			at, ok := seen[edge]
			if !ok {
				at = int32(len(m.edges))
				seen[edge] = at
				m.edges = append(m.edges, edge)
			}
			m.side[i*d+h] = at
		}
	}
	m.from = append(m.from, len(m.edges))
	m.mass, m.moment = make([]float64, k*len(m.edges)), make([]float64, k*len(m.edges))
	m.reached, m.sideMass = make([]uint64, m.words*len(m.edges)), make([]float64, len(m.edges))
	for i, at := range m.nearest(centroids) {
		w, at := boxes[i].Weight, int(at)
		m.total += w
		m.share[at] += w
		for h := range d {
			m.variance[at*d+h] += float64(w * m.flat(at, int(m.side[i*d+h])))
		}
	}
	// As if records filled their boxes, with some of all clusters' widths for those that are light.
	pooled := make([]float64, d)
	for j := range k {
		for h := range d {
			pooled[h] += m.variance[j*d+h]
		}
	}
	light := m.total / float64(4*k)
	for j := range k {
		for h := range d {
			v := &m.variance[j*d+h]
			*v = max((*v+float64(light*(pooled[h]/max(m.total, 1))))/(m.share[j]+light), leastVariance)
		}
		m.share[j] = (m.share[j] + light) / (m.total + float64(light*float64(k)))
	}
	return m
}

// leastVariance is far below what decides anything.
const leastVariance = 1e-12

// nearest are the centroids that are nearest to the middles of the boxes.
func (m *lossMixture) nearest(centroids []float32) []uint16 {
	middles, labels := kernels.NewPanels(len(m.boxes), m.d), make([]uint16, len(m.boxes))
	row := make([]float32, m.d)
	for i, box := range m.boxes {
		for h := range row {
			row[h] = float32((box.Lo[h] + box.Hi[h]) / 2)
		}
		middles.Set(i, row)
	}
	c := kernels.NewCentroids(m.k, m.d)
	c.Set(centroids)
	kernels.Assign(*middles, c, labels, nil)
	return labels
}

// column is the column of a side.
func (m *lossMixture) column(e int) int {
	h := 0
	for m.from[h+1] <= e {
		h++
	}
	return h
}

// flat is the mean squared distance from a centroid of records that fill a side.
func (m *lossMixture) flat(j, e int) float64 {
	lo, hi := m.edges[e][0], m.edges[e][1]
	x, width := (lo+hi)/2-m.centers[j*m.d+m.column(e)], hi-lo
	return float64(x*x) + float64(width*width)/12
}

// lossReach is the number of deviations beyond which the mass of a side is below every floor.
const lossReach = 6.5

// sides computes mass and moment for variances times factor.
func (m *lossMixture) sides(factor float64) {
	variance, reach := make([]float64, m.k*m.d), make([]float64, m.k*m.d)
	for i := range variance {
		variance[i] = max(m.variance[i]*factor, m.least[i/m.d], leastVariance)
		reach[i] = lossReach * math.Sqrt(variance[i])
	}
	m.inParts(len(m.edges), func(_ *lossPart, e int) {
		clear(m.reached[e*m.words : (e+1)*m.words])
		lo, hi, h := m.edges[e][0], m.edges[e][1], m.column(e)
		if lo <= -1 { // there is nothing beyond the box
			lo = math.Inf(-1)
		}
		if hi >= 1 {
			hi = math.Inf(1)
		}
		m.sideMass[e] = m.floor // the shares add up to 1
		mass := m.mass[e*m.k : (e+1)*m.k]
		for j := range mass {
			mass[j] = m.floor
			if at := j*m.d + h; lo < m.centers[at]+reach[at] && hi > m.centers[at]-reach[at] {
				m.reach(e, j, variance[at])
			}
		}
	})
}

// inParts runs task for each of n numbers, those of a part in their order.
func (m *lossMixture) inParts(n int, task func(p *lossPart, i int)) {
	m.each(len(m.parts), func(part int) {
		for i := part * n / len(m.parts); i < (part+1)*n/len(m.parts); i++ {
			task(&m.parts[part], i)
		}
	})
}

// reach computes mass and moment of a side under a cluster that reaches it, for its variance v in that column.
func (m *lossMixture) reach(e, j int, v float64) {
	lo, hi := m.edges[e][0], m.edges[e][1]
	center, sigma := m.centers[j*m.d+m.column(e)], math.Sqrt(v)
	below, from := normal((lo - center) / sigma)
	above, to := normal((hi - center) / sigma)
	at, p := e*m.k+j, above-below
	m.moment[at] = m.flat(j, e)
	if p > 1e-4 {
		m.moment[at] = max(float64(v*(1-(to-from)/p)), 0)
	}
	if lo <= -1 {
		below = 0
	}
	if hi >= 1 {
		above = 1
	}
	if p = above - below; p > m.floor {
		m.mass[at] = p
		m.reached[e*m.words+j/64] |= 1 << (j % 64)
		m.sideMass[e] += float64(m.share[j] * (p - m.floor))
	}
}

// normal is the distribution function of the normal distribution at z, within 1e-7 (Abramowitz and Stegun, 7.1.26), and
// z times its density.
func normal(z float64) (below, zDensity float64) {
	x := math.Abs(z) / math.Sqrt2
	e := elementary.Exp(-float64(x * x))
	t := 1 / (1 + float64(0.3275911*x))
	poly := 1.061405429
	for _, a := range [...]float64{-1.453152027, 1.421413741, -0.284496736, 0.254829592} {
		poly = float64(poly*t) + a
	}
	tail := float64(float64(poly*t)*e) / 2
	density := e / math.Sqrt(2*math.Pi)
	if z < 0 {
		return tail, float64(z * density)
	}
	return 1 - tail, float64(z * density)
}

// explain is what the mixture makes of box i: the probability of clusters times their shares of it in p, their sum, and
// how much of the weight is not explained by it, two deviations of the noise at most. Clusters whose mass in one of the
// sides is at the floor are left out where they could not change the sum by a share of lossLeftOut.
func (m *lossMixture) explain(part *lossPart, i int) (lost float64) {
	sides := m.side[i*m.d : (i+1)*m.d]
	part.which, part.p, part.sum = part.which[:0], part.p[:0], 0
	for w := range m.words {
		both := ^uint64(0)
		for _, e := range sides {
			both &= m.reached[int(e)*m.words+w]
		}
		for ; both != 0; both &= both - 1 {
			m.add(part, sides, w*64+bits.TrailingZeros64(both))
		}
	}
	if part.sum*lossLeftOut < m.leftOut(sides) {
		part.which, part.p, part.sum = part.which[:0], part.p[:0], 0
		for j := range m.k {
			m.add(part, sides, j)
		}
	}
	w, empty, expected := m.boxes[i].Weight, m.empty/float64(len(m.boxes)), float64(part.sum*m.total)
	return min(w*empty/(empty+expected), max(w-expected, 0), 2*m.noise)
}

// add adds a cluster to those that explain a box of such sides.
func (m *lossMixture) add(part *lossPart, sides []int32, j int) {
	p := m.share[j]
	for _, e := range sides {
		p *= m.mass[int(e)*m.k+j]
	}
	part.which, part.p, part.sum = append(part.which, int32(j)), append(part.p, p), part.sum+p
}

// leftOut is at least the sum of the clusters whose mass in one of the sides is at the floor: of those in one side, at
// most the floor times what all clusters have in any other side.
func (m *lossMixture) leftOut(sides []int32) float64 {
	least, second := 1.0, 1.0
	for _, e := range sides {
		if x := m.sideMass[e]; x < least {
			least, second = x, least
		} else {
			second = min(second, x)
		}
	}
	return m.floor * (float64(least*float64(len(sides)-1)) + second)
}

// narrow finds a factor of all widths.
func (m *lossMixture) narrow() {
	best, likely := math.Inf(-1), make([]float64, lossFactors)
	factor := 1.0
	for f := range likely {
		m.sides(factor)
		for i := range m.parts {
			m.parts[i].likely = 0
		}
		m.inParts(len(m.boxes), func(part *lossPart, i int) {
			m.explain(part, i)
			part.likely += float64(m.boxes[i].Weight *
				elementary.Log(float64(part.sum*m.total)+m.empty/float64(len(m.boxes))))
		})
		for i := range m.parts {
			likely[f] += m.parts[i].likely
		}
		if best = max(best, likely[f]); likely[f] < best-lossFar*m.doubt() {
			likely = likely[:f+1]
			break
		}
		factor *= lossFactor * lossFactor
	}
	factor = 1
	for _, l := range likely {
		if l >= best-m.doubt() {
			break
		}
		factor *= lossFactor * lossFactor
	}
	for i := range m.variance {
		m.variance[i] = max(m.variance[i]*factor, leastVariance)
	}
}

// doubt is by how much the logarithms of likelihoods may differ for widths to explain the boxes as well: the weights
// have noise beside the chance that the likelihood knows of.
func (m *lossMixture) doubt() float64 {
	sure := 0.0
	for i := range m.boxes {
		w := m.boxes[i].Weight
		sure += float64(w * (w / (w + float64(m.noise*m.noise))))
	}
	return lossDoubt * m.total / max(sure, 1)
}

// step divides the weights of all boxes among the clusters. What is unexplained and no noise, as there is more of it
// than noise makes, counts for the loss but not for the widths.
func (m *lossMixture) step() {
	m.sides(1)
	for i := range m.parts {
		m.parts[i].reset()
	}
	m.inParts(len(m.boxes), m.divide)
	m.last.reset()
	for i := range m.parts {
		m.last.add(&m.parts[i].lossSums)
	}
	noise := min(m.empty/max(m.last.far, 1e-9), 1)
	m.last.far *= 1 - noise
	m.last.farSquares *= 1 - noise
}

// divide is step for box i.
func (m *lossMixture) divide(sums *lossPart, i int) {
	far := m.explain(sums, i)
	known := m.boxes[i].Weight - far
	sums.far += far
	for at, p := range sums.p {
		part := p / sums.sum
		if part < 1e-3 {
			continue
		}
		j := int(sums.which[at])
		sums.weight[j] += float64(known * part)
		squares, all := sums.squares[j*m.d:(j+1)*m.d], 0.0
		for h, e := range m.side[i*m.d : (i+1)*m.d] {
			x := float64(part * m.momentOf(int(e), j))
			squares[h] += float64(known * x)
			all += x
		}
		sums.farSquares += float64(far * all)
	}
}

// add adds the sums of a part.
func (s *lossSums) add(part *lossSums) {
	for j, w := range part.weight {
		s.weight[j] += w
	}
	for i, x := range part.squares {
		s.squares[i] += x
	}
	s.far, s.farSquares = s.far+part.far, s.farSquares+part.farSquares
}

// momentOf is the mean squared distance of a cluster's records in a side.
func (m *lossMixture) momentOf(e, j int) float64 {
	if m.reached[e*m.words+j/64]>>(j%64)&1 == 0 {
		return m.flat(j, e)
	}
	return m.moment[e*m.k+j]
}

// renew takes shares and widths from the last step.
func (m *lossMixture) renew() {
	all := 0.0
	for _, w := range m.last.weight {
		all += w
	}
	if all <= 0 {
		return
	}
	light := all / float64(4*m.k)
	pooled := m.loss() / float64(m.d)
	for j := range m.k {
		own := 0.0
		for h := range m.d {
			own += m.last.squares[j*m.d+h]
		}
		own = (own/float64(m.d) + float64(light*pooled)) / (m.last.weight[j] + light)
		for h := range m.d {
			v := m.last.squares[j*m.d+h] / max(m.last.weight[j], 1)
			trust := m.last.weight[j] / (m.last.weight[j] + light) * (1 - lossPooled)
			m.variance[j*m.d+h] = max(float64(trust*v)+float64((1-trust)*own), leastVariance)
		}
		m.share[j] = (m.last.weight[j] + float64(light*0.01)) / (all + float64(light*0.01*float64(m.k)))
	}
}

// loss is the mean squared distance that the last step came to.
func (m *lossMixture) loss() float64 {
	squares, all := m.last.farSquares, m.last.far
	for _, x := range m.last.squares {
		squares += x
	}
	for _, w := range m.last.weight {
		all += w
	}
	return squares / max(all, 1)
}
