package staged

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// Scales are the noise scales, in data units, of one cluster in a round of
// relative refinement: of the sum of offsets and of the count.
type Scales struct{ Sums, Counts float64 }

// RelativeScales splits a round's budget between the sum of offsets cut to
// length radius and the count of a cluster of about `size` records (THEOREMS.md
// T2). With Gaussian noise radius^2/sums^2 + 1/counts^2 = mu^2, so
// clusters may differ in their scales: a record touches one of them. With
// Laplace noise the sums get four fifths of epsilon.
func (f *Plan) RelativeScales(l Share, radius, size float64) Scales {
	sum, count := f.Bound("relative sums", radius), f.Bound("relative counts", 0)
	if !l.Gaussian {
		return Scales{Sums: l.Part(0.8).scale(sum), Counts: l.Part(0.2).scale(count)}
	}
	if l.pair {
		return splitPair(4*l.Total, sum.L2(), size, f.D)
	}
	return splitGaussian(l.Total, sum.L2(), size, f.D)
}

// splitPair is RelativeScales where two records change together, by 2 radius in one
// sum, or by radius in two sums and 1 in two counts: max(4 radius^2/sums^2,
// 2 radius^2/sums^2 + 2/counts^2) = mu^2 (THEOREMS.md T2). What the sums cannot use goes
// to the counts.
func splitPair(mu2, radius, size float64, d int) Scales {
	s := splitGaussian(mu2/2, radius, size, d)
	if least := 2 * radius / math.Sqrt(mu2); s.Sums < least {
		s = Scales{max(least, minScale), max(2/math.Sqrt(mu2), minScale)}
	}
	return s
}

// splitGaussian is relativeScales for Gaussian noise, of a count of sensitivity 1:
// a move of a quarter of the radius is expected.
func splitGaussian(mu2, radius, size float64, d int) Scales {
	sums, counts := step.SplitGaussian(radius, radius/4, size, d, mu2)
	return Scales{max(sums, minScale), max(counts, minScale)}
}

// AddRound plans a round of relative sums and counts of k clusters, whose radii and RelativeScales
// follow from what was released before within the share of the budget.
func (f *Plan) AddRound(purpose string, l Share, k int) *Release {
	return f.addRound(purpose, l, k, f.RelativeScales(l, 1, math.Inf(1)))
}

// AddEqualRound is AddRound where all clusters have one share of the budget.
func (f *Plan) AddEqualRound(purpose string, l Share, k int) *Release {
	return f.addEqualRound(purpose, l, k, countShare)
}

// addEqualRound is AddEqualRound where the counts have a part of the round.
func (f *Plan) addEqualRound(purpose string, l Share, k int, counts float64) *Release {
	s := f.addRound(purpose, l, k, f.equalScales(l, 1, counts))
	s.counts = counts
	return s
}

// widest is the diagonal of the box, the most to which offsets are cut.
func (f *Plan) widest() float64 { return 2 * math.Sqrt(float64(f.D)) }

// CutRadius is a radius to which offsets are cut in a round of RelativeScales, or less where it is wider than the box
// or the noise of sums could not be drawn: the round is paid for.
func (f *Plan) CutRadius(l Share, radius float64) float64 {
	return f.cutRadius(radius, f.RelativeScales(l, 1, 1)) // of few records, those of sums are the largest
}

// cutRadius is CutRadius for the scales, at most, of a radius of 1.
func (f *Plan) cutRadius(radius float64, one Scales) float64 {
	const short = 1 - 1e-9 // of rounding
	return min(radius, f.widest(), short*privacy.MaxScale/(1<<releaseBits)/one.Sums)
}

