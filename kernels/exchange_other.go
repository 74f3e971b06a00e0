//go:build purego || !amd64

package kernels

func exchange(own, near, next []float32, labels []uint16, weights []float64, table []float64, base *[weightedChains]float64) {
	exchangePortable(own, near, next, labels, weights, table, base)
}

func contributions(dist []float32, root bool, most float32) {
	contributionsPortable(dist, root, most)
}
