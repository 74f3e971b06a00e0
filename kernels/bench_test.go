package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// lloydShapes are the nine (n, d, k) of the reference figures.
var lloydShapes = [][3]int{
	{5000, 2, 15}, {25000, 2, 100}, {100000, 2, 5}, {100000, 5, 5}, {1000000, 2, 15},
	{1000000, 8, 5}, {1000000, 16, 64}, {70000, 784, 10}, {100000, 100, 64},
}

// lloydData draws normal points, scaled into [-1, 1] on the grid, and takes the
// first k as centroids.
func lloydData(n, d, k, f int) (*Panels, *Centroids) {
	rng := rand.New(rand.NewPCG(1, uint64(n+d+k)))
	p := NewPanels(n, d)
	grid := float32(int(1) << f)
	row, centres := make([]float32, d), make([]float32, 0, k*d)
	for i := range n {
		for j := range row {
			x := min(max(float32(rng.NormFloat64())/4, -1), 1)
			row[j] = float32(int32(x*grid)) / grid
		}
		p.Set(i, row)
		if i < k {
			centres = append(centres, row...)
		}
	}
	c := NewCentroids(k, d)
	c.Set(centres)
	return p, c
}

var (
	limits     Limits
	limitsLock sync.Mutex
)

// measured returns the limits of this machine: the best so far in this run, since
// the clock moves.
func measured() Limits {
	limitsLock.Lock()
	defer limitsLock.Unlock()
	limits = limits.Best(MeasureLimits())
	return limits
}

// bandwidth returns the read bandwidth for a working set of that size.
var (
	bandwidthOf   = map[int]float64{}
	bandwidthLock sync.Mutex
)

func bandwidth(size int) float64 {
	bandwidthLock.Lock()
	defer bandwidthLock.Unlock()
	if bandwidthOf[size] == 0 {
		bandwidthOf[size] = MeasureRead(size, 1)
	}
	return bandwidthOf[size]
}

// bound is the least time in seconds that the arithmetic of an assignment takes.
func bound(n, d, k int) float64 { return measured().AssignSeconds(n, d, k) }

// run times fn, best of several rounds, and reports time per element, and the
// share of the larger of two limits: arithmetic, in seconds per call, and bytes
// that have to be read from a working set of the given size.
func run(b *testing.B, n int, arithmetic float64, bytes int, fn func()) {
	b.Helper()
	fn()
	best := time.Hour
	for b.Loop() {
		start := time.Now()
		fn()
		best = min(best, time.Since(start))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(best.Nanoseconds())/float64(n), "ns/element")
	limit, which := arithmetic, "%arithmetic"
	if bytes > 0 {
		if memory := float64(bytes) / bandwidth(bytes); memory > limit {
			limit, which = memory, "%bandwidth"
		}
	}
	if limit > 0 {
		b.ReportMetric(100*limit/best.Seconds(), which)
	}
}

func BenchmarkAssign(b *testing.B) {
	for _, s := range lloydShapes {
		n, d, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("n=%d/d=%d/k=%d", n, d, k), func(b *testing.B) {
			p, c := lloydData(n, d, k, 16)
			labels := make([]uint16, n)
			run(b, n, bound(n, d, k), 4*n*d, func() { Assign(*p, c, labels, nil) })
		})
	}
}

// BenchmarkAssignAccumulate states shares of the limit of the assignment alone.
func BenchmarkAssignAccumulate(b *testing.B) {
	for _, s := range lloydShapes {
		n, d, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("n=%d/d=%d/k=%d", n, d, k), func(b *testing.B) {
			p, c := lloydData(n, d, k, 16)
			acc := NewAccumulator(k, d, 16)
			run(b, n, bound(n, d, k), 4*n*d, func() { AssignAccumulate(*p, c, nil, acc) })
		})
	}
}

