package hybrid

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// highPlan is the plan of the branch for many dimensions.
type highPlan struct {
	mean      *staged.SteppedMean
	distances *staged.Release
	near      *staged.Release // a second mean, nil where the signal is too weak for one
	around    *staged.Release // distances from it
	rounds    *staged.EqualRounds
	clusters  int // that are measured
	started   int // that rounds start with, to be merged where they are more
}

// manyColumns is from where on what cannot be a tree measures as many clusters as the signal is enough for.
const manyColumns = 10

// measured is how many of k clusters are measured in many columns, from public numbers only: so many, or half as often
// as it takes, that the signal (leastSignal) is 2.2m-3.2 for the root of each column. As one mean has, each of them
// then has for nothing points beside it that no record has chosen, which can only lower the loss. The constants come
// from generated sets of 300 to 5,000 records in 12 to 30 columns.
func (h *plan) measured() int {
	m := h.K
	for m > 3 && !h.enough(h.Share, m) {
		m = (m + 1) / 2
	}
	return m
}

// enough says whether the signal of a share of the budget is enough for m clusters.
func (h *plan) enough(l staged.Share, m int) bool {
	return h.Signal(l) >= (float64(2.2*float64(m))-3.2)*math.Sqrt(float64(h.D))
}

// startTimes is how many times more clusters than asked for rounds around a mean start with, of three clusters or more,
// where what the rounds have of the budget that measure so many is signal enough for them. Of as many as are asked for
// one may end with hardly any records, and another one on two clusters.
const startTimes = 2

// begun is how many clusters rounds start with that have that share of the budget together.
func (h *plan) begun(l staged.Share, rounds int) int {
	_, part := staged.WideRounds(rounds)
	if more := overseeds(startTimes, h.K, h.N); h.K > 2 && h.enough(l.Part(part), more) {
		return more
	}
	return h.K
}

// Shares of the budget of what the rounds start from: the histogram of distances, and the mean, which has most where
// the signal is weakest. Where most records are in a corner, clusters around a mean of much noise end beside them.
const distanceShare, meanLeast, meanMost = 0.01, 0.03, 0.12

// startShare is the share of the mean: as much as lets it stand startSignal deviations of its noise above it for the
// root of each column.
func (h *plan) startShare() float64 {
	const startSignal = 5.2
	s := startSignal / h.Signal(h.Share)
	return min(max(float64(s*s)*float64(h.D), meanLeast), meanMost)
}

// Bounds may be so many times as wide as the records that the noise of the mean, which is that of whole offsets, is
// longer than they are far from one another: all clusters would start beside them. A second mean has nearShare of the
// budget, and its offsets are cut to the quantile nearMost of the distances from the first one, where one sum was
// enough for that and the signal to noise ratio is nearSNR: below, the rounds need the budget. The constants come
// from generated sets of 1,000 to 20,000 records in 10 to 30 columns, under bounds as wide as the records and 2 to
// 100 times as wide.
const nearShare, nearMost, nearSNR = 0.02, 0.95, 12

func (h *plan) addHigh(rounds, k int) *highPlan {
	f, l := h.Plan, h.Share
	share := h.startShare()
	o := &highPlan{mean: f.AddSteppedMean(l.Part(share)),
		distances: f.AddDistances("the mean", l.Part(distanceShare)), clusters: k}
	if rounds == 0 {
		rounds = f.ManyRounds()
	}
	if h.D >= manyColumns {
		o.clusters = h.measured()
	}
	rest := 1 - distanceShare - share
	if o.mean.Clear() && h.SNR() >= nearSNR {
		o.near = f.AddNearMean(l.Part(nearShare))
		o.around = f.AddDistances("the mean of near offsets", l.Part(distanceShare))
		rest -= nearShare + distanceShare
	}
	o.started = o.clusters
	if o.clusters == k {
		o.started = h.begun(l.Part(rest), rounds)
	}
	o.rounds = f.AddMergedRounds(l.Part(rest), rounds, o.started, o.clusters)
	return o
}

