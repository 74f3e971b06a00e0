package lloyd

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/seeding"
)

// oversample sets all centroids by k-means||: candidates that the clients reveal in a
// few draws of many, weighted by the records of all clients nearest to each, are
// clustered by each client for itself.
func (s *seeder) oversample(ctx context.Context, st *privacy.Stream, start int) error {
	s.own.Forget()
	picks, all := []seeding.Pick{seeding.AnyRecord(s.weights, !s.weighted, st.Float64())}, []float32(nil)
	for pass := 0; len(picks) > 0; pass++ {
		if s.party.Role == s.First(0) {
			s.party.Pool().Report(fmt.Sprintf("k-means||, start %d of %d", start+1, s.starts), pass, seeding.Passes+1)
		}
		rows, err := s.reveal(ctx, picks)
		if err != nil {
			return err
		}
		all = append(all, rows...)
		s.own.Extend(rows)
		if s.potentials, err = s.tell(ctx, []float64{s.own.Potential()}); err != nil {
			return err
		}
		picks = picks[:0]
		for total := seeding.Sum(s.potentials); total > 0 && pass < seeding.Passes && len(picks) < seeding.Oversampling*s.k; {
			picks = append(picks, seeding.Locate(s.potentials, float64(st.Float64()*total)))
		}
	}
	weights, err := s.owned(ctx, len(all)/s.d)
	if err != nil {
		return err
	}
	centres, err := protocol.Once(s.party, "k-means||", start, func() ([]float32, error) {
		draws := s.party.Public.Stream(everyClient, start, "recluster")
		return seeding.Recluster(all, weights, s.d, s.k, draws.Float64, s.each), nil
	})
	for i, x := range centres {
		s.centroids[i] = float64(x)
	}
	return err
}

// owned is, by candidate, the weight of all clients' records that are nearest to it.
func (s *seeder) owned(ctx context.Context, candidates int) ([]float64, error) {
	words, err := s.sum(ctx, candidates, func(words []int64) error {
		for i, w := range s.own.Owned() {
			words[i] = s.weightUnits(w)
		}
		return nil
	})
	weights := make([]float64, len(words))
	for i, x := range words {
		weights[i] = float64(x)
	}
	return weights, err
}