// addRound plans a round with such scales of counts, at most.
func (f *Plan) addRound(purpose string, l Share, k int, most Scales) *Release {
	s := &Release{Purpose: purpose, Share: l}
	f.drawable(purpose, most.Counts)
	widest := f.widest()
	e := f.roundEntry(s, widest, l.scale(f.Bound("relative sums", widest)))
	e.Unit = "at most, for the sums of a cluster; the radii follow from what was released before"
	e.Cost.Scale = 1 / l.Total
	if l.Gaussian {
		e.Cost.Scale = 1 / math.Sqrt(l.Total)
		e.Cost.Slack = privacy.GaussianSlack(minScale*(1<<releaseBits), f.D+1)
		e.Cost.Distance = l.distance(minScale, f.D+1)
	}
	s.Release = f.Add(&protocol.Release{Name: f.prefix + purpose, Makers: f.makers,
		Entries: []privacy.Entry{f.Charge(l, e)}, Words: k * (f.D + 1), Groups: 2 * k})
	return s
}

// roundEntry begins the ledger entry of a round.
func (f *Plan) roundEntry(s *Release, radius, scale float64) privacy.Entry {
	count := f.Bound("relative counts", 0)
	e := s.Share.entry(f.prefix+s.Purpose+": sums of cut offsets and counts of each cluster", f.Audience, scale,
		f.Bound("relative sums", radius), f.D+1)
	e.Beside = &count
	return e
}

// RelativeRound releases, for each cluster, the sum of the offsets of its
// records from its centroid, cut to length radius[j], and the count, both in
// data units. centroids are row-major and on the grid; there may be more of them
// than clusters asked for.
func (p *Party) RelativeRound(ctx context.Context, o *Offsets, s *Release, centroids []float32, radius []float64,
	scales []Scales) (sums, counts []float64, err error) {
	k, d := len(radius), p.D
	groups := make([]Group, 0, 2*k)
	for j := range k {
		groups = append(groups, Group{d, p.FractionBits, scales[j].Sums})
	}
	for j := range k {
		groups = append(groups, Group{1, p.Weights.Bits(), scales[j].Counts})
	}
	released, err := p.Release(ctx, s, groups, func(words []int64) error {
		return o.add(ctx, p.Records, p.Weights, centroids, radius, offsetSums{words[:k*d], words[k*d:]})
	})
	if err != nil {
		return nil, nil, err
	}
	return released[:k*d], released[k*d:], p.bookRound(s, radius, scales)
}

// bookRound writes what a round came to into the ledger: the dearest cluster
// counts.
func (p *Party) bookRound(s *Release, radius []float64, scales []Scales) error {
	worst, at, least, both := 0.0, 0, math.Inf(1), 2.0
	if s.Share.Gaussian {
		both = math.Sqrt2
	}
	count := p.Bound("relative counts", 0)
	for j, r := range radius {
		sum := p.Bound("relative sums", r)
		cost := sum.L1()/scales[j].Sums + count.L1()/scales[j].Counts
		if s.Share.Gaussian {
			cost = math.Hypot(sum.L2()/scales[j].Sums, count.L2()/scales[j].Counts)
		}
		if s.Share.pair { // of another cluster's record, or of its own
			cost *= both
			if s.Share.Gaussian {
				cost = max(cost, 2*sum.L2()/scales[j].Sums)
			}
		}
		if cost > worst {
			worst, at = cost, j
		}
		least = min(least, scales[j].Sums, scales[j].Counts)
	}
	e := p.roundEntry(s, radius[at], scales[at].Sums)
	e.Unit = fmt.Sprintf("for the sums of cluster %d, the dearest; %.4g for its count", at+1, scales[at].Counts)
	e.Cost.Scale = 1 / worst
	if s.Share.Gaussian {
		e.Cost.Slack = privacy.GaussianSlack(least*(1<<releaseBits), p.D+1)
		e.Cost.Distance = s.Share.distance(least, p.D+1)
	}
	return p.Book(s.Release, p.chargeBoth(s.Share, e, 1)) // worst has both records
}

