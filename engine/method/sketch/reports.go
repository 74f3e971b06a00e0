package sketch

import "context"

// aggregateReports estimates the grid from reports: by the inverse of the joint
// transition of all parties (LDP-AGG), or from those of all pairs by the additive fit
// (LDP-AGG-2PEst).
func (v *server) aggregateReports(ctx context.Context, f *frequency, reports [][]uint8) (*Grid, error) {
	k, parties, n := v.plan.clusters, v.plan.parties, float64(v.job.Own())
	if v.job.Estimator == EstimatorReports || parties == 2 {
		all := make([]int, parties)
		for l := range all {
			all[l] = l
		}
		g, err := newDenseGrid(parties, k)
		if err != nil {
			return nil, err
		}
		if g.Weights, err = v.supportCounts(ctx, f, reports, all); err != nil {
			return nil, err
		}
		f.invert(g.Weights, parties)
		projectSimplex(g.Weights, n)
		return g, nil
	}
	r := &Release{Parties: parties, Clusters: k, Records: n}
	sizes := make([][]float64, parties)
	for l := range sizes {
		counts, err := v.supportCounts(ctx, f, reports, []int{l})
		if err != nil {
			return nil, err
		}
		f.invert(counts, 1)
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
			f.invert(counts, 2)
			projectSimplex(counts, n)
			pairs = append(pairs, counts)
		}
	}
	return additiveFit(ctx, v.Pool(), r, pairs, sizes)
}

// supportCounts counts, for each cell of the given parties, the records all of
// whose reports support it.
func (v *server) supportCounts(ctx context.Context, f *frequency, reports [][]uint8, parties []int) ([]float64, error) {
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
			countProduct(counts, supported, k, 0)
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

// countProduct counts the cells of a product of sets of clusters, k to a party, those of
// the parties before them being number cell.
func countProduct(counts []float64, sets [][]int, k, cell int) {
	if len(sets) == 0 {
		counts[cell]++
		return
	}
	for _, a := range sets[0] {
		countProduct(counts, sets[1:], k, cell*k+a)
	}
}
