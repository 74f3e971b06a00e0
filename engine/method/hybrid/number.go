package hybrid

import (
	"context"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/fault"
)

// numbering is the effort of the searches that compare numbers of clusters.
var numbering = synopsis.SearchOptions{Starts: 4, Swaps: 60}

// numbered is a number of clusters, and the curve that it was chosen by.
type numbered struct {
	k     int
	curve []engine.KFit
}

// chooseK chooses the number of clusters, between the least and the most that were asked
// for, by released points: post-processing.
func (h *plan) chooseK(ctx context.Context, p *staged.Party, points *synopsis.Weighted) (*numbered, error) {
	stream := p.Public.Stream(int(protocol.Server), 0, "number")
	curve, err := synopsis.Numbers(ctx, p.Pool(), points, h.least, p.K, numbering, stream)
	if err != nil {
		return nil, err
	}
	fits := make([]engine.KFit, len(curve))
	for i, c := range curve {
		fits[i] = engine.KFit{K: c.K, NICV: c.Loss / max(points.Total(), 1), Silhouette: c.Silhouette}
	}
	if h.elbow {
		return &numbered{synopsis.ByElbow(curve), fits}, nil
	}
	return &numbered{synopsis.BySilhouette(curve), fits}, nil
}

// chosen is the party in a run for the k clusters that were chosen, if they were.
func (h *plan) chosen(p *staged.Party, curve []engine.KFit, k int) *staged.Party {
	if curve == nil {
		return p
	}
	by := "silhouette"
	if h.elbow {
		by = "elbow"
	}
	p.Note("%s, of %d to %d, by the %s on the private synopsis, which costs no budget", fault.Count(k, "cluster"),
		h.least, p.K, by)
	return p.WithClusters(k)
}
