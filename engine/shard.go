package engine

// ShardBytes is the working set of one shard of points: data and outputs
// together stay within a common L2 cache (1 MiB) with room to spare.
const ShardBytes = 256 << 10

// MinShardPoints is the least number of points of a shard, whatever their size:
// folding the sums of a shard into the totals takes as long as summing some ten
// points. It cost a third of an iteration at 80 points of 784 dimensions.
const MinShardPoints = 256

// Shard is a run of points [Lo, Hi) of party Party. Lo is a multiple of 16, the
// width of a panel.
type Shard struct{ Party, Lo, Hi int }

// Shards cuts the points of each party into equal runs (but for the last) whose
// float32 coordinates take at most ShardBytes, or of at most MinShardPoints where
// those take more. sizes[p] is the number of points of party p, d the number of
// dimensions. The cut depends on the sizes alone, never on the number of workers,
// so sums taken in shard order are reproducible.
func Shards(sizes []int, d int) []Shard {
	most := max(ShardBytes/(4*d)/16*16, MinShardPoints)
	var s []Shard
	for p, n := range sizes {
		// A short last run would leave a worker idle while another has a whole one.
		count := max((n+most-1)/most, 1)
		points := (n + 16*count - 1) / (16 * count) * 16
		for lo := 0; lo < n; lo += points {
			s = append(s, Shard{Party: p, Lo: lo, Hi: min(lo+points, n)})
		}
	}
	return s
}