// BenchmarkPack compares with the read bandwidth; the panels are written too.
func BenchmarkPack(b *testing.B) {
	for _, s := range lloydShapes {
		n, d := s[0], s[1]
		b.Run(fmt.Sprintf("n=%d/d=%d", n, d), func(b *testing.B) {
			p := NewPanels(n, d)
			rows := alignedFloat32(n * d)
			for i := range rows {
				rows[i] = 1
			}
			run(b, n, 0, 8*n*d, func() { Pack(p, rows) })
		})
	}
}

// benchPoints is the shape of the benchmarks of the other kernels.
const benchPoints = 1 << 16

// overPoints runs fn for shapes that fit the second-level cache and do not.
func overPoints(b *testing.B, fn func(b *testing.B, p *Panels, c *Centroids, labels []uint16)) {
	for _, s := range [][2]int{{2, 15}, {8, 5}, {100, 10}} {
		d, k := s[0], s[1]
		b.Run(fmt.Sprintf("d=%d/k=%d", d, k), func(b *testing.B) {
			p, c := lloydData(benchPoints, d, k, 16)
			labels := make([]uint16, p.N)
			Assign(*p, c, labels, nil)
			fn(b, p, c, labels)
		})
	}
}

func BenchmarkAssignRadius(b *testing.B) {
	overPoints(b, func(b *testing.B, p *Panels, c *Centroids, labels []uint16) {
		run(b, p.N, bound(p.N, p.D, c.K), 4*p.N*p.D, func() { AssignRadius(*p, c, 0.1, labels, nil) })
	})
}

func BenchmarkAssignAccumulateRadius(b *testing.B) {
	overPoints(b, func(b *testing.B, p *Panels, c *Centroids, labels []uint16) {
		acc := NewAccumulator(c.K, p.D, 16)
		run(b, p.N, bound(p.N, p.D, c.K), 4*p.N*p.D, func() { AssignAccumulateRadius(*p, c, 0.1, nil, acc) })
	})
}

// BenchmarkReassign is a round in which nothing moves, with bounds where there
// are any.
func BenchmarkReassign(b *testing.B) {
	overPoints(b, func(b *testing.B, p *Panels, c *Centroids, labels []uint16) {
		acc := NewAccumulator(c.K, p.D, 16)
		AssignAccumulate(*p, c, labels, acc)
		var bounds []Bound
		if p.D < exactDims {
			bounds = make([]Bound, (p.N+BoundPoints-1)/BoundPoints)
		}
		infinite := float32(math.Inf(1))
		run(b, p.N, bound(p.N, p.D, c.K), 4*p.N*p.D, func() { Reassign(*p, c, infinite, labels, acc, bounds) })
	})
}

func BenchmarkMeasureBounds(b *testing.B) {
	overPoints(b, func(b *testing.B, p *Panels, c *Centroids, labels []uint16) {
		if p.D >= exactDims {
			b.Skip("no bounds")
		}
		bounds := make([]Bound, (p.N+BoundPoints-1)/BoundPoints)
		run(b, p.N, bound(p.N, p.D, c.K), 4*p.N*p.D, func() { MeasureBounds(*p, c, bounds) })
	})
}

// BenchmarkUpdateSums moves one point in a hundred.
func BenchmarkUpdateSums(b *testing.B) {
	overPoints(b, func(b *testing.B, p *Panels, c *Centroids, labels []uint16) {
		acc := NewAccumulator(c.K, p.D, 16)
		AssignAccumulate(*p, c, labels, acc)
		other := slices.Clone(labels)
		for i := 0; i < len(other); i += 100 {
			other[i] = uint16((int(labels[i]) + 1) % c.K)
		}
		before := slices.Clone(labels)
		run(b, p.N, 0, 4*p.N, func() {
			UpdateSums(*p, before, other, p.N, acc)
			labels, other = other, labels
		})
	})
}

func BenchmarkAssign2(b *testing.B) {
	overPoints(b, func(b *testing.B, p *Panels, c *Centroids, labels []uint16) {
		dist, second := make([]float32, p.N), make([]float32, p.N)
		run(b, p.N, bound(p.N, p.D, c.K), 4*p.N*p.D, func() { Assign2(*p, c, labels, dist, second) })
	})
}

