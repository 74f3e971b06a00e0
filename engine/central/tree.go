package central

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// treeShape is the shape of the midpoint tree for n records in d dimensions:
// bits halvings a level (2^bits children), and as many levels as bring the
// cells to about n mu.
func treeShape(n, d int, mu float64, fractionBits int) (bits, levels int) {
	bits = min(d, 3)
	levels = max(1, int(math.Ceil(log2(float64(n)*mu)/float64(bits))))
	for levels > 1 && (bits*levels > 62 || (bits*levels+d-1)/d > fractionBits) {
		levels--
	}
	return bits, levels
}

// growth is the exponent by which the budget of a level grows: mu^2 by 2^(l/3)
// for Gaussian noise. Minimising the same weighted sum of variances with
// budgets that add up linearly gives 2^(2l/9) for the epsilon of Laplace noise.
func (l law) growth(level int) float64 {
	if l.gaussian {
		return pow(2, float64(level)/3)
	}
	return pow(2, 2*float64(level)/9)
}

// tree releases a midpoint tree over the parties' records, or projections of
// them, with the whole of l, level by level, and makes it consistent with the
// public number of records.
func (s *session) tree(l law, parts []*kernels.Panels) (*synopsis.Trie, error) {
	bits, levels := treeShape(s.n, parts[0].D, l.mu(), s.bits)
	pool := s.rt.Pool()
	walkers := make([]*synopsis.Walker, len(parts))
	for p, part := range parts {
		span := s.rt.Begin(engine.PhaseEncode, 0, p)
		paths, err := synopsis.MidpointPaths(s.ctx, pool, part, s.bits, bits, levels)
		s.rt.End(span)
		if err != nil {
			return nil, err
		}
		walkers[p] = synopsis.NewWalker(paths)
	}
	total := 0.0
	for level := range levels {
		total += l.growth(level)
	}
	trie, err := synopsis.Grow(bits, levels, walkers, func(level, cells int) ([]float64, float64, error) {
		return s.countLevel(walkers, cells, l.share(l.growth(level)/total), fmt.Sprintf("tree level %d", level+1), "tree counts per level")
	}, func(float64) float64 { return 0 })
	if err != nil {
		return nil, err
	}
	span := s.rt.Begin(engine.PhasePostprocess, s.rounds, engine.Server)
	trie.Estimate(float64(s.n))
	s.rt.End(span)
	return trie, nil
}

// countLevel releases the counts of all cells of one level of a trie and returns
// them with the variance of their noise. line names what is released in the
// table of calibrations.
func (s *session) countLevel(walkers []*synopsis.Walker, cells int, l law, what, line string) ([]float64, float64, error) {
	parts := s.partSums(cells)
	for p, w := range walkers {
		span := s.rt.Begin(engine.PhaseAccumulate, s.rounds, p)
		err := w.Count(s.ctx, s.rt.Pool(), parts[p])
		s.rt.End(span)
		if err != nil {
			return nil, 0, err
		}
	}
	noisy, scale, err := s.releaseCounts(parts, l, what, line)
	return noisy, l.variance(scale), err
}

// releaseCounts releases counts of disjoint sets of records with the whole of l
// and returns them with the noise scale.
func (s *session) releaseCounts(parts [][]int64, l law, what, line string) ([]float64, float64, error) {
	bound := s.bound(line, 0)
	scale := l.scale(bound)
	noisy, err := s.release(what, parts, l, []noiseGroup{{len(parts[0]), 0, scale}})
	if err != nil {
		return nil, 0, err
	}
	return noisy, scale, s.enter(l, l.entry(what+": counts of all cells", s.viewers(), scale, bound, 1))
}
