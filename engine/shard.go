package engine

// ShardBytes is the working set of one shard of points: data and outputs
// together stay within a common L2 cache (1 MiB) with room to spare.
const ShardBytes = 256 << 10

// Shard is a run of points [Lo, Hi) of party Party. Lo is a multiple of 16, the
// width of a panel.
type Shard struct{ Party, Lo, Hi int }

// Shards cuts the points of each party into runs whose float32 coordinates take
// at most ShardBytes. sizes[p] is the number of points of party p, d the
// number of dimensions. The cut depends on the sizes alone, never on the number
// of workers, so sums taken in shard order are reproducible.
func Shards(sizes []int, d int) []Shard {
	points := max(ShardBytes/(4*d)/16, 1) * 16
	var s []Shard
	for p, n := range sizes {
		for lo := 0; lo < n; lo += points {
			s = append(s, Shard{Party: p, Lo: lo, Hi: min(lo+points, n)})
		}
	}
	return s
}
