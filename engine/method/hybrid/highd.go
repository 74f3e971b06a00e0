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
	rounds    *staged.EqualRounds
	clusters  int // that are measured
}

// Where the signal is at least halvedSignal of what k clusters need, in halvedColumns and more, half of them are
// measured; where it is that of half as many, a quarter, if these are quarterLeast.
const halvedColumns, halvedSignal, quarterLeast = 20, 0.8, 4

// halved is the rule for fewer clusters, from public numbers only.
func (h *plan) halved() bool { return h.fewer() < h.K }

// fewer is how many clusters are measured. As one mean has, each of them has for nothing points beside it that no
// record has chosen, which can only lower the loss.
func (h *plan) fewer() int {
	half := (h.K + 1) / 2
	quarter := (half + 1) / 2
	switch {
	case h.D < halvedColumns || !h.tooWeak():
	case h.bears(h.K, half):
		return half
	case quarter >= quarterLeast && h.bears(half, quarter):
		return quarter
	}
	return h.K
}

// bears tells whether half of k clusters can be measured in the place of k.
func (h *plan) bears(k, half int) bool {
	return h.Signal(h.Share) >= max(halvedSignal*h.leastSignal(k), h.leastSignal(half))
}

func (h *plan) addHigh(rounds, k int) *highPlan {
	f, l := h.Plan, h.Share
	o := &highPlan{mean: f.AddSteppedMean(l.Part(0.03)), distances: f.AddDistances(l.Part(0.01))}
	if rounds == 0 {
		rounds = f.ManyRounds()
	}
	o.clusters = h.fewer()
	o.rounds = f.AddEqualRounds(l.Part(0.96), rounds, o.clusters, true)
	return o
}

// run is the branch for many dimensions.
func (h *highPlan) run(ctx context.Context, p *staged.Party) (centroids []float32, sizes []float64, err error) {
	k := p.K
	p = p.WithClusters(h.clusters)
	mean, variance, err := p.SteppedMean(ctx, h.mean)
	if err != nil {
		return nil, nil, err
	}
	centre := slices.Clone(mean)
	staged.TowardCentre(centre, variance)
	distances, err := p.ReleaseDistances(ctx, h.distances, staged.GridRow(centre, p.FractionBits),
		2*math.Sqrt(float64(p.D)))
	if err != nil {
		return nil, nil, err
	}
	radius := distances.Quantile(0.25)
	far := farClusters(mean, variance, distances, p.K)
	stream := p.Public.Stream(int(protocol.Server), 0, "start")
	centroids = append(staged.Directions(stream, centre, startLength*radius, p.K-far, p.FractionBits),
		staged.Directions(stream, make([]float64, p.D), startLength*radius, far, p.FractionBits)...)
	sizes, err = p.EqualRounds(ctx, h.rounds, centroids, radius)
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
