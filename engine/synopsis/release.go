package synopsis

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/kernels"
)

// Grow releases a trie of the given depth level by level. count counts the cells
// of a level, as the walkers do at the level that they have reached, adds noise,
// and returns the noisy counts with the variance of their noise: how it does so
// is the caller's, whether at one party or through a secure sum over several.
// threshold says from which noisy count on a cell of that level opens, given the
// variance; the last level opens none.
func Grow(bits, levels int, walkers []*Walker, count func(level, cells int) (noisy []float64, variance float64, err error), threshold func(variance float64) float64) (*Trie, error) {
	t := NewTrie(bits)
	for level := range levels {
		if t.Open() == 0 {
			break
		}
		noisy, variance, err := count(level, t.Open()<<bits)
		if err != nil {
			return nil, err
		}
		cut := threshold(variance)
		if level == levels-1 {
			cut = math.Inf(1)
		}
		next := t.Add(noisy, variance, cut)
		for _, w := range walkers {
			w.Descend(next)
		}
	}
	return t, nil
}

// Forest is a coreset by an LSH forest (Sketch-V, appendix B.1) of one party's
// records: a trie of noisy counts over their paths and the noisy sums of the
// records of each leaf. The two functions add the noise.
type Forest struct {
	// Threshold is the noisy count above which a cell opens.
	Threshold float64
	// Records, if positive, is the public number of records with which the counts
	// are made consistent.
	Records float64
	// Counts adds the counts of a level's cells (see [Walker.Count]), and noise,
	// and returns them with the variance of the noise.
	Counts func(level, cells int, w *Walker) (noisy []float64, variance float64, err error)
	// Sums returns the sums of the records of each leaf (see [Walker.LeafSums])
	// with noise, in data units.
	Sums func(leaves int, w *Walker) ([]float64, error)
}

// Release releases the forest and returns the leaves of positive count as points:
// the mean of each, clipped to the box [-1,1]^d, weighted by its count.
func (f Forest) Release(paths *Paths, d int) (*Weighted, error) {
	w := NewWalker(paths)
	trie, err := Grow(paths.Bits, paths.Levels, []*Walker{w}, func(level, cells int) ([]float64, float64, error) { return f.Counts(level, cells, w) },
		func(float64) float64 { return f.Threshold })
	if err != nil {
		return nil, err
	}
	if f.Records > 0 {
		trie.Estimate(f.Records)
	}
	sums, err := f.Sums(trie.Leaves(), w)
	if err != nil {
		return nil, err
	}
	points := &Weighted{D: d}
	mean := make([]float64, d)
	for leaf, count := range trie.LeafCounts() {
		if count <= 0 {
			continue
		}
		for h := range mean {
			mean[h] = min(max(sums[leaf*d+h]/max(count, 1), -1), 1)
		}
		points.Append(mean, count)
	}
	return points, nil
}

// LeafSums returns the sums of the records of each leaf, row-major, in units of
// the records' grid 2^-fractionBits. p holds the records that walked.
func (w *Walker) LeafSums(ctx context.Context, r Runner, p *kernels.Panels, leaves, fractionBits int) ([]int64, error) {
	r = runner(r)
	leaf := make([]int32, p.N)
	w.Leaves(leaf)
	parts := make([][]int64, r.Workers())
	unit := float32(int64(1) << fractionBits)
	step := shardPoints(p.D)
	err := r.Run(ctx, (p.N+step-1)/step, func(worker, s int) {
		if parts[worker] == nil {
			parts[worker] = make([]int64, leaves*p.D)
		}
		part := parts[worker]
		for i := s * step; i < min((s+1)*step, p.N); i++ {
			if leaf[i] < 0 {
				continue
			}
			at := part[int(leaf[i])*p.D:][:p.D]
			x := p.Data[i/kernels.Lanes*p.D*kernels.Lanes+i%kernels.Lanes:]
			for h := range at {
				at[h] += int64(x[h*kernels.Lanes] * unit)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	sums := make([]int64, leaves*p.D)
	for _, part := range parts {
		for i, x := range part {
			sums[i] += x
		}
	}
	return sums, nil
}
