package kernels

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkDimensions times each routine that is made for one number of dimensions, and reports how many times longer
// the one for the next number takes for the same points with a column of zeros: what a routine of its own buys. One
// that buys less than 5 % at both numbers of centroids is not worth its code.
func BenchmarkDimensions(b *testing.B) {
	for _, r := range []struct {
		name    string
		prepare func(*Panels, *Centroids) func()
	}{
		{"Assign", func(p *Panels, c *Centroids) func() {
			labels := make([]uint16, p.N)
			return func() { Assign(*p, c, labels, nil) }
		}},
		{"Assign2", func(p *Panels, c *Centroids) func() {
			labels, dist, second := make([]uint16, p.N), make([]float32, p.N), make([]float32, p.N)
			return func() { Assign2(*p, c, labels, dist, second) }
		}},
		{"TopTwo", func(p *Panels, c *Centroids) func() {
			bias, labels := make([]float32, c.K), make([]uint16, p.N)
			cells, gap := make([]uint32, p.N), make([]float32, p.N)
			return func() { TopTwo(*p, c.rows, bias, 1e-6, 1, labels, cells, gap) }
		}},
	} {
		for d := 1; d+1 < exactDims; d++ { // from exactDims on another form is used, which rounds otherwise
			for _, k := range []int{15, 100} {
				b.Run(fmt.Sprintf("%s/d=%d/k=%d", r.name, d, k), func(b *testing.B) { nextDimension(b, d, k, r.prepare) })
			}
		}
	}
}

func nextDimension(b *testing.B, d, k int, routine func(*Panels, *Centroids) func()) {
	p, c := lloydData(1<<13, d, k, 16)
	padded, centres, row := NewPanels(p.N, d+1), make([]float32, 0, k*(d+1)), make([]float32, d+1)
	for i := range p.N {
		p.Point(i, row[:d:d])
		padded.Set(i, row)
		if i < k {
			centres = append(centres, row...)
		}
	}
	wide := NewCentroids(k, d+1)
	wide.Set(centres)
	calls := [2]func(){routine(p, c), routine(padded, wide)}
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for i, call := range calls {
			start := time.Now()
			call()
			best[i] = min(best[i], time.Since(start))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(best[0].Nanoseconds())/float64(p.N), "ns/element")
	b.ReportMetric(float64(best[1])/float64(best[0]), "next/own")
}