func BenchmarkDistances(b *testing.B) {
	overPoints(b, func(b *testing.B, p *Panels, c *Centroids, labels []uint16) {
		dist := make([]float32, p.N)
		run(b, p.N, 0, 4*p.N*p.D, func() { Distances(*p, c, labels, dist) })
	})
}

func BenchmarkAccumulateOffsets(b *testing.B) {
	overPoints(b, func(b *testing.B, p *Panels, c *Centroids, labels []uint16) {
		acc, factor := NewAccumulator(c.K, p.D, 16), make([]float32, p.N)
		for i := range factor {
			factor[i] = 1 << 15
		}
		run(b, p.N, 0, 4*p.N*p.D, func() { AccumulateOffsets(*p, c, labels, factor, acc) })
	})
}

func BenchmarkAccumulate(b *testing.B) {
	overPoints(b, func(b *testing.B, p *Panels, c *Centroids, labels []uint16) {
		acc := NewAccumulator(c.K, p.D, 16)
		run(b, p.N, 0, 4*p.N*p.D, func() { Accumulate(*p, labels, acc) })
	})
}

// weightedShapes are the (n, d, k) of grids: the heads of vertical protocols and
// the cells and leaves that searches run on.
var weightedShapes = [][3]int{{625, 2, 5}, {4096, 2, 15}, {4096, 4, 8}, {4096, 8, 8}, {3000, 5, 10}, {4096, 2, 100},
	{20000, 20, 30}, {100000, 2, 15}}

func BenchmarkAccumulateByRow(b *testing.B) {
	for _, s := range [][3]int{{9600, 64, 1000}, {1600, 384, 256}, {1600, 768, 1000}} {
		n, d, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("d=%d/k=%d", d, k), func(b *testing.B) {
			if !sumsRows(d) {
				b.Skip("no routine")
			}
			p, _ := lloydData(n, d, k, 16)
			rows, labels, rng := make([]float32, n/Lanes*rowsSize(d)), make([]uint16, n), rand.New(rand.NewPCG(1, 2))
			for i := range labels {
				labels[i] = uint16(rng.IntN(k))
			}
			for lo := 0; lo < n*d; lo += Lanes * d {
				filterRows(p.Data[lo:lo+Lanes*d], d/Lanes, rows[lo/(Lanes*d)*rowsSize(d):])
			}
			acc := NewAccumulator(k, d, 16)
			run(b, n, 0, 4*n*d, func() {
				sink := newSink(acc)
				for lo := 0; lo < n; lo += Lanes {
					sink.addRows(rows[lo/Lanes*rowsSize(d):], labels[lo:lo+Lanes])
				}
				sink.fold()
			})
		})
	}
}

func BenchmarkWeightedCost(b *testing.B) {
	weights, dist := make([]float64, 4096), make([]float32, 4096)
	run(b, len(dist), 0, 12*len(dist), func() { WeightedCost(weights, dist) })
}

// BenchmarkAddMembers adds points cluster by cluster, each of which has lost some to others.
func BenchmarkAddMembers(b *testing.B) {
	for _, s := range weightedShapes {
		n, d, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("n=%d/d=%d/k=%d", n, d, k), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			w := weightedPoints(rng, NewPanels(n, d))
			which, labels, sums := make([]int32, n), make([]uint16, n), make([]float64, k*w.Width())
			for i, at := range rng.Perm(n) {
				which[i], labels[at] = int32(at), uint16(i*k/n)
				if i%10 == 0 {
					labels[at] = uint16(rng.IntN(k))
				}
			}
			run(b, n, 0, 8*n*w.Width(), func() { AddMembers(w, which, labels, sums) })
		})
	}
}

