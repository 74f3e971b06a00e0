package staged

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// spreadBins are the bins of the distances of a cluster's records: of half an octave each, the first from 0. They reach
// the diagonal of the box, or so many radii of all records as a heavy corner may have others beyond it where that is
// less: bounds may be many times as wide as the records.
const spreadBins, spreadReach = 16, 32

// spreads are released histograms of the distances of the records of each of k clusters from its centroid. Bins that
// noise may have filled are empty: they, and with one next to them, are less than seenNoise deviations of the noise.
type spreads struct {
	k      int
	noise  float64   // standard deviation of the noise of a bin
	counts []float64 // [k][spreadBins]
	top    float64   // where the last bin ends
}

// addSpreads plans them. A record is in one bin of one cluster.
func (f *Plan) addSpreads(purpose string, l Share, k int) *Release {
	return f.AddCounts(purpose, "histogram of distances", l, k*spreadBins)
}

// spreadBin is the bin of a squared distance, as a part of the square of top.
func spreadBin(square float64) int {
	if square <= 0 {
		return 0
	}
	_, e := math.Frexp(square)
	return min(max(spreadBins-1+e, 0), spreadBins-1)
}

// releaseSpreads releases them for centroids, which are row-major and on the grid, and records as far as radius.
func (p *Party) releaseSpreads(ctx context.Context, s *Release, centroids []float32, radius float64) (*spreads, error) {
	k, top := len(centroids)/p.D, min(2*math.Sqrt(float64(p.D)), spreadReach*radius)
	noisy, err := p.ReleaseCounts(ctx, s, k*spreadBins, func(words []int64) error {
		return p.countDistances(ctx, centroids, words, func(label uint16, square float32) int {
			return int(label)*spreadBins + spreadBin(float64(square)/(top*top))
		})
	})
	if err != nil {
		return nil, err
	}
	h := &spreads{k, math.Sqrt(s.Share.Variance(s.Scale)), noisy, top}
	h.clean()
	return h, nil
}

// seenNoise is how many standard deviations of the noise of a bin records have to be to be seen.
const seenNoise = 4

// clean empties the bins that noise may have filled.
func (h *spreads) clean() {
	kept := make([]bool, len(h.counts))
	for b, x := range h.counts {
		if x > seenNoise*h.noise {
			kept[b] = true
		}
		if b%spreadBins > 0 && h.counts[b-1]+x > seenNoise*math.Sqrt2*h.noise {
			kept[b-1], kept[b] = true, true
		}
	}
	for b, x := range h.counts {
		if !kept[b] || x < 0 {
			h.counts[b] = 0
		}
	}
}

// size is how many records cluster c has, and loss the sum of their squared distances.
func (h *spreads) size(c int) (size, loss float64) {
	end := h.top * h.top // squared
	for b := spreadBins - 1; b >= 0; b-- {
		n := h.counts[c*spreadBins+b]
		size += n
		loss += float64(0.75 * n * end)
		end /= 2
	}
	return size, loss
}

// quantile is the distance within which a part q of the records lie that a cluster's bins have, or all clusters' added
// up; without a record it is 0.
func (h *spreads) quantile(bins []float64, q float64) float64 {
	size, below, end := 0.0, 0.0, math.Ldexp(h.top*h.top, 1-spreadBins)
	for _, n := range bins {
		size += n
	}
	for _, n := range bins {
		if n > 0 && below+n >= q*size {
			return math.Sqrt(end/2 + float64(end/2*((float64(q*size)-below)/n)))
		}
		below += n
		end *= 2
	}
	return 0
}

// A radius is the quantile spreadQuantile of a cluster's distances. Where a cluster's records are not seen it is that
// of all records, unless the radius before was unseenRadius times as long: then a few records may be far away.
const spreadQuantile, unseenRadius = 0.4, 2.5

// radii sets the lengths to which the offsets of each cluster are cut, from those of before.
func (h *spreads) radii(radii []float64, before float64) {
	all := make([]float64, spreadBins)
	for b, n := range h.counts {
		all[b%spreadBins] += n
	}
	most := h.quantile(all, spreadQuantile)
	if most == 0 || before > unseenRadius*most {
		most = before
	}
	for c := range radii {
		if radii[c] = h.quantile(h.counts[c*spreadBins:(c+1)*spreadBins], spreadQuantile); radii[c] == 0 {
			radii[c] = min(before, most)
		}
	}
}

