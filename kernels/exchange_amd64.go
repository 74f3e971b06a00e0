//go:build amd64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

func exchange(own, near, next []float32, labels []uint16, weights []float64, table []float64, base *[weightedChains]float64) {
	const block = weightedChains
	for current != generic && len(own) >= block {
		n := min(len(own)/block, blocksPerCall)
		var w *float64
		if weights != nil {
			w = &weights[0]
			weights = weights[n*block:]
		}
		if current == avx512 {
			asm.ExchangeAVX512(&own[0], &near[0], &next[0], &labels[0], w, n, &table[0], &base[0])
		} else {
			asm.ExchangeAVX2(&own[0], &near[0], &next[0], &labels[0], w, n, &table[0], &base[0])
		}
		own, near, next, labels = own[n*block:], near[n*block:], next[n*block:], labels[n*block:]
	}
	exchangePortable(own, near, next, labels, weights, table, base)
}

func contributions(dist []float32, root bool, most float32) {
	for current != generic && len(dist) >= Lanes {
		n := min(len(dist)/Lanes, blocksPerCall)
		switch {
		case current == avx512 && root:
			asm.RootsAVX512(&dist[0], n, most)
		case current == avx512:
			asm.SquaresAVX512(&dist[0], n, most)
		case root:
			asm.RootsAVX2(&dist[0], n, most)
		default:
			asm.SquaresAVX2(&dist[0], n, most)
		}
		dist = dist[n*Lanes:]
	}
	contributionsPortable(dist, root, most)
}