// BenchmarkAssignAccumulateWeighted states shares of the limit of the assignment
// alone.
func BenchmarkAssignAccumulateWeighted(b *testing.B) {
	for _, s := range weightedShapes {
		n, d, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("n=%d/d=%d/k=%d", n, d, k), func(b *testing.B) {
			p, c := lloydData(n, d, k, 16)
			w := weightedPoints(rand.New(rand.NewPCG(1, 1)), p)
			labels, dist, acc := make([]uint16, n), make([]float32, n), NewWeightedAccumulator(k, d)
			run(b, n, bound(n, d, k), 0, func() { AssignAccumulateWeighted(w, c, labels, dist, nil, acc) })
		})
	}
}

// exchangeData draws point losses of n points to a candidate, their nearest and
// their second nearest centre.
func exchangeData(rng *rand.Rand, n, k int) (own, near, next []float32, labels []uint16) {
	own, near, next, labels = make([]float32, n), make([]float32, n), make([]float32, n), make([]uint16, n)
	for i := range own {
		own[i], near[i] = rng.Float32(), rng.Float32()
		next[i] = near[i] + rng.Float32()
		labels[i] = uint16(rng.IntN(k))
	}
	return own, near, next, labels
}

func BenchmarkExchange(b *testing.B) {
	for _, s := range [][2]int{{2048, 10}, {2048, 64}, {70000, 10}} {
		n, k := s[0], s[1]
		for _, weights := range [][]float64{nil, make([]float64, n)} {
			b.Run(fmt.Sprintf("n=%d/k=%d/weights=%t", n, k, weights != nil), func(b *testing.B) {
				own, near, next, labels := exchangeData(rand.New(rand.NewPCG(1, 1)), n, k)
				e := NewExchanges(k)
				run(b, n, 0, 14*n+8*len(weights), func() { Exchange(own, near, next, labels, weights, e) })
			})
		}
	}
}

func BenchmarkPointLosses(b *testing.B) {
	for _, root := range []bool{false, true} {
		b.Run(fmt.Sprintf("root=%t", root), func(b *testing.B) {
			own, _, _, _ := exchangeData(rand.New(rand.NewPCG(1, 1)), 2048, 1)
			run(b, len(own), 0, 8*len(own), func() { PointLosses(own, root, 2) })
		})
	}
}

// BenchmarkCostRows: an integer cost takes a subtraction and a multiply-add of
// float64, half as many to a vector as of float32.
func BenchmarkCostRows(b *testing.B) {
	overPoints(b, func(b *testing.B, p *Panels, c *Centroids, labels []uint16) {
		const rows = 256
		dst := make([]int64, rows*c.K)
		arithmetic := 0.0
		if l := measured(); l.SubFMA > 0 {
			arithmetic = 2 * float64(p.N) * float64(c.K) * float64(p.D) / l.SubFMA
		}
		run(b, p.N, arithmetic, 4*p.N*p.D, func() {
			for lo := 0; lo < p.N; lo += rows {
				CostRows(*p, lo, lo+rows, c, 16, dst)
			}
		})
	})
}

// BenchmarkArrivals takes 4096 registers for each of five clusters of 100000 records
// together, up to a time from which it can go on; an item is a record.
func BenchmarkArrivals(b *testing.B) {
	states := make([]ArrivalState, 1000000)
	overClusters(b, func(key *ArrivalKey, part [][16]byte, reg []float64, scratch *ArrivalScratch) {
		n := float64(len(part))
		limit := (math.Log(float64(len(reg))) + 2) / n
		Arrivals(key, part, 1, limit, limit+14/n, reg, states, scratch)
	})
}

// BenchmarkContinue is BenchmarkArrivals, and goes on.
func BenchmarkContinue(b *testing.B) {
	states := make([]ArrivalState, 1000000)
	overClusters(b, func(key *ArrivalKey, part [][16]byte, reg []float64, scratch *ArrivalScratch) {
		n := float64(len(part))
		limit := (math.Log(float64(len(reg))) + 2) / n
		kept := Arrivals(key, part, 1, limit, limit+14/n, reg, states, scratch)
		Continue(key, states[:kept], 1, limit+2/n, reg, scratch)
	})
}

