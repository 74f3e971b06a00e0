//go:build amd64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

func addWeighted(rows []float64, width int, labels []uint16, table []float64, chains int) {
	const block = weightedChains
	if current == generic {
		addWeightedPortable(rows, width, labels, table, chains)
		return
	}
	most := max(1, callBudget/block/width)
	for len(labels) >= block {
		n := min(len(labels)/block, most)
		addWeightedBlocks(&rows[0], n, width, &labels[0], &table[0], chains)
		rows, labels = rows[n*block*width:], labels[n*block:]
	}
	addWeightedPortable(rows, width, labels, table, chains)
}

// addWeightedBlocks adds blocks of 8 rows.
func addWeightedBlocks(rows *float64, blocks, width int, labels *uint16, table *float64, chains int) {
	chain := 8 * width // bytes
	if chains == 1 {
		chain = 0
	}
	switch {
	case chains > 1 && width == 4: // a row is a vector of AVX2
		asm.AddWeighted4AVX2(rows, blocks, labels, table)
	case chains > 1 && width == 8 && current == avx512:
		asm.AddWeighted8AVX512(rows, blocks, labels, table)
	case chains > 1 && width == 8:
		asm.AddWeighted8AVX2(rows, blocks, labels, table)
	case current == avx512:
		asm.AddWeightedAVX512(rows, blocks, width, labels, table, 8*width*chains, chain)
	default:
		asm.AddWeightedAVX2(rows, blocks, width, labels, table, 8*width*chains, chain)
	}
}

func addCosts(weights []float64, dist []float32, costs *[weightedChains]float64) {
	if blocks := len(weights) / weightedChains; current != generic && blocks > 0 {
		if current == avx512 {
			asm.WeightedCostsAVX512(&weights[0], &dist[0], blocks, &costs[0])
		} else {
			asm.WeightedCostsAVX2(&weights[0], &dist[0], blocks, &costs[0])
		}
		weights, dist = weights[blocks*weightedChains:], dist[blocks*weightedChains:]
	}
	addCostsPortable(weights, dist, costs)
}

func foldWeighted(table []float64, clusters, width int) {
	if current == generic {
		foldWeightedPortable(table, clusters, width)
		return
	}
	asm.FoldWeightedAVX2(&table[0], clusters, width)
}
