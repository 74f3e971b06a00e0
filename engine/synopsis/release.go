package synopsis

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// Growing is a trie that is released level by level.
type Growing struct {
	Bits, Levels int
	// Count counts the cells of a level, as the walker does at the level that it has
	// reached, adds noise, and returns the noisy counts with the variance of their
	// noise: how it does so is the caller's.
	Count func(level, cells int) (noisy []float64, variance float64, err error)
	// Threshold says from which noisy count on a cell of a level opens, given the
	// variance; the last level opens none.
	Threshold func(variance float64) float64
	// Once, if not nil, runs what adds a level's noisy counts to the trie and returns
	// which cells open: several walkers may grow one trie.
	Once func(level int, add func() ([]int32, error)) ([]int32, error)
}

// Grow adds the levels to t: nil for a new trie, or one shared by walkers that have
// come as far as this one. w may be nil, too.
func (g Growing) Grow(t *Trie, w *Walker) (*Trie, error) {
	if t == nil {
		t = NewTrie(g.Bits)
	}
	open := 1
	for level := 0; level < g.Levels && open > 0; level++ {
		noisy, variance, err := g.Count(level, open<<g.Bits)
		if err != nil {
			return nil, err
		}
		add := func() ([]int32, error) {
			cut := math.Inf(1)
			if level < g.Levels-1 {
				cut = g.Threshold(variance)
			}
			return t.Add(noisy, variance, cut), nil
		}
		var next []int32
		if g.Once == nil {
			next, err = add()
		} else {
			next, err = g.Once(level, add)
		}
		if err != nil {
			return nil, err
		}
		if w != nil {
			w.Descend(next)
		}
		open = 0
		for _, node := range next {
			if node >= 0 {
				open++
			}
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
	// Units is what each record counts for, nil where that is one.
	Units []uint32
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
	w := NewWalker(paths).Weigh(f.Units)
	g := Growing{Bits: paths.Bits, Levels: paths.Levels, Threshold: func(float64) float64 { return f.Threshold },
		Count: func(level, cells int) ([]float64, float64, error) { return f.Counts(level, cells, w) }}
	trie, err := g.Grow(nil, w)
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
	for leaf, count := range trie.leafCounts() {
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

// LeafSums adds the sums of the records of each leaf, row-major, in units of
// the records' grid 2^-fractionBits, to sums. p holds the records that walked. Where they have units
// (Weigh), of 2^-unitBits, a record adds its coordinates times these, truncated toward zero.
func (w *Walker) LeafSums(ctx context.Context, r Runner, p *kernels.Panels, fractionBits, unitBits int,
	sums []int64) error {
	r = parallel.Or(r)
	leaf := make([]int32, p.N)
	w.leaves(leaf)
	parts := make([][]int64, r.Workers())
	unit := float32(int64(1) << fractionBits)
	step := shardPoints(p.D)
	err := r.Run(ctx, (p.N+step-1)/step, func(worker, s int) {
		if parts[worker] == nil {
			parts[worker] = make([]int64, len(sums))
		}
		part := parts[worker]
		for i := s * step; i < min((s+1)*step, p.N); i++ {
			if leaf[i] < 0 {
				continue
			}
			at := part[int(leaf[i])*p.D:][:p.D]
			x := p.Data[i/kernels.Lanes*p.D*kernels.Lanes+i%kernels.Lanes:]
			if w.units == nil {
				for h := range at {
					at[h] += int64(x[h*kernels.Lanes] * unit)
				}
				continue
			}
			for h := range at {
				at[h] += int64(w.units[i]) * int64(x[h*kernels.Lanes]*unit) / (1 << unitBits)
			}
		}
	})
	for _, part := range parts {
		for i, x := range part {
			sums[i] += x
		}
	}
	return err
}
