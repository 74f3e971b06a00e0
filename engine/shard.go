package engine

import (
	"context"

	"github.com/cohort-engine/cohort/kernels"
)

// ShardBytes is the working set of one shard of points: data and outputs
// together stay within a common L2 cache (1 MiB) with room to spare.
const ShardBytes = 256 << 10

// MinShardPoints is the least number of points of a shard, whatever their size:
// folding the sums of a shard into the totals takes as long as summing some ten
// points. It cost a third of an iteration at 80 points of 784 dimensions.
const MinShardPoints = 256

// Shard is a run of points [Lo, Hi), the Index-th of all. Lo is a multiple of 16, the
// width of a panel.
type Shard struct{ Index, Lo, Hi int }

// Shards cuts n points of d dimensions into equal runs (but for the last) whose
// float32 coordinates take at most ShardBytes, or of at most MinShardPoints where
// those take more. The cut depends on the numbers alone, never on the number of workers,
// so sums taken in shard order are reproducible.
func Shards(n, d int) []Shard {
	most := max(ShardBytes/(4*d)/16*16, MinShardPoints)
	// A short last run would leave a worker idle while another has a whole one.
	count := max((n+most-1)/most, 1)
	points := (n + 16*count - 1) / (16 * count) * 16
	var s []Shard
	for lo := 0; lo < n; lo += points {
		s = append(s, Shard{Index: len(s), Lo: lo, Hi: min(lo+points, n)})
	}
	return s
}

// Scan calls visit once for each shard of points, on all workers as Run does.
func (p *Pool) Scan(ctx context.Context, points *kernels.Panels, visit func(worker int, s Shard)) error {
	shards := Shards(points.N, points.D)
	return p.Run(ctx, len(shards), func(worker, i int) { visit(worker, shards[i]) })
}

// Assign sets labels to the nearest centroid of each point, and dist, unless nil, to its squared distance.
func (p *Pool) Assign(ctx context.Context, points *kernels.Panels, c *kernels.Centroids, labels []uint16,
	dist []float32) error {
	return p.Scan(ctx, points, func(_ int, s Shard) {
		var own []float32
		if dist != nil {
			own = dist[s.Lo:s.Hi]
		}
		kernels.Assign(points.Slice(s.Lo, s.Hi), c, labels[s.Lo:s.Hi], own)
	})
}

// Count adds to counts what count adds to a worker's own ones for each shard of points.
func (p *Pool) Count(ctx context.Context, points *kernels.Panels, counts []int64,
	count func(own []int64, s Shard)) error {
	parts := make([][]int64, p.Workers())
	err := p.Scan(ctx, points, func(worker int, s Shard) {
		if parts[worker] == nil {
			parts[worker] = make([]int64, len(counts))
		}
		count(parts[worker], s)
	})
	for _, part := range parts {
		for i, n := range part {
			counts[i] += n
		}
	}
	return err
}
