package staged

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/pages"
	"github.com/cohort-engine/cohort/kernels"
)

// Tree is a planned tree: its shape, and the release of each level.
type Tree struct {
	d, bits, levels int
	counts          []*Release
}

// AddTree plans a midpoint tree in d dimensions with the whole of l.
func (f *Plan) AddTree(l Share, d int) *Tree {
	t := &Tree{d: d}
	t.bits, t.levels = synopsis.TreeShape(f.N, d, f.K, l.Mu(), f.FractionBits)
	total := 0.0
	for level := range t.levels {
		total += l.growth(level)
	}
	for level := range t.levels {
		t.counts = append(t.counts, f.AddLevel(fmt.Sprintf("tree level %d", level+1), "tree counts per level",
			l.Part(l.growth(level)/total), t.bits, level))
	}
	return t
}

// AddGrid plans a tree of one level with the whole of l: counts of the cells after so many halvings in turn.
func (f *Plan) AddGrid(l Share, d, cuts int) *Tree {
	return &Tree{d, cuts, 1, []*Release{f.AddLevel("tree level 1", "tree counts per level", l, cuts, 0)}}
}

// releaseTree releases a planned tree over the parties' records, or projections of them,
// level by level, and makes it consistent with the public number of records. Its
// epsilon is that of all levels, whether or not it reaches them: that it stops is
// itself an outcome.
func (p *Party) releaseTree(ctx context.Context, t *Tree, records *kernels.Panels) (*synopsis.Trie, error) {
	return p.ReleaseTreeAlong(ctx, t, records, synopsis.InTurn(t.d, t.Cuts()), nil)
}

// Cuts is how often the tree halves a box, one axis a time.
func (t *Tree) Cuts() int { return t.bits * t.levels }

// ReleaseTreeAlong is releaseTree with the axes to cut, in their order, and the image of
// coordinates, see [synopsis.PathsAlong]; public values decide both.
func (p *Party) ReleaseTreeAlong(ctx context.Context, t *Tree, records *kernels.Panels,
	order []int, image func(h int, dst, src []float32)) (*synopsis.Trie, error) {
	span := p.Begin(engine.PhaseEncode, 0)
	paths, err := synopsis.PathsAlong(ctx, p.Pool(), records, p.FractionBits, t.bits, order, image)
	p.End(span)
	if err != nil {
		return nil, err
	}
	w := synopsis.NewWalker(paths).Weigh(p.Weights)
	trie, err := p.GrowTrie(ctx, t.bits, t.counts, w, func(float64) float64 { return 0 })
	if err != nil {
		return nil, err
	}
	pages.Collect(8 * records.N) // a path and a cell of each record
	return protocol.Once(p.Party, "estimate", p.Released, func() (*synopsis.Trie, error) {
		span := p.Begin(engine.PhasePostprocess, p.Released)
		trie.Estimate(float64(p.N))
		p.End(span)
		return trie, nil
	})
}

// ReleaseCells releases planned counts of the cells of a frame, halved so often along its columns in turn, and
// returns the variance of their noise with them. What lies beyond the frame is counted in its outer cells.
func (p *Party) ReleaseCells(ctx context.Context, s *Release, cuts int, f *Frame) ([]float64, float64, error) {
	span := p.Begin(engine.PhaseEncode, 0)
	paths, err := synopsis.PathsAlong(ctx, p.Pool(), p.Records, p.FractionBits, cuts, synopsis.InTurn(p.D, cuts),
		f.Image(p.FractionBits))
	p.End(span)
	if err != nil {
		return nil, 0, err
	}
	w := synopsis.NewWalker(paths).Weigh(p.Weights)
	counts, err := p.ReleaseCounts(ctx, s, 1<<cuts, func(words []int64) error { return w.Count(ctx, p.Pool(), words) })
	return counts, s.Share.Variance(s.Scale), err
}

// GrowTrie releases a trie level by level. threshold says from which noisy count on a
// cell opens, given the variance.
func (p *Party) GrowTrie(ctx context.Context, bits int, counts []*Release, w *synopsis.Walker,
	threshold func(variance float64) float64) (*synopsis.Trie, error) {
	g := synopsis.Growing{Bits: bits, Levels: len(counts), Threshold: threshold,
		Count: func(level, cells int) ([]float64, float64, error) {
			s := counts[level]
			noisy, err := p.ReleaseCounts(ctx, s, cells,
				func(words []int64) error { return w.Count(ctx, p.Pool(), words) })
			return noisy, s.Share.Variance(s.Scale), err
		},
		Once: func(level int, cut func() ([]int32, error)) ([]int32, error) {
			return protocol.Once(p.Party, "descend", p.Released, cut)
		},
	}
	trie, err := protocol.Once(p.Party, "trie", p.Released,
		func() (*synopsis.Trie, error) { return synopsis.NewTrie(bits), nil })
	if err != nil {
		return nil, err
	}
	return g.Grow(trie, w)
}