// Move adds noisy relative sums to centroids: divide by the count (at least
// twice its noise scale and 1), in a late round shrink by the positive part of
// 1 - 0.5 d sigma^2/|sum|^2, cut to the radius, clip to the box, truncate onto
// the grid.
func Move(l Share, centroids []float32, sums, counts, radius []float64, scales []Scales, d, bits int, late bool) {
	shrink := 0.0
	if late {
		shrink = 0.5
	}
	for j, count := range counts {
		sum := sums[j*d : (j+1)*d]
		norm2 := elementary.SquaredLength(sum)
		size := max(count, 2*scales[j].Counts, 1)
		factor := 0.0
		if norm2 > 0 {
			factor = max(0, 1-shrink*float64(d)*l.Variance(scales[j].Sums)/norm2) / size
		}
		if length := factor * math.Sqrt(norm2); length > radius[j] {
			factor *= radius[j] / length
		}
		for h, x := range sum {
			i := j*d + h
			centroids[i] = OnGrid(float64(centroids[i])+float64(x*factor), bits)
		}
	}
}

// OnGrid clips a coordinate to [-1,1] and truncates it onto the grid.
func OnGrid(x float64, bits int) float32 {
	return dataset.Truncate(min(max(x, -1), 1), bits)
}

// GridRow puts a point on the grid.
func GridRow(x []float64, bits int) []float32 {
	row := make([]float32, len(x))
	for h, v := range x {
		row[h] = OnGrid(v, bits)
	}
	return row
}

// MostRounds bounds the rounds of a rule.
const MostRounds = 20

// ManyRounds is the number of relative rounds without a synopsis of all
// dimensions.
func (f *Plan) ManyRounds() int {
	return min(max(int(math.Round(1.6*elementary.Pow(f.SNR(), 0.6))), 2), MostRounds)
}

// EqualRounds are relative rounds in which all clusters have one share of the budget, and before some of them the
// histograms of how far the records of each cluster are, where these stand above the noise.
type EqualRounds struct {
	rounds []*Release
	looks  []*Release // before each round, nil where there is none
	wide   int        // after how many rounds clusters are merged, 0 where they are not
	sized  bool       // all rounds but the last one have sizeShare for their counts
}

// Rounds is their number.
func (e *EqualRounds) Rounds() int { return len(e.rounds) }

// spreadShare is the part of the budget of equal rounds that each look at the clusters gets, where the noise of a count
// is then less than a part spreadNoise of a cluster of the mean size.
const spreadShare, spreadNoise = 0.015, 0.2

// AddEqualRounds plans relative rounds of k clusters, with looks at them or without. The last
// round gets three times the budget of each other one; negative rounds are none.
func (f *Plan) AddEqualRounds(l Share, rounds, k int, looks bool) *EqualRounds {
	return f.addEqualRounds(l, rounds, k, k, looks, false)
}

// WideRounds is how many of the rounds of AddMergedRounds measure more clusters, and the part of the budget of all
// rounds that these have at most.
func WideRounds(rounds int) (wide int, part float64) {
	wide = max(rounds, 0) / 2
	return wide, float64(wide) / float64(rounds+2)
}

// AddMergedRounds is AddEqualRounds, with looks, for centroids that start at random: the first half of the rounds
// measures more clusters, at most, which are then merged. Of more than two clusters counts tell better which have no
// records, where there are sizedRounds for that, unless columns are so many that the sums need all of the budget.
func (f *Plan) AddMergedRounds(l Share, rounds, more, k int) *EqualRounds {
	sized := rounds >= sizedRounds && k > 2 && f.D < shrinkColumns && l.Gaussian
	return f.addEqualRounds(l, rounds, more, k, true, sized)
}

