package horizontal

import (
	"context"

	"github.com/cohort-engine/cohort/engine/step/seeding"
)

// kMeansPlusPlus draws k centres from the records of all clients by greedy
// k-means++. It shows records, so it serves runs without noise only.
func (s *Session) kMeansPlusPlus(r source) []float64 {
	each := func(n int, task func(i int)) {
		// The tasks do not fail, and nothing cancels them.
		_ = s.rt.Pool().Run(context.Background(), n, func(_, i int) { task(i) })
	}
	trials := seeding.Trials(s.k)
	var parts []*seeding.Part
	for _, c := range s.clients {
		parts = append(parts, seeding.NewPart(c.points, trials, each))
	}
	draws := 0
	rows := seeding.PlusPlus(parts, s.k, trials, func() float64 {
		s.rt.Pool().Report("k-means++, centres", draws/trials, s.k)
		draws++
		return unit(r)
	})
	centres := make([]float64, len(rows))
	for i, x := range rows {
		centres[i] = float64(x)
	}
	return centres
}
