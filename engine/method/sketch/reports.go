package sketch

import "context"

// aggregateReports estimates the grid from reports: for two parties by the
// inverse of the joint transition, for more from all pairs by the additive fit.
func (v *server) aggregateReports(ctx context.Context, f *Frequency, reports [][]uint8) (*Grid, error) {
	k, parties, n := v.plan.clusters, v.plan.parties, float64(v.job.Own())
	r := &Release{Parties: parties, Clusters: k, Records: n}
	sizes := make([][]float64, parties)
	for l := range sizes {
		counts, err := v.supportCounts(ctx, f, reports, []int{l})
		if err != nil {
			return nil, err
		}
		f.Invert(counts, 1)
		projectSimplex(counts, n)
		sizes[l] = counts
	}
	var pairs [][]float64
	for l1 := range parties {
		for l2 := l1 + 1; l2 < parties; l2++ {
			counts, err := v.supportCounts(ctx, f, reports, []int{l1, l2})
			if err != nil {
				return nil, err
			}
			f.Invert(counts, 2)
			projectSimplex(counts, n)
			pairs = append(pairs, counts)
		}
	}
	if parties == 2 {
		g, err := newDenseGrid(2, k)
		if err == nil {
			copy(g.Weights, pairs[0])
		}
		return g, err
	}
	return additiveFit(ctx, v.Pool(), r, pairs, sizes)
}

// supportCounts counts, for each cell of the given parties, the records all of
// whose reports support it.
func (v *server) supportCounts(ctx context.Context, f *Frequency, reports [][]uint8, parties []int) ([]float64, error) {
	k, n := v.plan.clusters, v.job.Own()
	size := powInt(k, len(parties))
	const block = 1 << 14
	partial := make([][]float64, v.Pool().Workers())
	err := v.Pool().Run(ctx, (n+block-1)/block, func(worker, b int) {
		if partial[worker] == nil {
			partial[worker] = make([]float64, size)
		}
		counts := partial[worker]
		supported := make([][]int, len(parties))
		for i := b * block; i < min((b+1)*block, n); i++ {
			for x, l := range parties {
				supported[x] = supported[x][:0]
				for a := range k {
					if f.supports(reportSeed(l, i), int(reports[l][i]), a) {
						supported[x] = append(supported[x], a)
					}
				}
			}
			for _, a := range supported[0] {
				if len(parties) == 1 {
					counts[a]++
					continue
				}
				for _, b := range supported[1] {
					counts[a*k+b]++
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	total := make([]float64, size)
	for _, p := range partial {
		for i, x := range p { // counts are integers, so their order does not matter
			total[i] += x
		}
	}
	return total, nil
}
