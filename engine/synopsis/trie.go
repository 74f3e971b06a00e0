package synopsis

import (
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/internal/elementary"
)

// Trie is a partition released level by level. Each open node has 2^Bits cells;
// a record is in at most one cell of a level, so the counts of a level have
// sensitivity 1 (THEOREMS.md T5). A cell whose noisy count exceeds the
// threshold opens at the next level; the others are leaves, and so are all
// cells of the last level.
type Trie struct {
	Bits   int
	levels []trieLevel
	leaves int
}

type trieLevel struct {
	variance float64
	parent   []int32   // open node -> its cell in the level above
	count    []float64 // noisy count of each cell
	estimate []float64 // after Estimate: consistent count of each cell
	next     []int32   // cell -> open node of the next level, or ^leaf
}

// TreeShape is the shape of the midpoint tree for n records in d dimensions:
// bits halvings a level (2^bits children), and as many levels as bring the
// cells to about n mu, and to 2^treeBits or treeShare for each of k clusters at most.
func TreeShape(n, d, k int, mu float64, fractionBits int) (bits, levels int) {
	bits = min(d, 3)
	levels = max(1, int(math.Ceil(elementary.Log2(float64(n)*mu)/float64(bits))))
	most := max(treeBits, int(math.Ceil(elementary.Log2(float64(k)*treeShare))))
	for levels > 1 && (bits*levels > most || (bits*levels+d-1)/d > fractionBits) {
		levels--
	}
	return bits, levels
}

// Half of the cells without records open, too, each takes some hundred bytes until the search has ended, and the
// search looks at all that are left: many records would make more than any number of clusters has use for.
const treeBits, treeShare = 18, 64

// NewTrie returns a trie whose root is open.
func NewTrie(bits int) *Trie { return &Trie{Bits: bits} }

// Open returns the number of nodes that are open at the level to be counted
// next; there are Open()<<Bits cells to count. 0 means that the trie is done.
func (t *Trie) Open() int {
	if len(t.levels) == 0 {
		return 1
	}
	last := &t.levels[len(t.levels)-1]
	open := 0
	for _, n := range last.next {
		if n >= 0 {
			open++
		}
	}
	return open
}

// Add takes the noisy counts of the next level and their noise variance, and
// opens the cells whose noisy count exceeds threshold (+Inf: none, the level is
// the last). It returns where each cell leads: the index of its node among the
// open nodes of the next level, or ^leaf.
func (t *Trie) Add(noisy []float64, variance, threshold float64) []int32 {
	open := t.Open()
	if len(noisy) != open<<t.Bits {
		panic(fmt.Sprintf("synopsis: Trie.Add: %d counts for %d cells", len(noisy), open<<t.Bits))
	}
	l := trieLevel{variance: variance, parent: make([]int32, 0, open), count: make([]float64, len(noisy)),
		next: make([]int32, len(noisy))}
	if len(t.levels) == 0 {
		l.parent = append(l.parent, -1)
	} else {
		for cell, n := range t.levels[len(t.levels)-1].next {
			if n >= 0 {
				l.parent = append(l.parent, int32(cell))
			}
		}
	}
	opened := int32(0)
	for c, n := range noisy {
		l.count[c] = n
		if n > threshold {
			l.next[c] = opened
			opened++
		} else {
			l.next[c] = ^int32(t.leaves)
			t.leaves++
		}
	}
	t.levels = append(t.levels, l)
	return l.next
}

// Levels returns the number of released levels.
func (t *Trie) Levels() int { return len(t.levels) }

// Leaves returns the number of leaves.
func (t *Trie) Leaves() int { return t.leaves }

