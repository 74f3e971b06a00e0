//go:build arm64 && !purego

package kernels

// rankPays says that no path ranks points where they are.
func rankPays(d, k int) bool { return false }

func rankSpeed() float64 { return 1 }

func ranksLong(d int) bool { return false }

func rankTile(d, k int) (tile, last int) { return 1, 1 }

func rankCrosses(d, k int) bool { return false }

func rankPartner(w, d, k int) int { return w }

func rankGroup() int { return 1 }

func rankLeast(tiles int) int { return 0 }

func rankPairs(x *float32, pairs, d int, c *int32, k int, scale float32, band int32, labels, doubts *uint16) {
	panic(noRoutine("Rank", d))
}

func wordSumsPay(d, k int) bool { return false }

func rankSum(x *float32, pairs, d int, c *int32, k int, scale float32, band int32, labels, doubts *uint16, t *wordSums,
	bias float32) {
	panic(noRoutine("Rank", d))
}

func rankLong(x *float32, groups, d int, c *int32, k int, scale float32, band int32, room *int32, labels,
	doubts *uint16) {
	panic(noRoutine("RankLong", d))
}