func (f *Plan) addEqualRounds(l Share, rounds, more, k int, looks, sized bool) *EqualRounds {
	e := &EqualRounds{looks: make([]*Release, max(rounds, 0)), sized: sized}
	if more > k {
		e.wide, _ = WideRounds(rounds)
	}
	clusters := func(r int) int {
		if r < e.wide {
			return more
		}
		return k
	}
	if h := l.Part(spreadShare); looks && k > 1 && f.CountNoise(h)*float64(k) < spreadNoise*float64(f.N) {
		for quarter := range 4 {
			if r := rounds * quarter / 4; r < rounds && e.looks[r] == nil {
				e.looks[r] = f.addSpreads(fmt.Sprintf("distances before round %d", r+1), h, clusters(r))
				e.looks[r].AtMost = r < e.wide
				l.Total -= h.Total
			}
		}
	}
	for r := range rounds {
		own, counts := l.Part(1/float64(rounds+2)), countShare
		if sized {
			counts = sizeShare
		}
		if r == rounds-1 {
			own, counts = l.Part(3/float64(rounds+2)), countShare
		}
		e.rounds = append(e.rounds, f.addEqualRound(fmt.Sprintf("round %d", r+1), own, clusters(r), counts))
		e.rounds[r].AtMost = r < e.wide
	}
	return e
}

// shrinkColumns is from how many columns on all equal rounds draw centroids to one another, column by column: noise
// moves a centroid by the root of the number of columns, while clusters stand apart in some of them, which the spread
// of the centroids tells. In fewer, centroids that noise hides would not find clusters of their own, and a later round
// makes good what noise did. It comes from generated sets of 16 to 300 columns.
const shrinkColumns = 50

