package kernels

func exchange(own, near, next []float32, labels []uint16, weights []float64, table []float64,
	base *[weightedChains]float64) {
	const block = weightedChains
	for current != generic && len(own) >= block {
		n := min(len(own)/block, blocksPerCall)
		var w *float64
		if weights != nil {
			w = &weights[0]
			weights = weights[n*block:]
		}
		asmExchange(&own[0], &near[0], &next[0], &labels[0], w, n, &table[0], &base[0])
		own, near, next, labels = own[n*block:], near[n*block:], next[n*block:], labels[n*block:]
	}
	exchangePortable(own, near, next, labels, weights, table, base)
}

func contributions(dist []float32, root bool, most float32) {
	for current != generic && len(dist) >= Lanes {
		n := min(len(dist)/Lanes, blocksPerCall)
		if root {
			asmRoots(&dist[0], n, most)
		} else {
			asmSquares(&dist[0], n, most)
		}
		dist = dist[n*Lanes:]
	}
	contributionsPortable(dist, root, most)
}
