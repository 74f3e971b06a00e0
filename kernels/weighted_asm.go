package kernels

func addWeighted(rows []float64, width int, labels []uint16, table []float64, chains int) {
	const block = weightedChains
	if current == generic {
		addWeightedPortable(rows, width, labels, table, chains)
		return
	}
	most := max(1, callBudget/block/width)
	for len(labels) >= block {
		n := min(len(labels)/block, most)
		switch {
		case chains == 1:
			asmAddWeighted(&rows[0], n, width, &labels[0], &table[0], 8*width, 0)
		case width <= weightedChains: // 4 or 8
			asmAddWeightedN(width, &rows[0], n, &labels[0], &table[0])
		default:
			asmAddWeighted(&rows[0], n, width, &labels[0], &table[0], 8*width*chains, 8*width)
		}
		rows, labels = rows[n*block*width:], labels[n*block:]
	}
	addWeightedPortable(rows, width, labels, table, chains)
}

func addCosts(weights []float64, dist []float32, costs *[weightedChains]float64) {
	if blocks := len(weights) / weightedChains; current != generic && blocks > 0 {
		asmWeightedCosts(&weights[0], &dist[0], blocks, &costs[0])
		weights, dist = weights[blocks*weightedChains:], dist[blocks*weightedChains:]
	}
	addCostsPortable(weights, dist, costs)
}

func foldWeighted(table []float64, clusters, width int) {
	if current == generic {
		foldWeightedPortable(table, clusters, width)
		return
	}
	asmFoldWeighted(&table[0], clusters, width)
}