// A cluster is taken for several where its loss is severalLoss times what is usual for as many records: the first
// quartile of all clusters' loss of a record. One of its halves takes the centroid of a cluster that the loss would
// rise by least without, at most by a worthwhile part of what it is above the usual; at the last look, where few rounds
// are left to mend what a wide cluster that is one was taken for, by a much smaller part. Nor are so few records halved
// that a bin would not show them: a few far ones fell to four centroids that noise kept from moving.
const severalLoss, worthwhile, lastWorthwhile = 1.6, 1.0 / 8, 1.0 / 64

// swap moves centroids without which the loss would hardly rise into clusters that are several: both start on either
// side of the centroid, in a random direction. The rounds after it tell the halves apart. sums are the records that
// rounds have counted; worth is the worthwhile part. It is post-processing of released histograms.
func (h *spreads) swap(centroids []float32, radii, sums []float64, worth float64, bits int,
	directions *privacy.Stream) {
	s := newSwaps(h, centroids)
	for range h.k {
		out, cost := s.dispensable()
		into, excess := -1, 0.0
		for c, n := range s.sizes {
			over := s.losses[c] - float64(n*s.usual)
			if over > excess && c != out && n >= seenNoise*h.noise && s.losses[c] >= severalLoss*n*s.usual {
				into, excess = c, over
			}
		}
		if out < 0 || into < 0 || worth*excess < cost {
			return
		}
		far := math.Sqrt(s.losses[into]/s.sizes[into]) / 2
		u, square := Direction(s.d, directions)
		for i, x := range u {
			at, step := float64(centroids[into*s.d+i]), float64(far*x)/math.Sqrt(square)
			centroids[out*s.d+i], centroids[into*s.d+i] = OnGrid(at+step, bits), OnGrid(at-step, bits)
		}
		radii[out] = radii[into]
		sums[s.next[out]] += sums[out]
		sums[into] /= 2
		sums[out] = sums[into]
		s.moved(out, into, cost)
	}
}

// swaps is what swap knows of clusters.
type swaps struct {
	d             int
	centroids     []float32
	sizes, losses []float64
	least         float64 // records that a cluster may have unseen
	usual         float64
	near          []float64 // squared distance to the next centroid
	next          []int     // which one that is
	placed        []bool    // centroids that have moved
}

func newSwaps(h *spreads, centroids []float32) *swaps {
	s := &swaps{d: len(centroids) / h.k, centroids: centroids, sizes: make([]float64, h.k), losses: make([]float64, h.k),
		least: h.noise / 2, near: make([]float64, h.k), next: make([]int, h.k), placed: make([]bool, h.k)}
	var each []float64
	for c := range h.k {
		if s.sizes[c], s.losses[c] = h.size(c); s.sizes[c] > 0 {
			each = append(each, s.losses[c]/s.sizes[c])
		}
		s.search(c)
	}
	if len(each) > 0 {
		slices.Sort(each)
		s.usual = each[len(each)/4]
	}
	return s
}

// search finds the centroid next to c.
func (s *swaps) search(c int) {
	s.near[c] = math.Inf(1)
	for e := range s.near {
		s.compare(c, e)
	}
}

// compare takes e for the centroid next to c if it is closer than the one known.
func (s *swaps) compare(c, e int) {
	if c == e {
		return
	}
	square := elementary.SquaredDistance(s.centroids[c*s.d:(c+1)*s.d], s.centroids[e*s.d:])
	if square < s.near[c] {
		s.near[c], s.next[c] = square, e
	}
}

// dispensable is the cluster without which the loss rises least, by cost, where its records go to the next one: of two
// that are each other's next, the one with fewer. It is -1 where all have been placed.
func (s *swaps) dispensable() (out int, cost float64) {
	out, cost = -1, math.Inf(1)
	for c, near := range s.near {
		n, m := max(s.sizes[c], s.least), max(s.sizes[s.next[c]], s.least)
		price := n * m / (n + m) * near
		if !s.placed[c] && (price < cost || price == cost && s.sizes[c] < s.sizes[out]) {
			out, cost = c, price
		}
	}
	return out, cost
}

// moved accounts for a centroid that left its records to the next one and has taken half of another cluster's, which
// the usual loss is left of, and as much as half of what is above it.
func (s *swaps) moved(out, into int, cost float64) {
	if heir := s.next[out]; heir != into {
		s.sizes[heir] += s.sizes[out]
		s.losses[heir] += s.losses[out] + cost
	}
	s.losses[into] = (s.losses[into] + float64(s.usual*s.sizes[into])) / 4
	s.sizes[into] /= 2
	s.sizes[out], s.losses[out] = s.sizes[into], s.losses[into]
	s.placed[out], s.placed[into] = true, true
	for c, e := range s.next {
		if c == out || c == into || e == out || e == into {
			s.search(c)
			continue
		}
		s.compare(c, out)
		s.compare(c, into)
	}
}
