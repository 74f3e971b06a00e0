package kernels

import (
	"fmt"
	"math"
	"math/bits"
)

// TopTwoDims is the number of dimensions from which [TopTwo] is not defined.
const TopTwoDims = exactDims

// TopTwo finds for each point the least and the second least additively weighted
// distance (as in additively weighted Voronoi diagrams) to the K = len(weight)
// centroids whose coordinates rows holds, row-major. The weighted distance to
// centroid a is the chain s = weight[a], then t = x-c, s = fma(t, t, s) in
// dimension order, the lowest [TopTwoBits] bits of which are replaced by a; 0
// becomes a denormal number. labels[i] has the least, and
//
//	gap[i] = fma(-slack, second, second-least),
//
// a lower bound, up to denormal numbers, if slack bounds the relative errors.
// cells[i] is label*K + a, where a has the second least, if gap[i] is at most
// window, else K*K + label; so a table of K*K + K counters takes one addition for
// each point. With K = 1 the gap is infinite or not a number. Weights are not
// negative. len(rows) = K*D; labels, cells and gap have length N. It panics unless
// D < [TopTwoDims].
func TopTwo(p Panels, rows, weight []float32, slack, window float32, labels []uint16, cells []uint32, gap []float32) {
	p.check("TopTwo")
	if p.D >= TopTwoDims {
		panic(fmt.Sprintf("kernels: TopTwo: d=%d, want d < %d", p.D, TopTwoDims))
	}
	if k := len(weight); k == 0 || k > maxK {
		panic(fmt.Sprintf("kernels: TopTwo: k=%d, want 0 < k <= %d", k, maxK))
	}
	checkLength("TopTwo", "rows", len(rows), len(weight)*p.D)
	checkLength("TopTwo", "labels", len(labels), p.N)
	checkLength("TopTwo", "cells", len(cells), p.N)
	checkLength("TopTwo", "gap", len(gap), p.N)
	topTwo(&p, rows, weight, slack, window, labels, cells, gap)
}

// TopTwoBits is the number of low bits that [TopTwo] replaces for k centroids: a
// weighted distance changes by less than 2^(TopTwoBits(k)-23) of itself.
func TopTwoBits(k int) int { return bits.Len(uint(k - 1)) }

// topTwoMask has the bits set that TopTwo replaces.
func topTwoMask(k int) uint32 { return 1<<TopTwoBits(k) - 1 }

// topTwoPortable is the reference form of [TopTwo].
func topTwoPortable(p *Panels, rows, weight []float32, slack, window float32, labels []uint16, cells []uint32,
	gap []float32) {
	inf := float32(math.Inf(1))
	d, k := p.D, uint32(len(weight))
	low := topTwoMask(len(weight))
	for base := 0; base < p.N; base += Lanes {
		panel := p.Data[base*d : base*d+d*Lanes]
		var best, next [Lanes]float32
		for l := range best {
			best[l], next[l] = inf, inf
		}
		for a := range len(weight) {
			var s [Lanes]float32
			for l := range s {
				s[l] = weight[a]
			}
			subChain(&s, panel, rows[a*d:a*d+d])
			for l, v := range s {
				v = math.Float32frombits(math.Float32bits(v)&^low | uint32(a))
				best[l], next[l] = min(best[l], v), min(next[l], max(best[l], v))
			}
		}
		for l := range min(Lanes, p.N-base) {
			g := fma32(-next[l], slack, next[l]-best[l])
			label, second := math.Float32bits(best[l])&low, math.Float32bits(next[l])&low
			labels[base+l], gap[base+l], cells[base+l] = uint16(label), g, k*k+label
			if g <= window {
				cells[base+l] = label*k + second
			}
		}
	}
}

func topTwo(p *Panels, rows, weight []float32, slack, window float32, labels []uint16, cells []uint32, gap []float32) {
	if current == generic {
		topTwoPortable(p, rows, weight, slack, window, labels, cells, gap)
		return
	}
	k := len(weight)
	full, low := p.N/Lanes, topTwoMask(k)
	step := panelsPerCall(k * (p.D + 2))
	for at := 0; at < full; at += step {
		asmTopTwoN(p.D, &p.Data[at*Lanes*p.D], min(step, full-at), &rows[0], k, &weight[0], low, slack, window,
			&labels[at*Lanes], &cells[at*Lanes], &gap[at*Lanes])
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		var l [Lanes]uint16
		var r [Lanes]uint32
		var g [Lanes]float32
		asmTopTwoN(p.D, &p.Data[base*p.D], 1, &rows[0], k, &weight[0], low, slack, window, &l[0], &r[0], &g[0])
		copy(labels[base:], l[:])
		copy(cells[base:], r[:])
		copy(gap[base:], g[:])
	}
}
