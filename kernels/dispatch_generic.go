//go:build purego || (!amd64 && !arm64)

package kernels

func supportedPaths() []path { return []path{generic} }

// maxTileWidth is the number of rows that a tile of a [tiling] holds at most.
const maxTileWidth = 6

// filterPays is false: there is no candidate filter without assembly.
func filterPays(d, k int) bool { return false }

func filterGroups() []int { return nil }

func assign(p *Panels, c *Centroids, labels []uint16, dist, second []float32) {
	assignPortable(p, c, labels, dist, second)
}

func arrivals(key *ArrivalKey, digests [][16]byte, scale, limit, horizon float64, registers []float64,
	states []ArrivalState, _ *ArrivalScratch) int {
	return arrivalsPortable(key, digests, scale, limit, horizon, registers, states)
}

func advance(key *ArrivalKey, states []ArrivalState, scale, limit float64, registers []float64, _ *ArrivalScratch) {
	advancePortable(key, states, scale, limit, registers)
}

func assignAccumulate(p *Panels, c *Centroids, labels []uint16, acc *Accumulator) {
	assignAccumulatePortable(p, c, labels, acc)
}

func accumulate(p *Panels, labels []uint16, acc *Accumulator) { accumulatePortable(p, labels, acc) }

func addUint64(dst, a []uint64) { addUint64Portable(dst, a) }

// laneWords is the number of lanes of the masked form; there is none.
func laneWords(k, d int) int { return 0 }

// fuses says whether the form with masked additions applies; there is none.
func fuses(*Accumulator) bool { return false }

// assignAccumulateFused stands for that form.
func assignAccumulateFused(p *Panels, c *Centroids, _ float32, labels []uint16, acc *Accumulator) {
	assignAccumulatePortable(p, c, labels, acc)
}

func pack(dst *Panels, rows []float32) { packPortable(dst, rows) }

func costRows(p *Panels, lo, hi int, c *Centroids, fractionBits int, dst []int64) {
	costRowsPortable(p, lo, hi, c, fractionBits, dst)
}

func distances(p *Panels, c *Centroids, labels []uint16, dist []float32) {
	distancesPortable(p, c, labels, dist)
}

func largest(labels []uint16) uint16 { return largestPortable(labels) }

func cut(labels []uint16, dist []float32, r2 float32, none uint16) {
	cutPortable(labels, dist, r2, none)
}

func project(p *Panels, m *Matrix, dst *Panels) { projectPortable(p, m, dst) }

func addWeighted(rows []float64, width int, labels []uint16, table []float64, chains int) {
	addWeightedPortable(rows, width, labels, table, chains)
}

func addCosts(weights []float64, dist []float32, costs *[weightedChains]float64) {
	addCostsPortable(weights, dist, costs)
}

func foldWeighted(table []float64, clusters, width int) {
	foldWeightedPortable(table, clusters, width)
}

func exchange(own, near, next []float32, labels []uint16, weights []float64, table []float64,
	base *[weightedChains]float64) {
	exchangePortable(own, near, next, labels, weights, table, base)
}

func contributions(dist []float32, root bool, most float32) {
	contributionsPortable(dist, root, most)
}

func changed(before, now []uint16, masks []uint32) { changedPortable(before, now, masks) }

func extreme(dist, second []float32, dst [][4]float32) { extremesPortable(dist, second, dst) }

func topTwo(p *Panels, rows, weight []float32, slack, window float32, labels []uint16, cells []uint32, gap []float32) {
	topTwoPortable(p, rows, weight, slack, window, labels, cells, gap)
}

func leastDot(x []float64, stride, n int, coef []float64) (float64, int) {
	return leastDotPortable(x, stride, 0, n, coef)
}

func quantise(dst []float32, src []float64, m *UnitMap) int { return quantisePortable(dst, src, m) }

func quantiseNarrow(dst, src []float32, m *UnitMap) int { return quantisePortable(dst, src, m) }

func nearestSums(p *Panels, rows, nearest []float32, sums []float64) {
	nearestSumsPortable(p, rows, nearest, sums)
}

func nearer(p *Panels, row, nearest []float32) { nearerPortable(p, row, nearest) }
