package kernels

import "fmt"

// WeightedAccumulator collects weighted sums and total weights of K clusters in
// float64. The terms are added in point order, each product rounded before it is
// added, so the result depends on the order of points but on nothing else.
type WeightedAccumulator struct {
	K, D    int
	Sums    []float64 // [K][D]
	Weights []float64 // [K]
}

// NewWeightedAccumulator makes an empty accumulator. It panics unless
// 0 < k <= 65535 and d > 0.
func NewWeightedAccumulator(k, d int) *WeightedAccumulator {
	if k <= 0 || k > maxK || d <= 0 {
		panic(fmt.Sprintf("kernels: NewWeightedAccumulator: k=%d, d=%d, want 0 < k <= %d and d > 0", k, d, maxK))
	}
	return &WeightedAccumulator{K: k, D: d, Sums: make([]float64, k*d), Weights: make([]float64, k)}
}

// Reset sets all sums and weights to zero.
func (a *WeightedAccumulator) Reset() {
	clear(a.Sums)
	clear(a.Weights)
}

// AccumulateWeighted adds weights[i]*x_i to the sums of the cluster that
// labels[i] names and weights[i] to its weight; points with the label K are
// skipped.
func AccumulateWeighted(p Panels, labels []uint16, weights []float64, acc *WeightedAccumulator) {
	p.check("AccumulateWeighted")
	checkLength("AccumulateWeighted", "labels", len(labels), p.N)
	checkLength("AccumulateWeighted", "weights", len(weights), p.N)
	if acc.D != p.D {
		panic(fmt.Sprintf("kernels: AccumulateWeighted: accumulator has d=%d, panels have d=%d", acc.D, p.D))
	}
	checkLabels("AccumulateWeighted", labels, acc.K)
	accumulateWeightedPortable(&p, labels, weights, acc)
}

// accumulateWeightedPortable is the only form of [AccumulateWeighted]: the order
// of the terms leaves nothing to do side by side but the coordinates of a point.
func accumulateWeightedPortable(p *Panels, labels []uint16, weights []float64, acc *WeightedAccumulator) {
	d := p.D
	for i, label := range labels {
		if int(label) == acc.K {
			continue
		}
		w := weights[i]
		acc.Weights[label] += w
		sums := acc.Sums[int(label)*d : int(label)*d+d]
		base := i/Lanes*d*Lanes + i%Lanes
		for j := range sums {
			sums[j] += float64(w * float64(p.Data[base+j*Lanes]))
		}
	}
}
