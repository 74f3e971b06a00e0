package kernels

import (
	"fmt"
	"math"
)

// Rivals finds for each point the two centroids of the least biased distances,
// labels[i] and rivals[i], and by how much the second exceeds the first. The
// biased distance to centroid a is the chain s = bias[a], then t = x-c,
// s = fma(t, t, s) in dimension order; of equal ones the smaller index comes
// first. gap[i] = fma(-slack, second, second-least), so that a slack that bounds
// the relative rounding error of a biased distance makes gap a lower bound. With
// K = 1 the gap is not a number or infinite and the rival is 0. len(bias) = K;
// labels, rivals and gap have length N. It panics unless D < [WithinDims].
func Rivals(p Panels, c *Centroids, bias []float32, slack float32, labels, rivals []uint16, gap []float32) {
	checkPair("Rivals", &p, c)
	if p.D >= WithinDims {
		panic(fmt.Sprintf("kernels: Rivals: d=%d, want d < %d", p.D, WithinDims))
	}
	checkLength("Rivals", "bias", len(bias), c.K)
	checkLength("Rivals", "labels", len(labels), p.N)
	checkLength("Rivals", "rivals", len(rivals), p.N)
	checkLength("Rivals", "gap", len(gap), p.N)
	twoLeast(&p, c, bias, slack, labels, rivals, gap)
}

// rivalsPortable is the reference form of [Rivals].
func rivalsPortable(p *Panels, c *Centroids, bias []float32, slack float32, labels, rivals []uint16, gap []float32) {
	inf := float32(math.Inf(1))
	d := p.D
	for base := 0; base < p.N; base += Lanes {
		panel := p.Data[base*d : base*d+d*Lanes]
		var best, next [Lanes]float32
		var label, rival [Lanes]uint16
		for l := range best {
			best[l], next[l] = inf, inf
		}
		for a := range c.K {
			var s [Lanes]float32
			for l := range s {
				s[l] = bias[a]
			}
			subChain(&s, panel, c.rows[a*d:a*d+d])
			for l, v := range s {
				if v < best[l] {
					best[l], next[l], rival[l], label[l] = v, best[l], label[l], uint16(a)
				} else if v < next[l] {
					next[l], rival[l] = v, uint16(a)
				}
			}
		}
		for l := range min(Lanes, p.N-base) {
			gap[base+l] = fma32(-next[l], slack, next[l]-best[l])
		}
		copy(labels[base:], label[:])
		copy(rivals[base:], rival[:])
	}
}