// overClusters runs fn on each of five clusters.
func overClusters(b *testing.B, fn func(key *ArrivalKey, part [][16]byte, reg []float64, scratch *ArrivalScratch)) {
	const m, clusters = 4096, 5
	for _, n := range []int{100000, 1000000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			key, digests := NewArrivalKey(randomBlocks(rng, 1)[0]), randomBlocks(rng, n)
			reg, scratch := registers(m), new(ArrivalScratch)
			run(b, n, 0, 0, func() {
				for lo := 0; lo < n; lo += n / clusters {
					for i := range reg {
						reg[i] = math.Inf(1)
					}
					fn(key, digests[lo:lo+n/clusters], reg, scratch)
				}
			})
		})
	}
}

func BenchmarkAddUint64(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 22} { // inside and outside the caches
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			dst, src := make([]uint64, n), make([]uint64, n)
			run(b, n, 0, 2*8*n, func() { AddUint64(dst, src) })
		})
	}
}

func BenchmarkTopTwo(b *testing.B) {
	for _, s := range [][2]int{{2, 15}, {2, 100}, {4, 100}, {5, 100}, {6, 100}, {6, 3}, {8, 100}, {12, 100}, {15, 100}} {
		d, k := s[0], s[1]
		b.Run(fmt.Sprintf("d=%d/k=%d", d, k), func(b *testing.B) {
			p, c := lloydData(benchPoints, d, k, 16)
			bias, labels, cells, gap := make([]float32, k), make([]uint16, p.N), make([]uint32, p.N), make([]float32, p.N)
			run(b, p.N, bound(p.N, d, k), 4*p.N*d, func() { TopTwo(*p, c.rows, bias, 1e-6, 1, labels, cells, gap) })
		})
	}
}

func BenchmarkLeastDot(b *testing.B) {
	for _, s := range [][2]int{{120, 2}, {2000, 6}} {
		n, d := s[0], s[1]
		b.Run(fmt.Sprintf("n=%d/d=%d", n, d), func(b *testing.B) {
			x, coef := make([]float64, n*d), slices.Repeat([]float64{1}, d)
			run(b, n, 2*bound(n, d, 1), 8*n*d, func() { LeastDot(x, n, n, coef) })
		})
	}
}

// BenchmarkTwoWorkers runs the fused iteration on one and on two goroutines, each
// with an accumulator of its own over halves of the points, and reports the
// ratio of the best times.
func BenchmarkTwoWorkers(b *testing.B) {
	for _, s := range lloydShapes {
		n, d, k := s[0], s[1], s[2]
		if n*d*k < 1000000 {
			continue
		}
		b.Run(fmt.Sprintf("n=%d/d=%d/k=%d", n, d, k), func(b *testing.B) {
			p, c := lloydData(n, d, k, 16)
			accs := []*Accumulator{NewAccumulator(k, d, 16), NewAccumulator(k, d, 16)}
			middle := n / 2 / Lanes * Lanes
			halves := []Panels{p.Slice(0, middle), p.Slice(middle, n)}
			// The second worker waits actively: waking a thread would take longer
			// than a small shape.
			var round atomic.Int64
			var quit atomic.Bool
			defer quit.Store(true)
			go func() {
				for last := int64(0); !quit.Load(); {
					if now := round.Load(); now != last {
						AssignAccumulate(halves[1], c, nil, accs[1])
						last = now + 1
						round.Store(last)
					}
				}
			}()
			one, two := time.Hour, time.Hour
			for b.Loop() {
				from := time.Now()
				AssignAccumulate(*p, c, nil, accs[0])
				one = min(one, time.Since(from))
				from = time.Now()
				goal := round.Add(1) + 1
				AssignAccumulate(halves[0], c, nil, accs[0])
				for round.Load() != goal {
				}
				two = min(two, time.Since(from))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(one)/float64(two), "speedup")
		})
	}
}
