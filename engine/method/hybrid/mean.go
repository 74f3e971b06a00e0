package hybrid

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// meanPlan is the plan of the branch for a signal too weak for clusters.
type meanPlan struct {
	mean      *staged.Release
	distances *staged.Release // nil where its noise would hide the records
}

// histogramShare is the share of the histogram of distances beside one mean.
const histogramShare = 0.1

// tooWeak is the rule, from public numbers only, for one mean in place of clusters.
func (h *plan) tooWeak() bool { return h.Signal(h.Share) < h.leastSignal(h.K) }

// leastSignal is what k clusters need of n mu, the number of standard deviations by which all records stand above the
// noise of a count: (4k/3+3) min((d-3.8)^(3/4), 2.2 (d-3.8)^(1/2)), the factor being at least 1. Up to three
// dimensions a tree does as well down to a handful. The constants come from generated sets of 300 to 5,000 records in
// 4 to 30 dimensions (cohort bench floor).
func (h *plan) leastSignal(k int) float64 {
	if h.D <= 3 {
		return 3
	}
	d := float64(h.D) - 3.8
	return (float64(4*k)/3 + 3) * max(min(elementary.Pow(d, 0.75), 2.2*math.Sqrt(d)), 1)
}

func (h *plan) addMean() *meanPlan {
	o, l := new(meanPlan), h.Share
	if counts := l.Part(histogramShare); h.Signal(counts) > 12 {
		o.distances = h.AddDistances(counts)
		l = l.Part(1 - histogramShare)
	}
	o.mean = h.Plan.AddMean(l)
	h.Doubts = append(h.Doubts, "the budget is too small for clusters of so few records: the answer is one private mean, "+
		"and points around it that no record has chosen; more records or a larger epsilon would help")
	return o
}

// run is the branch for a weak signal: one private mean, and around it, for nothing,
// as many directions as there are further clusters. With the mean among them they are
// never worse than the mean alone, and the nearest of k directions in d dimensions has
// a cosine of about sqrt(2 ln k / (d + 2 ln k)) with a record's, by whose square the
// loss falls. All but the sum and the histogram is post-processing.
func (o *meanPlan) run(ctx context.Context, p *staged.Party) (centroids []float32, err error) {
	mean, err := p.PrivateMean(ctx, o.mean)
	if err != nil {
		return nil, err
	}
	noisy := slices.Clone(mean)
	towardCentre(mean, meanVariance(o.mean, p))
	centre := staged.GridRow(mean, p.FractionBits)
	var distances *staged.Distances
	radius := unknownRadius(p.D)
	if o.distances != nil {
		if distances, err = p.ReleaseDistances(ctx, o.distances, centre, 2*math.Sqrt(float64(p.D))); err != nil {
			return nil, err
		}
		radius = distances.Quantile(0.5)
	}
	return protocol.Once(p.Party, "around", 0, func() ([]float32, error) {
		stream := p.Public.Stream(int(protocol.Server), 0, "start")
		far := farClusters(mean, 0, distances, p.K)
		near := around(mean, noisy, radius, p.K-far, p.FractionBits, stream)
		return append(near, around(make([]float64, p.D), nil, unknownRadius(p.D), far, p.FractionBits, stream)...), nil
	})
}

// meanVariance is the variance of the noise in each coordinate of a released mean.
func meanVariance(mean *staged.Release, p *staged.Party) float64 {
	return mean.Share.Variance(mean.Scale / float64(p.N))
}

// meanSure is by how many standard deviations the square of a mean stands above that of its noise before the centre of
// the box is left: records lie about it as often as not.
const meanSure = 1

// towardCentre shrinks a mean toward the centre of the box by 1 - d variance/|mean|^2, variance being that of its noise
// in each coordinate, and to it where noise makes such a mean.
func towardCentre(mean []float64, variance float64) {
	factor, d := 0.0, float64(len(mean))
	if square := elementary.SquaredLength(mean); square > float64((d+float64(meanSure*math.Sqrt(2*d)))*variance) {
		factor = 1 - d*variance/square
	}
	for h := range mean {
		mean[h] *= factor
	}
}

// aroundTries is the number of directions that are drawn for each that is taken.
const aroundTries = 20

// unknownRadius stands for distances that are not released: of records as wide as a box of .4.
func unknownRadius(d int) float64 { return 0.4 * math.Sqrt(float64(d)) }

// around returns a mean and k-1 points around it, in directions that are spread as a
// greedy choice among random ones spreads them; nothing for no points. The first direction is that of
// what has been shrunk to the mean, as that may have been too much; nil for nothing.
func around(mean, shrunk []float64, radius float64, k, bits int, stream *privacy.Stream) []float32 {
	if k == 0 {
		return nil
	}
	d, spread := len(mean), 2*elementary.Log(float64(max(k, 2)))
	length := radius * math.Sqrt(spread/(float64(d)+spread))
	centroids := staged.GridRow(mean, bits)
	var taken [][]float64
	for range k - 1 {
		next := toward(mean, shrunk)
		if len(taken) > 0 || next == nil {
			next = apart(taken, d, stream)
		}
		taken = append(taken, next)
		for h, x := range next {
			centroids = append(centroids, staged.OnGrid(mean[h]+float64(length*x), bits))
		}
	}
	return centroids
}

// toward is the direction from a point to another, nil where there is none.
func toward(from, to []float64) []float64 {
	if to == nil || slices.Equal(from, to) {
		return nil
	}
	u, length := make([]float64, len(to)), math.Sqrt(elementary.SquaredDistance(from, to))
	for h, x := range to {
		u[h] = (x - from[h]) / length
	}
	return u
}

// apart is the one of random directions that is farthest from those that are taken.
func apart(taken [][]float64, d int, stream *privacy.Stream) (best []float64) {
	least := math.Inf(1)
	for range aroundTries {
		u, square := staged.Direction(d, stream)
		nearest := math.Inf(-1)
		for h := range u {
			u[h] /= math.Sqrt(square)
		}
		for _, t := range taken {
			cosine := 0.0
			for h, x := range u {
				cosine += float64(x * t[h])
			}
			nearest = max(nearest, cosine)
		}
		if best == nil || nearest < least {
			best, least = u, nearest
		}
	}
	return best
}
