package hybrid

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
)

// highPlan is the plan of the branch for many dimensions.
type highPlan struct {
	mean, distances *staged.Release
	rounds          []*staged.Release
}

func (h *plan) addHigh(rounds, k int) *highPlan {
	f, l := h.Plan, h.Share
	o := &highPlan{mean: f.AddMean(l.Part(0.03)), distances: f.AddDistances(l.Part(0.01))}
	if rounds == 0 {
		rounds = f.ManyRounds()
	}
	o.rounds = f.AddEqualRounds(l.Part(0.96), rounds, k)
	return o
}

// run is the branch for many dimensions.
func (h *highPlan) run(ctx context.Context, p *staged.Party) (centroids []float32, sizes []float64, err error) {
	mean, err := p.PrivateMean(ctx, h.mean)
	if err != nil {
		return nil, nil, err
	}
	radius, err := p.DistanceQuantile(ctx, h.distances, staged.GridRow(mean, p.FractionBits), 2*math.Sqrt(float64(p.D)),
		0.25)
	if err != nil {
		return nil, nil, err
	}
	centroids = make([]float32, p.K*p.D)
	stream := p.Public.Stream(int(protocol.Server), 0, "start")
	for c := range p.K {
		direction, square := staged.Direction(p.D, stream)
		norm := math.Sqrt(square)
		for i, x := range direction {
			centroids[c*p.D+i] = staged.OnGrid(mean[i]+float64(0.3*radius*x)/norm, p.FractionBits)
		}
	}
	sizes, err = p.EqualRounds(ctx, h.rounds, centroids, radius)
	return centroids, sizes, err
}