// Estimate makes the noisy counts consistent with the public total n: bottom
// up, each node gets the inverse-variance mean of its own count and the sum of
// its children; top down, the children of a node get the nearest point to
// their estimates, in the metric 1/variance, of {h >= 0, sum h = parent}. The
// empty part of the space goes to exactly 0 and the total is n.
func (t *Trie) Estimate(n float64) {
	fan := 1 << t.Bits
	variance := make([][]float64, len(t.levels))
	for l := len(t.levels) - 1; l >= 0; l-- {
		level := &t.levels[l]
		level.estimate = append([]float64(nil), level.count...)
		variance[l] = make([]float64, len(level.count))
		for c := range level.count {
			variance[l][c] = level.variance
			node := level.next[c]
			if node < 0 {
				continue
			}
			var sum, v float64
			for i := int(node) * fan; i < (int(node)+1)*fan; i++ {
				sum += t.levels[l+1].estimate[i]
				v += variance[l+1][i]
			}
			own := level.variance
			level.estimate[c] = (float64(level.count[c]*v) + float64(sum*own)) / (v + own)
			variance[l][c] = float64(v*own) / (v + own)
		}
	}
	active := make([]bool, fan)
	for l := range t.levels {
		level := &t.levels[l]
		for node, parent := range level.parent {
			total := n
			if parent >= 0 {
				total = t.levels[l-1].estimate[parent]
			}
			projectSimplex(level.estimate[node*fan:(node+1)*fan], variance[l][node*fan:(node+1)*fan], total, active)
		}
	}
}

// ProjectSimplex replaces x by the point of {h >= 0, sum h = total} nearest to
// it in the metric sum (h-x)^2/variance. total is taken as at least 0.
func ProjectSimplex(x, variance []float64, total float64) {
	projectSimplex(x, variance, total, make([]bool, len(x)))
}

// The solution is h = max(0, x + lambda v); lambda is found by dropping the
// smallest x/v until what is left stays positive (Michelot's algorithm).
func projectSimplex(x, variance []float64, total float64, active []bool) {
	if total <= 0 {
		clear(x)
		return
	}
	var sum, v float64
	for i := range x {
		sum += x[i]
		v += variance[i]
		active[i] = true
	}
	lambda := (total - sum) / v
	for {
		dropped := false
		for i := range x {
			if active[i] && x[i]+float64(lambda*variance[i]) <= 0 {
				active[i] = false
				dropped = true
			}
		}
		if !dropped {
			break
		}
		sum, v = 0, 0
		for i := range x {
			if active[i] {
				sum += x[i]
				v += variance[i]
			}
		}
		lambda = (total - sum) / v
	}
	for i := range x {
		if active[i] {
			x[i] += float64(lambda * variance[i])
		} else {
			x[i] = 0
		}
	}
}

// LeafNoise is the standard deviation of the noise on the cells of the last
// level, before Estimate.
func (t *Trie) LeafNoise() float64 { return math.Sqrt(t.levels[len(t.levels)-1].variance) }

// EmptyWeight estimates how much of the leaves' weight, after Estimate, is noise on cells without records. Nodes open
// where their noise is positive, which Estimate keeps in part, while the cells within have noise of their own, which
// is as often negative as positive: light nodes have so much more after Estimate than their cells had before.
func (t *Trie) EmptyWeight() float64 {
	last, fan := &t.levels[len(t.levels)-1], 1<<t.Bits
	light, more := 2*math.Sqrt(last.variance*float64(fan)), 0.0
	for node := range last.parent {
		var before, after float64
		for c := node * fan; c < (node+1)*fan; c++ {
			before += last.count[c]
			after += last.estimate[c]
		}
		if after < light {
			more += after - before
		}
	}
	return max(more, 0)
}

// values are the counts of all cells of a level: the consistent estimates after Estimate, else the noisy counts.
func (l *trieLevel) values() []float64 {
	if l.estimate != nil {
		return l.estimate
	}
	return l.count
}

// leafCounts returns the count of every leaf by its number: its value.
func (t *Trie) leafCounts() []float64 {
	counts := make([]float64, t.leaves)
	for l := range t.levels {
		level := &t.levels[l]
		values := level.values()
		for c, next := range level.next {
			if next < 0 {
				counts[^next] = values[c]
			}
		}
	}
	return counts
}

// Box is an axis-parallel box with a weight.
type Box struct {
	Lo, Hi []float64
	Weight float64
}

// Boxes returns the leaves of positive weight as boxes of [-1,1]^d, for a trie
// over [MidpointPaths], in the order of their numbers within each level.
func (t *Trie) Boxes(d int) []Box { return t.BoxesAlong(d, InTurn(d, t.Bits*len(t.levels))) }

// BoxesAlong is Boxes for a trie over [PathsAlong]; order has at least the cuts of its levels.
func (t *Trie) BoxesAlong(d int, order []int) []Box { return t.boxes(d, order, 0) }

