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
	levelCounts := trieLevels{line: "tree counts per level", levels: levels, law: func(level int) law { return l.share(l.growth(level) / total) },
		name: func(level int) string { return fmt.Sprintf("tree level %d", level+1) }}
	trie, err := synopsis.Grow(bits, levels, walkers, func(level, cells int) ([]float64, float64, error) {
		return s.countLevel(&levelCounts, level, walkers, cells)
	}, func(float64) float64 { return 0 })
	if err != nil {
		return nil, err
	}
	if err := s.enterUnreached(&levelCounts); err != nil {
		return nil, err
	}
	span := s.rt.Begin(engine.PhasePostprocess, s.rounds, engine.Server)
	trie.Estimate(float64(s.n))
	s.rt.End(span)
	return trie, nil
}

// trieLevels is how the levels of a trie share its budget.
type trieLevels struct {
	// line names what is released in the table of calibrations.
	line    string
	levels  int
	law     func(level int) law
	name    func(level int) string
	reached int // levels released so far
}

// countLevel releases the counts of all cells of one level of a trie and returns
// them with the variance of their noise.
func (s *session) countLevel(t *trieLevels, level int, walkers []*synopsis.Walker, cells int) ([]float64, float64, error) {
	t.reached = level + 1
	l := t.law(level)
	parts := s.partSums(cells)
	for p, w := range walkers {
		span := s.rt.Begin(engine.PhaseAccumulate, s.rounds, p)
		err := w.Count(s.ctx, s.rt.Pool(), parts[p])
		s.rt.End(span)
		if err != nil {
			return nil, 0, err
		}
	}
	noisy, scale, err := s.releaseCounts(parts, l, t.name(level), t.line)
	return noisy, l.variance(scale), err
}

// enterUnreached charges the levels that a trie had no cells for. That it stopped
// is itself an outcome: epsilon bounds the method, which may go on, and not the
// one run.
func (s *session) enterUnreached(t *trieLevels) error {
	for level := t.reached; level < t.levels; level++ {
		l, bound := t.law(level), s.bound(t.line, 0)
		if err := s.enter(l, l.entry(t.name(level)+": not reached, which depends on the levels above", s.viewers(), l.scale(bound), bound, 1)); err != nil {
			return err
		}
	}
	return nil
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
