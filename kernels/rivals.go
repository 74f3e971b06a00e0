package kernels

import (
	"fmt"
	"math"
	"math/bits"
)

// Rivals finds for each point the centroid of the least biased distance, and by
// how much the second least exceeds it. The biased distance to centroid a is the
// chain s = bias[a], then t = x-c, s = fma(t, t, s) in dimension order, the lowest
// [RivalBits] bits of which are replaced by a; 0 becomes a denormal number. labels[i]
// has the least, and
//
//	gap[i] = fma(-slack, second, second-least),
//
// a lower bound, up to denormal numbers, if slack bounds the relative errors.
// cells[i] is label*K + rival, where rival has the second least, if gap[i] is at
// most window, else K*K + label; so a table of K*K + K counters takes one addition
// for each point. With K = 1 the gap is infinite or not a number. Biases are not
// negative. len(bias) = K; labels, cells and gap have length N. It panics unless
// D < [WithinDims].
func Rivals(p Panels, c *Centroids, bias []float32, slack, window float32, labels []uint16, cells []uint32, gap []float32) {
	checkPair("Rivals", &p, c)
	if p.D >= WithinDims {
		panic(fmt.Sprintf("kernels: Rivals: d=%d, want d < %d", p.D, WithinDims))
	}
	checkLength("Rivals", "bias", len(bias), c.K)
	checkLength("Rivals", "labels", len(labels), p.N)
	checkLength("Rivals", "cells", len(cells), p.N)
	checkLength("Rivals", "gap", len(gap), p.N)
	twoLeast(&p, c, bias, slack, window, labels, cells, gap)
}

// RivalBits is the number of low bits that [Rivals] replaces for k centroids: a
// biased distance changes by less than 2^(RivalBits(k)-23) of itself.
func RivalBits(k int) int { return bits.Len(uint(k - 1)) }

// rivalMask has the bits set that Rivals replaces.
func rivalMask(k int) uint32 { return 1<<RivalBits(k) - 1 }

// rivalsPortable is the reference form of [Rivals].
func rivalsPortable(p *Panels, c *Centroids, bias []float32, slack, window float32, labels []uint16, cells []uint32, gap []float32) {
	inf := float32(math.Inf(1))
	low := rivalMask(c.K)
	d, k := p.D, uint32(c.K)
	for base := 0; base < p.N; base += Lanes {
		panel := p.Data[base*d : base*d+d*Lanes]
		var best, next [Lanes]float32
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
				v = math.Float32frombits(math.Float32bits(v)&^low | uint32(a))
				best[l], next[l] = min(best[l], v), min(next[l], max(best[l], v))
			}
		}
		for l := range min(Lanes, p.N-base) {
			g := fma32(-next[l], slack, next[l]-best[l])
			label, rival := math.Float32bits(best[l])&low, math.Float32bits(next[l])&low
			labels[base+l], gap[base+l], cells[base+l] = uint16(label), g, k*k+label
			if g <= window {
				cells[base+l] = label*k + rival
			}
		}
	}
}