// GatheredAlong is BoxesAlong, after Estimate, for a coarse tree many of whose records are in cells that noise hides:
// what is lighter than a part gatheredLeast of a standard deviation of the noise is not dropped, as Significant does,
// but gathered in the smallest node where it is heavier together, or in the whole box, which is the last one. The box
// of a node holds those of its heavy cells, too.
func (t *Trie) GatheredAlong(d int, order []int) []Box { return t.boxes(d, order, gatheredLeast) }

// gatheredLeast is the least weight of a box, in standard deviations of the noise of a count of its level.
const gatheredLeast = 0.7

// gather returns the weights of the boxes of each level's cells, 0 for none: positive weights of at least so many
// standard deviations of the noise. What is left of a node's cells is the node's; rest is what is left of all.
func (t *Trie) gather(least float64) (weights [][]float64, positive int, rest float64) {
	weights = make([][]float64, len(t.levels))
	var below []float64 // what is left in the cells of the level below
	for l := len(t.levels) - 1; l >= 0; l-- {
		level := &t.levels[l]
		values, left := level.values(), make([]float64, len(level.count))
		weights[l] = make([]float64, len(left))
		limit := float64(least * math.Sqrt(level.variance))
		for c, next := range level.next {
			if next < 0 {
				left[c] = values[c]
			} else {
				for i := range 1 << t.Bits {
					left[c] += below[int(next)<<t.Bits+i]
				}
			}
			if left[c] > 0 && left[c] >= limit {
				weights[l][c], left[c] = left[c], 0
				positive++
			}
		}
		below = left
	}
	for _, w := range below {
		rest += w
	}
	return weights, positive, rest
}

// boxes are the cells that gather has weights for, and the whole of [-1,1]^d if something is left.
func (t *Trie) boxes(d int, order []int, least float64) []Box {
	weights, positive, rest := t.gather(least)
	if rest > 0 {
		positive++
	}
	corners := make([]float64, 2*d*positive)
	boxes := make([]Box, positive)
	n := 0
	// A node's box is kept as the position of its lower corner and the number
	// of cuts, in the order of the levels.
	lower := [][]float64{make([]float64, d)}
	for h := range lower[0] {
		lower[0][h] = -1
	}
	cuts, times := 0, make([]int, d) // of each axis, above the level
	for l := range t.levels {
		level := &t.levels[l]
		next := make([][]float64, 0, t.openAfter(l))
		at, now := make([]float64, d), make([]int, d)
		for c, to := range level.next {
			node, weight := lower[c>>t.Bits], weights[l][c]
			if to < 0 && weight <= 0 {
				continue
			}
			copy(at, node)
			copy(now, times)
			for b, h := range order[cuts : cuts+t.Bits] {
				if c>>(t.Bits-1-b)&1 == 1 {
					at[h] += math.Ldexp(1, -now[h])
				}
				now[h]++
			}
			if to >= 0 {
				next = append(next, append([]float64(nil), at...))
			}
			if weight <= 0 {
				continue
			}
			lo, hi := corners[:d:d], corners[d:2*d:2*d]
			corners = corners[2*d:]
			copy(lo, at)
			for h := range hi {
				hi[h] = lo[h] + math.Ldexp(1, 1-now[h])
			}
			boxes[n] = Box{Lo: lo, Hi: hi, Weight: weight}
			n++
		}
		lower = next
		for _, h := range order[cuts : cuts+t.Bits] {
			times[h]++
		}
		cuts += t.Bits
	}
	if rest > 0 {
		for h := range d {
			corners[h], corners[d+h] = -1, 1
		}
		boxes[n] = Box{corners[:d:d], corners[d:], rest}
	}
	return boxes
}

func (t *Trie) openAfter(l int) int {
	if l+1 < len(t.levels) {
		return len(t.levels[l+1].parent)
	}
	return 0
}

// Significant drops the leaves of a coarse tree that are lighter than one
// standard deviation of their noise: the consistent estimate leaves positive
// noise in the empty part of the space, which is most of it. It keeps all where
// a cluster of average size stands less than five deviations above the noise, as
// too much of the clusters would go.
func Significant(boxes []Box, noise, cluster float64) []Box {
	if cluster < 5*noise {
		return boxes
	}
	kept := slices.DeleteFunc(slices.Clone(boxes), func(b Box) bool { return b.Weight < noise })
	if len(kept) == 0 {
		return boxes
	}
	return kept
}