// EqualRounds runs relative rounds, of which the last one, and of many the last eighth, end with James-Stein shrinkage,
// in shrinkColumns and more all. After a half and three quarters of them clusters without records are refilled.
// Offsets are cut to the given radius, until a look at the clusters has them cut
// to lengths of their own and moves centroids to where they are missing. It returns the noisy counts of the last round.
// Where clusters are merged, those that are left are the first of the centroids.
func (p *Party) EqualRounds(ctx context.Context, e *EqualRounds, centroids []float32,
	radius float64) (counts []float64, err error) {
	k := len(centroids) / p.D
	o := NewOffsets(p.Pool(), k, p.D, p.FractionBits)
	m, rounds := &measuring{centroids, slices.Repeat([]float64{radius}, k), make([]float64, k)}, e.rounds
	counted, hidden := 0, float64(hiddenOthers) // counted are the rounds that sums are of
	if e.sized {
		hidden = hiddenSized
	}
	for r, s := range rounds {
		// What centroids had at first says little of those that are to be merged, or may be without records.
		if r == e.wide/2 && k > p.K || r == 1 && k == p.K && e.sized {
			clear(m.sums)
			counted = 0
		}
		if look := e.looks[r]; look != nil {
			h, err := p.releaseSpreads(ctx, look, m.centroids, radius)
			if err != nil {
				return nil, err
			}
			h.radii(m.radii, radius)
			worth := worthwhile
			if r == len(rounds)*3/4 {
				worth = lastWorthwhile
			}
			h.swap(m.centroids, m.radii, m.sums, worth, p.FractionBits, p.Public.Stream(int(protocol.Server), r, "swap"))
		}
		var before *sizes
		if e.sized && r == len(rounds)-1 {
			before = &sizes{m.sums, float64(counted), p.countVariance(rounds[r-1], radius)}
		}
		if counts, err = p.equalRound(ctx, o, s, m.centroids, m.radii, r >= len(rounds)*7/8, before); err != nil {
			return nil, err
		}
		counted++
		for c, n := range counts {
			m.sums[c] += n
		}
		if r+1 == e.wide && len(m.centroids) > p.K*p.D {
			if err := p.merge(ctx, m); err != nil {
				return nil, err
			}
			copy(centroids, m.centroids)
			m.centroids, o = centroids[:len(m.centroids)], NewOffsets(p.Pool(), p.K, p.D, p.FractionBits)
		}
		if r+1 == len(rounds)/2 || r+1 == len(rounds)*3/4 {
			noise := math.Sqrt(float64(counted) * p.countVariance(s, radius))
			refill(m.sums, m.centroids, noise, hidden, radius/2, p.FractionBits,
				p.Public.Stream(int(protocol.Server), r, "refill"))
		}
		if p.alone {
			continue
		}
		if len(m.centroids) == p.K*p.D { // not those that are still to be merged
			p.Show(s.Release, Widen(m.centroids), math.NaN())
		}
		if err := p.EndRound(ctx, r, len(rounds)); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// Noise hides which centroids have no records where a cluster of the mean size has less than so many times the noise
// of a sum of counts: in rounds of sizeShare, whose centroids start at random, in others, and beside a crowd, as few
// records may be far away.
const hiddenSized, hiddenOthers, hiddenCrowd = 3, 5, 20

// refill gives each centroid whose sum of noisy counts is less than its noise one half of the widest cluster: both
// start on either side of its centroid, so far from it in a random direction. Where two clusters were one and a
// centroid has none, the rounds after it tell them apart. It does nothing where hidden times the noise is more
// than a cluster of the mean size, or hiddenCrowd times beside a crowd. As few records may be far away, a centroid
// stays where as many as noise may hide, sent to the next one, cost aloneCost times what halving the widest can save,
// which is about 2 far squared for each of its records. It is post-processing of released counts.
func refill(sums []float64, centroids []float32, noise, hidden, far float64, bits int, directions *privacy.Stream) {
	all := 0.0
	for _, n := range sums {
		all += n
	}
	if crowded(slices.Max(sums), all, len(sums)) {
		hidden = hiddenCrowd
	}
	if float64(hidden*noise)*float64(len(sums)) > all {
		return
	}
	d := len(centroids) / len(sums)
	for c, n := range sums {
		if n >= noise {
			continue
		}
		most := widest(sums, all, noise)
		if (max(n, 0)+noise)*toNext(centroids, c, d) > aloneCost*float64(4*far*far)*sums[most] {
			continue
		}
		u, square := Direction(d, directions)
		for h, x := range u {
			at, step := float64(centroids[most*d+h]), float64(far*x)/math.Sqrt(square)
			centroids[c*d+h], centroids[most*d+h] = OnGrid(at+step, bits), OnGrid(at-step, bits)
		}
		sums[c], sums[most] = sums[most]/2, sums[most]/2
	}
}

// aloneCost is how many times more the records that noise may hide near a centroid have to cost than halving another
// cluster can save, for it to stay: hardly any are there in most runs.
const aloneCost = 4

// toNext is the squared distance of centroid c from the next one.
func toNext(centroids []float32, c, d int) float64 {
	least := math.Inf(1)
	for e := range len(centroids) / d {
		if e != c {
			least = min(least, elementary.SquaredDistance(centroids[c*d:(c+1)*d], centroids[e*d:]))
		}
	}
	return least
}

// widest is the cluster to halve, of sums of noisy counts: the one with the most records, as two that were one have,
// unless these are a crowd, whose halves lie together, while most of the loss is of the few beside it: then it is the
// next one, if it has records.
func widest(sums []float64, all, noise float64) int {
	first, second := 0, -1
	for j, n := range sums {
		switch {
		case j == 0:
		case n > sums[first]:
			first, second = j, first
		case second < 0 || n > sums[second]:
			second = j
		}
	}
	if second >= 0 && crowded(sums[first], all, len(sums)) && sums[second] > 2*noise {
		return second
	}
	return first
}

// crowded says whether the largest of k clusters has more than half of all records, and more than 3.5 times the mean
// size, as in a heavy corner of the box: three clusters that one centroid has may seem a little larger by noise.
func crowded(largest, all float64, k int) bool { return largest > max(all/2, 3.5*all/float64(k)) }

// countShare is the part of an equal round that the counts have. Of sizedRounds or more that start at random, all but
// the last one, whose noise is that of the answer, have sizeShare, so that sums of counts tell which centroids have no
// records. The constants come from generated sets of 300 to 5,000 records in 16 and 30 dimensions.
const countShare, sizeShare, sizedRounds = 0.02, 0.1, 4

// equalScales gives a part of a round to the counts. Where two records change together under Gaussian noise, by 2
// radius in one sum, or by radius in two and 1 in two counts, both have all of it: the former is no less (THEOREMS.md
// T2).
func (f *Plan) equalScales(l Share, radius, counts float64) Scales {
	sums := 1 - counts
	if l.pair && l.Gaussian {
		sums, counts = 1, 1
	}
	return Scales{Sums: l.Part(sums).scale(f.Bound("relative sums", radius)),
		Counts: l.Part(counts).scale(f.Bound("relative counts", 0))}
}

// countVariance is that of the noise of a count of an equal round whose offsets are cut to a radius.
func (f *Plan) countVariance(s *Release, radius float64) float64 {
	return s.Share.Variance(f.equalScales(s.Share, radius, s.counts).Counts)
}

// sizes are the sums of the noisy counts of so many rounds, each with noise of a variance.
type sizes struct {
	sums             []float64
	rounds, variance float64
}

// pool averages counts, with noise of a variance, with the mean ones of the rounds before, by their noise.
func (s *sizes) pool(counts []float64, variance float64) {
	for c, sum := range s.sums {
		counts[c] += (sum - float64(s.rounds*counts[c])) / (s.rounds + s.variance/variance)
	}
}

// equalRound is one relative round, which shrinks what it moves where it is a late one, and draws centroids to one
// another there and in many columns; it returns the noisy counts, of less noise where those before are known.
func (p *Party) equalRound(ctx context.Context, o *Offsets, s *Release, centroids []float32,
	radii []float64, late bool, before *sizes) ([]float64, error) {
	k, l := len(centroids)/p.D, s.Share
	scales := make([]Scales, k)
	for c, radius := range radii {
		radii[c] = p.cutRadius(radius, p.equalScales(l, 1, s.counts))
		scales[c] = p.equalScales(l, radii[c], s.counts)
	}
	sums, counts, err := p.RelativeRound(ctx, o, s, centroids, radii, scales)
	if err != nil {
		return nil, err
	}
	span := p.Begin(engine.PhasePostprocess, p.Released)
	defer p.End(span)
	if before != nil {
		before.pool(counts, l.Variance(scales[0].Counts))
	}
	for c := range scales { // centroids of few records move no farther for a larger part: they would follow noise
		scales[c].Counts = p.equalScales(l, radii[c], countShare).Counts
	}
	Move(l, centroids, sums, counts, radii, scales, p.D, p.FractionBits, late)
	if !late && p.D < shrinkColumns {
		return counts, nil
	}
	variance := make([]float64, k)
	for c := range variance {
		size := max(counts[c], 2*scales[c].Counts, 1)
		variance[c] = l.Variance(scales[c].Sums) / (size * size)
	}
	jamesStein(centroids, variance, k, p.D, p.FractionBits)
	return counts, nil
}

// jamesStein shrinks, coordinate by coordinate, the centroids toward their
// precision-weighted mean by the positive-part James-Stein factor 1 - 1/A, where
// A compares their spread with the known noise variance.
func jamesStein(centroids []float32, variance []float64, k, d, bits int) {
	if k < 2 {
		return
	}
	for h := range d {
		var sum, weight float64
		for j := range k {
			sum += float64(centroids[j*d+h]) / variance[j]
			weight += 1 / variance[j]
		}
		mean, spread := sum/weight, 0.0
		for j := range k {
			t := float64(centroids[j*d+h]) - mean
			spread += float64(t*t) / variance[j]
		}
		spread /= float64(k - 1)
		factor := 0.0
		if spread > 1 {
			factor = 1 - 1/spread
		}
		for j := range k {
			i := j*d + h
			centroids[i] = OnGrid(mean+float64((float64(centroids[i])-mean)*factor), bits)
		}
	}
}
