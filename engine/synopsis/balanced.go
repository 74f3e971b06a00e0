package synopsis

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// balancedUnits is the number of points of equal weight that stand for a
// synopsis in a search with sizes.
const balancedUnits = 8192

// SearchBalanced is Search under bounds on the weight of each cluster: shares
// [least, most] of the total. Weights become units of equal weight, which an
// exact minimum-cost flow assigns; the centres are the means of their units. It
// starts from an unconstrained search and from k-means++, and needs
// k least <= 1 <= k most.
func SearchBalanced(ctx context.Context, r Runner, w *Weighted, k int, least, most float64, o SearchOptions,
	src Source) (*Solution, error) {
	if k < 1 || k > balancedUnits/2 || !(least >= 0 && least*float64(k) <= 1 && most*float64(k) >= 1) {
		return nil, fmt.Errorf("synopsis: shares %v to %v for %d clusters: %d times the least must be at most 1, %d "+
			"times the most at least 1", least, most, k, k, k)
	}
	start, err := Search(ctx, r, w, k, o, src)
	if err != nil || start.TopUp > 0 {
		return start, err
	}
	units, owner := unitPoints(w)
	n := len(owner)
	b := &balanced{panels: units, solver: flow.NewSolver(),
		problem: flow.Problem{Points: *units, FractionBits: balancedBits, Lo: make([]int, k), Hi: make([]int, k)}}
	for j := range k {
		b.problem.Lo[j] = int(math.Floor(least * float64(n)))
		b.problem.Hi[j] = min(int(math.Ceil(most*float64(n))), n)
	}
	binaryKey(&b.problem.Key, src)
	o = o.withDefaults(k)
	p := newProblem(w)
	best, bestLoss := []float32(nil), math.Inf(1)
	var labels []uint16
	for i := range 4 {
		centers := make([]float32, k*w.D)
		if i == 0 {
			for h, x := range start.Centers {
				centers[h] = unitGrid(x)
			}
		} else {
			s := p.newDescent(k)
			s.seed(o.Candidates, rand.New(rand.NewPCG(src.Uint64(), src.Uint64())))
			for h, x := range s.centers {
				centers[h] = unitGrid(float64(x))
			}
		}
		loss, found, err := b.descend(ctx, r, centers)
		if err != nil {
			return nil, err
		}
		if loss < bestLoss {
			best, bestLoss, labels = centers, loss, found
		}
	}
	out := &Solution{D: w.D, Centers: make([]float64, len(best)), Labels: make([]uint16, w.Len()),
		Weights: make([]float64, k), Loss: bestLoss * w.positiveTotal() / float64(n)}
	for i, x := range best {
		out.Centers[i] = float64(x)
	}
	unit := w.positiveTotal() / float64(n)
	for u, j := range labels {
		out.Labels[owner[u]] = j // the last unit's, where a point is divided
		out.Weights[j] += unit
	}
	return out, nil
}

const balancedBits = 16

func unitGrid(x float64) float32 {
	return float32(math.Round(math.Ldexp(min(max(x, -1), 1), balancedBits)) / (1 << balancedBits))
}

func binaryKey(key *[16]byte, src Source) {
	a, b := src.Uint64(), src.Uint64()
	for i := range 8 {
		key[i], key[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
}

func (w *Weighted) positiveTotal() float64 {
	sum := 0.0
	for _, x := range w.Weights {
		sum += max(x, 0)
	}
	return sum
}

// unitPoints divides the weights into about balancedUnits units by largest
// remainder and returns the points with the index that each unit stands for.
func unitPoints(w *Weighted) (*kernels.Panels, []int) {
	total := w.positiveTotal()
	counts, rest := make([]int, w.Len()), make([]float64, w.Len())
	order, given := make([]int, w.Len()), 0
	for i, x := range w.Weights {
		exact := max(x, 0) / total * balancedUnits
		counts[i] = int(exact)
		rest[i], order[i] = exact-float64(counts[i]), i
		given += counts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for i := 0; given < balancedUnits; i++ {
		counts[order[i%len(order)]]++
		given++
	}
	rows, owner := make([]float32, 0, balancedUnits*w.D), make([]int, 0, balancedUnits)
	for i, c := range counts {
		for range c {
			for _, x := range w.Points[i*w.D : (i+1)*w.D] {
				rows = append(rows, unitGrid(x))
			}
			owner = append(owner, i)
		}
	}
	panels := kernels.NewPanels(len(owner), w.D)
	kernels.Pack(panels, rows)
	return panels, owner
}

// balanced is constrained Lloyd on units.
type balanced struct {
	panels  *kernels.Panels
	solver  *flow.Solver
	problem flow.Problem
}

// descend alternates assignment and means, at most 30 times, until the loss
// stops falling, and returns the loss with the labels of the last centres.
func (b *balanced) descend(ctx context.Context, r Runner, centers []float32) (float64, []uint16, error) {
	k, d := len(b.problem.Lo), b.panels.D
	var res flow.Result
	var labels []uint16
	loss := math.Inf(1)
	acc := kernels.NewAccumulator(k, d, balancedBits)
	before := make([]float32, len(centers))
	for range 30 {
		b.problem.Centroids = centers
		if err := b.solver.Solve(ctx, parallel.Or(r), &b.problem, &res); err != nil {
			return 0, nil, fmt.Errorf("synopsis: sizes: %w", err)
		}
		cost := math.Ldexp(flow.Distance(&b.problem, &res).Float(), -2*balancedBits)
		if cost >= loss {
			copy(centers, before)
			break
		}
		loss = cost
		labels = append(labels[:0], res.Labels...)
		copy(before, centers)
		acc.Reset()
		kernels.Accumulate(*b.panels, labels, acc)
		for j := range k {
			if n := acc.Counts[j]; n > 0 {
				for h := range d {
					centers[j*d+h] = unitGrid(math.Ldexp(float64(acc.Sums[j*d+h])/float64(n), -balancedBits))
				}
			}
		}
	}
	return loss, labels, nil
}
