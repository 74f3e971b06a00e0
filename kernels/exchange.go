package kernels

import (
	"fmt"
	"math"
)

// Exchanges collects what a candidate does to the loss of K clusters: added as
// another centre, and in the place of each of them. Each kernel call adds its sum
// to Base and Gains, and that sum has one order of operations on every path: the
// terms are float64, point i of the call goes to chain i modulo 8 in point order,
// and the chains are added as ((0+1)+(2+3))+((4+5)+(6+7)). It belongs to one
// worker at a time.
type Exchanges struct {
	K     int
	Base  float64   // loss with the candidate as another centre
	Gains []float64 // [K], what is added when the candidate takes the place of a centre
	// table holds the chains of a call, [K+1][8], with a row for the label K; it is
	// zero between calls.
	table []float64
}

// NewExchanges makes an empty collection. It panics unless 0 < k <= 65535.
func NewExchanges(k int) *Exchanges {
	if k <= 0 || k > maxK {
		panic(fmt.Sprintf("kernels: NewExchanges: k=%d, want 0 < k <= %d", k, maxK))
	}
	table := (k + 1) * weightedChains
	memory := newOwned(pageBytes, 8*k, 8*table)
	return &Exchanges{K: k, Gains: part[float64](&memory, k), table: part[float64](&memory, table)}
}

// Reset sets the base and all gains to zero.
func (e *Exchanges) Reset() {
	clear(e.Gains)
	e.Base = 0
}

// Exchange adds points to the loss of all exchanges with one candidate. Point i
// contributes own[i] if it goes to the candidate, near[i] at the centre that
// labels[i] names, its nearest, and next[i] >= near[i] at the second nearest. So
// it adds weight*min(own, near) to the base and weight*(max(min(next, own), near)
// - near) to the gain of its label. Point losses are at least +0; weights may be
// nil for ones; a point with the label K adds to the base alone.
func Exchange(own, near, next []float32, labels []uint16, weights []float64, e *Exchanges) {
	checkLength("Exchange", "near", len(near), len(own))
	checkLength("Exchange", "next", len(next), len(own))
	checkLength("Exchange", "labels", len(labels), len(own))
	if weights != nil {
		checkLength("Exchange", "weights", len(weights), len(own))
	}
	checkLabels("Exchange", labels, e.K)
	var base [weightedChains]float64
	exchange(own, near, next, labels, weights, e.table, &base)
	for j := range e.Gains {
		e.Gains[j] += tree((*[weightedChains]float64)(e.table[j*weightedChains:]))
	}
	clear(e.table)
	e.Base += tree(&base)
}

// exchangePortable is the reference form of [Exchange]: it adds to the chains.
func exchangePortable(own, near, next []float32, labels []uint16, weights []float64, table []float64,
	base *[weightedChains]float64) {
	for i, x := range own {
		paid := float64(min(x, near[i]))
		gain := float64(max(min(next[i], x), near[i])) - float64(near[i])
		if weights != nil {
			paid, gain = float64(weights[i]*paid), float64(weights[i]*gain)
		}
		base[i%weightedChains] += paid
		table[int(labels[i])*weightedChains+i%weightedChains] += gain
	}
}

// PointLosses replaces squared distances, at least +0, by what they add to a
// loss: min(dist, most), or min(sqrt(dist), most) where root is set.
func PointLosses(dist []float32, root bool, most float32) {
	pointLosses(dist, root, most)
}

// pointLossesPortable is the reference form of [PointLosses].
func pointLossesPortable(dist []float32, root bool, most float32) {
	for i, x := range dist {
		if root {
			x = float32(math.Sqrt(float64(x))) // rounds once: a float64 root is exact enough
		}
		dist[i] = min(x, most)
	}
}

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

func pointLosses(dist []float32, root bool, most float32) {
	for current != generic && len(dist) >= Lanes {
		n := min(len(dist)/Lanes, blocksPerCall)
		if root {
			asmRoots(&dist[0], n, most)
		} else {
			asmSquares(&dist[0], n, most)
		}
		dist = dist[n*Lanes:]
	}
	pointLossesPortable(dist, root, most)
}
