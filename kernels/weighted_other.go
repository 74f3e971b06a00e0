//go:build purego || !amd64

package kernels

func addWeighted(rows []float64, width int, labels []uint16, table []float64, chains int) {
	addWeightedPortable(rows, width, labels, table, chains)
}

func addCosts(weights []float64, dist []float32, costs *[weightedChains]float64) {
	addCostsPortable(weights, dist, costs)
}

func foldWeighted(table []float64, clusters, width int) {
	foldWeightedPortable(table, clusters, width)
}