// run is the branch for many dimensions.
func (h *highPlan) run(ctx context.Context, p *staged.Party) (centroids []float32, sizes []float64, err error) {
	k := p.K
	p = p.WithClusters(h.clusters)
	found, err := p.SteppedMean(ctx, h.mean)
	if err != nil {
		return nil, nil, err
	}
	mean, variance := found.Mean, found.Variance
	centre := slices.Clone(mean)
	staged.TowardCentre(centre, variance)
	point := staged.GridRow(centre, p.FractionBits)
	distances, err := p.ReleaseDistances(ctx, h.distances, point, 2*math.Sqrt(float64(p.D)))
	if err != nil {
		return nil, nil, err
	}
	radius := startRadius(distances.Quartile(staged.Reach(point)), variance, p.D)
	started := h.started
	far := farClusters(mean, variance, distances, h.clusters)
	if far > 0 { // of the few records beside the many, more centroids would measure noise
		started = h.clusters
	}
	if h.near != nil {
		if radius, err = h.comeNear(ctx, p, point, distances); err != nil {
			return nil, nil, err
		}
		centre = staged.Widen(point)
	}
	stream := p.Public.Stream(int(protocol.Server), 0, "start")
	centroids = append(staged.Directions(stream, centre, startLength*radius, started-far, p.FractionBits),
		staged.Directions(stream, make([]float64, p.D), startLength*radius, far, p.FractionBits)...)
	sizes, err = p.EqualRounds(ctx, h.rounds, centroids, radius)
	centroids = centroids[:h.clusters*p.D]
	if err != nil || k == h.clusters {
		return centroids, sizes, err
	}
	centroids, err = protocol.Once(p.Party, "around", 0, func() ([]float32, error) {
		stream := p.Public.Stream(int(protocol.Server), 0, "around")
		all := slices.Clone(centroids)
		for j := range k - h.clusters {
			at := j % h.clusters * p.D
			one := staged.Widen(centroids[at : at+p.D])
			all = append(all, staged.Directions(stream, one, beside(radius, p.D), 1, p.FractionBits)...)
		}
		return all, nil
	})
	return centroids, nil, err
}

// A few records are far away where the quantile nearMost of the distances is fewRadii times the first quartile, and
// noise does not make them up: then offsets are cut to fewLonger quartiles.
const fewRadii, fewLonger, fewNoise = 3, 2, 0.1

// comeNear moves a public point, from which distances are, to the second mean, and returns how far from it clusters
// start and to what their offsets are cut at first.
func (h *highPlan) comeNear(ctx context.Context, p *staged.Party, point []float32, distances *staged.Distances) (
	radius float64, err error) {
	if err = p.NearMean(ctx, h.near, point, distances.Quantile(nearMost)); err != nil {
		return 0, err
	}
	if distances, err = p.ReleaseDistances(ctx, h.around, point, 2*math.Sqrt(float64(p.D))); err != nil {
		return 0, err
	}
	radius = distances.Quantile(0.25)
	if distances.Noise < fewNoise && distances.Quantile(nearMost) > fewRadii*radius {
		radius *= fewLonger
	}
	return radius, nil
}

// startRadius is how far the nearest quarter of the records is from a mean with noise of that variance, which alone is
// the root of d variances from them. A histogram that is mostly noise may say less.
func startRadius(quarter, variance float64, d int) float64 {
	return max(quarter, math.Sqrt(variance*float64(d)))
}

// beside is how far from a cluster's centre, about which records are as far as radius, the best point beside it is
// where nothing is known of its direction: the nearer of 2 directions in d dimensions has a cosine of about
// sqrt(2 ln 2 / (d + 2 ln 2)) with a record's, by whose square the loss falls.
func beside(radius float64, d int) float64 {
	return radius * math.Sqrt(2*math.Ln2/(float64(d)+2*math.Ln2))
}

// startLength is how far from the mean clusters start, in radii.
const startLength = 0.3

// Most records may be in a part of the box, and few anywhere in it: a mean lies among the
// many, and so would all clusters that start around it, but most of the loss is of the few.
// The centre of the box, which is public, lies apart where it is so many radii from the mean,
// and a part of the box's half diagonal; where noise hides the radius, a larger part.
const farRadii, farDiagonal, farUnseen = 2, 0.25, 0.55

// Beyond the middle between the two there must be a part of the records, as the released
// distances have it, unless their noise on all bins together is above farNoise of the records.
const fewFar, farNoise = 0.02, 0.2

// farClusters is how many of k clusters start around the centre of the box and not around
// the released mean, which has noise of that variance: half of them where the centre lies apart.
// distances are from the mean, nil where they are not released. It is post-processing.
func farClusters(mean []float64, variance float64, distances *staged.Distances, k int) int {
	d := float64(len(mean))
	// The noise adds d variance to the square, give or take sqrt(2 d) variance, two of which are left out.
	length := math.Sqrt(max(elementary.SquaredLength(mean)-float64(variance*(d+2*math.Sqrt(2*d))), 0))
	switch {
	case distances == nil || distances.Noise > farNoise:
		if length < farUnseen*math.Sqrt(d) {
			return 0
		}
	case length < farDiagonal*math.Sqrt(d) || length < farRadii*distances.Quantile(0.25) ||
		distances.Beyond(length/2) < fewFar:
		return 0
	}
	return k / 2
}
